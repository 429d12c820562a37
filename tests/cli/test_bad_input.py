"""Whatever is wrong with the input: one line on stderr (file, place, problem, remedy), exit 2, database untouched."""

from __future__ import annotations

import gzip
import re
import sqlite3

import pytest

from tests.cli.support import WORKLOAD, content

INGEST = ("--version", "v09", "--workload", WORKLOAD)


def file(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def good(trace):
    return gzip.decompress(trace["v01"].read_bytes())


EVENT = (
    b'{"schemaVersion": 1, "traceEvents": '
    b'[{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": %s, "dur": 1}]}'
)


def damaged(data):
    return data[:50_000] + b"\0" * 1000 + data[51_000:]


def expect(done, pattern):
    """`done` is exit 2 with nothing on stdout and one line on stderr like `pattern`: what is wrong; what to do."""
    assert (done.code, done.out) == (2, ""), done
    assert done.err.count("\n") == 1, done.err
    assert re.fullmatch(rf"tracker: {pattern}; .{{5,}}\n", done.err), done.err


UNKNOWN = r"no reader knows this file \(.+\)"
CUT = r"byte \d+( of the content)?: .*(ends).*"
FILES = {
    "empty": ("a.pt.trace.json", lambda trace: b"", "the file is empty"),
    "empty in gzip": ("a.pt.trace.json.gz", lambda trace: gzip.compress(b""), UNKNOWN),
    "truncated": ("a.pt.trace.json", lambda trace: good(trace)[:100_000], CUT),
    "truncated in gzip": ("a.pt.trace.json.gz", lambda trace: gzip.compress(good(trace)[:100_000]), CUT),
    "truncated gzip": ("a.pt.trace.json.gz", lambda trace: trace["v01"].read_bytes()[:50_000], CUT),
    "damaged gzip": ("a.pt.trace.json.gz", lambda trace: damaged(trace["v01"].read_bytes()), r"byte \d+: .*"),
    "not gzip": ("a.pt.trace.json.gz", lambda trace: b"\x1f\x8b not gzip at all", r"byte \d+: damaged gzip: .*"),
    "object without events": ("a.pt.trace.json", lambda trace: b"{}", UNKNOWN),
    "list without events": ("a.pt.trace.json", lambda trace: b"[]", UNKNOWN),
    "no events in it": ("a.pt.trace.json", lambda trace: b'{"schemaVersion": 1, "traceEvents": []}', UNKNOWN),
    "text": ("notes.txt", lambda trace: b"loss 0.1 at step 5\n" * 100, UNKNOWN),
    "text that is called json": ("a.pt.trace.json", lambda trace: b"loss 0.1 at step 5\n" * 100, UNKNOWN),
    "binary": ("a.pt.trace.json", lambda trace: bytes(range(256)) * 100, UNKNOWN),
    "a word for a time": (
        "a.pt.trace.json",
        lambda trace: EVENT % b'"soon"',
        r".*aten::mm.*'?\"soon\"'?, expected a number",
    ),
}


@pytest.mark.parametrize("case", FILES, ids=str)
def test_bad_file_is_refused_and_nothing_changes(tracker, db, tmp_path, trace, case):
    name, data, problem = FILES[case]
    path = file(tmp_path / "in" / name, data(trace))
    before = content(db)
    expect(tracker("ingest", path, *INGEST, "--db", db), rf"{re.escape(str(path))}: {problem}")
    assert content(db) == before


@pytest.mark.parametrize("case", ["empty", "truncated", "object without events", "text", "not gzip"])
def test_bad_file_as_a_side_is_refused(tracker, tmp_path, trace, case):
    name, data, problem = FILES[case]
    path = file(tmp_path / "in" / name, data(trace))
    expect(tracker("diff", path, trace["v08"]), rf"{re.escape(str(path))}: {problem}")
    expect(tracker("show", path), rf"{re.escape(str(path))}: {problem}")


def test_one_bad_file_keeps_all_files_of_the_call_out(tracker, db, tmp_path, trace):
    bad = file(tmp_path / "in" / "bad.pt.trace.json", good(trace)[:100_000])
    file(tmp_path / "in" / "good.pt.trace.json", good(trace).replace(b"aten::mul", b"aten::wul"))
    before = content(db)
    expect(tracker("ingest", tmp_path / "in", *INGEST, "--db", db), rf"{re.escape(str(bad))}: .*")
    assert content(db) == before


REFUSED = {
    "a bad file": lambda trace, bad: (bad, *INGEST),
    "a bad file beside a good one": lambda trace, bad: (trace["v01"], bad, *INGEST),
    "a version that could never be named": lambda trace, bad: (trace["v01"], "--version", "run:3", "--workload", "w"),
    "a tag that no run can have": lambda trace, bad: (trace["v01"], *INGEST, "--tag", f"{'x' * 401}=1"),
    "a workload that is too long": lambda trace, bad: (trace["v01"], "--version", "v1", "--workload", "w" * 3000),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_ingest_that_is_refused_makes_no_database(tracker, empty_url, tmp_path, trace, case):
    bad = file(tmp_path / "in" / "bad.pt.trace.json", good(trace)[:100_000])
    done = tracker("ingest", *REFUSED[case](trace, bad), "--db", empty_url)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    expect(tracker("runs", "--db", empty_url), "(there is no database at .*|.* holds no tables of tracker yet)")


def test_folder_without_profiles(tracker, db, tmp_path):
    file(tmp_path / "in" / "notes.txt", "nothing here")
    before = content(db)
    expect(tracker("ingest", tmp_path / "in", *INGEST, "--db", db), rf"{tmp_path}/in: no profile in this folder")
    assert content(db) == before


def test_path_that_is_not_there(tracker, db, tmp_path):
    expect(tracker("ingest", tmp_path / "gone.json", *INGEST, "--db", db), ".*gone.json: no such file or folder")
    expect(tracker("diff", "./gone.json", "v08", "--db", db), r"\./gone.json: no such file or folder")


def test_file_that_is_in_under_another_label(tracker, db, trace):
    before = content(db)
    done = tracker("ingest", trace["v01"], "--version", "v02", "--workload", WORKLOAD, "--db", db)
    expect(done, rf".*{re.escape(trace['v01'].name)}.*v01.*")
    assert f"tracker runs edit --db {db} 1 --version v02" in done.err
    assert content(db) == before


SIDES = {
    "v99": "there is no version 'v99' of small_gpt",
    "nonsense": "there is no version 'nonsense' of small_gpt",
    "run:99": "there is no run 99",
    "run:1:rank7": "run:1:rank7: .*",
    "latest~99": "latest~99: there are not that many active runs",
    "pinned": "no version is pinned",
    "v01@H100": "version 'v01' has no active run on a device like 'H100'",
    "./gone.json": r"\./gone.json: no such file or folder",
    "v" * 300: "there is no version 'v{300}' of small_gpt",
    "latest~99999999999999999999": "latest~9{20}: .*",
    "run:99999999999999999999": "there is no run 9{20}",
    "run:1:rank99999999999999999999": "run:1:rank9{20}: .*",
    f"./{'d/' * 2000}{'v' * 300}": ".*",
}


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side[:40])
def test_side_that_names_nothing(tracker, db, side):
    expect(tracker("diff", side, "v08", "--db", db), SIDES[side])
    expect(tracker("diff", "v08", side, "--db", db), SIDES[side])
    expect(tracker("show", side, "--db", db), SIDES[side])


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "-1", "-0.001", "1e300"])
@pytest.mark.parametrize("words", [("show", "1"), ("diff", "v01", "v08")], ids=" ".join)
def test_time_that_is_none(tracker, db, words, value):
    problem = f"--min-us '{re.escape(value)}' is not a number of microseconds"
    expect(tracker(*words, "--min-us", value, "--db", db), problem)


NUMBERS = {
    "--top": ("-1", "nonsense", "1.5", "9" * 20),
    "--rank": ("-1", "nonsense", "9" * 20),
    "--stage": ("-1", "nonsense", "9" * 20),
    "--min-us": ("nonsense",),
}


@pytest.mark.parametrize(("option", "value"), [(option, value) for option in NUMBERS for value in NUMBERS[option]])
@pytest.mark.parametrize("words", [("show", "1"), ("diff", "v01", "v08")], ids=" ".join)
def test_number_that_is_none(tracker, db, words, option, value):
    done = tracker(*words, option, value, "--db", db)
    assert (done.code, done.out) == (2, "")
    assert f"{option} '{value}' is not a " in done.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("diff", "v01", "v08", "--only", "overall,everything"), "--only 'everything' must be one of: .*"),
        (("runs", "tag", "9" * 20, "--tag", "a=b"), "there is no run 9{20}"),
        (("runs", "tag", "9" * 5000, "--tag", "a=b"), r"there is no run 9{150} \.\.\. 9{150}"),
    ],
    ids=lambda value: value[-1][:30] if isinstance(value, tuple) else "",
)
def test_word_that_names_nothing(tracker, db, words, problem):
    expect(tracker(*words, "--db", db), problem)


OP_MAPS = {
    "no JSON": ("aten::mul=npu::mul", r".*: line 1, column 1: the op map is not JSON.*"),
    "a list": ('["aten::mul"]', ".*: the op map is a JSON list, not an object"),
    "a number": ('{"aten::mul": 3}', ".*: key 'aten::mul': the op map has 3 instead of a name"),
    "cut": ('{"aten::mul": ', r".*: line 1, column 1\d: the op map is not JSON.*"),
    "binary": (b"\xff\xfe\x00", ".*: byte 0: the op map is not text"),
}


@pytest.mark.parametrize("case", OP_MAPS, ids=str)
def test_op_map_file_that_is_no_map(tracker, db, tmp_path, case):
    text, problem = OP_MAPS[case]
    path = file(tmp_path / "map.json", text)
    expect(tracker("diff", "v01", "v08", "--db", db, "--op-map", path), problem)


def test_op_map_on_the_command_line_that_is_no_map(tracker, db):
    expect(tracker("diff", "v01", "v08", "--db", db, "--op-map", '{"a": '), "--op-map: line 1, column .*")
    expect(
        tracker("diff", "v01", "v08", "--db", db, "--op-map", "gone.json"), "gone.json: the op map cannot be read .*"
    )


def test_database_newer_than_the_program(tracker, db, trace):
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    before = content(db)
    for words in (("runs",), ("ingest", trace["v01"], *INGEST), ("diff", "v01", "v08"), ("db", "upgrade")):
        expect(tracker(*words, "--db", db), r".*filled.db is at schema 9999, newer than this tracker.*")
    assert content(db) == before


def test_file_that_is_no_database(tracker, tmp_path):
    path = file(tmp_path / "notes.db", "these are my notes, not a database")
    expect(tracker("runs", "--db", path), ".*notes.db: it is not a SQLite database .file is not a database.")
    assert path.read_text() == "these are my notes, not a database"


def test_database_of_another_program(tracker, tmp_path, trace):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE song (title TEXT)")
    connection.close()
    expect(tracker("ingest", trace["v01"], *INGEST, "--db", path), ".*other.db holds tables of another program")


def test_no_database_yet(tracker, tmp_path):
    expect(tracker("runs"), "there is no database at .*tracker.db")
    expect(tracker("diff", "v01", "v08", "--db", tmp_path / "gone.db"), "there is no database at .*gone.db")
    assert not list(tmp_path.iterdir())


def test_database_of_a_kind_that_we_do_not_know(tracker):
    done = tracker("runs", "--db", "mysql://me:secret@host/name")
    expect(done, ".*mysql.*")
    assert "secret" not in done.err


def test_postgres_that_does_not_answer(tracker):
    done = tracker("runs", "--db", "postgresql://me:secret@127.0.0.1:1/name")
    expect(done, ".*")
    assert "secret" not in done.err


def read_only(db):
    """What SQLite sees of a file on a read-only disk; permissions would not stop root."""
    connection = sqlite3.connect(db)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    db.chmod(0o444)
    db.parent.chmod(0o555)


def test_read_only_database(tracker, db, trace, monkeypatch, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir()
    moved = db.rename(folder / "filled.db")
    read_only(moved)
    monkeypatch.setattr("os.access", lambda path, mode, **_: not str(path).startswith(str(folder)) or mode != 2)
    before = moved.read_bytes()
    expect(tracker("ingest", trace["v01"], *INGEST, "--db", moved), ".*filled.db is read-only.*")
    expect(tracker("runs", "tag", 1, "--tag", "a=b", "--db", moved), ".*filled.db is read-only.*")
    assert tracker("runs", "--db", moved).code == 0
    assert moved.read_bytes() == before


def test_output_in_a_folder_that_is_not_there_is_told_before_the_work(tracker, db, tmp_path):
    target = tmp_path / "gone" / "diff.json"
    expect(
        tracker("diff", "v01", "v99", "--db", db, "-o", target),
        r".*diff.json: cannot be written \(there is no folder .*\)",
    )


def test_output_that_a_folder_is_in_the_way_of(tracker, db, tmp_path):
    (tmp_path / "out" / "diff_v01_v08.json").mkdir(parents=True)
    done = tracker("diff", "v01", "v08", "--db", db, "-o", tmp_path / "out", "--format", "json")
    expect(done, r".*diff_v01_v08.json: cannot be written \(it is a folder\)")


def test_output_folder_that_is_not_writable(tracker, db, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode, **_: False)
    done = tracker("diff", "v01", "v08", "--db", db, "-o", tmp_path / "diff.json")
    expect(done, r".*diff.json: cannot be written \(the folder is not writable\)")


def test_workbook_on_screen(tracker, db):
    expect(tracker("diff", "v01", "v08", "--db", db, "--format", "xlsx"), "a workbook cannot be shown on screen")


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "edit", "99", "--version", "v2"),
        ("runs", "tag", "99", "--tag", "a=b"),
        ("runs", "untag", "99", "--tag", "a"),
        ("runs", "exclude", "99", "--reason", "x"),
        ("runs", "restore", "99"),
        ("runs", "delete", "99", "--reason", "x"),
        ("runs", "edit", "1"),
        ("runs", "tag", "1", "--tag", "nonsense"),
        ("runs", "tag", "one", "--tag", "a=b"),
        ("runs", "untag", "1", "--tag", "gone"),
        ("versions", "pin", "v99"),
        ("versions", "unpin", "v99"),
    ],
    ids=" ".join,
)
def test_edit_that_cannot_be_done_changes_nothing(tracker, db, words):
    before = content(db)
    expect(tracker(*words, "--db", db), ".*")
    assert content(db) == before


@pytest.mark.parametrize(
    "words",
    [
        ("edit", "1", "999", "--version", "v2", "--note", "moved"),
        ("edit", "1", "999", "--config", "batch=32"),
        ("tag", "1", "999", "--tag", "a=b"),
        ("untag", "1", "999", "--tag", "here"),
        ("untag", "1", "--tag", "here", "--tag", "gone"),
        ("exclude", "1", "999", "--reason", "x"),
        ("restore", "2", "999"),
        ("delete", "1", "999", "--reason", "x"),
        ("delete", "1", "999", "--reason", "x", "--purge"),
        ("delete", "1", "--reason", " ", "--purge"),
    ],
    ids=" ".join,
)
def test_edit_of_several_runs_is_done_for_all_or_for_none(tracker, db, words):
    assert tracker("runs", "tag", "1", "--tag", "here=yes", "--db", db).code == 0
    assert tracker("runs", "exclude", "2", "--reason", "noisy", "--db", db).code == 0
    before = content(db)
    expect(tracker("runs", *words, "--db", db), ".*(999|gone|reason).*")
    assert content(db) == before


def test_option_in_front_of_a_command_is_not_lost_silently(tracker, db):
    expect(tracker("runs", "--db", db, "restore", "1"), "--db has no effect before restore")
    expect(tracker("versions", "--workload", "w", "pin", "v01", "--db", db), "--workload has no effect before pin")


@pytest.mark.parametrize(
    "words",
    [
        ("--version", "", "--workload", "w"),
        ("--version", "v", "--workload", " "),
        ("--version", "v", "--workload", "w", "--config", "batch"),
        ("--version", "v", "--workload", "w", "--tag", "a=1", "--tag", "a=2"),
        ("--version", "v", "--workload", "w", "--device", " "),
        ("--version", "v", "--workload", "w", "--format", "nonsense"),
    ],
    ids=" ".join,
)
def test_label_that_says_nothing(tracker, tmp_path, trace, words):
    expect(tracker("ingest", trace["v01"], *words, "--db", tmp_path / "new.db"), ".*")


def test_error_names_no_more_than_one_line_of_a_strange_path(tracker, db, tmp_path):
    path = file(tmp_path / "in" / "a\nb\x1b[31m.pt.trace.json", b"")
    done = tracker("ingest", path, *INGEST, "--db", db)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "\x1b" not in done.err
