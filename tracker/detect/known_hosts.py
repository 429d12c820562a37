"""The hosts of runs, and what is known of how these differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.columns import F64, I64, Flags

MANY_HOSTS: Final = 3
"""Hosts from which on how hosts differ is part of the noise."""


class Hosts(Struct, frozen=True, eq=False):
    """The hosts of runs. `codes` (runs,): a number for each set of hosts, -1 where one is unknown; `overlap` (hosts,
    hosts): whether two of these sets share a host.
    """

    codes: I64
    overlap: Flags

    @property
    def count(self) -> int:
        """How many different ones there are."""
        return len(self.overlap)

    def take(self, runs: I64) -> Hosts:
        """Return those of some of the runs."""
        return Hosts(self.codes[runs], self.overlap)


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
        if self.hosts.count >= MANY_HOSTS:
            return np.ones((len(self.weight), len(self.hosts.codes)), dtype=bool)
        return np.asarray(self.of_runs(self.weight) != 0)


def code_hosts(names: Sequence[frozenset[str]]) -> Hosts:
    """Return the hosts of runs, each a set of names, empty where one is unknown.

    >>> found = code_hosts([frozenset({"a"}), frozenset(), frozenset({"b"}), frozenset({"a"})])
    >>> found.codes.tolist(), found.overlap.tolist()
    ([0, -1, 1, 0], [[True, False], [False, True]])
    """
    distinct = sorted({one for one in names if one}, key=sorted)
    place = {one: at for at, one in enumerate(distinct)}
    overlap = np.array([[bool(one & other) for other in distinct] for one in distinct], dtype=bool)
    codes = np.array([place.get(one, -1) for one in names], dtype=np.int64)
    return Hosts(codes, overlap.reshape(len(distinct), len(distinct)))
