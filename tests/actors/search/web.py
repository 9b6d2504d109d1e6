"""A small web on loopback for the tests of page fetching: a server that sends whatever bytes a test says, and names without DNS."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Handler = Callable[[asyncio.StreamWriter], Awaitable[None]]


def html(text: str = "Some words stand here.") -> bytes:
    """A page that holds the text."""
    return f"<html><head><title>T</title></head><body><main><p>{text}</p></main></body></html>".encode()


def reply(body: bytes = b"", kind: str | None = "text/html; charset=utf-8", status: int = 200, **headers: str) -> bytes:
    """An HTTP reply with a length; underscores in header names are hyphens."""
    fields = {"Content-Length": str(len(body)), "Connection": "close"} | ({"Content-Type": kind} if kind else {})
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    return head.encode("utf-8", "surrogateescape") + body


def redirect(to: str, status: int = 302) -> bytes:
    """A redirect; it sets a cookie, which must never come back."""
    return reply(status=status, Location=to, Set_Cookie="a=b; Path=/")


class Web:
    """The server and what it was asked: each request's bytes."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes | Handler] = {}
        self.requests: list[bytes] = []
        self.port = 0

    def url(self, path: str, host: str = "site.example") -> str:
        """An address on this server."""
        return f"http://{host}:{self.port}{path}"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request."""
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                request = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(request)
                page = self.pages.get(request.split(b" ")[1].decode(), reply(status=404))
                if isinstance(page, bytes):
                    writer.write(page)
                else:
                    await page(writer)
                await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def running() -> AsyncIterator[Web]:
    """A server on loopback."""
    web = Web()
    server = await asyncio.start_server(web.answer, "127.0.0.1", 0)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()


class Names:
    """A resolver that answers from lists: one answer a time, the last one for ever."""

    def __init__(self, **answers: list[Sequence[str] | Exception]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, host: str) -> Sequence[str]:
        """The next answer for a host; loopback for a host that isn't listed."""
        self.asked.append(host)
        answers = self.answers.get(host.split(".")[0])
        if answers is None:
            return ["127.0.0.1"]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def certificate(name: str, folder: Path) -> Path:
    """A file with a key and a certificate for that name, signed by itself."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "server.pem"
    path.write_bytes(pem + made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return path
