"""What a headline names as the cause: a row that makes at least half of a change that is one."""

from __future__ import annotations

import re

import pytest

from tests.factories import EPOCH_NS
from tests.regressions.made import runs
from tracker.compare import diff, diffs
from tracker.regressions.actions import act
from tracker.regressions.board import board
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.reports import render
from tracker.store.findings import Word


def clause_of(result):
    """Return what stands behind the numbers of a headline, "" for nothing."""
    return result.headline.partition("; ")[2]


def test_idle_time_of_most_of_the_change_is_named(memory_store):
    """40 ms of operators in v1; v2 idles for 20 ms more, and op07 takes 2 ms instead of 1: 21 ms more in all."""
    runs(memory_store, "v1", count=4)
    runs(memory_store, "v2", {"op07": 2.0}, idle_ns=20_000_000, start=4)
    assert clause_of(diff(memory_store, "v1", "v2")) == "the device idles for 20.00 ms more"


def test_operator_of_most_of_the_change_is_named(memory_store):
    runs(memory_store, "v1", count=4)
    runs(memory_store, "v2", {"op07": 11.0}, idle_ns=1_000_000, start=4)
    assert re.fullmatch(r"op07 is slower per call \(\+(9\.9|10\.0)\d ms\)", clause_of(diff(memory_store, "v1", "v2")))


def test_change_of_many_equal_causes_names_none(memory_store):
    """Three operators take 5 ms longer each: none of them is half of the 15 ms."""
    runs(memory_store, "v1", count=4)
    runs(memory_store, "v2", {"op07": 6.0, "op08": 6.0, "op09": 6.0}, start=4)
    assert "REGRESSED" in diff(memory_store, "v1", "v2").explanation.verdict
    assert clause_of(diff(memory_store, "v1", "v2")) == ""


def test_gain_that_takes_most_of_the_cause_back_names_none(memory_store):
    """op07 takes 19 ms longer, op08 and op09, 9 ms each, are gone: 3 ms in all, a sixth of what op07 costs."""
    slow = {"op08": 9.0, "op09": 9.0}
    runs(memory_store, "v1", slow, count=4)
    runs(memory_store, "v2", {"op07": 22.0}, without=("op08", "op09"), start=4)
    assert "op07" not in clause_of(diff(memory_store, "v1", "v2"))


def test_change_within_noise_names_no_cause(memory_store):
    runs(memory_store, "v1", count=4)
    runs(memory_store, "v2", {"op07": 1.02}, start=4)
    assert clause_of(diff(memory_store, "v1", "v2")) == ""


def test_number_of_the_clause_is_that_of_a_row(memory_store):
    runs(memory_store, "v1", count=4)
    runs(memory_store, "v2", {"op07": 11.0}, start=4)
    result = diff(memory_store, "v1", "v2")
    (number,) = re.findall(r"\((\+[\d.]+ ms)\)", clause_of(result))
    rows = [line for line in render(result, "text", width=120).splitlines() if line.startswith("  op07 ")]
    assert any(number in line for line in rows)


def test_swapped_sides_name_the_same_cause_with_the_other_sign(memory_store):
    runs(memory_store, "v1", count=4)
    runs(memory_store, "v2", idle_ns=20_000_000, start=4)
    assert clause_of(diff(memory_store, "v2", "v1")) == "less idle time of the device (-20.00 ms)"


CHANGES = {
    "an operator": {"changed": {"op07": 11.0}},
    "idle time that was none": {"idle_ns": 20_000_000},
    "three operators alike": {"changed": {"op07": 6.0, "op08": 6.0, "op09": 6.0}},
    "what others take back": {"changed": {"op07": 25.0}, "without": [f"op{at}" for at in range(20, 38)]},
}


@pytest.mark.parametrize("case", CHANGES)
def test_diff_incident_and_board_name_one_cause(memory_store, case):
    """None of three equal operators, and none that others take back."""
    runs(memory_store, "v1", count=5)
    runs(memory_store, "v2", start=5, **CHANGES[case])
    update(memory_store, tracks_of(memory_store))
    (beside_level,) = diffs(memory_store, ["v2"])
    clause = clause_of(beside_level) if "REGRESSED:" not in clause_of(beside_level) else ""
    (incident,) = findings(memory_store).rows.incidents
    found = board(memory_store)
    assert incident.leading_cause == clause
    assert [one.leading_cause for one in found.rows.incidents] == [clause]
    assert found.rows.lines[0].leading_cause == clause
    assert clause in found.headline


def test_cause_that_is_over_is_not_named_for_what_is_still_open(memory_store):
    """op07 and op08 made v2 slower; in v3 op07 is as before, and the step is still slower by op08, the smaller one."""
    runs(memory_store, "v1", count=5)
    runs(memory_store, "v2", {"op07": 9.0, "op08": 6.0}, start=5)
    runs(memory_store, "v3", {"op08": 6.0}, start=8)
    update(memory_store, tracks_of(memory_store))
    (incident,) = [one for one in findings(memory_store).rows.incidents if one.direction == "regression"]
    assert incident.open > 0 and "op07" not in incident.leading_cause
    assert "op07" not in board(memory_store).rows.lines[0].leading_label


def test_headline_of_a_board_has_change_and_cause_of_one_version(memory_store):
    """op07 costs v2 8 of 40 ms, op08 costs v3 4 of 48: v3 is 8 % slower, not 30."""
    runs(memory_store, "v1", count=5)
    runs(memory_store, "v2", {"op07": 9.0}, start=5)
    runs(memory_store, "v3", {"op07": 9.0, "op08": 5.0}, start=8)
    update(memory_store, tracks_of(memory_store))
    assert re.match(r"gpt v3 is 8\.\d % slower: op08 is slower per call", board(memory_store).headline)


def test_incident_and_diff_name_one_cause(memory_store):
    runs(memory_store, "v1", count=5)
    runs(memory_store, "v2", {"op07": 11.0}, start=5)
    update(memory_store, tracks_of(memory_store))
    (incident,) = findings(memory_store).rows.incidents
    (beside_level,) = diffs(memory_store, ["v2"])
    assert incident.leading_cause == clause_of(beside_level)
    assert incident.leading_label.startswith("op07 +")
    assert render(findings(memory_store), "text", width=200).splitlines()[1].count(incident.leading_cause) == 1


def test_false_positive_is_no_cause(memory_store):
    """An incident whose operator a user called a false positive does not name it."""
    runs(memory_store, "v1", count=5)
    runs(memory_store, "v2", {"op07": 11.0}, start=5)
    update(memory_store, tracks_of(memory_store))
    rows = findings(memory_store).rows.findings
    numbers = [row.finding_id for row in rows if row.kind != "run"]
    act(memory_store, Word("invalid", "li", EPOCH_NS, "a wrong marker"), finding_ids=numbers)
    (incident,) = findings(memory_store).rows.incidents
    assert incident.leading_cause == ""
