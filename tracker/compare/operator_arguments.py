"""With which arguments operators were called, of a run and of two sides.

They are the counters OPERATOR_ARGUMENTS, which count over whole captures: a source that records them says nothing of
steps and times. Those are the kernels' of the same type and input shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tracker.columns import Columns
from tracker.profile import OPERATOR_ARGUMENTS, OperatorArguments, arguments_of, dimensions_in
from tracker.results import ADDED, BOTH, REMOVED, SHOWN_COLUMNS
from tracker.results.diff_rows import OperatorArgumentChange
from tracker.results.shown_rows import OperatorArgumentRow
from tracker.schema.column_names import ATTRIBUTE, NAME, RANK, SOURCE
from tracker.store import queries
from tracker.units import counted

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide

_TABLE: Final = "operator_arguments"
_NAMED: Final = 3
"""So many operators a sentence names."""


class _Recorded(Struct, frozen=True):
    """A row of `counters`: arguments of an operator of the type `name`."""

    name: str
    attribute: str


class _ShapedKernel(Struct, frozen=True):
    """A row of `kernels`."""

    type: str
    input_shapes: str
    calls: int
    total_ns: int


class _ShapedOperator(Struct, frozen=True):
    """An operator of a type with inputs of these shapes, of a rank where ranks are kept apart."""

    rank: int | None
    operator: str
    dimensions: tuple[str, ...]


class _KernelSums(Struct, frozen=True):
    """Calls and time of kernels."""

    calls: int = 0
    total_ns: int = 0


def list_arguments(side: LoadedSide, by: Sequence[str], kernels: Columns) -> Columns:
    """Return `operator_arguments` of a run, by rank where `by` has it, those with most time first. In which step an
    operator had which arguments, nothing says.

    kernels: of the same run and grain, of which the times are.
    """
    recorded = _recorded_by(side, [name for name in by if name != "step"])
    work = _work_by_shape(kernels) if len(recorded) else {}
    every = [arguments_of(text) for text in recorded.listed(ATTRIBUTE)]
    keys = [
        _ShapedOperator(rank, operator, dimensions_in(arguments.inputs))
        for rank, operator, arguments in zip(_ranks_in(recorded), recorded.listed(NAME), every, strict=True)
    ]
    arguments_of_shape = Counter(keys)
    rows = []
    for key, arguments in zip(keys, every, strict=True):
        # which of several arguments of one shape a kernel had, nothing says
        own = work.get(key) if arguments_of_shape[key] == 1 else None
        rows.append(
            OperatorArgumentRow(
                rank=key.rank,
                operator=key.operator,
                inputs=arguments.inputs,
                outputs=arguments.outputs,
                attributes=arguments.attributes,
                calls=None if own is None else own.calls,
                total_ns=None if own is None else own.total_ns,
            )
        )
    rows.sort(key=lambda row: (-(row.total_ns or 0), row.operator, row.inputs, row.attributes))
    listed = Columns.of_structs(OperatorArgumentRow, rows)
    grain = ["rank"] if "rank" in recorded else []
    return listed.only([*grain, *SHOWN_COLUMNS[_TABLE]])


def compare_arguments(baseline: LoadedSide, candidate: LoadedSide) -> Columns:
    """Return the `operator_arguments` of a Diff, by operator: what one side alone has; none unless both have some."""
    before, after = _by_operator(baseline), _by_operator(candidate)
    rows: list[OperatorArgumentChange] = []
    if before and after:
        for operator in sorted({*before, *after}):
            rows += _changes_of(operator, before.get(operator, ()), after.get(operator, ()))
    return Columns.of_structs(OperatorArgumentChange, rows)


def note_on_arguments(changes: Columns) -> str:
    """Return which operators were called with other arguments; "" where none is known to be."""
    changed: dict[str, dict[str, None]] = {}
    for row in changes.structs(OperatorArgumentChange):
        words = row.changed.split(", ") if row.changed else ["added or removed"]
        changed.setdefault(row.operator, {}).update(dict.fromkeys(words))
    if not changed:
        return ""
    named = [f"{operator} ({', '.join(words)})" for operator, words in list(changed.items())[:_NAMED]]
    more = ", ..." if len(changed) > _NAMED else ""
    return f"the arguments of {counted(len(changed), 'operator')} differ: {', '.join(named)}{more}; --only argument"


def _recorded_by(side: LoadedSide, by: Sequence[str]) -> Columns:
    """Return the counters of a side that hold arguments, at the grain `by`, of whole captures."""
    table = side.query_with(queries.counters, by=tuple(by), ranks=side.ranks, steps=None)
    return table.taken(table[SOURCE] == OPERATOR_ARGUMENTS)


def _by_operator(side: LoadedSide) -> Mapping[str, Sequence[OperatorArguments]]:
    """Return the arguments of each operator of a side in the order of their texts; of several runs those of any."""
    if not side.may_have_rows(queries.counters):
        return {}
    recorded = _recorded_by(side, ("run",)).structs(_Recorded)
    texts: dict[str, set[str]] = {}
    for row in recorded:
        texts.setdefault(row.name, set()).add(row.attribute)
    return {operator: [arguments_of(text) for text in sorted(own)] for operator, own in texts.items()}


def _ranks_in(table: Columns) -> list[int | None]:
    """Return the rank of each row, None where ranks are not kept apart."""
    return table.listed(RANK) if "rank" in table else [None] * len(table)


def _work_by_shape(kernels: Columns) -> Mapping[_ShapedOperator, _KernelSums]:
    work: dict[_ShapedOperator, _KernelSums] = {}
    for rank, kernel in zip(_ranks_in(kernels), kernels.structs(_ShapedKernel), strict=True):
        key = _ShapedOperator(rank, kernel.type, dimensions_in(kernel.input_shapes))
        sums = work.get(key, _KernelSums())
        work[key] = _KernelSums(sums.calls + kernel.calls, sums.total_ns + kernel.total_ns)
    return work


def _changes_of(
    operator: str, before: Iterable[OperatorArguments], after: Iterable[OperatorArguments]
) -> Iterator[OperatorArgumentChange]:
    """Yield what differs of an operator. Arguments of equal inputs stand for each other where there is one such on each
    side, and so do those that are left alone on both.
    """
    old_arguments, new_arguments = list(before), list(after)
    shared = {*old_arguments} & {*new_arguments}
    lost, new = ([one for one in own if one not in shared] for own in (old_arguments, new_arguments))
    for inputs in dict.fromkeys(arguments.inputs for arguments in lost):
        old_ones, new_ones = ([one for one in own if one.inputs == inputs] for own in (lost, new))
        if len(old_ones) == len(new_ones) == 1:
            yield _pair_of(operator, old_ones[0], new_ones[0])
            lost.remove(old_ones[0])
            new.remove(new_ones[0])
    if len(lost) == len(new) == 1:
        yield _pair_of(operator, lost[0], new[0])
        return
    for arguments in lost:
        words = arguments.words()
        yield OperatorArgumentChange(operator=operator, status=REMOVED, changed="", baseline=words, candidate=None)
    for arguments in new:
        words = arguments.words()
        yield OperatorArgumentChange(operator=operator, status=ADDED, changed="", baseline=None, candidate=words)


def _pair_of(operator: str, old: OperatorArguments, new: OperatorArguments) -> OperatorArgumentChange:
    changed = [part for part in OperatorArguments.__struct_fields__ if getattr(old, part) != getattr(new, part)]
    return OperatorArgumentChange(
        operator=operator,
        status=BOTH,
        changed=", ".join(changed),
        baseline=old.words(changed),
        candidate=new.words(changed),
    )
