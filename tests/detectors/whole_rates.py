"""How often what users are told is wrong, how much it finds, and how it dates it: counts that add up over lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

from tests.detectors.stories import Story, changes
from tests.detectors.whole_way import Told, of_operators, of_step


@dataclass(frozen=True, slots=True)
class Found:
    """Confirmed findings of operators against what is true; a name counts once per version and direction.

    `injected`: slow-downs there were, `found` of them; `dated`: those of `found` that are dated to their version;
    `right`, `wrong`: findings in both directions; `ended`: slow-downs dated rightly that were taken back later,
    `recovered`: those of them that recovered in the version that took them back.
    """

    injected: int = 0
    found: int = 0
    dated: int = 0
    right: int = 0
    wrong: int = 0
    ended: int = 0
    recovered: int = 0

    def __add__(self, other: Found) -> Found:
        return Found(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @property
    def recall(self) -> float:
        """Part of the slow-downs that was found, in whatever version."""
        return self.found / self.injected if self.injected else float("nan")

    @property
    def fdr(self) -> float:
        """Part of the findings that is false; 0 without any."""
        return self.wrong / max(1, self.right + self.wrong)

    @property
    def misdated(self) -> int:
        """Slow-downs that were found, and dated to another version than theirs."""
        return self.found - self.dated


def found_of(told: Told, story: Story, *, counted: Collection[str] | None = None) -> Found:
    """What was told of the operators of a story. `counted`: slow-downs that are large enough to be found; None: all.

    A slow-down that is told of a later version in which it still held is found, and neither right nor wrong.
    """
    truth = changes(story)
    called = {(one.version, one.name, one.sign): one for one in of_operators(told.called) if one.change != "creep"}
    held = {version.label: set(version.slower) for version in story}
    right = {key for key in called if truth[key[0]].get(key[1]) == key[2]}
    late = {key for key in called if key not in right and key[2] > 0 and key[1] in held[key[0]]}
    slow = [(version, name) for version, own in truth.items() for name, sign in own.items() if sign > 0]
    slow = [one for one in slow if counted is None or one[1] in counted]
    dated = [one for one in slow if (*one, 1) in right]
    names = {name for _, name, _ in late}
    back = {name: version for version, own in truth.items() for name, sign in own.items() if sign < 0}
    lived = [called[version, name, 1] for version, name in dated if name in back]
    return Found(
        injected=len(slow),
        found=len(dated) + sum(one[1] in names for one in slow if one not in dated),
        dated=len(dated),
        right=len(right),
        wrong=len(called) - len(right) - len(late),
        ended=len(lived),
        recovered=sum(one.recovered == back[one.name] for one in lived),
    )


@dataclass(frozen=True, slots=True)
class Alarms:
    """What was told of versions in which nothing changed: all of it is false. `operators`: a name once per version;
    `steps`: findings of the step; `verdicts`: versions whose step is called REGRESSED or IMPROVED.
    """

    versions: int = 0
    operators: int = 0
    steps: int = 0
    verdicts: int = 0
    incidents: int = 0

    def __add__(self, other: Alarms) -> Alarms:
        return Alarms(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @property
    def operators_per_20(self) -> float:
        """False findings of operators per 20 versions."""
        return 20 * self.operators / max(1, self.versions)


def alarms_of(told: Told, versions: Collection[str] | None = None) -> Alarms:
    """The false alarms among `versions`, of which nothing is true; None: all of the line."""
    quiet = set(told.steps) if versions is None else set(versions)
    called = [one for one in told.called if one.version in quiet]
    return Alarms(
        versions=len(quiet),
        operators=len({(one.version, one.name) for one in of_operators(called)}),
        steps=len(of_step(called)),
        verdicts=sum(word in ("REGRESSED", "IMPROVED") for word in _of(told.steps, quiet)),
        incidents=sum(version in quiet for version in told.incidents),
    )


def _of(steps: Mapping[str, str | None], versions: Collection[str]) -> list[str | None]:
    return [word for version, word in steps.items() if version in versions]
