"""The five actor classes on a real local Ray, against a real server."""

from typing import Any

import pytest
import ray
from pytest_httpserver import HTTPServer

from deep20ray.answers import Role
from deep20ray_actors.config import LiteralCredential
from deep20ray_actors.greeting import code_digest
from deep20ray_actors.outcomes import Completed, Rejected
from deep20ray_actors.roles import ACTORS
from tests.actors.support import MESSAGES, call, completion, route


@pytest.mark.usefixtures("quiet_ray")
def test_each_role_plays_in_a_process_of_its_own_with_its_own_key(httpserver: HTTPServer) -> None:
    for role in Role:
        httpserver.expect_request(
            f"/{role.value}/chat/completions", headers={"Authorization": f"Bearer key-{role.value}"}
        ).respond_with_json(completion(role.value))
    actors: dict[Role, Any] = {}
    for role in Role:
        config = route(role, httpserver.url_for(f"/{role.value}"), credential=LiteralCredential(f"key-{role.value}"))
        actors[role] = ACTORS[role].remote({"r": config})
    try:
        greetings = ray.get([actor.ping.remote() for actor in actors.values()], timeout=60)
        assert [greeting.role for greeting in greetings] == [role.value for role in Role]
        assert {greeting.code for greeting in greetings} == {code_digest()} and not any(greeting.unusable for greeting in greetings)
        strangers = {role: MESSAGES[Role.JUDGE if role is not Role.JUDGE else Role.REVIEWER] for role in Role}
        ray.get([actor.submit.remote([call(MESSAGES[role], 1), call(strangers[role], 2)]) for role, actor in actors.items()], timeout=60)
        for role, actor in actors.items():
            got: dict[int, Any] = {}
            while len(got) < 2:
                got |= {result.slot: result for result in ray.get(actor.collect.remote(10.0), timeout=60)}
            assert got[1].outcome == Completed(role.value) and got[1].audit.wire_tries == 1
            assert isinstance(got[2].outcome, Rejected)
        assert len(httpserver.log) == len(Role)
    finally:
        for actor in actors.values():
            ray.kill(actor)
