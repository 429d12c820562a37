"""The single kernels of the operators of two sides, read again from the files of one run of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tracker.compare import match
from tracker.compare.calls import read_files
from tracker.compare.median_run import find_median_run
from tracker.errors import UsageError
from tracker.results import ADDED, BOTH, REMOVED
from tracker.results.diff_rows import OperatorKernelRow
from tracker.schema.column_names import INPUT_SHAPES, INPUT_TYPES, NAME, RANK, STEP
from tracker.timeline import WantedCalls

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.compare.operators import Operators
    from tracker.compare.side import LoadedSide
    from tracker.results import DiffOptions

MOST: Final = 20_000
"""Rows of a table: a workbook takes 13 s of CPU to write so many."""
_TABLE: Final = "op_kernels"
OpKey = tuple[str, str]
"""Name and input shapes of an operator."""


class SingleKernels(Struct, frozen=True, eq=False):
    """`op_kernels` of a Diff, and of which runs and ranks they are."""

    table: Columns
    notes: tuple[str, ...] = ()


class _Kernel(Struct, frozen=True):
    """A call of a kernel, with `callers`: the operators around its launch, the outermost first."""

    name: str
    canonical_name: str
    input_shapes: str | None
    core_type: str | None
    step: int | None
    stream: int | None
    task_id: int | None
    start_ns: int
    duration_ns: int
    callers: tuple[OpKey, ...]


class _Listed(Struct, frozen=True):
    """The kernels of a side by operator, each in order of start; `place`: of which run and rank."""

    of_op: Mapping[OpKey, Sequence[_Kernel]]
    place: str


def compare(baseline: LoadedSide, candidate: LoadedSide, options: DiffOptions, found: Operators) -> SingleKernels:
    """Return the single kernels of the operators in `found`, in the order of these, of the lowest rank of the run of
    the median step of each side; nothing unless `options.single_kernels`.

    Raises SourceError where a file cannot be read again, UsageError where a run has none.
    """
    if not options.single_kernels:
        return SingleKernels(match.empty_table(_TABLE))
    opened = found.opened
    before = _list_kernels(baseline, options, opened, options.op_map.keys(), options.op_map)
    after = _list_kernels(candidate, options, opened, set(options.op_map.values()), {})
    rows = list(_pair_up(before, after, found.ops))
    notes = [f"Single kernels are those of {before.place} and of {after.place}."]
    if len(rows) > MOST:
        notes.append(f"{len(rows) - MOST:,} of {len(rows):,} single kernels are left out: choose steps or operators.")
    return SingleKernels(match.make_table(OperatorKernelRow, rows[:MOST]), tuple(notes))


def _list_kernels(
    side: LoadedSide,
    options: DiffOptions,
    opened: Set[OpKey] | None,
    whole_names: Set[str],
    op_map: Mapping[str, str],
) -> _Listed:
    """Return the kernels of a side under the names and shapes of the rows of operators. `opened`, `whole_names`: as in
    `_choose_owner`; `op_map`: other names of operators.
    """
    run_id = find_median_run(side)
    one = side.of_runs([side.run_ids[-1] if run_id is None else run_id])
    rank = min(one.captures.listed(RANK))
    steps = None
    if one.chosen_steps is not None or one.step_kind:
        steps = frozenset(step for of, step in one.steps.rows(RANK, STEP) if of == rank)
    wanted = WantedCalls(kind="kernel", name=None, steps=steps, in_steps=one.has_markers)
    read = read_files(one, {rank: wanted}, options)
    if rank not in read.calls:
        if read.unread:
            raise read.unread[0]
        raise UsageError(
            f"{side.side.label} has no file to read single kernels from", remedy="leave out --single-kernels"
        )
    of_op: dict[OpKey, list[_Kernel]] = {}
    for kernel in read.calls[rank].structs(_Kernel):
        name, shapes = _choose_owner(kernel.callers, opened, whole_names)
        shapes = side.reshaped.get((name, shapes), shapes)
        shapes = "" if options.match == "name" else shapes
        of_op.setdefault((op_map.get(name, name), shapes), []).append(kernel)
    of_run = "" if len(side.run_ids) == 1 else f" of run:{one.run_ids[0]}"
    return _Listed(of_op, f"rank {rank}{of_run} of {side.side.label}")


def _choose_owner(callers: Sequence[OpKey], opened: Set[OpKey] | None, whole_names: Set[str]) -> OpKey:
    """Return the operator in whose row a kernel counts: the innermost one, or where operators stand for all below them
    the outermost one that is not `opened`, or is named in `whole_names`.

    >>> _choose_owner([("linear", ""), ("mm", "")], None, set())
    ('mm', '')
    >>> _choose_owner([("step", ""), ("linear", ""), ("mm", "")], {("step", "")}, set())
    ('linear', '')
    """
    if opened is not None:
        for key in callers:
            if key[0] in whole_names or key not in opened:
                return key
    return callers[-1]


def _pair_up(before: _Listed, after: _Listed, ops: Columns) -> Iterator[OperatorKernelRow]:
    """Yield the kernels of each operator, in order of their start on the side that has them."""
    for name, shapes, types in ops.rows(NAME, INPUT_SHAPES, INPUT_TYPES):
        places: dict[tuple[str, int], list[_Kernel | None]] = {}
        for side, listed in enumerate((before, after)):
            counts: dict[str, int] = {}
            for kernel in listed.of_op.get((name, shapes), ()):
                number = counts[kernel.canonical_name] = counts.get(kernel.canonical_name, 0) + 1
                places.setdefault((kernel.canonical_name, number), [None, None])[side] = kernel
        for (kernel_name, _), (old, new) in places.items():
            yield _make_row((name, shapes, types or ""), kernel_name, old, new)


def _make_row(key: tuple[str, str, str], kernel: str, old: _Kernel | None, new: _Kernel | None) -> OperatorKernelRow:
    name, input_shapes, input_types = key
    delta = diff = None
    if old is not None and new is not None:
        delta = float(new.duration_ns - old.duration_ns)
        diff = delta / old.duration_ns if old.duration_ns else None
    return OperatorKernelRow(
        name=name,
        input_shapes=input_shapes,
        input_types=input_types,
        kernel=kernel,
        status=ADDED if old is None else REMOVED if new is None else BOTH,
        delta_ns=delta,
        diff=diff,
        **_of_side("baseline", old),
        **_of_side("candidate", new),
    )


def _of_side(side: str, kernel: _Kernel | None) -> dict[str, Any]:
    numbers = {
        "ns": kernel and kernel.duration_ns,
        "task_id": kernel and kernel.task_id,
        "step": kernel and kernel.step,
        "stream": kernel and kernel.stream,
        "start_ns": kernel and kernel.start_ns,
        "kernel_name": kernel.name if kernel else "",
        "task_type": (kernel and kernel.core_type) or "",
        "kernel_shapes": (kernel and kernel.input_shapes) or "",
    }
    return {f"{side}_{name}": value for name, value in numbers.items()}
