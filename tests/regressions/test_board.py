"""Where every track stands: what is new first."""

from __future__ import annotations

import pytest

import tracker
from tests.factories import EPOCH_NS, save
from tests.regressions.made import runs
from tracker.config import Owner
from tracker.errors import UsageError
from tracker.regressions.board import board
from tracker.regressions.judgement import tracks_of, update
from tracker.reports import render
from tracker.reports.document import Look
from tracker.reports.views.board import document
from tracker.results import BoardOptions
from tracker.store import runs as edits
from tracker.store import watchers
from tracker.store.versions import pin_version
from tracker.units import format_age


def line(found, workload):
    (one,) = (row for row in found.tables["lines"].records() if row["workload"] == workload)
    return one


def test_what_is_new_comes_first_with_the_change_since_it_was_good(store):
    """A quiet workload, and one whose op07 takes 11 ms instead of 1: 50 ms instead of 40."""
    save(store, "v1", "bert", runs=3, steps=3)
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 11.0}, start=5, count=3)
    update(store, tracks_of(store))
    found = board(store)
    assert found.headline == "gpt v2 is 25.0 % slower: op07 is slower per call (+10.04 ms); 1 new"
    assert [row["workload"] for row in found.tables["lines"].records()] == ["gpt", "bert"]
    slow = line(found, "gpt")
    assert (slow["version"], slow["version_runs"], slow["runs"], slow["step_verdict"]) == ("v2", 3, 8, "REGRESSED")
    assert (slow["good_version"], round(slow["good_change"], 2)) == ("v1", 0.25)
    assert round(slow["previous_change"], 2) == 0.25
    assert (slow["new"] > 0, slow["open"], slow["incident_id"]) == (True, 0, 1)
    quiet = line(found, "bert")
    assert (quiet["new"], quiet["open"], quiet["good_change"], quiet["previous_change"]) == (0, 0, None, None)


def test_narrow_terminal_keeps_change_cause_and_state(store):
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 11.0}, start=5, count=3)
    update(store, tracks_of(store))
    lines = render(board(store), "text", width=80).splitlines()
    (row,) = (line for line in lines if "▲" in line)
    assert row.split() == ["▲", "gpt", "v2", "50.00", "ms", "+25.0", "%", "op07", "+10.04", "ms", "new", "I-1"]
    assert max(map(len, lines)) <= 80


def test_regression_below_the_step_is_named_beside_it(store):
    """op07 takes 1.5 ms instead of 1: 40.5 ms instead of 40, which is too little to matter."""
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 1.5}, start=5, count=3)
    update(store, tracks_of(store))
    found = board(store)
    assert line(found, "gpt")["step_verdict"] != "REGRESSED"
    assert found.headline == "gpt v2: op07 +50.2 %; 1 new"
    (table,) = document(found, Look()).blocks
    cells = dict(zip((column.header for column in table.columns), table.rows[0], strict=True))
    assert (cells[""], cells["why"], cells["state"]) == ("▲", "op07 +50.2 %", "new I-1")


def test_first_version_has_no_change_and_leads_to_its_runs(store):
    (run,) = save(store, "v1", "bert", started_at_ns=None)
    (table,) = document(board(store), Look(details=True)).blocks
    cells = dict(zip((column.header for column in table.columns), table.rows[0], strict=True))
    assert (cells["peak"], cells["last run"], cells["since good"], cells["why"]) == ("-", f"run:{run}", "", "")
    (row,) = document(board(store), Look(has_drawings=True)).blocks
    assert row.cell_links[0][2].page == "runs"


def test_a_later_version_keeps_the_change_since_good(store):
    """The regression of v2 is no news in v3, and the previous version says 0 %."""
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 11.0}, start=5, count=3)
    runs(store, "v3", {"op07": 11.0}, start=8, count=3)
    update(store, tracks_of(store))
    one = line(board(store), "gpt")
    assert (one["new"], one["open"] > 0) == (0, True)
    assert board(store).headline == "No new regression; 1 open"
    assert (round(one["good_change"], 2), round(one["previous_change"], 2)) == (0.25, 0.0)


def test_a_pinned_version_is_compared_too_and_excluded_runs_do_not_count(store):
    first = runs(store, "v1", count=3)
    runs(store, "v2", shared=1.1, start=3, count=3)
    bad = runs(store, "v2", shared=9.0, start=6, count=1)
    edits.exclude_all(store, bad, "wrong machine")
    pin_version(store, "v1", workload="gpt")
    one = line(board(store), "gpt")
    assert (len(first), one["version_runs"], one["pinned_version"]) == (3, 3, "v1")
    assert round(one["previous_change"], 2) == round(one["pinned_change"], 2) == 0.1


def test_the_course_has_the_last_versions_alone(store):
    for number in range(5):
        runs(store, f"v{number}", start=number, count=1)
    points = board(store, options=BoardOptions(last=3)).tables["points"].records()
    assert [point["version"] for point in points] == ["v2", "v3", "v4"]


def test_an_empty_database_says_so_and_an_unknown_workload_is_an_error(store):
    assert board(store).headline == "no runs yet"
    save(store, "v1", started_at_ns=EPOCH_NS)
    with pytest.raises(UsageError, match="nosuch"):
        board(store, options=BoardOptions(workload="nosuch"))


@pytest.mark.parametrize("format", ["markdown", "html"])
def test_a_workload_with_markup_is_inert(memory_store, format):
    save(memory_store, "v1", "<script>alert(1)</script>|", steps=3)
    assert "<script>alert" not in str(render(board(memory_store), format))


def test_points_have_the_verdict_of_their_step(store):
    """Three runs each of 10 ms, then of 15: the course of the board marks the second version."""
    runs(store, "v1")
    runs(store, "v2", dict.fromkeys((f"op{at:02}" for at in range(20)), 1.5), start=3)
    update(store, tracks_of(store))
    points = board(store).tables["points"].records()
    assert [(point["version"], point["verdict"]) for point in points] == [("v1", "TOO_FEW_RUNS"), ("v2", "REGRESSED")]


def test_points_of_runs_without_a_profiler_have_verdicts(store):
    """All operators of v2 take half as long again, by the clock of the program."""
    settings = {"profiler": "off"}
    runs(store, "v1", settings=settings)
    runs(store, "v2", dict.fromkeys((f"op{at:02}" for at in range(20)), 1.5), start=3, settings=settings)
    update(store, tracks_of(store))
    points = board(store).tables["points"].records()
    assert points[-1]["verdict"] == "REGRESSED"


def test_an_accepted_change_is_said_to_be_accepted(store):
    """The step of v2 takes 50 ms instead of 40, as a user expects, until the mark is taken back."""
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 11.0}, start=5, count=3)
    update(store, tracks_of(store))
    assert line(board(store), "gpt")["accepted"] is False
    tracker.expect("I-1", reason="float64", store=store)
    found = board(store)
    one = line(found, "gpt")
    assert (one["accepted"], one["new"], one["step_verdict"]) == (True, 0, "REGRESSED")
    assert found.headline == "No open regression"
    assert "REGRESSED, accepted" in render(found, "text", width=200)
    tracker.undo("I-1", reason="not intended", store=store)
    assert line(board(store), "gpt")["accepted"] is False


def test_an_accepted_change_of_an_older_version_is_none_of_the_newest(store):
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 11.0}, start=5, count=3)
    runs(store, "v3", {"op07": 11.0}, start=8, count=3)
    update(store, tracks_of(store))
    tracker.expect("I-1", reason="float64", store=store)
    assert line(board(store), "gpt")["accepted"] is False


HOUR = 3600 * 10**9


def test_a_late_run_stands_on_top(store):
    """A run of bert is expected each hour; 90 minutes after the folder was first seen, none ever came."""
    save(store, "v1", started_at_ns=EPOCH_NS)
    began = EPOCH_NS + 100 * HOUR
    folder = watchers.folder_id(store, "", "/profiles", "{workload}/{version}", now_ns=began)
    watchers.note_folder(store, folder, "", {"bert": HOUR}, now_ns=began)
    assert list(board(store, now_ns=began + HOUR // 2).tables["late"].listed("workload")) == []
    found = board(store, now_ns=began + HOUR * 3 // 2)
    (late,) = found.tables["late"].records()
    assert (late["workload"], late["every_ns"], late["last_ns"], late["due_ns"]) == ("bert", HOUR, None, began + HOUR)
    text = " ".join(render(found, "text", width=120).split())
    assert "LATE: a run of bert was due " in text
    assert f"one is expected every {format_age(HOUR)}, and none ever came." in text
    assert "late" not in render(board(store, now_ns=began), "text", width=120).lower()


def test_a_late_run_of_another_owner_is_left_out(store):
    save(store, "v1", started_at_ns=EPOCH_NS)
    began = EPOCH_NS + 100 * HOUR
    folder = watchers.folder_id(store, "", "/profiles", "{workload}/{version}", now_ns=began)
    watchers.note_folder(store, folder, "", {"bert": HOUR, "gpt": HOUR}, now_ns=began)
    owners = (Owner(op="*", who="Ann", workload="bert"), Owner(op="*", who="Li", workload="*"))
    late = {
        who: list(
            board(store, options=BoardOptions(owner=who), owners=owners, now_ns=began + 2 * HOUR)
            .tables["late"]
            .listed("workload")
        )
        for who in ("Ann", "Li")
    }
    assert late == {"Ann": ["bert"], "Li": ["gpt"]}


def test_an_empty_board_names_the_first_command(store):
    assert "tracker ingest PATH --version VERSION --workload WORKLOAD" in render(board(store), "text")


def test_muted_regression_stands_behind_an_open_one(store):
    """I-2 of v3 is new and muted, I-1 of v2 is open: that one is what the line is about."""
    runs(store, "v1", count=5)
    runs(store, "v2", {"op07": 11.0}, start=5)
    runs(store, "v3", {"op07": 11.0, "op08": 11.0}, start=8)
    update(store, tracks_of(store))
    tracker.mute("I-2", until="2w", reason="later", store=store)
    found = board(store)
    assert found.headline == "No new regression; 1 open"
    assert (line(found, "gpt")["incident_id"], line(found, "gpt")["state"]) == (1, "open")
    assert [one["state"] for one in found.tables["incidents"].records()] == ["open", "muted"]


def test_branch_stands_below_with_its_change_against_the_main_line(store):
    """pr12 takes 50 ms instead of 40; pr13 is as the main line; on another device there is nothing of them."""
    runs(store, "v1", count=3)
    runs(store, "v2", start=3, count=3)
    runs(store, "fix", start=6, workload="gpt @ pr13")
    runs(store, "p1", {"op07": 11.0}, start=9, workload="gpt @ pr12")
    update(store, tracks_of(store))
    found = board(store)
    branches = found.tables["branches"].records()
    assert [(one["branch"], one["version"], one["against"], one["runs"]) for one in branches] == [
        ("pr12", "p1", "v2", 3), ("pr13", "fix", "v2", 3),
    ]  # fmt: skip
    assert (round(branches[0]["step_change"], 2), branches[0]["step_verdict"]) == (0.25, "REGRESSED")
    text = render(found, "text", width=120)
    assert "2 branches: pr12 +25.1 % REGRESSED against v2, pr13 " in text
    assert len(board(store, options=BoardOptions(device="h-100")).rows.branches) == 2
    assert board(store, options=BoardOptions(workload="gpt @ pr13")).rows.branches[0].branch == "pr13"


def test_faster_step_beside_a_slower_operator_is_not_red(store):
    """op07 is slower, and idle time that was in every step before is gone: the step is faster."""
    runs(store, "v1", count=5, idle_ns=20_000_000)
    runs(store, "v2", {"op07": 5.0}, start=5)
    update(store, tracks_of(store))
    blocks = document(board(store), Look()).blocks
    for table in blocks:
        tones = dict(zip((column.header for column in table.columns), table.cell_tones[0], strict=True))
        assert tones["since good"] != "worse"
