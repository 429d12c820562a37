"""A line that is followed from a checkpoint on gives what it gives when it is followed from its first run."""

from __future__ import annotations

from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.judgement.test_follow import MS, lines, watch
from tracker.detectors.life import Acted
from tracker.judgement.families import is_tagged
from tracker.judgement.follow import ReadLine, UserAction, WatchedRun, follow, older_in, resume, watched_of
from tracker.judgement.follow.following import Follower
from tracker.judgement.follow.state import moved
from tracker.judgement.judging import Values
from tracker.store.dimensions import digest_of

pytestmark = pytest.mark.slow

FOLLOW = "tracker.judgement.follow"
SHORT = {
    f"{FOLLOW}.needed._READ": 20,
    f"{FOLLOW}.tracked.LAST_RUNS": 12,
    f"{FOLLOW}.tracked.DATED_BY": 6,
    f"{FOLLOW}.tracked._SINCE": 8,
    f"{FOLLOW}.tracked.MODES_OF": 8,
    f"{FOLLOW}.following.MODES_OF": 8,
    f"{FOLLOW}.needed.MODES_OF": 8,
    f"{FOLLOW}.following._UNDECIDED": 12,
    f"{FOLLOW}.creeping.LOOK_BACK": 5,
}
"""How far rules look back, so that lines of few runs have runs that none of them sees any more."""


def of_ops(line):
    """A line of `lines` as (values, versions)."""
    whole = watch(line)
    return Values(whole.families, whole.names, whole.raw, whole.calls), line[2]


class Some:
    """The runs `columns` of (values, versions), as a database gives them: rows are the series that any run has."""

    def __init__(self, line, columns, wishes=()):
        (values, versions), self.columns = line, list(columns)
        own = replace(values, values=values.values[:, self.columns], calls=values.calls[:, self.columns], rows={})
        rows = np.flatnonzero(~np.isnan(own.values).all(axis=1))
        families, names = [own.families[row] for row in rows], [own.names[row] for row in rows]
        self.values, self.series = Values(families, names, own.values[rows], own.calls[rows]), rows + 1
        order = {version: place for place, version in enumerate(dict.fromkeys(versions[at] for at in self.columns))}
        self.runs = [
            WatchedRun(100 + at, order[versions[at]], at * 1000, True, f"v{versions[at]}") for at in self.columns
        ]
        row_of = {number: row for row, number in enumerate(self.series.tolist())}
        self.actions = [
            UserAction((row_of[number], *rest), first, after, acted)
            for (number, *rest), first, after, acted in wishes
            if number in row_of
        ]

    @property
    def watched(self):
        """All of it."""
        return watched_of(self.values, self.runs)

    def read(self, known):
        """See LineToRead: what runs say before the first one that is asked for cannot be read."""
        first = 0 if known is None else known.older.first
        late = [part[:, first:] for part in (self.values.values, self.values.calls)]
        values = Values(self.values.families, self.values.names, *late)
        older = None if known is None else older_in(known, self.series, self.runs)
        watched = watched_of(values, self.runs[first:], older=older)
        return ReadLine(watched, self.series, self.actions, lambda runs: b"%d" % runs)

    def resume(self, known):
        """See there: the runs themselves stand for what they say."""
        return resume(self, lambda count, parts: digest_of((self.columns[:count], parts)), known=known)


def kept(before, own):
    """The findings of the line, those of `before` with what `resume` gives now: see `store.findings.write`."""
    place = own.read.watched.place
    now = [moved(one, place, one.row) for one in own.found]
    left = {key: one for key, one in before.items() if own.since and one.first < own.since}
    return left | {(*series_key(own, one), one.first, one.finding.number): one for one in now}


def series_key(own, one):
    return int(own.read.series[one.row]), one.sign, one.change


def same_verdicts(own, whole):
    """The verdicts of the newest version are the same, with what they are judged against."""
    one, other = own.verdicts[-1], whole.verdicts[-1]
    for name, column in one.columns.items():
        told = [[str(word) for word in part.tolist()] for part in (column, other.columns[name])]
        assert told[0] == told[1], name
    assert [own.read.watched.place(at) for at in one.window] == list(other.window)
    assert (one.centre is None) == (other.centre is None) and (one.centre or 0) == (other.centre or 0)


def check(line, columns, wishes, known, before):
    """One more look at a line, from the checkpoint `known` on: as from nothing."""
    some = Some(line, columns, wishes)
    own, whole = some.resume(known), Some(line, columns, wishes).resume(None)
    found = kept(before, own)
    rows = {number: row for row, number in enumerate(some.series.tolist())}
    told = sorted(
        (replace(one, row=rows[key[0]]) for key, one in found.items()),
        key=lambda one: (one.first, one.row, one.sign, one.change, one.finding.number),
    )
    assert told == whole.found
    assert own.checkpoint == whole.checkpoint, "it makes no difference how often it was followed"
    same_verdicts(own, whole)
    return own, found


def wish(data, some, found):
    """What a user does to a finding, after the newest run of then."""
    key, one = sorted(found.items(), key=lambda item: item[0])[data.draw(st.integers(0, len(found) - 1))]
    newest = some.runs[-1]
    word = data.draw(st.sampled_from(["ack", "expect", "mute", "unmute", "invalid"]))
    acted = Acted(word, "ann", newest.started_at_ns + 1, "because", until_version=newest.version + 1)
    return key[:3], some.runs[one.first].run_id, newest.run_id, acted


def run_by_run(line, data, steps):
    """Runs come so many at a time; now and then one is excluded, and a user does something. How often less than all of
    the line was read.
    """
    columns, known, wishes, before, short = [], None, [], {}, 0
    coming = list(range(len(line[1])))
    while coming:
        for _ in range(data.draw(steps)):
            columns += coming[:1]
            coming = coming[1:]
        if len(columns) > 2 and data.draw(st.integers(0, 9)) == 0:
            del columns[data.draw(st.integers(0, len(columns) - 1))]
        own, before = check(line, columns, wishes, known, before)
        known, short = own.checkpoint, short + (own.read.watched.places[own.read.watched.first_read] > 0)
        if before and data.draw(st.integers(0, 3)) == 0:
            wishes.append(wish(data, Some(line, columns), before))
    event("with findings" if before else "without")
    return short


@given(lines(), st.data())
def test_run_by_run_from_checkpoints_is_the_same_as_from_nothing(line, data):
    run_by_run(of_ops(line), data, st.integers(1, 2))


KINDS = [("op", "device_self_ns"), ("op", "host_self_ns"), ("api", "self_ns"), ("kernel", "total_ns")]


@st.composite
def long_lines(draw):
    """(values, versions): ops, kernels and API calls, some of families whose runs were recorded in two ways, that
    change, creep, jump between two levels, come and go; some runs state nothing but their step.
    """
    count, many = draw(st.integers(25, 60)), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    chosen = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True))
    bare = draw(st.sets(st.integers(3, count - 1), max_size=4))
    families, parts, counts = [], [], []
    for kind, metric in chosen:
        size = 22 if many else 5
        times, calls = np.full((size, count), MS), np.full((size, count), 4.0)
        change = st.tuples(
            st.integers(0, size - 1), st.integers(0, count - 1), st.integers(1, count),
            st.sampled_from(["level", "level", "calls", "gone", "creep", "jumps", "all"]),
            st.sampled_from([0.5, 0.8, 1.06, 1.3, 2.0]),
        )  # fmt: skip
        for row, first, length, what, factor in draw(st.lists(change, max_size=4)):
            runs = slice(first, first + length)
            rows = slice(None) if what == "all" else row
            size_of = len(times[0, runs])
            wanted = {"gone": np.nan, "creep": factor ** np.linspace(0, 1, size_of),
                      "jumps": np.where(rng.random(size_of) < 0.5, factor, 1.0)}  # fmt: skip
            times[rows, runs] *= wanted.get(what, factor)
            calls[rows, runs] *= factor if what == "calls" else 1.0
        times *= np.exp(rng.normal(0, 0.005, times.shape))
        times[:, list(bare)] = np.nan
        tags = np.zeros(count, dtype=int)
        if draw(st.booleans()):
            for first in draw(st.lists(st.integers(0, count - 1), max_size=4)):
                tags[first:] = 1 - tags[first:]
        for tag in sorted(set(tags.tolist())):
            parts.append(np.where(tags == tag, times, np.nan))
            counts.append(np.where(np.isnan(parts[-1]), np.nan, calls))
            families += [(kind, metric, "", tag) if tags.any() else (kind, metric)] * size
    step = np.nansum(np.vstack(parts), axis=0, keepdims=True) + 5 * MS
    names = [f"{family[0]}{at}" for at, family in enumerate(families)] + ["step"]
    values = Values(
        [*families, ("run", "duration_ns")], names, np.vstack([*parts, step]),
        np.vstack([*counts, np.full_like(step, np.nan)]),
    )  # fmt: skip
    later = draw(st.lists(st.sampled_from([0, 0, 0, 1]), min_size=count - 1, max_size=count - 1))
    if draw(st.booleans()):  # whoever states no step
        values = Values(values.families[:-1], names[:-1], values.values[:-1], values.calls[:-1])
    event("tagged" if any(map(is_tagged, families)) else "one recording")
    return values, np.cumsum([0, *later]).tolist()


@pytest.mark.slow
@given(long_lines(), st.data())
def test_what_is_kept_of_older_runs_is_all_that_they_are_needed_for(line, data):
    """By rules that look back less far: most checkpoints stand for runs that nobody reads again."""
    with ExitStack() as stack:
        for name, value in SHORT.items():
            stack.enter_context(patch(name, value))
        short = run_by_run(line, data, st.sampled_from([1, 2, 5, 9]))
    event("read in part" if short else "read whole")


def long_line(count=130):
    """A line of versions of three runs, with a finding that stays open from the start, one that is settled, a series
    that is gone, and one that creeps.
    """
    rng = np.random.default_rng(7)
    times = MS * np.exp(rng.normal(0, 0.005, (24, count)))
    times[0, 9:] *= 1.5
    times[1, 12:18] *= 2.0
    times[2, 30:] = np.nan
    times[3] *= 1.6 ** np.linspace(0, 1, count)
    times[4] *= np.where(rng.random(count) < 0.5, 1.4, 1.0)
    times[5, 96:] *= 1.3
    step = times[np.newaxis, :].sum(axis=1, where=~np.isnan(times[np.newaxis, :])) + 5 * MS
    families, names = [("op", "device_self_ns")] * 24 + [("run", "duration_ns")], [*map(str, range(24)), "step"]
    calls = np.where(np.isnan(times), np.nan, 2.0)
    values = Values(families, names, np.vstack([times, step]), np.vstack([calls, np.full_like(step, np.nan)]))
    return values, (np.arange(count) // 3).tolist()


@pytest.mark.slow
def test_a_long_line_is_read_in_part_and_says_the_same():
    """By the rules as they are."""
    line, known, before = long_line(), None, {}
    for count in (*range(70, 130, 7), 130):
        own, before = check(line, range(count), (), known, before)
        known = own.checkpoint
    states = {(one.row, one.change): one.finding.state for one in before.values()}
    assert states[0, "level"] == "persisting" and states[5, "level"] in ("new", "persisting")
    watched = own.read.watched
    assert watched.places[watched.first_read] >= 50, "the first part is not read"
    assert watched.first_read < 40, "of which few runs are still referred to"


def test_a_user_who_settles_what_is_open_for_long_or_has_ended():
    """What is open is settled from the checkpoint on; what has ended takes following the line once more."""
    line = long_line()
    first = Some(line, range(120)).resume(None)
    before = kept({}, first)
    (opened,) = [one for one in before.values() if (one.row, one.change) == (0, "level")]
    ended = next(one for one in before.values() if one.finding.state == "normal" and one.first < 60)
    for one, since in ((opened, 117), (ended, 0)):
        acted = Acted("invalid", "ann", 10**9, "because")
        wishes = [((one.row + 1, one.sign, one.change), 100 + one.first, 219, acted)]
        own, _ = check(line, range(121), wishes, first.checkpoint, before)
        assert own.since == since


def test_a_suspicion_that_nothing_decides_is_over():
    """A series is suspect in its last run: 100 runs later that is none any more."""
    rng = np.random.default_rng(3)
    times = MS * np.exp(rng.normal(0, 0.005, (24, 125)))
    times[3, 9] *= 3
    times[3, 10:] = np.nan
    whole = watch((times, np.where(np.isnan(times), np.nan, 2.0), list(range(125))))
    for count, state in ((100, "vanished"), (125, "normal")):
        runs = whole.runs[:count]
        line = Values(whole.families, whole.names, whole.raw[:, :count], whole.calls[:, :count])
        (one,) = [one for one in follow(watched_of(line, runs)) if (one.row, one.change) == (3, "level")]
        assert one.finding.state == state
    assert one.transitions[-1].kind == "cleared"


def test_one_more_run_is_one_more_look_at_its_version_and_at_none_before(monkeypatch):
    """A checkpoint stands before the newest version, and with the first run of the next one, before that."""
    draw = np.random.default_rng(0)
    line = of_ops((1e6 * np.exp(draw.normal(0, 0.005, (24, 14))), np.full((24, 14), 1.0), [0] * 6 + [1] * 7 + [2]))
    seen = []
    observe = Follower.observe
    monkeypatch.setattr(Follower, "observe", lambda self, runs: (seen.append(runs), observe(self, runs)))
    known = None
    for count, looked_at in ((12, [range(6), range(6, 12)]), (13, [range(6, 13)]), (14, [range(6, 13), range(13, 14)])):
        known = Some(line, range(count)).resume(known).checkpoint
        assert seen == looked_at
        seen.clear()


def test_a_checkpoint_of_other_runs_or_other_actions_is_not_used():
    draw = np.random.default_rng(0)
    times = 1e6 * np.exp(draw.normal(0, 0.005, (24, 13)))
    times[3, 6:] *= 1.4
    line = of_ops((times, np.full((24, 13), 1.0), [0] * 6 + [1] * 7))
    first = Some(line, range(12)).resume(None)
    (one,) = [each for each in first.found if each.change == "level" and each.row == 3]
    late = [((4, *one.key[1:]), 106, 108, Acted("expect", "ann", 8001, "because"))]
    check(line, range(12), late, first.checkpoint, kept({}, first))
    check(line, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12], (), first.checkpoint, kept({}, first))


@pytest.mark.parametrize("damage", [lambda state: state[:-9], lambda state: b"none", lambda state: b""])
def test_a_damaged_checkpoint_costs_time_and_nothing_else(damage):
    draw = np.random.default_rng(0)
    line = of_ops((1e6 * np.exp(draw.normal(0, 0.005, (24, 13))), np.full((24, 13), 1.0), [0] * 6 + [1] * 7))
    known = Some(line, range(12)).resume(None).checkpoint
    own, whole = (Some(line, range(13)).resume(one) for one in (replace(known, state=damage(known.state)), known))
    assert own.since == 0 and whole.since == 6
    assert kept({}, own).items() >= kept({}, whole).items() and own.checkpoint == whole.checkpoint
