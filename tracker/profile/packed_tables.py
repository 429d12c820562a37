"""The tables of a rank while those of others are read: of a thousand ranks a twentieth of their room."""

from __future__ import annotations

import pickle  # of what this process has read, and only for itself
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

if TYPE_CHECKING:
    from tracker.profile.captures import Capture
    from tracker.profile.rows import Table

_LEVEL: Final = 1
"""Of zlib: columns of a trace are mostly zeros and repeated names, which the fastest level takes away, too."""


class PackedTables(Mapping[str, "Table"]):
    """The tables of `Rows`, each of which is unpacked whenever it is asked for, and not kept.

    >>> tables = PackedTables({"op_key": {"name": ["mm", "add"]}})
    >>> list(tables), tables["op_key"]["name"]
    (['op_key'], ['mm', 'add'])
    """

    def __init__(self, tables: Mapping[str, Table]) -> None:
        self._packed: dict[str, bytes] = {}
        for name, table in tables.items():
            self._packed[name] = zlib.compress(pickle.dumps(table, pickle.HIGHEST_PROTOCOL), _LEVEL)

    def __getitem__(self, name: str) -> Table:
        table: Table = pickle.loads(zlib.decompress(self._packed[name]))
        return table

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a table, without a look into it."""
        return name in self._packed

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def pack_tables(capture: Capture) -> Capture:
    """Return a capture whose tables are packed; itself where it has no rows."""
    if capture.rows is None:
        return capture
    return replace(capture, rows=replace(capture.rows, tables=PackedTables(capture.rows.tables)))
