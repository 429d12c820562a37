"""Stored runs, read again from their files, where a number has got another meaning since they were read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker import readers
from tracker.columns import Columns, objects
from tracker.errors import SourceError, UsageError
from tracker.intake.ingesting import IngestResult, ingest
from tracker.intake.outdated import find_missing_file, find_named_formats, find_outdated
from tracker.intake.pieces import IngestOptions
from tracker.profile.branches import branch_of
from tracker.schema.column_names import PATH, RULES_VERSION, RUN_ID, VERSION, WORKLOAD

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
    labels = {run_id: (of_version, of) for run_id, of_version, of in runs.rows(RUN_ID, VERSION, WORKLOAD)}
    given = replace(options or IngestOptions(), again=True, judge=False)
    rules = dict(runs.rows(RUN_ID, RULES_VERSION))
    outdated = list(find_outdated(store, rules, given.loaders, given.format))
    formats = find_named_formats(store, rules)
    files: dict[int, list[Path]] = {}
    for run_id, path in queries.sources(store, outdated).rows(RUN_ID, PATH):
        files.setdefault(run_id, []).append(Path(path))
    results: list[IngestResult] = []
    left: dict[int, str] = {}
    try:
        for run_id in outdated:
            missing = find_missing_file(files.get(run_id, ()))
            if missing:
                left[run_id] = missing
                continue
            places = list(dict.fromkeys(readers.capture_of(path) for path in files[run_id]))
            of_version, of_workload = labels[run_id]
            asked = replace(given, branch=branch_of(of_workload), format=given.format or formats.get(run_id))
            try:
                results += ingest(store, places, version=of_version, workload=of_workload, options=asked)
            except (SourceError, UsageError) as error:
                left[run_id] = str(error)
    finally:
        # also where it is interrupted: what was read again is not outdated any more, and would stay unjudged
        _judge_again(store, [one.run_id for one in results])
    return Reread(tuple(results), left, len(runs) - len(outdated))


def outdated_runs(store: Store, runs: Columns, loaders: Sequence[str] = ()) -> Columns:
    """Return those of the `runs` that `ingest_again` would read again, with the reason as `why`.

    runs: as `queries.runs` gives them. loaders: the names of loaders of today. What is said of files that are gone
    stands in it, too: such a run stays as it is.
    """
    from tracker.store import queries

    reasons = find_outdated(store, dict(runs.rows(RUN_ID, RULES_VERSION)), tuple(loaders))
    files: dict[int, list[Path]] = {}
    for run_id, path in queries.sources(store, list(reasons)).rows(RUN_ID, PATH):
        files.setdefault(run_id, []).append(Path(path))
    for run_id, why in reasons.items():
        missing = find_missing_file(files.get(run_id, ()))
        if missing:
            reasons[run_id] = f"{why} ({missing}, so that it stays as it is)"
    run_ids = runs.listed(RUN_ID)
    found = runs.taken(np.array([run_id in reasons for run_id in run_ids], dtype=bool))
    return found.having(why=objects([reasons[run_id] for run_id in found.listed(RUN_ID)]))


def _judge_again(store: Store, run_ids: list[int]) -> None:
    """Judge the versions of these runs, and of the branches that are judged against them."""
    from tracker.regressions import judgement

    if run_ids:
        judgement.update(store, judgement.with_branches(store, judgement.tracks_of(store, run_ids)))
