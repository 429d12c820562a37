"""Slow steps of a side with what makes them slow, and the causes of the mean step, which slow steps move alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import fsum, log
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.compare.coverage import find_idle_rules
from tracker.compare.overall import find_costly_runs, step_numbers
from tracker.compare.overall_rows import EXPOSED, sum_waits_of_steps
from tracker.detect.slow_steps import find_slow_steps
from tracker.profile import IDLE_CAUSES, IdleCause
from tracker.results import MeanCause, MeanChange, SlowStep
from tracker.schema.column_names import (
    CAUSE,
    COMPUTE_NS,
    DATA_LOADING_IDLE_NS,
    DATA_LOADING_NS,
    DURATION_NS,
    EXPOSED_COPY_NS,
    IDLE_NS,
    MARKER_NS,
    NS,
    RANK,
    RUN_ID,
    STAGE,
    START_NS,
    STEP,
    STEPS,
)
from tracker.store import queries
from tracker.store.samples.statistics import mean_over_steps, over_ranks, without_filling

if TYPE_CHECKING:
    from tracker.columns import F64, I64
    from tracker.compare.side import LoadedSide

_COMPUTE: Final = "compute"
_COPIES: Final = "exposed copies"
_IDLE: Final = "idle"
_LOADING: Final = IdleCause.DATA_LOADING.word
_COMMUNICATION: Final = "exposed communication"
_WAITING: Final = f"waiting for other ranks ({_COMMUNICATION})"
_MAY_BE_OF_OTHERS: Final = (_WAITING, _COMMUNICATION, f"{IdleCause.DEPENDENCY.word} ({_IDLE})")
"""Causes that may be another rank's: it is late, and this one waits."""
_TRANSFERS: Final = f"transfers ({_COMMUNICATION})"
_NO_LOADING: Final = "all but data loading"
_REST: Final = "rest"
_ROUNDING: Final = 0.01
"""Part of the idle time of a step by which its causes may miss it: a mean of many steps is rounded."""
_EDGES: Final = 0.1
"""Part of the exposed communication of a step that may lie outside of its collectives."""
_EQUAL: Final = 1e-6
"""Part of a time below which two are as good as equal."""
_LEAST_OF_CHANGE: Final = 0.02
"""Part of the change of the mean below which a cause is a part of the rest."""
_OTHER_THAN_MEDIAN: Final = 0.05
"""Part of the step by which mean and median step change otherwise, so that the mean has causes of its own."""

Sides = tuple["LoadedSide", "LoadedSide"]


class _StepParts(Struct, frozen=True):
    """What each row of the steps of a side is made of, ns, nan where that is not known.

    `loading`: data loading; `loading_idle`: that while the device idles.
    `waiting`: in the exposed communication.
    `idle_causes`: None where they are not known of all steps.
    """

    compute: F64
    exposed: F64
    copies: F64
    idle: F64
    loading: F64
    loading_idle: F64
    waiting: F64
    idle_causes: Mapping[str, F64] | None


def list_slow_steps(side: LoadedSide) -> tuple[SlowStep, ...]:
    """Return the slow steps of the runs whose mean step they make longer by at least 1 %, by what they took longer.

    One row for each step of a run: of several slow ranks that of one that does not wait for the others. Nothing of
    captures whose steps are not judged, and of a first step that holds the filling of the queue.
    """
    costly_runs = find_costly_runs(side)
    if not costly_runs:
        return ()
    parts = _measure_parts(side)
    ranks_of_run: dict[int, list[int]] = {run_id: [] for run_id in side.run_ids}
    for run_id, rank in side.captures.rows(RUN_ID, RANK):
        ranks_of_run[run_id].append(rank)
    ranks_of_step: dict[tuple[int, int], list[SlowStep]] = {}
    for run_id in costly_runs:
        for rank in ranks_of_run[run_id]:
            for slow in _list_slow_steps_of_rank(side, parts, run_id, rank):
                ranks_of_step.setdefault((run_id, slow.step), []).append(slow)
    slow_steps = []
    for (run_id, _), slow_ranks in ranks_of_step.items():
        main = min(slow_ranks, key=_by_own_cause)
        is_of_ranks, is_of_runs = len(ranks_of_run[run_id]) > 1, len(side.run_ids) > 1
        slow_steps.append(replace(main, slow_ranks=len(slow_ranks), is_of_ranks=is_of_ranks, is_of_runs=is_of_runs))
    return tuple(sorted(slow_steps, key=lambda one: (-one.longer_ns, one.run_id, one.step)))


def _by_own_cause(slow: SlowStep) -> tuple[bool, bool, float, int]:
    """Order the slow ranks of a step: first one with a cause that is its own, of several the one that lost most."""
    return not slow.cause, slow.cause in _MAY_BE_OF_OTHERS, -slow.longer_ns, slow.rank


def _list_slow_steps_of_rank(side: LoadedSide, parts: _StepParts, run_id: int, rank: int) -> Iterator[SlowStep]:
    """Yield the slow steps of a rank; none of a capture whose steps are not judged."""
    if (run_id, rank) in side.partial.captures_of_partial_steps:
        return
    rows = _rows_of_rank(side, run_id, rank)
    steps, weights = side.steps.integers(STEP)[rows], side.steps.reals(STEPS)[rows]
    times = side.steps.reals(DURATION_NS)[rows]
    lasting = without_filling(times, side.steps.reals(MARKER_NS)[rows])
    candidates = _list_candidates(parts, rows)
    has_parts = bool(candidates.keys() - {_LOADING})
    for slow in find_slow_steps(times, weights, candidates):
        at = slow.place
        # a first step is long where it holds the filling of the queue
        if not np.isnan(lasting[at]):
            yield SlowStep(
                run_id, rank, int(steps[at]), slow.ns, slow.longer_ns, slow.cause, slow.cause_ns,
                steps=int(weights[at]), has_parts=has_parts,
            )  # fmt: skip


def _rows_of_rank(side: LoadedSide, run_id: int, rank: int) -> I64:
    """Return the rows of the steps of a rank of which the time is known, in order of time."""
    steps = side.steps
    is_own = (steps.integers(RUN_ID) == run_id) & (steps.integers(RANK) == rank)
    rows = np.flatnonzero(is_own & steps.known(DURATION_NS))
    return rows[np.argsort(steps.reals(START_NS)[rows], kind="stable")]


def _list_candidates(parts: _StepParts, rows: I64) -> dict[str, F64]:
    """Return what may make a step of a rank slow, and its time in each: the most exact that is known of all steps.

    Data loading stands first: on a host it is a part of other parts, and says more.
    """
    found: dict[str, F64] = {}
    if parts.idle_causes is not None:
        found |= {_name_idle(cause): own[rows] for cause, own in parts.idle_causes.items()}
    else:
        loading_idle = parts.loading_idle[rows]
        is_known = not np.isnan(loading_idle).any()
        found[_LOADING] = loading_idle if is_known else parts.loading[rows]
        found[_IDLE] = parts.idle[rows]
    waiting, exposed = parts.waiting[rows], parts.exposed[rows]
    if np.isnan(waiting).any():
        found[_COMMUNICATION] = exposed
    else:
        found |= {_WAITING: waiting, _TRANSFERS: exposed - waiting}
    found |= {_COPIES: parts.copies[rows], _COMPUTE: parts.compute[rows]}
    return {cause: own for cause, own in found.items() if not np.isnan(own).all()}


def _name_idle(cause: str) -> str:
    if cause == _LOADING:
        return cause
    if cause == IdleCause.UNKNOWN.word:
        return f"{_IDLE}, cause unknown"
    return f"{cause} ({_IDLE})"


def _measure_parts(side: LoadedSide) -> _StepParts:
    """Return what the steps of a side are made of."""

    def measure() -> _StepParts:
        steps = side.steps
        return _StepParts(
            compute=steps.reals(COMPUTE_NS),
            exposed=steps.reals(EXPOSED),
            copies=steps.reals(EXPOSED_COPY_NS),
            idle=steps.reals(IDLE_NS),
            loading=steps.reals(DATA_LOADING_NS),
            loading_idle=steps.reals(DATA_LOADING_IDLE_NS),
            waiting=_measure_waiting(side),
            idle_causes=_measure_idle(side),
        )

    return side.remember("parts of steps", measure)


def _measure_waiting(side: LoadedSide) -> F64:
    """Return the waiting in the exposed communication of each step, nan where it is not known."""
    exposed = side.steps.reals(EXPOSED)
    waiting = np.full(len(exposed), np.nan)
    waiting[exposed == 0] = 0.0
    known = sum_waits_of_steps(side)
    for row, key in enumerate(side.steps.rows(RUN_ID, RANK, STEP)):
        of_calls, wait = known.get(key, (np.nan, np.nan))
        if wait <= exposed[row] and abs(of_calls - exposed[row]) <= _EDGES * exposed[row]:
            waiting[row] = wait
    return waiting


def _measure_idle(side: LoadedSide) -> dict[str, F64] | None:
    """Return the idle time of each step by cause; None where they are not known of each step, or by several rules."""
    if not side.may_have_rows(queries.idle) or len(find_idle_rules([side])) > 1:
        return None
    place = {key: row for row, key in enumerate(side.steps.rows(RUN_ID, RANK, STEP))}
    weights, idle = side.steps.reals(STEPS), side.steps.reals(IDLE_NS)
    causes = {cause: np.zeros(len(place)) for cause in IDLE_CAUSES}
    for run_id, rank, step, cause, ns in side.query(queries.idle).rows(RUN_ID, RANK, STEP, CAUSE, NS):
        row = place.get((run_id, rank, step))
        if row is not None and cause in causes:
            causes[cause][row] += ns / weights[row]
    whole = np.sum([*causes.values()], axis=0)
    # of a step without a time there is no idle time either
    is_whole = np.isnan(idle) | (np.abs(whole - idle) <= _ROUNDING * idle + 1)
    return causes if is_whole.all() else None


def explain_mean(sides: Sides) -> MeanChange | None:
    """Return what carries the change of the mean step, where it changed otherwise than the median step; None else.

    Each part is the mean over the steps of a rank, the median over the ranks. Over the runs the change of the geometric
    mean is shared out so that the parts of each run count by what they change of it. What is small, and what medians
    over ranks leave, is the rest: all of it adds up exactly.
    """
    numbers = [step_numbers(side) for side in sides]
    names = ("step_ns", "mean_step_ns")
    if not all(one.get(name) for one in numbers for name in names):
        return None
    median_before, before = (numbers[0][name] for name in names)
    median_after, after = (numbers[1][name] for name in names)
    delta_ns = after - before
    if abs(delta_ns - (median_after - median_before)) < _OTHER_THAN_MEDIAN * median_before:
        return None
    means = [_mean_parts(side, leaves) for side, leaves in zip(sides, _choose_leaves(sides), strict=True)]
    causes = []
    for name in means[0].parts:
        change_ns = _share_change(name, means, before, after)
        if change_ns and abs(change_ns) >= _LEAST_OF_CHANGE * abs(delta_ns):
            causes.append(MeanCause(name, change_ns))
    if not causes:
        return None
    causes.sort(key=lambda cause: (-abs(cause.delta_ns), cause.name))
    rest = fsum([delta_ns, *(-cause.delta_ns for cause in causes)])
    if rest:
        causes.append(MeanCause(_REST, rest))
    return MeanChange(before, after, delta_ns, tuple(causes))


class _Means(Struct, frozen=True):
    """The mean step of each run, and that of each of its parts, ns."""

    whole: F64
    parts: Mapping[str, F64]


def _choose_leaves(sides: Sides) -> list[dict[str, F64]]:
    """Return what the steps of both sides are made of, by the most exact that both know: parts that add up to them."""
    parts = [_measure_parts(side) for side in sides]
    has_waiting = all(_is_known_with(one.waiting, one.exposed) for one in parts)
    has_causes = all(one.idle_causes is not None for one in parts) and len(find_idle_rules(sides)) < 2
    has_loading = all(_is_known_with(one.loading_idle, one.idle) for one in parts)
    leaves = []
    for side, one in zip(sides, parts, strict=True):
        if not all(_is_known(other.compute) for other in parts):
            leaves.append({_LOADING: one.loading, _NO_LOADING: side.steps.reals(DURATION_NS) - one.loading})
            continue
        own = {_COMPUTE: one.compute, _COPIES: one.copies}
        if has_waiting:
            own |= {_WAITING: one.waiting, _TRANSFERS: one.exposed - one.waiting}
        else:
            own[_COMMUNICATION] = one.exposed
        if has_causes and one.idle_causes is not None:
            own |= {_name_idle(cause): ns for cause, ns in one.idle_causes.items()}
        elif has_loading:
            own |= {_LOADING: one.loading_idle, _IDLE: one.idle - one.loading_idle}
        else:
            own[_IDLE] = one.idle
        leaves.append(own)
    return leaves


def _is_known_with(part: F64, whole: F64) -> bool:
    """Return whether each step with a known time has a known part, too."""
    return not np.isnan(part[~np.isnan(whole)]).any()


def _is_known(values: F64) -> bool:
    return bool((~np.isnan(values)).any())


def _mean_parts(side: LoadedSide, leaves: Mapping[str, F64]) -> _Means:
    """Return the mean over the steps of a rank, the median over ranks, of the step and of its parts."""
    duration, marker = side.steps.reals(DURATION_NS), side.steps.reals(MARKER_NS)
    weights = side.steps.reals(STEPS)
    of_runs = []
    for run_id in side.run_ids:
        of_ranks, stages = [], []
        for own_run_id, rank, stage in side.captures.rows(RUN_ID, RANK, STAGE):
            if own_run_id != run_id:
                continue
            rows = _rows_of_rank(side, run_id, rank)
            if not len(rows):
                continue
            is_left_out = np.isnan(without_filling(duration[rows], marker[rows]))
            table = np.array([own[rows] for own in (duration, *leaves.values())])
            of_ranks.append(mean_over_steps(np.where(is_left_out, np.nan, table), weights[rows]))
            stages.append(stage)
        if not of_ranks:
            continue
        numbers = np.array(of_ranks).T
        # a rank without a part has it with 0: it counts, so that parts add up
        of_runs.append(over_ranks(numbers, np.array(stages), np.broadcast_to(numbers[0], numbers.shape)))
    whole, *parts = np.array(of_runs).T
    return _Means(whole, dict(zip(leaves, parts, strict=True)))


def _share_change(name: str, means: Sequence[_Means], before: float, after: float) -> float:
    """Return how much of the change between two geometric means a part carries, over all pairs of runs; nan where it is
    not known. The parts of runs that add up to their mean steps add up to the change.
    """
    earlier, later = means
    shares = []
    for old, old_part in zip(earlier.whole, earlier.parts[name], strict=True):
        for new, new_part in zip(later.whole, later.parts[name], strict=True):
            shares.append((new_part - old_part) / _find_logarithmic_mean(new, old))
    share = float(np.nan_to_num(shares).mean())
    return _find_logarithmic_mean(after, before) * share


def _find_logarithmic_mean(one: float, other: float) -> float:
    """Return the number by which the difference of two is to be divided to have the difference of their logarithms."""
    if abs(one - other) < _EQUAL * other:
        return (one + other) / 2
    return (one - other) / log(one / other)
