"""Three runs per version, as a nightly has them: what is taken back has recovered with its version, and what comes next
is a finding of its own. Every op takes 1 to 5 ms, with 1 % of noise.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.judgement.test_follow_edges import LEVEL, OP, acted, kinds, line, of, ops
from tracker.detectors.life import ENDED
from tracker.judgement.follow import WatchedRun, follow, watched_of
from tracker.judgement.follow.following import Follower
from tracker.judgement.follow.following import versions_of as versions_in_order
from tracker.judgement.judging import Values

NIGHTLY = [at // 3 for at in range(24)]
"""Version of each of 24 runs: 0 0 0 1 1 1 ..."""


def nightly(*factors):
    """The op of LEVEL, times a factor per version; versions without one are as at first."""
    values = ops(24)
    for version, factor in enumerate(factors):
        values[0, 3 * version : 3 * version + 3] *= factor
    return values


def versions_of(tracked):
    """Each transition with the version of the run that made it."""
    return [(row.kind, (row.run - 1) // 3) for row in tracked.transitions if row.run is not None]


def test_a_whole_version_of_good_runs_ends_a_recovery_and_the_next_change_is_a_finding_of_its_own():
    """+40 % in version 3, back in 4, +100 % in 5, back in 6."""
    first, second = of(follow(line(nightly(1, 1, 1, 1.4, 1, 2), NIGHTLY)), LEVEL)
    assert versions_of(first) == [("suspected", 3), ("confirmed", 3), ("recovering", 4), ("recovered", 4)]
    assert versions_of(second) == [("suspected", 5), ("confirmed", 5), ("recovering", 6), ("recovered", 6)]
    assert (first.gates["ratio"], second.gates["ratio"]) == pytest.approx((0.4, 1.0), abs=0.03)
    assert {12, 13, 14} <= set(second.baseline), "what it recovered to is its level"
    assert not {9, 10, 11} & set(second.baseline)
    assert second.finding.reopened == 0


@pytest.mark.parametrize(("runs", "state"), [(13, "new"), (14, "recovered")])
def test_what_is_taken_back_has_recovered_with_two_runs_of_the_version_that_takes_it_back(runs, state):
    """+40 % in version 3, back in version 4: one run of it says too little."""
    (tracked,) = of(follow(line(nightly(1, 1, 1, 1.4)[:, :runs], NIGHTLY[:runs])), LEVEL)
    assert tracked.finding.state == state


def test_the_same_change_again_is_the_old_one_reopened_in_the_later_version():
    first, second = of(follow(line(nightly(1, 1, 1, 1.4, 1, 1.4), NIGHTLY)), LEVEL)
    assert versions_of(first)[-1] == ("recovered", 4)
    assert versions_of(second)[0] == ("reopened", 5)
    assert second.finding.reopened == 1


@pytest.mark.parametrize(("factor", "version"), [(1.05, 4), (1.5, 5)])
def test_a_recovery_is_decided_by_the_mean_of_the_runs_of_a_version(factor, version):
    """+40 % in version 3, back in 4, but for its last two runs: 5 % there is no reason to wait, 50 % is."""
    values = nightly(1, 1, 1, 1.4, 1, 1)
    values[0, 13:15] *= factor
    (only,) = of(follow(line(values, NIGHTLY)), LEVEL)
    assert versions_of(only)[-2:] == [("recovering", version), ("recovered", version)]


@pytest.mark.parametrize("versions", [NIGHTLY, [*NIGHTLY[:15], *range(5, 14)]], ids=["nightly", "one run each"])
def test_a_new_smaller_change_does_not_end_the_recovery_of_a_large_one_as_a_good_run(versions):
    """+40 % in version 3, back in 4, +8 % from 5 on: less than a quarter of 40 %, and still a change."""
    first, second = of(follow(line(nightly(1, 1, 1, 1.4, 1, 1.08, 1.08, 1.08), versions)), LEVEL)
    assert versions_of(first)[-1][0] == "recovered"
    assert second.first >= 15
    assert second.gates["ratio"] == pytest.approx(0.08, abs=0.015)
    assert not set(range(15, 24)) & set(second.baseline)


def test_what_gets_worse_with_a_later_version_is_a_finding_of_that_version_against_the_level_before():
    """+40 % from version 3 on, from 5 on twice as long as then, in 6 back to +40 %, in 7 as at first."""
    whole, step = of(follow(line(nightly(1, 1, 1, 1.4, 1.4, 2.8, 1.4, 1), NIGHTLY)), LEVEL)
    assert versions_of(whole) == [
        ("suspected", 3),
        ("confirmed", 3),
        ("persisted", 4),
        ("stepped", 5),
        ("recovering", 7),
        ("recovered", 7),
    ]
    assert not any(row.notifies for row in whole.transitions if row.kind == "stepped"), "it is told with the step"
    assert versions_of(step) == [("suspected", 5), ("confirmed", 5), ("recovering", 6), ("recovered", 6)]
    assert (step.first, step.baseline, step.further) == (15, (9, 10, 11, 12, 13, 14), True)
    assert step.gates["ratio"] == pytest.approx(1.0, abs=0.03)


def test_what_came_back_and_is_older_than_the_window_is_one_finding_not_two():
    """An op of version 0 that is gone for three versions and comes back half as long: it is new, and not faster."""
    values = nightly(1, 1, 1, 1, 1, 0.5, 0.5, 0.5)
    values[0, 3:15] = float("nan")
    found = [one for one in follow(line(values, NIGHTLY)) if one.row == 0]
    assert [(one.change, one.sign) for one in found if one.first >= 15] == [("presence", 1)]


def test_what_was_expected_to_come_and_goes_again_is_told():
    """An op comes with version 4 and somebody expects it; it goes with version 6."""
    values = ops(24)
    values[0, :12] = values[0, 18:] = float("nan")
    key = (0, 1, "presence")
    expected = acted("expect", 15, first=13, key=key)
    found = [one for one in follow(line(values, NIGHTLY), [expected]) if one.row == 0]
    assert [(one.sign, one.first, one.change) for one in found] == [(1, 12, "presence"), (-1, 18, "presence")]
    assert found[0].finding.state in ENDED
    assert "confirmed" in kinds(found[1])


def test_one_run_without_the_series_is_not_gone_and_a_whole_version_is():
    """+40 % from version 3 on; the first run of version 5 lacks the op, all of 7 do, and 8 has it again."""
    values = ops(27)
    values[0, 9:] *= 1.4
    values[0, 15] = values[0, 21:24] = float("nan")
    (only,) = of(follow(line(values[:, :23], [*NIGHTLY][:23])), LEVEL)
    assert versions_of(only) == [("suspected", 3), ("confirmed", 3), ("persisted", 4)]
    (only,) = of(follow(line(values, [*NIGHTLY, 8, 8, 8])), LEVEL)
    assert versions_of(only)[-2:] == [("vanished", 7), ("returned", 8)]


def test_a_version_of_two_runs_without_the_series_is_over_with_the_next():
    values = two_each(1, 1, 1, 1, 1, 1.4, 1.4, float("nan"))
    (only,) = of(follow(line(values[:, :16], TWO_EACH[:16])), LEVEL)
    assert versions_in(TWO_EACH, only)[-1] == ("persisted", 6)
    (only,) = of(follow(line(values, TWO_EACH)), LEVEL)
    assert versions_in(TWO_EACH, only)[3:5] == [("vanished", 7), ("returned", 8)]


TWO_EACH = [at // 2 for at in range(24)]
"""Version of each of 24 runs: 0 0 1 1 ..."""


def two_each(*factors):
    values = ops(24)
    for version, factor in enumerate(factors):
        values[0, 2 * version : 2 * version + 2] *= factor
    return values


def versions_in(versions, tracked):
    return [(row.kind, versions[row.run - 1]) for row in tracked.transitions if row.run is not None]


def test_two_runs_of_a_version_decide_by_themselves():
    """+40 % in version 5, back in 6: no run of 6 has a say in what version 5 did."""
    (only,) = of(follow(line(two_each(1, 1, 1, 1, 1, 1.4), TWO_EACH)), LEVEL)
    assert versions_in(TWO_EACH, only) == [("suspected", 5), ("confirmed", 5), ("recovering", 6), ("recovered", 6)]
    assert only.candidate == (10, 11)
    assert only.gates["ratio"] == pytest.approx(0.4, abs=0.03)
    assert only.finding.size == pytest.approx(np.log(1.4), abs=0.03)


def test_of_two_runs_per_version_what_is_reopened_and_taken_back_at_once_is_reopened_and_recovers():
    """+40 % in version 5, back in 6, again in 8, back in 9."""
    first, second = of(follow(line(two_each(1, 1, 1, 1, 1, 1.4, 1, 1, 1.4), TWO_EACH)), LEVEL)
    assert versions_in(TWO_EACH, first)[-1] == ("recovered", 6)
    assert versions_in(TWO_EACH, second) == [("reopened", 8), ("recovering", 9), ("recovered", 9)]
    assert (second.finding.first_bad_version, second.candidate) == (8, (16, 17))


def test_what_is_suspicious_again_five_versions_later_is_reopened_however_late_it_is_confirmed():
    """+40 % in versions 3 to 5 of one run each, recovered in 9; again in 14, which the runs of 15 and 16 confirm."""
    values = ops(20)
    values[0, 8:11] *= 1.4
    values[0, 19:] *= 1.4
    versions = [0] * 6 + list(range(1, 15))
    (first,) = of(follow(line(values, versions)), LEVEL)
    recovered = first.finding.recovered_version
    more = ops(recovered + 13)
    more[0, 8:11] *= 1.4
    again = recovered + 10  # the place of the run of the fifth version after it
    more[0, again:] *= 1.4
    first, second = of(follow(line(more, [0] * 6 + list(range(1, recovered + 8)))), LEVEL)
    assert kinds(first)[-1] == "recovered"
    assert kinds(second) == ["reopened"]
    assert (second.first, second.finding.first_bad_version) == (again, recovered + 5)
    assert second.finding.first_bad_run == again + 1


def test_runs_of_a_suspicion_of_what_had_recovered_that_was_none_join_the_window():
    """+40 % in version 3, recovered; one bad run, a version of its own: it and the good ones after it are normal."""
    values = nightly(1, 1, 1, 1.4, 1, 1)
    values[0, 16] *= 1.4
    watched = line(values, [*NIGHTLY[:15], 5, 6, 7, 7, 7, 8, 8, 8, 8])
    follower = Follower(watched, ())
    for runs in versions_in_order(watched.runs):
        follower.observe(runs)
    assert follower.baselines.normal[0, [15, 17, 18]].all()
    assert follower.baselines.normal[0, 16], "as after any suspicion that is cleared"


def test_what_was_called_more_often_has_recovered_with_its_calls_however_much_its_time_varies():
    """4 calls, 6 in version 3, and 4 again, with times so noisy that no run lies low enough."""
    values, counts = nightly(1, 1, 1, 1.5, 1), np.full((40, 24), 4.0)
    counts[0, 9:12] = 6
    values[0, 12:18] *= 1.18  # more than a quarter of 50 %
    watched = watched_of(Values([OP] * 40, [f"op{at}" for at in range(40)], values, counts), RUNS)
    called, slow = of(follow(watched), LEVEL)
    assert versions_of(called)[-2:] == [("recovering", 4), ("recovered", 4)]
    assert (slow.first, slow.gates["ratio"]) == (12, pytest.approx(0.18, abs=0.03)), "what is left of it is its own"
    (without_calls,) = of(follow(line(values, NIGHTLY)), LEVEL)
    assert versions_of(without_calls)[2] == ("persisted", 4), "the same time of the same calls is still bad"


RUNS = [WatchedRun(at + 1, at // 3, (at + 1) * 10**9, True) for at in range(24)]
