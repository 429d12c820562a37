"""The own time of each rank, which rank of a stage holds the others back, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracker.detect.peers import median_of_others
from tracker.detect.stages import Stage, known
from tracker.ranks.work import Work
from tracker.results import UNEVEN

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.compare.side import LoadedSide

_SUMMED: Final = (
    "compute_ns", "exposed_communication_ns", "idle_ns", "communication_ns", "overlap_ns", "data_loading_ns",
    "preparing_ns", "bubble_ns",
)  # fmt: skip
Row = dict[str, Any]


def rank_rows(
    side: LoadedSide, stages: Sequence[Stage], work: Work, per_rank: Mapping[int, Mapping[str, Any]]
) -> list[Row]:
    """A row for each captured rank; `per_rank`: what else is known of it, per step."""
    place = {rank: (stage, at) for stage in stages for at, rank in enumerate(stage.ranks)}
    steps = _medians(side)
    partial = {rank for _, rank in side.partial.captures_of_partial_steps}
    rows = []
    for rank, host, number, peak in side.captures.rows("rank", "host", "stage", "peak_allocated_bytes"):
        row: Row = {"rank": rank, "host": host or None, "stage": None if (number or 0) < 0 else number}
        row |= {"peak_allocated_bytes": peak, **steps.get(rank, {}), **per_rank.get(rank, {})}
        if rank in partial:
            row |= {"partial": 1, **dict.fromkeys((*_SUMMED, "profiler_bubble_ns"))}
        if rank in place:
            stage, at = place[rank]
            judged = stage.judged
            row |= {
                "own_ns": known(np.median(stage.own[at])) if stage.steps else None,
                "own_ratio": known(judged.ratio[at]), "excess_ns": known(judged.excess[at]),
                "cost_ns": known(judged.cost[at]), "slowest_steps": int(judged.slowest[at]),
                "q": known(judged.q[at]), "verdict": judged.verdict[at],
                **(_cause(stage, at, work) if judged.verdict[at] else {}),
                "device_score": work.score(rank, stage.ranks),
            }  # fmt: skip
        rows.append(row)
    return rows


def _medians(side: LoadedSide) -> dict[int, Row]:
    """Of each rank the median over its steps of what a step holds, and how many steps there are."""
    names = ("duration_ns", "whole_ns", *_SUMMED)
    values: dict[int, list[list[Any]]] = {}
    for rank, *numbers in side.steps.rows("rank", "steps", *names):
        values.setdefault(rank, []).append(numbers)
    found: dict[int, Row] = {}
    for rank, of_steps in values.items():
        counts, *columns = zip(*of_steps, strict=True)
        stated = [[value for value in column if value is not None] for column in columns]
        row: Row = {"steps": sum(counts)}
        row |= {name: float(median(own)) if own else None for name, own in zip(names, stated, strict=True)}
        row["step_ns"] = row["duration_ns"] if row["duration_ns"] is not None else row["whole_ns"]
        row["profiler_bubble_ns"] = row.pop("bubble_ns")
        found[rank] = row
    return found


def _cause(stage: Stage, at: int, work: Work) -> Row:
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
        return {"cause": cause, "place": work.place(stage.ranks[at], peers, longer_ns / 2 * len(stage.steps))}
    slower_calls_ns = work.per_call(stage.ranks[at], peers) if cause == "compute" else None
    if slower_calls_ns is not None:
        # of all steps, as the time of the calls is
        half_ns = longer_parts["compute_ns"] * len(stage.steps) / 2
        cause = "slow device" if slower_calls_ns >= half_ns else "more work"
    return {"cause": cause} if cause else {}


def _name_cause(longer_ns: float, longer_parts: Mapping[str, float]) -> str:
    """Return the kind of work that makes half of what an own time is longer by, "" where none does. `longer_parts`: by
    how much each part that is known is longer.
    """
    half_ns = longer_ns / 2
    copies_ns = longer_parts.get("exposed_copy_ns", 0.0)
    if longer_ns <= 0:
        return ""
    if longer_parts.get("data_loading_ns", 0.0) >= half_ns:
        return "data loading"
    if "compute_ns" not in longer_parts:
        return ""
    # what the device does not do is the host's
    if longer_ns - longer_parts["compute_ns"] - copies_ns >= half_ns:
        return "host"
    if copies_ns >= half_ns:
        return "copies"
    return "compute" if longer_parts["compute_ns"] >= half_ns else ""


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


def step_rows(stages: Iterable[Stage]) -> list[Row]:
    """The own time of each rank and step, and its quotient to the median of the peers."""
    rows = []
    for stage in stages:
        alone = len(stage.ranks) < 2
        others = np.full(stage.own.shape, np.nan) if alone else median_of_others(stage.own)
        ratios = stage.own / np.where(others > 0, others, np.nan)
        for at, rank in enumerate(stage.ranks):
            for place, step in enumerate(stage.steps):
                ratio = known(ratios[at, place])
                rows.append({"rank": rank, "step": step, "own_ns": int(stage.own[at, place]), "own_ratio": ratio})
    return rows


def stage_rows(
    stages: Sequence[Stage], ranks: Sequence[Row], microbatches: int | None, moves: Mapping[int | None, bool | None]
) -> list[Row]:
    """Return a row per stage: medians over its ranks, and who takes longest. `moves`: of uneven stages, by number,
    whether their work is, None where that is not known.
    """
    rows = []
    for stage in stages:
        own = [row for row in ranks if row["rank"] in stage.ranks]
        longest = max(own, key=lambda row: row["own_ns"] or 0.0)
        row: Row = {"stage": stage.number, "ranks": len(stage.ranks), "spread": stage.spread}
        for name in ("step_ns", "own_ns", *_SUMMED[:3], "preparing_ns", "bubble_ns", "profiler_bubble_ns"):
            stated = [one[name] for one in own if one.get(name) is not None]
            row[name] = float(np.median(stated)) if stated else None
        row |= {"own_max_ns": longest["own_ns"], "own_max_rank": longest["rank"]}
        row["verdict"] = UNEVEN if moves.get(stage.number) else None
        if row["bubble_ns"] is not None and row["step_ns"]:
            row["bubble_share"] = row["bubble_ns"] / row["step_ns"]
        row["tau_ns"] = longest["own_ns"] / microbatches if microbatches and longest["own_ns"] else None
        rows.append(row)
    return rows


def pipeline_row(stages: Sequence[Stage], microbatches: int | None, source: str) -> Row | None:
    """The closed form of a pipeline: how long it takes, with even ranks, with even stages; medians over the steps, None
    for one stage.

    T = sum of tau + (m - 1) x the largest, tau of a stage the own time of its slowest rank by m, the microbatches:
    1F1B without overlap (Narayanan et al., SC'21). slowdown: T by that of a job of equal ranks (Lin et al., OSDI'25).
    """
    if len(stages) < 2 or not all(stage.steps for stage in stages):
        return None
    row: Row = {"stages": len(stages), "microbatches": microbatches, "microbatches_from": source or None}
    if microbatches is None:
        return row
    steps = sorted(set.intersection(*({*stage.steps} for stage in stages)))
    if not steps:
        return row
    own = [stage.own[:, [stage.steps.index(step) for step in steps]] / microbatches for stage in stages]
    count = len(stages) + microbatches - 1
    taus, even = np.array([one.max(axis=0) for one in own]), np.array([np.median(one, axis=0) for one in own])
    model, mean = _whole(taus, microbatches), np.concatenate(own).mean(axis=0)
    return row | {
        "model_ns": float(np.median(model)), "even_ns": float(np.median(_whole(even, microbatches))),
        "flat_ns": float(np.median(count * even.mean(axis=0))), "slowdown": float(np.median(model / (count * mean))),
        "ideal_bubble_share": (len(stages) - 1) / count,
    }  # fmt: skip


def _whole(taus: F64, microbatches: int) -> F64:
    """How long the pipeline takes in each step; `taus`: ns of a microbatch, a row per stage."""
    found: F64 = taus.sum(axis=0) + (microbatches - 1) * taus.max(axis=0)
    return found
