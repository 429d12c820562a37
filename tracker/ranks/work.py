"""What the ranks compute: the same kernels (or operators, on a host) beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tracker.detect.stages import Stage, moves_work
from tracker.detect.step_order import Numbers
from tracker.profile import NOT_LISTED, NOT_LISTED_COLLECTIVES
from tracker.profile.words import BESIDE_COMPUTE
from tracker.results.cluster import RankOperatorRow
from tracker.schema.column_names import (
    CALLS,
    CANONICAL_NAME,
    CATEGORY,
    HOST_SELF_NS,
    INPUT_SHAPES,
    NAME,
    OP,
    OP_INPUT_SHAPES,
    PIECE,
    RANK,
    SHAPES,
    TOTAL_NS,
    TYPE,
)
from tracker.store import queries
from tracker.table import is_among

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.compare.side import LoadedSide

Key = tuple[str, ...]


class Work:
    """Calls and time of each piece of work of each rank, over the steps. A piece is a kernel with its operator and
    shapes; by the name of the kernel alone, an innocent rank with larger tensors would be accused.
    """

    def __init__(self, side: LoadedSide) -> None:
        self.is_device = side.side.timeline == "device"
        chosen: dict[str, Any] = {"ranks": side.ranks, "steps": side.asked_steps}
        self._ops = queries.rank_ops(side.store, side.run_ids, **chosen)
        self._waits = side.query(queries.communication_tasks).listed(NAME)
        kernels = queries.rank_kernels(side.store, side.run_ids, **chosen) if self.is_device else None
        rows = self._on_host() if kernels is None else _on_device(kernels)
        self._compared: frozenset[int] = frozenset()
        self._keys: list[Key] = []
        self._shortest: dict[Key, float] = {}
        self.of_rank: dict[int, dict[Key, tuple[float, float]]] = {}
        for rank, calls, time, *key in rows:
            if calls and time:
                own = self.of_rank.setdefault(rank, {})
                before = own.get(tuple(key), (0.0, 0.0))
                own[tuple(key)] = before[0] + calls, before[1] + time

    def _on_host(self) -> Iterator[tuple[Any, ...]]:
        ops = self._ops.taken(~is_among(self._ops[NAME], sorted({*self._waits})))
        return ops.having(op=ops[NAME]).rows(RANK, CALLS, HOST_SELF_NS, NAME, OP, INPUT_SHAPES)

    def per_call(self, rank: int, peers: Sequence[int]) -> float | None:
        """How many ns the rank takes longer because its calls do, in the work that all `peers` do as well; None where
        they have none in common. With the part by their number it is the whole difference, exactly.
        """
        own, common = self.of_rank.get(rank, {}), self._common([rank, *peers])
        if not common or not peers:
            return None
        found = 0.0
        for key in common:
            calls, time = own[key]
            others = [self.of_rank[peer][key] for peer in peers]
            count = float(np.median([one[0] for one in others]))
            mean = float(np.median([one[1] / one[0] for one in others]))
            found += (time / calls - mean) * (calls + count) / 2
        return found

    def place(self, rank: int, peers: Sequence[int], least_ns: float) -> str | None:
        """The operator or range of the program in which the host of a rank spends at least so much more than the median
        of its peers, over the steps; None for none.
        """
        own = self._host_times.get(rank, {})
        more = {
            name: time - float(np.median([self._host_times.get(peer, {}).get(name, 0.0) for peer in peers]))
            for name, time in own.items()
        }
        name = max(more, key=lambda one: (more[one], one), default=None)
        return name if name is not None and more[name] >= least_ns else None

    @cached_property
    def _host_times(self) -> dict[int, dict[str, float]]:
        """Self time of each operator and range on the host, by rank."""
        found: dict[int, dict[str, float]] = {}
        for rank, name, time in self._ops.rows(RANK, NAME, HOST_SELF_NS):
            own = found.setdefault(rank, {})
            own[name] = own.get(name, 0.0) + time
        return found

    def score(self, rank: int, ranks: Sequence[int]) -> float | None:
        """How fast the device of a rank is in the work that all `ranks` do: the shortest mean call of any rank by its
        own, weighted by its time, as NVIDIA's resiliency extension does; None on a host.
        """
        own, common = self.of_rank.get(rank, {}), self._common(ranks)
        if not self.is_device or len(ranks) < 2 or not common:
            return None
        whole = sum(own[key][1] for key in common)
        best = sum(own[key][1] * self._shortest[key] / (own[key][1] / own[key][0]) for key in common)
        return best / whole

    def _common(self, ranks: Sequence[int]) -> list[Key]:
        chosen = frozenset(ranks)
        if self._compared != chosen:
            self._compared = chosen
            tables = [self.of_rank.get(rank, {}) for rank in sorted(chosen)]
            self._keys = sorted(set.intersection(*map(set, tables)))
            self._shortest = {key: min(own[key][1] / own[key][0] for own in tables) for key in self._keys}
        return self._keys


def moves_work_in(side: LoadedSide, stages: Sequence[Stage], numbers: Numbers) -> dict[int | None, bool | None]:
    """Return of each stage that is uneven, by its number, whether its ranks do different work in the same step.

    numbers: of ranks that count their steps otherwise.
    """
    moves: dict[int | None, bool | None] = {}
    for stage in stages:
        if stage.is_uneven:
            moves[stage.number] = moves_work(
                stage, queries.calls_of_steps(side.store, side.run_ids, stage.ranks), numbers
            )
    return moves


def _on_device(kernels: Columns) -> Iterator[tuple[Any, ...]]:
    kernels = kernels.taken(~is_among(kernels[CATEGORY], (*BESIDE_COMPUTE, NOT_LISTED, NOT_LISTED_COLLECTIVES)))
    shapes = np.where(kernels[INPUT_SHAPES] != "", kernels[INPUT_SHAPES], kernels[OP_INPUT_SHAPES])
    name = np.where(kernels[CANONICAL_NAME] != "", kernels[CANONICAL_NAME], kernels[NAME])
    name = np.where(kernels[TYPE] != "", kernels[TYPE], name)
    kernels = kernels.having(shapes=shapes, piece=name)
    return kernels.rows(RANK, CALLS, TOTAL_NS, PIECE, OP, SHAPES)


def operator_rows(work: Work, stages: Sequence[Stage]) -> list[RankOperatorRow]:
    """Return the work of the ranks of each stage, what equal ranks would save first; times over all steps of a rank."""
    rows = []
    for stage in stages:
        pieces: dict[tuple[str, str], dict[int, tuple[float, float]]] = {}
        for rank in stage.ranks:
            for (name, _, shapes), (calls, time) in work.of_rank.get(rank, {}).items():
                by_rank = pieces.setdefault((name, shapes), {})
                calls_before, time_before = by_rank.get(rank, (0.0, 0.0))
                by_rank[rank] = calls_before + calls, time_before + time
        for (name, shapes), by_rank in pieces.items():
            rows.append(_make_operator_row(stage, name, shapes, by_rank))
    rows.sort(key=lambda row: (-row.saving_ns, -row.total_ns, row.name, row.input_shapes))
    return rows


def _make_operator_row(
    stage: Stage, name: str, shapes: str, by_rank: Mapping[int, tuple[float, float]]
) -> RankOperatorRow:
    """Return the row of one piece of work. `by_rank`: calls and ns of each rank that has it."""
    times = {rank: time for rank, (_, time) in by_rank.items()}
    calls = [count for count, _ in by_rank.values()]
    values = np.array([*times.values()])
    most, least = max(times, key=times.__getitem__), min(times, key=times.__getitem__)
    middle = float(np.median(values))
    return RankOperatorRow(
        stage=stage.number,
        name=name,
        input_shapes=shapes,
        ranks=len(by_rank),
        calls=sum(calls),
        fewest_calls=min(calls),
        most_calls=max(calls),
        total_ns=float(values.sum()),
        average_ns=float(values.sum()) / sum(calls),
        median_ns=middle,
        min_ns=times[least],
        min_rank=least,
        max_ns=times[most],
        max_rank=most,
        spread_ns=times[most] - times[least],
        variation=float(values.std() / values.mean()) if len(by_rank) > 1 else None,
        saving_ns=times[most] - middle,
    )
