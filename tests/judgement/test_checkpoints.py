"""A line that is followed from a checkpoint on gives what it gives when it is followed from its first run."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.judgement.test_follow import lines, watch
from tracker.detectors.life import Acted
from tracker.judgement.follow import UserAction, WatchedRun, follow, resume, watched_of
from tracker.judgement.judging import Values
from tracker.store.dimensions import digest_of

few = settings(max_examples=40 if os.environ.get("TRACKER_TESTS") == "all" else 10, deadline=None)


def some(line, columns):
    """The runs `columns` of a line and the numbers of the series that any of them has, as a database gives them."""
    whole = watch(line)
    values, calls = whole.raw[:, columns], whole.calls[:, columns]
    rows = np.flatnonzero(~np.isnan(values).all(axis=1))
    families, names = [whole.families[row] for row in rows], [whole.names[row] for row in rows]
    versions = [line[2][column] for column in columns]
    order = {version: place for place, version in enumerate(dict.fromkeys(versions))}
    runs = [
        WatchedRun(100 + column, order[version], column * 1000, True)
        for column, version in zip(columns, versions, strict=True)
    ]
    return watched_of(Values(families, names, values[rows], calls[rows]), runs), rows + 1


def fingerprints(columns):
    """The runs themselves stand for their values."""
    return lambda count, parts: digest_of((columns[:count], parts))


def actions_of(line, wishes, watched, series):
    """What users did, for the rows that `watched` has now; `wishes` name series."""
    row_of = {number: row for row, number in enumerate(series.tolist())}
    return [
        UserAction((row_of[number], *rest), first, after, acted)
        for (number, *rest), first, after, acted in wishes
        if number in row_of
    ]


def wish(data, watched, series, found):
    """What a user does to a finding, after the newest run of then."""
    one = found[data.draw(st.integers(0, len(found) - 1))]
    newest = watched.runs[-1]
    word = data.draw(st.sampled_from(["ack", "expect", "mute", "unmute", "invalid"]))
    acted = Acted(word, "ann", newest.started_at_ns + 1, "because", until_version=newest.version + 1)
    key = (int(series[one.row]), one.sign, one.change)
    return key, watched.runs[one.first].run_id, newest.run_id, acted


@few
@given(lines(), st.data())
def test_run_by_run_from_checkpoints_is_the_same_as_from_nothing(line, data):
    """Runs come one or two at a time; now and then one is excluded, and a user does something."""
    columns, known, wishes, found = [], None, [], []
    coming = list(range(len(line[2])))
    while coming:
        for _ in range(data.draw(st.integers(1, 2))):
            columns += coming[:1]
            coming = coming[1:]
        if len(columns) > 2 and data.draw(st.integers(0, 5)) == 0:
            del columns[data.draw(st.integers(0, len(columns) - 1))]
        watched, series = some(line, columns)
        actions = actions_of(line, wishes, watched, series)
        found, known, _ = resume(watched, series, actions, fingerprints(columns), known=known)
        assert found == follow(watched, actions)
        if found and data.draw(st.booleans()):
            wishes.append(wish(data, watched, series, found))
    event("with findings" if found else "without")


def test_one_more_run_is_one_more_look_at_its_version_and_at_none_before(monkeypatch):
    """A checkpoint stands before the newest version, and with the first run of the next one, before that."""
    from tracker.judgement.follow.following import Follower

    draw = np.random.default_rng(0)
    line = (1e6 * np.exp(draw.normal(0, 0.005, (24, 14))), np.full((24, 14), 1.0), [0] * 6 + [1] * 7 + [2])
    seen = []
    observe = Follower.observe
    monkeypatch.setattr(Follower, "observe", lambda self, runs: (seen.append(runs), observe(self, runs)))
    known = None
    for count, looked_at in ((12, [range(6), range(6, 12)]), (13, [range(6, 13)]), (14, [range(6, 13), range(13, 14)])):
        _, known, _ = resume(*some(line, range(count)), [], fingerprints(range(14)), known=known)
        assert seen == looked_at
        seen.clear()


def test_a_checkpoint_of_other_runs_or_other_actions_is_not_used():
    draw = np.random.default_rng(0)
    times = 1e6 * np.exp(draw.normal(0, 0.005, (24, 13)))
    times[3, 6:] *= 1.4
    line = (times, np.full((24, 13), 1.0), [0] * 6 + [1] * 7)
    watched, series = some(line, range(12))
    found, known, _ = resume(watched, series, [], fingerprints(range(12)), known=None)
    (one,) = [each for each in found if each.change == "level" and each.row == 3]
    late = UserAction(one.key, 106, 108, Acted("expect", "ann", 8001, "because"))
    assert resume(watched, series, [late], fingerprints(range(12)), known=known)[0] == follow(watched, [late])
    others = [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12]
    watched, series = some(line, others)
    assert resume(watched, series, [], fingerprints(others), known=known)[0] == follow(watched)


@pytest.mark.parametrize("damage", [lambda state: state[:-9], lambda state: b"none", lambda state: b""])
def test_a_damaged_checkpoint_costs_time_and_nothing_else(damage):
    draw = np.random.default_rng(0)
    line = (1e6 * np.exp(draw.normal(0, 0.005, (24, 13))), np.full((24, 13), 1.0), [0] * 6 + [1] * 7)
    _, known, _ = resume(*some(line, range(12)), [], fingerprints(range(13)), known=None)
    watched, series = some(line, range(13))
    given = (watched, series, [], fingerprints(range(13)))
    assert resume(*given, known=replace(known, state=damage(known.state)))[:2] == resume(*given, known=known)[:2]
