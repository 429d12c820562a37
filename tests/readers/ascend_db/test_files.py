"""Ascend databases as files: which are claimed, how they are read, and what can be wrong with them."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.readers import ascend_databases as made
from tests.readers.ascend_databases import changed, task, write, write_capture
from tests.readers.helpers import only
from tracker.errors import SourceError
from tracker.readers import ascend_db
from tracker.readers._source import ReadOptions, read_head

FIXTURE = Path(__file__).parents[2] / "data" / "ascend_db" / "rank4_ascend_pt"


def test_database_is_read_without_a_trace_of_the_reading(tmp_path):
    folder = write_capture(tmp_path / "rank4_ascend_pt")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    folder.chmod(0o500)
    try:
        ascend_db.read(folder)
    finally:
        folder.chmod(0o700)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_journal_of_another_program_is_said_not_read(tmp_path):
    path = write(tmp_path / "ascend_pytorch_profiler_4.db", made.tables())
    path.with_name(f"{path.name}-wal").write_bytes(b"x" * 64)
    assert "which were not read" in ascend_db.read(path).warnings[0]


def test_half_of_a_change_is_refused(tmp_path):
    path = write(tmp_path / "ascend_pytorch_profiler_4.db", made.tables())
    path.with_name(f"{path.name}-journal").write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(504))
    with pytest.raises(SourceError, match=r"profiler_4\.db-journal beside it is half of a change: the file is being"):
        ascend_db.read(path)
    assert ascend_db.unfinished(path) == "ascend_pytorch_profiler_4.db-journal beside it is half of a change"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (changed(TASK=None), r"profiler_4\.db: table TASK: is missing; export the profile again"),
        (changed(ENUM_API_TYPE=None), r"table ENUM_API_TYPE: does not say what type 1 of PYTORCH_API is"),
        ({"STRING_IDS": [{"id": 1, "value": "a"}], "TASK": []}, r"table TASK: has no column startNs; it has globalT"),
        (changed(TASK=[task(1, "KERNEL_AICORE", 0, 1) | {"startNs": "soon"}]), r"table TASK: startNs is 'soon', exp"),
    ],
    ids=["no_tasks", "no_words", "no_column", "no_number"],
)
def test_database_that_is_no_profile_names_the_table(database, content, message):
    with pytest.raises(SourceError, match=message):
        database(content)


def test_database_without_texts_is_an_error(tmp_path):
    path = write(tmp_path / "ascend_pytorch_profiler_4.db", {"TASK": [{"startNs": 1}]})
    with pytest.raises(SourceError, match="table STRING_IDS: is missing"):
        ascend_db.read(path)


def test_truncated_database_is_an_error(tmp_path):
    path = write(tmp_path / "ascend_pytorch_profiler_4.db", made.tables())
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert ascend_db.sniff(path, read_head(path))
    with pytest.raises(SourceError, match=r"the database ends early: \d+ bytes of \d+; copy the file again"):
        ascend_db.read(path)


def test_damaged_page_is_an_error_that_names_a_table(tmp_path):
    path = write(tmp_path / "ascend_pytorch_profiler_4.db", made.tables())
    content = bytearray(path.read_bytes())
    content[1024:] = b"\x77" * (len(content) - 1024)
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"ascend_pytorch_profiler_4\.db: table \w+: .*copy the file again"):
        ascend_db.read(path)


@pytest.mark.parametrize(("content", "problem"), [(b"", "the file is empty"), (b"PK..", "is no SQLite database")])
def test_file_of_the_name_that_is_no_database_is_claimed_and_refused(tmp_path, content, problem):
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    path.write_bytes(content)
    assert ascend_db.sniff(path, content)
    with pytest.raises(SourceError, match=problem):
        ascend_db.read(path)


def test_file_beyond_the_limit_is_refused(tmp_path):
    path = write(tmp_path / "ascend_pytorch_profiler_4.db", made.tables())
    with pytest.raises(SourceError, match="larger than the limit of 100 bytes"):
        ascend_db.read(path, ReadOptions(max_bytes=100))


def test_databases_are_told_by_name_or_tables(tmp_path):
    renamed = write(tmp_path / "mine.db", made.tables())
    other = write(tmp_path / "other.db", {"users": [{"id": 1}]})
    analysis = write(tmp_path / "analysis.db", made.analysis_tables())
    claims = [ascend_db.sniff(path, read_head(path)) for path in (renamed, other, analysis)]
    assert claims == [True, False, False]


def test_folder_is_claimed_unless_its_kernels_are_there_as_text(tmp_path):
    folder = write_capture(tmp_path / "rank4_ascend_pt")
    assert ascend_db.sniff(folder, b"")
    assert ascend_db.sniff(folder / "ASCEND_PROFILER_OUTPUT", b"")
    assert not ascend_db.sniff(tmp_path, b"")
    (folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").write_text("Name")
    assert not ascend_db.sniff(folder, b"")


def test_raw_folder_of_msprof_is_claimed_only_without_its_own_text(tmp_path):
    folder = tmp_path / "PROF_000001_20250109073443_ABC"
    write(folder / "msprof_20250109073443.db", made.tables())
    assert ascend_db.sniff(folder, b"")
    (folder / "mindstudio_profiler_output").mkdir()
    assert ascend_db.sniff(folder, b"")
    (folder / "mindstudio_profiler_output" / "op_summary_20250109073443.csv").touch()
    assert not ascend_db.sniff(folder, b"")


def test_database_alone_finds_what_stands_beside_it(tmp_path):
    folder = write_capture(tmp_path / "rank4_ascend_pt")
    capture = only(ascend_db.read(folder / "ASCEND_PROFILER_OUTPUT" / "ascend_pytorch_profiler_4.db"))
    assert capture.settings == {"profiler_level": "Level1"}
    assert len(capture.events.extras.collective_times) == 1


def test_committed_fixture_is_what_the_code_makes(tmp_path):
    def dump(folder):
        found = {}
        for path in sorted(folder.rglob("*.db")):
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
                found[path.name] = list(db.iterdump())
        return found

    assert dump(FIXTURE) == dump(write_capture(tmp_path / "rank4_ascend_pt"))


@pytest.mark.parametrize("content", [b'{"rank_id": ', b"[4]"])
def test_a_damaged_file_beside_the_database_is_an_error_that_names_it(tmp_path, content):
    path = write_capture(tmp_path)
    info = next(path.rglob("profiler_info*.json"))
    info.write_bytes(content)
    with pytest.raises(SourceError, match=r"profiler_info_4\.json: malformed JSON"):
        ascend_db.read(path)


def test_a_file_beside_the_database_may_be_compressed_and_no_larger_than_the_limit_then(tmp_path):
    path = write_capture(tmp_path)
    info = next(path.rglob("profiler_info*.json"))
    info.write_bytes(gzip.compress(info.read_bytes()))
    assert only(ascend_db.read(path)).rank == 4
    info.write_bytes(gzip.compress(b'{"rank_id": 4}' + b" " * 1_000_000))
    with pytest.raises(SourceError, match=r"profiler_info_4\.json: .* larger than the limit"):
        ascend_db.read(path, ReadOptions(max_bytes=900_000))
