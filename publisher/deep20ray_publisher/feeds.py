"""What other programs read about a site: Atom, JSON-LD, BibTeX, CITATION.cff, robots, sitemap. Times come from the runs alone."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID
from xml.sax.saxutils import escape, quoteattr

from deep20ray.canonical import sha256
from deep20ray_publisher import paths
from deep20ray_publisher.board import EditionBoards
from deep20ray_publisher.catalog import Entry
from deep20ray_publisher.formats import day
from deep20ray_publisher.text import visible_plain

_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "arrow": "application/vnd.apache.arrow.file",
    "parquet": "application/vnd.apache.parquet",
    "cff": "application/yaml",
    "bib": "application/x-bibtex",
}


def front(editions: Sequence[EditionBoards], base_url: str | None, preview: bool) -> Iterator[tuple[str, bytes]]:
    """The files at the site's root."""
    robots = "User-agent: *\n" + ("Disallow: /\n" if preview else "Allow: /\n")
    if base_url and not preview:
        robots += f"Sitemap: {base_url}sitemap.xml\n"
    yield "robots.txt", robots.encode()
    yield "feed.xml", _atom(editions, base_url or "")


def sitemap(base_url: str, files: Sequence[str]) -> bytes:
    """Every page but the one for what isn't found."""
    found = "".join(
        f"<url><loc>{escape(base_url + path.removesuffix('index.html'))}</loc></url>\n"
        for path in files
        if path.endswith(".html") and path != "404.html"
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{found}</urlset>\n'
    ).encode()


def _atom(editions: Sequence[EditionBoards], base: str) -> bytes:
    """One entry per published run, and one per redaction of it: corrections are news as well."""
    items = sorted((item for edition in editions for entry in edition.entries for item in _items(entry, base)), reverse=True)
    newest = max((edition.as_of for edition in editions), default=datetime.fromtimestamp(0, UTC))
    body = "".join(text for _, text in items)
    this = quoteattr(f"{base}feed.xml")
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<title>deep20ray: results and corrections</title>\n<id>{_id('site', *(edition.rules.id for edition in editions))}</id>\n"
        f"<updated>{_time(max([newest, *(_at(moment) for moment, _ in items)]))}</updated>\n<author><name>deep20ray</name></author>\n"
        f'<link rel="self" href={this}/>\n{body}</feed>\n'
    ).encode()


def _items(entry: Entry, base: str) -> Iterator[tuple[str, str]]:
    run = entry.record.run
    kind = "simulated run" if run.simulated else "run"
    page = f"{base}{paths.run_root(entry)}/index.html"
    title = f"{visible_plain(run.model_name)}, edition {run.edition}"
    when = _time(run.completed_at or run.started_at)
    yield when, _item(_id("run", entry.statement_sha256), title, when, page, f"A {run.status} {kind} of {run.scored_trials} trials.")
    if entry.redaction is not None:
        fields = entry.redaction.redacted
        changed = max(field.redacted_at for field in fields)
        text = f"{len(fields)} texts were taken out. Scores and answers are unchanged."
        yield changed, _item(_id("redaction", entry.statement_sha256, changed), f"Correction: {title}", changed, page, text)


def _item(id_: str, title: str, when: str, page: str, text: str) -> str:
    return (
        f"<entry><title>{escape(title)}</title><id>{id_}</id><updated>{when}</updated>"
        f"<link href={quoteattr(page)}/><summary>{escape(text)}</summary></entry>\n"
    )


def _id(*parts: str) -> str:
    """The same for the same parts, everywhere and always."""
    return UUID(hex=sha256("\n".join(parts).encode())[:32], version=5).urn


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def citations(edition: EditionBoards) -> dict[str, bytes]:
    """How to cite an edition's results, in two forms."""
    date = day(edition.as_of)
    title = f"deep20ray results, edition {edition.rules.id}" + (" (preview)" if edition.preview else "")
    key = f"deep20ray-{edition.rules.id}-{date}"
    bib = (
        f"@misc{{{key},\n  title = {{{title}}},\n  author = {{{{The deep20ray authors}}}},\n  year = {{{date[:4]}}},\n"
        f"  note = {{As of {date}; {len(edition.entries)} signed runs}},\n}}\n"
    )
    cff = (
        "cff-version: 1.2.0\nmessage: If you use these results, please cite them.\ntype: dataset\n"
        f'title: "{title}"\nauthors:\n  - name: The deep20ray authors\nversion: "{edition.rules.id}"\ndate-released: {date}\n'
    )
    return {"citation.bib": bib.encode(), "CITATION.cff": cff.encode()}


def dataset(edition: EditionBoards, files: Mapping[str, str], base_url: str | None) -> bytes:
    """A schema.org Dataset with the digest of each file."""
    root = f"{base_url or ''}{paths.edition_root(edition.rules.id)}/" if base_url else ""
    document = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": f"deep20ray results, edition {edition.rules.id}" + (" (preview)" if edition.preview else ""),
        "description": "Signed results of language models that play Twenty Questions: every game, question by question, with evidence, "
        "usage and cost.",
        "version": edition.rules.id,
        "dateModified": day(edition.as_of),
        "creator": {"@type": "Organization", "name": "The deep20ray authors"},
        "isAccessibleForFree": True,
        "measurementTechnique": "average-then-average-v1",
        "distribution": [
            {
                "@type": "DataDownload",
                "name": path,
                "contentUrl": f"{root}{path}",
                "encodingFormat": _TYPES.get(path.rpartition(".")[2], "text/plain"),
                "sha256": digest,
            }
            for path, digest in sorted(files.items())
            if "/" not in path
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=True).encode() + b"\n"
