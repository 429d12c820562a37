"""The summary of one run: numbers that its tables add up to, and the largest of their rows.

Everything is computed from `Shown` alone, when a report needs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tracker.profile import IDLE_CAUSES, IdleCause
from tracker.results.shown_rows import (
    CounterRow,
    IdleCauseRow,
    KernelPipeRow,
    LargestRow,
    MetricRow,
    PeakOwnerRow,
    PeakTotalRow,
)
from tracker.table import AddUp, add_up_rows, sort_largest_first
from tracker.units import NS_PER_S

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.results.shown import Shown

GRAIN: Final = ("stage", "rank", "step")
"""The columns that tell the rows of a part of a run from those of the others."""
PARTS_OF_STEP: Final = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")
RANKS_BESIDE: Final = 4
"""More ranks than this are summed up as the fastest, the median and the slowest one."""
_WORTH_A_SENTENCE: Final = 0.05
"""Part of the step from which on idle time is explained."""
_TIMES_AND_SHARE: Final = (
    "calls", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns", "share",
)  # fmt: skip


def has_device(shown: Shown) -> bool:
    """Return whether the device timeline was measured on any rank; else the host timeline stands in."""
    return "device" in shown.tables["overall"].listed("timeline")


def self_time_column(shown: Shown) -> str:
    """Return the column that orders operators: their self time on the device, or on the host without a device."""
    return "device_self_ns" if has_device(shown) else "host_self_ns"


def list_step_ends(shown: Shown) -> list[int]:
    """Return how long the shortest and the longest step of each row of `steps` took, ns, as far as they are known."""
    ends: list[int] = []
    steps = shown.tables["steps"]
    for name in ("shortest_ns", "longest_ns"):
        if name in steps:
            ends += [end for end in steps.listed(name) if end is not None]
    return ends


def mean_e2e_ns(shown: Shown) -> float | None:
    """Return the mean over the ranks of the span of their device activity, ns; None where none states it."""
    known = [e2e for e2e in shown.tables["overall"].listed("e2e_ns") if e2e is not None]
    return sum(known) / len(known) if known else shown.run.get("e2e_ns")


def whole_step_ns(shown: Shown) -> float:
    """Return the time that the parts of a step are parts of, ns; 0 where no step is known.

    The parts of a run that an earlier step definition cut can be longer than its step.
    """
    numbers = shown.run.get("per_step") or {}
    step_ns = shown.run.get("step_ns") if shown.run["measured_by"] == "step_ns" else None
    return max(step_ns or 0, numbers.get("whole_ns") or 0)


def list_usual_idle_causes(shown: Shown) -> list[IdleCauseRow]:
    """Return the causes of idle time that half of the steps have, the largest first.

    What the first step loads or allocates is no part of a usual one.
    """
    steps = len(shown.tables["steps"])
    causes = []
    for row in shown.tables["idle_causes"].structs(IdleCauseRow):
        if row.per_step_ns and 2 * row.steps >= steps:
            causes.append(row)
    return sorted(causes, key=lambda row: -(row.per_step_ns or 0.0))


class IdleReason(Struct, frozen=True):
    """Why the device idles most. `share_of_idle`: of the idle time of a step.

    `place`: where most of it is, empty where no place is named; `share_of_cause`: how much of it is there.
    """

    cause: IdleCause
    share_of_idle: float
    place: str = ""
    share_of_cause: float = 0.0


def find_idle_reason(shown: Shown) -> IdleReason | None:
    """Return why the device idles most, of a step that idles for a part worth saying; None of any other."""
    causes = list_usual_idle_causes(shown)
    numbers = shown.run.get("per_step") or {}
    whole_ns, idle_ns = numbers.get("whole_ns") or 0, numbers.get("idle_ns") or 0
    if not causes or not whole_ns or idle_ns < _WORTH_A_SENTENCE * whole_ns:
        return None
    largest = causes[0]
    cause = IdleCause(IDLE_CAUSES.index(largest.cause))
    by_place: Counter[str] = Counter()
    for name, place, ns in shown.tables["idle"].rows("cause", "place", "ns"):
        if name == cause.word and place:
            by_place[place] += ns
    share_of_idle = (largest.per_step_ns or 0.0) / idle_ns
    if not by_place:
        return IdleReason(cause, share_of_idle)
    place, ns = by_place.most_common(1)[0]
    return IdleReason(cause, share_of_idle, place, ns / largest.ns)


class StepTimes(Struct, frozen=True):
    """The time of each step. `steps`: their numbers, ascending.

    `by_rank`: the times of each rank, ns, None where it does not state a step; empty where there are many ranks.
    `slowest`, `middle`, `fastest`: of all ranks, of each step, where there are many.
    """

    steps: Sequence[int]
    ranks: int
    by_rank: dict[int, list[float | None]]
    slowest: Sequence[float] = ()
    middle: Sequence[float] = ()
    fastest: Sequence[float] = ()


def list_step_times(shown: Shown) -> StepTimes:
    """Return the time of each step, of each rank or of the slowest, the median and the fastest one of many."""
    times: dict[int, dict[int, float]] = {}
    for step, rank, duration_ns in shown.tables["steps"].rows("step", "rank", "duration_ns"):
        if duration_ns is not None:
            times.setdefault(step, {})[rank] = duration_ns
    steps = sorted(times)
    ranks = sorted({rank for of_step in times.values() for rank in of_step})
    if len(ranks) <= RANKS_BESIDE:
        return StepTimes(steps, len(ranks), {rank: [times[step].get(rank) for step in steps] for rank in ranks})
    of_steps = [list(times[step].values()) for step in steps]
    return StepTimes(
        steps,
        len(ranks),
        {},
        slowest=[max(own) for own in of_steps],
        middle=[median(own) for own in of_steps],
        fastest=[min(own) for own in of_steps],
    )


def sum_largest_rows(rows: Sequence[LargestRow], kind: str, name: str) -> LargestRow:
    """Return one row for several of `largest`: the sums of what is known of their times and shares."""
    return LargestRow(
        kind=kind,
        name=name,
        calls=None,
        total_ns=sum(row.total_ns or 0 for row in rows),
        share=sum(row.share or 0 for row in rows),
        per_step_ns=sum(row.per_step_ns or 0 for row in rows),
        calls_per_step=None,
    )


def sum_operators(shown: Shown) -> Columns:
    """Return times, calls and share of operators by name and shapes, within the grain, most self time first.

    A sum of nothing but missing values is missing; where self times are, totals say which operator is the largest.
    """
    ops = shown.tables["ops"]
    key = [*(name for name in GRAIN if name in ops), "name", "input_shapes"]
    sums: dict[str, AddUp] = dict.fromkeys(_TIMES_AND_SHARE, "known")
    found = add_up_rows(ops, key, {**sums, "min_ns": "min", "max_ns": "max", "per_step_ns": "max"})
    self_time = self_time_column(shown)
    sizes = dict.fromkeys((self_time, self_time.replace("self", "total"), "host_self_ns", "host_total_ns"))
    return sort_largest_first(found, list(sizes), key)


class MemoryCourse(Struct, frozen=True):
    """The size of the memory that was given out over time. `points`: seconds from the first event, and bytes."""

    rank: int
    component: str
    points: tuple[tuple[float, float], ...]


def find_memory_course(shown: Shown) -> MemoryCourse | None:
    """Return the course of the rank and the component that held most; None where none is known."""
    courses: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for rank, component, time_ns, size in shown.tables["memory_curve"].rows(
        "rank", "component", "time_ns", "allocated_bytes"
    ):
        if size is not None:
            courses.setdefault((rank, component), []).append((time_ns / NS_PER_S, size))
    if not courses:
        return None
    rank, component = max(courses, key=lambda key: max(size for _, size in courses[key]))
    return MemoryCourse(rank, component, tuple(courses[rank, component]))


class Peak(Struct, frozen=True):
    """Who held the memory of a rank when it was most.

    `totals`: component -> its peak; `owners`: those of a component together, the largest first. `ranks`: how many ranks
    have peaks.
    """

    rank: int | None
    totals: dict[str, PeakTotalRow]
    owners: list[PeakOwnerRow]
    ranks: int


def find_highest_peak(shown: Shown) -> Peak:
    """Return the peak of the rank with the highest one, of all components together; the first of equal ones."""
    totals = [*shown.tables["memory_peak_totals"].structs(PeakTotalRow)]
    sizes: Counter[int] = Counter()
    for total in totals:
        sizes[total.rank] += total.bytes or 0
    highest = max(sizes, key=lambda rank: (sizes[rank], -rank), default=None)
    of_rank = {total.component: total for total in totals if total.rank == highest}
    order = list(of_rank)
    owners = [owner for owner in shown.tables["memory_peak"].structs(PeakOwnerRow) if owner.rank == highest]
    owners.sort(key=lambda owner: (order.index(owner.component), -(owner.bytes or 0)))
    return Peak(highest, of_rank, owners, len(sizes))


def order_metrics(shown: Shown) -> list[MetricRow]:
    """Return the metrics of kernels in the order of these, those of each that are nothing but zeros last."""
    rows = [*shown.tables["kernel_metrics"].structs(MetricRow)]
    places: dict[_Kernel, int] = {}
    for row in rows:
        places.setdefault(_kernel_of(row), len(places))
    return sorted(rows, key=lambda row: (places[_kernel_of(row)], is_zero(row)))


class KernelPipes(Struct, frozen=True):
    """The pipes of a kernel that worked longest; without any a row that says so."""

    rows: list[KernelPipeRow]

    @property
    def first(self) -> KernelPipeRow:
        """The first one, which stands for the kernel."""
        return self.rows[0]


def group_pipes(shown: Shown) -> list[KernelPipes]:
    """Return the rows of kernel_pipes by their kernels, in order."""
    pipes: dict[_Kernel, list[KernelPipeRow]] = {}
    for row in shown.tables["kernel_pipes"].structs(KernelPipeRow):
        pipes.setdefault(_kernel_of(row), []).append(row)
    return [KernelPipes(rows) for rows in pipes.values()]


def order_counters(shown: Shown) -> list[CounterRow]:
    """Return every number of the profiler's own tables, those that never were anything but zero last."""
    return sorted(shown.tables["counters"].structs(CounterRow), key=is_zero)


def is_zero(row: MetricRow | CounterRow) -> bool:
    """Return whether a measurement was never anything but zero."""
    return not (row.mean or row.min or row.max)


class _Kernel(Struct, frozen=True):
    """What tells a kernel from others."""

    rank: int | None
    step: int | None
    name: str
    canonical_name: str | None
    type: str | None
    core_type: str | None
    input_shapes: str | None


def _kernel_of(row: MetricRow | KernelPipeRow) -> _Kernel:
    return _Kernel(row.rank, row.step, row.name, row.canonical_name, row.type, row.core_type, row.input_shapes)
