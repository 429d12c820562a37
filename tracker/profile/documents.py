"""Documents of one execution: the summary and the log of a job beside the trace of it are no runs of their own.

A job writes them into one folder: the trace says where a step goes, the log of a timer how long it takes without a
profiler. They are one run with several sources. Where a folder has two of a kind, it is not known which is of which
job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from tracker.profile.same_job import Timed, contradict, ran_at_once
from tracker.schema.series import SUMMARY, UNPROFILED

TRACE: Final = ""
"""The way of a run that is neither a summary nor a log."""


class Execution(Struct, frozen=True):
    """What a run says of the job that it is of, whether it comes in or is stored.

    `folders`: of its files; `way`: how its step was measured, one of series.WAYS; `says`: version, job and the like,
    by name; `times`: when its captures ran; `document_of`: the place of the run that it is known to be a document of.
    """

    folders: frozenset[str]
    way: str
    says: Mapping[str, str]
    times: Sequence[Timed]
    document_of: int | None = None


def find_documents(runs: Sequence[Execution]) -> dict[int, int]:
    """Return the places of runs that are documents of others and not known as such, each with the place of the other.

    The run that a trace made is what the others are documents of, without one that of a summary.
    """
    found: dict[int, int] = {}
    for places in _by_folder(runs).values():
        free = [place for place in places if runs[place].document_of is None]
        mains = [place for place in free if runs[place].way == TRACE]
        mains = mains or [place for place in free if runs[place].way == SUMMARY]
        if len(mains) != 1:
            continue
        (main,) = mains
        known = {runs[place].way for place in places if runs[place].document_of == main}
        for way in (SUMMARY, UNPROFILED):
            of_way = [place for place in free if runs[place].way == way and place != main]
            if len(of_way) == 1 and way not in known and _may_be_one_job(runs[main], runs[of_way[0]]):
                found[of_way[0]] = main
    return found


def _by_folder(runs: Sequence[Execution]) -> dict[str, list[int]]:
    """Return the places of the runs of each folder; a run whose files lie in several folders is in none."""
    folders: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        if len(run.folders) == 1:
            (folder,) = run.folders
            folders.setdefault(folder, []).append(place)
    return folders


def _may_be_one_job(main: Execution, document: Execution) -> bool:
    if contradict(main.says, document.says):
        return False
    return any(ran_at_once(one, other) for one in main.times for other in document.times)
