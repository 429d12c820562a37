"""What one side alone is compared with: runs of its track before it."""

from __future__ import annotations

from collections.abc import Sequence

from tracker.compare.references import means
from tracker.errors import TooLittleDataError, UsageError
from tracker.profile.branches import branch_of, main_of
from tracker.regressions.sides import judged_version_of
from tracker.regressions.track import TrackRuns, runs_of_track
from tracker.results import BASELINES
from tracker.results.options import check_words
from tracker.store import Store, queries
from tracker.store import tracks as stored_tracks
from tracker.store.tracks import TrackRun
from tracker.units import format_numbers


def baseline_of(
    store: Store, candidate: str, run_ids: Sequence[int], against: str = "window", workload: str | None = None
) -> tuple[str, tuple[int, ...], str]:
    """The side that `candidate`, which are these runs of one track, is compared with: as `diff` takes it, its runs, and
    a sentence that says which they are.

    `against`: `window`, the runs of the level that the step of this version was judged against, where it was judged,
    else those of the version before; `previous`, all runs of the version before; `pinned`, those of the pinned version.
    All of the workload, configuration and device of the candidate. UsageError where there are none; for earlier ones it
    is a TooLittleDataError.
    """
    check_words("baseline", (against,), BASELINES)
    with store.connect() as connection:
        track_keys = stored_tracks.list_tracks(connection, run_ids)
        if len(track_keys) > 1:
            raise UsageError(
                f"{candidate} has runs of several workloads, devices or configurations",
                remedy="name some of them: VERSION@DEVICE or run:ID,run:ID",
            )
        track = runs_of_track(connection, track_keys[0])
        if track.main is not None:
            return _of_branch(store, track, candidate, run_ids, against, workload)
        row = judged_version_of(track, run_ids) if against == "window" else None
    named = queries.runs_by_id(store, run_ids).records()
    order = queries.order_of_versions(store, named[0]["workload"])
    first = min(order[run["version"]] for run in named)
    earlier = [run for run in track.runs if order[run.version] < first]
    level = set() if row is None else {*map(int, row.base_runs.split())}
    if against == "pinned":
        chosen = [run for run in track.runs if run.pinned and run.run_id not in run_ids]
    else:
        chosen = [run for run in earlier if run.run_id in level]
        chosen = chosen or [run for run in earlier if run.version_id == earlier[-1].version_id]
    if not chosen:
        what = "pinned" if against == "pinned" else "earlier"
        kind = UsageError if against == "pinned" else TooLittleDataError  # the first version has none, and no fault
        raise kind(
            f"{candidate} has no {what} runs on its device and configuration",
            remedy="name the baseline as well: BASELINE CANDIDATE",
        )
    words = (
        "the pinned version" if against == "pinned"
        else f"the level that {candidate} was judged against" if level
        else "the version before"
    )  # fmt: skip
    numbers = sorted(run.run_id for run in chosen)
    side = ",".join(f"run:{number}" for number in numbers)
    if not level:
        device = f"{named[0]['vendor']} {named[0]['device']}".strip()
        names = (chosen[0].version, f"{chosen[0].version}@{device}")
        # where a name means the same runs, people know them by it
        side = next((name for name in names if means(store, name, numbers, workload)), side)
    return side, tuple(numbers), f"The baseline is {words}: {_by_version(chosen)}."


def _of_branch(
    store: Store, track: TrackRuns, candidate: str, run_ids: Sequence[int], against: str, workload: str | None
) -> tuple[str, tuple[int, ...], str]:
    """`baseline_of` for runs of a branch: those of its main line, up to the version that it is judged from."""
    assert track.main is not None
    versions = [run.version_id for run in track.runs if run.run_id in run_ids]
    base = track.bases.get(versions[-1]) if versions else None
    earlier = track.runs_before(versions[-1]) if versions else []
    row = judged_version_of(track, run_ids) if against == "window" else None
    level = set() if row is None else {*map(int, row.base_runs.split())}
    if against == "pinned":
        chosen = [run for run in track.main.runs if run.pinned]
    else:
        chosen = [run for run in earlier if run.run_id in level]
        chosen = chosen or [run for run in earlier if run.version_id == earlier[-1].version_id]
    named = queries.runs_by_id(store, run_ids).records()[0]["workload"]
    main, branch = main_of(named), branch_of(named)
    if not chosen and against == "pinned":
        raise UsageError(f"{main} has no pinned runs like {candidate}", remedy="name the baseline: BASELINE CANDIDATE")
    if not chosen or base is None:
        raise TooLittleDataError(
            f"the main line of {main} has no runs that {candidate} of branch {branch} could be compared with, on its "
            "device and configuration",
            remedy="profile the main line, too",
        )
    words = (
        "the pinned version of the main line" if against == "pinned"
        else f"the level of the main line at {base.label} ({base.why}), which {candidate} of branch {branch} was "
        "judged against" if level
        else f"the main line at {base.label} ({base.why})"
    )  # fmt: skip
    numbers = sorted(run.run_id for run in chosen)
    side = ",".join(f"run:{number}" for number in numbers)
    if means(store, chosen[0].version, numbers, workload):
        side = chosen[0].version
    return side, tuple(numbers), f"The baseline is {words}: {_by_version(chosen)}."


def _by_version(runs: Sequence[TrackRun]) -> str:
    """Which runs of which versions, in order."""
    found: dict[str, list[int]] = {}
    for run in runs:
        found.setdefault(run.version, []).append(run.run_id)
    return ", ".join(f"{version} (run {format_numbers(sorted(numbers))})" for version, numbers in found.items())
