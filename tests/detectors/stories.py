"""What is true of a line of versions: how many runs each has, and which operators were made slower in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

BEFORE = 9
"""Runs before the first change: a window of 8 is full."""


@dataclass(frozen=True, slots=True)
class Version:
    """`slower`: operator -> by what its time is multiplied, against the first version; 1.1 is 10 % slower."""

    label: str
    runs: int
    slower: Mapping[str, float] = field(default_factory=dict)


Story = Sequence[Version]


def unchanged(versions: int, runs: int) -> Story:
    """Versions of so many `runs` each in which nothing changes."""
    return [Version(f"v{number:02}", runs) for number in range(1, versions + 1)]


def taken_back(draw: np.random.Generator, names: Sequence[str], ratio: float, *, runs: int, at_once: int = 4) -> Story:
    """Twice, `at_once` of `names` get slower by `ratio`, stay so, and are as they were again: as many runs each time as
    a window and its confirmation want. `runs`: of each version.
    """
    chosen = draw.permutation(list(names))[: 2 * at_once].tolist()
    slow = [dict.fromkeys(part, 1.0 + ratio) for part in (chosen[:at_once], chosen[at_once:])]
    quiet, held = -(-BEFORE // runs), max(2, -(-4 // runs))
    parts = [(quiet, {}), (held, slow[0]), (quiet, {}), (held, slow[1]), (held, {})]
    factors = [factors for count, factors in parts for _ in range(count)]
    return [Version(f"v{number:02}", runs, own) for number, own in enumerate(factors, 1)]


def changes(story: Story) -> dict[str, dict[str, int]]:
    """Version -> operator -> 1 where it got slower than in the version before, -1 where it got faster."""
    found: dict[str, dict[str, int]] = {}
    before: Mapping[str, float] = {}
    for version in story:
        names = {*before, *version.slower}
        moved = {name: version.slower.get(name, 1.0) - before.get(name, 1.0) for name in names}
        found[version.label] = {name: 1 if by > 0 else -1 for name, by in moved.items() if by}
        before = version.slower
    return found
