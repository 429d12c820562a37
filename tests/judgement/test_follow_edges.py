"""The follower where runs do not tell everything: holes, lines without steps, mutes, creep, what users undo."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tracker.detectors.life import Acted
from tracker.judgement.follow import UserAction, WatchedRun, follow, watched_of
from tracker.judgement.follow.following import Follower
from tracker.judgement.judging import Values

pytestmark = pytest.mark.slow

OP = ("op", "device_self_ns")
LEVEL = (0, 1, "level")


def ops(runs, count=40):
    """`count` ops with 1 % of noise: (ops, runs)."""
    draw = np.random.default_rng(0)
    return draw.uniform(1e6, 5e6, count)[:, None] * np.exp(draw.normal(0, 0.01, (count, runs)))


def line(values, versions, families=None, names=None, *, started=True):
    """Run number i, from 1, is of version versions[i - 1]."""
    families = families or [OP] * len(values)
    names = names or [f"op{number}" for number in range(len(values))]
    starts = [(at + 1) * 10**9 if started else None for at in range(len(versions))]
    runs = [WatchedRun(at + 1, version, starts[at], True) for at, version in enumerate(versions)]
    return watched_of(Values(families, names, values, np.where(np.isnan(values), np.nan, 1.0)), runs)


def of(found, key):
    return [tracked for tracked in found if tracked.key == key]


def kinds(tracked):
    return [transition.kind for transition in tracked.transitions]


def acted(action, after, *, first=9, key=LEVEL, **more):
    return UserAction(key, first, after, Acted(action, "ann", after * 10**9 + 1, "because", **more))


@pytest.fixture
def slower():
    """8 runs, then 8 in which the first op takes 40 % longer."""
    values = ops(16)
    values[0, 8:] *= 1.4
    return values


TWO = [0] * 8 + [1] * 8


def test_a_suspicion_waits_for_a_run_that_has_the_series(slower):
    """Run 9 is a version of its own; of the next one, the first run lacks the op, and the second decides."""
    slower[0, 9] = np.nan
    versions = [0] * 8 + [1, 2, 2]
    (tracked,) = of(follow(line(slower[:, :10], versions[:10])), LEVEL)
    assert kinds(tracked) == ["suspected"]
    (tracked,) = of(follow(line(slower[:, :11], versions)), LEVEL)
    assert kinds(tracked) == ["suspected", "confirmed"]
    assert tracked.transitions[1].run == 11


@pytest.mark.parametrize(
    ("family", "name", "factor"),
    [(("run", "samples_per_second"), "throughput", 0.6), (("run", "peak_allocated_bytes"), "peak memory", 1.6)],
)
def test_lines_without_a_step_have_findings_too(family, name, factor):
    values = 100 * np.exp(np.random.default_rng(1).normal(0, 0.01, (1, 16)))
    values[0, 8:] *= factor
    (tracked,) = follow(line(values, TWO, [family], [name]))
    assert (tracked.sign, tracked.finding.state) == (1, "new")


def test_what_a_run_did_not_record_is_not_gone(slower):
    kernels = np.concatenate([slower, ops(16, 20)])
    families = [OP] * 40 + [("kernel", "total_ns")] * 20
    kernels[40, 8:] *= 1.4
    kernels[40:, 12:] = np.nan
    (tracked,) = of(follow(line(kernels, [0] * 8 + [1] * 4 + [2] * 4, families)), (40, 1, "level"))
    assert kinds(tracked) == ["suspected", "confirmed"]
    slower[0, 12:] = np.nan
    (tracked,) = of(follow(line(slower, [0] * 8 + [1] * 4 + [2] * 4)), LEVEL)
    assert tracked.finding.state == "vanished"


def test_a_muted_suspicion_that_is_confirmed_says_so(slower):
    watched = line(slower, [0] * 8 + [1] + [2] * 3 + [3] * 4)
    (tracked,) = of(follow(watched, [acted("mute", 9, until_version=3)]), LEVEL)
    assert kinds(tracked)[:4] == ["suspected", "muted", "confirmed", "unmuted"]


def test_a_mute_ends_with_its_time_though_no_run_knows_when_it_was(slower):
    watched = line(slower, TWO, started=False)
    mute = acted("mute", 11, until_ns=12 * 10**9)
    (tracked,) = of(follow(watched, [mute], now_ns=12 * 10**9 - 1), LEVEL)
    assert tracked.finding.state == "muted"
    (tracked,) = of(follow(watched, [mute], now_ns=13 * 10**9), LEVEL)
    assert (tracked.finding.state, tracked.transitions[-1].when_ns) == ("new", 12 * 10**9)
    of_runs = [row for row in tracked.transitions if row.run is not None]
    assert of_runs and {row.when_ns for row in of_runs} == {None}


def test_what_was_expected_stays_so_when_other_runs_are_excluded(slower):
    more = np.concatenate([slower, slower[:, 8:]], axis=1)
    more[0, 16:] *= 1.4
    versions = [*TWO, *[2] * 8]

    def states(without):
        kept = [at for at in range(24) if at + 1 not in without]
        runs = [WatchedRun(at + 1, versions[at], (at + 1) * 10**9, True) for at in kept]
        values = Values([OP] * 40, [f"op{at}" for at in range(40)], more[:, kept], np.ones((40, len(kept))))
        return [one.finding.state for one in of(follow(watched_of(values, runs), [acted("expect", 12)]), LEVEL)]

    assert states(()) == ["expected", "new"]
    assert states((12,)) == ["expected", "new"], "the run after which the user said so"
    assert states((9,)) == ["expected", "new"], "the run that raised it"


def test_an_action_on_a_finding_that_ended_leaves_the_next_one_alone():
    values = ops(30)
    values[0, 8] *= 1.4  # one run only: cleared
    values[0, 20:] *= 1.4
    found = of(follow(line(values, [0] * 8 + [1] + [2] * 11 + [3] * 10), [acted("ack", 26)]), LEVEL)
    assert [kinds(tracked)[1] for tracked in found] == ["cleared", "confirmed"]
    assert found[1].finding.state == "new"


def test_a_wrong_improvement_gives_the_baseline_back_and_counts_no_run_twice():
    values = ops(20)
    values[0, 8:12] *= 0.6
    wrong = acted("invalid", 12, key=(0, -1, "level"))
    found = follow(line(values, [0] * 8 + [1] * 4 + [2] * 8), [wrong])
    (improved,) = of(found, (0, -1, "level"))
    assert improved.finding.state == "invalid"
    assert of(found, LEVEL) == [], "what follows is as it was before"


def test_an_improvement_that_was_accepted_by_itself_can_still_be_called_wrong():
    """8 runs, two versions of 8 that take 40 % less, then 8 as before: no finding for who called the gain wrong."""
    values = ops(32)
    values[0, 8:24] *= 0.6
    better, versions = (0, -1, "level"), [0] * 8 + [1] * 8 + [2] * 8 + [3] * 8
    found = follow(line(values, versions))
    assert [one.finding.state for one in of(found, better)] == ["expected"]
    assert len(of(found, LEVEL)) == 1
    wrong = acted("invalid", 23, key=better)
    found = follow(line(values, versions), [wrong])
    assert [one.finding.state for one in of(found, better)] == ["invalid"]
    assert not any("confirmed" in kinds(one) for one in of(found, LEVEL)), "what follows is as it was before"


def test_what_is_called_wrong_late_makes_no_bad_run_a_baseline():
    """An improvement from run 9 on; from run 17 on an open regression beyond the old level."""
    values = ops(28)
    values[0, 8:16] *= 0.6
    values[0, 16:] *= 1.5
    versions = [0] * 8 + [1] * 8 + [2] * 12
    wrong = acted("invalid", 24, key=(0, -1, "level"))
    (worse,) = of(follow(line(values, versions), [wrong]), LEVEL)
    assert worse.finding.state in ("new", "persisting"), "the runs of the regression are none to measure by"


def test_creep_is_told_against_the_best_level_that_it_is_judged_by():
    """+2 % per version of 3 runs: by v5 8 % against the best level, which is v1 with its neighbours v0 and v2."""
    values, versions = ops(21), [at // 3 for at in range(21)]
    values[0] = 2e6 * 1.02 ** np.array(versions)
    values[0, 20] *= 1.005
    watched = line(values, versions)
    (tracked,) = of(follow(watched), (0, 1, "creep"))
    assert (tracked.baseline, tracked.candidate) == (tuple(range(9)), (15, 16, 17)), "no run is on both sides"
    before, after = (np.log(watched.centred[0, list(side)]).mean() for side in (tracked.baseline, tracked.candidate))
    assert tracked.gates["ratio"] == pytest.approx(np.expm1(after - before), abs=1e-9)
    assert tracked.gates["ratio"] == pytest.approx(1.02**4 - 1, abs=0.01)
    assert tracked.last == 20
    assert tracked.effect == pytest.approx(np.log(watched.centred[0, 20]) - before), "of the newest run alone"
    began, told = (watched.runs[place].run_id for place in (15, 17))
    assert [(row.kind, row.run) for row in tracked.transitions[:2]] == [("suspected", began), ("confirmed", told)]
    assert tracked.transitions[1].reason == "the runs of the version show it together"


def test_creep_that_is_expected_is_no_creep_from_the_level_before():
    values = ops(60)
    versions = [at // 3 for at in range(60)]
    values[0] *= np.exp(0.009 * np.minimum(versions, 12))
    key = (0, 1, "creep")
    watched = line(values, versions)
    (first,) = of(follow(watched), key)
    assert first.finding.state in {"new", "persisting"}
    began = watched.runs[first.first].run_id
    found = of(follow(watched, [acted("expect", began + 2, first=began, key=key)]), key)
    assert [tracked.finding.state for tracked in found] == ["expected"]


def test_a_finding_that_comes_back_began_with_the_run_that_raised_it_again():
    """One run per version: slower from 9 to 14, as before from 15 to 20, slower again from 21 on."""
    values = ops(28)
    values[0, 8:14] *= 1.4
    values[0, 20:] *= 1.4
    watched = line(values, list(range(28)))
    old, tracked = of(follow(watched), LEVEL)
    assert (old.first, kinds(old)[-1], old.finding.state) == (8, "recovered", "recovered"), "it stays where it was"
    assert (tracked.first, kinds(tracked)[0]) == (20, "reopened")
    assert (tracked.finding.number, tracked.finding.reopened) == (1, 1)
    assert max(tracked.baseline) == 19, "it is measured against the runs after it had recovered"
    baseline, candidate = (watched.centred[0, list(side)].mean() for side in (tracked.baseline, tracked.candidate))
    assert tracked.gates["ratio"] == pytest.approx(candidate / baseline - 1, abs=0.002)
    expected = acted("expect", 24, first=21)
    values[0, 25:] *= 1.1
    found = of(follow(line(values, list(range(28))), [expected]), LEVEL)
    assert [one.finding.state for one in found] == ["recovered", "expected", "new"]
    assert min(found[2].baseline) == 20, "the baseline begins with the second time alone"


def test_a_lasting_step_back_begins_the_recovery_where_no_two_runs_in_a_row_are_good():
    """+10 % for 12 runs, then back; every other run lies 2.7 % too high, above half of the smallest change (1.5 %)."""
    values = ops(34)
    values[0] = 2e6 * np.exp(np.random.default_rng(1).normal(0, 0.002, 34))
    values[0, 8:20] *= 1.10
    values[0, 21::2] *= 1.027
    (tracked,) = of(follow(line(values, [0] * 8 + list(range(1, 27)))), LEVEL)
    recovering = next(row for row in tracked.transitions if row.kind == "recovering")
    assert recovering.reason == "a step back"
    assert recovering.run > 22  # it has lasted for 3 runs
    assert tracked.turned == 20
    assert kinds(tracked).count("recovering") == 1


def test_what_became_faster_and_goes_back_is_a_finding_and_no_jump_between_two_levels():
    """9 runs at one level, two versions that are 30 % faster (the new baseline by itself), then as slow as before."""
    values = ops(27)
    values[0, 9:18] *= 0.7
    found = follow(line(values, [0] * 3 + [1] * 3 + [2] * 3 + [3] * 5 + [4] * 4 + [5] * 9))
    (tracked,) = of(found, LEVEL)
    assert kinds(tracked)[:2] == ["suspected", "confirmed"]
    assert tracked.first == 18


def test_what_jumps_from_run_to_run_is_unclear_and_no_finding():
    values = ops(23)
    values[0, [1, 2, 4, 6, 8, *range(12, 20)]] *= 0.7
    follower = Follower(line(values, [0] * 20 + [1] * 3), ())
    for runs in (range(20), range(20, 23)):
        follower.observe(runs)
    assert [one for one in follower.found if one.row == 0] == []
    said = follower.verdicts[1].columns
    assert said["verdict"][0] == "INCONCLUSIVE"
    assert said["reason"][0].startswith("jumps between two levels in older runs, 2.")
    assert said["diff"][0] > 0.03


@pytest.mark.parametrize(
    ("later", "share", "because"),
    [
        (1.02, 0.5, r"effect (1\.9|2)[.\d]* %, at least 3 % counts"),
        (0.9, 0.5, "they changed the other way"),
        (1.4, 0.0012, r"contribution 0\.0(4|5)\d* %, at least 0\.1 % counts"),
    ],
)
def test_a_suspicion_that_is_cleared_says_by_which_gate(later, share, because):
    """An op of `share` of the step takes twice as long in one run, in the next two only `later` times."""
    values = ops(11) / 1e9
    values *= np.exp(-np.log(values) + np.log(values[:, :1]))
    values *= np.exp(np.random.default_rng(1).normal(0, 0.0005, values.shape))
    values[0] *= share / (1 - share) * values[1:].sum(axis=0) / values[0]
    values[0, 8:] *= [2.0, later, later]
    (tracked,) = of(follow(line(values, [0] * 8 + [1] + [2] * 2)), LEVEL)
    cleared = tracked.transitions[1]
    assert (cleared.kind, cleared.run) == ("cleared", 11)
    assert re.fullmatch(f"the confirming runs do not show it: {because}", cleared.reason)
