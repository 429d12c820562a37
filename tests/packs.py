"""What tests of packs compare: all rows of a database, and captures with their arrays."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import msgspec
import numpy as np
from sqlalchemy import select

from tracker.readers.pack.marks import MAGIC
from tracker.store.tables import metadata

ARRIVAL = "last_rank_at_ns"
"""The column of a run that says when its last rank came in: another moment in each database."""


def everything(store):
    """All rows of all tables, whatever their order, but for when ranks came in."""
    found = {}
    with store.connect() as connection:
        for name in sorted(metadata.tables):
            columns = [column for column in metadata.tables[name].columns if column.name != ARRIVAL]
            found[name] = sorted(map(repr, connection.execute(select(*columns)).all()))
    return found


def columns_of(rows):
    """(table, column) -> type and values of all columns of `Rows`, NaN alike."""
    tables = {**rows.tables, "collective_calls": rows.collective_calls, "groups": rows.groups}
    found = {}
    for name, table in tables.items():
        for column, values in table.items():
            is_text = isinstance(values, list)
            found[name, column] = values if is_text else (values.dtype, np.asarray(values).tobytes())
    return found


def records(pack: Path) -> list:
    """The records of a pack, as MessagePack decodes them."""
    content = gzip.decompress(pack.read_bytes()).removeprefix(MAGIC)
    found = []
    while content:
        (size,) = struct.unpack(">I", content[:4])
        found.append(msgspec.msgpack.decode(content[4 : 4 + size]))
        content = content[4 + size :]
    return found


def write_records(pack: Path, found: list) -> Path:
    """A pack with these records, good or bad."""
    encoded = [msgspec.msgpack.encode(record) for record in found]
    content = MAGIC + b"".join(struct.pack(">I", len(record)) + record for record in encoded)
    pack.write_bytes(gzip.compress(content))
    return pack


def column(values, dtype="<i8") -> bytes:
    """Numbers as a column of a pack, written out here a second time."""
    raw = np.array(values, dtype=dtype).tobytes()
    size = np.dtype(dtype).itemsize
    return b"".join(raw[place::size] for place in range(size))
