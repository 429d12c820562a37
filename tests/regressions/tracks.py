"""Tracks that a reader checks in the head: a few series, three runs a version that differ by 1 %."""

from __future__ import annotations

import numpy as np

from tracker.detect import series_of
from tracker.detect.track import Track
from tracker.regressions.lifecycle import TrackState, walk

SPREAD = (1.0, 1.01, 0.99, 1.005, 0.995)
MM = ("op", "host_self_ns", "mm", "", "")
GELU = ("op", "host_self_ns", "gelu", "", "")
STEP = ("run", "duration_ns", "step", "", "")


def track_of(levels, runs=3):
    """A track of {key: number in each version}, nan for absent; `runs`: of each version."""
    versions = len(next(iter(levels.values())))
    number = np.repeat(np.arange(1, versions + 1), runs)
    spread = np.array([SPREAD[place % len(SPREAD)] for place in range(len(number))])
    values = np.array([np.repeat(np.array(row, dtype=float), runs) for row in levels.values()])
    constant = np.array([key[0] == "run" and "bytes" in key[1] for key in levels])
    values = values * np.where(constant[:, None], 1.0, spread)
    return Track(values, number, series_of(list(levels), device_timed=False), run_ids=np.arange(len(number)) + 100)


def found_in(track):
    """The findings of a whole track: (series, sign, how, first, decided, state, ended)."""
    state = TrackState(len(track.series.kind))
    list(walk(track, state))
    return [
        (one.series, one.sign, one.how, one.first_version, one.decided_version, one.state, one.ended_version)
        for one in state.findings
    ]
