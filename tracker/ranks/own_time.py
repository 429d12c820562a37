"""The own time of each rank, which rank of a stage holds the others back, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from tracker.ranks.judging import Judged, judge, median_of_others
from tracker.ranks.work import Work
from tracker.results import SLOW, UNEVEN

if TYPE_CHECKING:
    from tracker.columns import F64
    from tracker.compare.sides import Loaded

_PARTS: Final = ("compute_ns", "exposed_copy_ns", "data_loading_ns")
_SUMMED: Final = (
    "compute_ns", "exposed_communication_ns", "idle_ns", "data_loading_ns", "preparing_ns", "bubble_ns",
)  # fmt: skip
_UNEVEN: Final = 1.10
"""Largest own time of a stage by its median from which on the work moves around between the ranks."""
Row = dict[str, Any]


class Stage(Struct, frozen=True, eq=False):
    """The ranks of a stage that can be compared, in order. `number`: None for no stage; `steps`: which all of them
    have; `own`: ns, a row per rank and a column per step; `parts`: of the own time, alike; `judged`: by rank.
    """

    number: int | None
    ranks: list[int]
    steps: list[int]
    own: F64
    parts: Mapping[str, F64]
    judged: Judged

    @property
    def spread(self) -> float | None:
        """Median over the steps of the largest own time by the median one; None for one rank."""
        return float(np.median(self.own.max(axis=0) / np.median(self.own, axis=0))) if len(self.ranks) > 1 else None

    @property
    def is_uneven(self) -> bool:
        """Whether the work moves around while no rank is slow."""
        is_known = self.spread is not None and len(self.steps) > 2
        return is_known and self.spread >= _UNEVEN and SLOW not in self.judged.verdict  # type: ignore[operator]


def stages_of(side: Loaded) -> list[Stage]:
    """The stages of a run, with the ranks whose own time is known in the steps that all of them have."""
    columns = ("rank", "step", "duration_ns", "e2e_ns", "exposed_communication_ns", *_PARTS)
    times: dict[int, dict[int, Row]] = {}
    for rank, step, duration, e2e, exposed, *parts in side.steps.rows(*columns):
        if exposed is not None and (duration or e2e):
            # markers of the host can be closer together than the work of the device
            own = max(duration or 0, e2e or 0) - exposed
            times.setdefault(rank, {})[step] = {"own": own, **dict(zip(_PARTS, parts, strict=True))}
    found: dict[int, list[int]] = {}
    for rank, stage in side.captures.rows("rank", "stage"):
        if times.get(rank):
            found.setdefault(-1 if stage is None else stage, []).append(rank)
    return [_stage(stage, ranks, times) for stage, ranks in sorted(found.items())]


def _stage(number: int, ranks: list[int], times: Mapping[int, Mapping[int, Row]]) -> Stage:
    steps = sorted(set.intersection(*(set(times[rank]) for rank in ranks)))

    def matrix(name: str) -> F64:
        rows = [[times[rank][step][name] for step in steps] for rank in ranks]
        return np.array(rows, dtype=np.float64).reshape(len(ranks), len(steps))

    own = matrix("own")
    parts = {name: matrix(name) for name in _PARTS}
    return Stage(None if number < 0 else number, ranks, steps, own, parts, judge(own))


def rank_rows(
    side: Loaded, stages: Sequence[Stage], work: Work, per_rank: Mapping[int, Mapping[str, Any]]
) -> list[Row]:
    """A row for each captured rank; `per_rank`: what else is known of it, per step."""
    place = {rank: (stage, at) for stage in stages for at, rank in enumerate(stage.ranks)}
    steps = _medians(side)
    rows = []
    for rank, host, number, peak in side.captures.rows("rank", "host", "stage", "peak_allocated_bytes"):
        row: Row = {"rank": rank, "host": host or None, "stage": None if (number or 0) < 0 else number}
        row |= {"peak_allocated_bytes": peak, **steps.get(rank, {}), **per_rank.get(rank, {})}
        if rank in place:
            stage, at = place[rank]
            judged = stage.judged
            row |= {
                "own_ns": _known(np.median(stage.own[at])) if stage.steps else None,
                "own_ratio": _known(judged.ratio[at]), "excess_ns": _known(judged.excess[at]),
                "cost_ns": _known(judged.cost[at]), "slowest_steps": int(judged.slowest[at]),
                "q": _known(judged.q[at]), "verdict": judged.verdict[at],
                **(_cause(stage, at, work) if judged.verdict[at] else {}),
                "device_score": work.score(rank, stage.ranks),
            }  # fmt: skip
        rows.append(row)
    return rows


def _medians(side: Loaded) -> dict[int, Row]:
    """Of each rank the median over its steps of what a step holds, and how many steps there are."""
    names = ("duration_ns", "e2e_ns", *_SUMMED)
    values: dict[int, list[list[Any]]] = {}
    for rank, *numbers in side.steps.rows("rank", "steps", *names):
        values.setdefault(rank, []).append(numbers)
    found: dict[int, Row] = {}
    for rank, of_steps in values.items():
        counts, *columns = zip(*of_steps, strict=True)
        known = [[value for value in column if value is not None] for column in columns]
        row: Row = {"steps": sum(counts)}
        row |= {name: float(median(own)) if own else None for name, own in zip(names, known, strict=True)}
        row["step_ns"] = row["duration_ns"] if row["duration_ns"] is not None else row["e2e_ns"]
        row["profiler_bubble_ns"] = row.pop("bubble_ns")
        found[rank] = row
    return found


def _cause(stage: Stage, at: int, work: Work) -> Row:
    """What a rank does longer than its peers, if half of the difference is of one kind; and where, on a slow host."""
    half = float(np.median(stage.own[at] - median_of_others(stage.own)[at])) / 2
    more = {name: _more(part, at) for name, part in stage.parts.items()}
    compute, copies, loading = more["compute_ns"], more["exposed_copy_ns"] or 0.0, more["data_loading_ns"] or 0.0
    peers = [rank for rank in stage.ranks if rank != stage.ranks[at]]
    if half <= 0:
        return {}
    if loading >= half:
        return {"cause": "data loading"}
    if compute is None:
        return {}
    if 2 * half - compute - copies >= half:
        return {"cause": "host", "place": work.place(stage.ranks[at], peers, half * len(stage.steps))}
    if copies >= half:
        return {"cause": "copies"}
    if compute < half:
        return {}
    slower = work.per_call(stage.ranks[at], peers)
    if slower is None:
        return {"cause": "compute"}
    return {"cause": "slow device" if slower >= compute * len(stage.steps) / 2 else "more work"}


def _more(part: F64, at: int) -> float | None:
    return None if np.isnan(part).any() else float(np.median(part[at] - median_of_others(part)[at]))


def step_rows(stages: Iterable[Stage]) -> list[Row]:
    """The own time of each rank and step, and its quotient to the median of the peers."""
    rows = []
    for stage in stages:
        alone = len(stage.ranks) < 2
        others = np.full(stage.own.shape, np.nan) if alone else median_of_others(stage.own)
        ratios = stage.own / np.where(others > 0, others, np.nan)
        for at, rank in enumerate(stage.ranks):
            for place, step in enumerate(stage.steps):
                ratio = _known(ratios[at, place])
                rows.append({"rank": rank, "step": step, "own_ns": int(stage.own[at, place]), "own_ratio": ratio})
    return rows


def host_rows(side: Loaded, stages: Sequence[Stage]) -> list[Row]:
    """Hosts judged as ranks are, by the median of their ranks, each by the median of its stage; none with one host."""
    hosts = {rank: host for rank, host in side.captures.rows("rank", "host") if host}
    names = sorted({hosts[rank] for stage in stages for rank in stage.ranks if rank in hosts})
    steps = sorted(set.intersection(*({*stage.steps} for stage in stages))) if stages else []
    if len(names) < 2 or not steps:
        return []
    parts: dict[str, list[F64]] = {}
    for stage in stages:
        chosen = [stage.steps.index(step) for step in steps]
        relative = stage.own[:, chosen] / np.median(stage.own[:, chosen], axis=0)
        for at, rank in enumerate(stage.ranks):
            if rank in hosts and len(stage.ranks) > 1:
                parts.setdefault(hosts[rank], []).append(relative[at])
    names = sorted(parts)
    if len(names) < 2:
        return []
    judged = judge(np.array([np.median(parts[name], axis=0) for name in names]))
    return [
        {
            "host": name, "ranks": len(parts[name]), "own_ratio": _known(judged.ratio[at]),
            "slowest_steps": int(judged.slowest[at]), "q": _known(judged.q[at]), "verdict": judged.verdict[at],
        }
        for at, name in enumerate(names)
    ]  # fmt: skip


def stage_rows(stages: Sequence[Stage], ranks: Sequence[Row], microbatches: int | None) -> list[Row]:
    """A row per stage: medians over its ranks, and who takes longest."""
    rows = []
    for stage in stages:
        own = [row for row in ranks if row["rank"] in stage.ranks]
        longest = max(own, key=lambda row: row["own_ns"] or 0.0)
        row: Row = {"stage": stage.number, "ranks": len(stage.ranks), "spread": stage.spread}
        for name in ("step_ns", "own_ns", *_SUMMED[:3], "preparing_ns", "bubble_ns", "profiler_bubble_ns"):
            known = [one[name] for one in own if one.get(name) is not None]
            row[name] = float(np.median(known)) if known else None
        row |= {"own_max_ns": longest["own_ns"], "own_max_rank": longest["rank"]}
        row["verdict"] = UNEVEN if stage.is_uneven else None
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


def _known(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)
