"""What a team meets, and what each of its people is told first: the command, its exit code, its first two lines."""

from __future__ import annotations

import time

import pytest

from tests.regressions.made import runs
from tracker.profile import Device
from tracker.regressions.actions import Word, act
from tracker.regressions.inbox import found_rows
from tracker.regressions.judgement import tracks_of, update
from tracker.store import open_store
from tracker.store import runs as edits
from tracker.store.versions import order_versions

SLOW = {"op07": 5.0}
"""op07 takes 5 ms instead of 1: a step of 44 ms instead of 40."""
FAST = {f"op{at}": 0.5 for at in range(10, 20)}
"""Ten of forty operators take half a millisecond: 35 ms."""


def versions(store, *changes, count=3, **more):
    """A version of `count` runs for each of `changes`, in their order."""
    for at, changed in enumerate(changes):
        runs(store, f"v{at + 1}", changed, start=count * at, count=count, **more)
    update(store, tracks_of(store))


def mark(store, action, names=None):
    """Let ann say something of all open findings, or of those of some names."""
    rows = [row for row in found_rows(store) if row.base_state == "open"]
    ids = [row.finding_id for row in rows if names is None or row.name in names]
    act(store, Word(action, "ann", time.time_ns(), "float64", until_version="v99"), finding_ids=ids)


def first_version(store):
    versions(store, None)


def one_run_each(store):
    versions(store, None, SLOW, count=1)


def one_run_after_a_level(store):
    runs(store, "v1", count=4)
    runs(store, "v2", SLOW, start=4, count=1)
    update(store, tracks_of(store))


def second_run_confirms(store):
    one_run_after_a_level(store)
    runs(store, "v2", SLOW, start=5, count=1)
    update(store, tracks_of(store))


def not_confirmed(store):
    for at in range(8):
        runs(store, f"v{at + 1}", SLOW if at == 5 else None, start=at, count=1)
        update(store, tracks_of(store))


def confirmed_over_versions(store):
    for at in range(8):
        runs(store, f"v{at + 1}", SLOW if at > 4 else None, start=at, count=1)
        update(store, tracks_of(store))


def slower(store):
    versions(store, None, SLOW)


def reverted(store):
    versions(store, None, SLOW, None)


def goes_on(store):
    versions(store, None, SLOW, SLOW)


def half_back(store):
    versions(store, None, SLOW, {"op07": 3.0})


def improved(store):
    versions(store, None, FAST)


def improved_and_lost(store):
    versions(store, None, FAST, None)


def expected(store):
    slower(store)
    mark(store, "expect")


def operator_expected(store):
    slower(store)
    mark(store, "expect", {"op07"})


def muted(store):
    slower(store)
    mark(store, "mute")


def acknowledged(store):
    slower(store)
    mark(store, "ack")


def relabelled(store):
    runs(store, "v1")
    moved = runs(store, "v2", SLOW, start=3)
    update(store, tracks_of(store))
    mark(store, "expect")
    edits.edit_all(store, moved, version="v2b")
    update(store, tracks_of(store))


def rebased(store):
    """v3 is put before v2: what v2 lost, v3 had not."""
    reverted(store)
    order_versions(store, ["v1", "v3", "v2"], workload="gpt")
    update(store, tracks_of(store))


def excluded_later(store):
    runs(store, "v1")
    runs(store, "v2", start=3)
    bad = runs(store, "v2", {f"op{at:02}": 1.4 for at in range(40)}, start=6, count=1)
    update(store, tracks_of(store))
    edits.exclude_all(store, bad, "a compile job on the node")
    update(store, tracks_of(store))


def backfilled(store):
    """v1b comes in after v2, and belongs before it: it is as slow, so that v2 is no news."""
    slower(store)
    runs(store, "v1b", SLOW, start=9)
    order_versions(store, ["v1", "v1b", "v2"], workload="gpt")
    update(store, tracks_of(store))


def other_settings(store):
    runs(store, "v1")
    runs(store, "v2", SLOW, start=3, settings={"with_stack": "on"})
    update(store, tracks_of(store))


def other_device(store):
    runs(store, "v1")
    runs(store, "v2", SLOW, start=3, device=Device("Huawei", "Ascend910B"))
    update(store, tracks_of(store))


def other_configuration(store):
    runs(store, "v1")
    runs(store, "v2", SLOW, start=3, of_run={"configuration": {"batch": "64"}})
    update(store, tracks_of(store))


def other_workload(store):
    runs(store, "v1")
    runs(store, "v2", SLOW, start=3, workload="bert")
    update(store, tracks_of(store))


def machine_drifts(store):
    runs(store, "v1", count=5)
    runs(store, "v2", start=5, shared=1.06)
    update(store, tracks_of(store))


def waits_for_data(store):
    runs(store, "v1")
    runs(store, "v2", start=3, idle_ns=10_000_000)
    update(store, tracks_of(store))


def new_operator(store):
    runs(store, "v1")
    runs(store, "v2", {"relu": 1_000_000}, start=3, without=("op07",))
    update(store, tracks_of(store))


def more_memory(store):
    """The peak rises from 100 to 130 MiB, and the step stays."""
    for at, size in enumerate((100, 130)):
        runs(store, f"v{at + 1}", start=3 * at, peak_allocated_bytes=size << 20)
    update(store, tracks_of(store))


def two_workloads(store):
    """bert loses 10 % of 40 ms, gpt 20 ms of 40, of which gpt is the worse."""
    for workload, change in (("bert", SLOW), ("gpt", {"op07": 21.0})):
        runs(store, "v1", start=0, workload=workload)
        runs(store, "v2", change, start=3, workload=workload)
    update(store, tracks_of(store))


REGRESSED, IMPROVED = "REGRESSED", "IMPROVED"
SITUATIONS = [
    # story, command, exit code, headline, the line below it
    (first_version, "diff v1 --fail-on new", 4, "", ""),
    (first_version, "findings --new --fail-on new", 4, "No new regression", ""),
    (
        one_run_each,
        "diff v1 v2 --fail-on new",
        4,
        "v2 ran 10.1 % slower than v1",
        "One run each: no verdict on the time",
    ),
    (
        one_run_each,
        "findings",
        0,
        "No open finding",
        "Step +10.1 %: 1 more run of v2 and 2 more runs before it decide.",
    ),
    (
        one_run_after_a_level,
        "diff v2 --fail-on new",
        4,
        "v2 may be 10.0 % slower",
        "A suspect: 1 more run of it decides.",
    ),
    (
        one_run_after_a_level,
        "findings --new",
        0,
        "Nothing new is confirmed; 4 suspects",
        "Step +10.0 %: 1 more run of v2 decides.",
    ),
    (one_run_after_a_level, "board", 0, "1 workload: 1 with suspects", ""),
    (second_run_confirms, "diff v2 --fail-on new", 1, f"v2 is 9.9 % slower than runs 1-4 {REGRESSED}", ""),
    (not_confirmed, "diff v6 --fail-on new", 0, "v6 ran 9.8 % slower", "A suspect that v7 did not confirm."),
    (
        not_confirmed,
        "diff v5 v6",
        0,
        "v6 ran 9.9 % slower than v5",
        "v6 in its history: NOT_CONFIRMED by v7, +9.8 % against",
    ),
    (confirmed_over_versions, "diff v7 --fail-on new", 1, f"v7 is 10.2 % slower {REGRESSED}", "It began with v6."),
    (confirmed_over_versions, "findings --fail-on new", 1, "New in v6: the step is 10.0 % slower", ""),
    (slower, "diff v1 v2 --fail-on new", 1, f"v2 is 9.9 % slower than v1 {REGRESSED}", ""),
    (slower, "explain I-1", 0, f"v2: the step is 9.9 % slower, 40.00 -> 43.96 ms per step {REGRESSED}", ""),
    (slower, "diff v9 v2", 2, "", ""),
    (slower, "show nothing", 2, "", ""),
    (
        reverted,
        "diff v2 v3 --fail-on new",
        0,
        f"v3 is 9.1 % faster than v2 {IMPROVED}",
        "Back to the level of v1: the regression of v2 (I-1) is over.",
    ),
    (reverted, "diff v1 v3", 0, "v3 is as fast as v1 UNCHANGED", "v3 in its history: IMPROVED, -9.1 % against"),
    (reverted, "findings", 0, "No open finding", ""),
    (
        goes_on,
        "diff v3 --fail-on new",
        0,
        "v3 is as fast as",
        "The step is still 10.0 % above v1 (I-1, open since v2).",
    ),
    (
        goes_on,
        "diff v3 --fail-on any",
        1,
        "v3 is as fast as",
        "The step is still 10.0 % above v1 (I-1, open since v2).",
    ),
    (
        goes_on,
        "diff v1 v3 --fail-on new",
        1,
        f"v3 is 10.0 % slower than v1 {REGRESSED}",
        "v3 in its history: UNCHANGED",
    ),
    (
        half_back,
        "diff v2 v3",
        0,
        f"v3 is 4.5 % faster than v2 {IMPROVED}",
        "The step is still 5.0 % above v1 (I-1, open",
    ),
    (half_back, "findings", 0, "No new regression; what is listed began earlier", ""),
    (improved, "diff v2 --fail-on new", 0, f"v2 is 12.6 % faster {IMPROVED}", ""),
    (
        improved_and_lost,
        "diff v2 v3 --fail-on new",
        1,
        f"v3 is 14.3 % slower than v2 {REGRESSED}",
        "Back to the level of v1: the improvement of v2 (I-1) is gone.",
    ),
    (
        expected,
        "diff v1 v2 --fail-on new",
        0,
        f"v2 is 9.9 % slower {REGRESSED}",
        "ann accepted I-1 as intended: float64.",
    ),
    (expected, "findings --fail-on any", 0, "No open finding", ""),
    (
        operator_expected,
        "diff v2 --fail-on new",
        1,
        f"v2 is 9.9 % slower {REGRESSED}",
        "ann accepted op07 of I-1 as intended: float64. The step still counts.",
    ),
    (muted, "diff v2 --fail-on new", 1, f"v2 is 9.9 % slower {REGRESSED}", "ann muted I-1: float64."),
    (acknowledged, "diff v2 --fail-on new", 1, f"v2 is 9.9 % slower {REGRESSED}", "ann acknowledged I-1: float64."),
    (relabelled, "diff v1 v2b --fail-on new", 0, f"v2b is 9.9 % slower than v1 {REGRESSED}", "ann accepted I-"),
    (
        rebased,
        "diff v3 v2 --fail-on new",
        1,
        f"v2 is 10.0 % slower than v3 {REGRESSED}",
        "v2 in its history: REGRESSED",
    ),
    (excluded_later, "diff v1 v2 --fail-on new", 0, "v2 is as fast as v1 UNCHANGED", ""),
    (
        backfilled,
        "diff v2 --fail-on new",
        0,
        "v2 is as fast as runs 7-9",
        "The step is still 9.9 % above v1 (I-2, open since v1b).",
    ),
    (backfilled, "findings --new", 0, "No new regression; tracker findings lists what is open", ""),
    (
        other_settings,
        "diff v1 v2 --fail-on new",
        1,
        "v2 against v1: 40.00 -> 43.96 ms",
        "Not judged: with_stack off -> on",
    ),
    (
        other_device,
        "diff v1 v2 --fail-on new",
        3,
        "v2 against v1: 40.00 -> 43.96 ms",
        "Compared, not judged: different device (NVIDIA H100 and Huawei Ascend910B).",
    ),
    (
        other_configuration,
        "diff run:1,run:2,run:3 run:4,run:5,run:6 --fail-on new",
        3,
        "runs 4-6 against runs 1-3: 40.00",
        "Compared, not judged: different configuration (none and batch=64).",
    ),
    (
        other_workload,
        "diff run:1,run:2,run:3 run:4,run:5,run:6 --fail-on new",
        3,
        "runs 4-6 against runs 1-3: not comparable: different workload (gpt and bert)",
        "Compare captures of the same work",
    ),
    (
        machine_drifts,
        "diff v1 v2 --fail-on new",
        0,
        "v2 ran 5.9 % slower than v1 DRIFT",
        "Of +5.9 %, +6.0 % is machine-wide",
    ),
    (waits_for_data, "diff v1 v2 --fail-on new", 1, f"v2 is 24.9 % slower than v1 {REGRESSED}", ""),
    (new_operator, "diff v1 v2 --fail-on new", 0, "v2 ran 0.1 % faster than v1 ; 1 operator new, 1 gone", ""),
    (
        more_memory,
        "diff v1 v2 --fail-on new",
        1,
        "v2 is as fast as v1 ; peak memory 100.00 -> 130.00 MiB (+30.0 %)",
        "Peak memory rose by 30.0 %: that fails a gate (--fail-on).",
    ),
    (two_workloads, "findings --new", 0, "New in gpt v2: the step is 49.9 % slower and 1 more new incident", ""),
    (two_workloads, "board", 0, "gpt v2 is 49.9 % slower: op07 is slower per call ; 2 new", ""),
]


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    """The database of a story, made once."""
    folder, made = tmp_path_factory.mktemp("situations"), {}

    def path_of(story):
        if story not in made:
            made[story] = folder / f"{story.__name__}.db"
            with open_store(str(made[story])) as store:
                story(store)
        return made[story]

    return path_of


@pytest.mark.parametrize(
    ("story", "command", "code", "headline", "below"),
    SITUATIONS,
    ids=[f"{one[0].__name__}: {one[1]}" for one in SITUATIONS],
)
def test_a_situation_has_its_code_and_its_first_lines(tracker, databases, story, command, code, headline, below):
    """`headline`: what it begins with, and the other words of it in their order."""
    done = tracker(*command.split(), "--db", databases(story))
    assert done.code == code, done.err
    if not headline:
        assert not done.out and done.err.startswith("tracker: ") and done.err.count("\n") == 1
        return
    lines = done.out.splitlines()
    place = 0
    for words in headline.split(" "):
        at = lines[1].find(words, place)
        assert at >= 0, (words, lines[1])
        place = at + len(words)
    assert any(line.startswith(below) for line in lines[2:5]), lines[:5]


def test_a_finding_half_back_shows_the_number_of_today(tracker, databases):
    """The step was 9.9 % slower in v2, and is 5.0 % slower in v3."""
    text = tracker("findings", "--db", databases(half_back)).out
    (row,) = (line for line in text.splitlines() if " step " in line and "+9.9 %" in line and "persisting" in line)
    assert "+5.0 %" in row


def test_a_suspect_has_the_cause_of_a_diff(tracker, tmp_path):
    """op07 is called 11 times and not 10: more calls, in one run that waits for the next."""
    db = tmp_path / "calls.db"
    with open_store(str(db)) as store:
        for number, calls in enumerate((10, 10, 10, 20)):
            more = [("mm", 1_000_000 * calls, {"calls": calls})]
            runs(store, "v2" if number == 3 else "v1", start=number, count=1, more_ops=more)
        update(store, tracks_of(store))
    text = tracker("findings", "--new", "--db", db).out
    assert "more calls" in next(line for line in text.splitlines() if " mm " in line)


def test_who_accepts_an_operator_hears_what_comes_along(tracker, tmp_path):
    """op07 takes its shapes with it; the step is a finding of its own, and still counts."""
    db = tmp_path / "own.db"
    with open_store(str(db)) as store:
        slower(store)
        number = next(row.finding_id for row in found_rows(store) if row.kind == "op_name")
    done = tracker("expect", number, "--reason", "float64", "--db", db)
    first, along, step = done.plain.out.splitlines()
    assert first == f"1 finding accepted as intended: {number} (op07)"
    assert along.startswith("with it 1 more: ") and along.endswith(" (its shapes)")
    assert step.startswith("the step of v2 still counts, finding ") and step.endswith(
        "expect I-1 takes all of the incident"
    )


def test_every_screen_counts_the_same_findings(tracker, databases):
    """Step, mean step, compute and op07 of two names and shapes: four findings and what they cover."""
    db = databases(slower)
    assert "4 findings (4 new)" in tracker("findings", "--db", db).out
    assert "new I-1" in tracker("board", "--db", db).out
    assert "4 NEW" in tracker("board", "--details", "--db", db).out
    assert "4 findings in v2" in tracker("explain", "I-1", "--db", db).out
