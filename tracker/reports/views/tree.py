"""The tree of `--by`: indented names, the most expensive first, the small ones summed up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec.structs import replace

from tracker.reports.cells import ColumnsOf, number, pair, readable, share, together, tone
from tracker.reports.document import WORDS, Column, Flame, Look, Table
from tracker.reports.rows import rows_of, table_of
from tracker.reports.views import diff_tables
from tracker.reports.views.sections import SHAPES, SIDES, grain_of
from tracker.results import BOTH, GRAINS, Diff, Shown
from tracker.results.diff_rows import TreeChange
from tracker.results.shown_rows import NodeRow, TreeRow
from tracker.units import format_ns

if TYPE_CHECKING:
    from tracker.columns import Columns

NodeKind = TypeVar("NodeKind", bound=NodeRow)
Number = TypeVar("Number", int, float)
ROWS: Final = 10
"""Rows below one row."""
_LEAST: Final = 0.01
"""Rows below this share of the whole (in a diff: of the largest change) can be summed up."""
_LEFT_OUT: Final = -2
"""The number of a row for several."""
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
    grains = [name for name in GRAINS if name in tree]
    columns = [_node.text(word, _indented, **WORDS), SHAPES, _node.number("calls", lambda row: number(row.calls))]
    if grains:
        columns.insert(0, _node.text("of", grain_of))
    times = {f"{place}_total_ns": Column(f"{place} total"), f"{place}_self_ns": Column(f"{place} self", drop=2)}
    columns += [
        together("ns", times), _node.number("share", lambda row: share(row.share)),
        _node.number("of step", lambda row: share(row.step_share), drop=1),
    ]  # fmt: skip
    if place == "device":
        columns.append(_node.number("host total", lambda row: format_ns(row.host_total_ns), drop=3))
    rows = rows_of(TreeRow, tree)

    def is_small(row: TreeRow) -> bool:
        return look.limit is None and row.share is not None and row.share < _LEAST

    def total_ns(row: TreeRow) -> int | None:
        return row.device_total_ns if place == "device" else row.host_total_ns

    kept = [*_cut(rows, look.rows(ROWS), is_small, _sum_rows)]
    drawn = rows if not grains else []
    nodes = tuple((row.level, row.name, total_ns(row), None) for row in drawn)
    return table_of(
        f"{_TITLES[word]}, most expensive first", columns, kept, tone=_tone_of_sum, note=_note(word, tree),
        is_first=True, section="tree", chart=Flame((word,), nodes) if nodes else None,
    )  # fmt: skip


_node: Final = ColumnsOf(TreeRow)


def _tone_of_sum(row: NodeRow) -> str:
    return "sum" if row.node == _LEFT_OUT else ""


def _sum_rows(rows: Sequence[TreeRow]) -> TreeRow:
    """Return one row for those that are left out."""
    return TreeRow(
        node=_LEFT_OUT,
        parent=rows[0].parent,
        level=rows[0].level,
        kind="",
        path="",
        name=_count(rows),
        input_shapes="",
        calls=None,
        op_calls=None,
        host_total_ns=_add_known([row.host_total_ns for row in rows]),
        host_self_ns=None,
        device_total_ns=_add_known([row.device_total_ns for row in rows]),
        device_self_ns=None,
        share=_add_known([row.share for row in rows]),
        step_share=_add_known([row.step_share for row in rows]),
        rank=rows[0].rank,
        step=rows[0].step,
    )


def _count(rows: Sequence[NodeRow]) -> str:
    return f"… and {len(rows):,} more"


def _add_known(numbers: Sequence[Number | None]) -> Number | None:
    """Return the sum of those that are known, None where none is."""
    known = [one for one in numbers if one is not None]
    return sum(known[1:], start=known[0]) if known else None


def of_diff(diff: Diff, look: Look) -> Table:
    """Return the tree of two sides: calls, time on both, change; the largest change first."""
    assert diff.tree_table is not None
    tree, word = diff.tree_table, diff.options.tree
    rows = rows_of(TreeChange, tree)
    largest = max((abs(row.delta_ns or 0.0) for row in rows if row.level == 0), default=0.0)

    def is_small(row: TreeChange) -> bool:
        return look.limit is None and abs(row.delta_ns or 0.0) < _LEAST * largest

    def shares(row: TreeChange) -> str:
        return pair(share(row.baseline_share), share(row.candidate_share))

    def colour(row: TreeChange) -> str:
        return _tone_of_sum(row) or tone(row.delta_ns, row.diff, row.status, row.verdict)

    kept = [*_cut(rows, look.rows(ROWS), is_small, _sum_changes)]
    columns = [
        Column(word, _indented, **WORDS), SHAPES, *diff_tables.sides(), Column("share", shares, drop=2),
        *diff_tables.verdicts(tree),
    ]  # fmt: skip
    words = diff_tables.metric_words(diff).replace(" self", "")
    nodes = tuple((row.level, row.name, row.baseline_ns, row.candidate_ns) for row in rows)
    return table_of(
        f"{_TITLES[word]} by change of {words}, per step", columns, kept, tone=colour, note=_note(word, tree),
        is_first=True, section="tree", chart=Flame(SIDES, nodes) if nodes else None,
    )  # fmt: skip


def _sum_changes(rows: Sequence[TreeChange]) -> TreeChange:
    """Return one row for those that are left out: the sums of their times."""
    return replace(
        rows[0],
        node=_LEFT_OUT,
        name=_count(rows),
        input_shapes="",
        status=BOTH,
        baseline_ns=_add_known([row.baseline_ns for row in rows]),
        candidate_ns=_add_known([row.candidate_ns for row in rows]),
        delta_ns=_add_known([row.delta_ns for row in rows]),
        diff=None,
        baseline_calls=None,
        candidate_calls=None,
        baseline_share=None,
        candidate_share=None,
        verdict=None,
        judged_diff=None,
        q=None,
        reason=None,
    )


def flame_of_diff(diff: Diff) -> Table:
    """Draw the tree of two sides, for a document whose tables are others."""
    word, words = diff.samples.word, diff_tables.metric_words(diff).replace(" self", "")
    title = f"{_TITLES[word]}, {words} per step"
    return table_of(title, [], [], chart=Flame(SIDES, diff.samples.tree), is_first=True, section="tree", note=" ")


def _indented(row: NodeRow) -> str:
    return "  " * row.level + readable(row.name)


def _note(word: str, tree: Columns) -> str:
    if not len(tree):
        return f"the sources state no {word}s"
    return _FLAT if word == "op" and "kernel" in tree.listed("kind") else _NOTES[word]


def _cut(
    rows: Sequence[NodeKind],
    limit: int | None,
    is_small: Callable[[NodeKind], bool],
    sum_rows: Callable[[Sequence[NodeKind]], NodeKind],
) -> Iterator[NodeKind]:
    """Yield the rows in their order.

    Behind the last row that is kept under a row (or of a tree) stands one for all that are not, as `sum_rows` makes it.
    Phases are few: none is small.
    """
    roots: dict[tuple[int | None, int | None], list[NodeKind]] = {}
    below: dict[int, list[NodeKind]] = {}
    for row in rows:
        if row.level == 0:
            roots.setdefault(_tree_of(row), []).append(row)
        else:
            below.setdefault(row.parent, []).append(row)

    def walk(siblings: Sequence[NodeKind]) -> Iterator[NodeKind]:
        left_out = [
            row
            for place, row in enumerate(siblings)
            if (limit is not None and place >= limit) or (row.kind != "phase" and is_small(row))
        ]
        if len(left_out) == 1:  # a line is a line
            left_out = []
        hidden = {id(row) for row in left_out}
        for row in siblings:
            if id(row) not in hidden:
                yield row
                yield from walk(below.get(row.node, []))
        # all that is in a row says no more than the row itself
        if left_out and (len(left_out) < len(siblings) or siblings[0].level == 0):
            yield sum_rows(left_out)

    for siblings in roots.values():
        yield from walk(siblings)


def _tree_of(row: NodeRow) -> tuple[int | None, int | None]:
    """Return the rank and the step of the tree of a row, None where it is of several."""
    return (row.rank, row.step) if isinstance(row, TreeRow) else (None, None)
