"""Addresses from outside: which are kept, which are kept out."""

from typing import Any

import pytest

from deep20ray_actors.addresses import excluded, usable_address


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
