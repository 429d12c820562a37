from __future__ import annotations

import gzip
import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.ending import ending
from tests.cli.support import WORKLOAD, content
from tests.regressions import made
from tests.test_intake import write_trace
from tracker.cli import uncompiled
from tracker.cli.ingest_summary import meaning, standing
from tracker.cli.start import samples
from tracker.intake import IngestResult
from tracker.profile import Device
from tracker.regressions import judgement

DATA = Path(__file__).parents[1] / "data"
LABELS = ("--version", "v01", "--workload", WORKLOAD)


def test_first_ingest_makes_the_database(tracker, tmp_path, trace):
    done = tracker("ingest", trace["v01"], *LABELS, "--db", tmp_path / "new.db").plain
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "run 1  small_gpt v01  cpu  rank 0  5 steps  98.64 ms  run1.pt.trace.json.gz",
        "v01 (1 run) is the first version of small_gpt.",
        "Next:",
        "  tracker show run:1",
    ]


def test_uncompiled_installation_says_once_that_it_is_slower(tracker, tmp_path, trace, monkeypatch):
    monkeypatch.setattr(uncompiled, "is_compiled", lambda: False)
    first = tracker("ingest", trace["v01"], *LABELS, "--db", tmp_path / "first.db")
    second = tracker("ingest", trace["v01"], *LABELS, "--db", tmp_path / "second.db")
    assert first.err.startswith("note: reading is slower here, for tracker was installed without its compiled code;")
    assert (first.code, second.code, second.err) == (0, 0, "")


def test_uncompiled_installation_without_a_cache_ingests(tracker, tmp_path, trace, monkeypatch):
    def refuse(path):
        if path.name.startswith("uncompiled"):
            raise PermissionError
        return exists(path)

    exists = Path.exists
    monkeypatch.setattr(uncompiled, "is_compiled", lambda: False)
    monkeypatch.setattr(Path, "exists", refuse)
    done = tracker("ingest", trace["v01"], *LABELS, "--db", tmp_path / "first.db")
    assert done.err.startswith("note: reading is slower here")
    assert (done.code, done.out.splitlines()[1]) == (0, "v01 (1 run) is the first version of small_gpt.")


def test_without_a_database_named_the_default_one_is_made(tracker, tmp_path, trace):
    assert tracker("ingest", trace["v01"], *LABELS).code == 0
    assert len(list(tmp_path.rglob("tracker.db"))) == 1
    assert ending(tracker("runs").out) == "1 run.\nNext:\n  tracker show run:1"


def test_files_of_one_job_on_one_rank_are_a_run_each(tracker, tmp_path, trace):
    done = tracker("ingest", trace["v01"].parent, *LABELS, "--db", tmp_path / "new.db")
    lines = done.out.splitlines()
    assert [line.split("  ")[0] for line in lines[:-3]] == ["run 1", "run 2", "run 3"]
    assert len({line.index("run", 6) for line in lines[:-3]}) == 1, "the columns line up"


def test_last_line_says_what_a_new_version_means(tracker, db, tmp_path, trace):
    db = tmp_path / "new.db"
    tracker("ingest", trace["v01"].parent, *LABELS, "--db", db)
    last = ending(tracker("ingest", trace["v08"].parent, "--version", "v08", "--db", db).plain.out)
    sentence, next_command = last.split("\nNext:\n  tracker ")
    assert re.fullmatch(r"v08 \(3 runs\) is 23\.8 % slower than v01\. \d+ new findings\.", sentence)
    assert next_command == "findings --version v08 --workload small_gpt"


def test_same_file_again_changes_nothing_and_names_its_run(tracker, db, trace):
    before = content(db)
    done = tracker("ingest", trace["v01"], *LABELS, "--db", db)
    assert done.code == 0
    assert done.out.startswith("run 1  small_gpt v01")
    assert ending(done.out).startswith("1 run already stored, unchanged.")
    assert content(db) == before


def test_unpacked_copy_of_a_file_is_the_same_file(tracker, db, trace, tmp_path):
    before = content(db)
    copy = tmp_path / "copy.pt.trace.json"
    copy.write_bytes(gzip.decompress(trace["v01"].read_bytes()))
    assert "already stored" in tracker("ingest", copy, *LABELS, "--db", db).out
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


def test_a_summary_and_the_log_of_a_timer_are_one_run(tracker, tmp_path):
    for number in (1, 2):
        folder = tmp_path / "in" / f"run{number}"
        folder.mkdir(parents=True)
        for name, source in (("timer.txt", "training_log/timer_only.txt"), ("summary.txt", "paddle_summary/cpu.txt")):
            content_of = (DATA / source).read_text()
            (folder / name).write_text(content_of + "\n" * number)  # each a file of its own
    done = tracker("ingest", tmp_path / "in", *LABELS, "--db", tmp_path / "new.db")
    assert "beside each other" not in done.err
    assert [line.partition("ms  ")[2] for line in done.out.splitlines()[:2]] == [
        "run1/summary.txt, run1/timer.txt",
        "run2/summary.txt, run2/timer.txt",
    ]


def test_formats_of_one_folder_are_named_and_warned_of(tracker, tmp_path):
    """With two logs nobody knows which one is of the job that wrote the summary."""
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(DATA / "paddle_summary" / "cpu.txt", folder / "summary.txt")
    for number in (1, 2):
        text = (DATA / "training_log" / "timer_only.txt").read_text()
        (folder / f"timer{number}.txt").write_text(text + "\n" * number)  # each a file of its own
    done = tracker("ingest", folder, *LABELS, "--db", tmp_path / "new.db")
    assert done.err.startswith(f"warning: {folder}: files of paddle_summary and training_log lie beside each other")
    assert sorted(line.split()[-2:] for line in done.out.splitlines()[:3]) == [
        ["paddle_summary", "summary.txt"],
        ["training_log", "timer1.txt"],
        ["training_log", "timer2.txt"],
    ]


def test_logs_come_in_under_their_own_names_in_the_order_of_their_dates(tracker, tmp_path):
    db = tmp_path / "new.db"
    assert tracker("ingest", DATA / "training_log" / "A100_LOG", "--db", db).code == 0
    out = tracker("log", "--db", db).out
    assert "batch_size=8, devices=1, precision=fp32, NVIDIA A100, throughput in sequences/s without a profiler" in out
    rows = [line.split() for line in out.splitlines() if line.startswith("  2023")]
    assert rows == [
        ["20230808_69edec3bb7", "800.0", "0.0", "%", "-", "-"],
        ["20230908_0123456789", "1,000.0", "+25.0", "%", "+25.0", "%", "+25.0", "%", "TOO_FEW_RUNS"],
    ]


def ranks_without_kernels(folder, *ranks):
    """Copies of one NPU capture as ranks of one job, of which the ranks in `ranks` have their collectives alone."""
    (source,) = (DATA / "ascend_text").glob("worker-1_*")
    for rank in (2, 3):
        copy = folder / "job7" / f"rank{rank}_ascend_pt"
        shutil.copytree(source, copy)
        (copy / "profiler_info_3.json").rename(copy / f"profiler_info_{rank}.json")
        for file in (copy / f"profiler_info_{rank}.json", copy / "profiler_metadata.json"):
            file.write_text(file.read_text().replace('"rank_id": "3"', f'"rank_id": "{rank}"'))
        output = copy / "ASCEND_PROFILER_OUTPUT"
        for name in ("trace_view.json", "kernel_details.csv") if rank in ranks else ():
            (output / name).unlink()
        for file in output.iterdir():
            file.write_bytes(file.read_bytes() + b"\n" * rank)  # each a file of its own
    return folder / "job7"


def test_a_run_of_folders_is_named_by_them_and_a_warning_by_the_rank_it_concerns(tracker, tmp_path):
    done = tracker("ingest", ranks_without_kernels(tmp_path, 3), *LABELS, "--db", tmp_path / "new.db")
    assert done.out.splitlines()[0].endswith("rank2_ascend_pt, rank3_ascend_pt")
    warnings = done.err.splitlines()
    assert warnings[0].startswith("warning: rank 3 of job7: partial: neither kernel_details.csv nor trace_view.json")
    assert warnings[1].startswith("warning: rank 3 of job7: no trace_view.json: no ops")


def test_a_warning_that_concerns_all_captures_is_printed_once(tracker, tmp_path):
    folder = ranks_without_kernels(tmp_path, 2, 3)
    done = tracker("ingest", folder, *LABELS, "--db", tmp_path / "new.db")
    assert done.err.count("neither kernel_details.csv") == 1
    assert "warning: rank 2, rank 3 of job7: partial: neither" in done.err


def test_a_part_of_a_capture_is_refused_with_the_folder_to_give(tracker, tmp_path):
    folder = ranks_without_kernels(tmp_path) / "rank2_ascend_pt"
    file = folder / "ASCEND_PROFILER_OUTPUT" / "communication.json"
    done = tracker("ingest", file, *LABELS, "--db", tmp_path / "new.db")
    assert (done.code, done.err) == (
        2,
        f"tracker: {file}: this file is a part of a capture; give its folder {folder}\n",
    )


def log_of(folder: Path, version: str, ips: float) -> Path:
    """A training log of a release: of the folder's configuration, named as its version."""
    folder.mkdir(exist_ok=True)
    path = folder / version
    path.write_text(f"model_name_or_path: net\niter 10: reader_cost: 0.001 s batch_cost: 0.010 s ips: {ips} images/s\n")
    return path


def test_an_older_release_that_comes_in_later_is_moved_with_the_command_that_is_shown(tracker, tmp_path):
    db, folder = tmp_path / "new.db", tmp_path / "net_bs32_fp16"
    newer = [log_of(folder, "20230807_73d6cf4bf9", 120.0), log_of(folder, "20220616_fb8f73102c", 110.0)]
    done = tracker("ingest", *newer, "--workload", "net", "--db", db).plain
    assert (done.code, done.err) == (0, "")  # of one call: in the order of their dates
    needed = "TOO_FEW_RUNS: 1 more run of 20230807_73d6cf4bf9 and 2 more runs before it decide"
    assert ending(done.out).endswith(f", {needed}.\nNext:\n  tracker log --workload net")
    done = tracker("ingest", log_of(folder, "20201218_76c46877a0", 100.0), "--workload", "net", "--db", db).plain
    words = "versions order 20201218_76c46877a0 --before 20220616_fb8f73102c --workload net"
    assert done.err == (
        "note: 20201218_76c46877a0 is ordered after 20220616_fb8f73102c, which came in earlier; if it is older: "
        f"tracker {words}\n"
    )
    assert tracker(*words.split(), "--db", db).code == 0
    for report in ("log", "history throughput"):
        lines = tracker(*report.split(), "--db", db).out.splitlines()
        rows = [line.split()[:2] for line in lines if line.startswith("  20")]
        assert [row[0][:4] for row in rows] == ["2020", "2022", "2023"]
        assert [float(row[1].removesuffix("/s")) for row in rows] == [100.0, 110.0, 120.0]


def test_different_models_of_one_version_are_named_with_the_way_to_separate_them(tracker, tmp_path):
    """Two logs of 10 ms a step, and one of 30 ms."""
    for name, seconds in (("a", 0.010), ("b", 0.0101), ("large", 0.030)):
        (tmp_path / name).write_text(f"iter 10: reader_cost: 0.001 s batch_cost: {seconds} s ips: 100 images/s\n")
    words = ("--version", "v1", "--workload", "net", "--db", tmp_path / "n.db")
    assert tracker("ingest", tmp_path / "a", tmp_path / "b", *words).err == ""
    done = tracker("ingest", *(tmp_path / name for name in ("a", "b", "large")), *words).plain
    assert done.err == (
        "note: runs 1-3 count as repeats of v1, but their steps take 10.00 ms to 30.00 ms; if their models "
        "differ: tracker runs edit 3 --workload NAME, or ingest each with --config KEY=VALUE\n"
    )


def test_names_without_numbers_give_no_hint(tracker, tmp_path, trace):
    for label in ("fused", "baseline", "1a2b3c4", "0a2b3c4"):
        log = log_of(tmp_path / label, "train.log", 100.0 + len(label) + ord(label[0]))
        assert tracker("ingest", log, "--version", label, "--workload", "net", "--db", tmp_path / "n.db").err == ""


def test_last_line_names_findings_that_recovered(memory_store):
    """op07 is slower in v2 and back in v3: with its second run that is certain."""
    made.runs(memory_store, "v1", count=5)
    made.runs(memory_store, "v2", {"op07": 1.5}, start=5)
    made.runs(memory_store, "v3", start=8, count=1)
    judgement.update(memory_store, judgement.tracks_of(memory_store))
    before = standing(memory_store)
    made.runs(memory_store, "v3", start=9, count=1)
    judgement.update(memory_store, judgement.tracks_of(memory_store))
    result = IngestResult(10, "v3", "gpt", "H100", (0,), 1, created=True, joined=False, already=False, paths=())
    last = meaning(memory_store, [result], before)
    assert last.endswith("1 finding recovered.\nNext:\n  tracker findings --state recovered --workload gpt")


def test_ingest_counts_what_its_command_lists(tracker, db, tmp_path):
    """v08 is slower than v01; v09 and v11 are v01 again, v10 is v08 again."""

    def again(old: str, new: str) -> str:
        folder = tmp_path / new
        folder.mkdir()
        at_ns = int(new.removeprefix("v")) * 10**12
        for path in sorted((samples().folder / old).iterdir())[1:]:  # two runs are enough
            text = gzip.decompress(path.read_bytes()).decode()
            # the same process at the same time would be the same run
            later = re.sub(r'(?<="baseTimeNanoseconds": )\d+', lambda base: str(int(base[0]) + at_ns), text)
            (folder / path.name).write_bytes(gzip.compress(later.encode(), 1))
        return ending(tracker("ingest", folder, "--version", new, "--db", db).plain.out)

    def listed(line: str) -> str:
        words = line.partition("Next:\n  tracker ")[2].split()
        return tracker(*words, "--db", db).out.splitlines()[0]

    count = len(json.loads(tracker("findings", "--format", "json", "--db", db).out)["findings"])
    line = again("v01", "v09")
    assert f"18.7 % faster than v08. {count} findings recovered.\nNext:\n  tracker findings --state recovered" in line
    assert f"1 incident, {count} findings (0 new)" in listed(line)
    line = again("v08", "v10")
    assert f". {count} new findings.\nNext:\n  tracker findings --version v10" in line
    assert f"1 incident, {count} findings ({count} new)" in listed(line)
    line = again("v01", "v11")
    both = 2 * count
    assert f"{count} findings recovered ({both} in all).\nNext:\n  tracker findings --state recovered" in line
    assert f"2 incidents, {both} findings (0 new)" in listed(line)


def test_the_only_workload_of_a_database_is_the_default(tracker, db, tmp_path, trace):
    copy = tmp_path / "copy.pt.trace.json"
    copy.write_bytes(gzip.decompress(trace["v01"].read_bytes()).replace(b"aten::mul", b"aten::wul"))
    assert tracker("ingest", copy, "--version", "v09", "--db", db).out.startswith("run 7  small_gpt v09")
    assert tracker("ingest", DATA / "training_log" / "A100_LOG", "--db", db).out.startswith("run 8  toy "), (
        "it states one"
    )
    refused = tracker("ingest", copy, "--version", "v10", "--db", tmp_path / "new.db")
    assert (refused.code, "states no workload" in refused.err) == (2, True)


def test_settings_file_gives_workload_and_version(tracker, tmp_path, trace, monkeypatch):
    monkeypatch.setenv("TRACKER_CONFIG", str(tmp_path / "tracker.toml"))
    (tmp_path / "tracker.toml").write_text('database = "own.db"\nworkload = "gpt"\nversion = "nightly"\n')
    assert tracker("ingest", trace["v01"]).out.startswith("run 1  gpt nightly")
    monkeypatch.setenv("TRACKER_VERSION", "v2")
    assert tracker("ingest", trace["v08"], "--workload", "bert").out.startswith("run 2  bert v2")
    monkeypatch.delenv("TRACKER_VERSION")
    assert "bert" not in tracker("runs").out and "bert" in tracker("runs", "--workload", "bert").out


def ingested(store, changes, *, count=3, device=None):
    """Store `count` runs of v1 and of v2 of each workload; return what an ingest of all of v2 is told at its end.

    `changes`: workload -> the factor of op07, which takes 1 of the 40 ms of a step, in v1 and in v2; no v1 for None.
    """
    more = {} if device is None else {"device": device}
    results = []
    for workload, (old, new) in changes.items():
        if old is not None:
            made.runs(store, "v1", {"op07": old}, count=5, workload=workload, **more)
        for run_id in made.runs(store, "v2", {"op07": new}, start=5, count=count, workload=workload, **more):
            results.append(new_run(run_id, "v2", workload))
    judgement.update(store, judgement.tracks_of(store))
    return results


def new_run(run_id, version, workload):
    return IngestResult(
        run_id, version, workload, "H100", (0,), 1, created=True, joined=False, already=False, paths=()
    )  # fmt: skip


def test_version_with_fewer_runs_than_usual_is_slower_so_far(memory_store):
    """3 runs each of v1 to v4, and 2 of v5, of 60 ms in place of 40."""
    for version in range(4):
        made.runs(memory_store, f"v{version + 1}", start=3 * version)
    run_ids = made.runs(memory_store, "v5", {"op07": 21}, start=12, count=2)
    judgement.update(memory_store, judgement.tracks_of(memory_store))
    text = meaning(memory_store, [new_run(run_id, "v5", "gpt") for run_id in run_ids])
    assert text.startswith("v5 (2 of the usual 3 runs so far) is 50.0 % slower than the level of v2, v3, v4.")


def test_slower_version_on_a_new_host_may_be_the_host(memory_store):
    """v1 of node-a takes 40 ms, v2 of node-b 60."""
    made.runs(memory_store, "v1", host="node-a")
    run_ids = made.runs(memory_store, "v2", shared=1.5, start=3, host="node-b")
    judgement.update(memory_store, judgement.tracks_of(memory_store))
    text = meaning(memory_store, [new_run(run_id, "v2", "gpt") for run_id in run_ids])
    assert text.startswith("v2 (3 runs) is ") and "slower than v1, or on another host." in text


def test_slower_version_that_was_throttled_may_be_its_machine(memory_store):
    made.runs(memory_store, "v1", host="node-a")
    held = {"facts": {"device_throttled": "power"}}
    run_ids = made.runs(memory_store, "v2", shared=1.5, start=3, host="node-a", of_run=held)
    judgement.update(memory_store, judgement.tracks_of(memory_store))
    text = meaning(memory_store, [new_run(run_id, "v2", "gpt") for run_id in run_ids])
    assert text.startswith("v2 (3 runs) is ") and "slower than v1, or on a throttled machine." in text


def test_first_version_on_a_device_is_not_that_of_a_workload(memory_store):
    """v1 ran on the usual device, v2 on another one."""
    made.runs(memory_store, "v1")
    run_ids = made.runs(memory_store, "v2", start=3, device=Device("NVIDIA", "A100"))
    judgement.update(memory_store, judgement.tracks_of(memory_store))
    text = meaning(memory_store, [new_run(run_id, "v2", "gpt") for run_id in run_ids])
    assert text.startswith("v2 (3 runs) is the first version of gpt with this configuration and device.")


def test_workloads_of_one_ingest_have_a_line_each_worst_first(memory_store):
    """40 to 80 ms, 40 to 60, 60 to 40, a first version, and two as before: the worst leads, and is proposed."""
    steps = {"as_it_was": (1, 1), "new": (None, 1), "better": (21, 1), "bad": (1, 21), "also": (1, 1), "worst": (1, 41)}
    lines = meaning(memory_store, ingested(memory_store, steps)).splitlines()
    assert [re.sub(r"\d+\.\d %", "N %", line) for line in lines] == [
        "worst: v2 (3 runs) is N % slower than v1. 4 new findings.",
        "bad: v2 (3 runs) is N % slower than v1. 4 new findings.",
        "new: v2 (3 runs) is its first version.",
        "better: v2 (3 runs) is N % faster than v1.",
        "2 more: unchanged.",
        "Next:",
        "  tracker findings --version v2 --workload worst",
        "  tracker findings --new",
    ]
    assert "100." in lines[0] and "50." in lines[1], "about twice as long, and half as much again"


def test_an_operator_that_is_slower_is_a_line_beside_equal_steps(memory_store):
    """Two operators of one millisecond: one takes 0.5 ms more, one 0.5 ms less, and the step is as before."""
    made.runs(memory_store, "v1", count=5, workload="even")
    made.runs(memory_store, "v1", count=5, workload="same")
    results = [
        *(new_run(run, "v2", "same") for run in made.runs(memory_store, "v2", start=5, workload="same")),
        *(new_run(run, "v2", "even")
          for run in made.runs(memory_store, "v2", {"op05": 1.5, "op07": 0.5}, start=5, workload="even")),
    ]  # fmt: skip
    judgement.update(memory_store, judgement.tracks_of(memory_store))
    lines = meaning(memory_store, results).splitlines()
    assert lines[0].startswith("even: v2 (3 runs): step ") and lines[0].endswith("UNCHANGED (as the level before). "
                                                                                 "2 new findings.")  # fmt: skip
    assert lines[1].startswith("same: v2 (3 runs): step ")
    assert lines[3:] == ["  tracker findings --version v2 --workload even"]


def test_equal_sentences_of_workloads_are_not_one(memory_store):
    """Both first versions are said, each of its workload."""
    text = meaning(memory_store, ingested(memory_store, {"a": (None, 1), "b": (None, 1)}))
    assert text.startswith("a: v2 (3 runs) is its first version.\nb: v2 (3 runs) is its first version.\nNext:")


def test_devices_of_one_workload_are_named_by_their_lines(memory_store):
    results = ingested(memory_store, {"gpt": (1, 21)}, device=Device("AMD", "MI300X"))
    results += ingested(memory_store, {"gpt": (1, 1)}, device=Device("NVIDIA", "H100"))
    lines = meaning(memory_store, results).splitlines()
    assert lines[0].startswith("gpt on AMD MI300X: v2 (3 runs) is 5")
    assert lines[1].startswith("gpt on NVIDIA H100: v2 (3 runs): step ")


def test_many_changed_workloads_are_cut_and_counted(memory_store):
    """Of 14 first versions and one slower workload, ten lines and the number of the others."""
    steps = {f"w{number:02}": (None, 1) for number in range(14)} | {"slow": (1, 21)}
    lines = meaning(memory_store, ingested(memory_store, steps)).splitlines()
    assert (lines[0][:5], lines[1][:4], lines[9][:4]) == ("slow:", "w00:", "w08:")
    assert lines[10] == "5 more: without a version before."


def test_nothing_new_in_several_workloads_leads_to_the_worst_diff(memory_store):
    """One run of v2 each: a suspect of 50 % comes before one that is as it was."""
    results = ingested(memory_store, {"same": (1, 1), "doubt": (1, 21)}, count=1)
    lines = meaning(memory_store, results).splitlines()
    assert lines[0].startswith("doubt: v2 (1 run): step +49.") and "SUSPECT" in lines[0]
    assert lines[-2:] == ["  tracker diff v1 v2 --workload doubt", "  tracker board"]


def test_a_rank_without_the_others_says_what_it_waits_for(tracker, tmp_path):
    """v1 has ranks 0 and 1. Of v2 rank 1 comes first: 800 us of a kernel instead of 400 are no finding."""
    for rank in (0, 1):
        write_trace(tmp_path / "v1" / f"rank{rank}.json", rank=rank, kernel_us=400)
        write_trace(tmp_path / "v2" / f"rank{rank}.json", rank=rank, kernel_us=400 + 400 * rank, start_us=10**9)
    tracker("ingest", tmp_path / "v1", "--version", "v1", "--workload", "ddp")
    labels = ("--version", "v2", "--workload", "ddp")
    done = tracker("ingest", tmp_path / "v2" / "rank1.json", *labels)
    assert ending(done.plain.out).splitlines() == [
        "Run 2 (ddp v2, NVIDIA H100): 1 of 2 ranks, 1.00 ms per step; not judged before the others come.",
        "Next:",
        "  tracker show run:2",
    ]
    assert tracker("diff", "v1", "v2", "--fail-on", "new").code == 4
    assert "run 2  ddp v2  NVIDIA H100  ranks 0-1" in tracker("ingest", tmp_path / "v2" / "rank0.json", *labels).out
    assert "of 2 ranks" not in tracker("board").out


def test_late_rank_names_the_run_that_now_lacks_one(tracker, tmp_path):
    """Rank 0 of two runs is in; rank 1 of the first shows that both should have two."""
    labels = ("--version", "v1", "--workload", "ddp")
    for number in (0, 1):
        path = write_trace(tmp_path / f"run{number}" / "rank0.json", rank=0, start_us=number * 10**9)
        tracker("ingest", path, *labels)
    done = tracker("ingest", write_trace(tmp_path / "run0" / "rank1.json", rank=1), *labels)
    assert "Run 2 (ddp v1, NVIDIA H100): 1 of 2 ranks, 1.00 ms per step; not judged before the others come." in done.out
    again = tracker("ingest", write_trace(tmp_path / "run2" / "rank0.json", rank=0, start_us=2 * 10**9), *labels)
    assert ("Run 2 " in again.out, "Run 3 " in again.out) == (False, True)


def test_repair_judges_runs_that_waited_long_enough(tracker, tmp_path):
    """The first run of a workload, of which 2 ranks are expected; one came, long ago."""
    db = tmp_path / "new.db"
    labels = ("--version", "v1", "--workload", "ddp", "--expect-ranks", "2")
    assert "1 of 2 ranks" in tracker("ingest", write_trace(tmp_path / "a.json"), *labels, "--db", db).out
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("UPDATE run SET last_rank_at_ns = 0")
    done = tracker("db", "check", "--repair", "--db", db)
    assert done.out.splitlines()[0] == "1 version judged: no more ranks of their runs are waited for"
    assert "of 2 ranks" not in tracker("board", "--db", db).out


def test_version_of_longer_inputs_did_other_work(memory_store):
    """mm has 80 of 120 ms; with sequences of 3072 instead of 2048 it takes 120 of 160, and nothing else changed."""
    results = []
    for version, size, ns, start in (("v1", 2048, 80_000_000, 0), ("v2", 3072, 120_000_000, 3)):
        mm = ("aten::mm", ns, {"input_shapes": f"[[{size},64],[64,64]]"})
        results = [new_run(run, version, "gpt") for run in made.runs(memory_store, version, start=start, more_ops=[mm])]
    judgement.update(memory_store, judgement.tracks_of(memory_store))
    text = meaning(memory_store, results)
    said = "v2 (3 runs) did other work than v1: 2048 -> 3072 in 1 operator, 1.5 x the elements."
    assert text.splitlines()[0] == f"{said} Its step is not compared."
