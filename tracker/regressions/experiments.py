"""What experiments decided of findings and suspects: those of the same two commits, on the same track."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from tracker.profile.branches import main_of
from tracker.profile.experiments import name_experiment
from tracker.regressions.found import FoundFinding
from tracker.results.experiments import ExperimentChange
from tracker.schema.series import STEP_SERIES
from tracker.store import Store, experiments
from tracker.store import tracks as stored_tracks
from tracker.store.experiments import DecidedExperiment
from tracker.store.tracks import TrackKey

CommitsOfVersions = Mapping[tuple[str, str], str]
"""Workload and label of a version -> its commit."""


def with_experiments(store: Store, rows: Sequence[FoundFinding]) -> list[FoundFinding]:
    """Return findings with what experiments decided of their step, and whether the commits of both versions are known.

    The newest experiment counts.
    """
    if not rows:
        return []
    with store.connect() as connection:
        decided = experiments.list_decided(connection)
        commits = stored_tracks.read_commits(connection)
        keys = {row.track_key for row in rows} if decided else set()
        mains = {key: stored_tracks.main_track_of(connection, key) or key for key in keys}
    return [_with_experiment(row, mains.get(row.track_key, row.track_key), decided, commits) for row in rows]


def _with_experiment(
    row: FoundFinding, track_key: TrackKey, decided: Sequence[DecidedExperiment], commits: CommitsOfVersions
) -> FoundFinding:
    """Return a finding with the answer of the newest experiment of its commits, on its track. `track_key`: that of its
    main line.
    """
    good = _find_commit(commits, row.workload, row.good_version or "")
    bad = _find_commit(commits, row.workload, row.version)
    has_commits = bool(good and bad)
    found = None
    for one in decided:
        is_of_commits = has_commits and (one.baseline_commit, one.candidate_commit) == (good, bad)
        if is_of_commits and one.track_key == track_key:
            found = one
    return replace(row, decided_by="" if found is None else _describe(found, row), has_commits=has_commits)


def _find_commit(commits: CommitsOfVersions, workload: str, version: str) -> str:
    """Return the commit of a version, of a branch that of the main line where it has no such version; "" for none."""
    return commits.get((workload, version)) or commits.get((main_of(workload), version)) or ""


def _describe(decided: DecidedExperiment, row: FoundFinding) -> str:
    """Return the answer of an experiment in a clause. Of a finding that is not the step, it says whose answer it is."""
    change = ExperimentChange(
        decided.outcome,
        decided.change_ratio,
        decided.low_ratio,
        decided.high_ratio,
        decided.limit_ratio,
        decided.counted_runs,
    )
    is_step = row.kind == "run" and row.name in STEP_SERIES
    return f"decided by {name_experiment(decided.experiment_id)}: {'' if is_step else 'the step is '}{change.answer}"
