"""The same runs give the same levels and findings, in whatever steps they came."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import astuple

from tests.regressions.tracks import STEP, noisy_track
from tracker.detect import series_of
from tracker.detect.track import Track
from tracker.regressions.judged_rows import incidents_of
from tracker.regressions.lifecycle import TrackState, judge_next, needed_runs, walk

OPERATORS = 24
"""Enough for a common-mode shift."""


@st.composite
def tracks(draw):
    """24 operators and their step: versions of one to three runs, in which some get slower, faster, new or gone, on a
    machine that may be slow for a while.
    """
    sizes = draw(st.lists(st.sampled_from([1, 1, 2, 3]), min_size=5, max_size=8))
    source = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    versions = np.repeat(np.arange(1, len(sizes) + 1), sizes)
    values = np.exp(source.normal(4, 1, (OPERATORS, 1)) + source.normal(0, 0.02, (OPERATORS, len(versions))))
    slow_from = draw(st.integers(2, len(sizes) + 1))
    is_slow = (versions >= slow_from) & (versions <= slow_from + draw(st.integers(0, 3)))
    values[:, is_slow] *= draw(st.sampled_from([0.85, 1.2]))
    for row, first in enumerate(draw(st.lists(st.integers(2, len(sizes)), min_size=4, max_size=4))):
        last = first + draw(st.integers(0, 4))
        now = (versions >= first) & (versions <= last)
        values[row, now] *= draw(st.sampled_from([0.6, 1.3, 2.0, np.nan]))
    keys = [("op", "device_self_ns", f"op{row}", "", "", "") for row in range(OPERATORS)]
    step = np.nansum(values, axis=0, keepdims=True) + 20
    return Track(np.vstack([values, step]), versions, series_of([*keys, STEP], device_timed=True))


def part(track, columns):
    """The track with some of its runs only."""
    return Track(track.values[:, columns], track.versions[columns], track.series, run_ids=track.run_ids[columns])


def kept(state):
    """What a state holds, without findings that were withdrawn."""
    found = Counter(
        (one.key, one.decided_version, one.reference, one.reference_level, one.state, one.ended_version,
         one.ended_by_version, one.faster, round(one.size, 12))
        for one in state.findings if one.state != "withdrawn"
    )  # fmt: skip
    rows = (state.levels, state.settled, state.waits)
    return found, [{version: row.tolist() for version, row in own.items()} for own in rows]


def batch(track):
    state = TrackState(len(track.values))
    list(walk(track, state))
    return kept(state)


@given(tracks())
def test_run_by_run_equals_batch(track):
    state = TrackState(OPERATORS + 1)
    for column, version in enumerate(track.versions.tolist()):
        state = state.before(version)
        judge_next(part(track, np.arange(column + 1)), state, version)
    assert kept(state) == batch(track)


@given(tracks())
def test_needed_runs_alone_give_the_same_state(track):
    state = TrackState(OPERATORS + 1)
    for version in range(1, int(track.versions[-1]) + 1):
        wanted = needed_runs(track.versions, track.run_ids, state, version)
        judge_next(part(track, np.isin(track.run_ids, wanted)), state, version)
    assert kept(state) == batch(track)


@given(tracks(), st.data())
def test_late_runs_give_what_order_would_have_given(track, data):
    late = data.draw(st.integers(0, len(track.versions) - 1))
    state = TrackState(OPERATORS + 1)
    list(walk(part(track, np.arange(len(track.versions)) != late), state))
    first = int(track.versions[late])
    state = state.before(first)
    list(walk(track, state, start=first))
    assert kept(state) == batch(track)


@given(tracks(), st.data())
def test_excluded_and_restored_runs_change_nothing(track, data):
    out = data.draw(st.integers(0, len(track.versions) - 1))
    first = int(track.versions[out])
    state = TrackState(OPERATORS + 1)
    list(walk(track, state))
    before = [one.key for one in state.findings]
    state = state.before(first)
    list(walk(part(track, np.arange(len(track.versions)) != out), state, start=first))
    state = state.before(first)
    list(walk(track, state, start=first))
    assert kept(state) == batch(track)
    assert [one.key for one in state.findings][: len(before)] == before


@given(tracks())
def test_parts_always_add_up(track):
    state = TrackState(OPERATORS + 1)
    for result in walk(track, state):
        for one in incidents_of(track, state, result, range(1, 20)):
            _, before, after, *parts, _ = astuple(one)
            assert sum(parts) == pytest.approx(after - before, rel=1e-9, abs=1e-9)


@given(tracks())
def test_a_series_has_no_two_equal_findings(track):
    state = TrackState(OPERATORS + 1)
    list(walk(track, state))
    assert max(Counter(one.key for one in state.findings).values(), default=1) == 1
    assert all(one.first_version <= one.decided_version for one in state.findings)


@given(tracks())
def test_findings_have_the_sign_of_what_was_measured(track):
    """Also those that several versions decide together, and those of series that returned."""
    state = TrackState(OPERATORS + 1)
    list(walk(track, state))
    for one in state.findings:
        if one.how == "presence":
            continue
        is_new = (track.versions >= one.first_version) & (track.versions <= one.decided_version)
        is_base = np.isin(track.run_ids, one.reference)
        after, before = (np.nanmean(track.logs[one.series, side]) for side in (is_new, is_base))
        assert one.sign * (after - before) > 0


def test_late_findings_come_and_go_with_their_runs():
    """A small change in the middle of 40 runs that only many runs show: run by run, and without one and with it."""
    levels = [1.0] * 16 + [1.04] * 14
    track = noisy_track(*levels)
    whole = batch(track)
    assert any(key[2] == "late" for key, *_ in whole[0])
    state = TrackState(26)
    for column in range(len(levels)):
        state = state.before(column + 1)
        judge_next(part(track, np.arange(column + 1)), state, column + 1)
    assert kept(state) == whole
    without = part(track, np.arange(len(levels)) != 20)
    state = state.before(21)
    list(walk(without, state, start=21))
    state = state.before(21)
    list(walk(track, state, start=21))
    assert kept(state) == whole


@st.composite
def excursions(draw):
    """Versions of 3 runs: two of one code, one or two that are slower by 10 % or more, though a part is faster, new or
    gone, and the first code again, as it was measured in its second version.
    """
    source = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    away = draw(st.integers(1, 2))
    values = np.exp(source.normal(4, 0.5, (OPERATORS, 1)) + source.normal(0, 0.01, (OPERATORS, 3 * (3 + away))))
    is_away = (np.arange(values.shape[1]) >= 6) & (np.arange(values.shape[1]) < 6 + 3 * away)
    values[:6, is_away] *= draw(st.sampled_from([1.3, 2.0, 4.0]))
    values[6:8, is_away] *= draw(st.sampled_from([0.5, 0.8, 1.0, np.nan]))
    values[8:10, ~is_away] *= draw(st.sampled_from([1.0, np.nan]))
    values[:, 6 + 3 * away :] = values[:, 3:6]
    keys = [("op", "device_self_ns", f"op{row}", "", "", "") for row in range(OPERATORS)]
    step = np.nansum(values, axis=0, keepdims=True) + 20
    assume(step[0, is_away].min() > 1.1 * step[0, ~is_away].max())
    versions = np.repeat(np.arange(1, 4 + away), 3)
    return Track(np.vstack([values, step]), versions, series_of([*keys, STEP], device_timed=True))


@given(excursions())
def test_a_version_equal_to_an_older_level_is_no_new_regression(track):
    state = TrackState(OPERATORS + 1)
    list(walk(track, state))
    found = [one for one in state.findings if one.sign > 0 and one.first_version > 2]
    assert all(one.first_version < int(track.versions[-1]) for one in found)
    assert all(one.state != "open" for one in found)
