"""Which steps of a trace that ends in the middle of its events are wholly in the file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tracker.readers._growing import Array

Table = Mapping[str, Array]


def is_whole(markers: Table, host: Table, behind: tuple[Table, ...], *, uses_device: bool) -> NDArray[np.bool_]:
    """Per marker whether all that happened in it was written before the file ends.

    PyTorch writes kind by kind: ops (`host`), then `behind` (allocations, Python frames), then launches and kernels.
    Ops stand in order of time, or those of one thread behind those of another; so of the kind that was written last
    everything is there that began before its last event, of the kinds before it everything, and of those behind it
    nothing. Launches and kernels stand in no order: with a device, some of any step may be missing, and none is whole.
    The tables are in the order of the file.
    """
    ends: NDArray[np.int64] = np.asarray(markers["end_ns"])
    if uses_device:
        return np.zeros(len(ends), dtype=bool)
    # annotations are collected behind the ops that stood around them in the file
    starts = [host["start_ns"][host["is_annotation"] == 0], *(_starts(table) for table in behind)]
    last = next((column[-1] for column in reversed(starts) if len(column)), None)
    return np.zeros(len(ends), dtype=bool) if last is None else ends <= last


def _starts(table: Table) -> Array:
    return table["time_ns"] if "time_ns" in table else table["start_ns"]
