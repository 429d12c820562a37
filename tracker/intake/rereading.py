"""Stored runs, read again from their files, where a number has got another meaning since they were read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tracker import readers
from tracker.errors import SourceError, UsageError
from tracker.intake.ingesting import IngestResult, ingest
from tracker.intake.pieces import IngestOptions
from tracker.limits.touch import touch
from tracker.profile import (
    CHECK_RULES,
    CHECK_SETTING,
    RANGE_RULES,
    RANGE_SETTING,
    STEP_SETTING,
)
from tracker.profile.branches import branch_of
from tracker.profile.loader_names import idle_rules_of
from tracker.results.recording import HOST_MARKERS, find_idle_rules
from tracker.timeline import RULES_VERSION

if TYPE_CHECKING:
    from tracker.store import Store


class Reread(Struct, frozen=True):
    """What became of the runs that were read by an earlier version: `results` of those that were read again, and for
    each of the others the reason why it stays as it is. `up_to_date`: how many runs needed nothing.
    """

    results: tuple[IngestResult, ...]
    left: dict[int, str]
    up_to_date: int


def ingest_again(
    store: Store, *, version: str | None = None, workload: str | None = None, options: IngestOptions | None = None
) -> Reread:
    """Read the files of stored runs again where the run was read by an earlier step definition or naming rules, or by a
    program that did not keep times by calls, or that took kernels of HCCL, or a host without its NPU, for the work of a
    device.

    version, workload: only runs of these. A run keeps its number, labels, notes and findings; its rows and samples are
    made again, in a transaction of its own, and then the versions are judged again. A run whose files are gone, changed
    or can no longer be read stays as it is.
    """
    from tracker.store import queries

    runs = queries.runs(store, workload=workload, version=version)
    if not len(runs) and (version is not None or workload is not None):
        names = " of ".join(filter(None, [version and f"version {version!r}", workload and f"workload {workload!r}"]))
        raise UsageError(f"there is no run of {names}", remedy="tracker versions lists them")
    labels = {run_id: (of_version, of) for run_id, of_version, of in runs.rows("run_id", "version", "workload")}
    given = replace(options or IngestOptions(), again=True, judge=False)
    outdated = _outdated(store, dict(runs.rows("run_id", "rules_version")), given.loaders)
    files: dict[int, list[Path]] = {}
    for run_id, path in queries.sources(store, outdated).rows("run_id", "path"):
        files.setdefault(run_id, []).append(Path(path))
    results: list[IngestResult] = []
    left: dict[int, str] = {}
    try:
        for run_id in outdated:
            gone = [path for path in files.get(run_id, []) if not _is_file(path)]
            if gone or run_id not in files:
                left[run_id] = f"{gone[0]} is gone" if gone else "no file of it is known"
                continue
            places = list(dict.fromkeys(readers.capture_of(path) for path in files[run_id]))
            of_version, of_workload = labels[run_id]
            asked = replace(given, branch=branch_of(of_workload))
            try:
                results += ingest(store, places, version=of_version, workload=of_workload, options=asked)
            except (SourceError, UsageError) as error:
                left[run_id] = str(error)
    finally:
        # also where it is interrupted: what was read again is not outdated any more, and would stay unjudged
        _judge_again(store, [one.run_id for one in results])
    return Reread(tuple(results), left, len(runs) - len(outdated))


def _judge_again(store: Store, run_ids: list[int]) -> None:
    """Judge the versions of these runs, and of the branches that are judged against them."""
    from tracker.regressions import judgement

    if run_ids:
        judgement.update(store, judgement.with_branches(store, judgement.tracks_of(store, run_ids)))


def _is_file(path: Path) -> bool:
    with touch(path):
        return path.is_file()


def _outdated(store: Store, rules: dict[int, int | None], loaders: tuple[str, ...]) -> list[int]:
    """Return the runs that were read by an earlier program, or with other names of loaders, in order. rules: run ->
    version of its naming rules; loaders: the names of today.
    """
    from tracker.store import queries
    from tracker.store.recordings import recorded

    lack_call_times = set(queries.runs_without_call_times(store, sorted(rules)))
    of_earlier_rules = queries.runs_of_earlier_npu_rules(store, sorted(rules)) | lack_call_times
    with store.connect() as connection:
        recordings = recorded(connection, rules)
    found = []
    for run_id in sorted(rules):
        recording, settings = recordings[run_id].recording, recordings[run_id].settings
        is_of_device = recording.timeline == "device"
        has_old_steps = is_of_device and recording.steps == "marked" and recording.windows == HOST_MARKERS
        is_nsight = recording.reader == "nsys_sqlite"
        has_old_ranges = is_nsight and any(one.get(RANGE_SETTING) != RANGE_RULES for one in settings)
        has_old_checks = any(STEP_SETTING in one and one.get(CHECK_SETTING) != CHECK_RULES for one in settings)
        idle_rules = {find_idle_rules(one) for one in settings} - {None}
        has_old_causes = bool(idle_rules - {idle_rules_of(loaders)})
        is_of_other_rules = rules[run_id] != RULES_VERSION or has_old_steps or has_old_ranges or has_old_checks
        if is_of_other_rules or has_old_causes or run_id in of_earlier_rules:
            found.append(run_id)
    return found
