"""`tracker findings`, `explain`, and what users say of findings, as they type it."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from openpyxl import load_workbook

from tests.regressions import made
from tracker.regressions.judgement import tracks_of, update
from tracker.store import open_store

PARTS = ("operators", "new", "gone", "machine", "other_operators", "earlier", "beside")


@pytest.fixture
def own(db, tmp_path):
    """A copy of the database of two versions, to be changed."""
    copy = tmp_path / "own.db"
    copy.write_bytes(db.read_bytes())
    return copy


def listed(tracker, db, *words):
    return json.loads(tracker("findings", *words, "--format", "json", "--db", db).out)


def count_listed(tracker, db, *words):
    """How many findings are listed, and how many more stand below them."""
    found = listed(tracker, db, *words)
    return len(found["findings"]), found["hidden"]


def test_findings_are_incidents_whose_change_adds_up(tracker, db):
    own, below = count_listed(tracker, db, "--new", "--direction", "regression")
    lines = tracker("findings", "--new", "--direction", "regression", "--db", db).out.splitlines()
    counts = f"1 incident, {own} findings ({own} new), judged 339 of 339 series"
    assert lines[0] == f"small_gpt, cpu: {counts}; {below} more below these: --all"
    assert lines[1].startswith("New in v08: the step is 23.8 % slower, 99.92 -> 123.70 ms per step")
    title = next(at for at, line in enumerate(lines) if line.startswith("I-"))
    assert lines[title] == "I-1: NEW, REGRESSED in v08 (good until v01), critical"
    parts = " ".join(" ".join(lines[title + 1 : title + 4]).split())
    assert "operators found +" in parts and "new operators or shapes +" in parts and "machine-wide drift" in parts
    assert lines[lines.index("Next:") + 1].startswith("  tracker explain ")


def test_json_adds_up_too(tracker, db):
    found = listed(tracker, db, "--direction", "regression")
    (incident,) = found["incidents"]
    known = [incident[f"{name}_ns"] or 0.0 for name in PARTS]
    assert sum(known) == pytest.approx(incident["step_delta_ns"])
    assert {row["incident_id"] for row in found["findings"] if row["state"] == "new"} == {incident["incident_id"]}


@pytest.mark.parametrize("format", ["markdown", "csv"])
def test_other_formats_name_the_same_findings(tracker, db, format):
    out = tracker("findings", "--direction", "regression", "--format", format, "--db", db).out
    assert "MulBackward0" in out and "aten::mm" not in out
    assert "mul, add, pow" in out.replace("aten::", ""), "what came in the place of aten::gelu"


def test_the_workbook_has_a_sheet_of_each(tracker, db, tmp_path):
    tracker("findings", "--state", "all", "-o", tmp_path / "f.xlsx", "--db", db)
    book = load_workbook(BytesIO((tmp_path / "f.xlsx").read_bytes()))
    # nothing else changed: a table without rows has no sheet
    assert book.sheetnames == ["Summary", "Incidents", "Findings", "Lines"]
    assert book["Incidents"].max_row == 2, "what got worse and what got better in v08 are one"
    header, *rows = book["Findings"].iter_rows()
    first = dict(zip((cell.value for cell in header), rows[0], strict=True))
    assert isinstance(first["Is New"].value, bool)
    assert isinstance(first["Baseline Value"].value, float)  # and no text, though a column mixes ns and bytes
    assert first["Ratio"].number_format == "0.0%"


def test_explain_names_every_test(tracker, db):
    number = listed(tracker, db, "--kind", "op_name")["findings"][0]["finding_id"]
    out = tracker("explain", str(number), "--db", db).out
    for test in (
        "3 runs of the level before; at least 3 needed",
        "3 runs with the change; at least 2 needed",
        "% of the step; ",
    ):
        assert test in out
    assert "in v08: " in out.splitlines()[1] and out.splitlines()[1].endswith(("REGRESSED", "ADDED"))
    found = json.loads(tracker("explain", str(number), "--format", "json", "--db", db).out)
    assert [event["state"] for event in found["events"]] == [found["finding"]["verdict"]]


def test_explain_shows_a_replacement_as_the_list_does(tracker, db):
    rows = listed(tracker, db)["findings"]
    row = next(row for row in rows if row["cause"].startswith("replaced"))
    found = json.loads(tracker("explain", str(row["finding_id"]), "--format", "json", "--db", db).out)
    assert found["finding"] == row
    assert found["notes"][0].startswith("The tests and runs below are those of aten::mul, the largest operator of ")


def test_the_parts_of_a_step_are_those_of_the_rows(tracker, db):
    found = listed(tracker, db)
    rows = [row for row in found["findings"] if row["kind"] in ("op_name", "op")]
    parts = [found["incidents"][0][f"{name}_ns"] for name in ("operators", "new", "gone")]
    assert sum(parts) == pytest.approx(sum(row["delta"] for row in rows))


def test_explain_says_every_reason_whole(tracker, own):
    number = str(listed(tracker, own, "--kind", "op_name")["findings"][0]["finding_id"])
    reason = "seen: " + "the new activation is meant to be exact, and slower until it is fused; " * 3
    tracker("ack", number, "--reason", reason.strip(), "--db", own)
    out = " ".join(tracker("explain", number, "--db", own).out.split())
    assert reason.strip() in out


def test_a_user_says_what_findings_are(tracker, own):
    (incident,) = [row["incident_id"] for row in listed(tracker, own, "--direction", "regression")["incidents"]]
    out = tracker("ack", f"I-{incident}", "--reason", "ticket 7", "--by", "ann", "--db", own).out
    assert out.startswith(f"{count_listed(tracker, own)[0]} findings acknowledged: ")
    assert listed(tracker, own, "--direction", "regression", "--state", "new")["findings"] == []
    number = str(listed(tracker, own, "--state", "acknowledged")["findings"][0]["finding_id"])
    tracker("mute", number, "--until", "2w", "--reason", "later", "--db", own)
    assert [row["finding_id"] for row in listed(tracker, own, "--state", "muted")["findings"]] == [int(number)]
    tracker("unmute", number, "--reason", "now", "--db", own)
    tracker("expect", number, "--reason", "meant so", "--db", own)
    events = json.loads(tracker("explain", number, "--format", "json", "--db", own).out)["events"]
    assert [event["state"].split()[0] for event in events[1:]] == ["ack", "mute", "unmute", "expect"]
    assert events[1]["who"] == "ann"


def test_a_mark_is_taken_back_and_can_be_read(tracker, own):
    count, below = count_listed(tracker, own)
    tracker("expect", "I-1", "--reason", "meant so", "--by", "ann", "--db", own)
    out = tracker("undo", "I-1", "--reason", "the wrong incident", "--by", "bob", "--db", own).out
    first, second = out.splitlines()
    assert first.startswith(f"expect of {count} findings taken back: ") and first.endswith("(now new)")
    assert second.startswith(f"with them {below} more: ")
    number = str(listed(tracker, own, "--new")["findings"][0]["finding_id"])
    events = tracker("explain", number, "--db", own).out
    assert "expect, taken back by ann on " in events and "undo of expect by bob on " in events
    assert ": the wrong incident" in events
    again = tracker("undo", "I-1", "--reason", "once more", "--db", own)
    assert (again.code, again.out) == (2, "")
    assert again.err.startswith("tracker: no finding of I-1 has a mark to take back; tracker explain ")


@pytest.mark.parametrize("mark", ["expect", "invalid", "ack"])
def test_a_mark_counts_findings_as_the_list_does(tracker, own, mark):
    """What the list has, and what stands below it, is what a mark and its undo say."""
    count, below = count_listed(tracker, own)
    title = tracker("findings", "--db", own).out.splitlines()[0]
    assert f"{count} findings ({count} new)" in title
    assert f"; {below} more below these" in title
    for words in ((mark, "I-1"), ("undo", "I-1")):
        first, second, *_ = tracker(*words, "--reason", "float64", "--db", own).out.splitlines()
        assert f"{count} findings " in first and "gelu_backward, aten::gelu" not in first
        assert second.startswith(f"with them {below} more: ")
        for why in ("its shapes", "what was replaced with it", "the same time under another name"):
            assert why in second


@pytest.mark.parametrize("mark", ["expect", "invalid"])
def test_what_was_replaced_comes_back_with_its_finding(tracker, own, mark):
    """gelu became mul, add, pow and others: one finding, which covers them and their shapes, marked and taken back
    together.
    """
    rows = listed(tracker, own)["findings"]
    (number,) = [str(row["finding_id"]) for row in rows if " -> " in row["name"]]
    first, second, *_ = tracker(mark, number, "--reason", "float64", "--db", own).out.splitlines()
    assert "aten::gelu_backward, gelu -> mul, add, pow" in first
    covered = second.partition(" more: ")[0]
    assert covered.startswith("with it ") and int(covered.split()[-1]) > 20
    tracker(mark, "I-1", "--reason", "all of it", "--db", own)
    assert tracker("undo", number, "--reason", "no", "--db", own).out.splitlines()[1].startswith(f"{covered} more: ")


def test_muted_findings_are_counted_as_they_are_listed(tracker, own):
    count, _ = count_listed(tracker, own)
    tracker("mute", "I-1", "--until", "2w", "--reason", "later", "--db", own)
    assert f"{count} findings: tracker findings " in tracker("status", "--db", own).out
    assert f"1 incident, {count} findings" in tracker("findings", "--state", "muted", "--db", own).out
    assert f"{count} muted" in tracker("board", "--details", "--db", own).out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("ack", "x", "--reason", "r"), "'x' is no finding; give numbers, or I-N"),
        (("ack", "999", "--reason", "r"), "there is no finding 999"),
        (("invalid", "I-999", "--reason", "r"), "there is no incident I-999"),
        (
            ("mute", "1", "--until", "soon", "--reason", "r"),
            "--until 'soon' is not a date, an age or a version; give a date",
        ),
        (("mute", "1", "--until", "2020-01-01", "--reason", "r"), "--until must be in the future"),
        (("expect", "I-1", "--reason", "..."), "the reason '...' says nothing; write why: --reason TEXT"),
        (("mute", "--op", "*", "--until", "2d", "--reason", "-"), "the reason '-' says nothing"),
        (("unmute", "silence:1", "--reason", "?"), "the reason '?' says nothing"),
        (("undo", "1", "--reason", "r"), "finding 1 has no mark to take back"),
        (("undo", "999", "--reason", "r"), "there is no finding 999"),
        (("undo", "I-999", "--reason", "r"), "there is no incident I-999"),
        (("explain", "999"), "there is no finding 999"),
        (("findings", "--workload", "nobody"), "there is no workload 'nobody'"),
        (("findings", "--version", "v99"), "there is no version 'v99'"),
    ],
)
def test_bad_words_are_one_line_and_exit_2(tracker, own, words, problem):
    found = tracker(*words, "--db", own)
    assert found.code == 2
    assert problem in found.err
    assert len(found.err.strip().splitlines()) == 1


def test_a_note_is_shown_and_changes_no_state(tracker, own):
    count, _ = count_listed(tracker, own)
    done = tracker("note", "I-1", "--reason", "bisected to 9f8e7d6", "--by", "li", "--db", own)
    assert done.out.startswith(f"{count} findings with a new note: ")
    number = listed(tracker, own, "--new")["findings"][0]["finding_id"]
    lines = tracker("explain", str(number), "--db", own).out.splitlines()
    (events,) = (lines[at + 1 : at + 3] for at, line in enumerate(lines) if line == "Events")
    assert events[0] == "  v08 REGRESSED" and events[1].startswith("  note by li on ")
    assert events[1].endswith(": bisected to 9f8e7d6")


def test_a_second_mute_replaces_the_end_of_the_first(tracker, own):
    number = str(listed(tracker, own, "--kind", "op_name")["findings"][0]["finding_id"])
    tracker("mute", number, "--until", "future:v99", "--reason", "a", "--db", own)
    tracker("mute", number, "--until", "2w", "--reason", "b", "--db", own)
    row = next(r for r in listed(tracker, own, "--state", "muted")["findings"] if str(r["finding_id"]) == number)
    assert (row["until_version"], row["until_ns"] is not None) == (None, True)
    tracker("unmute", number, "--reason", "c", "--db", own)
    assert json.loads(tracker("explain", number, "--format", "json", "--db", own).out)["finding"]["state"] == "new"


def test_explain_takes_an_incident(tracker, own):
    (incident,) = [row["incident_id"] for row in listed(tracker, own, "--direction", "regression")["incidents"]]
    shown = {row["finding_id"] for row in listed(tracker, own, "--state", "new")["findings"]}
    found = json.loads(tracker("explain", f"I-{incident}", "--format", "json", "--db", own).out)
    assert (found["incident_id"], {one["finding"]["finding_id"] for one in found["explained"]}) == (incident, shown)
    assert len(tracker("explain", f"I-{incident}", "--db", own).out.splitlines()) <= 40
    out = tracker("explain", f"I-{incident}", "--details", "--db", own).out
    assert all(f"Finding {number}: " in out for number in shown)
    assert tracker("explain", f"I-{incident}", "--format", "csv", "--db", own).out.startswith("section,finding_id,")


def test_a_version_shows_what_has_recovered_since(tracker, tmp_path):
    """op07 is slower in v2 and back in v3."""
    with open_store(str(tmp_path / "r.db")) as store:
        made.runs(store, "v1", count=5)
        made.runs(store, "v2", {"op07": 1.5}, start=5)
        made.runs(store, "v3", start=8, count=5)
        update(store, tracks_of(store))
    db = tmp_path / "r.db"
    assert listed(tracker, db)["findings"] == []
    assert {
        row["state"] for row in listed(tracker, db, "--version", "v2", "--direction", "regression")["findings"]
    } == {"recovered"}


def test_new_lists_the_suspicions_of_the_newest_version(tracker, tmp_path):
    with open_store(str(tmp_path / "s.db")) as store:
        made.runs(store, "v1", count=5)
        made.runs(store, "v2", {"op07": 1.5}, count=1, start=5)
        update(store, tracks_of(store))
    found = listed(tracker, tmp_path / "s.db", "--new")["findings"]
    assert {row["state"] for row in found} == {"suspect"}
    assert {row["version"] for row in found} == {"v2"}
