"""What the ranks compute: the same kernels (or operators, on a host) beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracker.compare.keys import among
from tracker.profile import NOT_LISTED, NOT_LISTED_COLLECTIVES
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded

_BESIDE: Final = ("communication", "copy", "memset")
Key = tuple[str, ...]
Row = dict[str, Any]


class Work:
    """Calls and time of each piece of work of each rank, over the steps. A piece is a kernel with its operator and
    shapes; by the name of the kernel alone, an innocent rank with larger tensors would be accused.
    """

    def __init__(self, side: Loaded) -> None:
        self.is_device = side.side.timeline == "device"
        self.of_rank: dict[int, dict[Key, tuple[float, float]]] = {}
        columns = ("rank", "calls", "ns", "name", "op", "input_shapes")
        for rank, calls, time, *key in _rows(side, is_device=self.is_device).rows(*columns):
            if calls and time:
                own = self.of_rank.setdefault(rank, {})
                before = own.get(tuple(key), (0.0, 0.0))
                own[tuple(key)] = before[0] + calls, before[1] + time

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
        if getattr(self, "_of", None) != chosen:
            self._of = chosen
            tables = [self.of_rank.get(rank, {}) for rank in sorted(chosen)]
            self._keys = sorted(set.intersection(*map(set, tables)))
            self._shortest = {key: min(own[key][1] / own[key][0] for own in tables) for key in self._keys}
        return self._keys


def _rows(side: Loaded, *, is_device: bool) -> Any:
    if not is_device:
        ops = side.ask(queries.ops, by=("rank",))
        waits = side.ask(queries.communication_tasks).listed("name")
        ops = ops.taken(~among(ops["name"], sorted({*waits})))
        return ops.having(ns=ops["host_self_ns"], op=ops["name"])
    kernels = side.ask(queries.kernels, by=("rank",))
    kernels = kernels.taken(~among(kernels["category"], (*_BESIDE, NOT_LISTED, NOT_LISTED_COLLECTIVES)))
    shapes = np.where(kernels["input_shapes"] != "", kernels["input_shapes"], kernels["op_input_shapes"])
    name = np.where(kernels["canonical_name"] != "", kernels["canonical_name"], kernels["name"])
    name = np.where(kernels["type"] != "", kernels["type"], name)
    return kernels.having(ns=kernels["total_ns"], input_shapes=shapes, name=name)


def operator_rows(work: Work, stages: Sequence[Any]) -> list[Row]:
    """Work of the ranks of each stage, what equal ranks would save first; times over all steps of a rank."""
    rows = []
    for stage in stages:
        pieces: dict[Key, dict[int, tuple[float, float]]] = {}
        for rank in stage.ranks:
            for (name, _, shapes), (calls, time) in work.of_rank.get(rank, {}).items():
                own = pieces.setdefault((name, shapes), {})
                before = own.get(rank, (0.0, 0.0))
                own[rank] = before[0] + calls, before[1] + time
        for (name, shapes), by_rank in pieces.items():
            times = {rank: time for rank, (_, time) in by_rank.items()}
            numbers = [number for number, _ in by_rank.values()]
            values = np.array([*times.values()])
            most, least = max(times, key=times.__getitem__), min(times, key=times.__getitem__)
            middle = float(np.median(values))
            rows.append(
                {
                    "stage": stage.number, "name": name, "input_shapes": shapes, "ranks": len(by_rank),
                    "calls": sum(numbers), "fewest_calls": min(numbers), "most_calls": max(numbers),
                    "total_ns": float(values.sum()), "average_ns": float(values.sum()) / sum(numbers),
                    "median_ns": middle, "min_ns": times[least], "min_rank": least, "max_ns": times[most],
                    "max_rank": most, "spread_ns": times[most] - times[least],
                    "variation": float(values.std() / values.mean()) if len(by_rank) > 1 else None,
                    "saving_ns": times[most] - middle,
                }
            )  # fmt: skip
    rows.sort(key=lambda row: (-row["saving_ns"], -row["total_ns"], row["name"], row["input_shapes"]))
    return rows
