"""What users are told of a line of runs, the whole way: findings, incidents, verdicts of the step and exit codes.

A judge that is good by itself says little of what comes out of `findings`: that rests on windows, suspicions and lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import tracker
from tracker.compare import baseline_of, diff, gate_of_diff, known_before
from tracker.errors import UsageError
from tracker.judgement import findings, gate_of_findings, lines_of, update
from tracker.results import FindingsOptions
from tracker.results.findings import STATES
from tracker.store import queries

OPERATORS = ("op", "op_name")
"""Kinds of series that are operators: the kernels below them say the same once more."""

EVERYTHING = FindingsOptions(states=STATES, every=True)


@dataclass(frozen=True, slots=True)
class Called:
    """A finding that was confirmed, whatever became of it. `version`: that it is dated to; `sign`: 1 worse, -1 better;
    `change`: in what; `recovered`: the version whose runs ended it, "" where none did.
    """

    version: str
    kind: str
    name: str
    sign: int
    change: str = "level"
    recovered: str = ""


@dataclass(frozen=True, slots=True)
class Gates:
    """Exit codes of `--fail-on new` of the newest version, when its runs were in: of `findings` and of `diff` against
    its window, None where there is none. `suspects`: suspicions that were open then.
    """

    findings: int
    diff: int | None
    suspects: int


@dataclass(frozen=True, slots=True)
class Told:
    """All that users are told of one line. `steps`: version -> verdict of the step, None: not judged; `incidents`: a
    version for each.
    """

    called: list[Called]
    steps: Mapping[str, str | None]
    incidents: list[str]


def judged(store) -> None:
    """The judgement of everything, as each ingest leaves it."""
    update(store, lines_of(store))


def told(store) -> Told:
    """What users are told of the one line of a database."""
    found = findings(store, options=EVERYTHING)
    rows = found.findings[found.findings["incident_id"].notna()].to_dict("records")
    ended = _recoveries(store)
    called = [
        Called(
            row["version"], row["kind"], row["name"], 1 if row["direction"] == "regression" else -1, row["change"],
            ended.get(row["finding_id"], ""),
        )
        for row in rows
    ]  # fmt: skip
    return Told(called, _steps(store), found.incidents["version"].tolist())


def _recoveries(store) -> dict[int, str]:
    """Finding -> the version whose runs ended it, of those that recovered."""
    (line,) = lines_of(store)
    ended = {
        row["finding_id"]: event["run_id"]
        for row, events in queries.lives(store, line)
        for event in events
        if event["kind"] == "recovered"
    }
    versions = queries.labels_of(store, sorted(set(ended.values())))
    return {finding: versions[run][1] for finding, run in ended.items()}


def _steps(store) -> dict[str, str | None]:
    found = tracker.history("step", kind="run", store=store).points
    words = [word if isinstance(word, str) else None for word in found["baseline_verdict"]]
    return dict(zip(found["version"], words, strict=True))


def gates_of(store, version: str) -> Gates:
    """Whether the newest version fails a build, by both commands that say so."""
    found = findings(store)
    suspects = int((found.findings["state"] == "suspect").sum())
    return Gates(gate_of_findings(found, "new").code, _gate_of_diff(store, version), suspects)


def _gate_of_diff(store, version: str) -> int | None:
    try:
        baseline, _ = baseline_of(store, version)
    except UsageError:
        return None  # the first version
    found = diff(store, baseline, version)
    return gate_of_diff(found, "new", known_before(store, found)).code


def of_operators(called: Iterable[Called]) -> list[Called]:
    """Those that are of operators."""
    return [one for one in called if one.kind in OPERATORS]


def of_step(called: Iterable[Called]) -> list[Called]:
    """Those that are of the step itself."""
    return [one for one in called if (one.kind, one.name) == ("run", "step")]
