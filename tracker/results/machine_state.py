"""What is recorded of the machine of a run, in words: a clock that was held down, other jobs, a share of the CPU."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from tracker.units import counted

Facts = Mapping[str, str]
"""The environment of a run by key; where its ranks differ, their values are joined."""

KEYS: Final = ("device_throttled", "device_held", "device_shared", "cpu_throttled", "cpu_throttled_ms")
"""The facts that say whether something slowed a run down: see `tracker.hooks.machine`."""
_BETWEEN_RANKS: Final = " | "
_HELD: Final = re.compile(r"(?:(?P<device>NPU) at )?(?P<clock>\d+) of (?P<most>\d+) MHz by (?P<reason>.+)")


class _Held(NamedTuple):
    """How the clock of a device was held down: it may be `most` MHz."""

    device: str
    clock: int
    most: int
    reason: str

    @property
    def share(self) -> float:
        return self.clock / max(self.most, 1)


def throttled_by(facts: Facts) -> str:
    """Return what held a device of a run down, "" where nothing did, or it is not known.

    >>> throttled_by({"device_throttled": "no | power"}), throttled_by({"device_throttled": "no"}), throttled_by({})
    ('power', '', '')
    """
    reasons: dict[str, None] = {}
    for value in _values(facts, "device_throttled"):
        if value != "no":
            reasons |= dict.fromkeys(value.split(", "))
    return ", ".join(reasons)


def marks_of_machine(facts: Facts) -> list[str]:
    """Return a word or two for each thing that may have slowed a run down: [] for a quiet machine, or an unknown one.

    >>> marks_of_machine({"device_throttled": "power", "device_shared": "yes", "cpu_throttled": "no"})
    ['held by power', 'shared GPU']
    """
    reasons = throttled_by(facts)
    marks = [f"held by {reasons}"] if reasons else []
    if "yes" in _values(facts, "device_shared"):
        marks.append("shared GPU")
    if "yes" in _values(facts, "cpu_throttled"):
        marks.append("limited CPU")
    return marks


def marks_of_machines(runs: Iterable[Facts]) -> str:
    """Return the marks of the runs of a version, and of how many: "" for none.

    >>> marks_of_machines([{"device_throttled": "power"}, {"device_throttled": "no"}])
    'held by power in 1 of 2 runs'
    """
    every = [*runs]
    counts = Counter(mark for facts in every for mark in marks_of_machine(facts))
    return ", ".join(f"{mark} in {count} of {counted(len(every), 'run')}" for mark, count in counts.items())


def describe_machine(facts: Facts) -> str:
    """Return what may have slowed a run down, in a phrase with its numbers; "" for nothing known.

    >>> of_two_ranks = "1600 of 1965 MHz by power | 1580 of 1965 MHz by power"
    >>> describe_machine({"device_throttled": "power", "device_held": of_two_ranks})
    'the GPU was held at 1,580 of 1,965 MHz by power'
    """
    phrases = []
    reasons, held = throttled_by(facts), _lowest_clock(facts)
    if held is not None:
        phrases.append(f"the {held.device} was held at {held.clock:,} of {held.most:,} MHz by {held.reason}")
    elif reasons:
        phrases.append(f"the GPU was held down by {reasons}")
    if "yes" in _values(facts, "device_shared"):
        phrases.append("another job computed on its GPU")
    if "yes" in _values(facts, "cpu_throttled"):
        waited = [int(text) for text in _values(facts, "cpu_throttled_ms") if text.isdecimal()]
        time = f" for {max(waited):,} ms" if waited else ""
        phrases.append(f"it waited{time} for its share of the CPU")
    return ", ".join(phrases)


def sentence_on_machines(side: str, runs: Sequence[tuple[str, Facts]]) -> str:
    """Return what the machine did to the runs of a side, by the one that it held down most; "" for nothing known.

    `runs`: the name of each, and its facts.

    >>> fact = {"device_throttled": "power", "device_held": "1580 of 1965 MHz by power"}
    >>> sentence_on_machines("v3", [("run 6", {}), ("run 7", fact)])
    'run 7: the GPU was held at 1,580 of 1,965 MHz by power (1 of 2 runs of v3: held by power).'
    """
    marked = [(_share_of_clock(facts), name, describe_machine(facts)) for name, facts in runs]
    marked = [one for one in marked if one[2]]
    if not marked:
        return ""
    _, name, words = min(marked, key=lambda one: one[0])
    if len(runs) == 1:
        return f"{name}: {words}."
    marks = dict.fromkeys(mark for _, facts in runs for mark in marks_of_machine(facts))
    return f"{name}: {words} ({len(marked)} of {counted(len(runs), 'run')} of {side}: {', '.join(marks)})."


def _values(facts: Facts, key: str) -> list[str]:
    return facts[key].split(_BETWEEN_RANKS) if key in facts else []


def _lowest_clock(facts: Facts) -> _Held | None:
    """Return the clock of the rank that was held down most."""
    held = []
    for text in _values(facts, "device_held"):
        match = _HELD.fullmatch(text)
        if match:
            device = match["device"] or "GPU"
            held.append(_Held(device, int(match["clock"]), int(match["most"]), match["reason"]))
    return min(held, key=lambda one: one.share, default=None)


def _share_of_clock(facts: Facts) -> float:
    held = _lowest_clock(facts)
    return 1.0 if held is None else held.share
