"""Addresses from outside: which are kept, which are kept out."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep20ray_actors.addresses import excluded, plain_address, usable_address


@pytest.mark.parametrize("url", ["https://a.example/", "http://a.example:8080/x?y=%20#z", "HTTPS://ä.example/ü"])
def test_usable(url: str) -> None:
    assert usable_address(url) == url


@pytest.mark.parametrize(
    "value",
    [
        *("", None, 7, "javascript:alert(1)", "data:text/html,x", "ftp://a.example/", "//a.example/", "https://", "https://[a"),
        *("https://a.example/a b", "https://a.example/\n", "https://a.example/\ud800", "https://a.example/" + "y" * 2000),
    ],
)
def test_not_usable(value: Any) -> None:
    assert usable_address(value) is None


@pytest.mark.parametrize("url", ["https://a%5b.example/", "https://a\uff3b.example/", "https://%62ad.example/"])
def test_what_is_another_address_or_none_once_it_is_read_again_is_not_usable(url: str) -> None:
    assert usable_address(url) is None
    assert usable_address("https://a.example/%5b\uff3b") is not None


@pytest.mark.parametrize("url", ["https://[broken", "https://a.example/?u=https://[x", "https://a%5b.example/"])
def test_what_is_no_address_is_not_excluded_for_that(url: str) -> None:
    assert not excluded(url, ("bad.example",)) and excluded(url + "/https://bad.example/", ("bad.example",))


@pytest.mark.parametrize("domains", [(), ("bad.example",)])
def test_the_benchmarks_own_are_always_excluded(domains: tuple[str, ...]) -> None:
    assert excluded("https://mirror.example/Deep-20%2Dbench/raw", domains) and not excluded("https://a.example/", domains)


BARRED = ("bad.example", "wiki.example/answers", "bücher.example", "https://www.Full.example/", "*.star.example", "my-site.example")


@pytest.mark.parametrize(
    "url",
    [
        "https://BAD.example./x",
        "https://www.bad.example:8443/",
        "https://anyone@bad.example/",
        "https://fine.example%2F@bad.example/",
        "https://fine.example\\@bad.example/",
        "https://bad.example\\@fine.example/",
        "https://b%61d.example/",
        "https://b%2561d.example/",
        "https://\uff42\uff41\uff44.example/",
        "https://bad。example/",
        "https://b\u00adad.exam\u200bple/",
        "https://bad.ex\tample/",
        "https:/bad.example/",
        "https:////bad.example/",
        "https://archive.example/web/2026/https://bad.example/x",
        "https://fine.example/leave?to=https%3A%2F%2Fbad.example%2F",
        "https://fine.example/leave?to=https%253A%252F%252Fbad.example",
        "https://wiki.example/x/../answers/1",
        "https://wiki.example//answers/",
        "https://wiki.example/./%61nswers;v=1",
        "https://wiki.example/Answers?x",
        "https://BÜCHER.example/",
        "https://xn--bcher-kva.example/",
        "https://bu\u0308cher.example/",
        "https://www.full.example/",
        "https://star.example/",
        "https://full.example/",
        "https://www.google.com/amp/s/bad.example/page",
        "https://bad-example.translate.goog/page?_x_tr_sl=en",
        "https://www-bad-example.translate.goog/",
        "https://my--site-example.translate.goog/",
        "https://bad-example.cdn.ampproject.org/c/s/x",
        "https://archive.example/x/https://bad-example.translate.goog/",
        "https://web.archive.org/web/2020/bad.example/x",
        "https://web.archive.org/web/2020/https://bad.example/x",
        "https://r.jina.ai/bad.example/x",
        "https://r.jina.ai/www.bad.example",
        "https://fine.example/?u=bad.example",
        "https://fine.example/?u=bad.example&x=1",
        "https://fine.example/?u=bad.example#top",
        "https://fine.example/?u=bad.example:8443",
        "https://fine.example/?u=bad%252Eexample%252Fpage",
        "https://fine.example/?q=cache:bad.example/x",
        "https://fine.example/BAD.example./x",
        "https://fine.example/b\u00fccher.example",
        "https://fine.example/xn--bcher-kva.example/",
        "bad.example/page",
        "https://fine.example/wiki.example/answers",
        "https://fine.example/?u=en.wiki.example/x/../answers/1&y",
        "https://fine.example/wiki.example/x/wiki.example/answers",
        "https://wiki-example.translate.goog/answers/1",
        "https://mindalyze-com@fine.example/",
        "https://fine.example/?q=MINDALYZE%2Dcom",
        "https://fine.example/deep_20_bench",
        "https://fine.example/Deep 20%20Ray",
        "https://fine.example/#deep20-bench",
        "https://mindalyze.com/",
    ],
)
def test_hostile_spellings_are_excluded(url: str) -> None:
    assert excluded(url, BARRED)


@pytest.mark.parametrize(
    "url",
    [
        "https://notbad.example/",
        "https://bad.example.org/",
        "https://wiki.example/answersheet",
        "https://wiki.example/answers/../other",
        "https://bücher.example.org/",
        "https://fine.example/bad.example.org/x",
        "https://fine.example/?u=notbad.example",
        "https://fine.example/not-bad.example",
        "https://fine.example/bad.example,other",
        "https://bad.example.fine.example/",
        "https://bad-example.fine.example/",
        "https://notbad-example.translate.goog/",
        "https://x--bad-example.translate.goog/",
        "https://fine.example/bad-example",
        "https://translate.goog/bad-example",
        "https://fine.example/wiki.example/",
        "https://fine.example/?u=wiki.example/answersheet",
        "https://fine.example/?u=wiki.example&v=/answers",
        "https://wiki-example.translate.goog/answersheet",
        "https://fine.example/deep-20-questions",
        "https://fine.example/?u=https://[x",
        "",
        "no address",
    ],
)
def test_neighbours_are_not(url: str) -> None:
    assert not excluded(url, BARRED)


def test_an_exclusion_is_never_a_whole_top_level_domain() -> None:
    assert excluded("https://www.example/", ("www.example",)) and not excluded("https://fine.example/", ("www.example",))


@pytest.mark.parametrize("part", ["http:/", "https://bad.exampl/", "/wiki.example/x", "wiki.example:", "%25", "\\", "a.", "\u00fc.", "--"])
def test_a_long_hostile_address_is_judged_piece_by_piece(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The characters that are parsed grow with the address, not with its square."""
    parsed = 0

    def counted(text: str) -> Any:
        nonlocal parsed
        parsed += len(text)
        return urlsplit(text)

    monkeypatch.setattr("deep20ray_actors.addresses.urlsplit", counted)
    url = "https://a.example/?" + part * 5000
    assert not excluded(url, BARRED) and excluded(url + "/bad.example/", BARRED)
    assert parsed < 100 * len(url)


def test_no_domain_excludes_nothing() -> None:
    assert not excluded("https://fine.example/", ("", ".", "*.", "/"))


@pytest.mark.parametrize("value", ["https://user@a.example/", "https://a.example\\b", "https://a@b:c@d.example/", "https://a%2eb.example/"])
def test_what_clients_read_in_different_ways_is_not_usable(value: str) -> None:
    assert usable_address(value) is None


@given(st.text(max_size=200), st.lists(st.text(max_size=30), max_size=3))
def test_excluded_never_raises(text: str, domains: list[str]) -> None:
    assert excluded(text, domains) in (True, False) and excluded("https://" + text, domains) in (True, False)
    assert excluded(f"https://www.bad.example/{text}", ("bad.example",))


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ("https://a.example/?utm_source=openai", "https://a.example/"),
        ("https://a.example/?x=1&utm_source=openai#part", "https://a.example/?x=1#part"),
        ("https://a.example/?utm_source=openai&x=1", "https://a.example/?utm_source=openai&x=1"),
        ("https://a.example/?utm_source=openaints", "https://a.example/?utm_source=openaints"),
        (None, None),
        (3, 3),
    ],
)
def test_the_mark_of_a_search_is_no_part_of_an_address(value: Any, plain: Any) -> None:
    assert plain_address(value) == plain
