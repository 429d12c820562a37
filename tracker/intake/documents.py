"""Documents of one execution: the summary and the log of a job beside the trace of it are no runs of their own.

A job writes them into one folder: the trace says where a step goes, the log of a timer how long it takes without a
profiler. They are one run with several sources. Where a folder has two of a kind, nobody knows which is of which job.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tracker.intake.pieces import Piece
from tracker.profile.same_job import ran_at_once
from tracker.schema.series import SUMMARY, UNPROFILED, way_of

Run = Sequence[Piece]


def find_documents(runs: Sequence[Run]) -> dict[int, int]:
    """Return the places of runs that are documents of another one, each with the place of that one.

    The run that a trace made is what the others are documents of, without one that of a summary.
    """
    found: dict[int, int] = {}
    for places in _by_folder(runs).values():
        by_way: dict[str, list[int]] = {}
        for place in places:
            by_way.setdefault(_way_of_run(runs[place]), []).append(place)
        mains = by_way.pop("", []) or by_way.pop(SUMMARY, [])
        if len(mains) != 1:
            continue
        for way in (SUMMARY, UNPROFILED):
            documents = by_way.get(way, [])
            if len(documents) == 1 and not _contradict(runs[mains[0]], runs[documents[0]]):
                found[documents[0]] = mains[0]
    return found


def leave_out_documents(runs: Sequence[Run]) -> list[Piece]:
    """Return the captures of the runs that are no documents of others."""
    found = find_documents(runs)
    return [piece for place, run in enumerate(runs) if place not in found for piece in run]


def _by_folder(runs: Sequence[Run]) -> dict[Path, list[int]]:
    """Return the places of the runs of each folder; a run whose files lie in several folders is in none."""
    folders: dict[Path, list[int]] = {}
    for place, run in enumerate(runs):
        own = {Path(piece.place).parent for piece in run}
        if len(own) == 1:
            folders.setdefault(own.pop(), []).append(place)
    return folders


def _way_of_run(run: Run) -> str:
    """Return how the step of a run was measured, one of `series.WAYS`; of several ranks as of the first."""
    return way_of(run[0].capture.settings.get("profiler", ""))


def _contradict(main: Run, document: Run) -> bool:
    """Return whether two runs of one folder state that they are of two jobs."""
    one, other = main[0].capture, document[0].capture
    stated = ((one.labels, other.labels), (one.configuration, other.configuration))
    if any(mine.get(key, value) != value for mine, theirs in stated for key, value in theirs.items()):
        return True
    jobs = one.facts.get("job_id"), other.facts.get("job_id")
    if None not in jobs and jobs[0] != jobs[1]:
        return True
    return not any(ran_at_once(piece.capture, other) for piece in main)
