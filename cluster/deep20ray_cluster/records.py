"""Replies as journal bodies and back. The journal holds JSON; everything else holds types."""

from typing import Any, get_args

from pydantic import TypeAdapter

from deep20ray.canonical import Digest
from deep20ray_actors.outcomes import Audit, CallResult, Outcome


def reply_body(message: Digest, result: CallResult) -> dict[str, Any]:
    """The journal body of one reply: what was sent, what came back, and its audit, private parts included."""
    return {
        "message_sha256": message,
        "type": type(result.outcome).__name__,
        "outcome": _ADAPTERS[type(result.outcome).__name__].dump_python(result.outcome, mode="json"),
        "audit": _AUDIT.dump_python(result.audit, mode="json"),
    }


def read_outcome(body: dict[str, Any]) -> Outcome:
    """The outcome in a reply's body."""
    outcome: Outcome = _ADAPTERS[body["type"]].validate_python(body["outcome"])
    return outcome


def read_audit(body: dict[str, Any]) -> Audit:
    """The audit in a reply's body."""
    audit: Audit = _AUDIT.validate_python(body["audit"])
    return audit


def _members(union: Any) -> dict[str, type[Any]]:
    return {name: type_ for member in get_args(union) for name, type_ in (_members(member) or {member.__name__: member}).items()}


_ADAPTERS = {name: TypeAdapter(type_) for name, type_ in _members(Outcome).items()}
_AUDIT = TypeAdapter(Audit)
