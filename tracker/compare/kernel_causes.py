"""Causes by kernel: device work that was launched outside of all operators, as CUDA graphs launch it.

One row of the operators stands for all of it. Where its kernels are known, they are what changed: slower, more calls,
new, gone, or replaced, in the words of operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import Columns
from tracker.compare import coverage, match
from tracker.compare.kernels import with_canonical_names
from tracker.compare.renames import find_changed_names, list_changes, make_contribution
from tracker.detect import DEFAULTS
from tracker.profile import NO_OP, NOT_LISTED, UNLINKED_OP
from tracker.profile.words import BESIDE_COMPUTE
from tracker.regressions.replacements import (
    OperatorChange,
    Replacement,
    name_replacement,
    pair_kernels,
)
from tracker.results import Contribution
from tracker.results.verdicts import CHANGED
from tracker.schema.column_names import BASELINE_NS, CATEGORY, INPUT_SHAPES, NAME, OP
from tracker.schema.series import KERNEL_TIME, SeriesKey
from tracker.store import queries
from tracker.table import is_among

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from tracker.compare.side import LoadedSide
    from tracker.compare.verdicts import Judged

STAND_INS: Final = (UNLINKED_OP, NO_OP)
"""Names of the operators that stand for device work without an operator."""
NOT_OPERATORS: Final = (*STAND_INS, NOT_LISTED)
"""Names that stand for all that is no single operator."""
OUTSIDE: Final = "outside of operators"
"""Why a kernel changed that operators launch, too: its calls outside of them did."""
_OF_CALLS: Final = ("new", "gone", "more calls", "fewer calls", "on one side only")
_SAME_WORK: Final = 1.1
"""How much longer the kernels may take than the row that stands for them: medians do not add up. Some sources count
the work of their operators among the unlinked kernels once more.
"""
_LEAST_OF_REPLACEMENT: Final = 0.001
"""Part of all kernels without an operator that both sides of a replacement have at least."""

Sides = tuple["LoadedSide", "LoadedSide"]


class KernelCauses(Struct, frozen=True):
    """Causes by kernel, and the operators that they stand in the place of. `names`: of these operators."""

    names: frozenset[str] = frozenset()
    causes: tuple[Contribution, ...] = ()


def split_stand_ins(sides: Sides, names: Columns, judged: Judged) -> KernelCauses:
    """Return the changes of the kernels that no operator launched, where both sides report kernels.

    `names`: a row per name of an operator. Nothing where the kernels are more than the rows that stand for them.
    """
    stand_ins = names.taken(is_among(names[NAME], STAND_INS))
    if not len(stand_ins):
        return KernelCauses()
    tables = [_query_kernels(side) for side in coverage.blank_unless_both(*sides, coverage.KERNELS)]
    chosen = [_take_compute(table.taken(is_among(table[OP], STAND_INS))) for table in tables]
    matched = match.match_sums(sides, chosen, ["name"], ["ns", "calls"])
    if not len(matched):
        return KernelCauses()
    for side in ("baseline", "candidate"):
        if np.nansum(matched[f"{side}_ns"]) > _SAME_WORK * np.nansum(stand_ins[f"{side}_ns"]):
            return KernelCauses()
    marked = judged.recorded.marked("kernels", matched)
    mixed = _find_mixed(tables)
    causes = _list_causes(marked, _find_kinds_of_work(chosen), _find_verdicts(tables, judged), mixed)
    return KernelCauses(frozenset(STAND_INS), tuple(causes))


def _query_kernels(side: LoadedSide) -> Columns:
    named = with_canonical_names(side.query(queries.kernels))
    return side.keep_own("kernels", named)


def _take_compute(kernels: Columns) -> Columns:
    return kernels.taken(~is_among(kernels[CATEGORY], BESIDE_COMPUTE))


def _find_kinds_of_work(tables: Sequence[Columns]) -> dict[str, str]:
    """Return kernel -> its category."""
    kinds: dict[str, str] = {}
    for table in tables:
        kinds.update(table.rows(NAME, CATEGORY))
    return kinds


def _find_mixed(tables: Sequence[Columns]) -> set[str]:
    """Return the kernels that operators launch, too, on either side: of these more or fewer calls outside of operators
    are no more or fewer calls of the kernel.
    """
    names: set[str] = set()
    for table in tables:
        names.update(table.taken(~is_among(table[OP], STAND_INS)).listed(NAME))
    return names


def _find_verdicts(tables: Sequence[Columns], judged: Judged) -> dict[str, str]:
    """Return kernel -> its finding or suspect, of kernels that only stand-ins launch: the series of a kernel holds all
    of its calls.
    """
    if judged.verdicts is None:
        return {}
    ops_of_kernel: dict[str, set[str]] = {}
    keys: dict[str, set[SeriesKey]] = {}
    for table in tables:
        for name, shapes, op in table.rows(NAME, INPUT_SHAPES, OP):
            ops_of_kernel.setdefault(name, set()).add(op)
            keys.setdefault(name, set()).add(SeriesKey("kernel", KERNEL_TIME.name, name, shapes or ""))
    verdicts = {}
    for name, own in keys.items():
        if len(own) > 1 or not ops_of_kernel[name] <= set(STAND_INS):
            continue
        row = judged.verdicts.by_series.get(next(iter(own)))
        if row is not None and row.verdict in CHANGED:
            verdicts[name] = str(row.verdict)
    return verdicts


def _list_causes(
    matched: Columns, kinds: Mapping[str, str], verdicts: Mapping[str, str], mixed: Set[str]
) -> list[Contribution]:
    moved = []
    for change in find_changed_names(matched).values():
        if change.name in mixed:
            continue
        numbers = (change.before_ns, change.after_ns, change.calls_before, change.calls_after)
        moved.append(OperatorChange(change.name, *numbers, shapes=kinds[change.name]))
    least = _LEAST_OF_REPLACEMENT * float(np.nansum(matched[BASELINE_NS]))
    causes, replaced = [], set[str]()
    for replacement in pair_kernels(moved):
        if min(replacement.removed_ns, replacement.added_ns) >= least:
            causes.append(_make_replacement(replacement, verdicts))
            replaced.update(one.name for one in replacement.members)
    for change in list_changes(matched):
        if change.name in replaced:
            continue
        cause = make_contribution("kernel", change)
        if change.name in mixed and cause.why in _OF_CALLS:
            cause = replace(cause, why=OUTSIDE)
        causes.append(replace(cause, verdict=verdicts.get(change.name)))
    return causes


def _make_replacement(replacement: Replacement, verdicts: Mapping[str, str]) -> Contribution:
    """Return kernels that went and those that came in their place as one cause, by its net."""
    before, after = replacement.removed_ns, replacement.added_ns
    delta = after - before
    is_as_long = abs(delta) < DEFAULTS.ratio * max(before, after)
    verdict = None
    if not is_as_long and any(one.name in verdicts for one in replacement.members):
        verdict = "REGRESSED" if delta > 0 else "IMPROVED"
    gone, come = ([one.name for one in side] for side in (replacement.gone, replacement.come))
    return Contribution(
        "replacement",
        name_replacement(gone, come),
        delta,
        why="renamed" if replacement.is_renamed else "replaced",
        baseline_ns=before,
        candidate_ns=after,
        verdict=verdict,
        count=len(replacement.members),
    )
