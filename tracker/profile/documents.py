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
from tracker.units import counted

TRACE: Final = ""
"""The way of a run that is neither a summary nor a log."""
_NAMES: Final = {TRACE: "trace", SUMMARY: "summary text", UNPROFILED: "log"}
_SEVERAL: Final = 2


def name_way(way: str) -> str:
    """Return what a file is called whose step was measured in this way."""
    return _NAMES[way]


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


class LeftApart(Struct, frozen=True):
    """Runs of one folder that may be of one job, by their places, and why they count apart."""

    places: tuple[int, ...]
    why: str


def find_documents(runs: Sequence[Execution]) -> dict[int, int]:
    """Return the places of runs that are documents of others and not known as such, each with the place of the other.

    The run that a trace made is what the others are documents of, without one that of a summary.
    """
    found: dict[int, int] = {}
    for places in _by_folder(runs).values():
        found |= _judge_folder(runs, places)[0]
    return found


def find_left_apart(runs: Sequence[Execution]) -> list[LeftApart]:
    """Return the runs of each folder that holds several ways of measuring, of which it is not known which are of one
    job.
    """
    found = []
    for places in _by_folder(runs).values():
        documents, why = _judge_folder(runs, places)
        left = [place for place in places if runs[place].document_of is None and place not in documents]
        if why:
            found.append(LeftApart(tuple(left), why))
    return found


def _judge_folder(runs: Sequence[Execution], places: Sequence[int]) -> tuple[dict[int, int], str]:
    """Return which of the runs of a folder are documents of which, and why others of them are not; "" for none."""
    free = [place for place in places if runs[place].document_of is None]
    if len({runs[place].way for place in free}) < _SEVERAL:
        return {}, ""
    by_way = {way: [place for place in free if runs[place].way == way] for way in _NAMES}
    mains = by_way[TRACE] or by_way[SUMMARY]
    if len(mains) > 1:
        return {}, counted(len(mains), _NAMES[runs[mains[0]].way])
    (main,) = mains
    known = {runs[place].way for place in places if runs[place].document_of == main}
    found: dict[int, int] = {}
    why = []
    for way in (SUMMARY, UNPROFILED):
        of_way = [place for place in by_way[way] if place != main]
        number = len(of_way) + (way in known)
        reasons = [_why_other_jobs(runs[main], runs[place]) for place in of_way]
        if of_way and number > 1:
            why.append(counted(number, _NAMES[way]))
        elif any(reasons):
            why += reasons
        elif of_way:
            found[of_way[0]] = main
    return found, "; ".join(why)


def _by_folder(runs: Sequence[Execution]) -> dict[str, list[int]]:
    """Return the places of the runs of each folder; a run whose files lie in several folders is in none."""
    folders: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        if len(run.folders) == 1:
            (folder,) = run.folders
            folders.setdefault(folder, []).append(place)
    return folders


def _why_other_jobs(main: Execution, document: Execution) -> str:
    """Return why two runs of a folder are of other jobs; "" where they are of one."""
    if contradict(main.says, document.says):
        return "they state other values of one key"
    if not any(ran_at_once(one, other) for one in main.times for other in document.times):
        return "they did not run at the same time"
    return ""
