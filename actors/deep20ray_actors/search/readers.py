"""The processes that turn pages into text (see ``text.py``), from their parent's side: a few, started when needed, killed at will.

A reader that takes too long, or ends by itself, loses its page and nothing else. One is replaced after a number of pages, so that
nothing of them stays.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

_PAGES_EACH = 100
_ENDED_WITHIN = 5.0
"""Seconds."""
_LABEL_MAX = 40


class ReaderEnded(Exception):
    """The process ended before it answered: too much time or memory, or a page that breaks the parser."""


class Readers:
    """At most ``count`` processes. Use it in one event loop."""

    def __init__(self, count: int) -> None:
        self._free = asyncio.Semaphore(count)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="reader")
        self._idle: list[Reader] = []
        self._closed = False

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncIterator["Reader"]:
        """A reader for this one page alone, waiting until one is free. If the block is left by an exception, the reader is killed."""
        async with self._free:
            reader = self._idle.pop() if self._idle else Reader(self._threads)
            whole = False
            try:
                yield reader
                whole = reader.pages < _PAGES_EACH and not self._closed
            finally:
                if whole:
                    self._idle.append(reader)
                else:
                    reader.kill()

    def close(self) -> None:
        """Ends every idle process; a busy one is ended when its page's task is."""
        self._closed = True
        while self._idle:
            self._idle.pop().kill()
        self._threads.shutdown(wait=False)


class Reader:
    """One process, started with its first page."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self.pages = 0
        self._threads = threads
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._busy = False
        self._killed = threading.Event()

    async def read(self, body: bytes, kind: str, charset: str | None, max_text: int) -> str:
        """The page's text. For the arguments see ``text.page_text``.

        Raises:
            ReaderEnded: the process ended.
        """
        label = charset if charset is not None and len(charset) <= _LABEL_MAX else None
        asked = {"kind": kind, "charset": label, "size": len(body), "max_text": max_text}
        self.pages += 1
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._exchange, json.dumps(asked).encode() + b"\n" + body, max_text)

    def kill(self) -> None:
        """Ends the process at once, whatever it does; the thread that waits for it then goes on."""
        with self._lock:
            self._killed.set()
            if self._process is not None:
                self._process.kill()
                if not self._busy:
                    _bury(self._process)

    def _exchange(self, frame: bytes, max_text: int) -> str:
        """In a thread: blocks until the process answers or ends."""
        with self._lock:
            if self._killed.is_set():
                raise ReaderEnded
            self._busy = True
            process = self._process = self._process or _start()
        try:
            return _answer(process, frame, max_text)
        finally:
            with self._lock:
                self._busy = False
                if self._killed.is_set():
                    _bury(process)


def _answer(process: subprocess.Popen[bytes], frame: bytes, max_text: int) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(frame)
        process.stdin.flush()
        head = process.stdout.read(4)
        size = int.from_bytes(head, "big")
        # What it says of itself is no more to be trusted than the page it read.
        text = process.stdout.read(size) if size <= 4 * max_text else b""
    except OSError:
        raise ReaderEnded from None
    if len(head) != 4 or len(text) != size:
        raise ReaderEnded
    return text.decode("utf-8", "replace")


def _bury(process: subprocess.Popen[bytes]) -> None:
    """Closes a killed process's pipes and takes its status."""
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    process.wait(_ENDED_WITHIN)


def _start() -> subprocess.Popen[bytes]:
    """It gets nothing of this process but the places that modules come from: no environment, no files, not its terminal's signals."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "deep20ray_actors.search.text"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        start_new_session=True,
    )
