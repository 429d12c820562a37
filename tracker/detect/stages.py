"""The ranks and hosts of a job beside each other: the own time of each, and who is slow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from tracker.detect.peers import FEWEST_STEPS, SLOWER, PeerVerdicts, judge, median_of_others
from tracker.detect.step_order import Numbers
from tracker.profile import median
from tracker.results.cluster import HostRow

if TYPE_CHECKING:
    from tracker.columns import F64

PARTS: Final = ("compute_ns", "exposed_copy_ns", "data_loading_ns")
TIMES: Final = ("rank", "step", "duration_ns", "whole_ns", "exposed_communication_ns", *PARTS)
"""What is read of each step."""
_UNEVEN: Final = 1.10
"""Largest own time of a stage by its median from which on the work moves around between the ranks."""
_MOSTLY: Final = 0.8
"""Share of the steps in which a rank is the slowest, from which on it is not now one rank and now another."""
_ALONE: Final = 1.25
"""Own time by the median of the peers from which on one or two steps are worth a word."""
_STALL: Final = 0.5
"""What the slowest rank of a step takes longer than the median rank, by the usual own time, in a step that stalls."""
_MOVED: Final = 0.01
"""Share of the calls of a step that differ between ranks, from which on their work does."""
_ALIKE: Final = 0.5
"""How much the least slow rank of a slow host is slower than ranks elsewhere, at least, by the slowest of its host."""


class Stall(Struct, frozen=True):
    """A step that one rank makes longer. `ns`: its own time less the median of its peers."""

    step: int
    rank: int
    ns: float


class Stage(Struct, frozen=True, eq=False):
    """The ranks of a stage that can be compared, in order. `number`: None for no stage; `steps`: which all of them
    have; `own`: ns, a row per rank and a column per step; `parts`: of the own time, alike; `judged`: by rank.
    """

    number: int | None
    ranks: list[int]
    steps: list[int]
    own: F64
    parts: Mapping[str, F64]
    judged: PeerVerdicts

    @property
    def spread(self) -> float | None:
        """Median over the steps of the largest own time by the median one; None where nothing is compared."""
        if len(self.ranks) < 2 or not self.steps:
            return None
        middle = median(self.own, axis=0)
        known = middle > 0
        return float(median(self.own.max(axis=0)[known] / middle[known])) if known.any() else None

    @property
    def leader(self) -> int | None:
        """The place of a rank without a verdict that took longest in almost all steps, by much; None for none."""
        if len(self.ranks) < 2 or not self.steps or any(self.judged.verdict):
            return None
        at = int(self.judged.slowest.argmax())
        least = _UNEVEN if len(self.steps) >= FEWEST_STEPS else _ALONE
        is_longer = bool(self.judged.ratio[at] >= least)
        return at if is_longer and self.judged.slowest[at] >= _MOSTLY * len(self.steps) else None

    @property
    def is_uneven(self) -> bool:
        """Whether now one rank and now another takes longer while none is slow: by uneven work, or a stall of each."""
        spread = self.spread
        if spread is None or spread < _UNEVEN or len(self.steps) < FEWEST_STEPS or any(self.judged.verdict):
            return False
        return bool(self.judged.slowest.max() < _MOSTLY * len(self.steps))

    @property
    def cost_of_slowest(self) -> float:
        """Median over the steps of the longest own time less that of the median rank, whichever is the slowest; ns."""
        return float(median(self.own.max(axis=0) - median(self.own, axis=0))) if self.steps else 0.0

    @property
    def stalls(self) -> list[Stall]:
        """The steps in which a rank took longer than its peers by half of the usual own time, where these are few and
        ranks are alike in the others.
        """
        if len(self.ranks) < 2 or len(self.steps) < FEWEST_STEPS:
            return []
        gaps = (self.own - median_of_others(self.own)).max(axis=0)
        usual = float(median(self.own))
        found = np.flatnonzero(gaps >= _STALL * usual)
        if 2 * len(found) >= len(self.steps) or not usual:
            return []
        return [Stall(self.steps[at], self.ranks[int(self.own[:, at].argmax())], float(gaps[at])) for at in found]


def stages_of(
    captures: Iterable[tuple[int, int | None]], steps: Iterable[tuple[Any, ...]], numbers: Numbers | None = None
) -> list[Stage]:
    """Return the stages of a run, with the ranks whose own time is known in the steps that all of them have.

    `captures`: rank and stage, None or -1 for none; `steps`: TIMES of each. `numbers`: those of ranks that count steps
    otherwise.
    """
    otherwise = numbers or {}
    times: dict[int, dict[int, dict[str, int | None]]] = {}
    for rank, step, duration, whole, exposed, *parts in steps:
        if exposed is not None and (duration or whole):
            # of a run read before steps were windows, the marker can be shorter than the work of the device
            own = max(duration or 0, whole or 0) - exposed
            number = otherwise[rank][step] if rank in otherwise else step
            times.setdefault(rank, {})[number] = {"own": own, **dict(zip(PARTS, parts, strict=True))}
    found: dict[int, list[int]] = {}
    for rank, stage in captures:
        if times.get(rank):
            found.setdefault(-1 if stage is None else stage, []).append(rank)
    tables = max(1, sum(len(ranks) > 1 for ranks in found.values()))
    stages = []
    for number, ranks in sorted(found.items()):
        own = sorted(set.intersection(*(set(times[rank]) for rank in ranks)))
        matrices = {
            name: np.array([[times[rank][step][name] for step in own] for rank in ranks], dtype=np.float64)
            for name in ("own", *PARTS)
        }
        matrices = {name: matrix.reshape(len(ranks), len(own)) for name, matrix in matrices.items()}
        whole = matrices.pop("own")
        judged = judge(whole, tables=tables)
        stages.append(Stage(None if number < 0 else number, ranks, own, whole, matrices, judged))
    return stages


def moves_work(
    stage: Stage, calls: Iterable[tuple[int, int, str, str, int]], numbers: Numbers | None = None
) -> bool | None:
    """Return whether work moves between the ranks of a stage: 1 % of their calls or more, in the median of the steps,
    have another name or other shapes on one rank than on another, and it is not one and the same rank alone that makes
    other calls. None where nothing says it: without shapes equal calls may be of tensors of any size. `calls`: rank,
    step, name, shapes and number of the calls of one piece of work; `numbers`: of ranks that count their steps
    otherwise.
    """
    otherwise = numbers or {}
    of_step: dict[int, dict[int, dict[tuple[str, str], int]]] = {}
    for rank, step, name, shapes, count in calls:
        number = otherwise[rank].get(step, -1) if rank in otherwise else step
        own = of_step.setdefault(number, {}).setdefault(rank, {})
        own[name, shapes] = own.get((name, shapes), 0) + (count or 0)
    whole = [of_step[step] for step in stage.steps if set(of_step.get(step, ())) >= set(stage.ranks)]
    if not whole:
        return None
    if _differ(whole, stage.ranks):
        return not _is_of_one(whole, stage.ranks)
    has_shapes = any(shapes for ranks in whole for own in ranks.values() for _, shapes in own)
    return False if has_shapes else None


_Calls = Mapping[tuple[str, str], int]


def _differ(steps: Sequence[Mapping[int, _Calls]], ranks: Sequence[int]) -> bool:
    """Return whether the calls of these ranks differ in the median of the steps."""
    shares = [_share_of_others([of_ranks[rank] for rank in ranks]) for of_ranks in steps]
    return float(median(shares)) >= _MOVED


def _is_of_one(steps: Sequence[Mapping[int, _Calls]], ranks: Sequence[int]) -> bool:
    """Return whether one and the same rank of three or more makes other calls than all the others, which are alike."""
    if len(ranks) < 3:
        return False
    return any(not _differ(steps, [other for other in ranks if other != rank]) for rank in ranks)


def _share_of_others(ranks: Sequence[_Calls]) -> float:
    """Return the share of the calls of a step that not all ranks make."""
    common = sum(min(own.get(key, 0) for own in ranks) for key in ranks[0])
    most = max(sum(own.values()) for own in ranks)
    return 1 - common / most if most else 0.0


def judge_hosts(hosts: Mapping[int, str], stages: Sequence[Stage]) -> list[HostRow]:
    """Judge hosts as ranks are, by the median of their ranks, each by the median of its stage; none with one host. A
    host is slow only where its ranks are alike: of one slow rank among others its host is not to blame.
    `hosts`: of each rank that names one.
    """
    names = sorted({hosts[rank] for stage in stages for rank in stage.ranks if rank in hosts})
    steps = sorted(set.intersection(*({*stage.steps} for stage in stages))) if stages else []
    if len(names) < 2 or not steps:
        return []
    parts: dict[str, list[F64]] = {}
    ratios: dict[str, list[float]] = {}
    for stage in stages:
        own = stage.own[:, [stage.steps.index(step) for step in steps]]
        middle = median(own, axis=0)
        if not (middle > 0).all() or len(stage.ranks) < 2:
            continue
        for at, rank in enumerate(stage.ranks):
            if rank not in hosts:
                continue
            parts.setdefault(hosts[rank], []).append(own[at] / middle)
            elsewhere = [hosts.get(peer) != hosts[rank] for peer in stage.ranks]
            if any(elsewhere):
                ratio = float(median(own[at] / median(own[elsewhere], axis=0)))
                ratios.setdefault(hosts[rank], []).append(ratio)
    names = sorted(parts)
    if len(names) < 2:
        return []
    judged = judge(np.array([median(parts[name], axis=0) for name in names]))
    rows = []
    for at, name in enumerate(names):
        row = HostRow(
            host=name,
            ranks=len(parts[name]),
            own_ratio=known(judged.ratio[at]),
            steps=len(steps),
            slowest_steps=int(judged.slowest[at]),
            q=known(judged.q[at]),
            verdict=judged.verdict[at] if _are_alike(ratios.get(name, [])) else None,
        )
        rows.append(row)
    return rows


def _are_alike(ratios: Sequence[float]) -> bool:
    """Return whether all ranks of a host are slower than those elsewhere, none less than half as much as another."""
    least, most = min(ratios, default=0.0), max(ratios, default=0.0)
    return least >= SLOWER and least - 1 >= _ALIKE * (most - 1)


def known(value: Any) -> float | None:
    """Return a number, None for nan."""
    return None if np.isnan(value) else float(value)
