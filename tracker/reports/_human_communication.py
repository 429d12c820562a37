"""Tables for people of collectives: how long they took and which parts of that are known; of a run and of a diff."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from tracker.reports import _human_verdicts
from tracker.reports._human import (
    NAME,
    UNDER,
    Column,
    Row,
    Table,
    cell,
    grain_cells,
    grain_columns,
    group_words,
    make,
    number,
    pair,
    per_call,
    readable,
    side_cells,
    side_columns,
    tone,
    top,
    values,
    verdict_columns,
)
from tracker.reports.shared import has
from tracker.results import Diff, Shown
from tracker.units import MISSING_TEXT

_PARTS: Final = {"transit_ns": "transit", "wait_ns": "wait", "synchronization_ns": "sync", "idle_ns": "idle"}
_SPLIT_BY: Final = "split by"
_DROPPED: Final = {"transit_ns": 2, "wait_ns": 1, "synchronization_ns": 3, "idle_ns": 1}
"""Where there is no room: how long a collective stood still says more than how long it worked."""


def communication(shown: Shown, limit: int | None) -> Table:
    """Collectives with the most time; of the parts of it those that the source tells apart."""
    rows, more = top(shown.communication, limit)
    parts = [name for name in _PARTS if has(shown.communication, name)]
    is_split = has(shown.communication, "split_by")
    columns = [*grain_columns(rows), Column("communication", **NAME), Column("group", **UNDER), Column("calls")]
    columns += [Column("bytes", drop=4), Column("per step", drop=7), Column("total"), Column("exposed")]
    columns += [Column(_PARTS[name], drop=_DROPPED[name]) for name in parts]
    columns += [Column(_SPLIT_BY, drop=6)] * is_split
    columns += [Column(name, drop=5) for name in ("average", "minimum", "maximum")]
    cells = []
    for row in rows:
        times = [row[name] for name in ("total_ns", "exposed_ns", *parts)]
        line = [readable(row["kind"]), group_words(row), number(row["calls"]), cell(row["bytes"], "bytes")]
        line += [cell(row.get("per_step_ns"), "ns"), *(cell(time, "ns", *times) for time in times)]
        line += [row["split_by"] or MISSING_TEXT] * is_split
        cells.append(("", [*grain_cells(row), *line, *per_call(row)]))
    return make("Communication", columns, cells, more=more, note=_note(parts, [row["split_by"] for row in rows]))


def _note(parts: Sequence[str], split_by: Collection[str | None]) -> str:
    """What the parts are, as far as they are there."""
    said = []
    if "ranks" in split_by:
        said.append(f"{_SPLIT_BY} ranks: transit is the shortest call of all ranks of the group, wait the rest of it")
    if {"transit_ns", "wait_ns", "idle_ns"} <= {*parts}:
        said.append("total = transit + wait + idle; idle: neither of both, all of it where the profiler saw no tasks")
    if "synchronization_ns" in parts:
        said.append("sync: the part of wait before the first transfer")
    return "; ".join(said)


def diff_communication(diff: Diff, limit: int | None) -> Table:
    """Collectives by change of their total time, with what of it compute does not hide."""
    table = diff.tables["communication"]
    rows, more = top(table, limit)
    columns = [Column("communication", **NAME), Column("group", **UNDER), *side_columns(), Column("exposed", drop=2)]
    columns += verdict_columns(table)
    cells = []
    for row in rows:
        line = [readable(row["kind"]), group_words(row), *side_cells(row), _span(row, "exposed_ns")]
        line += _human_verdicts.cells(table, row)
        cells.append((tone(row, row["delta_ns"]), line))
    return make("Communication by change of total time", columns, cells, more=more)


def diff_parts(diff: Diff, limit: int | None) -> Table:
    """The parts of the time of the same collectives, those that a profiler of either side tells apart; else no rows."""
    table = diff.tables["communication"]
    parts = [name for name in _PARTS if has(table, f"baseline_{name}") or has(table, f"candidate_{name}")]
    rows, more = top(table if parts else table.head(0), limit)
    columns = [Column("communication", **NAME), Column("group", **UNDER)]
    columns += [Column(_PARTS[name], drop=_DROPPED[name]) for name in parts]
    columns.append(Column(_SPLIT_BY, drop=4))
    cells = []
    for row in rows:
        baseline, candidate = (row[f"{side}_split_by"] or MISSING_TEXT for side in ("baseline", "candidate"))
        line = [
            readable(row["kind"]),
            group_words(row),
            *(_span(row, name) for name in parts),
            pair(baseline, candidate),
        ]
        cells.append(("", line))
    words = [row[f"{side}_split_by"] for row in rows for side in ("baseline", "candidate")]
    return make("Communication: the parts of its time", columns, cells, more=more, note=_note(parts, words))


def _span(row: Row, name: str) -> str:
    baseline, candidate, _ = values("ns", row[f"baseline_{name}"], row[f"candidate_{name}"], None)
    return pair(baseline, candidate)
