"""Pages in a real actor: its reader starts there, holds nothing of it, and ends with it however the actor ends."""

import contextlib
import time

import psutil
import pytest
import ray
from pytest_httpserver import HTTPServer

from deep20ray.answers import Role
from deep20ray_actors.config import FetchConfig, LiteralCredential
from deep20ray_actors.messages import PagesMessage
from deep20ray_actors.outcomes import Fetched
from deep20ray_actors.roles import ACTORS
from tests.actors.search.web import html
from tests.actors.support import call, route


def reading(process: psutil.Process) -> bool:
    """Whether it runs and is a reader."""
    with contextlib.suppress(psutil.Error):
        return "deep20ray_actors.search.text" in process.cmdline()
    return False


@pytest.mark.usefixtures("quiet_ray")
def test_an_actor_reads_pages_and_its_reader_ends_with_it(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/a").respond_with_data(html(), content_type="text/html")
    config = route(Role.ORACLE, credential=LiteralCredential("a-secret-key"), fetch=FetchConfig(allow_loopback=True))
    actor = ACTORS[Role.ORACLE].remote({"r": config})
    try:
        url = httpserver.url_for("/a").replace("localhost", "127.0.0.1")
        ray.get(actor.submit.remote([call(PagesMessage(urls=(url, "http://10.0.0.1/")))]), timeout=60)
        (result,) = ray.get(actor.collect.remote(60.0), timeout=90)
        assert isinstance(result.outcome, Fetched)
        assert [page.text for page in result.outcome.pages] == ["Some words stand here.", ""]
        (reader,) = (process for process in psutil.Process().children(recursive=True) if reading(process))
        assert set(reader.environ()) == {"PYTHONPATH"}
    finally:
        ray.kill(actor)
    for _ in range(600):
        if not reading(reader):
            return
        time.sleep(0.1)
    raise AssertionError("the reader outlived its actor")
