"""The sweep file: what is wrong is said in one line, with its place; nothing unknown is ignored."""

from pathlib import Path

import pytest

from deep20ray.answers import Role
from deep20ray_cluster.errors import SweepError
from deep20ray_cluster.sweep import parse_sweep, read_sweep

from .worlds import sweep_text

GOOD = sweep_text("http://127.0.0.1:9")


def refused(text: str) -> str:
    with pytest.raises(SweepError) as error:
        parse_sweep(text, "my.toml")
    line = str(error.value)
    assert line.startswith("my.toml: ")
    assert "\n" not in line
    return line.removeprefix("my.toml: ")


def test_a_good_sweep_is_read_whole() -> None:
    sweep = parse_sweep(GOOD, "my.toml")
    assert (sweep.sweep.edition, sweep.models[0].id, sweep.support.of(Role.JUDGE).account) == ("1.1", "scripted", "judge")
    assert not sweep.simulated


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "sweep: "),
        ("[sweep", "not valid TOML: "),
        ("a = 1\na = 2", "not valid TOML: "),
        ("\x00", "not valid TOML: "),
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deep"),
        ("a = " + "9" * 5000, "not valid TOML: "),
        ("sweep = 5", "sweep: "),
        ('sweep = "no"', "sweep: "),
        ("models = 7", "sweep: "),
        ("[[sweep]]", "sweep: "),
    ],
)
def test_what_is_not_a_sweep(text: str, says: str) -> None:
    assert refused(text).startswith(says)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('seed = "test-seed"', 'seed = "test-seed"\ntypo = 1', "sweep.typo: unknown key"),
        ('kind = "openai-chat"', 'kind = "openai-chat"\napi-key = "x"', "accounts.guesser.api-key: unknown key"),
        ("[search]", "[search]\ncolour = 1", "search.colour: unknown key"),
        ('id = "scripted"', 'id = "scripted"\ntemprature = 1', "models.0.temprature: unknown key, do you mean temperature?"),
        ("[support.oracle]", "[support.host]\nx = 1\n[support.oracle]", "support.host: unknown key"),
        ("[search]", "[extra]\n[search]", "extra: unknown key"),
        (
            "[[models]]",
            '[prices."m"]\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 1\nper_call = 1\n[[models]]',
            "prices.m.per_call: unknown key",
        ),
        ('name = "test"', 'name = "Not A Slug"', "sweep.name: "),
        ('name = "test"', 'name = "../up"', "sweep.name: "),
        ('name = "test"', "", "sweep.name: "),
        ('seed = "test-seed"', 'seed = ""', "sweep.seed: "),
        ("rounds = 1", "rounds = 0", "sweep.rounds: "),
        ("rounds = 1", 'rounds = "many"', "sweep.rounds: "),
        ("rounds = 1", "rounds = 1.5", "sweep.rounds: "),
        ("rounds = 1", "rounds = nan", "sweep.rounds: "),
        ("rounds = 1", 'policy = "guess"', "sweep.policy: "),
        ('subjects = ["T-0001"]', "subjects = 1", "sweep.subjects: "),
        ('kind = "openai-chat"', 'kind = "other"', "accounts.guesser.kind: "),
        ("attempts = 4", "attempts = 0", "accounts.guesser.attempts: "),
        ("attempts = 4", "max_concurrency = -1", "accounts.guesser.max_concurrency: "),
        ("attempts = 4", "try_seconds = inf", "accounts.guesser.try_seconds: "),
        ("attempts = 4", "try_seconds = nan", "accounts.guesser.try_seconds: "),
        ("attempts = 4", 'api_key = "sk-literal-key"', "accounts.guesser.api_key: "),
        ('base_url = "http://127.0.0.1:9/guesser/v1"', "", "accounts.guesser: it needs base_url"),
        ("http://127.0.0.1:9/guesser/v1", "ftp://host/v1", "accounts.guesser.base_url: base_url must be http(s)"),
        ("http://127.0.0.1:9/guesser/v1", "http://user:pw@host/v1", "accounts.guesser.base_url: base_url must be http(s)"),
        ("http://127.0.0.1:9/guesser/v1", "http://host/v1?key=1", "accounts.guesser.base_url: base_url must be http(s)"),
        ('kind = "searxng"', 'kind = "simulator"', "search: kind simulator takes no base_url"),
        ('kind = "searxng"\n', 'kind = "brave"\n', "search: kind brave needs api_key"),
        ('kind = "searxng"\n', 'kind = "searxng"\napi_key = "env:KEY"\n', "search: kind searxng takes no api_key"),
        ('kind = "searxng"\nquery_target = 0', 'kind = "searxng"\nquery_target = 5', "search: query_target must not be above max_queries"),
        ('kind = "searxng"\n', 'kind = "searxng"\nmax_queries = 11\n', "search.max_queries: "),
        ('kind = "searxng"\n', 'kind = "searxng"\nmax_queries = 3\n', "search: max_queries does nothing with query_target = 0"),
        ('kind = "searxng"\n', 'kind = "searxng"\npage_chars = 300\n', "search: page_chars does nothing with fetch_pages = 0"),
        ("[search]", "[prices.typo]\ninput_usd_per_mtok = 1\noutput_usd_per_mtok = 1\n[search]", "prices.typo: no role is played"),
        (
            'kind = "searxng"\nquery_target = 0\nfetch_pages = 0\nbase_url = "http://127.0.0.1:9"',
            'kind = "native"\nusd_per_thousand = 5',
            "search: usd_per_thousand does nothing with kind native",
        ),
        ('kind = "searxng"\n', 'kind = "searxng"\nexcluded_domains = ["http://x.example"]\n', "search.excluded_domains.0: "),
        ('account = "guesser"', 'account = "nobody"', "model 'guesser' names account 'nobody'"),
        ('account = "judge"', 'account = "nobody"', "model 'judge' names account 'nobody'"),
        ('id = "scripted"', 'id = "Scripted"', "models.0.id: "),
        ('id = "scripted"', 'id = "scripted"\ntemperature = 3', "models.0.temperature: "),
        ('id = "scripted"', 'id = "scripted"\neffort = "HIGH!"', "models.0.effort: "),
        ('id = "scripted"', 'id = "scripted"\nmax_output_tokens = 1', "models.0.max_output_tokens: "),
    ],
)
def test_each_bad_setting_is_named_with_its_place(old: str, new: str, says: str) -> None:
    assert old in GOOD
    assert refused(GOOD.replace(old, new, 1)).startswith(says)


def test_a_missing_section_is_named() -> None:
    assert refused(GOOD.replace("[support.judge]", "[support.jury]")).startswith("support.jury: unknown key")
    assert refused(GOOD.partition("[[models]]")[0]).startswith("models: ")
    assert refused(GOOD.replace("[[models]]", "[models]")).startswith("models: ")


def test_two_models_of_one_name() -> None:
    tail = GOOD.partition("[[models]]")[2]
    assert "two models have the id 'scripted'" in refused(GOOD + "[[models]]" + tail)


def test_several_mistakes_are_counted() -> None:
    assert refused(GOOD.replace("rounds = 1", "rounds = 0\nx = 1\ny = 2")).endswith("(and 2 more)")


def test_no_value_is_repeated_in_an_error() -> None:
    assert "sk-literal" not in refused(GOOD.replace("attempts = 4", 'api_key = "sk-literal-key"', 1))


def test_a_name_can_not_break_the_line() -> None:
    assert "\n" not in refused(GOOD.replace("[search]", '"a\\nb" = 1\n[search]'))


def test_a_simulated_part_makes_a_simulated_sweep() -> None:
    text = GOOD.replace('kind = "searxng"\nquery_target = 0\nfetch_pages = 0\nbase_url = "http://127.0.0.1:9"', 'kind = "simulator"')
    assert parse_sweep(text, "my.toml").simulated
    unused = GOOD.replace("[search]", '[accounts.spare]\nkind = "simulator"\n\n[search]')
    assert not parse_sweep(unused, "my.toml").simulated


@pytest.mark.parametrize("content", [None, b"\xff\xfe[sweep]"])
def test_a_file_that_can_not_be_read(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "s.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SweepError, match="s.toml: can't be read"):
        read_sweep(path)
    with pytest.raises(SweepError, match="can't be read"):
        read_sweep(tmp_path)
