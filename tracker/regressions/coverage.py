"""What was judged of what was expected, of several tracks together; which workloads did not run; and the gate of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracker.errors import EXIT_OK, EXIT_TOO_LITTLE_DATA, UsageError
from tracker.regressions.track import TrackNames, TrackRuns
from tracker.results.coverage import CountedSeries
from tracker.results.verdicts import COVERAGE, Gate

_LEAST_IN_STEP: Final = 3
"""Versions before the newest one that a workload must have run in, to be expected in that."""


def list_missing(tracks: Sequence[TrackRuns]) -> list[tuple[TrackNames, str]]:
    """Return the tracks that did not run in the newest version though they ran in the three before it, each by its
    workload, configuration and device, with the label of that version.

    The newest version is that of which a run began last; those before it are those of its track.
    """
    newest = max(tracks, key=_last_start, default=None)
    if newest is None or not _last_start(newest):
        # nothing says which version is the newest
        return []
    label = newest.labels[newest.order[-1]]
    before = [newest.labels[version] for version in newest.order[-1 - _LEAST_IN_STEP : -1]]
    missing = []
    for track in tracks:
        own = {*track.labels.values()}
        if label not in own and len(before) == _LEAST_IN_STEP and own.issuperset(before):
            missing.append((track.names, label))
    return missing


def sentences_on_missing(tracks: Sequence[TrackRuns]) -> tuple[str, ...]:
    """Return the tracks of `list_missing`, a sentence on each: they may still come."""
    sentences = []
    for names, label in list_missing(tracks):
        sentences.append(f"{', '.join(names.words)} has no run of {label}.")
    return tuple(sentences)


def _last_start(track: TrackRuns) -> int:
    """Return when the newest version of a track began, 0 where nobody knows."""
    starts = [run.started_at_ns for run in track.newest if run.started_at_ns is not None]
    return max(starts, default=0)


def gate_of_coverage(tracks: Sequence[CountedSeries], missing: Sequence[str], least: float | None) -> Gate:
    """Return exit code 4 where less than the share `least` of the series of a track was judged, or a workload did not
    run; else 0. `tracks`: how many series of each were judged; `missing`: sentences on workloads that did not run.

    UsageError where no share is set.
    """
    if least is None:
        raise UsageError(
            f"--fail-on {COVERAGE} needs a share", remedy="set [coverage] least = 0.9, or another one, in the settings"
        )
    low = []
    for counted in tracks:
        if counted.judged is None or not counted.expected:
            low.append("how many series were judged is not known")
        elif counted.judged < least * counted.expected:
            low.append(f"{counted.words}, and {100 * least:g} % are wanted")
    problems = [*low, *(sentence.rstrip(".") for sentence in missing)]
    code = EXIT_TOO_LITTLE_DATA if problems else EXIT_OK
    words = [counted.words for counted in tracks]
    return Gate(COVERAGE, code, "; ".join(problems or words) or "there are no runs")
