"""The own time of each rank, which rank of a stage holds the others back, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.detect.peers import median_of_others
from tracker.detect.stages import Stage, known
from tracker.ranks.exchange import NO_WAITS, RankWaits
from tracker.ranks.work import Work
from tracker.results import UNEVEN
from tracker.results.cluster import PipelineRow, RankRow, RankStepRow, StageRow
from tracker.schema.column_names import (
    COMPUTE_NS,
    DATA_LOADING_NS,
    EXPOSED_COPY_NS,
    HOST,
    PEAK_ALLOCATED_BYTES,
    RANK,
    STAGE,
)

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.compare.side import LoadedSide


class JudgedRank(RankRow, frozen=True, kw_only=True):
    """A row of a rank, and what tables of stages and losses are made of. `exposed_wait_ns`: what no compute hides of
    its waiting for others, that for other stages aside; `profiler_bubble_ns`: what the profiler calls a bubble. Both
    are medians over its steps, None where a step does not know it.
    """

    exposed_wait_ns: float | None = None
    profiler_bubble_ns: float | None = None


class _UsualStep(Struct, frozen=True, kw_only=True):
    """The steps of a rank: how many there are, and medians of what each holds, in ns; None where no step states it."""

    steps: int | None = None
    step_ns: float | None = None
    compute_ns: float | None = None
    exposed_communication_ns: float | None = None
    communication_ns: float | None = None
    overlap_ns: float | None = None
    idle_ns: float | None = None
    data_loading_ns: float | None = None
    preparing_ns: float | None = None
    profiler_bubble_ns: float | None = None


class _Cause(Struct, frozen=True):
    """Why a rank is slow, and where on a slow host; None for not known."""

    cause: str | None = None
    place: str | None = None


def rank_rows(
    side: LoadedSide,
    stages: Sequence[Stage],
    work: Work,
    waits: Mapping[int, RankWaits],
    late_calls: Mapping[int, int] | None,
) -> list[JudgedRank]:
    """Return a row for each captured rank, those with a verdict first, then by their own time to that of their peers.

    waits: of each rank, for others.
    late_calls: how often each rank joined a collective last; None where that is not known.
    """
    places = {rank: (stage, at) for stage in stages for at, rank in enumerate(stage.ranks)}
    usual_steps = _find_usual_steps(side)
    partial = {rank for _, rank in side.partial.captures_of_partial_steps}
    rows = []
    for rank, host, number, peak in side.captures.rows(RANK, HOST, STAGE, PEAK_ALLOCATED_BYTES):
        step = usual_steps.get(rank, _UsualStep())
        of_rank = waits.get(rank, NO_WAITS)
        if rank in partial:
            # what is lost makes the parts of a step too small, but not the step
            step = _UsualStep(steps=step.steps, step_ns=step.step_ns)
            of_rank = RankWaits(of_rank.wait_ns, None, of_rank.exposed_wait_ns)
        row = JudgedRank(
            rank=rank,
            host=host or None,
            # -1 stands for no stage
            stage=None if (number or 0) < 0 else number,
            steps=step.steps,
            step_ns=step.step_ns,
            partial=1 if rank in partial else None,
            late_calls=None if late_calls is None else late_calls.get(rank, 0),
            compute_ns=step.compute_ns,
            exposed_communication_ns=step.exposed_communication_ns,
            communication_ns=step.communication_ns,
            overlap_ns=step.overlap_ns,
            wait_ns=of_rank.wait_ns,
            idle_ns=step.idle_ns,
            data_loading_ns=step.data_loading_ns,
            bubble_ns=of_rank.bubble_ns,
            preparing_ns=step.preparing_ns,
            peak_allocated_bytes=peak,
            exposed_wait_ns=of_rank.exposed_wait_ns,
            profiler_bubble_ns=step.profiler_bubble_ns,
        )
        if rank in places:
            row = _judge_rank(row, *places[rank], work)
        rows.append(row)
    rows.sort(key=lambda row: (row.verdict is None, -(row.own_ratio or 0), row.rank))
    return rows


def _judge_rank(row: JudgedRank, stage: Stage, at: int, work: Work) -> JudgedRank:
    """Return the row of a rank with what is known of it beside its peers. `at`: its place in its stage."""
    judged = stage.judged
    verdict = judged.verdict[at]
    found = _find_cause(stage, at, work) if verdict else _Cause()
    return replace(
        row,
        own_ns=known(np.median(stage.own[at])) if stage.steps else None,
        own_ratio=known(judged.ratio[at]),
        excess_ns=known(judged.excess[at]),
        cost_ns=known(judged.cost[at]),
        slowest_steps=int(judged.slowest[at]),
        q=known(judged.q[at]),
        verdict=verdict,
        cause=found.cause,
        place=found.place,
        device_score=work.score(row.rank, stage.ranks),
    )


def _find_usual_steps(side: LoadedSide) -> dict[int, _UsualStep]:
    """Return of each rank the median over its steps of what a step holds, and how many steps there are."""
    steps: dict[int, list[tuple[Any, ...]]] = {}
    names = (
        "steps", "duration_ns", "whole_ns", "compute_ns", "exposed_communication_ns", "communication_ns", "overlap_ns",
        "idle_ns", "data_loading_ns", "preparing_ns", "bubble_ns",
    )  # fmt: skip
    for rank, *numbers in side.steps.rows(RANK, *names):
        steps.setdefault(rank, []).append(tuple(numbers))
    return {rank: _make_usual_step(of_rank) for rank, of_rank in steps.items()}


def _make_usual_step(steps: Sequence[tuple[Any, ...]]) -> _UsualStep:
    """Return the usual step of a rank from the numbers of each of its steps, in the order of `_find_usual_steps`."""
    counts, *columns = zip(*steps, strict=True)
    duration, whole, compute, exposed, communication, overlap, idle, loading, preparing, bubble = map(
        _find_median, columns
    )
    return _UsualStep(
        steps=sum(counts),
        step_ns=whole if duration is None else duration,
        compute_ns=compute,
        exposed_communication_ns=exposed,
        communication_ns=communication,
        overlap_ns=overlap,
        idle_ns=idle,
        data_loading_ns=loading,
        preparing_ns=preparing,
        profiler_bubble_ns=bubble,
    )


def _find_median(values: Iterable[float | None]) -> float | None:
    """Return the median of the values that are known, None where none is."""
    stated = [value for value in values if value is not None]
    return float(median(stated)) if stated else None


def _find_cause(stage: Stage, at: int, work: Work) -> _Cause:
    """Return what a rank does longer than its peers, if half of the difference is of one kind; and where, on a slow
    host.
    """
    longer_ns = float(np.median(stage.own[at] - median_of_others(stage.own)[at]))
    longer_parts = {}
    for name, part in stage.parts.items():
        if not np.isnan(part).any():
            longer_parts[name] = float(np.median(part[at] - median_of_others(part)[at]))
    cause = _name_cause(longer_ns, longer_parts)
    peers = [rank for rank in stage.ranks if rank != stage.ranks[at]]
    if cause == "host":
        return _Cause(cause, work.place(stage.ranks[at], peers, longer_ns / 2 * len(stage.steps)))
    slower_calls_ns = work.per_call(stage.ranks[at], peers) if cause == "compute" else None
    if slower_calls_ns is not None:
        # of all steps, as the time of the calls is
        half_ns = longer_parts[COMPUTE_NS] * len(stage.steps) / 2
        cause = "slow device" if slower_calls_ns >= half_ns else "more work"
    return _Cause(cause or None)


def _name_cause(longer_ns: float, longer_parts: Mapping[str, float]) -> str:
    """Return the kind of work that makes half of what an own time is longer by, "" where none does. `longer_parts`: by
    how much each part that is known is longer.
    """
    half_ns = longer_ns / 2
    copies_ns = longer_parts.get(EXPOSED_COPY_NS, 0.0)
    if longer_ns <= 0:
        return ""
    if longer_parts.get(DATA_LOADING_NS, 0.0) >= half_ns:
        return "data loading"
    if COMPUTE_NS not in longer_parts:
        return ""
    # what the device does not do is the host's
    if longer_ns - longer_parts[COMPUTE_NS] - copies_ns >= half_ns:
        return "host"
    if copies_ns >= half_ns:
        return "copies"
    return "compute" if longer_parts[COMPUTE_NS] >= half_ns else ""


def cause_of_slowest(stage: Stage) -> str:
    """Return what the slowest rank of each step does longer than the others, whichever it is, if half of the difference
    is of one kind in the median of the steps; "" for none.
    """
    steps = np.arange(len(stage.steps))
    slowest = stage.own.argmax(axis=0)
    longer_ns = float(np.median((stage.own - median_of_others(stage.own))[slowest, steps]))
    longer_parts = {}
    for name, part in stage.parts.items():
        if not np.isnan(part).any():
            longer_parts[name] = float(np.median((part - median_of_others(part))[slowest, steps]))
    return _name_cause(longer_ns, longer_parts)


def step_rows(stages: Iterable[Stage], ranks: Sequence[RankRow]) -> list[RankStepRow]:
    """Return the own time of each rank and step, and its quotient to the median of the peers; in the order of `ranks`,
    each with all of its steps.
    """
    rows = []
    for stage in stages:
        alone = len(stage.ranks) < 2
        others = np.full(stage.own.shape, np.nan) if alone else median_of_others(stage.own)
        ratios = stage.own / np.where(others > 0, others, np.nan)
        for at, rank in enumerate(stage.ranks):
            for place, step in enumerate(stage.steps):
                own_ns, ratio = int(stage.own[at, place]), known(ratios[at, place])
                rows.append(RankStepRow(rank=rank, step=step, own_ns=own_ns, own_ratio=ratio))
    places = {row.rank: place for place, row in enumerate(ranks)}
    rows.sort(key=lambda row: (places[row.rank], row.step))
    return rows


def stage_rows(
    stages: Sequence[Stage],
    ranks: Sequence[JudgedRank],
    microbatches: int | None,
    moves: Mapping[int | None, bool | None],
) -> list[StageRow]:
    """Return a row per stage: medians over its ranks, and who takes longest. `moves`: of uneven stages, by number,
    whether their work is, None where that is not known.
    """
    return [_make_stage_row(stage, ranks, microbatches, bool(moves.get(stage.number))) for stage in stages]


def _make_stage_row(stage: Stage, ranks: Sequence[JudgedRank], microbatches: int | None, is_uneven: bool) -> StageRow:
    members = [row for row in ranks if row.rank in stage.ranks]
    # without a step that all ranks have, no own time is known
    timed = [row for row in members if row.own_ns is not None]
    longest = max(timed, key=lambda row: row.own_ns or 0.0, default=None)
    own_max_ns = longest.own_ns if longest is not None else None
    step_ns = _find_median(row.step_ns for row in members)
    bubble_ns = _find_median(row.bubble_ns for row in members)
    return StageRow(
        stage=stage.number,
        ranks=len(stage.ranks),
        step_ns=step_ns,
        own_ns=_find_median(row.own_ns for row in members),
        own_max_ns=own_max_ns,
        own_max_rank=longest.rank if longest is not None else None,
        spread=stage.spread,
        verdict=UNEVEN if is_uneven else None,
        compute_ns=_find_median(row.compute_ns for row in members),
        exposed_communication_ns=_find_median(row.exposed_communication_ns for row in members),
        idle_ns=_find_median(row.idle_ns for row in members),
        bubble_ns=bubble_ns,
        bubble_share=bubble_ns / step_ns if bubble_ns is not None and step_ns else None,
        profiler_bubble_ns=_find_median(row.profiler_bubble_ns for row in members),
        preparing_ns=_find_median(row.preparing_ns for row in members),
        tau_ns=own_max_ns / microbatches if microbatches and own_max_ns else None,
    )


def pipeline_rows(stages: Sequence[Stage], microbatches: int | None, source: str) -> list[PipelineRow]:
    """Return the closed form of a pipeline: how long it takes, with even ranks, with even stages; medians over the
    steps. One row, none for one stage.

    T = sum of tau + (m - 1) x the largest, tau of a stage the own time of its slowest rank by m, the microbatches:
    1F1B without overlap (Narayanan et al., SC'21). slowdown: T by that of a job of equal ranks (Lin et al., OSDI'25).
    """
    if len(stages) < 2 or not all(stage.steps for stage in stages):
        return []
    without_model = PipelineRow(stages=len(stages), microbatches=microbatches, microbatches_from=source or None)
    if microbatches is None:
        return [without_model]
    steps = sorted(set.intersection(*({*stage.steps} for stage in stages)))
    if not steps:
        return [without_model]
    own = [stage.own[:, [stage.steps.index(step) for step in steps]] / microbatches for stage in stages]
    count = len(stages) + microbatches - 1
    taus, even = np.array([one.max(axis=0) for one in own]), np.array([np.median(one, axis=0) for one in own])
    model, mean = _pipeline_ns(taus, microbatches), np.concatenate(own).mean(axis=0)
    row = replace(
        without_model,
        model_ns=float(np.median(model)),
        even_ns=float(np.median(_pipeline_ns(even, microbatches))),
        flat_ns=float(np.median(count * even.mean(axis=0))),
        slowdown=float(np.median(model / (count * mean))),
        ideal_bubble_share=(len(stages) - 1) / count,
    )
    return [row]


def _pipeline_ns(taus: F64, microbatches: int) -> F64:
    """Return how long the pipeline takes in each step; `taus`: ns of a microbatch, a row per stage."""
    found: F64 = taus.sum(axis=0) + (microbatches - 1) * taus.max(axis=0)
    return found
