"""What logs do to their readers: resumes, evaluations, epochs, stalls, damage, size."""

from __future__ import annotations

import gzip
import json
import struct
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tracker import readers
from tracker.errors import SourceError
from tracker.profile import Capture, Profile
from tracker.readers import training_log
from tracker.readers.training_log.events import crc32c


def log(folder: Path, lines: Sequence[str], name: str = "train.log") -> Path:
    path = folder / name
    path.write_text("\n".join([*lines, ""]))
    return path


def read(path: Path) -> Profile:
    assert readers.claim(path) == "training_log"
    return training_log.read(path)


def times_ms(capture: Capture) -> dict[int, float]:
    assert capture.rows is not None
    return {row.step: round((row.breakdown.duration_ns or 0) / 1e6, 1) for row in capture.rows.steps}


def counters(capture: Capture) -> dict[str, float]:
    assert capture.rows is not None
    table = capture.rows.tables["counter"]
    return dict(zip(table["name"], table["mean"].tolist(), strict=True))


def nano(step: int, ms: float) -> str:
    return f"iter {step}: loss 3.6700, time {ms:.2f}ms, mfu 2.23%"


def megatron(step: int, ms: float, skipped: int = 0) -> str:
    return (
        f" iteration {step:8}/  500 | consumed samples: 64 | elapsed time per iteration (ms): {ms:.1f} | global batch "
        f"size:    64 | number of skipped iterations:   {skipped} | number of nan iterations:   0 |"
    )


def test_warm_up_is_every_slow_interval_at_the_start(tmp_path: Path):
    profile = read(log(tmp_path, [nano(step, ms) for step, ms in enumerate([28622, 14611, 1152, *[435.0] * 9], 1)]))
    assert list(times_ms(profile.captures[0])) == [4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert counters(profile.captures[0])["left out: warm-up"] == pytest.approx((28622 + 14611 + 1152) / 3)
    assert profile.warnings == ("of 12 intervals the median leaves out 3 of warm-up",)


def test_faster_start_is_no_warm_up_but_for_its_first_interval(tmp_path: Path):
    capture = read(log(tmp_path, [nano(step, 100 + step) for step in range(10, 110, 10)])).captures[0]
    assert list(times_ms(capture)) == list(range(20, 110, 10))


def test_slow_interval_without_a_reason_stays(tmp_path: Path):
    times = [100.0] * 30
    times[12] = times[20] = 1000.0
    profile = read(log(tmp_path, [nano(step, ms) for step, ms in enumerate(times, 1)]))
    capture = profile.captures[0]
    assert times_ms(capture)[13] == 1000.0
    assert counters(capture)["stalls (above 3 medians)"] == 2
    assert "2 intervals took more than 3 times the median, up to 1,000.00 ms a step: at 13, 21" in profile.warnings


def test_first_of_two_intervals_is_warm_up_and_the_only_one_is_not(tmp_path: Path):
    assert times_ms(read(log(tmp_path, [nano(10, 900.0)])).captures[0]) == {10: 900.0}
    assert times_ms(read(log(tmp_path, [nano(10, 900.0), nano(20, 100.0)])).captures[0]) == {20: 100.0}


def test_of_few_intervals_the_first_alone_is_warm_up(tmp_path: Path):
    """Of 900, 300, 100 and 100 ms a longer log would leave out the 300, too."""
    lines = [nano(step, ms) for step, ms in ((10, 900.0), (20, 300.0), (30, 100.0), (40, 100.0))]
    assert times_ms(read(log(tmp_path, lines)).captures[0]) == {20: 300.0, 30: 100.0, 40: 100.0}


def test_evaluation_inside_the_time_of_a_step_is_left_out(tmp_path: Path):
    lines = [nano(step, 100.0) for step in range(1, 20)]
    lines[10:10] = ["step 11: train loss 0.8905, val loss 0.9847", "saving checkpoint to out"]
    lines[12] = nano(11, 31799.67)
    capture = read(log(tmp_path, lines)).captures[0]
    assert 11 not in times_ms(capture)
    assert counters(capture)["left out: evaluation or checkpoint"] == pytest.approx(31799.67)


def test_skipped_steps_are_left_out(tmp_path: Path):
    lines = [megatron(step, 50.0 if step == 8 else 100.0, skipped=int(step == 8)) for step in range(1, 20)]
    assert set(times_ms(read(log(tmp_path, lines)).captures[0])) == {4, 5, 6, 7, *range(9, 20)}


def test_resumed_training_counts_steps_as_they_were_done_last(tmp_path: Path):
    first = [nano(step, 100.0) for step in range(1, 21)]
    again = [nano(step, 200.0) for step in range(16, 31)]
    profile = read(log(tmp_path, [*first, "restarting", *again]))
    times = times_ms(profile.captures[0])
    assert (times[15], times[17], max(times)) == (100.0, 200.0, 30)
    assert 16 not in times  # the first one behind a start warms up
    assert "the training was resumed 1 time; 5 intervals of steps done again count once" in profile.warnings


def test_training_appended_to_another_one_counts_alone(tmp_path: Path):
    first = [nano(step, 100.0) for step in range(1, 31)]
    second = [nano(step, 300.0) for step in range(1, 21)]
    profile = read(log(tmp_path, [*first, *second]))
    assert set(times_ms(profile.captures[0]).values()) == {300.0}
    assert "the log holds 2 trainings, one appended to the other; the last one counts" in profile.warnings


def test_cumulative_time_that_begins_again_is_no_negative_step(tmp_path: Path):
    lines = [f"step:{step}/99 train_time:{20000 + 140 * step}ms step_avg:nanms" for step in range(1, 11)]
    lines += [f"step:{step}/99 train_time:{150 * (step - 10)}ms step_avg:150.00ms" for step in range(11, 40)]
    times = times_ms(read(log(tmp_path, lines)).captures[0])
    assert set(times.values()) == {150.0}
    assert min(times) == 12


def test_slow_steps_in_a_row_are_a_window(tmp_path: Path):
    noise = np.random.default_rng(1).normal(0, 1, 400)
    times = [(130 if 200 <= at < 280 else 100) + noise[at] for at in range(400)]
    profile = read(log(tmp_path, [nano(step, ms) for step, ms in enumerate(times, 1)]))
    (said,) = [warning for warning in profile.warnings if "slower than the others" in warning]
    assert said.startswith("steps 201 to 280 were 29.")
    numbers = counters(profile.captures[0])
    assert (numbers["slow window, first step"], numbers["slow window, last step"]) == (201, 280)


def test_window_begins_with_the_first_step_of_its_first_interval(tmp_path: Path):
    """Lines every 100 steps: the line of step 1,100 is about steps 1,001 to 1,100."""
    lines = [megatron(step, 800.0 if 1000 < step <= 2000 else 500.0 + step % 3) for step in range(100, 6001, 100)]
    numbers = counters(read(log(tmp_path, lines)).captures[0])
    assert (numbers["slow window, first step"], numbers["slow window, last step"]) == (1001, 2000)


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_is_no_window(tmp_path: Path, seed: int):
    times = 100 + np.random.default_rng(seed).normal(0, 8, 300)
    profile = read(log(tmp_path, [nano(step, ms) for step, ms in enumerate(times, 1)]))
    assert not [warning for warning in profile.warnings if "slower than the others" in warning]


def test_many_intervals_are_stored_joined_and_quantiles_are_of_all(tmp_path: Path):
    times = [100.0 if step % 10 else 200.0 for step in range(1, 25_001)]
    profile = read(log(tmp_path, [nano(step, ms) for step, ms in enumerate(times, 1)]))
    capture = profile.captures[0]
    assert capture.rows is not None
    assert len(capture.rows.steps) <= 20_000
    assert sum(row.steps for row in capture.rows.steps) == 24_998
    numbers = counters(capture)
    assert (numbers["step time p50"], numbers["step time p99"]) == (100.0, 200.0)
    assert any("quantiles, jitter and stalls are of all intervals" in warning for warning in profile.warnings)


def test_first_step_line_may_stand_behind_the_first_mebibyte(tmp_path: Path):
    noise = ["a line of a start that says much and states no speed"] * 20_000
    lines = [nano(step, 100.0) for step in range(1, 20)]
    assert len(times_ms(read(log(tmp_path, [*noise, *lines])).captures[0])) == 17
    path = log(tmp_path, [*noise, *lines, *noise], name="between.log")
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(path)
    (capture,) = training_log.read(path).captures  # where the format is named all of it is searched
    assert len(times_ms(capture)) == 17


def test_line_of_ten_megabytes_is_passed_over(tmp_path: Path):
    lines = [nano(step, 100.0) for step in range(1, 20)]
    lines.insert(10, "x" * 10_000_000)
    profile = read(log(tmp_path, lines))
    assert len(times_ms(profile.captures[0])) == 17
    assert "1 line of more than 1 MiB passed over" in profile.warnings


def test_lines_of_several_ranks_are_those_of_the_first(tmp_path: Path):
    lines = [f"[rank{rank}]: {nano(step, 100.0 + rank)}" for step in range(1, 20) for rank in (3, 1)]
    profile = read(log(tmp_path, lines))
    assert set(times_ms(profile.captures[0]).values()) == {101.0}
    assert "2 ranks report the speed; the steps are those of rank 1" in profile.warnings


def test_running_mean_is_no_interval(tmp_path: Path):
    times = [0.5] * 20 + [1.0] * 20
    means = np.cumsum(times) / np.arange(1, 41)
    lines = [
        f"[11/17 15:16:55] d2.utils.events INFO:  eta: 1:12:09  iter: {step * 20 - 1}  total_loss: 0.3992  "
        f"time: {mean:.4f}  data_time: 0.0717  lr: 0.0004  max_mem: 11811M"
        for step, mean in enumerate(means, 1)
    ]
    found = list(times_ms(read(log(tmp_path, lines)).captures[0]).values())
    assert found[5] == pytest.approx(500.0, rel=0.02)
    assert found[-1] == pytest.approx(1000.0, rel=0.02)


@pytest.mark.parametrize("damage", ["1e308", "99999999999999999999999", "0.00", "nan", "inf"])
def test_time_that_cannot_be_is_no_interval(tmp_path: Path, damage: str):
    lines = [nano(step, 100.0) for step in range(1, 20)]
    lines[10] = lines[10].replace("time 100.00", f"time {damage}")
    assert list(times_ms(read(log(tmp_path, lines)).captures[0])) == [*range(3, 11), *range(12, 20)]


@pytest.mark.parametrize("name", ["notes.md", "train.py", "bench.ipynb"])
def test_document_with_lines_of_a_log_is_read_only_when_named(tmp_path: Path, name: str):
    path = log(tmp_path, [nano(step, 100.0) for step in range(1, 20)], name=name)
    with pytest.raises(SourceError, match="a document with lines of a training log; --input-format training_log"):
        readers.claim(path)
    assert len(times_ms(training_log.read(path).captures[0])) == 17


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\0\1\2\3" * 500, "is binary, no log"),
        (b"s:0 trl:11.0091 lr:0.000001 norm:15.37\n" * 9, "no times in it: a log of llm.c with losses only"),
        (b"{'loss': 0.8, 'learning_rate': 2e-05, 'epoch': 0.1}\n" * 9, "no times in it: a log of Hugging Face Trainer"),
        (b"hello\n", "no line says how fast the training was"),
        (b'{"log_history": [{"step": 10, "loss": 1.0}]}', "no times in it"),
        (b'{"time info": [12.5, ', "is no whole JSON"),
    ],
)
def test_what_holds_no_speed_is_one_clear_error(tmp_path: Path, content: bytes, problem: str):
    path = tmp_path / "train.log"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=problem):
        training_log.read(path)


@pytest.mark.parametrize("text", ['{"a":1},' * 30_000, '{"eta_seconds": 1},' * 12_000], ids=["objects", "with a key"])
def test_json_in_one_line_is_passed_over_at_once(tmp_path: Path, text: str):
    """A head that looks ahead to the end of the line from each brace took minutes for a mebibyte."""
    path = tmp_path / "annotations.json"
    path.write_text(f"[{text[:-1]}]")
    began = time.process_time()
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.find(path)
    assert time.process_time() - began < 5


def test_number_that_is_none_is_left_out(tmp_path: Path):
    lines = [nano(step, 435.0) for step in range(1, 9)]
    lines[5] = lines[5].replace("435.00", "435.00.1")
    assert set(times_ms(read(log(tmp_path, lines)).captures[0]).values()) == {435.0}


def test_step_number_that_no_computer_can_hold_is_one_clear_error(tmp_path: Path):
    lines = [megatron(step, 500.0) for step in (1, 2, 3, 10**12, 10**12 + 1)]
    with pytest.raises(SourceError, match="step 1000000000001 begins"):
        training_log.read(log(tmp_path, lines))


def test_of_appended_trainings_the_batch_of_the_last_one_counts(tmp_path: Path):
    lines = [
        megatron(step, 500.0).replace("size:    64", f"size:    {size}") for size in (64, 128) for step in range(1, 9)
    ]
    profile = read(log(tmp_path, lines))
    assert profile.captures[0].configuration["global_batch_size"] == "128"
    assert not any("batch size changes" in text for text in profile.warnings)  # not within the one that counts


@pytest.mark.parametrize(
    ("name", "rank"), [("workerlog.3", 3), ("rank_2.log", 2), ("qwen_lora_rank64.log", None), ("rerank_8b.log", None)]
)
def test_rank_in_the_name_is_a_word_of_its_own(tmp_path: Path, name: str, rank: int | None):
    lines = [nano(step, 435.0) for step in range(1, 9)]
    assert read(log(tmp_path, lines, name)).captures[0].rank == rank


def test_compressed_log_is_read_like_the_plain_one(tmp_path: Path):
    path = log(tmp_path, [nano(step, 100.0) for step in range(1, 20)])
    packed = tmp_path / "packed.log.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert times_ms(read(packed).captures[0]) == times_ms(read(path).captures[0])


def test_older_name_of_the_format_still_reads(tmp_path: Path):
    path = log(tmp_path, [nano(step, 100.0) for step in range(1, 20)])
    (found,) = readers.find(path, "paddle_log")
    assert len(readers.read(found).captures[0].rows.steps) == 17


def test_tokens_by_a_clock_of_whole_seconds_are_those_of_the_step_time(tmp_path: Path):
    """1,000 tokens a step of 0.7 s are 1,429 a second; by single differences of 0 s and 1 s they were 1,000."""
    clocks = {step: divmod(step * 7 // 10, 60) for step in range(1, 201)}
    lines = [
        f'{{"current_steps": {step}, "total_steps": 999, "elapsed_time": "0:{minutes:02}:{seconds:02}", '
        f'"total_tokens": {step * 1000}}}'
        for step, (minutes, seconds) in clocks.items()
    ]
    rows = read(log(tmp_path, lines, "trainer_log.jsonl")).captures[0].rows
    assert rows is not None
    rates = [row.breakdown.samples_per_second for row in rows.steps if row.breakdown.samples_per_second]
    assert float(np.median(rates)) == pytest.approx(1000 / 0.7, rel=0.02)


def test_first_line_of_a_time_since_the_start_is_about_all_steps_before_it(tmp_path: Path):
    """Step 20 after 20 s, then 10 steps in 10 s each: 1 s a step from the first line on."""
    lines = [
        f'{{"current_steps": {step}, "total_steps": 999, "elapsed_time": "0:00:{step:02}", "total_tokens": {step}}}'
        for step in range(20, 60, 10)
    ]
    assert set(times_ms(read(log(tmp_path, lines, "trainer_log.jsonl")).captures[0]).values()) == {1000.0}


def mllog(milliseconds: int, key: str, value: object, **metadata: int) -> str:
    record = {"namespace": "", "time_ms": 1_700_000_000_000 + milliseconds, "key": key, "value": value}
    return f":::MLLOG {json.dumps(record | {'metadata': metadata})}"


def test_blocks_shorter_than_a_batch_have_a_number_each(tmp_path: Path):
    lines = [mllog(0, "global_batch_size", 1024)]
    for block in range(6):
        lines += [
            mllog(1000 * block, "block_start", None, samples_count=256 * block),
            mllog(1000 * block + 900, "block_stop", None, samples_count=256 * (block + 1)),
        ]
    capture = training_log.read(log(tmp_path, lines)).captures[0]
    assert capture.rows is not None
    numbers = [row.step for row in capture.rows.steps]
    assert len(set(numbers)) == len(numbers) > 0


def test_of_files_that_one_program_writes_one_is_read(tmp_path: Path):
    (tmp_path / "trainer_log.jsonl").write_text(
        "\n".join(f'{{"current_steps": {n}, "total_steps": 99, "elapsed_time": "0:0{n}:00"}}' for n in range(1, 9))
    )
    summary = '{\n "train_runtime": 480.0,\n "train_steps_per_second": 0.0167\n}'
    for name in ("all_results.json", "train_results.json"):
        (tmp_path / name).write_text(summary)
    assert [found.path.name for found in readers.find(tmp_path)] == ["trainer_log.jsonl"]
    with pytest.raises(SourceError, match=r"give .*trainer_log\.jsonl, which lies beside it"):
        readers.claim(tmp_path / "all_results.json")


def test_interval_over_thousands_of_steps_is_one_of_many(tmp_path: Path):
    """Lines are missing between steps 90 and 5000, where an evaluation was: 300 ms a step, 200 ms in all others."""
    elapsed = {step: step // 5 for step in range(10, 100, 10)}
    elapsed |= {5000: 18 + 1473, **{5000 + step: 1491 + step // 5 for step in range(10, 60, 10)}}
    lines = [
        f'{{"current_steps": {step}, "total_steps": 6000, "elapsed_time": "0:{seconds // 60:02}:{seconds % 60:02}"}}'
        for step, seconds in elapsed.items()
    ]
    rows = read(log(tmp_path, lines)).captures[0].rows
    assert rows is not None
    counted = {(row.steps, row.breakdown.duration_ns) for row in rows.steps}
    assert counted == {(10, 200_000_000), (10, 300_000_000)}


# -- lines of other families, timers, means


def test_other_family_in_a_log_is_named(tmp_path: Path):
    """DeepSpeed inside Megatron: each step is read once, and the log does not lose a family silently."""
    lines = []
    for step in range(1, 13):
        lines += [
            megatron(step, 500.0),
            f"[timer.py:199:stop] epoch=0/micro_step={step}/global_step={step}, RunningAvgSamplesPerSec=128.0, "
            "CurrSamplesPerSec=128.0, MemAllocated=3.96GB, MaxMemAllocated=22.95GB",
        ]
    profile = read(log(tmp_path, lines))
    assert len(times_ms(profile.captures[0])) == 9
    (note,) = [text for text in profile.warnings if "also has" in text]
    assert note.startswith("the log also has step lines of DeepSpeed; those of Megatron-LM")


def test_timers_are_counters_and_the_batch_generator_is_waiting_for_data(tmp_path: Path):
    """Of two ranks the slower one counts; the timers of the warm-up are left out, as are those of a checkpoint."""
    lines = ["  adam_beta1 ...................... 0.9"]
    for step in range(1, 13):
        slow = 9 if step < 4 else 1
        lines += [
            megatron(step, 500.0 * slow),
            "(min, max) time across ranks (ms):",
            f"    forward-backward ...............................: ({300.0 * slow:.2f}, {400.0 * slow:.2f})",
            f"    batch-generator ................................: (1.00, {5.0 * slow:.2f})",
        ]
    lines += ["(min, max) time across ranks (ms):", "    save-checkpoint ....: (24895.07, 24895.13)"]
    capture = read(log(tmp_path, lines)).captures[0]
    assert capture.rows is not None
    assert {row.breakdown.data_loading_ns for row in capture.rows.steps} == {5_000_000}
    numbers = counters(capture)
    assert (numbers["timer: forward-backward"], numbers["timer: batch-generator"]) == (400.0, 5.0)
    assert not {"timer: save-checkpoint", "timer: adam_beta1"} & numbers.keys()


def test_breakdown_of_deepspeed_is_counters(tmp_path: Path):
    lines = []
    for step in range(10, 130, 10):
        lines += [
            f"[timer.py:199:stop] epoch=0/micro_step={step}/global_step={step}, RunningAvgSamplesPerSec=128.0, "
            "CurrSamplesPerSec=128.0, MemAllocated=3.96GB, MaxMemAllocated=22.95GB",
            "[logging.py:96:log_dist] [Rank 0] time (ms) | fwd_microstep: 120.50 | bwd_microstep: 300.25 | step: 50.00",
        ]
    numbers = counters(read(log(tmp_path, lines)).captures[0])
    assert (numbers["timer: fwd_microstep"], numbers["timer: bwd_microstep"], numbers["timer: step"]) == (
        120.5, 300.25, 50.0
    )  # fmt: skip


def test_mean_throughput_since_the_start_is_no_interval(tmp_path: Path):
    """DeepSpeed until 0.6: 20 steps of 0.5 s and 20 of 1 s with 32 samples each, the first two left out of the mean."""
    lines = ["train_batch_size ..... 32"]
    spent = 0.0
    for step in range(1, 41):
        spent += 0.0 if step <= 2 else 0.5 if step <= 20 else 1.0
        if step % 2 == 0 and step > 2:
            mean = 32 * (step - 2) / spent
            lines.append(f"[2021-10-01 01:46:59,171] [INFO] [timer.py:157:stop] 0/{step}, SamplesPerSec={mean}")
    times = times_ms(read(log(tmp_path, lines)).captures[0])
    assert (times[20], times[24], times[40]) == (500.0, 1000.0, 1000.0)


def test_loss_of_a_validation_marks_the_interval_in_which_it_is_new(tmp_path: Path):
    """NeMo prints the last val_loss in all lines behind it."""
    losses = [""] * 9 + [" | val_loss: 2.5"] * 6 + [" | val_loss: 2.4"] * 5
    lines = [
        f"Training epoch 0, iteration {step}/99 | lr: 1e-07 | global_batch_size: 4 | global_step: {step} | "
        f"train_step_timing in s: {0.9 if step in (9, 15) else 0.2}{loss}"
        for step, loss in enumerate(losses)
    ]
    capture = read(log(tmp_path, lines)).captures[0]
    assert set(times_ms(capture)) == {*range(2, 9), *range(10, 15), *range(16, 20)}
    assert counters(capture)["left out: evaluation or checkpoint"] == 900.0


def test_overflow_of_mindformers_is_a_skipped_step(tmp_path: Path):
    lines = [
        f"{{ Epoch:[  1/  2], step:[{step:5}/ 1900], loss: 10.6, per_step_time: 200ms, overflow cond: {step == 9}, "
        "loss_scale: 1.0}"
        for step in range(1, 16)
    ]
    assert 9 not in times_ms(read(log(tmp_path, lines)).captures[0])


def test_two_processes_in_one_log_are_no_restarts(tmp_path: Path):
    """The second process prints up to five steps behind the first one."""
    lines = []
    for first in range(1, 8001, 5):
        lines += [nano(step, 100.0) for step in range(first, first + 5)]
        lines += [nano(step, 900.0) for step in range(first, first + 5)]
    began = time.process_time()
    profile = read(log(tmp_path, lines))
    assert time.process_time() - began < 4
    assert set(times_ms(profile.captures[0]).values()) == {100.0}
    assert "8,000 lines state a step again; each step counts once" in profile.warnings


def test_epochs_that_count_again_are_no_second_process(tmp_path: Path):
    lines = [nano(step, 100.0 * epoch) for epoch in range(1, 13) for step in range(1, 11)]
    profile = read(log(tmp_path, lines))
    assert set(times_ms(profile.captures[0]).values()) == {1200.0}
    assert "the log holds 12 trainings, one appended to the other; the last one counts" in profile.warnings


def test_parts_of_a_second_in_a_time_since_the_start_are_not_called_rounded(tmp_path: Path):
    def lines_of(digits: int) -> list[str]:
        return [
            json.dumps({"current_steps": step, "total_steps": 99, "elapsed_time": f"0:00:{step * 1.25:05.{digits}f}"})
            for step in range(1, 40)
        ]

    exact = read(log(tmp_path, lines_of(2), "exact.jsonl"))
    assert set(times_ms(exact.captures[0]).values()) == {1250.0}
    assert not [text for text in exact.warnings if "share a mean" in text]
    rounded = read(log(tmp_path, lines_of(0), "rounded.jsonl"))
    assert [text for text in rounded.warnings if "so rounded that neighbouring intervals share a mean" in text]


def test_step_line_is_not_taken_for_a_time_in_a_log_of_losses(tmp_path: Path):
    path = log(tmp_path, [f" iteration {step:8}/  500 | consumed samples: 64 | lm loss: 1.1 |" for step in range(1, 9)])
    with pytest.raises(
        SourceError, match=r"a training log of Megatron-LM, .* with no times in it.*; give a log that p"
    ):
        readers.claim(path)
    with pytest.raises(SourceError, match="no times in it: a log of Megatron-LM"):
        training_log.read(path)


def test_courses_of_other_ranks_are_not_averaged(tmp_path: Path):
    for rank in (0, 1):
        lines = [nano(step, 100.0 * (rank + 1)) for step in range(1, 41)]
        numbers = counters(read(log(tmp_path, lines, f"workerlog.{rank}")).captures[0])
        assert ("step time p50" in numbers) == (rank == 0)


def test_model_of_a_checkpoint_is_no_workload(tmp_path: Path):
    def workload(model: str) -> str | None:
        lines = [f"model_name_or_path='{model}'", *(nano(step, 100.0) for step in range(1, 20))]
        return read(log(tmp_path, lines)).captures[0].labels.get("workload")

    assert workload("facebook/opt-1.3b") == workload("/data/hub/opt-1.3b/") == "opt-1.3b"
    assert workload("/home/user/x/checkpoint-500") is None


def test_log_of_another_run_does_not_replace_metrics(tmp_path: Path):
    rows = [
        json.dumps({"data_time": 0.001, "eta_seconds": 9.8, "iteration": step, "time": 0.5, "total_loss": 2.1})
        for step in range(19, 400, 20)
    ]
    path = log(tmp_path, rows, "metrics.json")
    log(tmp_path, [nano(step, 100.0) for step in range(1, 20)], "log.txt")
    assert readers.claim(path) == "training_log"
    lines = [f"[d2.utils.events]:  iter: {step}  total_loss: 0.4  time: 0.5  last_time: 0.5" for step in range(19, 400)]
    log(tmp_path, lines, "log.txt")
    with pytest.raises(SourceError, match=r"give .*log\.txt, which lies beside it"):
        readers.claim(path)


def test_numbers_that_count_samples_are_turned_into_steps(tmp_path: Path):
    """384 samples a line in batches of 8 are 48 steps; at 2.56 samples a second a step takes 3.125 s."""
    lines = [mllog(0, "global_batch_size", 8)]
    lines += [mllog(180_000 * at, "tracked_stats", {"throughput": 2.56}, step=384 * at) for at in range(1, 9)]
    capture = read(log(tmp_path, lines)).captures[0]
    assert times_ms(capture) == {48 * at: 3125.0 for at in range(2, 9)}
    assert capture.settings["interval_steps"] == "48"
    assert capture.rows is not None
    assert capture.rows.steps[1].start_ns - capture.rows.steps[0].start_ns == 150 * 10**9


def test_numbers_that_count_steps_stay(tmp_path: Path):
    lines = [mllog(0, "global_batch_size", 8)]
    lines += [mllog(180_000 * at, "tracked_stats", {"throughput": 2.56}, step=48 * at) for at in range(1, 9)]
    assert list(times_ms(read(log(tmp_path, lines)).captures[0])) == [48 * at for at in range(2, 9)]


def test_blocks_without_a_number_of_samples_are_a_step_each(tmp_path: Path):
    lines = []
    for epoch in range(1, 8):
        lines += [
            mllog(60_000 * epoch, "epoch_start", None, epoch_num=epoch),
            mllog(60_000 * epoch + 30_000, "epoch_stop", None, epoch_num=epoch),
        ]
    profile = read(log(tmp_path, lines))
    assert set(times_ms(profile.captures[0]).values()) == {30_000.0}
    assert any("each of which stands for one step" in text for text in profile.warnings)


# -- TensorBoard events


def record(content: bytes) -> bytes:
    def check(part: bytes) -> bytes:
        crc = crc32c(part)
        return struct.pack("<I", (((crc >> 15) | (crc << 17 & 0xFFFFFFFF)) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(content))
    return length + check(length) + content + check(content)


def part(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def scalar(wall: float, step: int, tag: str, value: float) -> bytes:
    summary = part(1, part(1, tag.encode()) + b"\x15" + struct.pack("<f", value))
    return record(b"\x09" + struct.pack("<d", wall) + b"\x10" + bytes([step & 127 | 128, step >> 7]) + part(5, summary))


HEADER = record(b"\x09" + struct.pack("<d", 1000.0) + part(3, b"brain.Event:2"))


def test_events_of_a_step_time_are_rows(tmp_path: Path):
    path = tmp_path / "events.out.tfevents.1000.host"
    events = [
        scalar(1000.0 + step, step, tag, value)
        for step in range(1, 31)
        for tag, value in (("iteration-time", 9.0 if step < 3 else 0.25), ("lm loss", 3.0))
    ]
    path.write_bytes(HEADER + b"".join(events))
    capture = read(path).captures[0]
    assert set(times_ms(capture).values()) == {250.0}
    assert (capture.facts["framework"], capture.started_at_ns) == ("megatron", 1001 * 10**9)


def test_events_without_a_step_time_give_the_times_at_which_they_were_written(tmp_path: Path):
    path = tmp_path / "run.tfevents"
    path.write_bytes(
        HEADER + b"".join(scalar(1000.0 + step * 0.5, step, "train/loss", 3.0) for step in range(10, 110, 10))
    )
    profile = read(path)
    assert set(times_ms(profile.captures[0]).values()) == {500.0}
    assert "the time of a step comes from the times at which train/loss was written" in profile.warnings


def test_step_that_is_written_twice_ended_when_it_was_written_first(tmp_path: Path):
    """Each loss is written again 0.4 s later; the last 10 steps are done again by a resumed run, a minute each."""
    events = []
    for step in range(1, 21):
        events += [scalar(1000.0 + step, step, "train/loss", 3.0), scalar(1000.4 + step, step, "train/loss", 3.0)]
    events += [scalar(5000.0 + 60 * step, step, "train/loss", 3.0) for step in range(11, 31)]
    path = tmp_path / "run.tfevents"
    path.write_bytes(HEADER + b"".join(events))
    profile = read(path)
    times = times_ms(profile.captures[0])
    assert {times[step] for step in range(3, 11)} == {1000.0}
    assert {times[step] for step in range(13, 31)} == {60_000.0}


def test_damaged_event_is_left_out_and_a_damaged_length_is_an_error(tmp_path: Path):
    events = [scalar(1000.0 + step, step, "iteration-time", 0.25) for step in range(1, 31)]
    flipped = bytearray(events[9])
    flipped[-6] ^= 1
    path = tmp_path / "a.tfevents"
    path.write_bytes(HEADER + b"".join([*events[:9], bytes(flipped), *events[10:]]))
    assert "1 damaged records left out: their check sums do not fit" in read(path).warnings
    path.write_bytes(HEADER + b"".join(events)[:-5])
    assert "the last record is cut off and was left out" in read(path).warnings
    path.write_bytes(HEADER + b"".join(events[:9]) + b"\0" * 40)
    with pytest.raises(SourceError, match="the length of a record does not fit its check sum"):
        training_log.read(path)


@pytest.mark.parametrize(
    ("start", "item"),
    [
        ("[", '{"name": "a", "ts": 1.5}, '),
        ("items: ", '{"name": "a", "ts": 1.5}, '),
        ("items: ", '{"lr": 0.1}, '),
        ("items: ", '"mode": "train", "epoch": 1, "iter": 2, '),
    ],
)
def test_one_line_of_half_a_mebibyte_is_looked_at_in_no_time(tmp_path: Path, start: str, item: str):
    """As chrome traces are written; where each object asks for the rest of the line this takes minutes."""
    path = tmp_path / "trace.json"
    path.write_text(start + item * ((1 << 19) // len(item)))
    begin = time.process_time()
    assert training_log.sniff(path, path.read_bytes()[:4096]) is False
    assert time.process_time() - begin < 3
