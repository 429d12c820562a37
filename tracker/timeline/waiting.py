"""How much of a collective's time is waiting for other ranks: needs all ranks of a run at hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from tracker.profile import I64, MISSING, Capture, Rows

_KEY = ("kind", "group_role", "group_size", "data_type", "size_class_bytes")
CallKey = tuple[Any, ...]


def split_wait(captures: Sequence[Capture]) -> list[Capture]:
    """The captures of all ranks of one run, with transit and wait of their collectives where they can be told.

    The n-th calls of one kind (kind, role, size, type, size class) are one call seen by all ranks: the shortest elapse
    is its transmission, what a rank takes longer is waiting. Needs a capture of each rank of the group, with equally
    many calls; else transit and wait stay missing. So do those of groups that are smaller than the run: which of its
    ranks form one is not known here. A rank whose own profiler says how long it waited or transmitted keeps that.
    `exposed_wait_ns` of a row becomes its wait where no compute hides any of the row; which part of a call that is
    hidden in part was waiting cannot be told.
    """
    rows = [capture.rows for capture in captures]
    ranks = {capture.rank for capture in captures}
    if len(captures) < 2 or None in ranks or len(ranks) < len(captures):
        return list(captures)
    known = [row for row in rows if row is not None and len(row.collective_calls)]
    if len(known) < len(captures):
        return list(captures)
    calls = [_calls_by_key(row) for row in known]
    transit = [np.full(len(row.tables["communication"]["calls"]), MISSING, dtype=np.int64) for row in known]
    wait = [column.copy() for column in transit]
    for key in calls[0]:
        own = [by_key.get(key) for by_key in calls]
        paired = [rank_calls for rank_calls in own if rank_calls is not None]
        size = _ranks_expected(key, captures)
        if len(paired) < len(captures) or size != len(captures) or len({len(c) for c in paired}) > 1:
            continue
        elapse = np.stack([_column(row, "elapse_ns")[index] for row, index in zip(known, paired, strict=True)])
        shortest = elapse.min(axis=0)
        for rank, (row, index) in enumerate(zip(known, paired, strict=True)):
            at = _column(row, "communication")[index]
            _add(transit[rank], at, shortest)
            _add(wait[rank], at, elapse[rank] - shortest)
    return [
        replace(capture, rows=_with_wait(row, own_transit, own_wait))
        for capture, row, own_transit, own_wait in zip(captures, known, transit, wait, strict=True)
    ]


def _calls_by_key(rows: Rows) -> dict[CallKey, I64]:
    """Per kind of call the places of its calls in `collective_calls`, in order of time."""
    table = rows.tables["communication"]
    keys = list(zip(*(_as_list(table[column]) for column in _KEY), strict=True))
    places: Mapping[CallKey, list[int]] = defaultdict(list)
    for place, row in enumerate(_column(rows, "communication").tolist()):
        places[keys[row]].append(place)
    return {key: np.array(own, dtype=np.int64) for key, own in places.items()}


def _ranks_expected(key: CallKey, captures: Sequence[Capture]) -> int | None:
    size = int(key[_KEY.index("group_size")])
    return size if size != MISSING else captures[0].world_size


def _column(rows: Rows, name: str) -> I64:
    return np.asarray(rows.collective_calls[name], dtype=np.int64)


def _as_list(column: Any) -> list[Any]:
    return column if isinstance(column, list) else list(column.tolist())


def _add(column: I64, at: I64, values: I64) -> None:
    """Adds to what is there; a first value replaces MISSING."""
    column[at] = np.where(column[at] == MISSING, 0, column[at])
    np.add.at(column, at, values)


def _with_wait(rows: Rows, transit: I64, wait: I64) -> Rows:
    table = dict(rows.tables["communication"])
    both = {name: np.asarray(table[name], dtype=np.int64) for name in ("transit_ns", "wait_ns")}
    # the two come from one source: together they are no longer than the call
    unsaid = (both["transit_ns"] == MISSING) & (both["wait_ns"] == MISSING)
    for name, column in (("transit_ns", transit), ("wait_ns", wait)):
        table[name] = np.where(unsaid, column, both[name])
    said, exposed, total, wait = (
        np.asarray(table[name], dtype=np.int64) for name in ("exposed_wait_ns", "exposed_ns", "total_ns", "wait_ns")
    )
    table["exposed_wait_ns"] = np.where((said == MISSING) & (exposed == total), wait, said)
    return replace(rows, tables={**rows.tables, "communication": table})
