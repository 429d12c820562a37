"""The life of a finding, as stories, and what holds for every life."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tests.detectors.whole import replay
from tracker.detectors.life import (
    ENDED,
    OPEN,
    TRANSITIONS,
    Acted,
    Finding,
    LifeRule,
    Observed,
    Passed,
    step,
)

RULE = LifeRule(effect=math.log(1.03))


class Course:
    """Runs and actions in order, one version per run unless said otherwise."""

    def __init__(self):
        self.events, self.run, self.version = [], 0, 0

    def runs(self, *percents, same_version=False, of=1, **what):
        """A version for each number, of so many runs."""
        for percent in percents:
            self.run += of
            self.version += not same_version or self.version == 0
            effect = None if percent is None else math.log1p(percent / 100)
            self.events.append(Observed(self.run, self.version, self.run * 10, effect, runs=of, **what))
        return self

    def suspect(self, percent=10):
        return self.runs(percent, screens=True)

    def confirmed(self, percent=10):
        return self.runs(percent, same_version=True, confirms=True)

    def act(self, action, **what):
        self.events.append(Acted(action, "ann", self.run * 10 + 1, "because", **what))
        return self

    def wait(self, when):
        self.events.append(Passed(when))
        return self

    def states(self):
        return [row.target for row in replay(self.events, RULE)[1] if row.source != row.target]

    def kinds(self):
        return [row.kind for row in replay(self.events, RULE)[1]]

    def end(self):
        return replay(self.events, RULE)[0]


def open_course(percent=10):
    return Course().runs(0, 1).suspect(percent).confirmed(percent)


def test_the_next_runs_confirm_a_suspicion_and_the_next_version_finds_it_still_there():
    course = open_course().runs(10)
    assert course.states() == ["suspect", "new", "persisting"]
    assert (course.end().first_bad_run, course.end().first_bad_version) == (3, 3)


def test_a_suspicion_that_is_not_confirmed_is_cleared_and_nobody_is_told():
    course = Course().suspect().runs(0, same_version=True).runs(0, same_version=True, confirms=False)
    assert course.kinds() == ["suspected", "cleared"]
    assert not any(row.notifies for row in replay(course.events, RULE)[1])


def test_two_good_runs_begin_the_recovery_and_two_more_end_it():
    assert open_course().runs(10, 0, 1).states()[-1] == "recovering"
    assert open_course().runs(10, 0, 1, 0, 1).states()[-2:] == ["recovering", "recovered"]


def test_two_good_runs_of_one_version_end_it_and_one_of_each_takes_four():
    back = open_course().runs(0, of=2)
    assert back.states()[-2:] == ["recovering", "recovered"]
    assert open_course().runs(0, 1).states()[-1] == "recovering"
    assert open_course().runs(10, of=2).states()[-1] == "persisting"


def test_two_runs_of_one_version_are_enough_to_be_worse():
    assert open_course().runs(20, of=2).kinds()[-2:] == ["worsened", "persisted"]
    assert open_course().runs(20, 20).kinds()[-1] == "persisted"


def test_a_change_of_its_own_is_no_good_run_and_two_of_them_end_the_recovery_of_what_was_before():
    """+40 %, back to 0, then +8 %: less than a quarter of 40 %, and more than the smallest change that counts."""
    assert open_course(40).runs(40, 0, 0, 8).states()[-1] == "recovering"
    ended = open_course(40).runs(40, 0, 0, 8, 8)
    assert ended.states()[-1] == "recovered"
    assert replay(ended.events, RULE)[1][-1].reason.endswith("then another change")


def test_between_half_and_the_whole_of_the_limit_nothing_flaps():
    assert open_course(5).runs(5, 2, 2, 2, 2, 2).states() == ["suspect", "new", "persisting"]
    assert open_course(5).runs(5, 1, 2, 1, 2, 1).states() == ["suspect", "new", "persisting"]


def test_a_quarter_of_a_large_finding_does_not_keep_it_open():
    assert open_course(40).runs(40, 8, 8, 8, 8).states()[-2:] == ["recovering", "recovered"]
    assert open_course(40).runs(40, 12, 12, 12, 12).states()[-1] == "persisting"


def test_a_step_back_of_three_quarters_recovers_at_once():
    course = open_course().runs(2, opposite_step=0.75 * math.log(1.10))
    assert course.states()[-1] == "recovering"
    assert open_course().runs(5, opposite_step=0.04).states()[-1] == "persisting"


def test_bad_again_before_it_had_recovered_goes_on_as_it_was():
    assert open_course().act("ack").runs(0, 0, 10).states()[-2:] == ["recovering", "acknowledged"]


def test_bad_again_within_five_versions_is_the_same_finding():
    course = open_course().runs(10, 0, 0, 0, 0, 0).suspect().confirmed()
    assert course.states()[-2:] == ["recovered", "reopened"]
    assert (course.end().number, course.end().reopened) == (1, 1)


def test_bad_again_later_is_another_finding():
    course = open_course().runs(10, 0, 0, 0, 0, *[0] * 6).suspect().confirmed()
    assert course.states()[-3:] == ["normal", "suspect", "new"]
    assert course.end().number == 2


def test_a_suspicion_within_five_versions_reopens_though_the_runs_that_confirm_it_come_later():
    """Recovered in version 8; suspicious in version 13, confirmed in version 14: it began again in version 13."""
    course = open_course().runs(10, 0, 0, 0, 0)
    course.runs(0, 0, 0, 0).suspect()
    assert (course.version, course.end().recovered_version) == (13, 8)
    again = course.runs(10, confirms=True)
    assert again.states()[-2:] == ["recovered", "reopened"]
    assert (again.end().first_bad_run, again.end().first_bad_version) == (14, 13)
    assert again.runs(10).states()[-1] == "persisting", "the version after the one it began again in"


def test_runs_of_another_change_in_a_recovery_are_no_worse_runs_after_a_relapse():
    """+40 %, back, +8 % once, then +60 %: worse with the third run, not with the second."""
    course = open_course(40).runs(40, 0, 0, 8, 60, 60)
    assert course.kinds()[-1] == "relapsed"
    assert course.runs(60).kinds()[-1] == "relapsed"
    assert course.runs(60).kinds()[-1] == "worsened"


def test_what_the_last_confirming_run_has_left_already_is_not_its_size():
    """Two runs of +40 % and the next version, back at 0: it was 40 %, and that run is the first good one."""
    course = Course().runs(0, 1).suspect(40)
    course.runs(0, confirms=True, size=math.log(1.4))
    assert course.end().size == math.log(1.4)
    assert course.runs(1, same_version=True).states()[-1] == "recovering"
    two = Course().runs(0, 1).suspect(40).runs(0, of=2, confirms=True, size=math.log(1.4))
    assert two.states()[-3:] == ["new", "recovering", "recovered"], "both of a version are good"


def test_worse_by_a_quarter_is_told_once_even_when_acknowledged():
    course = open_course().act("ack").runs(20, 20, 20, 20)
    assert course.kinds().count("worsened") == 1
    assert course.end().state == "acknowledged"
    assert open_course().act("ack").runs(11, 12, 12, 12).kinds().count("worsened") == 0
    assert open_course().act("ack").runs(20, 10, 20, 10).kinds().count("worsened") == 0


def test_an_expected_change_ends_the_finding_and_the_next_is_its_own():
    course = open_course().act("expect").runs(10, 10).suspect(30)
    assert course.states() == ["suspect", "new", "expected", "suspect"]
    assert course.end().number == 2


def test_a_mute_ends_with_its_time_its_version_worse_numbers_or_a_recovery():
    muted = open_course().act("mute", until_ns=1000)
    assert muted.end().state == "muted"
    assert open_course().act("mute", until_ns=1000).runs(10, 10).end().state == "muted"
    assert open_course().act("mute", until_ns=1000).wait(1000).states()[-1] == "new"
    assert open_course().act("mute", until_version=5).runs(10).end().state == "muted"
    assert open_course().act("mute", until_version=5).runs(10, 10).states()[-2:] == ["new", "persisting"]
    assert open_course().act("mute", until_ns=1000).runs(30, 30, 30).kinds()[-3:-1] == ["unmuted", "worsened"]
    assert open_course().act("mute", until_ns=1000).runs(0, 0).states()[-1] == "recovering"


def test_a_mute_without_an_end_ahead_is_refused_with_the_reason():
    course = open_course().act("mute")
    assert course.end().state == "new"
    assert replay(course.events, RULE)[1][-1].reason == "without effect, a mute needs an end that lies ahead: because"
    assert open_course().act("mute", until_ns=5).end().state == "new"


def test_what_is_confirmed_while_muted_is_told_when_the_mute_ends():
    course = Course().suspect().act("mute", until_ns=100).confirmed().wait(100)
    rows = replay(course.events, RULE)[1]
    assert [row.target for row in rows if row.notifies] == ["new"]


def test_a_series_that_vanishes_and_returns_goes_on_as_it_was():
    course = open_course().act("ack").runs(None, gone=True)
    assert course.end().state == "vanished"
    assert course.runs(10).end().state == "acknowledged"
    assert open_course().runs(None, gone=True).end().state == "vanished", "where all runs are here already"


def test_a_run_without_the_series_changes_nothing():
    assert open_course().runs(None, None).end() == open_course().end()


def test_an_action_that_does_not_fit_changes_nothing_and_says_so():
    course = Course().runs(0).act("ack")
    row = replay(course.events, RULE)[1][-1]
    assert (row.kind, row.reason) == ("ignored", "without effect, since it is normal now: because")
    assert course.end() == Finding()


percents = st.sampled_from([None, -20, 0, 1, 2, 3, 5, 10, 15, 40])
runs = st.tuples(
    percents, st.booleans(), st.sampled_from([None, True, False]), st.booleans(), st.sampled_from([0.0, 0.05, 0.5])
)
actions = st.tuples(
    st.sampled_from(["ack", "expect", "mute", "unmute", "invalid"]),
    st.one_of(st.none(), st.integers(-5, 60)),
    st.one_of(st.none(), st.integers(0, 4)),
)
courses = st.lists(st.one_of(runs, runs, runs, actions), max_size=40)


def events_of(course):
    events, version = [], 0
    for number, what in enumerate(course):
        when = 10 * number
        if isinstance(what[0], str):
            action, ahead, versions = what
            until_ns = None if ahead is None else when + ahead
            until_version = None if versions is None else version + versions
            events.append(Acted(action, "ann", when, "because", until_ns, until_version))
            continue
        percent, screens, confirms, same, opposite = what
        version += not same
        effect = None if percent is None else math.log1p(percent / 100)
        gone = percent is None and same
        several = 1 + number % 3
        events.append(Observed(number, version, when, effect, screens, confirms, gone, opposite, runs=several))
    return events


@given(courses)
def test_every_transition_is_legal_and_rows_form_a_chain(course):
    finding, rows = replay(events_of(course), RULE)
    state, number = "normal", 0
    for row in rows:
        if row.number == number:
            assert row.source == state
        else:
            assert (row.source, row.target, row.number) == ("normal", "suspect", number + 1)
            assert state in ENDED | {"normal"}
        assert row.target == row.source or row.target in TRANSITIONS[row.source]
        assert row.reason
        state, number = row.target, row.number
    assert finding.state in (state, "normal")


@given(courses)
def test_nothing_is_told_twice_and_replay_says_the_same(course):
    events = events_of(course)
    finding, rows = replay(events, RULE)
    told = [row.key for row in rows if row.notifies]
    assert len(told) == len(set(told))
    assert replay(events, RULE) == (finding, rows)
    by_hand = Finding()
    for event in events:
        by_hand, _ = step(by_hand, event, RULE)
    assert by_hand == finding


@given(courses)
def test_a_mute_always_ends(course):
    finding, _ = replay([*events_of(course), Observed(99, 10**6, 10**9, 0.0), Passed(10**9)], RULE)
    assert finding.state != "muted"
    assert finding.state in OPEN | ENDED | {"normal", "recovered", "vanished"}
