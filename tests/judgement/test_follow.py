"""Laws of following a line: the same runs say the same, what was said stays said, one finding is open per change."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tracker.detectors.life import OPEN, TRANSITIONS, Acted
from tracker.judgement.follow import UserAction, WatchedRun, follow, watched_of
from tracker.judgement.judging import Values

pytestmark = pytest.mark.slow

MS = 1e6


@st.composite
def lines(draw):
    """(values, calls, versions) of a line: ops of 1 ms with 0.5 % noise, in which some change level, calls or presence,
    now and then all at once. With 24 series the ops of a run are centred on what they share, with 6 they are not.
    """
    series, count = draw(st.sampled_from([6, 24])), draw(st.integers(3, 16))
    times, calls = np.full((series, count), MS), np.full((series, count), 4.0)
    change = st.tuples(
        st.integers(0, series - 1),
        st.integers(0, count - 1),
        st.integers(1, count),
        st.sampled_from(["level", "level", "calls", "gone", "all"]),
        st.sampled_from([0.5, 0.8, 1.06, 1.3, 2.0]),
    )
    for row, first, length, what, factor in draw(st.lists(change, min_size=1, max_size=6)):
        runs = slice(first, first + length)
        rows = slice(None) if what == "all" else row
        times[rows, runs] *= np.nan if what == "gone" else factor
        calls[rows, runs] *= factor if what == "calls" else 1.0
    times *= np.exp(np.random.default_rng(draw(st.integers(0, 999))).normal(0, 0.005, times.shape))
    calls[np.isnan(times)] = np.nan
    later = draw(st.lists(st.sampled_from([0, 0, 1]), min_size=count - 1, max_size=count - 1))
    return times, calls, np.cumsum([0, *later]).tolist()


def watch(line, count=None):
    """The first `count` runs of a line, with a step that its ops add up to."""
    times, calls, versions = line
    step = np.nansum(times, axis=0, keepdims=True)
    values = np.vstack([times, step])[:, :count]
    counts = np.vstack([calls, np.full_like(step, np.nan)])[:, :count]
    families = [("op", "device_self_ns")] * len(times) + [("run", "duration_ns")]
    names = [f"op{at}" for at in range(len(times))] + ["step"]
    runs = [WatchedRun(100 + at, version, at * 1000, device_timed=True) for at, version in enumerate(versions[:count])]
    return watched_of(Values(families, names, values, counts), runs)


def said(found):
    """What was said of each finding: its key and first run, and its transitions in order."""
    return {(*one.key, one.first, number): one.transitions for number, one in enumerate(found)}


def chain_holds(tracked):
    """Whether the transitions lead from normal to the state of the finding, each by a way that the life allows."""
    state = "recovered" if tracked.transitions[0].kind == "reopened" else "normal"
    for row in tracked.transitions:
        assert row.source == state
        assert row.target == row.source or row.target in TRANSITIONS[row.source]
        state = row.target
    assert state == tracked.finding.state
    told = [row.key for row in tracked.transitions if row.notifies]
    assert len(told) == len(set(told))


@given(lines())
def test_the_same_runs_give_the_same_findings_one_open_per_series_sign_and_change(line):
    found = follow(watch(line))
    event("with findings" if any(row.kind == "confirmed" for one in found for row in one.transitions) else "without")
    assert said(found) == said(follow(watch(line)))
    still = Counter(one.key for one in found if one.finding.state in OPEN | {"vanished"} and not one.further)
    assert max(still.values(), default=1) == 1
    for one in found:
        chain_holds(one)


@given(lines(), st.data())
def test_a_later_version_changes_nothing_that_was_said_of_those_before_it(line, data):
    versions = line[2]
    borders = [at for at in range(1, len(versions)) if versions[at] != versions[at - 1]]
    count = data.draw(st.sampled_from([*borders, len(versions)]))
    whole = {(*one.key, one.first): one.transitions for one in follow(watch(line))}
    for one in follow(watch(line, count)):
        assert whole[(*one.key, one.first)][: len(one.transitions)] == one.transitions


@given(lines(), st.data())
def test_users_may_do_anything_at_any_time(line, data):
    """No order of actions and runs leads to a state that the life does not know, and what is ended stays so."""
    found = follow(watch(line))
    if not found:
        return
    actions = []
    for number in range(data.draw(st.integers(1, 6))):
        one = found[data.draw(st.integers(0, len(found) - 1))]
        after = data.draw(st.integers(one.first, len(line[2]) - 1))
        word = data.draw(st.sampled_from(["ack", "expect", "mute", "unmute", "invalid"]))
        acted = Acted(word, "ann", after * 1000 + number, "because", until_version=line[2][after] + 1)
        actions.append(UserAction(one.key, 100 + one.first, 100 + after, acted))
    actions.sort(key=lambda action: action.acted.when_ns)
    again = follow(watch(line), actions)
    for one in again:
        chain_holds(one)
    still = Counter(one.key for one in again if one.finding.state in OPEN | {"vanished"} and not one.further)
    assert max(still.values(), default=1) == 1
    assert said(again) == said(follow(watch(line), actions))
