"""Replaced operators of a diff: those that went, and those that came in their place below one parent or module."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tracker.columns import Columns
from tracker.compare import match
from tracker.regressions.causes import cause_words
from tracker.regressions.replacements import CallingContexts, OperatorChange, Replacement, find_replacements
from tracker.results import ADDED, BOTH, REMOVED, Contribution, Rename
from tracker.schema.column_names import (
    BASELINE_CALLS,
    BASELINE_NS,
    CANDIDATE_CALLS,
    CANDIDATE_NS,
    INPUT_SHAPES,
    NAME,
    RUN_ID,
    STATUS,
)
from tracker.store import queries
from tracker.table import number_distinct_rows

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide

_SMALLEST_SHARE: Final = 0.001
_WORSE: Final = 0.25
"""How much longer what came may take than what went, to be the same work under another name."""
NUMBERS: Final = (BASELINE_NS, CANDIDATE_NS, BASELINE_CALLS, CANDIDATE_CALLS)


class Change(NamedTuple):
    """What changed of one name, over all its shapes: times in ns and calls per step, before and after.

    `status`: that all its rows share, BOTH where they differ.
    """

    name: str
    status: str
    before_ns: float
    after_ns: float
    calls_before: float
    calls_after: float

    @property
    def has_other_calls(self) -> bool:
        """Whether both sides call it, one more often than the other."""
        before, after = self.calls_before, self.calls_after
        if self.status != BOTH or not before or not after:
            return False
        return OperatorChange(self.name, self.before_ns, self.after_ns, before, after).has_moved


def list_changes(rows: Columns) -> Iterator[Change]:
    """Yield the change of each name of operators or kernels of a Diff; what is not known counts as 0."""
    number, first = number_distinct_rows([rows[NAME]])
    sums = [np.nan_to_num(match.sum_exactly(rows[column], number, len(first))).tolist() for column in NUMBERS]
    statuses = status_of_names(rows)
    for name, *numbers in zip(rows[NAME][first].tolist(), *sums, strict=True):
        yield Change(name, statuses[name], *numbers)


def make_contribution(kind: str, change: Change) -> Contribution:
    """Return a change as a cause: slower or more often, new or gone."""
    before, after = change.before_ns, change.after_ns
    if change.status == BOTH:
        why = cause_words(before, after, change.calls_before, change.calls_after)[0]
    else:
        why = {ADDED: "new", REMOVED: "gone"}.get(change.status, "on one side only")
    return Contribution(
        kind,
        change.name,
        after - before,
        why=why,
        baseline_ns=before,
        candidate_ns=after,
        baseline_calls=change.calls_before,
        candidate_calls=change.calls_after,
    )


def find_renames(baseline: LoadedSide, candidate: LoadedSide, names: Columns, ops: Columns) -> tuple[Rename, ...]:
    """Return what replaced what, both of at least 0.1 % of all op time, with its net. Largest first.

    `names`: a row per name of an op; `ops`: a row per name and shapes. An op of which only one side can have recorded
    anything neither went nor came.
    """
    changed = find_changed_names(names)
    if not changed:
        return ()
    shapes = _list_shapes(ops, changed)
    changes = []
    for name, change in changed.items():
        calls = change.calls_before, change.calls_after
        words = " ".join(dict.fromkeys(shapes.get(name, ())))
        changes.append(OperatorChange(name, change.before_ns, change.after_ns, *calls, words))
    contexts = []
    for side in (baseline, candidate):
        tree, ops_of_run = _take_last_run(side.query_op_tree()), _take_last_run(side.query(queries.ops))
        contexts.append(CallingContexts(tree, ops_of_run))
    smallest = float(np.nansum(names[BASELINE_NS])) * _SMALLEST_SHARE
    renames = []
    for replacement in find_replacements(changes, *contexts):
        rename = _make_rename(replacement)
        if min(rename.removed_ns, rename.added_ns) >= smallest:
            renames.append(rename)
    return tuple(sorted(renames, key=lambda rename: (-max(rename.removed_ns, rename.added_ns), rename.parent)))


def find_changed_names(names: Columns) -> dict[str, Change]:
    """Return the operators or kernels that came, went, or are called more or less often."""
    changed = {}
    for change in list_changes(names):
        # a source that counts no calls: one that came or went was called at least once
        if change.status == ADDED:
            changed[change.name] = change._replace(calls_before=0.0, calls_after=change.calls_after or 1.0)
        elif change.status == REMOVED:
            changed[change.name] = change._replace(calls_before=change.calls_before or 1.0, calls_after=0.0)
        elif change.has_other_calls:
            changed[change.name] = change
    return changed


def _list_shapes(ops: Columns, names: Collection[str]) -> dict[str, list[str]]:
    shapes_of_name: dict[str, list[str]] = {}
    for name, shapes in ops.rows(NAME, INPUT_SHAPES):
        if name in names and shapes:
            shapes_of_name.setdefault(name, []).append(shapes)
    return shapes_of_name


def _take_last_run(table: Columns) -> Columns:
    runs = table.integers(RUN_ID)
    return table.taken(runs == runs.max()) if len(table) else table


def _make_rename(replacement: Replacement) -> Rename:
    removed_ns, added_ns = replacement.removed_ns, replacement.added_ns
    return Rename(
        removed=" + ".join(op.name for op in replacement.gone),
        added=" + ".join(op.name for op in replacement.come),
        parent=replacement.parent,
        removed_ns=removed_ns,
        added_ns=added_ns,
        is_worse=added_ns - removed_ns > _WORSE * removed_ns,
        is_renamed=replacement.is_renamed,
    )


def status_of_names(ops: Columns) -> dict[str, str]:
    """Return name -> the status that all its ops share, BOTH where they differ."""
    statuses: dict[str, str] = {}
    for name, status in ops.rows(NAME, STATUS):
        statuses[name] = status if statuses.get(name, status) == status else BOTH
    return statuses
