"""What the judgement of a version rests on, and which judgements rest on something else than now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from sqlalchemy import Connection

from tracker.detectors import rule
from tracker.judgement.best import LOOK_BACK
from tracker.judgement.recorded import recorded_runs
from tracker.judgement.thresholds import Thresholds
from tracker.store import findings, judged, judgements, thresholds
from tracker.store.findings import Action
from tracker.store.judged import JudgedVersion, Line, LineRun
from tracker.store.queries.recordings import Recorded


class Version(Struct, frozen=True):
    """A version of a line with its active runs, oldest first."""

    version_id: int
    label: str
    pinned: bool
    runs: tuple[LineRun, ...]


class Task(Struct, frozen=True):
    """A version, what it is judged against, and by which limits. `before`: the versions before it, oldest first, at
    most LOOK_BACK. `fingerprint`: what the judgement rests on: rule, limits, and all versions up to it, in their order,
    with their runs, how these were recorded and how many ranks there are of each, what users said before it, and the
    pinned version.
    """

    version: Version
    before: tuple[Version, ...]
    pinned: Version | None
    limits: Thresholds
    fingerprint: bytes

    @property
    def previous(self) -> Version | None:
        """The version before, if any."""
        return self.before[-1] if self.before else None

    @property
    def sides(self) -> list[Version]:
        """All versions that the judgement rests on."""
        return [*self.before, self.version, *([self.pinned] if self.pinned else [])]


class Basis(Struct, frozen=True):
    """All that the judgement of a line rests on. `recordings`: how its runs were recorded; `actions`: users' words."""

    runs: Sequence[LineRun]
    limits: Thresholds
    recordings: Mapping[int, Recorded]
    actions: Sequence[Action]


def basis_of(connection: Connection, line: Line) -> Basis:
    """What the judgement of a line rests on now."""
    runs = judged.runs_of(connection, line)
    limits = Thresholds(thresholds.of_line(connection, line))
    return Basis(runs, limits, recorded_runs(connection, runs), findings.actions_of(connection, line))


def tasks(basis: Basis) -> list[Task]:
    """What there is to judge in a line, by version."""
    found: dict[int, list[LineRun]] = {}
    for run in basis.runs:
        found.setdefault(run.version_id, []).append(run)
    versions = [Version(number, own[0].version, own[0].pinned, tuple(own)) for number, own in found.items()]
    pinned = next((version for version in versions if version.pinned), None)
    chain = judgements.fingerprint(rule.RULE_VERSION, basis.limits.key, LOOK_BACK)
    said = _said_with(basis)
    made = []
    for place, version in enumerate(versions):
        before = tuple(versions[max(0, place - LOOK_BACK) : place])
        other = pinned if pinned is not version else None
        chain = judgements.fingerprint(chain, *map(words_of, version.runs))
        fingerprint = chain if other is None else judgements.fingerprint(chain, *map(words_of, other.runs))
        made.append(Task(version, before, other, basis.limits, fingerprint))
        words = said.get(version.version_id)
        chain = judgements.fingerprint(chain, *words) if words else chain
    return made


def words_of(run: LineRun) -> str:
    """What stands for a run in a fingerprint: its version, how many ranks there are of it, and how it was recorded."""
    return f"{run.version_id} {run.run_id} {run.ranks} {run.timeline} {run.recording_id}"


def _said_with(basis: Basis) -> dict[int, list[tuple[object, ...]]]:
    """What stands for the actions that count with each version, in their order; see `follow`."""
    found: dict[int, list[tuple[object, ...]]] = {}
    for one in basis.actions:
        # that of the last run that was there
        version = next(
            (run.version_id for run in reversed(basis.runs) if run.run_id <= (one.after_run_id or 0)),
            basis.runs[-1].version_id,
        )
        found.setdefault(version, []).append((one.key, one.action, one.when_ns))
    return found


def stale(basis: Basis, known: Mapping[int, JudgedVersion]) -> list[Task]:
    """The tasks whose result is not there, or rests on something else than now; see `tasks`."""
    return [
        task
        for task in tasks(basis)
        if task.version.version_id not in known
        or known[task.version.version_id].fingerprint != task.fingerprint
        or any(run.stale for run in task.version.runs)
    ]
