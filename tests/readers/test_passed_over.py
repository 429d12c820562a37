"""What a search of a folder cannot read, or does not know although its name says that it is a profile, is said."""

from __future__ import annotations

import errno
import gzip
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.test_intake import write_trace
from tracker import readers
from tracker.doctor import examine
from tracker.errors import SourceError
from tracker.intake import ingest, pack

CAPTURES = Path(__file__).parents[1] / "data"
NAME = "rank1.pt.trace.json.gz"
NO_GZIP = "is named .gz, but is no gzip file, and no reader knows its content"
CONTENTS = {
    "random": (bytes(range(128, 256)), NO_GZIP),
    "text": (b"Epoch 1 [ok]\n", NO_GZIP),
    "empty": (b"", "the file is empty"),
    "json of others": (
        gzip.compress(b'{"layers": [1, 2]}'),
        "no reader knows this file (JSON that is no trace: top-level keys layers)",
    ),
}


@pytest.fixture
def two_ranks(tmp_path: Path) -> Path:
    """A folder with a good rank 0, and a folder for rank 1."""
    write_trace(tmp_path / "rank0.pt.trace.json", rank=0)
    (tmp_path / "rank1").mkdir()
    write_trace(tmp_path / "rank1" / "rank1.pt.trace.json", rank=1)
    return tmp_path


def make_unreadable(monkeypatch: pytest.MonkeyPatch, folder: Path, code: int = errno.EACCES) -> None:
    """Whoever lists `folder` fails; its mode would not stop the superuser."""
    really = os.scandir

    def scandir(path: str | os.PathLike[str] = ".") -> object:
        if Path(path) == folder:
            raise OSError(code, os.strerror(code), str(path))
        return really(path)

    monkeypatch.setattr(os, "scandir", scandir)


@pytest.mark.parametrize("asked", ["", "rank1"])
def test_a_folder_that_cannot_be_read_is_an_error_with_path_reason_and_remedy(two_ranks, monkeypatch, store, asked):
    make_unreadable(monkeypatch, two_ranks / "rank1")
    said = r"rank1: cannot be looked into \(Permission denied\); make it readable"
    with pytest.raises(SourceError, match=said):
        ingest(store, [two_ranks / asked], version="v1", workload="gpt")
    with pytest.raises(SourceError, match=said):
        pack([two_ranks / asked])
    (failure,) = examine([two_ranks / asked]).failures
    assert (failure.path, failure.problem) == (str(two_ranks / "rank1"), "cannot be looked into (Permission denied)")


def test_a_folder_that_went_away_meanwhile_is_none_of_the_search(two_ranks, monkeypatch):
    make_unreadable(monkeypatch, two_ranks / "rank1", errno.ENOENT)
    assert [found.path.name for found in readers.find(two_ranks)] == ["rank0.pt.trace.json"]


@pytest.mark.parametrize("content", CONTENTS)
def test_a_file_named_like_a_profile_that_no_reader_knows_is_warned_of(tmp_path, store, content):
    write_trace(tmp_path / "rank0.pt.trace.json", rank=0)
    (tmp_path / "settings.json").write_text("{}")  # any folder holds such files
    data, problem = CONTENTS[content]
    (tmp_path / NAME).write_bytes(data)
    warning = f"{tmp_path / NAME}: {problem}; it was passed over, although its name says torch_profiler"
    (result,) = ingest(store, [tmp_path], version="v1", workload="gpt")
    assert (result.ranks, result.warnings) == ((0,), (warning,))
    assert pack([tmp_path]).warnings == {warning: ()}
    findings = examine([tmp_path])
    assert findings.notes[0] == warning
    named = findings.unclaimed[0]
    assert (named.kind, named.examples) == ("file named like a profile", (str(tmp_path / NAME),))


def test_only_names_of_the_format_that_was_asked_for_count(tmp_path, store):
    write_trace(tmp_path / "rank0.pt.trace.json", rank=0)
    (tmp_path / "old.trk").write_bytes(b"nothing")
    assert len(readers.search(tmp_path).warnings) == 1
    assert readers.search(tmp_path, "torch_profiler").warnings == ()


def test_where_there_is_nothing_else_the_error_names_such_a_file(tmp_path):
    (tmp_path / NAME).write_bytes(b"")
    with pytest.raises(SourceError, match=r"no profile in this folder \(rank1\.pt\.trace\.json\.gz: the file is empty"):
        readers.find(tmp_path)


def test_a_gz_that_is_no_gzip_file_is_told_so(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(b"Epoch 1 [ok]\n")
    with pytest.raises(SourceError, match=f"gz: {NO_GZIP}; copy or export it again"):
        readers.claim(path)


PARTS = {
    "ascend_db": "profiler_info_4.json",
    "ascend_text": "profiler_info_3.json",
    "cann": "start_info.0",
}
"""Format -> a small file that stands in the folder of a capture beside what is measured."""


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("format", PARTS)
def test_a_pipe_in_the_folder_of_a_capture_is_refused_and_not_waited_at(tmp_path, format):
    shutil.copytree(CAPTURES / format, tmp_path / "in")
    (part,) = (tmp_path / "in").rglob(PARTS[format])
    part.unlink()
    os.mkfifo(part)
    (failure,) = examine([tmp_path / "in"]).failures
    assert failure.problem.startswith(f"{part}: is a pipe or a device, no file"), failure
    with pytest.raises(SourceError, match=re.escape(f"{part}: is a pipe or a device, no file; save what it gives")):
        pack([tmp_path / "in"])


@pytest.mark.usefixtures("soon")
def test_a_pipe_beside_profiles_is_passed_over(two_ranks, memory_store):
    os.mkfifo(two_ranks / "rank2.pt.trace.json")
    os.mkfifo(two_ranks / "rank1" / "tracker.json")
    os.mkfifo(two_ranks / "rank0.pt.trace.json.tracker.json")
    assert [run.ranks for run in ingest(memory_store, [two_ranks], version="v1", workload="w")] == [(0, 1)]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("events.out.tfevents.1736.node0", b"\x18\0\0\0", "a TensorBoard event file, damaged at its start"),
        ("model.pt", b"PK\x03\x04", "a checkpoint (.pt)"),
        ("x.ckpt", b"\x80\x02}", "a checkpoint (.ckpt)"),
        ("empty.json", b"", "empty"),
        ("a.nsys-rep", b"\1", "a report of Nsight Systems, export it with nsys export --type sqlite (.nsys-rep)"),
        ("train.log", b"step 1: loss 2.0\n", "a text log without profiler rows or step times"),
        ("config.json", b'{"a": {"x": 1}, "b": [{"y": 2}], "c": 3}', "JSON that is no trace: top-level keys a, b, c"),
        (
            "many.json",
            b'{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}',
            "JSON that is no trace: top-level keys a, b, c, d, e and 1 more",
        ),
        ("list.json", b"[1, 2]", "JSON that is no trace: a list"),
        ("chrome.json", b'{"traceEvents": [{"ph": "X", "cat": "devtools"}]}', "a trace of no known profiler"),
        ("loss.csv", b'step,"loss"\n1,2.0\n', "a table of no known profiler: columns step, loss"),
        ("run.py", b"print({})\n", "a text file of no known profiler (.py)"),
        ("blob.dat", b"\0\1\2", "a binary file of no known profiler (.dat)"),
        ("archive", b"PK\x03\x04", "an archive, unpack it first"),
    ],
)
def test_a_file_that_is_not_taken_is_named_with_what_it_is(tmp_path, name, content, why):
    (tmp_path / name).write_bytes(content)
    assert readers.why(tmp_path / name) == why
