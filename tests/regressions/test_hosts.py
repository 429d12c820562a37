"""Two hosts differ by a steady factor: each run is compared with those of its own host."""

from __future__ import annotations

import numpy as np
import pytest

from tests.factories import EPOCH_NS, save
from tests.regressions.tracks import found_in
from tracker.compare import diffs, gate_of_diff
from tracker.detect import series_of
from tracker.detect.known_hosts import code_hosts
from tracker.detect.track import Track
from tracker.regressions.board import board
from tracker.regressions.explain import explain
from tracker.regressions.history import history
from tracker.regressions.hosts import words_of_other_hosts
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.results import HistoryOptions

SLOW_HOST = 1.14
"""What the host b takes more than a."""


def of_step(*versions, ms=None):
    """Findings of a step of 100 ms, runs of 0.3 % spread. `versions`: a letter per run, its host.

    `ms`: the step of each version on host a, None: 100 of all.
    """
    hosts = [host for version in versions for host in version]
    places = np.repeat(np.arange(1, len(versions) + 1), [len(version) for version in versions])
    levels = np.repeat([100.0] * len(versions) if ms is None else ms, [len(version) for version in versions])
    spread = np.array([(1.0, 1.003, 0.997, 1.001, 0.999)[at % 5] for at in range(len(hosts))])
    numbers = levels * spread * np.array([SLOW_HOST if host == "b" else 1.0 for host in hosts])
    series = series_of([("run", "duration_ns", "step", "", "", "")], device_timed=True)
    named = code_hosts([frozenset() if host == "?" else frozenset({host}) for host in hosts])
    return [one[1:] for one in found_in(Track(numbers[None, :], places, series, hosts=named))]


def test_moved_host_is_one_finding_that_names_it():
    assert of_step("aaa", "aaa", "aaa", "bbb", "bbb", "bbb") == [(1, "host", 4, 4, "open", 0)]


def test_moved_host_of_single_runs_is_one_finding():
    assert of_step(*"aaaaaa", *"bbbbbb") == [(1, "host", 7, 9, "open", 0)]


def test_slower_code_on_the_moved_host_is_a_finding_of_its_own():
    moved = ("aaa", "aaa", "bbb", "bbb", "bbb")
    assert of_step(*moved, ms=[100, 100, 100, 100, 110])[1:] == [(1, "level", 5, 5, "open", 0)]


def test_finding_of_another_host_is_over_when_the_first_one_is_as_before():
    assert of_step("aaa", "aaa", "bbb", "aaa") == [(1, "host", 3, 3, "recovered", 4)]
    # from then on it is known how the hosts differ
    assert of_step("aaa", "aaa", "bbb", "aaa", "bbb", "aaa", "bbb") == [(1, "host", 3, 3, "recovered", 4)]


def test_slower_code_shows_on_the_first_host_after_all():
    found = of_step("aaa", "aaa", "bbb", "aaa", ms=[100, 100, 110, 110])
    assert found[1:] == [(1, "level", 4, 4, "open", 0)]


def test_hosts_by_turns_hide_no_change():
    turns = ("aa", "bb") * 4
    assert of_step(*turns) == []
    assert of_step(*turns, "aa", "bb", "aa", "bb", ms=[100] * 8 + [125] * 4) == [(1, "level", 9, 9, "open", 0)]


def test_change_that_a_faster_host_hides_is_found():
    turns = ("bb", "aa") * 4
    # 14 % slower code on the faster host takes as long as the code before on the slower one
    assert of_step(*turns, "aa", "aa", ms=[100] * 8 + [114] * 2) == [(1, "level", 9, 9, "open", 0)]


def test_unknown_hosts_are_judged_as_before():
    assert of_step("aaa", "aaa", "???", ms=[100, 100, 114]) == [(1, "level", 3, 3, "open", 0)]


def test_one_of_many_hosts_is_no_reason_for_doubt():
    many = ("cde", "fgh", "ijk")
    assert of_step(*many, "lmn", ms=[100, 100, 100, 110]) == [(1, "level", 4, 4, "open", 0)]


@pytest.fixture
def moved(store):
    """Three versions of one code, 10 ms on node-a; v3 ran on node-b, which takes 11.4 ms."""
    starts = iter(range(100))
    for version, host, of_host in (("v1", "node-a", 1.0), ("v2", "node-a", 1.0), ("v3", "node-b", SLOW_HOST)):
        for spread in (1.0, 1.002, 0.998):
            ns = int(10**7 * of_host * spread)
            start = EPOCH_NS + next(starts) * 10**13
            ops = [("mm", ns - 2 * 10**6), ("add", 2 * 10**6)]
            save(store, version, ops=ops, steps=3, step_ns=ns, started_at_ns=start, host=host)
    update(store, tracks_of(store))
    return store


@pytest.mark.parametrize("sides", [["v2", "v3"], ["v3"]])
def test_diff_says_that_the_host_changed_with_it(moved, sides):
    (found,) = diffs(moved, sides)
    assert found.explanation.verdict == "REGRESSED"
    assert found.explanation.remarks[0].startswith("The host changed with it (node-a to node-b in all runs)")
    assert gate_of_diff(found).code == 4


def test_diff_of_two_versions_doubts_the_history_as_itself(moved):
    (found,) = diffs(moved, ["v1", "v3"])
    (own,) = (remark for remark in found.explanation.remarks if "in its history" in remark)
    assert own.startswith("v3 in its history: REGRESSED or another host, +14.0 %")


def test_host_that_not_all_runs_name_is_none():
    known, unknown = frozenset({"node-a"}), frozenset()
    assert words_of_other_hosts([known, known], [frozenset({"node-b"})]) == ("node-a", "node-b")
    assert words_of_other_hosts([known, unknown], [frozenset({"node-b"})]) == ("", "")


def test_incident_of_another_host_is_one_warning(moved):
    found = findings(moved)
    (incident,) = found.tables["incidents"].records()
    assert (incident["severity"], incident["causes"]) == ("warning", "maybe another host")
    assert [row["name"] for row in found.tables["findings"].records()] == ["step"]
    assert [line["may_be_host"] for line in board(moved).tables["lines"].records()] == [True]


def test_board_and_history_leave_out_what_hosts_differ_by(store):
    """By turns on node-a (10 ms) and node-b (11.4 ms), and 25 % slower from v5 on."""
    starts = iter(range(100))
    for number in range(6):
        host, of_host = (("node-a", 1.0), ("node-b", SLOW_HOST))[number % 2]
        for spread in (1.0, 1.002, 0.998):
            ns = int(10**7 * of_host * (1.25 if number >= 4 else 1.0) * spread)
            start = EPOCH_NS + next(starts) * 10**13
            ops = [("mm", ns - 2 * 10**6), ("add", 2 * 10**6)]
            save(store, f"v{number + 1}", ops=ops, steps=3, step_ns=ns, started_at_ns=start, host=host)
    update(store, tracks_of(store))
    points = history(store, options=HistoryOptions(key="step")).tables["points"].records()
    # v6 of node-b against v5 of node-a: as slow on equal hosts
    assert (points[-1]["verdict"], round(points[-1]["change"], 2)) == ("UNCHANGED", 0.0)
    (line,) = board(store).tables["lines"].records()
    assert line["good_change"] is None  # what was found on node-a says nothing of the number of node-b


def test_explain_says_which_run_decides(moved):
    (note,) = (note for note in explain(moved, 1).notes if "host" in note)
    assert note.endswith("two runs of one side on the host of the other decide.")


def test_run_of_the_old_version_on_the_new_host_decides(moved):
    for number in range(3):
        start = EPOCH_NS + (50 + number) * 10**13
        ns = int(10**7 * SLOW_HOST * (1 + 0.002 * number))
        ops = [("mm", ns - 2 * 10**6), ("add", 2 * 10**6)]
        save(moved, "v2", ops=ops, steps=3, step_ns=ns, started_at_ns=start, host="node-b")
    update(moved, tracks_of(moved))
    assert len(findings(moved).tables["findings"]) == 0
    assert diffs(moved, ["v3"])[0].explanation.verdict == "UNCHANGED"
