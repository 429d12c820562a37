"""What becomes of a change: one operator of a step of 1,000, version by version."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.regressions.tracks import GELU, MM, STEP, found_in, noisy_track, track_of
from tracker.detect import Verdict, series_of
from tracker.detect.track import Track
from tracker.regressions.judged_rows import decided_word
from tracker.regressions.lifecycle import Finding, TrackState, walk

NAN = np.nan
TANH = ("op", "host_self_ns", "tanh", "", "", "")
SUM = ("op", "host_self_ns", "sum", "", "", "")


def of_mm(*levels, runs=3):
    """Findings of an operator with these numbers, beside another one in a step that stays 1,000."""
    rows = {MM: levels, GELU: [50.0] * len(levels), STEP: [1000.0] * len(levels)}
    return [one[1:] for one in found_in(track_of(rows, runs)) if one[0] == 0]


def test_regression_recovers_in_the_version_that_is_back():
    assert of_mm(100, 100, 130, 130, 100) == [(1, "level", 3, 3, "recovered", 5)]


def test_regression_stays_open_while_it_lasts():
    assert of_mm(100, 100, 130, 130, 130, 130) == [(1, "level", 3, 3, "open", 0)]


def test_improvement_that_held_twice_is_accepted():
    assert of_mm(100, 100, 70, 70, 70) == [(-1, "level", 3, 3, "accepted", 4)]


def test_improvement_lost_at_once_is_taken_back():
    assert of_mm(20, 20, 15, 20) == [(-1, "level", 3, 3, "taken back", 4)]


def test_gain_of_the_whole_that_is_lost_is_a_regression():
    # the version was 3 % faster on the whole
    assert of_mm(100, 100, 70, 100, 100) == [
        (-1, "level", 3, 3, "taken back", 4),
        (1, "level", 4, 4, "open", 0),
    ]


def test_rise_after_an_accepted_gain_is_a_regression():
    assert of_mm(100, 100, 70, 70, 100)[1:] == [(1, "level", 5, 5, "open", 0)]


def test_second_rise_is_a_second_finding():
    assert of_mm(100, 100, 130, 130, 160, 160, 100) == [
        (1, "level", 3, 3, "recovered", 7),
        (1, "level", 5, 5, "recovered", 7),
    ]


def test_fall_to_the_middle_only_moves_the_level():
    assert of_mm(100, 100, 200, 200, 150, 150, 160, 180) == [
        (1, "level", 3, 3, "open", 0),
        (1, "level", 7, 7, "open", 0),
        (1, "level", 8, 8, "open", 0),
    ]


def test_return_that_goes_further_is_an_improvement():
    assert of_mm(100, 100, 130, 130, 60, 60) == [
        (1, "level", 3, 3, "recovered", 5),
        (-1, "level", 5, 5, "accepted", 6),
    ]


def test_one_run_a_version_dates_to_the_first_of_three():
    levels = [100] * 8 + [130] * 4 + [100] * 3
    assert of_mm(*levels[:9], runs=1) == []
    assert of_mm(*levels[:11], runs=1) == [(1, "level", 9, 11, "open", 0)]
    assert of_mm(*levels, runs=1) == [(1, "level", 9, 11, "recovered", 13)]


def test_single_slow_run_is_cleared():
    assert of_mm(*[100] * 8, 130, 100, 100, 100, runs=1) == []


def test_slow_run_before_a_change_does_not_date_it():
    # 8 % slow by chance, then 40 %
    assert of_mm(*[100] * 8, 108, 140, 140, 140, runs=1) == [(1, "level", 10, 12, "open", 0)]


def test_several_runs_confirm_a_suspect():
    track = track_of({MM: [100] * 8 + [130] * 3, STEP: [1000.0] * 11}, 1)
    track.versions[-2:] = 10
    assert [one[1:5] for one in found_in(track)] == [(1, "level", 9, 10)]


def test_new_operator_that_goes_again_has_recovered():
    assert of_mm(NAN, NAN, 30, 30, NAN) == [(1, "presence", 3, 3, "recovered", 5)]


def test_operator_that_is_gone_for_good_is_accepted():
    assert of_mm(30, 30, NAN, NAN, NAN) == [(-1, "presence", 3, 3, "accepted", 4)]


def test_regression_of_an_operator_that_goes_has_vanished():
    assert of_mm(100, 100, 130, 130, NAN) == [
        (1, "level", 3, 3, "vanished", 5),
        (-1, "presence", 5, 5, "open", 0),
    ]


def test_slow_creep_is_a_gradual_slowdown():
    levels = [100 * 1.014**version for version in range(9)]
    assert of_mm(*levels)[0][:3] == (1, "gradual", 8)


def test_slow_creep_of_the_step_is_found():
    # the step is 1.5 % longer in each version, and no operator is
    levels = [1000 * 1.015**version for version in range(9)]
    track = track_of({MM: [100] * 9, GELU: [50] * 9, STEP: levels})
    assert [one[:4] for one in found_in(track)] == [(2, 1, "gradual", 8)]


def test_jumping_operator_is_no_finding():
    assert of_mm(*[100, 180, 100, 100, 180, 100, 180, 100, 180, 180] * 3, runs=1) == []


def test_operator_that_was_not_recorded_is_not_gone():
    track = track_of({MM: [100, 100, NAN, NAN, 100], STEP: [1000.0] * 5})
    assert found_in(track) == []


def test_renamed_operator_comes_and_goes_at_once():
    track = track_of({MM: [100, 100, NAN], GELU: [NAN, NAN, 100], STEP: [1000.0] * 3})
    assert [one[:5] for one in found_in(track)] == [(0, -1, "presence", 3, 3), (1, 1, "presence", 3, 3)]


def of_rewrite(gelu, tanh, mm=None):
    """Findings of a gelu of 40 that is written out with a tanh of 240, beside an operator of 100, in the step of all.

    Name of the operator, then as in `of_mm`.
    """
    mm = mm or [100.0] * len(gelu)
    parts = {GELU: gelu, TANH: tanh, MM: mm, SUM: [620.0] * len(gelu)}
    step = [float(np.nansum(column)) for column in zip(*parts.values(), strict=True)]
    names = [key[2] for key in (*parts, STEP)]
    found = found_in(track_of({**parts, STEP: step}))
    return [(names[one[0]], *one[1:]) for one in found if names[one[0]] != "step"]


def test_operator_that_went_returns_with_the_recovery():
    # the rewrite lasts for two versions, so that an improvement alone would be accepted
    assert of_rewrite([40, 40, NAN, NAN, 40, 40], [NAN, NAN, 240, 240, NAN, NAN]) == [
        ("gelu", -1, "presence", 3, 3, "taken back", 5),
        ("tanh", 1, "presence", 3, 3, "recovered", 5),
    ]


def test_rewrite_taken_back_in_two_steps_finds_nothing():
    # v5: half of the layers call gelu again, v6: all of them
    assert of_rewrite([40, 40, NAN, NAN, 20, 40, 40], [NAN, NAN, 240, 240, 120, NAN, NAN]) == [
        ("gelu", -1, "presence", 3, 3, "taken back", 5),
        ("tanh", 1, "presence", 3, 3, "recovered", 6),
    ]


def test_operator_that_returns_while_the_loss_stays_is_a_loss():
    found = of_rewrite([40, 40, NAN, NAN, 40, 40], [NAN, NAN, 240, 240, 240, 240])
    assert found[2:] == [("gelu", 1, "presence", 5, 5, "open", 0)]


def test_operator_that_got_slower_beside_a_recovery_is_found():
    found = of_rewrite([40, 40, NAN, NAN, 40], [NAN, NAN, 240, 240, NAN], [100.0, 100, 100, 100, 130])
    assert found[2:] == [("mm", 1, "level", 5, 5, "open", 0)]


def test_operator_that_stays_away_after_the_recovery_is_accepted():
    # tanh got as fast as the gelu that it stands for
    found = of_rewrite([40, 40, NAN, NAN, NAN, NAN], [30, 30, 240, 240, 30, 30])
    assert found == [
        ("gelu", -1, "presence", 3, 3, "accepted", 6),
        ("tanh", 1, "level", 3, 3, "recovered", 5),
    ]


def test_two_runs_of_a_new_level_are_judged_by_the_noise_of_both():
    # v4 and v5 have two runs each: a level of two runs is no reason to say nothing
    assert of_mm(100, 100, 100, 130, 160, runs=2) == [(1, "level", 4, 4, "open", 0), (1, "level", 5, 5, "open", 0)]


def test_gain_of_two_runs_that_is_lost_is_a_regression():
    assert of_mm(100, 100, 100, 70, 100, runs=2) == [
        (-1, "level", 4, 4, "taken back", 5),
        (1, "level", 5, 5, "open", 0),
    ]


def test_first_level_of_two_runs_decides_nothing():
    assert of_mm(100, 130, 130, runs=2) == []


def of_machine(*factors, runs=3, mm=()):
    """Findings of the step of 24 operators of 100 each, all times `factors`; `mm`: further factors of one of them."""
    names = [("op", "host_self_ns", f"op{number:02}", "", "", "") for number in range(24)]
    rows = {name: [100.0 * factor for factor in factors] for name in names}
    for at, factor in enumerate(mm):
        rows[names[0]][at] *= factor
    rows[STEP] = [sum(column) for column in zip(*rows.values(), strict=True)]
    return [one[1:] for one in found_in(track_of(rows, runs)) if one[0] == 24]


def test_drift_that_stays_is_a_finding_of_the_machine():
    assert of_machine(1, 1, 1.12, 1.12, 1.12) == [(1, "machine", 3, 4, "open", 0)]


def test_drift_of_one_version_is_no_finding():
    assert of_machine(1, 1, 1.12, 1, 1) == []


def test_drift_that_is_over_has_recovered():
    assert of_machine(1, 1, 1.12, 1.12, 1, 1) == [(1, "machine", 3, 4, "recovered", 5)]


def test_faster_machine_that_stays_faster_is_no_regression():
    assert of_machine(1, 1, 0.88, 0.88, 0.88) == [(-1, "machine", 3, 4, "accepted", 5)]


def test_drift_of_single_runs_needs_three():
    factors = [1.0] * 8 + [1.12] * 3
    assert of_machine(*factors[:10], runs=1) == []
    assert of_machine(*factors, runs=1) == [(1, "machine", 9, 11, "open", 0)]


def test_code_that_got_slower_on_a_slow_machine_is_a_change_of_the_code():
    # op00 is four times as slow from v4 on, when the machine is slow for the second version
    assert of_machine(1, 1, 1.12, 1.12, 1.12, mm=[1, 1, 1, 4, 4]) == [(1, "level", 4, 4, "open", 0)]


def of_noisy(*levels, runs=1):
    """Findings of the first operator of `noisy_track`."""
    return [one[1:] for one in found_in(noisy_track(*levels, runs=runs)) if one[0] == 0]


def test_small_change_is_found_by_many_runs_together():
    # 4 % is within the noise of four runs, and not within that of five; it is dated to the split
    assert of_noisy(*[1.0] * 16, *[1.04] * 4) == []
    assert of_noisy(*[1.0] * 16, *[1.04] * 14) == [(1, "late", 17, 21, "open", 0)]


def test_small_change_of_versions_of_two_runs_is_found_by_many_together():
    # 4.8 % is within the noise of two runs beside eight; the 17th run is the first of the ninth version
    assert of_noisy(*[1.0] * 16, *[1.048] * 8, runs=2) == []
    assert of_noisy(*[1.0] * 16, *[1.048] * 16, runs=2) == [(1, "late", 9, 13, "open", 0)]
    assert of_noisy(*[1.0] * 40, runs=2) == []


def test_late_finding_recovers_and_is_not_found_again():
    story = [1.0] * 16 + [1.04] * 13 + [1.0] * 12
    assert of_noisy(*story) == [(1, "late", 17, 21, "recovered", 30)]


def test_steady_noise_has_no_late_finding():
    assert of_noisy(*[1.0] * 40) == []


def test_drift_that_creeps_is_no_change_of_the_step():
    # all operators, and with them the step, take 1.4 % longer in each version
    found = of_machine(*[1.014**version for version in range(12)])
    assert {how for _, how, *_ in found} <= {"machine"}


def bad_track(*rows, runs=1):
    """A track of an operator, and of a step where there is a second row, judged; its findings and last verdict."""
    track = track_of(dict(zip((MM, STEP), rows, strict=False)), runs, spread=(1.0,))
    state = TrackState(len(rows))
    *_, last = walk(track, state)
    return [one.how for one in state.findings], Verdict(int(last.judged.verdict[0])).name


@pytest.mark.parametrize(
    ("rows", "found", "verdict"),
    [
        ([[100, 900, 3, 70, 5000, 1, 40, 77, 12, 800, 2, 600]], [], "INCONCLUSIVE"),  # outliers only
        ([[100] * 12, [1000] * 12], [], "UNCHANGED"),  # constant
        ([[100] * 6 + [110] * 6, [1000] * 12], ["late"], "UNCHANGED"),  # constant, and constant again
        ([[100, 130], [1000, 1030]], [], "TOO_FEW_RUNS"),  # two runs in all
        ([[100], [1000]], [], "TOO_FEW_RUNS"),  # a single one
        ([[0, 0, 0, 0, 5, 5, 5], [NAN] * 7], [], "TOO_FEW_RUNS"),  # no numbers, then too few
        ([[NAN] * 7, [NAN] * 7], [], "ABSENT"),  # no numbers at all
    ],
)
def test_bad_input_has_a_verdict_or_none(rows, found, verdict):
    assert bad_track(*rows) == (found, verdict)


QUIET_RUNS = [100, 101, 99, 100, 101, 99, 100]
"""One run a version of a step that nothing stands beside."""


def of_step_alone(*runs, count=1):
    """Findings of a step alone, as of a training log; `count`: runs of each version."""
    values = np.array([runs], dtype=float)
    track = Track(values, np.arange(len(runs)) // count + 1, series_of([STEP], device_timed=False))
    return [one[1:] for one in found_in(track)]


def test_series_alone_needs_five_single_runs():
    slow = [120, 121, 119, 122, 120, 121]
    assert of_step_alone(*QUIET_RUNS, *slow[:4]) == []
    assert of_step_alone(*QUIET_RUNS, *slow[:5]) == [(1, "late", 8, 12, "open", 0)]
    assert of_step_alone(*QUIET_RUNS, *slow, 100, 101) == [(1, "late", 8, 12, "recovered", 14)]


@pytest.mark.filterwarnings("error")
def test_series_without_a_step_is_found_late():
    series = series_of([("communication", "duration_ns", "all_reduce", "", "", "")], device_timed=False)
    runs = [*QUIET_RUNS, 120, 121, 119, 122, 120]
    found = found_in(Track(np.array([runs], dtype=float), np.arange(len(runs)) + 1, series))
    assert [one[1:5] for one in found] == [(1, "late", 8, 12)]


def test_series_alone_that_wanders_is_no_finding():
    # the same runs, each as far from its neighbours as the slow ones were from the others
    assert of_step_alone(*QUIET_RUNS, 112, 120, 127, 118, 109, 101, 94, 102, 111) == []


def test_versions_of_several_runs_decide_a_series_alone():
    slow = [120, 121, 119]
    assert of_step_alone(*QUIET_RUNS[:6], *slow, *slow, count=3) == [(1, "level", 3, 3, "open", 0)]


def test_a_version_costs_the_same_after_many_others():
    """10,000 versions of one run: what judging one reads does not grow with those before."""
    state = TrackState(1)
    for version in range(1, 10_001):
        state.levels[version] = np.zeros(1, dtype=np.int64)
    reads = Counting(state.levels)
    state.levels = reads
    assert state.current.tolist() == [0]
    assert state.pending()[0] == []
    assert reads.count <= 2


class Counting(dict):
    """A dict that counts what is read of it."""

    count = 0

    def __getitem__(self, key):
        self.count += 1
        return super().__getitem__(key)


def test_what_many_findings_of_a_version_cost_grows_with_their_number():
    def finding(series):
        return Finding(series, 1, "change", 2, 2, (1,), 1, 0.5, 0.1, 0.01)

    state = TrackState(20_000)
    began = time.process_time()
    for series in range(20_000):
        state.begin(finding(series))
    assert time.process_time() - began < 5  # each compared with each: a minute
    # one of the same key takes the place of the one that was withdrawn, and its row in the database
    state.findings[7].stored = state.findings[7].end("withdrawn").stored
    again = state.begin(finding(7))
    assert (len(state.findings), state.findings[7] is again, again.state) == (20_000, True, "open")


def levels_of_step(levels, **more):
    """The level of the step in each version; `levels`: numbers by version, the step last."""
    track = track_of(levels, **more)
    state = TrackState(len(levels))
    list(walk(track, state))
    return [int(own[-1]) for _, own in sorted(state.levels.items())], state.findings


def test_new_operator_of_one_percent_begins_a_level_of_the_step():
    # gelu is 3 % of a step of 1,000 that no version changed: v5 is as v1 and v2 again, and v3 and v4 are beside it
    rows = {MM: [500] * 6, GELU: [NAN, NAN, 30, 30, NAN, NAN], STEP: [1000, 1000, 1010, 1010, 1000, 1000]}
    levels, findings = levels_of_step(rows)
    assert levels == [0, 0, 3, 3, 0, 0]
    assert {one.series for one in findings} == {1}


def test_new_operator_of_half_a_percent_begins_no_level_of_the_step():
    rows = {MM: [500] * 4, GELU: [NAN, NAN, 5, 5], STEP: [1000] * 4}
    assert levels_of_step(rows)[0] == [0, 0, 0, 0]


def test_step_returns_only_to_a_level_with_the_same_operators():
    # mm is new in v3, gelu in v4; v5 has gelu alone, which no version before it had; v6 has neither, as v1
    mm, gelu = [NAN, NAN, 30, 30, NAN, NAN], [NAN, NAN, NAN, 40, 40, NAN]
    rows = {("op", "host_self_ns", "add", "", "", ""): [500] * 6, MM: mm, GELU: gelu, STEP: [1000] * 6}
    assert levels_of_step(rows)[0] == [0, 0, 3, 4, 5, 0]


def test_step_that_regressed_with_its_operators_recovers_with_them():
    rows = {MM: [500] * 5, GELU: [NAN, NAN, 200, 200, NAN], STEP: [1000, 1000, 1200, 1200, 1000]}
    levels, findings = levels_of_step(rows)
    assert levels == [0, 0, 3, 3, 0]
    assert [(one.series, one.state) for one in findings] == [(1, "recovered"), (2, "recovered")]


def test_suspect_step_that_is_cleared_keeps_the_level_of_its_operators():
    # one run a version: gelu is new in v9, whose run took 8 % longer by chance
    rows = {GELU: [NAN] * 8 + [30] * 4, MM: [500] * 12, STEP: [1000] * 8 + [1080, 1010, 1010, 1010]}
    track = track_of(rows, 1)
    state = TrackState(3)
    list(walk(track, state))
    assert [int(own[2]) for _, own in sorted(state.levels.items())] == [0] * 8 + [9] * 4
    assert decided_word(state, 9, 2) == "NOT_CONFIRMED", "a new level is no slower step"


def with_gelu(gelu, step, before=8):
    """Levels and findings of the step: `gelu` and `step` from v9 on, one run a version; v1 to v8 are 1,000 without."""
    versions = before + len(step)
    rows = {GELU: [NAN] * before + gelu, MM: [500] * versions, STEP: [1000] * before + step}
    levels, findings = levels_of_step(rows, runs=1)
    found = [(one.how, one.first_version, one.decided_version, one.state) for one in findings if one.series == 2]
    return levels[before:], found


def test_run_without_the_operators_of_a_suspect_is_beside_it():
    # gelu is 3 % of a step that took 8 % longer, by chance: v10 has no gelu, and is as v1 to v8
    assert with_gelu([30, NAN, NAN], [1080, 1000, 1000]) == ([9, 0, 0], [])


def test_suspects_of_other_operators_are_two_levels():
    # v10 has no gelu, and is as slow for another reason
    assert with_gelu([30, NAN, NAN], [1080, 1080, 1000]) == ([9, 0, 0], [])
    assert with_gelu([30, NAN, NAN], [1080, 900, 1000]) == ([9, 0, 0], [])


def test_single_runs_of_other_operators_confirm_nothing():
    # v10 to v12 are slow without gelu: v9 was judged alone, and is no part of it
    assert with_gelu([30, NAN, NAN, NAN], [1080] * 4) == ([9, 10, 10, 10], [("level", 10, 12, "open")])


def test_suspect_is_confirmed_by_runs_of_its_own_operators():
    assert with_gelu([30, 30, 30], [1080] * 3) == ([9, 9, 9], [("level", 9, 11, "open")])


def test_new_operator_regresses_the_step_in_one_run():
    # gelu is all of the change: one run decides, and one ends it
    assert with_gelu([100, NAN, NAN], [1100, 1000, 1000]) == ([9, 0, 0], [("level", 9, 9, "recovered")])
    assert with_gelu([100, 100], [1100, 1100]) == ([9, 9], [("level", 9, 9, "open")])


def test_level_of_one_run_of_a_slow_machine_is_a_base():
    # conv comes with v9, whose machine is 10 % slower than that of the operators' other runs
    rows = {("op", "host_self_ns", f"op{number:02}", "", "", ""): [100] * 8 + [110, 100] for number in range(24)}
    rows[("op", "host_self_ns", "conv", "", "", "")] = [NAN] * 8 + [330, 300]
    rows[STEP] = [2400] * 8 + [2970, 2700]
    track = track_of(rows, 1)
    *_, last = walk(track, TrackState(len(rows)))
    assert last.now.run_ids[last.judged.base[-1]].tolist() == [108]


def test_step_that_keeps_its_new_operator_recovers_in_two_runs():
    assert with_gelu([100, 100], [1100, 1000]) == ([9, -1], [("level", 9, 9, "open")])
    assert with_gelu([100] * 3, [1100, 1000, 1000]) == ([9, 0, 0], [("level", 9, 9, "recovered")])


def test_one_run_that_decides_confirms_no_suspect_before_it():
    # v9 was slow without gelu
    assert with_gelu([NAN, 100, 100], [1080, 1180, 1180]) == ([0, 10, 10], [("level", 10, 10, "open")])


def test_single_runs_return_to_the_level_of_their_operators():
    # sum is new in v9 and v11, beside gelu: v10 has gelu alone
    rows = {MM: [500] * 12, GELU: [NAN] * 8 + [30] * 4, SUM: [NAN] * 8 + [40, NAN, 40, 40]}
    rows[STEP] = [1000] * 8 + [1150, 1080, 1150, 1000]
    assert levels_of_step(rows, runs=1)[0][8:] == [9, 10, 9, 9]


def test_faster_machine_ends_no_regression_of_its_operators():
    """24 operators of 100 take 87 in v3 and v4, where conv is new: the step is 2,400 -> 2,488, and 2,860 by equal
    machines. In v4 nothing was taken back, though 3.7 % more would be no regression.
    """
    rows = {("op", "host_self_ns", f"op{number:02}", "", "", ""): [100, 100, 87, 87, 100] for number in range(24)}
    rows[("op", "host_self_ns", "conv", "", "", "")] = [NAN, NAN, 400, 400, NAN]
    rows[STEP] = [2400, 2400, 2488, 2488, 2400]
    found = found_in(track_of(rows))
    assert found == [(24, 1, "presence", 3, 3, "recovered", 5), (25, 1, "level", 3, 3, "recovered", 5)]


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        ((100, 130), Verdict.INCONCLUSIVE),  # one of two runs of v2 was at 130, as v8 is: mm jumps
        ((130, 130), Verdict.REGRESSED),  # v2 was slow as a whole, and is over
        ((100, 115), Verdict.REGRESSED),  # 115 is not where v8 is
    ],
)
def test_operator_that_jumps_is_told_by_the_whole_look_back(second, verdict):
    # two runs a version: the 8 runs before v8 are those of v4 to v7
    rows = {MM: [100, 101, *second, *[100, 101] * 5, 130, 131], GELU: [50.0] * 16, STEP: [1000.0] * 16}
    track = track_of(rows, 1, spread=(1.0,))
    track.versions[:] = np.arange(16) // 2 + 1
    *_, last = walk(track, TrackState(3))
    assert last.judged.verdict[0] == verdict
