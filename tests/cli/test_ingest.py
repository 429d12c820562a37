from __future__ import annotations

import shutil

from tests.cli.support import WORKLOAD, content

LABELS = ("--version", "v01", "--workload", WORKLOAD)


def test_first_ingest_makes_the_database(tracker, tmp_path, trace):
    done = tracker("ingest", trace["v01"], *LABELS, "--db", tmp_path / "new.db")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "run:1  new  v01 of small_gpt on cpu, rank 0, 5 steps: run1.pt.trace.json.gz",
        "1 new run.  Next: tracker show run:1",
    ]


def test_without_a_database_named_the_default_one_is_made(tracker, tmp_path, trace):
    assert tracker("ingest", trace["v01"], *LABELS).code == 0
    assert len(list(tmp_path.rglob("tracker.db"))) == 1
    assert tracker("runs").out.splitlines()[-1] == "1 run.  Next: tracker show run:1"


def test_files_of_one_job_on_one_rank_are_a_run_each(tracker, tmp_path, trace):
    done = tracker("ingest", trace["v01"].parent, *LABELS, "--db", tmp_path / "new.db")
    lines = done.out.splitlines()
    assert [line.split("  ")[:2] for line in lines[:-1]] == [[f"run:{n}", "new"] for n in range(1, len(lines))]


def test_same_file_again_changes_nothing_and_names_its_run(tracker, db, trace):
    before = content(db)
    done = tracker("ingest", trace["v01"], *LABELS, "--db", db)
    assert done.code == 0
    assert done.out.startswith("run:1  already in")
    assert done.out.splitlines()[-1].startswith("1 run already in, unchanged.")
    assert content(db) == before


def test_unpacked_copy_of_a_file_is_the_same_file(tracker, db, trace, tmp_path):
    import gzip

    before = content(db)
    copy = tmp_path / "copy.pt.trace.json"
    copy.write_bytes(gzip.decompress(trace["v01"].read_bytes()))
    assert "already in" in tracker("ingest", copy, *LABELS, "--db", db).out
    assert content(db) == before


def test_what_the_user_says_is_kept(tracker, tmp_path, trace):
    db = tmp_path / "new.db"
    words = ("--config", "batch=8", "--tag", "image=a", "--note", "first", "--device", "NVIDIA H100", "--commit", "abc")
    assert tracker("ingest", trace["v01"], *LABELS, *words, "--db", db).code == 0
    listed = tracker("runs", "--format", "csv", "--db", db).out
    assert all(word in listed for word in ("batch=8", "image", "H100"))
    assert "abc" in tracker("versions", "--db", db).out


def test_inputs_stay_as_they_are(tracker, tmp_path, trace):
    copy = tmp_path / "in" / "run.pt.trace.json.gz"
    copy.parent.mkdir()
    shutil.copy(trace["v01"], copy)
    tracker("ingest", copy.parent, *LABELS, "--db", tmp_path / "new.db")
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]
    assert copy.read_bytes() == trace["v01"].read_bytes()


def test_variable_names_the_database(tracker, tmp_path, trace, monkeypatch):
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "named.db"))
    tracker("ingest", trace["v01"], *LABELS)
    assert (tmp_path / "named.db").exists()


def test_limit_on_the_size_comes_from_the_settings_file(tracker, tmp_path, trace, monkeypatch):
    settings = tmp_path / "tracker.toml"
    settings.write_text("[limits]\nmax_bytes = 1000\n")
    monkeypatch.setenv("TRACKER_CONFIG", str(settings))
    done = tracker("ingest", trace["v01"], *LABELS, "--db", tmp_path / "new.db")
    assert done.code == 2
    assert "run1.pt.trace.json.gz" in done.err
