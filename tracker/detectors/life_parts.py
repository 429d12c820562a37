"""What the life of a finding is made of: its states, the events that change them, the row that each change leaves."""

from __future__ import annotations

import math
from typing import Final, Literal

from msgspec import Struct

from tracker.detectors import rule

State = Literal[
    "normal", "suspect", "new", "persisting", "acknowledged", "recovering", "recovered", "reopened",
    "expected", "muted", "vanished", "invalid",
]  # fmt: skip
Action = Literal["ack", "expect", "mute", "unmute", "invalid"]

RULE: Final = "rule"
"""Who does what nobody said: see `Transition`."""

NOTIFIED: Final = frozenset({"new", "persisting", "acknowledged", "reopened"})
"""States of a finding that is confirmed and bad."""

OPEN: Final = NOTIFIED | {"suspect", "recovering", "muted"}
ENDED: Final = frozenset({"expected", "invalid"})
"""States that no run leaves: the next change of the series is a finding of its own."""

TRANSITIONS: Final[dict[State, frozenset[State]]] = {
    "normal": frozenset({"suspect"}),
    "suspect": frozenset({"normal", "new", "expected", "muted", "vanished", "invalid"}),
    "new": frozenset({"persisting", "acknowledged", "recovering", "expected", "muted", "vanished", "invalid"}),
    "persisting": frozenset({"acknowledged", "recovering", "expected", "muted", "vanished", "invalid"}),
    "acknowledged": frozenset({"recovering", "expected", "muted", "vanished", "invalid"}),
    "recovering": frozenset(
        {"recovered", "persisting", "acknowledged", "expected", "muted", "vanished", "invalid"}
    ),
    "recovered": frozenset({"reopened", "normal", "vanished", "invalid"}),
    "reopened": frozenset({"persisting", "acknowledged", "recovering", "expected", "muted", "vanished", "invalid"}),
    "muted": frozenset(
        {"suspect", "new", "persisting", "acknowledged", "reopened", "recovering", "normal", "expected", "vanished",
         "invalid"}
    ),
    "vanished": frozenset({"normal", "suspect", "new", "persisting", "acknowledged", "reopened", "recovering",
                           "recovered", "muted", "invalid"}),
    "expected": frozenset({"invalid"}),
    "invalid": frozenset(),
}  # fmt: skip
"""From each state, those that one transition can lead to."""


class LifeRule(Struct, frozen=True):
    """`effect`: log change that opens; half of it closes. `recovery_runs`: R. `worse_runs`: in a row, that
    show that it got worse: one, and those that confirm it, as of any finding. `reopen_versions`: how long a recovered
    finding can come back as itself. `version`: of the rule, written on every row.
    """

    effect: float = math.log1p(rule.MIN_RATIO)
    recovery_runs: int = rule.RECOVERING
    worse_runs: int = 1 + rule.CONFIRMING
    reopen_versions: int = 5
    opposite_step: float = 0.75
    worse_share: float = 0.25
    version: int = rule.RULE_VERSION

    def calm(self, size: float) -> float:
        """Below this a run is good again: half of the smallest change that counts, or what is left when a finding has
        lost three quarters of its `size`, so that a large one is not kept open by a small rest or a drift.
        """
        return max(0.5 * self.effect, (1.0 - self.opposite_step) * size)


class Observed(Struct, frozen=True):
    """What the runs of one version say of the series, in the finding's direction: positive `effect` is worse, as a log.

    `effect`: their mean against the baseline from before the finding; None where none has the series. `runs`: how many
    have it, `run` the last of them. `version`: its ordinal. `screens`: they are suspicious. `confirms`: what the
    confirming runs say, None while they are too few; `size`: how large they say it is, None for `effect`; `because`:
    why, or why not, as far as known. `gone`: the series is in no run of this version, of which enough are here, or all.
    `opposite_step`: size of a change point the other way that was not told before; 0: none. `cleared`: the version as a
    whole shows no change any more, however much it varies. `when_ns`: start of the run, None where nobody knows; then
    it ends no mute that has a time.
    """

    run: int
    version: int
    when_ns: int | None
    effect: float | None
    screens: bool = False
    confirms: bool | None = None
    gone: bool = False
    opposite_step: float = 0.0
    size: float | None = None
    because: str = ""
    runs: int = 1
    cleared: bool = False


class Acted(Struct, frozen=True):
    """What a user did, and why. A mute ends at `until_ns` or with the first run of version `until_version`: one of the
    two must be given. `when_ns`: None for what the rule does with a run without a clock.
    """

    action: Action
    who: str
    when_ns: int | None
    reason: str
    until_ns: int | None = None
    until_version: int | None = None


class Passed(Struct, frozen=True):
    """Time went by without a run."""

    when_ns: int


Event = Observed | Acted | Passed


class Finding(Struct, frozen=True):
    """Where a finding stands. `number` counts the findings of the series from 1; 0: there was none yet.

    `size`: log change when it was confirmed. `notified_level`: the level that was last told. `good_runs`, `worse_runs`:
    in a row. `before`, `muted_before`, `vanished_before`: the state that a recovery, a mute, a disappearance
    interrupted. `told`: a message about it was due at least once. `back_level`, `back_runs`: mean effect of the good
    runs in a row, their number.
    """

    state: State = "normal"
    number: int = 0
    first_bad_run: int | None = None
    first_bad_version: int | None = None
    size: float = 0.0
    notified_level: float = 0.0
    good_runs: int = 0
    worse_runs: int = 0
    reopened: int = 0
    recovered_version: int | None = None
    before: State = "normal"
    muted_before: State = "normal"
    vanished_before: State = "normal"
    told: bool = False
    until_ns: int | None = None
    until_version: int | None = None
    back_level: float = 0.0
    back_runs: int = 0


class Transition(Struct, frozen=True):
    """One row of a finding's history. `source` = `target` for what changes no state: `worsened`, `ignored`.

    `who`: a user, or "rule". `when_ns`: None for a run without a clock. `notifies`: a message is due; at most one per
    `key`.
    """

    number: int
    source: State
    target: State
    kind: str
    who: str
    when_ns: int | None
    run: int | None
    rule_version: int
    reason: str
    notifies: bool = False

    @property
    def key(self) -> str:
        """What makes a message of this row a repetition: finding, kind, and the time it happened, or by which run."""
        return f"{self.number}:{self.kind}:{f'run {self.run}' if self.when_ns is None else self.when_ns}"
