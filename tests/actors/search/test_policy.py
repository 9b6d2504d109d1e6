"""Where pages may be fetched from: every odd spelling of a private place is refused."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deep20ray_actors.search.policy import parse, public, reachable, refusal

PRIVATE = [
    *("127.0.0.1", "127.255.0.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "169.254.0.1"),
    *("100.64.0.1", "100.127.255.255", "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("192.0.0.1", "192.0.0.9", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.7", "192.88.99.1"),
    *("168.63.129.16", "64:ff9b::a83f:8110", "192.31.196.1", "192.52.193.1", "192.175.48.6"),
    *("2620:4f:8000::1", "2620:4f:8000:ffff::1"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "ff0e::1", "2001:db8::1", "100::1"),
    *("::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:10.0.0.1", "::127.0.0.1", "::8.8.8.8", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"),
    *("64:ff9b:1::1", "2002:7f00:1::", "2002:808:808::1", "2001:0:7f00:1::", "2001::1", "5f00::1", "4000::1", "2606:4700::1%eth0"),
]
PUBLIC = [
    "8.8.8.8",
    "168.63.129.15",
    "168.63.129.17",
    "2620:4f:8001::1",
    "1.1.1.1",
    "172.15.0.1",
    "100.63.0.1",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00::1",
    "64:ff9b::808:808",
]


PRIVATE_ENDS = ["localhost", "local", "internal", "intranet", "private", "lan", "home", "corp", "mail", "test", "invalid", "alt", "onion"]
PRIVATE_ENDS += ["arpa", "localdomain", "cluster", "svc", "consul"]


@pytest.mark.parametrize("address", PRIVATE)
def test_no_connection_goes_to_a_private_address(address: str) -> None:
    assert not public(ip_address(address)) and not reachable(address, 443)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_reached_on_two_ports(address: str) -> None:
    assert reachable(address, 443) and reachable(address, 80)
    assert not any(reachable(address, port, loopback=loopback) for port in (0, 22, 8080, 65535) for loopback in (False, True))


def test_loopback_is_reached_on_any_port_only_where_it_is_allowed() -> None:
    for address in ("127.0.0.1", "127.8.8.8", "::1"):
        assert reachable(address, 1234, loopback=True) and not reachable(address, 80)
    assert not reachable("10.0.0.1", 80, loopback=True) and not reachable("0.0.0.0", 80, loopback=True)
    assert not reachable("no address", 80, loopback=True) and not reachable("::ffff:127.0.0.1", 80, loopback=True)


@pytest.mark.parametrize(
    "url",
    [
        *("http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/", "http://017700000001/"),
        *(
            "http://127.0.0.1/",
            "http://127.0.0.1./",
            "http://127.0.0.01/",
            "http://①②⑦.0.0.1/",
            "http://127。0。0。1/",
            "http://1.2.3.4.5/",
        ),
        *("http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[0:0:0:0:0:ffff:7f00:1]/"),
        *("http://[64:ff9b::127.0.0.1]/", "http://[2002:7f00:1::]/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::1"),
        *("http://localhost/", "http://localhost./", "http://LOCALHOST/", "http://a.localhost/", "http://intranet/", "http://metadata/"),
        *("http://metadata.google.internal/", "http://printer.local/", "http://1.0.0.127.in-addr.arpa/", "http://x.onion/"),
        *(f"http://a.{end}{dot}/" for end in PRIVATE_ENDS for dot in ("", ".")),
        *("http://A.INTRANET/", "http://a.default.svc/", "http://a.svc.cluster.local/", "http://router.home.arpa/"),
        *("http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://2852039166/", "http://example.0x7f/"),
        *("http://user@a.example/", "http://user:pass@a.example/", "http://@a.example/", "http://a.example@127.0.0.1/"),
        *("http://a.example:8080/", "https://a.example:22/", "http://a.example:0/", "http://a.example:99999/", "http://a.example:x/"),
        *("ftp://a.example/", "file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "gopher://a.example/", "ws://a.example/"),
        *("//a.example/", "a.example", "", "http://", "http:/a.example/", "http:a.example", "http:///a.example", "http://:80/", "http://."),
        *("http://a..example/", "http://-a.example/", "http://a-.example/", "http://a%2eexample/", "http://%31%32%37.0.0.1/"),
        *("http://a.example\\@127.0.0.1/", "http://a.example/a b", "http://a.example/\n", "http://a\u0000.example/", "http://a.exa\tmple/"),
        *("http://" + "a." * 130 + "example/", "http://" + "a" * 64 + ".example/", "http://a.example/" + "x" * 3000),
    ],
)
def test_refused_addresses(url: str) -> None:
    assert refusal(url) is not None


@pytest.mark.parametrize(
    "url",
    [
        *("http://a.example/", "https://a.example", "HTTPS://A.Example./x?y=%20#z", "https://a.example:443/", "http://a.example:443/"),
        *("http://bücher.example/ü", "https://8.8.8.8/", "https://[2606:4700::1111]/", "http://_x.a-b.example/", "http://1.a.example/"),
        *("http://svc.example/", "http://test.a.example/", "http://intranet.example.org/", "http://a.testing/"),
        *("http://xn--bcher-kva.example/", "https://a.example/https://127.0.0.1/", "https://a.example/?@127.0.0.1"),
    ],
)
def test_plain_addresses_are_not(url: str) -> None:
    assert refusal(url) is None


def test_loopback_addresses_where_they_are_allowed() -> None:
    for url in ("http://127.0.0.1:1234/", "http://[::1]:9/", "http://localhost:80/", "http://a.example:8080/"):
        assert refusal(url, loopback=True) is None
    for url in ("http://10.0.0.1/", "http://127.1/", "http://user@127.0.0.1/", "http://8.8.8.8:8080/", "ftp://127.0.0.1/"):
        assert refusal(url, loopback=True) is not None


HOSTS = st.one_of(
    st.text(alphabet="0123456789abcdefx.:%[]@-_/\\①。\uff11 ", max_size=24),
    st.ip_addresses().map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
    st.integers(0, 2**33).map(str),
    st.integers(0, 2**33).map(hex),
    st.integers(0, 2**33).map(oct),
    st.lists(st.integers(0, 300).map(lambda each: str(each)) | st.integers(0, 300).map(hex), min_size=1, max_size=5).map(".".join),
)


@given(
    st.sampled_from(["http://", "https://", "HTTP://", "http:\\\\", "http:", ""]),
    HOSTS,
    st.sampled_from(["", "/", ":80/", "@b/", "./", "\\"]),
)
@example("http://", "127.1", "/")
def test_whatever_passes_leads_to_no_private_address(scheme: str, host: str, rest: str) -> None:
    url = scheme + host + rest
    if refusal(url) is not None:
        return
    parsed = parse(url)
    assert parsed is not None and parsed.raw_host and parsed.scheme in ("http", "https") and parsed.port in (80, 443)
    name = parsed.raw_host
    try:
        numeric: IPv4Address | IPv6Address = IPv6Address(name) if ":" in name else IPv4Address(socket.inet_aton(name))
    except (ValueError, OSError):
        assert not name.replace(".", "").isdigit()
        return
    # The C library takes it for a number, so it must be one in the canonical spelling, and public.
    assert public(numeric) and str(numeric) == name


@given(st.text(max_size=60))
def test_any_text_is_judged(text: str) -> None:
    for url in (text, "http://" + text, "http://a.example/" + text):
        assert refusal(url) is None or refusal(url)
