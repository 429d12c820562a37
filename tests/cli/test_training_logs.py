"""Training logs at the command line: what is said of a step that nobody splits, and what is not."""

from __future__ import annotations

import json

import pytest

LINE = (
    "[2026-11-10 10:{minute:02d}:00] iteration {step:8d}/     200 | elapsed time per iteration (ms): {ms:.1f} |"
    " throughput per GPU (TFLOP/s/GPU): {tflops:.1f} | global batch size:   256 |"
)


def megatron_log(path, ms, every=10):
    """20 intervals of 10 steps; the first one compiles and takes ten times as long."""
    times = [10 * ms, *[ms + 0.5 * (at % 3) for at in range(19)]]
    lines = [
        LINE.format(minute=at, step=every * (at + 1), ms=time, tflops=150_000 / time) for at, time in enumerate(times)
    ]
    path.write_text("using world size: 8, data-parallel-size: 8\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture
def logs(tmp_path):
    """A job of 1,000 ms a step, and one of 1,100."""
    return megatron_log(tmp_path / "before.log", 1000.0), megatron_log(tmp_path / "after.log", 1100.0)


def test_the_steps_of_a_log_are_those_that_its_intervals_average_over(tracker, logs):
    done = tracker("show", logs[0])
    # without the first of 20 intervals of 10 steps
    assert "190 steps" in done.out
    assert "TFLOP/s per rank" in done.out
    # nothing in it has a share of the step
    assert "of step" not in done.out


def test_a_diff_of_two_logs_says_once_that_nobody_splits_the_step(tracker, logs):
    text = tracker("diff", *logs).out
    assert "10.0 % slower" in text
    assert "190 steps a run" in text
    assert "  TFLOP/s per rank  " in text
    assert "samples" not in text
    assert text.count("measured without a profiler") == 1
    assert "does not report all times" not in text
    assert "\n  cause " not in text


def test_what_a_rank_makes_is_not_compared_with_what_the_job_makes(tracker, tmp_path):
    ranks, job = tmp_path / "ranks.log", tmp_path / "job.log"
    line = "global_step: {step}, interval_runtime: 10.0, interval_{what}: {rate}, interval_steps_per_second: 1.0"
    for path, what in ((ranks, "tokens_per_second_per_device"), (job, "samples_per_second")):
        rows = [line.format(step=10 * at, what=what, rate=1000.0) for at in range(1, 21)]
        path.write_text("[INFO] paddlenlp trainer\n" + "\n".join(rows) + "\n")
    rows = json.loads(tracker("diff", ranks, job, "--format", "json").out)["overall"]
    assert "samples_per_second" not in {row["metric"] for row in rows}


def test_a_finding_of_a_log_does_not_guess_where_its_time_went(tracker, tmp_path):
    db = tmp_path / "tracker.db"
    for version, ms in (("v1", 1000.0), ("v2", 1000.2), ("v3", 1200.0)):
        for run in range(3):
            log = megatron_log(tmp_path / f"{version}-{run}.log", ms + 0.3 * run)
            assert tracker("ingest", log, "--version", version, "--workload", "gpt", "--db", db).code == 0
    text = tracker("findings", "--db", db).out
    assert "REGRESSED in v3" in text
    assert "idle" not in text
    # the sentence ends behind the change: it names no parts
    (sentence,) = [line for line in text.splitlines() if line.startswith("  Step ")]
    assert sentence.endswith(", +20.0 %).")


def test_advice_on_a_log_says_why_it_knows_no_operator(tracker, logs):
    assert "no profiler ran. A profiler's trace has them." in tracker("advise", logs[0]).out


def test_logs_of_several_ranks_show_the_course_of_one_and_no_slow_rank(tracker, tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(4):
        megatron_log(folder / f"train_rank{rank}.log", 1000.0 + 100 * (rank == 2))
    shown = tracker("show", folder).out
    assert "Course of rank 0; left out and timers: means of 4 ranks" in shown
    assert "190 steps" in shown
    compared = tracker("cluster", folder).out
    assert "measured without a profiler, a step holds the waiting for other ranks too" in compared
    assert "SLOW" not in compared


def guessed_log(folder, version, run, ms):
    """A log of a program that no grammar knows; each names another time, as each has its own noise."""
    path = folder / f"{version}-{run}.log"
    path.write_text("\n".join(f"step {step} took {ms + run + step % 3}.5 ms" for step in range(10, 210, 10)) + "\n")
    return path


@pytest.fixture
def guessed_logs(tracker, tmp_path):
    """Two versions of two runs each, the second 20 % slower; returns what the last ingest said."""
    for version, ms in (("v1", 1000), ("v2", 1200)):
        for run in (1, 2):
            path = guessed_log(tmp_path, version, run, ms)
            done = tracker("ingest", path, "--version", version, "--workload", "w")
    return done


def test_guessed_times_promise_no_verdict_by_more_runs(tracker, guessed_logs):
    assert (
        "v2 (2 runs) is not compared with v1: its times are a guess, which tracker ingest --again" in guessed_logs.out
    )
    screens = [
        tracker("diff", "v1", "v2", "--fail-on", "new"), tracker("diff", "run:1", "run:3"),
        tracker("findings", "--fail-on", "new"), tracker("history", "step"), tracker("board"),
    ]  # fmt: skip
    for done in screens:
        assert " more run" not in done.out + done.err
        assert "too few runs" not in done.out + done.err
        assert "0 of 0" not in done.out
        assert done.out.count("read as: ") == 1
    assert [done.code for done in screens] == [4, 0, 4, 0, 0]
    assert "exit 4, Not judged, however many runs there are: the times of v1 and v2 are a guess" in screens[0].err
    assert "v2: the step has no verdict: its times are a guess" in screens[2].err


def test_version_after_a_guessed_one_says_whose_times_are_a_guess(tracker, guessed_logs, tmp_path):
    named = ("--input-format", "training_log")
    done = tracker("ingest", guessed_log(tmp_path, "v3", 1, 1300), "--version", "v3", "--workload", "w", *named)
    assert "v3 (1 run) is not compared with v2: the times before are a guess" in done.out
    assert "the times of v2 are a guess" in tracker("diff", "v2", "v3").out.replace("\n", " ")
    tracker("ingest", "--again", *named)
    assert "read as: " not in tracker("diff", "v1", "v2").out


def test_guessed_logs_of_two_forms_each_say_how_they_were_read(tracker, tmp_path):
    lines = {"v1": "took 1000.5 ms", "v2": "at 0.83 it/s"}
    for version, end in lines.items():
        text = "".join(f"step {step} {end}\n" for step in range(10, 210, 10))
        (tmp_path / f"{version}.log").write_text(text)
    shown = tracker("diff", tmp_path / "v1.log", tmp_path / "v2.log").out.replace("\n", " ")
    assert "v1.log: read as: milliseconds per step from '... took 1000.5 ms'" in shown
    assert "v2.log: read as: steps per second from '... at 0.83 it/s'" in shown


def test_files_with_guessed_times_are_judged_when_named(tracker, tmp_path):
    files = [guessed_log(tmp_path, version, 1, ms) for version, ms in (("v1", 1000), ("v2", 1200))]
    assert "--input-format training_log confirms." in tracker("diff", *files).out.replace("\n", " ")
    assert "a verdict needs 2 more runs" in tracker("diff", *files, "--input-format", "training_log").out


def rounded_log(folder, version, run, ms, rate):
    """MindFormers prints the time in whole ms: 12 ms are known to 4.2 %."""
    path = folder / f"{version}-{run}.log"
    lines = [
        f"{{ Epoch:[ 1/ 1], step:[{step}/ 400], loss: 11.{run}, per_step_time: {ms}ms, lr: 1.0e-05, "
        f"overflow cond: False, train_throughput_per_npu: {rate + (step + run) % 3 / 10:.1f}T }}"
        for step in range(10, 310, 10)
    ]  # fmt: skip
    path.write_text("\n".join(lines) + "\n")
    return path


def test_findings_are_as_sure_of_a_rounded_step_as_the_diff(tracker, tmp_path):
    """12 ms and 13 ms may be 12.4 and 12.6; the throughput beside them knows that it fell by 6 %."""
    for version, ms, rate in (("v1", 12, 200.0), ("v2", 13, 188.0)):
        for run in range(3):
            path = rounded_log(tmp_path, version, run, ms, rate)
            done = tracker("ingest", path, "--version", version, "--workload", "w")
    assert "v2 (3 runs): step +8.3 % against v1, INCONCLUSIVE (known to 4.2 % only)." in done.out
    assert "v2 may be 8.3 % slower than v1" in tracker("diff", "v1", "v2").out
    found = tracker("findings").out.replace("\n", " ")
    assert "New in v2: the step may be 8.3 % slower, 12.00 -> 13.00 ms per step (no finding itself)" in found
