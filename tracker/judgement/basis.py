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
    made = []
    for place, version in enumerate(versions):
        before = tuple(versions[max(0, place - LOOK_BACK) : place])
        other = pinned if pinned is not version else None
        chain = judgements.fingerprint(chain, version.version_id, *_said_of(basis, version))
        fingerprint = chain if other is None else judgements.fingerprint(chain, *_said_of(basis, other))
        made.append(Task(version, before, other, basis.limits, fingerprint))
        own = {run.run_id for run in version.runs}
        words = [(one.key, one.action, one.when_ns) for one in basis.actions if _place(basis, one) in own]
        chain = judgements.fingerprint(chain, *words) if words else chain
    return made


def _said_of(basis: Basis, version: Version) -> list[tuple[object, ...]]:
    """What stands for the runs of a version in a fingerprint."""
    found = []
    words: dict[int, tuple[object, ...]] = {}  # runs that say the same are one object
    for run in version.runs:
        own = basis.recordings[run.run_id]
        if id(own) not in words:
            words[id(own)] = (tuple(sorted(own.said.items())), *map(_items, own.settings))
        found.append((run.run_id, run.ranks, run.timeline, *words[id(own)]))
    return found


def _items(of: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(of.items()))


def _place(basis: Basis, action: Action) -> int:
    """The number of the run with whose version an action counts; see `follow`."""
    there = [run.run_id for run in basis.runs if run.run_id <= (action.after_run_id or 0)]
    return there[-1] if there else basis.runs[-1].run_id


def stale(basis: Basis, known: Mapping[int, JudgedVersion]) -> list[Task]:
    """The tasks whose result is not there, or rests on something else than now; see `tasks`."""
    return [
        task
        for task in tasks(basis)
        if task.version.version_id not in known
        or known[task.version.version_id].fingerprint != task.fingerprint
        or any(run.stale for run in task.version.runs)
    ]
