"""A local run listens on loopback and connects nowhere but to the configured providers, Ray included."""

import ipaddress
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from .command import command, sealed, sent
from .worlds import ROLES, scripted, sweep_text

_ADDRESS = re.compile(r'sin_addr=inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)"')
_ODD = re.compile(r"sa_family=AF_(?!INET\b|INET6\b|UNIX\b|LOCAL\b|UNSPEC\b|NETLINK\b)")


def loopback(address: str) -> bool:
    """Whether an address, an IPv4 one in IPv6 form included, is of this host alone."""
    parsed = ipaddress.ip_address(address)
    return (getattr(parsed, "ipv4_mapped", None) or parsed).is_loopback


def beyond(line: str) -> bool:
    """Whether a traced system call names an address that isn't loopback."""
    return any(not loopback(first or second) for first, second in _ADDRESS.findall(line)) or _ODD.search(line) is not None


def test_the_reading_of_traces() -> None:
    assert beyond('1 connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("169.254.169.254")}, 16) = -1 EINPROGRESS')
    assert beyond('1 sendto(3, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("8.8.8.8")}, 16) = 1')
    assert beyond('1 connect(3, {sa_family=AF_INET6, sin6_port=htons(80), inet_pton(AF_INET6, "2001:db8::1", &sin6_addr)}, 28) = 0')
    assert not beyond('1 connect(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = 0')
    assert not beyond('1 connect(3, {sa_family=AF_INET6, sin6_port=htons(80), inet_pton(AF_INET6, "::1", &sin6_addr)}, 28) = 0')
    assert not beyond('1 connect(3, {sa_family=AF_INET6, sin6_port=htons(80), inet_pton(AF_INET6, "::ffff:127.0.0.1", &sin6_addr)}, 28)')
    assert beyond('1 connect(3, {sa_family=AF_INET6, sin6_port=htons(80), inet_pton(AF_INET6, "::ffff:10.0.0.1", &sin6_addr)}, 28)')
    assert not beyond('1 connect(3, {sa_family=AF_UNIX, sun_path="/run/x"}, 110) = 0')


def test_a_local_run_is_silent_and_listens_on_loopback_alone(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    trace = ["strace", "-f", "-qq", "-o", str(tmp_path / "trace"), "-e", "trace=connect,sendto,sendmsg,sendmmsg"]
    if subprocess.run([*trace, sys.executable, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip("tracing processes is not permitted here")
    with scripted(tmp_path / "world", {"latency": dict.fromkeys(ROLES, 0.4)}) as (url, log):
        (tmp_path / "sweep.toml").write_text(sweep_text(url, rounds=2))
        out = tmp_path / "out"
        words = [*trace, *command("run", tmp_path / "sweep.toml", "--out", out, "--progress", "none")]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            open_: set[str] = set()
            while process.poll() is None and sent(log) < 12:
                open_ |= listening(process.pid)
            out_text, errors = process.communicate(timeout=240)
        finally:
            if process.poll() is None:
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.send_signal(signal.SIGKILL)
                process.kill()
        assert process.returncode == 0, (out_text, errors)
    assert sealed(out).is_dir()
    lines = (tmp_path / "trace").read_text(errors="replace").splitlines()
    assert sum(url.rpartition(":")[2] in line and "connect(" in line for line in lines) >= 4, "the roles' own connections were traced"
    assert [line for line in lines if beyond(line)] == []
    assert open_, "Ray's own ports were seen"
    assert {address for address in open_ if not loopback(address)} == set()


def listening(pid: int) -> set[str]:
    """The addresses on which the processes below ``pid`` listen, over TCP, or wait for datagrams."""
    found = set()
    for process in psutil.Process(pid).children(recursive=True):
        try:
            connections = process.net_connections("inet")
        except psutil.NoSuchProcess:
            continue
        found |= {each.laddr.ip for each in connections if each.status in (psutil.CONN_LISTEN, psutil.CONN_NONE) and each.laddr}
    return found
