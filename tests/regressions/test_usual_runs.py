"""Versions with fewer runs than usual: what is found in them is said to be so far."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import text

from tests.regressions.made import runs
from tracker.compare import diff, diffs
from tracker.regressions.board import board
from tracker.regressions.explain import explain
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.regressions.usual_runs import find_usual_number
from tracker.reports import render
from tracker.results import FindingsOptions

HOUR = 3600 * 10**9
TWO_OF_THREE = "so far: 2 of the usual 3 runs"


def add(store, version, number, count=3, factor=1.0):
    """Runs of a step of 40 ms; `factor`: of the time of its 40 operators."""
    runs(store, version, {f"op{at:02}": factor for at in range(10)}, start=number, count=count)
    update(store, tracks_of(store))


def add_usual(store):
    """v1 to v4 with 3 runs each."""
    for version in range(4):
        runs(store, f"v{version + 1}", start=3 * version)
    update(store, tracks_of(store))


@pytest.fixture
def usual(memory_store):
    """v1 to v4 with 3 runs each; in v5, of which 2 runs came just now, 10 of the 40 operators take twice as long."""
    add_usual(memory_store)
    add(memory_store, "v5", 12, 2, 2.0)
    return memory_store


def arrived(store, ago_ns):
    """All runs came in so long ago."""
    moment = {"now_ns": time.time_ns() - ago_ns}
    store.transact(lambda connection: connection.execute(text("UPDATE run SET last_rank_at_ns = :now_ns"), moment))


def headline(store):
    return diffs(store, ["v5"])[0].explanation.headline


@pytest.mark.postgres
def test_finding_of_fewer_runs_than_usual_is_so_far(store):
    add_usual(store)
    add(store, "v5", 12, 2, 2.0)
    rows = findings(store).tables["findings"]
    assert {*rows.listed("so_far")} == {TWO_OF_THREE}
    add(store, "v5", 14, 1, 2.0)
    assert {*findings(store).tables["findings"].listed("so_far")} == {""}


def test_so_far_ends_with_the_time(usual):
    arrived(usual, 11 * HOUR)
    assert board(usual).lines["so_far"].tolist() == [TWO_OF_THREE]
    arrived(usual, 12 * HOUR)
    assert board(usual).lines["so_far"].tolist() == [""]


def test_settings_say_how_long_runs_may_come(usual):
    arrived(usual, HOUR)
    usual.runs_settle_ns = HOUR
    assert {*findings(usual).tables["findings"].listed("so_far")} == {""}


def test_headline_of_a_diff_says_so_far(usual):
    assert headline(usual).endswith(f", {TWO_OF_THREE}")
    assert diff(usual, "v4", "v5").explanation.headline.endswith(f", {TWO_OF_THREE}")
    assert "so far" not in diff(usual, "v3", "v4").explanation.headline
    add(usual, "v5", 14, 1, 2.0)
    assert "so far" not in headline(usual)


def test_headline_of_other_runs_is_of_no_version(usual):
    """One run of v5 that a user names is no version that waits for others."""
    assert "so far" not in diff(usual, "v4", "run:13,run:13").explanation.headline


def test_operator_of_fewer_runs_than_usual_is_so_far(memory_store):
    """One of 40 operators takes 1.5 times as long, which is 1 % of the step."""
    add_usual(memory_store)
    runs(memory_store, "v5", {"op07": 1.5}, start=12, count=2)
    update(memory_store, tracks_of(memory_store))
    explanation = diffs(memory_store, ["v5"])[0].explanation
    assert "1 operator REGRESSED" in explanation.headline
    assert "So far: 2 of the usual 3 runs." in explanation.remarks


def test_board_says_how_many_of_the_usual_runs_came(usual):
    assert "new I-1, 2 of 3 runs" in render(board(usual))
    add(usual, "v5", 14, 1, 2.0)
    assert "of 3 runs" not in render(board(usual))


def test_equal_version_is_not_said_to_be_so_far(memory_store):
    add_usual(memory_store)
    add(memory_store, "v5", 12, 2)
    assert "of 3 runs" not in render(board(memory_store))


def test_findings_say_so_far_and_what_it_means(usual):
    page = " ".join(render(findings(usual)).split())
    assert f"New in v5: the step is 25.2 % slower, 39.97 -> 50.04 ms per step, {TWO_OF_THREE} REGRESSED" in page
    assert "So far: 2 of the usual 3 runs." in page
    assert "Note: so far: further runs of the version may come and change it." in page


def test_suspects_of_one_run_name_the_usual_number(memory_store):
    add_usual(memory_store)
    add(memory_store, "v5", 12, 1, 2.0)
    assert "Suspects: in 1 of the usual 3 runs so far" in render(findings(memory_store))


def test_explained_finding_says_so_far(usual):
    number = int(findings(usual).findings["finding_id"].dropna().iloc[0])
    page = " ".join(render(explain(usual, number)).split())
    assert "So far: 2 of the usual 3 runs." in page
    assert "night effect: runs of one night resemble each other more than those of several nights" in page


def test_recovery_of_fewer_runs_than_usual_is_so_far(usual):
    """The third run of v5 came, and v6 is as v4 was, with one of three runs."""
    add(usual, "v5", 14, 1, 2.0)
    add(usual, "v6", 15, 2)
    rows = findings(usual, options=FindingsOptions(states=("recovered",))).tables["findings"]
    assert {*rows.listed("so_far")} == {"so far: 2 of the usual 3 runs of v6"}


@pytest.mark.parametrize(
    ("counts", "usual_number"),
    [
        ([3, 3, 3], 3),
        ([3, 3], None),
        ([1, 1, 1, 1], 1),
        ([2, 3, 2, 3], 2),
        ([1, 1, 1, 1, 1, 8, 8, 8, 8], 8),
        ([20, 20, 20, 4], 20),
    ],
)
def test_usual_number_is_the_median_of_the_look_back(counts, usual_number):
    """The look-back is 32 runs, and three versions at least."""
    assert find_usual_number(counts, 32) == usual_number
