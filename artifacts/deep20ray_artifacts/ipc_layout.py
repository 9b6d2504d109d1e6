"""What an Arrow IPC file would make its reader do, found out before Arrow reads it: no compressed body, no dictionary, nothing outside.

A body of a few kilobytes may decompress to gigabytes, and Arrow's reader decides that on its own. This module reads just the
flatbuffers that say so (the file's footer, and the header of each record batch), every access bounds-checked.
Layout: the Arrow columnar format, sections "IPC File Format" and "Encapsulated message format".
"""

import struct
from typing import Final

_MAGIC: Final = b"ARROW1"
_RECORD_BATCH: Final = 3
_BLOCK_BYTES: Final = 24


class UnsafeLayout(ValueError):
    """A file outside the accepted form; the message says in what."""


def check_layout(data: bytes, max_batches: int) -> None:
    """Accepts an uncompressed IPC file of record batches alone.

    Raises:
        UnsafeLayout: compression, dictionaries, metadata of the file's own, blocks outside the file, too many of them, or damage.
    """
    try:
        _check(data, max_batches)
    except struct.error:
        raise UnsafeLayout("it is damaged") from None


def _check(data: bytes, max_batches: int) -> None:
    if len(data) < 24 or not data.startswith(_MAGIC + b"\0\0") or not data.endswith(_MAGIC):
        raise UnsafeLayout("it is no Arrow IPC file")
    size = _int("<i", data, len(data) - 10)
    start = len(data) - 10 - size
    if size <= 0 or start < 8:
        raise UnsafeLayout("its footer lies outside the file")
    footer = _Table.root(data[start : start + size])
    if footer.vector(2)[1]:
        raise UnsafeLayout("it holds dictionaries")
    if footer.field(4) is not None:
        raise UnsafeLayout("it carries metadata of its own")
    position, count = footer.vector(3)
    if count > max_batches:
        raise UnsafeLayout(f"it holds {count} record batches, more than {max_batches}")
    for index in range(count):
        at = position + index * _BLOCK_BYTES
        offset, header, body = _int("<q", footer.data, at), _int("<i", footer.data, at + 8), _int("<q", footer.data, at + 16)
        if offset < 8 or header < 8 or body < 0 or offset + header + body > start:
            raise UnsafeLayout("a record batch lies outside the file")
        _check_batch(data[offset : offset + header], body)


def _check_batch(header: bytes, body: int) -> None:
    if header[:4] != b"\xff\xff\xff\xff" or not 0 < _int("<i", header, 4) <= len(header) - 8:
        raise UnsafeLayout("a message has no length")
    message = _Table.root(header[8:])
    kind = message.field(1)
    if kind is None or _int("<B", message.data, kind) != _RECORD_BATCH:
        raise UnsafeLayout("a message is no record batch")
    length = message.field(3)
    if (0 if length is None else _int("<q", message.data, length)) != body:
        raise UnsafeLayout("a message's body has two lengths")
    if message.table(2).field(3) is not None:
        raise UnsafeLayout("it is compressed")


class _Table:
    """A flatbuffers table: fields by slot, absent ones None."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self._position = position
        self._vtable = position - _int("<i", data, position)
        self._vtable_bytes = _int("<H", data, self._vtable)

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        return cls(data, _int("<I", data, 0))

    def field(self, slot: int) -> int | None:
        """Position of a field's value."""
        entry = 4 + 2 * slot
        if entry + 2 > self._vtable_bytes:
            return None
        offset = _int("<H", self.data, self._vtable + entry)
        return self._position + offset if offset else None

    def table(self, slot: int) -> "_Table":
        position = self.field(slot)
        if position is None:
            raise UnsafeLayout("a message has no header")
        return _Table(self.data, position + _int("<I", self.data, position))

    def vector(self, slot: int) -> tuple[int, int]:
        """Position of a vector's first element, and its length; (0, 0) where it is absent."""
        position = self.field(slot)
        if position is None:
            return 0, 0
        at = position + _int("<I", self.data, position)
        return at + 4, _int("<I", self.data, at)


def _int(form: str, data: bytes, position: int) -> int:
    """One integer; a position outside the data is damage, a negative one included (Python would count from the end)."""
    if position < 0:
        raise UnsafeLayout("it is damaged")
    value: int = struct.unpack_from(form, data, position)[0]
    return value
