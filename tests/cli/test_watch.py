"""What `tracker watch` and `tracker status` print, and how they end."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tests.cli.ending import ending
from tests.watch.world import MINUTE
from tracker.reports import render
from tracker.results.status import ShutStatus, Status
from tracker.store import inbox, open_store, watchers
from tracker.watch.content import BELIEVED_AGE_NS

DAY = 24 * 3600 * 10**9


@pytest.fixture
def watched(tmp_path, monkeypatch, trace, tracker):
    """A folder with a profile of each version, a bad one and a note, written long ago; its settings file."""
    import time

    root = tmp_path / "profiles"
    for label, path in trace.items():
        (root / "gpt" / label).mkdir(parents=True)
        shutil.copy(path, root / "gpt" / label / "run1.pt.trace.json.gz")
    (root / "gpt/v08/bad.pt.trace.json").write_text('{"traceEvents": [{"ph": "X", "cat": "kernel", "na')
    (root / "gpt/v08/notes.md").write_text("see wiki")
    settings = tmp_path / "tracker.toml"
    settings.write_text(
        'database = "watch.db"\n[[watch.folders]]\npath = "profiles"\nlayout = "{workload}/{version}/*"\n'
        'expect_every = "1d"\n'
    )
    monkeypatch.setenv("TRACKER_CONFIG", str(settings))
    now = time.time_ns() + BELIEVED_AGE_NS + MINUTE
    monkeypatch.setattr(time, "time_ns", lambda: now)
    return root


def cut(text: str, root) -> str:
    """Without what differs from machine to machine."""
    text = text.replace(str(root), "ROOT").replace(str(root.parent), "HOME")
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", text)
    return re.sub(r"\S+ pid \d+", "HOST pid N", re.sub(r"( on|'on) [\w.-]+: ", r" on HOST: ", text))


def test_file_of_another_tool_is_passed_over_by_its_name(tracker, watched):
    (watched / "gpt/v08/report_cuda_gpu_kern_sum.csv").write_text("Time (%),Total Time (ns),Instances,Name\n1,2,3,f\n")
    out = tracker("watch", "--once").out
    assert "report_cuda_gpu_kern_sum.csv: a table of nsys stats as CSV; give the report as SQLite" in out


def test_a_round_says_what_it_did_and_what_comes_next(tracker, watched):
    done = tracker("watch", "--once")
    assert (done.code, done.err) == (0, "")
    assert [line.split(": run")[0].split(": byte")[0] for line in cut(done.out, watched).splitlines()] == [
        "found: 4 profiles in ROOT",
        "passed over: ROOT/gpt/v08/notes.md: no reader knows this file",
        "ingested: ROOT/gpt/v01/run1.pt.trace.json.gz",
        "quarantined: ROOT/gpt/v08/bad.pt.trace.json",
        "ingested: ROOT/gpt/v08/run1.pt.trace.json.gz",
        "judged: 2 versions",
        "2 runs ingested, 1 quarantined.",
        "Next:",
        "  tracker findings --new",
    ]
    assert tracker("watch", "--once").out == "0 runs ingested.\nNext:\n  tracker status\n"


def test_a_round_that_cannot_look_into_a_folder_says_so_in_its_last_line_too(tracker, watched):
    shutil.rmtree(watched)
    done = tracker("watch", "--once")
    assert done.code == 2
    assert "cannot be looked into (No such file or directory)" in done.err
    assert done.out == "0 runs ingested, 1 folder with a problem.\nNext:\n  tracker status\n"


def test_status_shows_watchers_folders_and_what_is_stuck(tracker, watched):
    tracker("watch", "--once")
    done = tracker("status")
    assert (done.code, done.err) == (0, "")
    text = cut(done.out, watched)
    problem = next(line for line in text.splitlines() if "bad.pt.trace.json" in line)
    assert problem.startswith("  ROOT/gpt/v08/bad.pt.trace.json: byte ")
    assert problem.endswith("(since TIME UTC)")
    assert text.replace(problem, "  BAD").splitlines() == [
        "HOME/watch.db at TIME UTC",
        "1 problem: 1 profile quarantined; 0 watchers alive",
        "",
        "Watchers",
        "  HOST pid N: ended at TIME UTC, one round only, last round 0 s ago",
        "",
        "Folders",
        "  ROOT/{workload}/{version}/* on HOST: 1 quarantined, 2 ingested, 1 skipped; last new run 0 s ago; last "
        "scan 0 s ago",
        "    1 file not recognised: gpt/v08/notes.md (no reader knows this file)",
        "    gpt: last run run:2 of v08, 0 s ago, one every 24 h: next expected by TIME UTC",
        "",
        "Quarantined, tried again when their files change",
        "  BAD",
        "",
        "The judge, of the last 30 versions",
        "  2 versions: no series moved.",
        "",
        "Next:",
        "  tracker watch --retry all",
        "  tracker watch --once",
        "  tracker findings --new",
    ]


def test_status_as_json_has_all_of_it(tracker, watched):
    tracker("watch", "--once")
    found = json.loads(tracker("status", "--format", "json").out)
    assert found["schema"] == 1
    (folder,) = found["folders"]
    assert folder["profiles"] == {"ingested": 2, "passed": 1, "quarantined": 1}
    assert [one["workload"] for one in folder["expected"]] == ["gpt"]
    assert [(one["state"], one["attempts"]) for one in found["profiles"]] == [("quarantined", 0)]
    assert [one["state"] for one in found["watchers"]] == ["ended"]
    assert (found["messages"], found["silences"], found["muted"]) == ([], [], 0)


def test_what_was_quarantined_is_tried_again_in_the_next_round_or_at_once(tracker, watched, trace):
    tracker("watch", "--once")
    bad = watched / "gpt/v08/bad.pt.trace.json"
    done = tracker("watch", "--retry", bad)
    assert (done.code, done.out) == (0, "1 profile retried in the next round.\nNext:\n  tracker status\n")
    assert f"On their way\n  {bad}: ready for " in tracker("status").out
    assert ending(tracker("watch", "--once").out) == ("0 runs ingested, 1 quarantined.\nNext:\n  tracker status")
    assert "1 quarantined" in tracker("watch", "--once", "--retry", "all").out
    done = tracker("watch", "--retry", watched / "gpt/v01")
    assert (done.code, cut(done.err, watched)) == (
        2,
        "tracker: ROOT/gpt/v01: nothing there is quarantined; tracker status lists what is\n",
    )


def test_what_is_new_waits_and_the_last_line_says_how_long(tracker, watched, monkeypatch):
    import time

    tracker("watch", "--once")
    written = time.time_ns() - BELIEVED_AGE_NS - MINUTE
    (watched / "gpt/v09").mkdir()
    (watched / "gpt/v09/run.json").write_text("{}")
    monkeypatch.setattr(time, "time_ns", lambda: written + MINUTE)
    out = tracker("watch", "--once").out
    assert ending(out) == ("0 runs ingested, 1 waiting until unchanged for 2m.\nNext:\n  tracker status")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no folder is watched, and no channel of alerts is named; name one in "),
        ("[[watch.folders]]\npath = '/p'\nformat = 'cuda'", "no format 'cuda'; known formats: ascend_db"),
        ("[[watch.folders]]\npath = '/p'\ndevice = ' '", "the device is empty"),
        ("[[watch.folders]]\npath = '/p'\nlayout = '{run}'", "key watch.folders.layout of entry 1: is '{run}'"),
    ],
)
def test_settings_that_cannot_be_watched_end_with_2(tracker, tmp_path, monkeypatch, text, problem):
    settings = tmp_path / "tracker.toml"
    settings.write_text(text)
    monkeypatch.setenv("TRACKER_CONFIG", str(settings))
    for words in (("watch",), ("watch", "--once")):
        done = tracker(*words, "--db", tmp_path / "new.db")
        assert (done.code, done.out) == (2, "")
        assert problem in done.err
    assert not (tmp_path / "new.db").exists()


def test_without_a_database_there_is_no_status_and_no_retry(tracker, tmp_path):
    for words in (("status",), ("watch", "--retry", "all")):
        done = tracker(*words, "--db", tmp_path / "no.db")
        assert (done.code, done.out) == (2, "")
        assert "there is no database at" in done.err


def test_a_folder_that_is_missing_is_an_error_in_status_and_not_the_end(tracker, watched):
    watched.rename(watched.with_name("away"))
    done = tracker("watch", "--once")
    assert done.code == 2
    assert cut(done.err, watched) == "folder: ROOT: cannot be looked into (No such file or directory)\n"
    text = cut(tracker("status").out, watched)
    assert "    ERROR ROOT: cannot be looked into (No such file or directory) (since TIME UTC)\n" in text
    assert text.splitlines()[1] == "1 problem: 1 folder with an error; 0 watchers alive"


def test_status_counts_each_problem_that_it_lists():
    shut = [ShutStatus(f"/spool/{name}", "belongs to user 7") for name in "ab"]
    text = render(Status("jobs.db", 0, shut=tuple(shut)), "text")
    assert "2 problems: 2 spool folders not readable; " in text and text.count("ERROR /spool/") == 2


def test_status_tells_watchers_that_live_from_those_that_do_not(tracker, watched, tmp_path):
    import time

    now = time.time_ns()
    with open_store(str(tmp_path / "watch.db")) as store:
        for name, silent_ns in (("alive", 0), ("late", 180 * 10**9)):
            watchers.begin(store, name, name, 7, "1.0", every_ns=MINUTE, now_ns=now - silent_ns)
        watchers.begin(store, "at work", "busy", 7, "1.0", every_ns=MINUTE, now_ns=now)
        watchers.beat(store, "at work", now_ns=now, job=("reading /p/a.json", now - 5 * MINUTE))
        watchers.begin(store, "hangs", "hangs", 7, "1.0", every_ns=MINUTE, now_ns=now)
        watchers.beat(store, "hangs", now_ns=now, job=("judge", now - 62 * MINUTE))
        watchers.begin(store, "lost", "lost", 7, "1.0", every_ns=MINUTE, now_ns=now - DAY)
        watchers.end(store, "lost", "lost", now_ns=now)
        watchers.fail(store, "late", "scan: oh", now_ns=now - 60 * 10**9)
    lines = tracker("status").out.split("Watchers\n")[1].splitlines()[:5]
    assert [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", line.strip()) for line in lines] == [
        "alive pid 7: alive since TIME UTC, every 60 s, no round yet",
        "busy pid 7: alive since TIME UTC, every 60 s, no round yet, reading /p/a.json for 5 min",
        "hangs pid 7: late since TIME UTC, every 60 s, no round yet, last heartbeat 0 s ago, judge for 62 min",
        "late pid 7: late since TIME UTC, every 60 s, no round yet, last heartbeat 3 min ago; "
        "last error 60 s ago: scan: oh",
        "lost pid 7: lost (heartbeat expired), last heartbeat at TIME UTC, every 60 s, no round yet",
    ]


def test_a_folder_without_the_run_that_was_expected_is_missing_one(tracker, watched, monkeypatch):
    import time

    tracker("watch", "--once")
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + DAY + MINUTE)
    done = tracker("watch", "--once")
    assert "missing: no run of gpt for 24 h; the last one, run:2 of v08, came at " in done.out
    assert "one every 24 h: MISSING since " in tracker("status").out
    assert "1 workload without its expected run" in tracker("status").out.splitlines()[1]


def test_paths_with_control_characters_do_not_reach_the_terminal(tracker, watched):
    (watched / "gpt/v08/bad.pt.trace.json").rename(watched / "gpt/v08/bad\x1b[31m.pt.trace.json")
    out = tracker("watch", "--once").out + tracker("status").out
    assert "\x1b" not in out
    assert out.count("bad\\x1b[31m.pt.trace.json") == 2


def test_the_inbox_knows_each_profile_once(tracker, watched, tmp_path):
    for _ in range(3):
        tracker("watch", "--once")
    with open_store(str(tmp_path / "watch.db")) as store:
        assert len(inbox.entries(store)) == 4
