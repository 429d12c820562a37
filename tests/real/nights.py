"""Labelled series as users saw them grow, version by version: exit codes of each night, and what is told at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tracker
from tests.detectors.stories import Story, Version
from tests.detectors.whole_rates import Alarms, alarms_of
from tests.detectors.whole_way import Gates, Told, gates_of, told
from tests.real.gates import FACTORS, INJECTED, LABELS
from tracker.detectors import rule

UNCHANGED = ("v01", "v02", "v03", "v04", "v06")
"""Versions of nightly_gpt that ran the code of the version before."""

TAKEN_BACK = {"v05": "v07", "v08": "v09", "v10": "v11", "v11": "v12"}
"""Version -> the one that took its change back."""

STEPS = {"v08": rule.REGRESSED, "v10": rule.REGRESSED, "v11": rule.REGRESSED}
"""What MANIFEST.md says of the step: +25 ms, +7 ms, +37 ms."""

CODES = {
    "v02": 0, "v03": 0, "v04": 0, "v05": 1, "v06": 0, "v07": 0, "v08": 1, "v09": 0, "v10": 1, "v11": 1, "v12": 0,
}  # fmt: skip
"""Exit codes of `--fail-on new`: what got worse fails, what is as before or was taken back passes. Nothing else, and 4
only where there are too few runs to judge by: in v01.
"""


@dataclass(frozen=True, slots=True)
class Nights:
    """A labelled series. `gates`: of each version when it was the newest; `told`: at the end."""

    gates: Mapping[str, Gates]
    told: Told

    @property
    def wrong_steps(self) -> list[str]:
        """Labelled changes of the step with another verdict, as `v10 DRIFT`."""
        steps = self.told.steps
        return [f"{version} {steps[version]}" for version, word in STEPS.items() if steps[version] != word]

    @property
    def alarms(self) -> Alarms:
        """What was told of the versions in which nothing changed."""
        return alarms_of(self.told, UNCHANGED)

    @property
    def incidents_taken_back(self) -> list[str]:
        """Versions that took a change back and nothing else, and are said to have changed something."""
        return sorted({*TAKEN_BACK.values()} & {*self.told.incidents} - {*LABELS})

    def wrong_codes(self, of: str) -> list[str]:
        """Nights with another exit code than the labels say, as `v06 1`. `of`: findings, diff."""
        codes = {version: getattr(gates, of) for version, gates in self.gates.items()}
        return [f"{version} {codes[version]}" for version, code in CODES.items() if codes[version] != code]

    @property
    def blocked(self) -> list[str]:
        """Nights with runs enough that ended with 4, or failed on nothing but suspicions."""
        return [version for version in CODES if 4 in (self.gates[version].findings, self.gates[version].diff)]

    def missed(self, version: str) -> list[tuple[str, int, str]]:
        """Labels of a version that are not told, or of another version."""
        known = {(one.kind, one.sign, one.name) for one in self.told.called if one.version == version}
        return [label for label in LABELS[version] if label not in known]

    def not_recovered(self, version: str) -> list[str]:
        """Names of labels of a version whose findings did not recover in the version that took them back."""
        own = [one for one in self.told.called if (one.version, one.kind, one.sign, one.name) in _keys(version)]
        return sorted({one.name for one in own if one.recovered != TAKEN_BACK[version]})


def _keys(version: str) -> set[tuple[str, str, int, str]]:
    return {(version, *label) for label in LABELS[version]}


def made_story(clean: int = 12, slow: int = 8) -> Story:
    """What is true of the runs of `gates.make_series`: versions of 3 runs as they are, then two for each factor."""
    quiet = [Version(f"v{number:02}", 3) for number in range(1, clean // 3 + 1)]
    slower = [dict.fromkeys(INJECTED, factor) for factor in FACTORS for _ in range(2)]
    return [*quiet, *(Version(f"v{number:02}", slow // 2, own) for number, own in enumerate(slower, len(quiet) + 1))]


def as_versions(story: Story, paths: Sequence[Path]) -> dict[str, list[Path]]:
    """The captures of a story by version, in order."""
    left = iter(paths)
    return {version.label: [next(left) for _ in range(version.runs)] for version in story}


def nights(versions: Mapping[str, Sequence[Path]]) -> Nights:
    """The captures of `versions`, ingested version by version."""
    with tracker.open_store("sqlite://") as store:
        gates = dict(_ingested(store, versions))
        return Nights(gates, told(store))


def _ingested(store, versions: Mapping[str, Sequence[Path]]) -> Iterator[tuple[str, Gates]]:
    for version, paths in versions.items():
        tracker.ingest(paths, version=version, workload="gpt", store=store)
        yield version, gates_of(store, version)
