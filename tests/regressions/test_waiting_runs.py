"""Runs of which not all ranks have come: shown, not judged, in no level."""

from __future__ import annotations

import numpy as np
import pytest

from tests.factories import EPOCH_NS, capture, record
from tests.regressions.made import OPS
from tests.regressions.test_judgement import judge, rows
from tracker.compare import diff, gate_of_diff, log, show
from tracker.errors import UsageError
from tracker.regressions import judgement
from tracker.regressions.board import board
from tracker.regressions.history import history
from tracker.regressions.inbox import findings
from tracker.results import HistoryOptions
from tracker.store import queries
from tracker.store import runs as edits
from tracker.store.awaited_ranks import RunRanks, find_awaited
from tracker.store.save import save_run

MINUTE = 60 * 10**9
SLOW_RANK = 1
"""Its operators take 20 % longer, so that a run of it alone seems slower."""


def add_ranks(store, version, number, ranks, *, world_size=2, op07=1.0, **of_run):
    """Save these ranks of run `number` of a version: 40 operators of about 1 ms, but op07 of `op07` times that."""
    captures = []
    started_at_ns = EPOCH_NS + number * 10**12
    for rank in ranks:
        noise = np.exp(np.random.default_rng([number, rank]).normal(0, 0.005, OPS))
        factor = 1.2 if rank == SLOW_RANK else 1.0
        times = {f"op{at:02}": int(1_000_000 * noise[at] * factor) for at in range(OPS)}
        times["op07"] = int(times["op07"] * op07)
        total = sum(times.values())
        made = capture(
            rank, world_size=world_size, ops=[*times.items()], kernels=[("gemm", total)], steps=3, step_ns=total,
            e2e_ns=total, started_at_ns=started_at_ns,
        )  # fmt: skip
        captures.append(made)
    of_run = {"started_at_ns": started_at_ns, **of_run}
    return save_run(store, record(version, **of_run), captures, formats=["torch_profiler"]).run_id


def two_rank_runs(store, version="v1", first=0):
    return [add_ranks(store, version, first + number, (0, 1)) for number in range(3)]


def stored_findings(store):
    """All that was judged: findings with what they rest on, and verdicts."""
    found = rows(
        store, "SELECT series_id, direction, how, first_version_id, new_runs, size FROM finding ORDER BY 1, 2, 3"
    )
    verdicts = rows(store, "SELECT version_id, series_id, verdict, base_runs FROM verdict ORDER BY 1, 2")
    return found, verdicts


def let_time_pass(store):
    store.settled_ns = 0


@pytest.mark.postgres
def test_one_rank_of_two_is_not_judged_and_said(store):
    """Nothing changed in v2. Rank 1 comes first, and alone it is 9 % slower than the mean of both."""
    two_rank_runs(store)
    judge(store)
    before = stored_findings(store)
    run = add_ranks(store, "v2", 3, [1])
    judge(store)
    assert stored_findings(store) == before
    of_ranks = "1 of 2 ranks, 47.98 ms per step; not judged before the others come."
    sentence = f"Run {run} (gpt v2, NVIDIA H100): {of_ranks}"
    assert findings(store).notes == (sentence,)
    assert history(store, options=HistoryOptions(key="step", kind="run")).notes == (sentence,)
    assert board(store).waiting["ranks"].tolist() == [1]
    assert board(store).lines["version"].tolist() == ["v1"]
    shown = show(store, f"run:{run}")
    assert shown.run["ranks_expected"] == 2
    assert shown.notes[0] == "It has 1 of 2 ranks: it is not judged, and in no history."
    compared = diff(store, "v1", "v2")
    assert compared.judgement.sentences == (f"Not judged: run {run} has 1 of 2 ranks.",)
    assert gate_of_diff(compared).code == 4


@pytest.mark.postgres
def test_rank_that_comes_completes_the_run_and_it_is_judged(store):
    two_rank_runs(store)
    run = add_ranks(store, "v2", 3, [1])
    judge(store)
    assert add_ranks(store, "v2", 3, [0]) == run
    judge(store)
    assert findings(store).notes == ()
    assert board(store).lines["version"].tolist() == ["v2"]
    assert len(findings(store).tables["findings"]) == 0


@pytest.mark.postgres
def test_run_without_its_rank_is_no_part_of_a_version(store):
    """v2 has two whole runs, and one that lacks a rank: the sides of a diff, and the verdicts, are the whole ones."""
    two_rank_runs(store)
    whole = [add_ranks(store, "v2", number, (0, 1)) for number in (3, 4)]
    short = add_ranks(store, "v2", 5, [1])
    let_time_pass(store)
    judge(store)
    compared = diff(store, "v1", "v2")
    assert compared.candidate.runs == 2
    (left_out,) = [note for note in compared.notes if note.startswith(f"Run {short} ")]
    assert left_out.endswith("; not judged so far.")
    assert log(store).versions["runs"].tolist() == [3, 2]
    assert f"Run {short} " in " ".join(show(store, "v2").notes)
    assert queries.run_ids_of_version(store, "v2") == tuple(whole)
    (note,) = findings(store).notes
    assert note.startswith(f"Run {short} (gpt v2, NVIDIA H100): 1 of 2 ranks came, ")


@pytest.mark.postgres
def test_three_runs_of_one_rank_in_a_row_are_whole(store):
    """From v2 on the job records rank 1 alone: with the third run that is how it records, and the level begins anew."""
    two_rank_runs(store)
    let_time_pass(store)
    runs = []
    for number in (3, 4, 5):
        runs.append(add_ranks(store, "v2", number, [1]))
        judge(store)
        waits = len(board(store).waiting)
        assert waits == (number - 2 if number < 5 else 0)
    assert queries.run_ids_of_version(store, "v2") == tuple(runs)
    assert board(store).lines["version_runs"].tolist() == [3]


@pytest.mark.postgres
@pytest.mark.parametrize("with_watch", [False, True])
def test_rank_0_of_8_alone_is_judged_as_ever(store, with_watch):
    """Two versions of three runs, of which rank 0 alone records; op07 is 20 times as slow in v2."""
    for number in range(6):
        add_ranks(store, f"v{number // 3 + 1}", number, [0], world_size=8, op07=1.0 if number < 3 else 20.0)
        judge(store)
        if with_watch:
            let_time_pass(store)
            assert judgement.tracks_that_waited(store) == []
    (step,) = [row for row in findings(store).tables["findings"].records() if row["name"] == "step"]
    assert (step["verdict"], step["candidate_runs"], step["baseline_runs"]) == ("REGRESSED", "4 5 6", "1 2 3")
    assert len(board(store).waiting) == 0


@pytest.mark.postgres
def test_stated_ranks_are_waited_for_until_time_is_up(store):
    """The first run of a track, of which 4 ranks are expected: 2 came, and after two minutes nobody waits for more."""
    run = add_ranks(store, "v1", 0, [0, 2], world_size=None, ranks_expected=4)
    judge(store)
    assert [row["ranks_awaited"] for row in board(store).tables["waiting"].records()] == [4]
    assert len(board(store).lines) == 0
    assert board(store).headline == "no run has all of its ranks yet"
    with pytest.raises(UsageError, match=f"no run has all of its ranks: run {run} has 2 of 4 ranks"):
        history(store, options=HistoryOptions(key="step", kind="run"))
    let_time_pass(store)
    keys = judgement.tracks_that_waited(store)
    assert judgement.update(store, keys) == 1
    assert board(store).lines["last_run_id"].tolist() == [run]
    assert len(board(store).waiting) == 0


def test_excluded_runs_say_nothing_of_the_number_of_ranks(store):
    """Two ranks of a trial run are no rule for the runs of rank 0 after it, once the trial is excluded."""
    trial = add_ranks(store, "v1", 0, (0, 1))
    run = add_ranks(store, "v1", 1, [0])
    judge(store)
    assert board(store).waiting["run_id"].tolist() == [run]
    edits.exclude_all(store, [trial], "trial")
    judge(store)
    assert len(board(store).waiting) == 0


def awaited(*runs, now=10 * MINUTE):
    """What runs of (ranks, arrival in minutes) wait for; the runs are numbered from 1."""
    made = [RunRanks(number, ranks, None, None, int(at * MINUTE)) for number, (ranks, at) in enumerate(runs, 1)]
    return list(find_awaited(made, now_ns=now, settled_ns=2 * MINUTE).values())


def test_first_run_waits_for_nobody():
    assert awaited((1, 9.9)) == [None]


def test_runs_whose_ranks_still_come_are_no_row_of_short_ones():
    """Rank 1 of three runs came first; each of them waits for rank 0."""
    assert awaited((2, 1), (1, 9), (1, 9), (1, 9)) == [None, 2, 2, 2]
    assert awaited((2, 1), (1, 2), (1, 3), (1, 9)) == [None, 2, 2, 2]
    assert awaited((2, 1), (1, 2), (1, 3), (1, 4)) == [None, None, None, None]


def test_short_runs_of_other_numbers_are_no_row():
    assert awaited((8, 1), (7, 2), (6, 3), (7, 4), (7, 5)) == [None, 8, 8, 8, 8]
    assert awaited((8, 1), (7, 2), (6, 3), (7, 4), (7, 5), (7, 6)) == [None, 8, 8, None, None, None]


def test_whole_run_between_short_ones_ends_the_row():
    assert awaited((2, 1), (1, 2), (1, 3), (2, 4), (1, 5)) == [None, 2, 2, None, 2]


def test_more_ranks_than_before_are_the_rule_from_then_on():
    assert awaited((2, 1), (4, 2), (2, 3)) == [None, None, 4]


def test_branch_waits_for_what_its_main_line_had_before_it():
    """Run 2 of the branch came before the main line had runs of two ranks, run 4 after."""
    main = [RunRanks(1, 1, last_rank_at_ns=0), RunRanks(3, 2, last_rank_at_ns=0)]
    branch = [RunRanks(number, 1, last_rank_at_ns=0) for number in (2, 4)]
    assert find_awaited(branch, now_ns=10 * MINUTE, settled_ns=2 * MINUTE, of_main=main) == {2: None, 4: 2}


def test_runs_of_an_earlier_program_stay_judged():
    """It did not note when ranks came: what it judged is judged, and later runs are compared with it."""
    made = [RunRanks(1, 2), RunRanks(2, 1), RunRanks(3, 1, last_rank_at_ns=0)]
    assert find_awaited(made, now_ns=MINUTE, settled_ns=2 * MINUTE) == {1: None, 2: None, 3: None}


def test_stated_number_stands_before_what_runs_before_it_had():
    made = [RunRanks(1, 8, last_rank_at_ns=0), RunRanks(2, 4, expected=4, last_rank_at_ns=10 * MINUTE)]
    assert find_awaited(made, now_ns=10 * MINUTE, settled_ns=2 * MINUTE) == {1: None, 2: None}


def test_what_a_job_handed_over_is_waited_for():
    made = [RunRanks(1, 1, handed_over=2, last_rank_at_ns=0)]
    assert find_awaited(made, now_ns=MINUTE, settled_ns=2 * MINUTE) == {1: 2}
    assert find_awaited(made, now_ns=2 * MINUTE, settled_ns=2 * MINUTE) == {1: None}
