"""Every kind of signed document that isn't a run: a closed list, so that nothing else is ever signed as one."""

from typing import Final

from deep20ray_artifacts.catalog import Catalog
from deep20ray_artifacts.contract import Contract
from deep20ray_artifacts.documents import Predicate
from deep20ray_artifacts.errors import DocumentRefused
from deep20ray_artifacts.redaction import Redaction
from deep20ray_artifacts.strict_json import NotStrictJson, loads

KINDS: Final[tuple[type[Predicate], ...]] = (Contract, Redaction, Catalog)


def parse_any(data: bytes) -> Predicate:
    """A document of whatever kind it says it is.

    Raises:
        DocumentRefused: of no known kind, or not as its kind wants it.
    """
    try:
        value = loads(data)
    except NotStrictJson as error:
        raise DocumentRefused(f"document: {error}; make it again") from None
    said = value.get("predicateType") if isinstance(value, dict) else None
    for kind in KINDS:
        if kind.predicate_type == said:
            return kind.parse(data)
    raise DocumentRefused(f"no document that can be signed; those are: {', '.join(kind.noun for kind in KINDS)}")
