"""Tracks that a reader checks in the head: a few series, three runs a version that differ by 1 %."""

from __future__ import annotations

import numpy as np

from tracker.detect import series_of
from tracker.detect.track import Track
from tracker.regressions.lifecycle import TrackState, walk

SPREAD = (1.0, 1.01, 0.99, 1.005, 0.995)
MM = ("op", "host_self_ns", "mm", "", "", "")
GELU = ("op", "host_self_ns", "gelu", "", "", "")
STEP = ("run", "duration_ns", "step", "", "", "")


def track_of(levels, runs=3, spread=SPREAD):
    """A track of {key: number in each version}, nan for absent; `runs`: of each version; `spread`: factors of runs."""
    versions = len(next(iter(levels.values())))
    number = np.repeat(np.arange(1, versions + 1), runs)
    factors = np.array([spread[place % len(spread)] for place in range(len(number))])
    values = np.array([np.repeat(np.array(row, dtype=float), runs) for row in levels.values()])
    constant = np.array([key[0] == "run" and "bytes" in key[1] for key in levels])
    values = values * np.where(constant[:, None], 1.0, factors)
    return Track(values, number, series_of(list(levels), device_timed=False), run_ids=np.arange(len(number)) + 100)


def noisy_track(*levels, runs=1):
    """An operator that varies by 2 % around 100 times `levels`, one per run, among 24 that vary by 3 %.

    `runs`: of each version.
    """
    pattern = (1.0, 1.0, 1.02, 0.98)
    rows = {MM: [100.0 * level * pattern[at % 4] for at, level in enumerate(levels)]}
    for number in range(24):
        name = ("op", "host_self_ns", f"op{number:02}", "", "", "")
        rows[name] = [100.0 + ((7 * at + 5 * number) % 11 - 5) * 0.6 for at in range(len(levels))]
    rows[STEP] = [sum(column) for column in zip(*rows.values(), strict=True)]
    track = track_of(rows, 1, spread=(1.0,))
    versions = np.arange(len(levels)) // runs + 1
    return Track(track.values, versions, track.series, calls=track.calls, keys=track.keys)


def found_in(track):
    """The findings of a whole track: (series, sign, how, first, decided, state, ended)."""
    state = TrackState(len(track.series.kind))
    list(walk(track, state))
    return [
        (one.series, one.sign, one.how, one.first_version, one.decided_version, one.state, one.ended_version)
        for one in state.findings
    ]
