"""The tree of `--by` for people: indented names, the most expensive first, the small ones summed up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tracker.reports import _human_verdicts
from tracker.reports._human import (
    UNDER,
    WORDS,
    Column,
    Row,
    Table,
    make,
    metric_words,
    number,
    pair,
    readable,
    share,
    side_cells,
    side_columns,
    tone,
    verdict_columns,
)
from tracker.reports.shared import listed, records
from tracker.results import GRAINS, Diff, Shown
from tracker.units import format_ns, time_unit

if TYPE_CHECKING:
    import pandas as pd

    from tracker.columns import Columns

_Tree = TypeVar("_Tree")
_LEAST: Final = 0.01
"""Rows below this share of the whole (in a diff: of the largest change) can be summed up."""
_TITLES: Final = {
    "module": "Modules and the ops in them",
    "phase": "Phases of a step and the ops in them",
    "op": "Ops",
    "kernel": "Kernels and the ops that launch them",
}
_NOTES: Final = {
    "module": "Calls of a module: its forward calls, or those of the range or layer that is the module; - where the "
    "source does not count them. An op stands with its own time.",
    "phase": "Calls of a phase: - where the source does not count them. An op stands with its own time.",
    "op": "An op stands where it was called, with the time of its calls.",
    "kernel": "",
}
_FLAT: Final = "An op stands with its own time, its kernels below: with a filter, or where nobody knows the callers."


def show(shown: Shown, limit: int | None, *, hide_small: bool) -> Table:
    """The tree of a run: calls, device and host time with and without the rows below, share.

    `limit`: rows below one row; the others are summed up, and with `hide_small` also what is below a hundredth.
    """
    frame, word = known(shown.tree), shown.options.tree
    place = "device" if bool((shown.overall["timeline"] == "device").any()) else "host"
    other = "host" if place == "device" else ""
    grains = [name for name in GRAINS if name in frame.columns]
    columns = [Column("of", left=True)] if grains else []
    columns += [Column(word, **WORDS), Column("input shapes", **UNDER), Column("calls")]
    columns += [Column(f"{place} total"), Column(f"{place} self", drop=2), Column("share"), Column("of step", drop=1)]
    columns += [Column(f"{other} total", drop=3)] if other else []
    sums = (f"{place}_total_ns", f"{other}_total_ns", "share", "step_share")
    rows = []
    for row in _cut(records(frame), grains, limit, _small_share if hide_small else _never, sums):
        total, own = row[f"{place}_total_ns"], row[f"{place}_self_ns"]
        unit = time_unit(total, own)
        cells = [", ".join(f"{name} {number(row[name])}" for name in grains)] if grains else []
        cells += [_indented(row), str(row["input_shapes"] or ""), number(row["calls"])]
        cells += [format_ns(total, unit), format_ns(own, unit), share(row["share"]), share(row["step_share"])]
        host = row.get(f"{other}_total_ns")
        cells += [format_ns(host, time_unit(host))] if other else []
        rows.append(("sum" if row["node"] is None else "", cells))
    return make(f"{_TITLES[word]}, most expensive first", columns, rows, note=_note(word, frame))


def diff(diff: Diff, limit: int | None, *, hide_small: bool) -> Table:
    """The tree of two sides: calls, time on both, change, DIFF; the largest change first."""
    table, word = known(diff.tree_table), diff.options.tree
    found = records(table)
    columns = [Column(word, **WORDS), Column("input shapes", **UNDER), *side_columns()]
    columns += [Column("share", drop=2), *verdict_columns(table)]
    largest = max((abs(row["delta_ns"] or 0.0) for row in found if row["level"] == 0), default=0.0)
    small = partial(_small_change, largest) if hide_small else _never
    rows = []
    for row in _cut(found, [], limit, small, ("baseline_ns", "candidate_ns", "delta_ns")):
        shares = pair(share(row.get("baseline_share")), share(row.get("candidate_share")))
        cells = [_indented(row), str(row["input_shapes"] or ""), *side_cells(row), shares]
        cells += _human_verdicts.cells(table, row)
        rows.append(("sum" if row["node"] is None else tone(row, row["delta_ns"]), cells))
    words = metric_words(diff).replace(" self", "")
    return make(f"{_TITLES[word]} by change of {words}, per step", columns, rows, note=_note(word, table))


def _never(row: Row) -> bool:
    return False


def _small_share(row: Row) -> bool:
    if row["kind"] == "phase":  # they are few
        return False
    return bool(row["share"] is not None and row["share"] < _LEAST)


def _small_change(largest: float, row: Row) -> bool:
    return bool(row["kind"] != "phase" and abs(row["delta_ns"] or 0.0) < _LEAST * largest)


def known(tree: _Tree | None) -> _Tree:
    """The tree of a result that has one."""
    if tree is None:
        raise ValueError("there is no tree: nobody asked for one")
    return tree


def _indented(row: Row) -> str:
    return "  " * int(row["level"]) + readable(row["name"])


def _note(word: str, tree: Columns | pd.DataFrame) -> str:
    if not len(tree):
        return f"nothing is known of {word}s"
    flat = word == "op" and "kernel" in listed(tree, "kind")
    return _FLAT if flat else _NOTES[word]


def _cut(
    rows: list[Row], grains: list[str], limit: int | None, small: Callable[[Row], bool], sums: tuple[str, ...]
) -> Iterator[Row]:
    """The rows in their order; behind the last row that is kept under a row (or of a tree) one for all that are not.

    It has the sums of `sums`, and `node` None.
    """
    below: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        tree = tuple(row[name] for name in grains) if row["level"] == 0 else ()
        below.setdefault((row["parent"], *tree), []).append(row)

    def walk(siblings: list[Row]) -> Iterator[Row]:
        left_out = [row for place, row in enumerate(siblings) if (limit is not None and place >= limit) or small(row)]
        if len(left_out) == 1:  # a line is a line
            left_out = []
        hidden = {id(row) for row in left_out}
        for row in siblings:
            if id(row) not in hidden:
                yield row
                yield from walk(below.get((row["node"],), []))
        # all that is in a row says no more than the row itself
        if left_out and (len(left_out) < len(siblings) or siblings[0]["level"] == 0):
            yield _summed(left_out, sums)

    for key, siblings in below.items():
        if key[0] == -1:
            yield from walk(siblings)


def _summed(rows: list[Row], sums: tuple[str, ...]) -> Row:
    first = rows[0]
    summed: Row = dict.fromkeys(first)
    summed |= {name: first[name] for name in first if name in (*GRAINS, "level", "parent")}
    for name in sums:
        known = [row[name] for row in rows if row.get(name) is not None]
        summed[name] = sum(known) if known else None
    return summed | {"name": f"… and {len(rows):,} more", "input_shapes": ""}
