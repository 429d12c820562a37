"""`tracker pack`: from a node without a database to a database somewhere else."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

from tests.cli.support import content

DATA = Path(__file__).parents[1] / "data"


def test_a_profile_travels_as_a_pack(tracker, trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(trace["v01"], "a.pt.trace.json.gz")
    packed = tracker("pack", "a.pt.trace.json.gz", "-o", "run.trk", "--version", "v1", "--workload", "gpt")
    assert (packed.code, packed.err) == (0, "")
    assert packed.out.startswith("run.trk: 1 profile, ")
    assert packed.out.endswith(" KiB from 362.30 KiB.\nNext:\n  tracker ingest run.trk\n")
    here = tracker("ingest", "a.pt.trace.json.gz", "--version", "v1", "--workload", "gpt", "--db", "here.db").plain
    (tmp_path / "a.pt.trace.json.gz").unlink()
    there = tracker("ingest", "run.trk", "--db", "there.db").plain
    assert there == here
    assert "run 1  gpt v1  cpu  rank 0  5 steps  98.64 ms  a.pt.trace.json.gz" in there.out
    assert content(tmp_path / "there.db") == content(tmp_path / "here.db")
    shown = [tracker("show", "run:1", "--db", name).plain.out for name in ("here.db", "there.db")]
    assert shown[0] == shown[1]


def test_a_pack_says_what_its_ingest_will_need(tracker, trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(trace["v01"], "a.pt.trace.json.gz")
    for words, needed in (
        ((), " --version VERSION --workload WORKLOAD"),
        (("--workload", "gpt"), " --version VERSION"),
    ):
        packed = tracker("pack", "a.pt.trace.json.gz", "-o", "run.trk", "--force", *words)
        assert packed.out.endswith(f"\nNext:\n  tracker ingest run.trk{needed}\n")


def test_runs_of_a_path_have_no_number_in_any_database(tracker, trace, tmp_path):
    for label in ("v01", "v08"):
        tracker("pack", trace[label], "-o", tmp_path / f"{label}.trk", "--version", label, "--workload", "gpt")
    tracker("pack", tmp_path / "v01.trk", tmp_path / "v08.trk", "-o", tmp_path / "both.trk")
    shown = tracker("show", tmp_path / "both.trk")
    assert shown.code == 2
    assert shown.err.endswith("both.trk is 2 runs; name one of its files, or ingest it first\n")


def test_diff_and_doctor_take_packs(tracker, trace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for label, path in trace.items():
        shutil.copy(path, f"{label}.pt.trace.json.gz")
        assert tracker("pack", f"{label}.pt.trace.json.gz", "-o", f"{label}.trk").code == 0
    plain = tracker("diff", "v01.pt.trace.json.gz", "v08.pt.trace.json.gz", "--format", "csv")
    packed = tracker("diff", "v01.trk", "v08.trk", "--format", "csv")
    assert packed.code == plain.code == 0
    assert packed.out.replace(".trk", ".pt.trace.json.gz") == plain.out
    seen = tracker("doctor", "v01.trk")
    assert "v01.trk\n1 readable capture (torch_profiler, cpu) can be ingested as 1 run; " in seen.out
    assert "Next:\n  tracker ingest v01.trk --version VERSION --workload WORKLOAD" in seen.out


def test_doctor_says_what_a_pack_was_given(tracker, trace, tmp_path):
    tracker("pack", trace["v01"], "-o", tmp_path / "run.trk", "--version", "v1", "--workload", "gpt")
    seen = tracker("doctor", tmp_path / "run.trk")
    assert "as packed: version v1, workload gpt" in seen.out
    assert seen.out.endswith(f"\nNext:\n  tracker ingest {tmp_path / 'run.trk'}\n")


def test_a_pack_is_never_replaced_unasked_and_nothing_else_ever(tracker, trace, tmp_path):
    run = tmp_path / "run.trk"
    run.write_text("notes of mine")
    done = tracker("pack", trace["v01"], "-o", run)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"tracker: {run}: exists already; name another file, or replace it with --force\n"
    done = tracker("pack", trace["v01"], "-o", run, "--force")
    assert (done.code, done.err) == (2, f"tracker: {run}: is not a pack and is not replaced; name another file\n")
    assert run.read_text() == "notes of mine"
    run.unlink()
    assert tracker("pack", trace["v01"], "-o", run).code == 0
    first = run.read_bytes()
    assert tracker("pack", trace["v08"], "-o", run, "--force").code == 0
    assert run.read_bytes() != first
    assert [path.name for path in tmp_path.iterdir() if path.suffix in (".trk", ".part")] == ["run.trk"]


def test_a_folder_gets_a_file_named_after_the_profile(tracker, trace, tmp_path):
    done = tracker("pack", trace["v01"], "-o", tmp_path)
    assert done.code == 0
    assert (tmp_path / f"{trace['v01'].name}.trk").is_file()
    again = tracker("pack", tmp_path / f"{trace['v01'].name}.trk", "-o", tmp_path, "--force")
    assert again.code == 0


def test_what_cannot_be_packed_leaves_no_file(tracker, trace, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text('{"a": 1}')
    done = tracker("pack", trace["v01"], bad, "-o", tmp_path / "run.trk")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"tracker: {bad}: no reader knows this file")
    done = tracker("pack", trace["v01"], "-o", tmp_path / "nowhere" / "run.trk")
    assert done.err.startswith(f"tracker: {tmp_path / 'nowhere' / 'run.trk'}: cannot be written (there is no folder")
    assert tracker("pack", trace["v01"]).code == 2
    assert tracker("pack", trace["v01"], "-o", "").err == "tracker: -o is empty; give a file or a folder: -o run.trk\n"
    assert not (tmp_path / "run.trk").exists()


def test_a_damaged_pack_leaves_the_database_untouched(tracker, db, trace, tmp_path):
    run = tmp_path / "run.trk"
    tracker("pack", trace["v01"], "-o", run, "--version", "v1", "--workload", "gpt")
    whole, before = run.read_bytes(), content(db)
    for damaged in (whole[:-20], gzip.compress(gzip.decompress(whole)[:-9])):
        run.write_bytes(damaged)
        done = tracker("ingest", run, "--db", db)
        assert (done.code, done.out) == (2, "")
        assert done.err == f"tracker: {run}: the pack ends early; copy it again, or pack the profile again\n"
    assert content(db) == before


def test_a_pack_goes_to_standard_output_alone(tracker, copied_tracker, trace, tmp_path):
    """To be piped to another machine; what is said of it goes elsewhere."""
    tracker("pack", trace["v01"], "-o", tmp_path / "run.trk")
    for name in ("-", "/dev/stdout"):
        words = [*copied_tracker, "pack", str(trace["v01"]), "-o", name]
        done = subprocess.run(words, capture_output=True, check=True, timeout=60)
        assert done.stdout == (tmp_path / "run.trk").read_bytes()
        assert done.stderr.startswith(b"standard output: 1 profile, ")


def test_a_warning_of_a_pack_names_the_profiles_that_it_concerns(tracker, tmp_path):
    (tmp_path / "both").mkdir()
    for name in ("training_log/timer_only.txt", "paddle_summary/gpu.txt"):
        shutil.copy(DATA / name, tmp_path / "both")
    alone = tracker("pack", tmp_path / "both" / "gpu.txt", "-o", tmp_path / "one.trk").err.splitlines()
    assert alone[-2].startswith("warning: 1 name ")
    assert alone[-1].startswith("warning: timer_only.txt beside it has 20.00 ms per step")
    named = tracker("pack", tmp_path / "both", "-o", tmp_path / "two.trk").err.splitlines()
    of_log = "warning: timer_only.txt: of 2 intervals the median leaves out 1 of warm-up"
    assert [line for line in named if line != of_log] == [line.replace("g: ", "g: gpu.txt: ", 1) for line in alone]
