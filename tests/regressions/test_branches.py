"""A pull request is judged against the main line, and never becomes a part of it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sqlalchemy import text

from tests.regressions.made import runs
from tracker.errors import UsageError
from tracker.regressions.actions import Word, act
from tracker.regressions.inbox import findings, found_rows
from tracker.regressions.judgement import tracks_of, update, update_branch
from tracker.regressions.merge_base import BranchVersion, MainVersion, find_merge_base
from tracker.regressions.sides import newest_gates
from tracker.regressions.thresholds import Where, set_thresholds
from tracker.regressions.track import named_tracks, read_tracks
from tracker.results import FindingsOptions, HistoryOptions
from tracker.results.thresholds import Threshold
from tracker.store import queries, samples
from tracker.store import runs as edits

PR = "gpt @ pr12"
SLOW = {"op07": 5.0}
"""op07 takes 5 ms instead of 1: the step of 40 operators takes 44 ms."""
HOUR = 3_600_000_000_000


def judge(store):
    return update(store, tracks_of(store))


def gates(store, workload=PR):
    """How the newest version of a workload ends at --fail-on new and any."""
    (track,) = read_tracks(store, named_tracks(store, workload))
    with store.connect() as connection:
        return [gate.code for gate in newest_gates(connection, track).values()]


def shown(store, workload):
    """The findings of the step, whatever became of them: first version, state, the version in which they ended."""
    rows = found_rows(store, FindingsOptions(workload=workload))
    return [(row.version, row.base_state, row.ended_version) for row in rows if row.name == "step"]


def main_line(store):
    """All that was judged of the main line, without the numbers of rows."""
    tables = (
        "SELECT v.label, s.kind, s.name, d.verdict, d.decided, d.reason, d.change, d.judged_change, d.p, d.q, "
        "d.contribution, d.detectable, d.base_runs FROM verdict AS d INNER JOIN series AS s ON d.series_id = s.id "
        "INNER JOIN version AS v ON d.version_id = v.id INNER JOIN workload AS w ON v.workload_id = w.id "
        "WHERE w.name = 'gpt'",
        "SELECT s.kind, s.name, f.direction, f.how, v.label, f.state, f.size, f.q, f.contribution, f.value_before, "
        "f.value_after FROM finding AS f INNER JOIN series AS s ON f.series_id = s.id INNER JOIN version AS v "
        "ON f.first_version_id = v.id INNER JOIN workload AS w ON f.workload_id = w.id WHERE w.name = 'gpt'",
        "SELECT v.label, v.ordinal, j.step_before_ns, j.step_after_ns, j.shared_factor, j.step_verdict, j.net, j.peak "
        "FROM judged_version AS j INNER JOIN version AS v ON j.version_id = v.id "
        "INNER JOIN workload AS w ON v.workload_id = w.id WHERE w.name = 'gpt'",
    )
    with store.connect() as connection:
        return [sorted(map(str, connection.execute(text(question)))) for question in tables]


@pytest.mark.postgres
def test_each_push_fails_until_one_is_mended_and_the_main_line_knows_nothing_of_it(store):
    runs(store, "m1")
    runs(store, "m2", start=3)
    for at, slow in enumerate((SLOW, SLOW, None, SLOW)):
        runs(store, f"push{at + 1}", slow, start=6 + 3 * at, workload=PR)
        judge(store)
        assert gates(store) == ([0, 0] if slow is None else [1, 1])
    assert shown(store, PR) == [("push1", "recovered", "push3"), ("push4", "open", None)]
    assert gates(store, "gpt") == [0, 0]
    assert shown(store, "gpt") == []


@pytest.mark.postgres
@pytest.mark.parametrize("seed", [1, 2])
def test_the_main_line_is_the_same_to_the_last_digit_with_and_without_branches(store, seed):
    """In whatever order they come in: op07 gets slow in m2 for good; the branches try all kinds of things."""
    from tracker.store import open_store

    main = [("m1", None, 0), ("m2", SLOW, 3), ("m3", SLOW, 6), ("m4", {"gelu": 5_000_000}, 9)]
    branches = [
        ("m2", {"op03": 4.0}, 12, {}), ("p2", {"relu": 3_000_000}, 15, {}),
        ("p3", None, 18, {"without": ("op01",), "count": 1}),
    ]  # fmt: skip
    with open_store("sqlite://") as alone:
        for version, changed, start in main:
            runs(alone, version, changed, start=start)
            judge(alone)
        expected = main_line(alone)
    source = np.random.default_rng(seed)
    rest = [*(("gpt", *one, {}) for one in main), *((PR, *one) for one in branches)]
    order = sorted(range(len(rest)), key=lambda at: source.random() if at >= len(main) else at / len(main))
    for at in order:
        workload, version, changed, start, more = rest[at]
        runs(store, version, changed, start=start, workload=workload, **more)
        judge(store)
    assert main_line(store) == expected


@pytest.mark.parametrize(
    ("changed", "more"),
    [(None, {}), (SLOW, {}), (None, {"count": 1}), (SLOW, {"count": 1}), ({"gelu": 5_000_000}, {"without": ("op01",)}),
     (None, {"shared": 1.1})],
)  # fmt: skip
def test_a_push_is_judged_as_the_next_version_of_the_main_line_would_be(memory_store, changed, more):
    from tracker.store import open_store

    with open_store("sqlite://") as merged:
        for store, workload in ((memory_store, PR), (merged, "gpt")):
            for at in range(3):
                runs(store, f"m{at}", start=3 * at)
            runs(store, "next", changed, start=9, workload=workload, **more)
            judge(store)
        assert verdicts(memory_store, "next") == verdicts(merged, "next")


def verdicts(store, version):
    """How the series of a version were judged, by name."""
    question = text(
        "SELECT s.kind, s.metric, s.name, d.verdict, d.decided, d.reason, d.change, d.p, d.q, d.contribution, "
        "d.base_runs FROM verdict AS d INNER JOIN series AS s ON d.series_id = s.id "
        "INNER JOIN version AS v ON d.version_id = v.id WHERE v.label = :version"
    )
    with store.connect() as connection:
        return sorted(map(str, connection.execute(question, {"version": version})))


def test_a_branch_that_is_as_the_main_line_has_no_finding(memory_store):
    for at in range(4):
        runs(memory_store, f"m{at}", start=3 * at)
    for at in range(6):
        runs(memory_store, f"push{at}", start=100 + 3 * at, workload=PR)
    judge(memory_store)
    assert found_rows(memory_store) == []


def test_a_branch_is_judged_from_the_commit_that_it_left_the_main_line_at(memory_store):
    """m2 is faster by 4 ms. A branch of m1 that is as slow as m1 made nothing slower; one of m2 did."""
    runs(memory_store, "m1", SLOW, of_run={"commit": "aaaaaaa1" * 5})
    runs(memory_store, "m2", start=3, of_run={"commit": "bbbbbbb2" * 5})
    left = {"main_commits": ("ccccccc3cccc", "aaaaaaa1aaaa")}
    runs(memory_store, "of_m1", SLOW, start=6, workload=PR, of_run=left)
    runs(memory_store, "of_m2", SLOW, start=9, workload="gpt @ pr13")
    judge(memory_store)
    (track,) = read_tracks(memory_store, named_tracks(memory_store, PR))
    (base,) = track.bases.values()
    assert (base.label, base.why) == ("m1", "the newest version before the merge base ccccccc3c, which is none")
    assert gates(memory_store) == [0, 0]
    assert gates(memory_store, "gpt @ pr13") == [1, 1]


@pytest.mark.postgres
def test_a_branch_follows_what_happens_to_the_runs_of_its_main_line(store):
    runs(store, "m1")
    slow = runs(store, "m2", SLOW, start=3)
    runs(store, "push", SLOW, start=6, workload=PR)
    judge(store)
    assert gates(store) == [0, 0]
    edits.exclude_all(store, slow, "another machine")
    judge(store)
    assert gates(store) == [1, 1]
    assert judge(store) == 0


def test_what_a_branch_lost_and_what_it_brought_is_found(memory_store):
    runs(memory_store, "m1")
    runs(memory_store, "m2", start=3)
    runs(memory_store, "push", {"gelu": 5_000_000}, start=6, workload=PR, without=("op01",))
    judge(memory_store)
    rows = found_rows(memory_store, FindingsOptions(workload=PR))
    said = {(row.name, row.verdict) for row in rows if row.kind == "op"}
    assert {("gelu", "ADDED"), ("op01", "REMOVED")} <= said


def test_what_grew_is_a_finding_of_its_own_whatever_was_said_of_the_first(memory_store):
    """push1 is 10 % slower, which ann expects; push2 is 20 % slower."""
    runs(memory_store, "m1")
    runs(memory_store, "push1", SLOW, start=3, workload=PR)
    judge(memory_store)
    numbers = [row.finding_id for row in found_rows(memory_store, FindingsOptions(workload=PR))]
    act(memory_store, Word("expect", "ann", 1, "float64"), finding_ids=numbers)
    assert gates(memory_store) == [0, 0]
    runs(memory_store, "push2", SLOW, start=6, workload=PR)
    judge(memory_store)
    assert gates(memory_store) == [0, 0]
    runs(memory_store, "push3", {"op07": 9.0}, start=9, workload=PR)
    judge(memory_store)
    assert gates(memory_store) == [1, 1]


@pytest.mark.postgres
def test_a_push_that_is_deleted_takes_no_finding_of_others_with_it(store):
    runs(store, "m1")
    first = runs(store, "push1", SLOW, start=3, workload=PR)
    runs(store, "push2", SLOW, start=6, workload=PR)
    judge(store)
    edits.delete_all(store, first, "a wrong image")
    judge(store)
    assert gates(store) == [1, 1]
    assert shown(store, PR) == [("push2", "open", None)]


def test_what_was_withdrawn_stays_so(memory_store):
    runs(memory_store, "m1")
    slow = runs(memory_store, "push1", SLOW, start=3, workload=PR)
    judge(memory_store)
    edits.exclude_all(memory_store, slow[:2], "another machine")
    judge(memory_store)
    runs(memory_store, "push2", start=6, workload=PR)
    judge(memory_store)
    assert shown(memory_store, PR) == []


def test_while_the_main_line_may_be_slow_itself_nothing_is_said_of_a_branch(memory_store):
    """The one run of m3 is a suspect; a branch of it that is as slow may have done nothing."""
    for at in range(2):
        runs(memory_store, f"m{at + 1}", start=3 * at)
    runs(memory_store, "m3", SLOW, start=6, count=1)
    runs(memory_store, "push", SLOW, start=7, workload=PR)
    judge(memory_store)
    assert gates(memory_store) == [4, 4]


def test_a_main_line_that_is_not_judged_is_judged_first(memory_store):
    runs(memory_store, "m1")
    runs(memory_store, "push", SLOW, start=3, workload=PR)
    (line,) = tracks_of(memory_store, workload=PR)
    for run in queries.runs(memory_store).listed("run_id"):
        with memory_store.connect() as connection, connection.begin():
            samples.refresh(connection, [run])
    assert update_branch(memory_store, line, {}) == 2
    assert gates(memory_store) == [1, 1]


def test_a_branch_makes_nothing_known_of_the_configurations_of_the_main_line(memory_store):
    """It states a batch size, which m1 does not: taken for the same. Another one is a configuration of its own."""
    runs(memory_store, "m1")
    for at, batch in enumerate(("32", "64")):
        stated = {"configuration": {"batch": batch}, "stated": frozenset({"batch"})}
        runs(memory_store, f"push{at}", start=3 + 3 * at, workload=PR, of_run=stated)
    runs(memory_store, "m2", start=9)
    judge(memory_store)
    (track,) = read_tracks(memory_store, named_tracks(memory_store, "gpt"))
    assert (track.names.configuration, list(track.labels.values())) == ("", ["m1", "m2"])
    given = {"configuration": {"batch": "64"}}
    runs(memory_store, "push3", start=12, workload=PR, of_run=given)
    judge(memory_store)
    codes = {track.names.configuration: track for track in read_tracks(memory_store, named_tracks(memory_store, PR))}
    assert set(codes) == {"", "batch=64"}
    # once the main line is trained so, too, it is what the branch is judged against
    runs(memory_store, "m3", start=15, of_run=given)
    judge(memory_store)
    tracks = read_tracks(memory_store, named_tracks(memory_store, PR))
    (own,) = [track for track in tracks if track.names.configuration]
    assert [base.label for base in own.bases.values()] == ["m3"]


def test_a_label_that_moves_to_another_branch_takes_the_merge_base_along(memory_store):
    runs(memory_store, "m1", of_run={"commit": "aaaaaaa1" * 5})
    runs(memory_store, "m2", SLOW, start=3, of_run={"commit": "bbbbbbb2" * 5})
    moved = runs(memory_store, "push", start=6, workload=PR, of_run={"main_commits": ("aaaaaaa1aaaa",)})
    edits.edit_all(memory_store, moved, workload="gpt @ pr13")
    judge(memory_store)
    (track,) = read_tracks(memory_store, named_tracks(memory_store, "gpt @ pr13"))
    assert [base.why for base in track.bases.values()] == ["the merge base"]


def test_limits_of_the_main_line_hold_for_its_branches_at_once(memory_store):
    """op07 takes 1.5 ms instead of 1: 1.25 % of the step, but no 90 % of itself."""
    runs(memory_store, "m1")
    runs(memory_store, "push", {"op07": 1.5}, start=3, workload=PR)
    judge(memory_store)
    assert gates(memory_store) == [1, 1]
    limits = [Threshold("min_ratio", 0.9, reason="noisy", who="ann")]
    set_thresholds(memory_store, limits, Where(workload="gpt"))
    assert gates(memory_store) == [0, 0]
    with pytest.raises(UsageError, match="is a branch"):
        set_thresholds(memory_store, limits, Where(workload=PR))


def test_without_a_main_line_nothing_is_judged(memory_store):
    runs(memory_store, "push", workload=PR)
    judge(memory_store)
    assert gates(memory_store) == [4, 4]


def test_findings_of_a_branch_are_listed_where_it_is_named(memory_store):
    runs(memory_store, "m1")
    runs(memory_store, "push", SLOW, start=3, workload=PR)
    judge(memory_store)
    of_all, of_branch = (findings(memory_store, options=FindingsOptions(workload=name)) for name in (None, PR))
    assert len(of_all.tables["findings"]) == 0
    assert of_all.tables["lines"].listed("workload") == ["gpt"]
    assert [*of_branch.tables["incidents"].rows("version", "good_version")] == [("push", "m1")]


@pytest.mark.postgres
def test_a_forgotten_branch_leaves_nothing_behind(store):
    runs(store, "m1")
    judge(store)
    before = counts(store)
    runs(store, "push", SLOW | {"gelu": 5_000_000}, start=3, workload=PR)
    judge(store)
    assert edits.forget_branch(store, PR) == 3
    assert counts(store) == before
    runs(store, "push", start=6, workload="mt5 @ pr1")
    edits.forget_branch(store, "mt5 @ pr1")
    assert counts(store) == before


def counts(store):
    """How many rows each table has that knows of workloads."""
    tables = ("workload", "version", "configuration", "run", "capture", "sample", "series", "judged_version", "verdict",
              "fact", "finding", "incident")  # fmt: skip
    with store.connect() as connection:
        return {table: connection.execute(text(f"SELECT COUNT(*) FROM {table}")).scalar_one() for table in tables}


def test_history_shows_a_branch_against_the_main_line(memory_store):
    from tracker.regressions.history import history

    runs(memory_store, "m1")
    runs(memory_store, "push1", SLOW, start=3, workload=PR)
    judge(memory_store)
    of_main, of_branch = (
        history(memory_store, options=HistoryOptions(key="step", workload=name)).tables["points"] for name in (None, PR)
    )
    assert of_main.listed("version") == ["m1"]
    (change,) = of_branch.listed("change")
    assert (of_branch.listed("version"), round(change, 2)) == (["push1"], 0.1)


def test_a_label_may_stand_on_both_and_means_the_main_line_unless_the_branch_is_named(memory_store):
    main = runs(memory_store, "a1b2c3d")
    branch = runs(memory_store, "a1b2c3d", start=3, workload=PR)
    other = runs(memory_store, "push", start=6, workload=PR)
    named = [queries.run_ids_of_version(memory_store, "a1b2c3d", name) for name in (None, "gpt", PR)]
    assert named == [tuple(main), tuple(main), tuple(branch)]
    assert queries.run_ids_of_version(memory_store, "push", "gpt") == tuple(other)


def test_a_branch_that_is_up_to_date_costs_a_look(memory_store):
    runs(memory_store, "m1")
    runs(memory_store, "push", start=3, workload=PR)
    assert judge(memory_store) == 2
    (line,) = tracks_of(memory_store, workload=PR)
    assert update_branch(memory_store, line, {}) == 0


def main_versions(*commits, starts=None):
    """Versions m1, m2, ... of these commits, an hour apart."""
    starts = starts or [at * HOUR for at in range(1, len(commits) + 1)]
    rows = zip(itertools.count(1), commits, starts, strict=False)
    return [MainVersion(at, f"m{at}", commit, start, at) for at, commit, start in rows]


@pytest.mark.parametrize(
    ("commits", "main_commits", "start", "place", "why"),
    [
        (["a" * 40, "b" * 40], ["b" * 12, "a" * 12], 9, 2, "the merge base"),
        (["a" * 40, "b" * 40], ["a" * 12], 9, 1, "the merge base"),
        (["a" * 40, "b" * 40], ["c" * 12, "a" * 12], 9, 1, "before the merge base ccccccccc, which is none"),
        (["a" * 40, "b" * 40], ["c" * 12], 9, 2, "the merge base ccccccccc is no version, nor is a commit before it"),
        ([None, None, None], [], 2.5, 2, "the newest version before the run; no merge base is known"),
        ([None, None], [], None, 2, "no merge base is known"),
        ([None, None], [], 90, 2, "the clock of the run is ahead"),
        ([None, None], [], 0.5, 2, "by the clocks the whole main line is newer"),
    ],
)
def test_the_merge_base_is_found_by_commits_else_by_time(commits, main_commits, start, place, why):
    started_at_ns = None if start is None else int(start * HOUR)
    found = find_merge_base(
        main_versions(*commits), BranchVersion(main_commits, started_at_ns, run_id=99), now_ns=10 * HOUR
    )
    assert (found.place, found.label) == (place, f"m{place}")
    assert why in found.why


def test_a_run_that_came_in_late_is_no_newer_than_those_before_it():
    main = main_versions(None, None, None, starts=[2 * HOUR, 5 * HOUR, 1 * HOUR])
    assert find_merge_base(main, BranchVersion([], 6 * HOUR, 99), now_ns=10 * HOUR).label == "m2"


def test_of_a_commit_the_version_without_changes_counts():
    main = [MainVersion(at, label, "a" * 40, None, at) for at, label in enumerate(("aaaaaaa", "aaaaaaa-dirty"), 1)]
    assert find_merge_base(main, BranchVersion(["a" * 12], None, 99), now_ns=0).label == "aaaaaaa"


def test_a_label_that_git_describe_made_names_its_commit():
    described = MainVersion(1, "v1.4-12-g3fd0a41", None, None, 1)
    dirty = MainVersion(2, "v1.4-12-g3fd0a41-dirty", None, None, 2)
    found = find_merge_base([described, dirty], BranchVersion(["3fd0a41e22c1"], None, 99), now_ns=0)
    assert (found.label, found.why) == ("v1.4-12-g3fd0a41", "the merge base")
    assert find_merge_base([], BranchVersion([], None, 1), now_ns=0) is None
