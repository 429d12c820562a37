"""The hosts of runs, and what is known of how these differ. A host whose clock is held down is one of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.columns import F64, I64, Flags
from tracker.table import sort_distinct

MANY_HOSTS: Final = 3
"""Hosts from which on how hosts differ is part of the noise."""


class Hosts(Struct, frozen=True, eq=False):
    """The hosts of runs. `codes` (runs,): a number for each set of hosts in one state, -1 where one is unknown;
    `overlap` (hosts, hosts): whether two of these share a host in one state; `machines` (hosts,): the number of the set
    in any state; `is_throttled` (hosts,): whether its state is that of a clock that is held down.
    """

    codes: I64
    overlap: Flags
    machines: I64
    is_throttled: Flags

    @property
    def count(self) -> int:
        """How many different ones there are."""
        return len(self.overlap)

    @property
    def machine_count(self) -> int:
        """How many there are, whatever their states."""
        return len(sort_distinct(self.machines))

    def take(self, runs: I64) -> Hosts:
        """Return those of some of the runs."""
        return replace(self, codes=self.codes[runs])

    def count_machines(self, runs_of: I64) -> I64:
        """Return of how many machines there are runs (series,), in whatever state; `runs_of`: (series, hosts)."""
        found = np.zeros(len(runs_of), dtype=np.int64)
        for machine in sort_distinct(self.machines).tolist():
            found += (runs_of[:, self.machines == machine] > 0).any(axis=1)
        return found


class HostLevels(Struct, frozen=True, eq=False):
    """What hosts take more than the `reference`, that of the runs which are judged; rows: series, columns: hosts.

    `offset`: what was taken out of the logs, 0 where they do not differ or nobody knows; `weight`: of how many pairs of
    runs, one of each host, that is known: 0: it is not, infinity: of the reference itself.
    """

    hosts: Hosts
    reference: int
    offset: F64
    weight: F64

    def of_runs(self, numbers: F64) -> F64:
        """Return the number of the host of each run (series, runs), nan for an unknown one; `numbers`: as `offset`."""
        with_unknown = np.concatenate([numbers, np.full((len(numbers), 1), np.nan)], axis=1)
        return with_unknown[:, self.hosts.codes]  # -1 is the last one

    @property
    def compares(self) -> Flags:
        """(series, runs): which numbers can be compared with the reference: all but those of hosts of which nobody
        knows how they differ. Of many hosts what they differ by is noise.
        """
        if self.hosts.machine_count >= MANY_HOSTS:
            return np.ones((len(self.weight), len(self.hosts.codes)), dtype=bool)
        return np.asarray(self.of_runs(self.weight) != 0)


def code_hosts(names: Sequence[frozenset[str]], throttled: Sequence[bool] | None = None) -> Hosts:
    """Return the hosts of runs, each a set of names, empty where one is unknown. `throttled`: of each run whether a
    clock was held down, None: of none.

    >>> names = [frozenset({"a"}), frozenset(), frozenset({"b"}), frozenset({"a"})]
    >>> code_hosts(names).codes.tolist(), code_hosts(names).overlap.tolist()
    ([0, -1, 1, 0], [[True, False], [False, True]])
    >>> found = code_hosts(names, [False, False, False, True])
    >>> found.codes.tolist(), found.is_throttled.tolist(), found.machine_count
    ([0, -1, 2, 1], [False, True, False], 2)
    """
    states = [*zip(names, [False] * len(names) if throttled is None else throttled, strict=True)]
    distinct = sorted({state for state in states if state[0]}, key=lambda state: (sorted(state[0]), state[1]))
    place = {state: at for at, state in enumerate(distinct)}
    sets = [*dict.fromkeys(names_of_host for names_of_host, _ in distinct)]
    overlap = [[bool(one[0] & other[0]) and one[1] == other[1] for other in distinct] for one in distinct]
    return Hosts(
        codes=np.array([place.get(state, -1) for state in states], dtype=np.int64),
        overlap=np.array(overlap, dtype=bool).reshape(len(distinct), len(distinct)),
        machines=np.array([sets.index(names_of_host) for names_of_host, _ in distinct], dtype=np.int64),
        is_throttled=np.array([is_throttled for _, is_throttled in distinct], dtype=bool),
    )
