"""The tree of `--by`: indented names, the most expensive first, the small ones summed up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from tracker.reports.cells import col, number, of, pair, readable, share, together, tone
from tracker.reports.document import WORDS, Column, Flame, Look, Table
from tracker.reports.rows import Row, records, table_of
from tracker.reports.views import diff_tables
from tracker.reports.views.sections import SHAPES, SIDES
from tracker.results import GRAINS, Diff, Shown
from tracker.units import format_ns

if TYPE_CHECKING:
    from tracker.columns import Columns

ROWS: Final = 10
"""Rows below one row."""
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
_FLAT: Final = "An op stands with its own time, its kernels below: with a filter, or where the callers are not known."


def of_run(shown: Shown, look: Look) -> Table:
    """Return the tree of a run: calls, device and host time with and without the rows below, share."""
    assert shown.tree_table is not None
    tree, word = shown.tree_table, shown.options.tree
    place = "device" if "device" in shown.tables["overall"].listed("timeline") else "host"
    other = "host" if place == "device" else ""
    grains = [name for name in GRAINS if name in tree]
    of_grains = Column("of", lambda row: ", ".join(f"{name} {number(row[name])}" for name in grains), left=True)
    times = {f"{place}_total_ns": Column(f"{place} total"), f"{place}_self_ns": Column(f"{place} self", drop=2)}
    columns = [
        *([of_grains] if grains else []), Column(word, _indented, **WORDS), SHAPES, col("calls"), together("ns", times),
        col("share"), col("of step", "step_share", drop=1),
        *([Column(f"{other} total", of(f"{other}_total_ns", format_ns), drop=3)] if other else []),
    ]  # fmt: skip
    sums = (f"{place}_total_ns", f"{other}_total_ns", "share", "step_share")
    is_small = _never if look.limit is not None else lambda row: row["share"] is not None and row["share"] < _LEAST
    kept = [*_cut(records(tree), grains, look.rows(ROWS), is_small, sums)]
    rows = records(tree) if not grains else []
    nodes = tuple((int(row["level"]), str(row["name"]), row[f"{place}_total_ns"], None) for row in rows)
    chart, title = Flame((word,), nodes) if nodes else None, f"{_TITLES[word]}, most expensive first"
    drawn: dict[str, Any] = {"note": _note(word, tree), "is_first": True, "section": "tree", "chart": chart}
    return table_of(title, columns, kept, tone=lambda row: "sum" if row["node"] is None else "", **drawn)


def of_diff(diff: Diff, look: Look) -> Table:
    """Return the tree of two sides: calls, time on both, change; the largest change first."""
    assert diff.tree_table is not None
    tree, word = diff.tree_table, diff.options.tree
    rows = records(tree)
    largest = max((abs(row["delta_ns"] or 0.0) for row in rows if row["level"] == 0), default=0.0)
    is_small = _never if look.limit is not None else lambda row: abs(row["delta_ns"] or 0.0) < _LEAST * largest
    kept = [*_cut(rows, [], look.rows(ROWS), is_small, ("baseline_ns", "candidate_ns", "delta_ns"))]

    def shares(row: Row) -> str:
        return pair(share(row.get("baseline_share")), share(row.get("candidate_share")))

    columns = [
        Column(word, _indented, **WORDS), SHAPES, *diff_tables.sides(), Column("share", shares, drop=2),
    ]  # fmt: skip
    columns += diff_tables.verdicts(tree)
    words = diff_tables.metric_words(diff).replace(" self", "")
    nodes = tuple((int(row["level"]), str(row["name"]), row["baseline_ns"], row["candidate_ns"]) for row in rows)
    chart, title = Flame(SIDES, nodes) if nodes else None, f"{_TITLES[word]} by change of {words}, per step"
    drawn: dict[str, Any] = {"note": _note(word, tree), "is_first": True, "section": "tree", "chart": chart}
    return table_of(
        title, columns, kept, tone=lambda row: "sum" if row["node"] is None else tone(row, row["delta_ns"]), **drawn
    )


def flame_of_diff(diff: Diff) -> Table:
    """Draw the tree of two sides, for a document whose tables are others."""
    word, words = diff.samples.word, diff_tables.metric_words(diff).replace(" self", "")
    title = f"{_TITLES[word]}, {words} per step"
    return table_of(title, [], [], chart=Flame(SIDES, diff.samples.tree), is_first=True, section="tree", note=" ")


def _never(row: Row) -> bool:
    return False


def _indented(row: Row) -> str:
    return "  " * int(row["level"]) + readable(row["name"])


def _note(word: str, tree: Columns) -> str:
    if not len(tree):
        return f"the sources state no {word}s"
    return _FLAT if word == "op" and "kernel" in tree.listed("kind") else _NOTES[word]


def _cut(
    rows: list[Row], grains: list[str], limit: int | None, is_small: Callable[[Row], bool], sums: tuple[str, ...]
) -> Iterator[Row]:
    """Yield the rows in their order.

    Behind the last row that is kept under a row (or of a tree) stands one for all that are not, with the sums of
    `sums`, and `node` None. Phases are few: none is small.
    """
    below: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        tree = tuple(row[name] for name in grains) if row["level"] == 0 else ()
        below.setdefault((row["parent"], *tree), []).append(row)

    def walk(siblings: list[Row]) -> Iterator[Row]:
        left_out = [
            row
            for place, row in enumerate(siblings)
            if (limit is not None and place >= limit) or (row["kind"] != "phase" and is_small(row))
        ]
        if len(left_out) == 1:  # a line is a line
            left_out = []
        hidden = {id(row) for row in left_out}
        for row in siblings:
            if id(row) not in hidden:
                yield row
                yield from walk(below.get((row["node"],), []))
        # all that is in a row says no more than the row itself
        if left_out and (len(left_out) < len(siblings) or siblings[0]["level"] == 0):
            first = left_out[0]
            summed: Row = dict.fromkeys(first)
            summed |= {name: first[name] for name in first if name in (*GRAINS, "level", "parent")}
            for name in sums:
                known = [row[name] for row in left_out if row.get(name) is not None]
                summed[name] = sum(known) if known else None
            yield summed | {"name": f"… and {len(left_out):,} more", "input_shapes": ""}

    for key, siblings in below.items():
        if key[0] == -1:
            yield from walk(siblings)
