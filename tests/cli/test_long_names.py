"""Names that a file system takes, and that are too long with what tracker puts behind them."""

from __future__ import annotations

import re
import shutil
import sqlite3

import pytest

from tests.cli.support import WORKLOAD

LONGEST_BYTES = 255
LABELS = ("--version", "v09", "--workload", WORKLOAD)
END = ".pt.trace.json.gz"
LONG = "x" * (254 - len(END)) + END


@pytest.fixture
def folder(tmp_path, trace):
    """Three profiles, one with a name that leaves room for a single byte."""
    place = tmp_path / "in"
    place.mkdir()
    for name, version in ((f"a{END}", "v01"), (LONG, "v08")):
        shutil.copy(trace[version], place / name)
    shutil.copy(trace["v01"].with_name(f"run2{END}"), place / f"b{END}")
    return place


def runs(db):
    with sqlite3.connect(db) as connection:
        (count,) = connection.execute("SELECT COUNT(*) FROM run").fetchone()
    return count


@pytest.mark.parametrize("more", [(), ("--keep-going",)])
def test_ingest_of_a_long_name_beside_others_takes_all(tracker, tmp_path, folder, more):
    db = tmp_path / "new.db"
    done = tracker("ingest", folder, *LABELS, *more, "--db", db)
    assert done.code == 0, done.err
    assert runs(db) == 3


@pytest.mark.parametrize("command", ["show", "doctor"])
def test_a_long_name_is_shown_and_examined(tracker, folder, command):
    done = tracker(command, folder / LONG)
    assert (done.code, done.err) == (0, ""), done


def test_a_long_name_is_packed(tracker, tmp_path, folder):
    done = tracker("pack", folder / LONG, "--output", tmp_path / "run.trk")
    assert done.code == 0, done.err
    assert (tmp_path / "run.trk").is_file()


@pytest.mark.parametrize("name", ["x" * 247 + ".qdrep", "x" * 246 + ".nsys-rep"])
def test_a_report_with_a_long_name_is_refused_with_its_remedy(tracker, tmp_path, name):
    report = tmp_path / name
    report.write_bytes(b"report" * 100)
    done = tracker("show", report)
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(r"tracker: .*only nsys itself can read its reports; export it: nsys export .*\n", done.err)


def test_a_log_with_a_long_name_is_read(tracker, tmp_path):
    log = tmp_path / ("x" * 250 + ".log")
    log.write_text("".join(f"step {step} loss 0.1 step_time 0.5{step % 10} s\n" for step in range(1, 60)))
    done = tracker("show", log)
    assert "File name too long" not in done.err
    assert done.err.count("\n") <= 1


def test_an_error_that_nobody_foresaw_stays_itself_before_the_database_is_made(tracker, tmp_path, trace, monkeypatch):
    """It read "there is no database at new.db", though an ingest makes it."""
    from tracker.intake import sidecar

    def fail(_):
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(sidecar, "sidecar_of", fail)
    with pytest.raises(ZeroDivisionError, match="a fault of ours"):
        tracker("ingest", trace["v01"], *LABELS, "--db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
