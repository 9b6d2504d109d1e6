"""Addresses from outside: which are kept, which are kept out."""

from typing import Any

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


def test_what_is_no_address_once_unquoted_is_excluded() -> None:
    assert usable_address("https://a%5b.example/") is not None and excluded("https://a%5b.example/", ())


@pytest.mark.parametrize("domains", [(), ("bad.example",)])
def test_the_benchmarks_own_are_always_excluded(domains: tuple[str, ...]) -> None:
    assert excluded("https://mirror.example/Deep-20%2Dbench/raw", domains) and not excluded("https://a.example/", domains)


BARRED = ("bad.example", "wiki.example/answers", "bücher.example", "https://www.Full.example/", "*.star.example")


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
        "https://fine.example/bad.example",
        "https://wiki.example/answersheet",
        "https://wiki.example/answers/../other",
        "https://bücher.example.org/",
        "https://full.example/",
        "https://fine.example/deep-20-questions",
        "https://fine.example/?u=https://[x",
        "",
        "no address",
    ],
)
def test_neighbours_are_not(url: str) -> None:
    assert not excluded(url, BARRED)


def test_no_domain_excludes_nothing() -> None:
    assert not excluded("https://fine.example/", ("", ".", "*.", "/"))


@pytest.mark.parametrize("value", ["https://user@a.example/", "https://a.example\\b", "https://a@b:c@d.example/"])
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
