"""The sides of an experiment as the database names them: versions, and the two of a finding, by their commits."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from tracker.config.places import user_path
from tracker.errors import UsageError
from tracker.experiment import measuring
from tracker.experiment.conducting import Request
from tracker.experiment.decide import expected_pairs
from tracker.experiment.repository import find_commit, find_root
from tracker.profile.branches import main_of
from tracker.regressions.inbox import found_rows
from tracker.regressions.track import named_tracks, read_tracks
from tracker.schema.column_names import COMMIT, KEY, RUN_ID, VALUE, VERSION
from tracker.store import Store, queries


def of_finding(store: Store, request: Request, finding_id: int) -> Request:
    """Return a request whose sides are the two of a finding: the last good version and the one that began it, by their
    commits. UsageError where there is no such finding, or a version whose commit is not stored.
    """
    rows = [row for row in found_rows(store, finding_ids=[finding_id]) if row.finding_id == finding_id]
    if not rows:
        raise UsageError(f"there is no finding {finding_id}", remedy="tracker findings --state all lists them")
    row = rows[0]
    if row.good_version is None:
        raise UsageError(
            f"finding {finding_id} has no version that was good before", remedy="name both sides: tracker ab GOOD BAD"
        )
    return replace(
        request,
        baseline=_commit_of(store, row.workload, row.good_version),
        candidate=_commit_of(store, row.workload, row.version),
        workload=main_of(row.workload),
        finding_id=finding_id,
        names=(row.good_version, row.version),
    )


def with_commits(store: Store, request: Request) -> Request:
    """Return a request in which a side that is neither a revision nor a folder, but a stored version, is its commit."""
    return replace(
        request,
        baseline=_resolve(store, request, request.baseline),
        candidate=_resolve(store, request, request.candidate),
        names=(request.baseline, request.candidate),
    )


def _resolve(store: Store, request: Request, text: str) -> str:
    root = find_root(request.started_in)
    is_folder = (request.started_in / user_path(text)).is_dir()
    if is_folder or root is None or find_commit(root, text):
        return text
    rows = queries.versions(store, request.workload).rows(VERSION, COMMIT)
    commits = {commit for version, commit in rows if version == text and commit}
    return commits.pop() if len(commits) == 1 else text


def _commit_of(store: Store, workload: str, version: str) -> str:
    """Return the commit of a version of a workload, or of its main line; else the one that all of its runs say they
    were started at, without other changes.
    """
    for name in dict.fromkeys((workload, main_of(workload))):
        for label, commit in queries.versions(store, name).rows(VERSION, COMMIT):
            if label == version and commit:
                return str(commit)
    run_ids = queries.runs(store, version=version, workload=workload).listed(RUN_ID)
    said: dict[str, set[str]] = {}
    for key, value in queries.facts(store, run_ids).rows(KEY, VALUE):
        said.setdefault(key, set()).add(value)
    commits = said.get("git_commit", set())
    if len(commits) == 1 and said.get("git_dirty") == {"no"}:
        return commits.pop()
    raise UsageError(
        f"the commit of version {version} is not stored",
        remedy=f"name both sides, or store it: tracker runs edit RUN --commit HASH, with a run of {version}",
    )


class ExpectedRuns(Struct, frozen=True):
    """How many runs an experiment is expected to take, both sides together, by the noise of a `track`, in words."""

    runs: int
    track: str


def expect_runs(store: Store, request: Request) -> ExpectedRuns | None:
    """Return how many runs are expected; None where no track of the workload says how noisy it is, or several do."""
    tracks = read_tracks(store, named_tracks(store, request.workload))
    if request.workload is None or len(tracks) != 1:
        return None
    (track,) = tracks
    newest = max(run.run_id for run in track.newest)
    measure = measuring.choose_measure(store, [newest])
    history = None if measure is None else measuring.read_history(store, newest, measure)
    if history is None or history.noise_sd is None:
        return None
    pairs = expected_pairs(history.noise_sd, request.within or history.limit_ratio)
    return ExpectedRuns(2 * pairs, ", ".join(track.names.words))
