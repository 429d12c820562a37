"""What was judged of what was expected: a screen without findings says of how many series."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tests.factories import save
from tests.regressions.made import runs
from tracker.compare import diffs
from tracker.errors import UsageError
from tracker.regressions.board import board
from tracker.regressions.coverage import gate_of_coverage
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.results.coverage import CountedSeries


@pytest.fixture
def judged(store):
    """Three versions of three runs of one code."""
    for number in range(3):
        runs(store, f"v{number + 1}", start=3 * number)
    update(store, tracks_of(store))
    return store


def line_of(store):
    """The line of the newest version."""
    (line,) = findings(store).tables["lines"].records()
    return line


def test_all_series_of_a_quiet_version_are_judged(judged):
    line = line_of(judged)
    assert line["judged_series"] == line["expected_series"] > 20
    assert line["coverage"] == f"judged {line['judged_series']} of {line['judged_series']} series"
    (of_diff,) = diffs(judged, ["v3"])
    assert of_diff.judgement.coverage.judged == line["judged_series"]
    (of_board,) = board(judged).tables["lines"].records()
    assert of_board["coverage"] == line["coverage"]


def test_first_version_judges_nothing_and_says_so(store):
    runs(store, "v1")
    update(store, tracks_of(store))
    line = line_of(store)
    expected = line["expected_series"]
    assert line["coverage"] == f"judged 0 of {expected} series; {expected} need more runs"


def test_share_below_the_least_ends_with_4(judged):
    line = CountedSeries(412, 430, "judged 412 of 430 series")
    assert gate_of_coverage([line], (), 0.9).code == 0
    low = gate_of_coverage([line], (), 0.99)
    assert (low.code, low.because) == (4, "judged 412 of 430 series, and 99 % are wanted")
    assert gate_of_coverage([line], ["bert has no run of v3."], 0.9).code == 4
    with pytest.raises(UsageError, match="coverage needs a share"):
        gate_of_coverage([line], (), None)


def test_workload_that_did_not_run_is_named(judged):
    for number in range(4):
        runs(judged, f"v{number + 1}", start=3 * number + 100, workload="bert")
    update(judged, tracks_of(judged))
    (sentence,) = findings(judged).missing
    assert sentence.endswith("has no run of v4.")
    assert "bert" not in sentence
    assert board(judged).missing == (sentence,)


def test_version_with_half_of_its_operators_is_counted_row_by_row(judged):
    # 20 of 40 operators are gone, which is certain: they are judged, too
    runs(judged, "v4", start=9, without=[f"op{at:02}" for at in range(20)])
    update(judged, tracks_of(judged))
    with judged.connect() as connection:
        rows = connection.execute(
            text("SELECT verdict FROM verdict WHERE version_id = (SELECT MAX(version_id) FROM verdict)")
        ).all()
    line = line_of(judged)
    with_verdict = [row for (row,) in rows if row not in ("TOO_FEW_RUNS", "SUSPECT")]
    assert line["judged_series"] == line["expected_series"] == len(with_verdict)
    assert with_verdict.count("REMOVED") == 40  # each by itself and by its name


def test_without_a_clock_no_workload_is_missed(store):
    for number in range(4):
        save(store, f"v{number + 1}", ops=[("mm", 100)], started_at_ns=None)
        if number < 3:
            save(store, f"v{number + 1}", ops=[("mm", 100)], started_at_ns=None, workload="bert")
    update(store, tracks_of(store))
    assert findings(store).missing == ()
