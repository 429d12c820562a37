"""What is kept from one version of a track to the next: the levels of its series, and its findings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.regressions.track import BEGINNING

I64 = NDArray[np.int64]

UNDECIDED: Final = -1
"""The level of a version that waits for further runs."""


class Finding(Struct):
    """A confirmed change of a series. Its key is (series, sign, how, first_version).

    `sign`: 1 worse, -1 better; `how`: level, presence or gradual; `first_version`: that it is dated to;
    `decided_version`: whose runs decided it; `reference`: ids of the base runs, frozen; `reference_level`: their level;
    `size`: absolute change, a log, 0 for new and gone operators; `contribution`: share of the step, signed;
    `faster`: of an improvement, whether its version was faster on the whole; `state`: open, recovered, taken back,
    accepted, vanished or withdrawn; `ended_version`: that in which it was over, `ended_by`: that whose runs decided it,
    both 0 while open.
    """

    series: int
    sign: int
    how: str
    first_version: int
    decided_version: int
    reference: tuple[int, ...]
    reference_level: int
    size: float
    contribution: float
    q: float
    faster: bool = False
    state: str = "open"
    ended_version: int = 0
    ended_by: int = 0

    @property
    def key(self) -> tuple[int, int, str, int]:
        """What stays the same when it is withdrawn and found again."""
        return self.series, self.sign, self.how, self.first_version


class TrackState(Struct):
    """All that is kept from one version to the next; rows by version, one element per series.

    `levels`: the version with which the level of a series began, or UNDECIDED; `settled`: the version that decided it;
    `waits`: the sign of what an undecided version may be (0: it was decided at once).
    """

    series: int
    levels: dict[int, I64] = field(default_factory=dict)
    settled: dict[int, I64] = field(default_factory=dict)
    waits: dict[int, I64] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def open(self) -> list[Finding]:
        """Open findings, the oldest first."""
        return sorted((one for one in self.findings if one.state == "open"), key=lambda one: one.first_version)

    @property
    def current(self) -> I64:
        """The current level of each series: that of its newest decided version."""
        level = np.full(self.series, UNDECIDED)
        for version in sorted(self.levels, reverse=True):
            level = np.where(level == UNDECIDED, self.levels[version], level)
            if (level != UNDECIDED).all():
                return level
        return np.where(level == UNDECIDED, BEGINNING, level)

    def pending(self) -> tuple[list[int], I64, I64]:
        """The newest undecided versions in order, how many of them each series has, and the sign of its first."""
        versions: list[int] = []
        count, sign = np.zeros((2, self.series), dtype=np.int64)
        still = np.ones(self.series, dtype=bool)
        for version in sorted(self.levels, reverse=True):
            still = still & (self.levels[version] == UNDECIDED)
            if not still.any():
                break
            versions.insert(0, version)
            count, sign = count + still, np.where(still, self.waits[version], sign)
        return versions, count, sign

    def settle(self, versions: Iterable[int], row: int, level: int, by: int) -> None:
        """Decide the level of a series in versions that waited."""
        for version in versions:
            self.levels[version][row], self.settled[version][row] = level, by

    def before(self, version: int) -> TrackState:
        """The state in which `version` is judged for the first time: what was decided from it on is undone.

        Findings that it decided are withdrawn and keep their place, so that ids and words on them stay; findings that
        it ended are open again.
        """
        kept = [own for own in self.levels if own < version]
        state = TrackState(self.series)
        for own in kept:
            undone = self.settled[own] >= version
            state.levels[own] = np.where(undone, UNDECIDED, self.levels[own])
            state.settled[own] = np.where(undone, 0, self.settled[own])
            state.waits[own] = self.waits[own].copy()
        for one in self.findings:
            found = replace(one)
            if found.decided_version >= version:
                found.state, found.ended_version, found.ended_by = "withdrawn", 0, 0
            elif found.ended_by >= version:
                found.state, found.ended_version, found.ended_by = "open", 0, 0
            state.findings.append(found)
        return state

    def begin(self, found: Finding) -> Finding:
        """Add a finding, or revive the withdrawn one of the same key."""
        for place, one in enumerate(self.findings):
            if one.key == found.key:
                self.findings[place] = found
                return found
        self.findings.append(found)
        return found
