"""Structure-aware fuzzing of all that a verifier reads. ``python -m tests.artifacts.fuzz --inputs 100000 --seed 1``.

Each input is a valid attestation, trust file, catalog or Arrow file with something of its structure changed: a field, a length, a
flatbuffer's offset, a signature, the JSON around it. Only a refusal of ours may come of it, or, for an Arrow file, a table of exactly
the published form whose every value can be read; nothing that wasn't signed is ever accepted. An address-space limit bounds memory: a
reader that believes a forged length fails here.
"""

import argparse
import hashlib
import json
import random
import resource
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from deep20ray.errors import Deep20RayError
from deep20ray_artifacts import dsse
from deep20ray_artifacts.catalog import Catalog, next_catalog
from deep20ray_artifacts.documents import verify_bytes
from deep20ray_artifacts.errors import TableRefused
from deep20ray_artifacts.keys import TrustedKey, trusted_key
from deep20ray_artifacts.limits import Limits
from deep20ray_artifacts.reading import read_table
from deep20ray_artifacts.schemas import TABLES
from deep20ray_artifacts.signing import SigningKey, sign_payload
from deep20ray_artifacts.statement import parse_statement
from deep20ray_artifacts.tables import build_table, table_bytes
from deep20ray_artifacts.trust import USES, TrustFile, empty
from tests.artifacts.builder import draft

SIGNER = SigningKey(Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"deep20ray fuzz key, never trust").digest()), throwaway=False)
KEY: TrustedKey = trusted_key(SIGNER.private.public_key())
MEMORY = 1 << 30
"""Bytes of address space beyond what the process has when it begins."""
_ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**53,
    2**64,
    1.5,
    "",
    "\0",
    "\ud800",
    "x" * 5000,
    [],
    {},
    [[]],
    "0" * 64,
    "2026-02-30T00:00:00.000Z",
)
Draw = random.Random


class Wrong(AssertionError):
    """What must not happen: an acceptance, or an error that isn't a refusal."""


def changed_json(value: Any, draw: Draw) -> Any:
    """A copy with one node of its tree changed, dropped, doubled or renamed."""
    copy = json.loads(json.dumps(value))
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(copy)
    node, key = draw.choice(places)
    match draw.randrange(5):
        case 0:
            del node[key]
        case 1:
            node[key] = draw.choice(_ODD)
        case 2 if isinstance(node, list):
            node.append(node[key])
        case 2:
            node[str(key) + draw.choice(("x", " ", "\u200b", ""))] = node[key]
        case 3 if isinstance(node[key], str) and node[key]:
            at = draw.randrange(len(node[key]))
            node[key] = node[key][:at] + draw.choice("0aZ=/\n\u0301") + node[key][at + 1 :]
        case 3 if isinstance(node[key], int):
            node[key] += draw.choice((-1, 1))
        case _:
            other, there = draw.choice(places)
            node[key] = json.loads(json.dumps(other[there]))
    return copy


def changed_text(data: bytes, draw: Draw) -> bytes:
    """JSON's bytes with a cut, a doubled key, deep nesting or single bytes changed."""
    match draw.randrange(5):
        case 0:
            return data[: draw.randrange(len(data))]
        case 1:
            return data.replace(b'{"', b'{"x":1,"x":2,"', 1) if draw.random() < 0.5 else b'{"a":' * 50 + data + b"}" * 50
        case 2:
            return draw.choice((b"\xef\xbb\xbf", b" ", b"[", b"\xff", b"NaN")) + data
        case 3:
            at = draw.randrange(len(data))
            return data[:at] + data[draw.randrange(len(data)) :]
        case _:
            return changed_bytes(data, draw)


def changed_bytes(data: bytes, draw: Draw) -> bytes:
    """A few bytes or aligned words changed: lengths, offsets, counts."""
    out = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        if draw.random() < 0.5:
            out[draw.randrange(len(out))] = draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))
        else:
            form = draw.choice(("<i", "<q", "<H"))
            at = draw.randrange(0, len(out) - 8) & ~3
            (old,) = struct.unpack_from(form, out, at)
            bits = 8 * struct.calcsize(form) - (form != "<H")
            new = draw.choice((0, -1, old + 1, old - 1, old * 2, old + 8, 2**31 - 1, 2**40, 2**62, len(data)))
            struct.pack_into(form, out, at, new % 2**bits)
    return bytes(out)


def _swapped(data: bytes, draw: Draw) -> bytes:
    """Two equal stretches of a file exchanged, or one laid over another: messages and buffers in each other's place."""
    size = 8 * draw.randrange(1, max(2, len(data) // 32))
    one, two = (8 * draw.randrange(max(1, (len(data) - size) // 8)) for _ in range(2))
    out = bytearray(data)
    out[one : one + size], out[two : two + size] = data[two : two + size], data[one : one + size]
    return bytes(out[: len(data)])


class Targets:
    """Valid inputs, made once, and what is done with each kind's spoilt ones. Each returns whether the input was refused."""

    def __init__(self) -> None:
        run = draft(scores={"T-0001": [2], "T-0008": [3]})
        self.tables = {name: (table_bytes(name, build_table(name, rows)), len(rows)) for name, rows in run.rows.items()}
        self.statement = _statement()
        self.attestation = sign_payload(self.statement, SIGNER)
        terms = ("2026-01-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z", ["1.1"], USES)
        trust = empty().added(KEY, "k", *terms)
        self.trust = trust.revoking(KEY.keyid, terms[0], "x", ["0" * 64]).data()
        entry = {"run_id": run.facts["run_id"], "statement_sha256": "0" * 64, "status": "listed", "redaction_sha256": None}
        made = next_catalog(None, None, "ours", terms[0]).model_dump() | {"entries": [entry | {"reason": None, "since": terms[0]}]}
        self.catalog = Catalog.of(made).statement()

    def envelope(self, draw: Draw) -> bool:
        """An attestation that is changed after it was signed: never accepted, unless it says the very same."""
        spoilt = changed_text(self.attestation, draw) if draw.random() < 0.4 else _dumped(changed_json(json.loads(self.attestation), draw))
        return _refused(lambda: _accept(spoilt, self.statement))

    def stated(self, draw: Draw) -> bool:
        """A statement that a trusted key signed, of another form."""
        spoilt = changed_text(self.statement, draw) if draw.random() < 0.4 else _dumped(changed_json(json.loads(self.statement), draw))
        envelope = dsse.parse(sign_payload(spoilt, SIGNER))
        return _refused(lambda: parse_statement(envelope.payload).model_dump_json())

    def trusted(self, draw: Draw) -> bool:
        """A trust file."""
        spoilt = changed_text(self.trust, draw) if draw.random() < 0.4 else _dumped(changed_json(json.loads(self.trust), draw))
        return _refused(lambda: TrustFile.parse(spoilt).trusted(None))

    def listed(self, draw: Draw) -> bool:
        """A catalog: changed and signed anew, or changed after it was signed, which is never accepted."""
        if draw.random() < 0.5:
            spoilt = _dumped(changed_json(json.loads(self.catalog), draw))
            return _refused(lambda: verify_bytes(Catalog, sign_payload(spoilt, SIGNER), [KEY]))
        spoilt = _dumped(changed_json(json.loads(sign_payload(self.catalog, SIGNER)), draw))

        def accept() -> None:
            if verify_bytes(Catalog, spoilt, [KEY]).predicate.statement() != self.catalog:
                raise Wrong("a catalog was accepted that wasn't signed")

        return _refused(accept)

    def arrow(self, draw: Draw) -> bool:
        """An Arrow file whose digest holds: a table of the right form, or a refusal."""
        name = draw.choice(tuple(self.tables))
        data, rows = self.tables[name]
        match draw.randrange(8):
            case 0:
                spoilt = data[: draw.randrange(len(data))] + data[-draw.randrange(1, 64) :]
            case 1:
                spoilt = _swapped(data, draw)
            case 2:  # the footer, where the offsets stand
                size = struct.unpack("<i", data[-10:-6])[0]
                spoilt = data[: -10 - size] + changed_bytes(data[-10 - size :], draw)
            case _:
                spoilt = changed_bytes(data, draw)

        def read() -> None:
            table = read_table(name, spoilt, rows, Limits())
            if not table.schema.equals(TABLES[name], check_metadata=True) or table.num_rows != rows:
                raise Wrong("a table of another form was accepted")
            table.to_pylist()

        return _refused(read, TableRefused)


def _accept(data: bytes, statement: bytes) -> None:
    envelope = dsse.parse(data)
    if dsse.signers(envelope, [KEY]):
        if envelope.payload != statement:
            raise Wrong("an envelope was accepted that wasn't signed")
        return
    raise TableRefused("not signed by a trusted key")


def _refused(action: Callable[[], object], expected: type[Deep20RayError] = Deep20RayError) -> bool:
    try:
        action()
    except expected as error:
        if "\n" in str(error) or not str(error):
            raise Wrong(f"a refusal of more than one line: {error!r}") from error
        return True
    return False


def _statement() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return (draft(scores={"T-0001": [2], "T-0008": [3]}).seal(Path(folder)) / "statement.json").read_bytes()


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def run(inputs: int, seed: int, wall: bool = True) -> Counter[str]:
    """Goes through so many inputs; counts by kind and outcome.

    Raises:
        Wrong, or whatever a reader raised that isn't a refusal; the message names the input, to be made again.
    """
    targets = Targets()
    kinds = {"attestation": targets.envelope, "statement": targets.stated, "trust": targets.trusted, "catalog": targets.listed}
    if wall:
        _limit_memory()
    counts: Counter[str] = Counter()
    for number in range(inputs):
        draw = Draw(f"{seed}:{number}")
        kind = "arrow" if number % 2 else draw.choice(tuple(kinds))
        try:
            refused = (targets.arrow if kind == "arrow" else kinds[kind])(draw)
        except Exception as error:  # the fuzzer's own boundary: it says which input to make again
            raise Wrong(f"input {seed}:{number} ({kind}): {type(error).__name__}: {error}") from error
        counts[f"{kind} {'refused' if refused else 'unharmed'}"] += 1
    return counts


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.monotonic()
    counts = run(asked.inputs, asked.seed)
    for name, count in sorted(counts.items()):
        print(f"fuzz: {count:8} {name}")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"fuzz: {asked.inputs} inputs, seed {asked.seed}, {time.monotonic() - began:.0f} s, {most} MiB at most: no crash, no acceptance")


if __name__ == "__main__":
    main()
