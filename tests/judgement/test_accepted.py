"""Which runs of a line may be a baseline, by what was found in them and what users said of it."""

from __future__ import annotations

import pytest

from tests.regressions.made import OPS, runs
from tracker.judgement import Wish, acceptance_of, act, findings, lines_of, update, words_of
from tracker.judgement.accepted import bad_runs
from tracker.results import FindingsOptions
from tracker.store import judged

SLOW = {f"op{at:02}": 2.0 for at in range(4)}  # 4 of 40 ops twice as slow: the step takes 10 % longer
SMALL = {"op07": 1.2}  # one of 40 ops by a fifth: half a per cent of the step


def line(store, *versions):
    """Versions v1, v2, ... of three runs each, with what is changed in them."""
    for number, changed in enumerate(versions):
        runs(store, f"v{number + 1}", changed, start=3 * number)
    update(store, lines_of(store))


def said(store, before=None):
    """Places of the runs that may be a baseline, and the whole of what is known."""
    (own,) = lines_of(store)
    with store.connect() as connection:
        known = judged.runs_of(connection, own)
    before = len(known) if before is None else before
    found = acceptance_of(store, own, known, before)
    return [place for place in range(before) if found.is_accepted(place)], found


def wish(store, action, **chosen):
    rows = findings(store, options=FindingsOptions(every=True, **chosen)).findings
    act(store, Wish(action, "ann", 2 * 10**18, "because"), finding_ids=[int(number) for number in rows["finding_id"]])


def test_without_findings_all_runs_are_accepted(store):
    line(store, None, None, None)
    assert said(store)[0] == list(range(9))


def test_runs_with_an_open_regression_are_not_and_those_after_the_repair_are(store):
    line(store, None, SLOW, SLOW, None)
    accepted, found = said(store)
    assert accepted == [0, 1, 2, 9, 10, 11]
    assert {span.finding["name"] for span in found.open[3]} >= {"step", "op00"}
    assert (found.level, found.small[3]) == (0, ())
    assert said(store, before=6)[0] == [0, 1, 2]


def test_a_regression_below_a_hundredth_of_the_step_leaves_no_run_out_and_is_told(store):
    line(store, None, SMALL, SMALL)
    accepted, found = said(store)
    assert accepted == list(range(9))
    assert {span.finding["name"] for span in found.small[8]} == {"op07"}


def test_operators_that_are_small_one_by_one_carry_a_step_together(store):
    line(store, None, {f"op{at:02}": 1.2 for at in range(4)})  # four times half a per cent
    accepted, found = said(store)
    assert accepted == [0, 1, 2]
    assert "step" not in {span.finding["name"] for span in found.open[3]} or len(found.open[3]) > 4


def test_what_users_expect_begins_a_new_level_and_what_they_call_invalid_was_none(store):
    line(store, None, SLOW, SLOW)
    wish(store, "expect")
    accepted, found = said(store)
    assert (accepted, found.level) == ([3, 4, 5, 6, 7, 8], 3)
    assert words_of(found.steps).startswith("finding ")
    assert said(store, before=3)[0] == [0, 1, 2]  # nobody had seen the step yet


def test_what_users_call_invalid_was_no_regression(store):
    line(store, None, SLOW, SLOW)
    wish(store, "invalid")
    assert said(store)[0] == list(range(9))


def test_acknowledged_and_muted_regressions_stay_out(store):
    line(store, None, SLOW, SLOW)
    wish(store, "ack")
    assert said(store)[0] == [0, 1, 2]


def test_a_faster_step_begins_a_new_level_by_itself_and_a_faster_operator_does_not(store):
    line(store, None, dict.fromkeys(SLOW, 0.3), dict.fromkeys(SLOW, 0.3))
    assert said(store)[0] == [3, 4, 5, 6, 7, 8]
    assert said(store)[1].level == 3


def test_a_faster_operator_restarts_nothing(store):
    line(store, None, {"op07": 0.5}, {"op07": 0.5})  # 1.25 % of the step, timed on a device: 2 % count
    assert said(store)[0] == list(range(9))


def test_a_suspicion_of_the_step_holds_its_run_back_until_it_is_decided(store):
    line(store, None)
    runs(store, "v2", SLOW, start=3, count=1)
    update(store, lines_of(store))
    accepted, found = said(store)
    assert accepted == [0, 1, 2]
    assert not any(span.confirmed for span in found.open[3])
    runs(store, "v3", start=4, count=2)
    update(store, lines_of(store))
    assert said(store)[0] == list(range(6))


def test_the_ops_of_these_stories_are_as_large_as_they_say():
    assert OPS == 40


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"finding_id": 7, "kind": "run", "name": "step", "change": "level", "direction": "regression", "ratio": 0.304},
         "finding 7 (step +30.4 %)"),
        ({"finding_id": 8, "kind": "op", "name": "pow", "change": "presence", "direction": "regression",
          "ratio": float("nan")},
         "finding 8 (pow ADDED)"),
    ],
)  # fmt: skip
def test_findings_in_words(row, words):
    assert words_of([row]) == words
    assert words_of([row, row]) == f"{words} and 1 more"


def test_what_had_recovered_when_it_went_is_not_bad_when_it_is_back(store):
    """+100 % in version 2; version 5 lacks the op and version 6 has it again, as it was at first."""
    line(store, None, {"op00": 2.0}, None, None)
    runs(store, "v5", start=12, without=("op00",))
    runs(store, "v6", start=15)
    update(store, lines_of(store))
    (own,) = lines_of(store)
    with store.connect() as connection:
        known = judged.runs_of(connection, own)
    bad = {key[2]: numbers for key, numbers in bad_runs(store, own, known).items() if key[0] == "op"}
    assert bad == {"op00": {4, 5, 6}}


def test_what_was_bad_when_it_went_is_bad_when_it_is_back_and_not_in_between(store):
    line(store, None, {"op00": 2.0})
    runs(store, "v3", start=6, without=("op00",))
    runs(store, "v4", {"op00": 2.0}, start=9)
    update(store, lines_of(store))
    (own,) = lines_of(store)
    with store.connect() as connection:
        known = judged.runs_of(connection, own)
    bad = {key[2]: numbers for key, numbers in bad_runs(store, own, known).items() if key[0] == "op"}
    assert bad == {"op00": {4, 5, 6, 10, 11, 12}}
