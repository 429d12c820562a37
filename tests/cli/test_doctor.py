"""What `tracker doctor` says of places that hold profiles, damaged files, and other things."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.ending import ending
from tests.readers.nsys_databases import kernel as gpu_kernel
from tests.readers.nsys_databases import one_step, span
from tests.readers.nsys_databases import write as write_export
from tests.readers.traces import kernel, launch, op, step, write
from tests.test_documents import write_job
from tracker.doctor import examine
from tracker.doctor.rules import RULES
from tracker.intake import ingest
from tracker.profile import ROW_COLUMNS
from tracker.readers import NAMES
from tracker.store import open_store

DATA = Path(__file__).parents[1] / "data"
ALONE = "nothing else to form a run with"
BASE_NS = 1_700_000_000_000_000_000
EVENTS = [step(1, 0, 100), op("aten::mm", 10, 20), launch(1, 12), kernel("gemm", 20, 30, 1)]


def rank(folder, number, *, world_size=8, start_s=0, name=None, **top):
    """A trace of one step of a rank: one op that launches one kernel."""
    folder.mkdir(parents=True, exist_ok=True)
    said = {"distributedInfo": {"rank": number, "world_size": world_size}, "record_shapes": 0, "with_stack": 0}
    # the name makes each content its own
    events = [*EVENTS, op(f"user_{number}_{start_s}_{name}", 60, 1)]
    when = {"baseTimeNanoseconds": BASE_NS + start_s * 10**9}
    return write(folder, events, name=name or f"rank{number}.pt.trace.json", **said, **when, **top)


def sentences(out, title):
    """The lines below a title, without their indent."""
    lines = out.splitlines()
    start = lines.index(title) + 1
    return [line.strip() for line in lines[start : lines.index("", start)]]


def test_readable_profiles_form_runs_and_end_in_the_command_to_ingest_them(tracker, tmp_path):
    for number in (0, 1, 5):
        rank(tmp_path / "job", number)
    done = tracker("doctor", tmp_path / "job")
    assert (done.code, done.err) == (0, "")
    assert "3 readable captures (torch_profiler, NVIDIA H100 80GB HBM3) can be ingested as 1 run; " in done.out
    run = " ".join(sentences(done.out, "Runs that would form"))
    assert run.startswith("1 run: ranks 0-1, 5 of 8 on NVIDIA H100 80GB HBM3, 1 step (rank0.pt.trace.json, rank1.pt")
    assert run.endswith("distinct ranks, equal world size, one device model, at the same time")
    assert "world size 8, found 3 ranks (0-1, 5), missing 2-4, 6-7" in " ".join(done.out.split())
    assert done.out.endswith(f"\nNext:\n  tracker ingest {tmp_path / 'job'} --version VERSION --workload WORKLOAD\n")


def test_the_command_works_once_its_words_are_filled_in(tracker, tmp_path):
    rank(tmp_path / "job", 0)
    (tmp_path / "job" / "rank1.pt.trace.json").write_text('{"schemaVersion": 1, "traceEvents": [{"ph"')
    command = json.loads(tracker("doctor", tmp_path / "job", "--format", "json").out)["command"]
    words = command.replace("VERSION", "v1").replace("WORKLOAD", "w").split()[1:]
    done = tracker(*words, "--db", tmp_path / "new.db")
    assert (done.code, done.out.splitlines()[0][:10]) == (0, "run 1  w v")


def test_one_bad_file_does_not_stop_the_rest_and_is_not_in_the_command(tracker, tmp_path):
    rank(tmp_path / "good", 0)
    bad = tmp_path / "bad.pt.trace.json"
    bad.write_text('{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X", "cat": "cpu_op", "na')
    done = tracker("doctor", tmp_path, "/no/such/folder")
    assert done.code == 0
    torn, absent = sentences(done.out, "Unreadable")
    assert torn.startswith(f"{bad} [torch_profiler]: ")
    assert absent == "/no/such/folder: no such file or folder; check the path"
    assert f"tracker ingest {tmp_path / 'good'} --version" in ending(done.out)


def test_nothing_readable_is_exit_2_with_the_findings_on_stdout(tracker, tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    done = tracker("doctor", tmp_path)
    assert done.code == 2
    assert done.out.splitlines()[1] == "Nothing here can be ingested: no profile found"
    assert done.err.splitlines() == [
        f"1 file not recognised: {tmp_path / 'notes.txt'} (a text log without profiler rows or step times)",
        f"tracker: {tmp_path}: nothing here can be read; see the findings above",
    ]


def test_a_link_to_itself_is_no_file(tracker, tmp_path):
    link = tmp_path / "rank0.pt.trace.json"
    link.symlink_to(link.name)
    done = tracker("doctor", str(link))
    assert (done.code, done.err) == (2, f"tracker: {link}: nothing here can be read; see the findings above\n")
    assert f"{link}: no such file or folder; check the path" in done.out


def test_two_names_of_one_file_are_one_profile(tracker, tmp_path):
    path = rank(tmp_path, 0)
    (tmp_path / "rank1.pt.trace.json").symlink_to(path)
    (tmp_path / "rank2.pt.trace.json").hardlink_to(path)
    done = tracker("doctor", str(tmp_path))
    assert "1 readable capture (torch_profiler" in done.out


def test_a_claim_by_two_readers_is_said_and_the_rest_is_read(tmp_path, monkeypatch):
    from tracker.readers import ascend_text

    rank(tmp_path, 0)
    both = rank(tmp_path, 1)
    monkeypatch.setattr(ascend_text, "sniff", lambda path, head: path == both)
    found = examine([tmp_path])
    assert [capture.rank for capture in found.captures] == [0]
    assert [failure.problem for failure in found.failures] == ["could be ascend_text or torch_profiler"]
    assert found.failures[0].remedy == "say which with --format"


def test_what_is_missing_has_its_reason_and_what_to_do(tracker, tmp_path, monkeypatch):
    rank(tmp_path / "job", 0, profile_memory=0)
    monkeypatch.setenv("COLUMNS", "200")
    done = tracker("doctor", tmp_path / "job", "--details")
    assert done.out.splitlines()[1].endswith("; communication, memory, memory over time and 3 more will be missing")
    lines = sentences(done.out, "Missing, and why")
    assert "memory, memory over time: profile_memory was off; profile with profile_memory=True" in lines
    assert "communication: no collective lies in the capture; capture at least one whole training step" in lines
    assert any(line.startswith("input shapes of ops: record_shapes was off; profile with record_sh") for line in lines)
    assert any(line.startswith("call stacks of ops: with_stack was off; ") for line in lines)
    assert not any(line.startswith(("kernels", "ops:", "steps")) for line in lines)


def test_many_captures_fit_a_screen_and_details_list_them(tracker, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    for at in range(8):
        rank(tmp_path / f"job{at}", 0, world_size=at + 2, start_s=100 * at, profile_memory=0)
    out = tracker("doctor", tmp_path).out
    assert len(out.splitlines()) <= 40
    assert "… and 3 more\n  --details lists all\n" in out and "and 5 more: --details\n" in out
    assert "job7/rank0.pt.trace.json" in tracker("doctor", tmp_path, "--details").out


def test_a_capture_without_device_activity_is_cpu_only(tmp_path):
    write(tmp_path, [op("aten::mm", 10, 20)], deviceProperties=[])
    (capture,) = examine([tmp_path]).captures
    why = {lack.what: lack.why for lack in capture.lacks}
    assert why["kernels"] == "nothing ran on a device (CPU only)"
    assert why["communication"] == "one process: nothing to exchange"
    assert why["steps"].startswith("there are no step markers")
    assert (capture.device, capture.steps, dict(capture.counts)) == ("cpu", 0, {"ops": 1})


def test_launches_without_kernels_are_told_from_cpu_only(tmp_path):
    write(tmp_path, [op("aten::mm", 10, 20), launch(1, 12)])
    (capture,) = examine([tmp_path]).captures
    (why,) = [lack.why for lack in capture.lacks if lack.what == "kernels"]
    assert why == "kernels were launched, but the profiler recorded nothing on the device"


def test_an_unnamed_device_asks_for_it_in_the_command(tmp_path):
    write(tmp_path, EVENTS, deviceProperties=[])
    found = examine([tmp_path])
    assert "device name" in [lack.what for lack in found.captures[0].lacks]
    assert found.command[-2:] == ("--device", "MODEL")


def test_captures_that_are_no_ranks_of_one_run_say_why(tmp_path):
    rank(tmp_path, 0, name="first.pt.trace.json")
    rank(tmp_path, 0, name="again.pt.trace.json", start_s=60)
    rank(tmp_path, 1, name="later.pt.trace.json", start_s=120)
    reasons = {Path(run.paths[0]).name: run.reason for run in examine([tmp_path]).runs}
    assert reasons["first.pt.trace.json"] == (
        "not with 1 other run: the same rank; not with 1 other run: not at the same time"
    )


def test_the_same_rank_twice_at_the_same_time_is_worth_knowing(tmp_path):
    rank(tmp_path, 0, name="a.pt.trace.json")
    rank(tmp_path, 0, name="b.pt.trace.json")
    notes = examine([tmp_path]).notes
    assert any(note.startswith("rank 0 is there twice at the same time: ") for note in notes)


def test_files_without_a_rank_may_be_ranks_of_one_job_only_where_they_ran_at_once(tmp_path):
    for name, start_s in (("a", 0), ("b", 0), ("c", 60)):
        events = [*EVENTS, op(name, 60, 1)]
        write(tmp_path, events, name=f"{name}.pt.trace.json", baseTimeNanoseconds=BASE_NS + start_s * 10**9)
    (note,) = examine([tmp_path]).notes
    assert note.startswith("2 files that ran at the same time name no rank")
    (tmp_path / "b.pt.trace.json").unlink()
    assert not examine([tmp_path]).notes


def test_a_file_of_several_devices_that_names_no_rank_has_a_rank_for_each(tmp_path):
    """As an export of nsys profile around a job of two GPUs, before a change and after it."""
    for number, name in enumerate(("before", "after")):
        tables = one_step()
        tables["CUPTI_ACTIVITY_KIND_KERNEL"] += [gpu_kernel("gemm", 600 + number, 650, 9, process=8, device=1)]
        tables["NVTX_EVENTS"] += [span("iteration 17", 500, 700, process=8)]
        write_export(tmp_path / f"{name}.sqlite", tables)
    runs = examine([tmp_path]).runs
    why = (
        "the file does not say which rank it is: its 2 devices are the ranks of one run; where other files are "
        "of the same job, ingest them with --as-run"
    )
    assert [(run.ranks, run.reason) for run in runs] == [((0, 1), why)] * 2
    assert [run.reason for run in examine([tmp_path / "before.sqlite"]).runs] == ["one file"]


def test_parts_in_one_folder_are_a_failure_of_the_first(tmp_path):
    """Each is a folder of many files: the error names the folder, which is none of the files."""
    source = DATA / "ascend_text" / "worker-1_4711_20250109073443012_ascend_pt"
    for number, (seconds, kernel_type) in enumerate((("1700000000", "MatMulV2"), ("1700000005", "Softmax"))):
        folder = tmp_path / f"node-1_41_2025010907344301{number}_ascend_pt"
        shutil.copytree(source, folder)
        for path in folder.rglob("*.*"):
            if path.is_file():
                text = path.read_text().replace("1700000000", seconds).replace("MatMulV2", kernel_type)
                path.write_text(text.replace("Cast", f"Cast{number}"))
    examined = examine([tmp_path])
    assert [run.ranks for run in examined.runs] == [(3,)]
    (failure,) = examined.failures
    assert "few kernels in common: they are parts of one job" in failure.problem


def test_a_copy_of_a_profile_is_taken_once(tmp_path):
    first = rank(tmp_path, 0, name="a.pt.trace.json")
    copy = tmp_path / "copy.pt.trace.json"
    copy.write_bytes(first.read_bytes())
    found = examine([tmp_path, first])
    assert len(found.runs) == 1
    assert f"{copy} holds the same as {first}: ingest takes it once" in found.notes


def test_files_that_look_like_profiles_are_counted_and_others_passed_over(tmp_path):
    rank(tmp_path, 0)
    for number in range(30):
        (tmp_path / f"report{number:02}.ncu-rep").write_bytes(b"\0" * 100)
        (tmp_path / f"notes{number:02}.txt").write_text("hello")
    (tmp_path / "large.csv").write_text("a,b\n" * 20_000)
    found = examine([tmp_path])
    reports = next(kind for kind in found.unclaimed if kind.kind == "report of Nsight Compute")
    assert (reports.count, reports.bytes, len(reports.examples)) == (30, 3000, 3)
    assert "whole steps" in reports.remedy
    assert next(kind for kind in found.unclaimed if kind.kind == "large CSV").count == 1
    assert found.passed_over == 30


def test_a_capture_that_was_never_parsed_says_how_to_parse_it(tmp_path):
    (tmp_path / "PROF_1" / "device_0").mkdir(parents=True)
    (tmp_path / "PROF_1" / "device_0" / "a.bin").write_bytes(b"\0" * 50)
    (failure,) = examine([tmp_path]).failures
    assert failure.path == str(tmp_path / "PROF_1")
    assert "msprof --export=on" in failure.remedy


def test_json_is_one_document_with_everything(tracker, tmp_path):
    rank(tmp_path / "job", 3)
    found = json.loads(tracker("doctor", tmp_path / "job", "--format", "json").out)
    assert (found["schema"], found["captures"][0]["rank"], found["captures"][0]["world_size"]) == (1, 3, 8)
    assert found["captures"][0]["counts"] == {"ops": 2, "kernels": 1, "host API calls": 1}
    assert found["captures"][0]["started_at_ns"] == BASE_NS
    assert found["runs"][0]["missing_ranks"] == [0, 1, 2, 4, 5, 6, 7]


def test_a_single_file_that_no_reader_knows_is_named(tracker, tmp_path):
    (tmp_path / "a.json").write_text('{"a": 1}')
    done = tracker("doctor", tmp_path / "a.json")
    assert done.code == 2
    assert f"1 x file that was named, 8 B ({tmp_path / 'a.json'}): no reader knows it" in done.out


@pytest.mark.parametrize("name", NAMES)
def test_every_reader_is_covered(name):
    found = examine([DATA / name])
    # a pack tells of the format that was packed
    assert {capture.format for capture in found.captures} == {"torch_profiler" if name == "pack" else name}
    assert not found.failures
    assert found.command[:2] == ("tracker", "ingest")


def test_every_table_that_can_stay_empty_has_a_rule():
    covered = {table for rule in RULES for table in rule.tables}
    assert set(ROW_COLUMNS) <= covered


ASCEND = DATA / "ascend_text" / "worker-1_4711_20250109073443012_ascend_pt"


def ascend_lacks(folder, *absent, **settings):
    """Why what stays empty, of a capture of torch_npu without some of its files and with these settings."""
    shutil.copytree(ASCEND, folder / ASCEND.name)
    for name in absent:
        (folder / ASCEND.name / "ASCEND_PROFILER_OUTPUT" / name).unlink()
    (info,) = (folder / ASCEND.name).glob("profiler_info*.json")
    said = json.loads(info.read_text())
    said["config"]["common_config"] |= settings
    info.write_text(json.dumps(said))
    (capture,) = examine([folder]).captures
    return {lack.what: f"{lack.why}; {lack.remedy}" for lack in capture.lacks}


def test_what_was_on_when_files_are_missing_is_not_asked_for_again(tmp_path):
    on = {"record_shapes": True, "profile_memory": True, "activities": ["ProfilerActivity.CPU"]}
    absent = ("trace_view.json", "operator_memory.csv", "memory_record.csv")
    found = ascend_lacks(tmp_path, *absent, **on)
    copied = "of ASCEND_PROFILER_OUTPUT with the other files"
    assert found["ops"].endswith(f"; copy trace_view.json {copied}")
    memory = f"profile_memory was on, but the profile holds no allocations; copy operator_memory.csv {copied}"
    assert found["memory"] == memory
    assert found["memory over time"].endswith(f"; copy memory_record.csv {copied}")
    assert "input shapes of ops" not in found, "there are no ops"


def test_a_capture_without_counters_is_not_said_to_be_of_a_format_without_them(tmp_path):
    shutil.copy(DATA / "ascend_text" / "oldest" / "kernel_details.csv", tmp_path)
    (capture,) = examine([tmp_path]).captures
    found = {lack.what: lack.why for lack in capture.lacks}
    assert found["counters"] == "the profile holds no other tables or measurements"
    assert "ops" not in capture.counts, "a row for kernels without an op is no op"


def test_a_job_of_unknown_size_is_not_said_to_be_one_process(tmp_path):
    (capture,) = examine([DATA / "ascend_text" / "bare" / "trace_view.json"]).captures
    found = {lack.what: lack.why for lack in capture.lacks}
    assert (capture.rank, capture.world_size) == (None, None)
    assert found["communication"] == "no collective lies in the capture"


def test_communication_of_which_only_the_sum_is_known_is_not_said_to_be_none():
    (capture,) = examine([DATA / "paddle_summary" / "gpu.txt"]).captures
    found = {lack.what: lack.why for lack in capture.lacks}
    assert found["communication"] == "the profile sums up its communication and names no collectives"


def test_every_rule_has_a_cause_for_everything():
    for rule in RULES:
        assert rule.causes[-1].when.__name__ == "_always", rule.what


def test_many_commands_are_the_first_one_on_a_first_screen(tracker, tmp_path):
    for name in ("v1", "v2", "v3"):
        rank(tmp_path / name, 0)
    following = tracker("doctor", tmp_path).out.partition("\nNext:\n")[2].splitlines()
    assert following == [
        f"  tracker ingest {tmp_path / 'v1'} --version v1 --workload WORKLOAD",
        f"  tracker doctor {tmp_path} --details",
    ]
    assert tracker("doctor", tmp_path, "--details").out.partition("\nNext:\n")[2].count("tracker ingest") == 3


def test_folders_that_count_the_runs_of_a_version_are_one_version(tracker, tmp_path):
    for number in (1, 2, 3):
        rank(tmp_path / f"run{number}", 0, start_s=600 * number)
    out = tracker("doctor", tmp_path).out
    assert out.endswith(f"\nNext:\n  tracker ingest {tmp_path} --version VERSION --workload WORKLOAD\n")


def test_doctor_makes_no_database(tracker, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "none.db"))
    rank(tmp_path / "job", 0)
    tracker("doctor", tmp_path / "job")
    assert not (tmp_path / "none.db").exists()


def test_files_that_name_workload_and_version_need_no_more_words_in_the_command(tracker):
    done = tracker("doctor", DATA / "training_log" / "A100_LOG")
    assert done.out.endswith(f"\nNext:\n  tracker ingest {DATA / 'training_log' / 'A100_LOG'}\n")
    assert "the files name their workload and version: toy (2 versions)" in done.out


def test_a_report_of_nsys_beside_its_export_needs_nothing(tmp_path):
    (tmp_path / "run1.nsys-rep").write_bytes(b"report")
    shutil.copy(DATA / "nsys_sqlite" / "one_step.sqlite", tmp_path / "run1.sqlite")
    found = examine([tmp_path])
    assert not found.failures
    assert [(kind.kind, kind.count) for kind in found.unclaimed] == [("report of Nsight Systems", 1)]


def test_a_log_beside_a_summary_is_of_the_same_job(tmp_path):
    shutil.copy(DATA / "training_log" / "timer_only.txt", tmp_path)
    shutil.copy(DATA / "paddle_summary" / "cpu.txt", tmp_path)
    found = examine([tmp_path])
    assert [run.reason for run in found.runs] == ["timer_only.txt beside it is of the same job; " + ALONE]
    assert not [note for note in found.notes if "beside each other" in note]


def test_two_logs_beside_a_summary_may_be_of_other_jobs(tmp_path):
    timer = (DATA / "training_log" / "timer_only.txt").read_text()
    (tmp_path / "timer_a.txt").write_text(timer)
    (tmp_path / "timer_b.txt").write_text(timer + "\n")
    shutil.copy(DATA / "paddle_summary" / "cpu.txt", tmp_path)
    (note,) = [note for note in examine([tmp_path]).notes if "beside each other" in note]
    assert note.startswith(f"{tmp_path}: files of paddle_summary and training_log lie beside each other")
    assert note.endswith("--input-format paddle_summary chooses one of them")


def test_a_summary_of_several_steps_has_as_many_as_an_ingest_counts(tmp_path):
    summary = DATA / "paddle_summary" / "cpu.txt"
    with open_store("sqlite://") as store:
        (result,) = ingest(store, [summary], version="v1", workload="w")
    (capture,) = examine([summary]).captures
    assert capture.steps == result.steps > 1


def test_kernels_that_a_summary_does_not_print_are_no_sign_of_a_run_on_the_cpu(tmp_path):
    text = (DATA / "paddle_summary" / "gpu.txt").read_text()
    start = text.index("Operator Summary")
    (tmp_path / "summary.txt").write_text(text[: text.rindex("\n", 0, start)] + "\n")
    (capture,) = examine([tmp_path]).captures
    (lack,) = [lack for lack in capture.lacks if lack.what == "kernels"]
    assert lack.why == "the text holds no table of them"
    assert "Profiler.summary()" in lack.remedy


def test_without_a_path_it_names_stored_runs_that_may_be_of_one_job(tracker, tmp_path):
    write_job(tmp_path / "job", step_ms=50, names=("a.log", "b.log"))
    tracker("ingest", tmp_path / "job", "--version", "v1", "--workload", "toy")
    out = tracker("doctor").out
    assert f"  {tmp_path / 'job'}: run:1 (log), run:2 (log), run:3 (trace): 2 logs\n" in out
    (apart,) = json.loads(tracker("doctor", "--format", "json").out)["runs_apart"]
    assert apart["run_ids"] == [1, 2, 3]
    tracker("runs", "exclude", "1", "2", "--reason", "of another job")
    assert tracker("doctor").out.endswith("no stored runs of one folder may be of one job and count apart\n")
