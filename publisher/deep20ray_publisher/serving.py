"""Shows a built site on this machine, for looking at it: loopback alone, the site's headers, its own page for what isn't there."""

from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from deep20ray_publisher.errors import InputMissing, OutRefused
from deep20ray_publisher.making import HEADERS
from deep20ray_publisher.tree import MANIFEST


class _Handler(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".html": "text/html; charset=utf-8",
        ".csv": "text/csv; charset=utf-8",
        ".jsonld": "application/ld+json",
        ".cff": "text/plain; charset=utf-8",
        ".bib": "text/plain; charset=utf-8",
        ".xml": "application/atom+xml",
    }

    def end_headers(self) -> None:
        for name, value in HEADERS:
            self.send_header(name, value)
        super().end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """The site's own page for what isn't there."""
        page = Path(self.directory) / "404.html"
        if code != 404 or not page.is_file() or self.path.count("/") > 1:
            super().send_error(code, message, explain)
            return
        body = page.read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: who reads what is nobody's business."""


def serve_site(folder: Path, port: int, ready: Callable[[str], None]) -> None:
    """Serves until it is interrupted. Args: ready is told the address.

    Raises:
        InputMissing: a folder without a site.
        OutRefused: a port that can't be had.
    """
    if not (folder / MANIFEST).is_file():
        raise InputMissing(f"{folder} holds no {MANIFEST}; give the folder of a built site")
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(_Handler, directory=str(folder)))
    except OSError as error:
        raise OutRefused(f"can't listen on port {port}: {error.strerror}; choose another --port, or 0 for a free one") from None
    with server:
        ready(f"http://127.0.0.1:{server.server_port}/")
        server.serve_forever()
