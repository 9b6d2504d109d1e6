"""How much of a stranger's folder a verifier is willing to read. One value, passed in; nothing else sets a bound."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds, checked before the bytes or rows are read. Sizes in bytes."""

    attestation_bytes: int = 1 << 20
    file_bytes: int = 64 << 20
    run_bytes: int = 256 << 20
    table_rows: int = 1_000_000
    record_batches: int = 1_000
