"""operator_memory.csv and memory_record.csv -> allocations and the course of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.profile import I8, I32, I64, MISSING, MemoryPoints, Strings
from tracker.readers._ascend.csv_tables import CsvTable

FRAMEWORK: Final = "PTA"
MINDSPORE: Final = "MindSpore"
GRAPH_ENGINE: Final = "GE"
MINDSPORE_MB: Final = 1024 * 1000
"""MindSpore divides its KiB by 1000."""


class Blocks(Struct, frozen=True):
    """Allocations and releases like `Allocations`, without the thread, but with the name of the op that allocated.

    `block`: one number per row of the table, the same for a block's allocation and release.
    """

    time_ns: I64
    op: tuple[str, ...]
    bytes: I64
    block: I64
    on_device: I8
    component: I32
    total_allocated_bytes: I64
    total_reserved_bytes: I64

    def __len__(self) -> int:
        return len(self.time_ns)


def blocks_of(table: CsvTable, strings: Strings, framework: str = FRAMEWORK) -> Blocks:
    """The blocks of operator_memory.csv: first all allocations, then the releases that the capture saw.

    A row without allocation time was allocated before the capture; one with a negative size is a release by itself.
    Rows called `cann::...` belong to the graph engine, and those without a stream where PyTorch says the stream of its
    own; all others to `framework`'s allocator.
    """
    table.need("name", "size", "allocated_at")
    size, names = table.sizes("size"), table.texts("name") or []
    allocated, released = table.ns("allocated_at"), _released(table)
    made = np.flatnonzero(allocated != MISSING)
    freed = np.flatnonzero((released != MISSING) & (size >= 0))
    rows = np.concatenate((made, freed))
    words = {word: strings.code(word) for word in (framework, GRAPH_ENGINE)}
    streams = (table.texts("stream_of_memory") if framework == FRAMEWORK else None) or ["?"] * len(table)
    is_graph = [name.startswith("cann::") or not stream for name, stream in zip(names, streams, strict=True)]
    component = [words[GRAPH_ENGINE if graph else framework] for graph in is_graph]
    places = table.texts("device_type") or ["NPU"] * len(table)

    def totals(of_allocation: str, of_release: str) -> I64:
        return np.concatenate((table.sizes(of_allocation)[made], table.sizes(of_release)[freed]))

    return Blocks(
        time_ns=np.concatenate((allocated[made], released[freed])),
        op=tuple(names[row] for row in rows.tolist()),
        bytes=np.concatenate((size[made], -size[freed])),
        block=rows + 1,
        on_device=_on_device(places)[rows],
        component=np.array(component, dtype=np.int32)[rows],
        total_allocated_bytes=totals("allocation_allocated", "release_allocated"),
        total_reserved_bytes=totals("allocation_reserved", "release_reserved"),
    )


def memory_points_of(table: CsvTable, strings: Strings, *, is_mindspore: bool = False) -> MemoryPoints:
    """The samples of memory_record.csv: per component (PTA, GE, PTA+GE, APP, ...) what is allocated and reserved."""
    table.need("component", "time")
    per_mb = MINDSPORE_MB if is_mindspore else 1 << 20
    return MemoryPoints(
        time_ns=table.ns("time"),
        component=np.array(table.codes("component", strings, str), dtype=np.int32),
        allocated_bytes=table.sizes("allocated", bytes_per_mb=per_mb),
        reserved_bytes=table.sizes("reserved", bytes_per_mb=per_mb),
    )


def _released(table: CsvTable) -> I64:
    """When each block was released; CANN's own table only says how long it was held."""
    if table.has("released_at"):
        return table.ns("released_at")
    table.need("duration")
    allocated, held = table.ns("allocated_at"), table.ns("duration")
    return np.where((allocated == MISSING) | (held == MISSING), MISSING, allocated + np.maximum(held, 0))


def _on_device(places: Sequence[str]) -> I8:
    return np.array([not place.upper().startswith("CPU") for place in places], dtype=np.int8)
