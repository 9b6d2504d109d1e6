"""Debian's searx, a metasearch server by others, as a process of a test's: its own offline engine over WordNet's nouns."""

import json
import os
import secrets
import shutil
import socket
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAM = "searx-run"
NOUNS = Path("/usr/share/wordnet/data.noun")
STARTS_WITHIN = 600
"""Tries, a tenth of a second apart."""
# Any of the words, each as a phrase, so that no character of a question is taken for the index's own syntax.
ANY_WORD = """'"' || replace(replace(trim(:query), '"', ''), ' ', '" OR "') || '"'"""


def index(path: Path) -> Path:
    """A full-text index of WordNet's nouns: title, content (the gloss), url."""
    with sqlite3.connect(path) as database:
        database.execute("CREATE VIRTUAL TABLE wn USING fts5(title, content, url UNINDEXED)")
        with NOUNS.open(encoding="utf-8") as file:
            entries = (line.split(" | ", 1) for line in file if not line.startswith(" "))
            rows = ((head.split()[4].replace("_", " "), gloss.strip(), f"https://wordnet.example/{head[:8]}") for head, gloss in entries)
            database.executemany("INSERT INTO wn VALUES (?, ?, ?)", rows)
    database.close()
    return path


@contextmanager
def searx(folder: Path, *, words: str = ANY_WORD) -> Iterator[str]:
    """Starts it on a free loopback port and gives its address. Skips where it, or WordNet, isn't installed.

    Args:
        folder: for its settings and its index.
        words: the index's query, an SQL expression of ``:query``.
    """
    program = shutil.which(PROGRAM)
    if program is None or not NOUNS.exists():
        pytest.skip("searx is not installed; install Debian's packages searx and wordnet-base")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = folder / "wordnet.sqlite"
    written = folder / "settings.yml"
    written.write_text(json.dumps(_settings(port, path if path.exists() else index(path), words)))
    environment = {"PATH": os.defpath, "SEARX_SETTINGS_PATH": str(written), "HOME": str(folder)}
    process = subprocess.Popen([program], env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(STARTS_WITHIN):
            assert process.poll() is None, "searx ended before it listened"
            try:
                urllib.request.urlopen(url + "/healthz", timeout=30).close()
                break
            except urllib.error.URLError:
                time.sleep(0.1)
        else:
            raise AssertionError("searx doesn't listen")
        yield url
    finally:
        process.kill()
        process.wait()


def _settings(port: int, database: Path, words: str) -> dict[str, Any]:
    """Its settings; JSON is YAML. Debian's build has no defaults, so all that it reads stands here."""
    query = f"SELECT title, content, url FROM wn WHERE wn MATCH {words} ORDER BY rank"
    engine = {"name": "wordnet", "engine": "sqlite", "shortcut": "wn", "categories": "general", "database": str(database)}
    names = ("git_url", "git_branch", "issue_url", "docs_url", "public_instances", "wiki_url", "twitter_url")
    return {
        "general": {"debug": False, "instance_name": "test", "contact_url": False, "enable_stats": False},
        "brand": dict.fromkeys(names, "http://127.0.0.1:9/"),
        "search": {"safe_search": 0, "autocomplete": "", "default_lang": "en", "formats": ["html", "json"]},
        "server": {
            "port": port,
            "bind_address": "127.0.0.1",
            "secret_key": secrets.token_hex(16),
            "base_url": False,
            "image_proxy": False,
            "limiter": False,
            "method": "GET",
        },
        "ui": {
            "static_path": "/usr/share/python3-searx/static",
            "templates_path": "/usr/share/python3-searx/templates",
            "default_theme": "oscar",
            "theme_args": {"oscar_style": "logicodev"},
        },
        "outgoing": {"request_timeout": 10.0},
        "engines": [engine | {"query_str": query, "result_template": "default.html"}],
        "locales": {"en": "English"},
        "doi_resolvers": {"none": "http://127.0.0.1:9/"},
        "default_doi_resolver": "none",
    }
