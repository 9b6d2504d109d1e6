"""Routes as an archive keeps them: for every kind of account and search they build the very requests that the driver's own do."""

from datetime import UTC, datetime

import pytest

import deep20ray_cohorts
from deep20ray.actions import Guess
from deep20ray.answers import Role, Token
from deep20ray.canonical import canonical
from deep20ray.game import Exchange, Reminder, View
from deep20ray_actors.config import Backend, LiteralCredential
from deep20ray_actors.messages import (
    EvidenceItem,
    GuesserMessage,
    JudgeMessage,
    Message,
    OracleMessage,
    PagesMessage,
    QueriesMessage,
    ResearchMessage,
    ResultItem,
    ReviewerMessage,
    SearchMessage,
    ValidatorMessage,
)
from deep20ray_actors.requests import request_digest
from deep20ray_artifacts.errors import ArchiveRefused
from deep20ray_cluster.plan import Plan, resolve
from deep20ray_cluster.recorded import read_routes, recorded_routes
from deep20ray_cluster.routes import routes_of
from deep20ray_cluster.sweep import NATIVE_KINDS, parse_sweep

from .worlds import sweep_text

KITE = deep20ray_cohorts.load("core-1.1").subjects[0].trusted
KEY = LiteralCredential("a-key-that-no-archive-may-hold")
RESULT = ResultItem(number=1, url="https://a.example/", title="A", text="It flies.")
EVIDENCE = (EvidenceItem(number=1, url="https://a.example/", excerpt="It flies."),)
MESSAGES: dict[Role, tuple[Message, ...]] = {
    Role.GUESSER: (GuesserMessage.of(View("thing", "0123456789ab", (Exchange("{}", Token.YES), Reminder(), Reminder()))),),
    Role.ORACLE: (
        OracleMessage.of(KITE, "Does it fly?", (RESULT,)),
        QueriesMessage.of(KITE, "Does it fly?", 2),
        PagesMessage(urls=("https://a.example/",)),
    ),
    Role.REVIEWER: (ReviewerMessage.of(KITE, "Does it fly?", EVIDENCE),),
    Role.JUDGE: (JudgeMessage.of(KITE, "Does it fly?", EVIDENCE),),
    Role.VALIDATOR: (ValidatorMessage.of(KITE, Guess("kite", "a toy")),),
}
MORE = {
    "openai-chat": ('output_limit_field = "max_tokens"', "temperature = 0.7\ntop_p = 0.9"),
    "openai-responses": ("", 'effort = "high"'),
    "anthropic": ('anthropic_auth = "bearer"\nanthropic_version = "2024-10-22"', 'thinking = "adaptive"\nmax_output_tokens = 4096'),
    "gemini": ("", "send_seed = false\ntemperature = 1.0"),
    "openrouter": ('upstreams = ["one", "two"]', 'effort = "low"'),
}
SEARCHES = {
    "searxng": "",
    "brave": 'api_key = "file:/nowhere"\n',
    "tavily": 'excluded_domains = ["b.example", "a.example"]\n',
    "tavily, keyed": 'api_key = "file:/nowhere"\n',
}


def planned(kind: str, search: str = "") -> Plan:
    account, model = MORE[kind]
    text = sweep_text("http://127.0.0.1:9/base").replace('kind = "openai-chat"', f'kind = "{kind}"\n{account}')
    text = text.replace("query_target = 0\nfetch_pages = 0", "query_target = 2\nfetch_pages = 2").replace(
        'model = "', f'{model}\nmodel = "'
    )
    if search:
        text = text.replace('kind = "searxng"', search)
    if "native" in search:
        head, _, tail = text.partition("[search]")
        text = head + "[search]" + tail.replace('base_url = "http://127.0.0.1:9/base"\n', "", 1)
    return resolve(parse_sweep(text, "s.toml"), deep20ray_cohorts.load("core-1.1"), datetime(2026, 12, 1, tzinfo=UTC))


def check(plan: Plan, keyed: bool, more: tuple[Message, ...] = ()) -> None:
    """What is read back builds what the driver's own routes build, and holds no key."""
    credentials = dict.fromkeys(plan.sweep.accounts, KEY) | {"search:": KEY if keyed else None}
    own = routes_of(plan, credentials, None)
    data = canonical(recorded_routes(plan, plan.runs[0]))
    assert KEY.value.encode() not in data
    read = read_routes(data, plan.document, plan.runs[0].id)
    for role in Role:
        route = next(iter(own[role].values()))
        for message in (*MESSAGES[role], *(more if role is Role.ORACLE else ())):
            if isinstance(message, QueriesMessage) and route.native is not None:
                continue  # nobody writes queries for a provider's own search
            assert request_digest(read[role], message, 7) == request_digest(route, message, 7), (role, message.kind)


@pytest.mark.parametrize("kind", MORE)
def test_every_kind_of_account(kind: str) -> None:
    check(planned(kind), keyed=False, more=(SearchMessage.of(KITE, "Does it fly?"),))


@pytest.mark.parametrize("kind", NATIVE_KINDS)
def test_every_search_of_a_providers_own(kind: str) -> None:
    check(planned(kind, 'kind = "native"'), keyed=False, more=(ResearchMessage.of(KITE, "Does it fly?", 2),))


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_back_end(search: str) -> None:
    plan = planned("openai-chat", f'kind = "{search.partition(",")[0]}"\n{SEARCHES[search]}')
    assert plan.sweep.search.kind in set(Backend)
    check(plan, keyed="api_key" in SEARCHES[search], more=(SearchMessage.of(KITE, "Does it fly?"),))


def test_the_guessers_route_is_its_own_runs() -> None:
    text = sweep_text("http://127.0.0.1:9") + '\n[[models]]\nid = "second"\naccount = "guesser"\nmodel = "another"\n'
    plan = resolve(parse_sweep(text, "s.toml"), deep20ray_cohorts.load("core-1.1"), datetime(2026, 12, 1, tzinfo=UTC))
    first, second = (canonical(recorded_routes(plan, run)) for run in plan.runs)
    assert read_routes(second, plan.document, plan.runs[1].id)[Role.GUESSER].model == "another"
    with pytest.raises(ArchiveRefused, match="the guesser's requested_model isn't what the public plan says"):
        read_routes(first, plan.document, plan.runs[1].id)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"guesser": 1}', b"\xff"])
def test_what_are_no_routes(data: bytes) -> None:
    plan = planned("openai-chat")
    with pytest.raises(ArchiveRefused):
        read_routes(data, plan.document, plan.runs[0].id)
