"""Logs of megabytes, whose lines are read many at once: each number is the one that its line states."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tracker import readers
from tracker.profile import Capture
from tracker.readers import training_log

LINES = 12_000
"""Some blocks of a file: what is learned from the lines of one is used in the next. Below 20,000 each is a row."""


def step_ms(step: int) -> int:
    """The time of a step: 200 to 206 ms."""
    return 200 + step % 7


def day(step: int) -> str:
    return f"2023-08-08 {10 + step // 3600:02}:{step // 60 % 60:02}:{step % 60:02}"


def ppcls(step: int) -> str:
    s = step_ms(step) / 1000
    return (
        f"[{day(step)}] ppcls INFO: [Train][Epoch 1/2][Iter: {step}/20000]lr: 0.0001, loss: {step / 7:.5f}, "
        f"batch_cost: {s:.5f}s, reader_cost: {s / 10:.5f}, ips: {256 / s:.5f} samples/s, eta: 2:03:04"
    )


def ppcls_of_days(step: int) -> str:
    """Every third line has one word more."""
    return ppcls(step).replace("eta: ", f"eta: {step} days, ") if step % 3 == 0 else ppcls(step)


def nlp_2020(step: int) -> str:
    """The time of a step is the inverse of a speed."""
    return (
        f"global step {step}, epoch: 0, batch: {step - 1}, loss: 11.2, speed: {1000 / step_ms(step):.7f} step/s, "
        "ips: 63.96 sequences/s"
    )


def transformer_ms(step: int) -> str:
    return f"epoch: 0, iter: {step}, batch_cost: {step_ms(step)} ms, avg_ips: {256000 / step_ms(step):.4f} images/s"


def ppseg(step: int) -> str:
    s = step_ms(step) / 1000
    rest = "reader_cost: 0.00100, ips: 800.0000 samples/sec | ETA 04:31:18"
    return f"{day(step)} [INFO]\t[TRAIN] epoch: 1, iter: {step}/80000, loss: 1.0, batch_cost: {s:.4f}, {rest}"


def verl(step: int) -> str:
    s = step_ms(step) / 1000
    return f"(TaskRunner pid=42) step:{step} - training/global_step:{step} - timing_s/gen:0.1 - timing_s/step:{s:.6f}"


def deepspeed(step: int) -> str:
    return (
        f"[{day(step)},171] [INFO] [timer.py:199:stop] epoch=0/micro_step={step}/global_step={step}, "
        f"RunningAvgSamplesPerSec=173.4, CurrSamplesPerSec={32000 / step_ms(step):.9f}, MemAllocated=3.96GB"
    )


def own_program(step: int) -> str:
    return f"{day(step)} INFO step {step} | loss {step / 7:.4f} | lr 1e-4 | {step_ms(step)}.0ms"


FORMS: dict[str, tuple[str, Callable[[int], str]]] = {
    "PaddleClas": ("paddle", ppcls), "PaddleClas of days": ("paddle", ppcls_of_days), "PaddleSeg": ("paddle", ppseg),
    "PaddleNLP 2020": ("paddle", nlp_2020), "Paddle in ms": ("paddle", transformer_ms), "verl": ("verl", verl),
    "DeepSpeed": ("deepspeed", deepspeed), "a guess": ("unknown", own_program),
}  # fmt: skip


def read(path: Path) -> Capture:
    assert readers.claim(path) == "training_log"
    (capture,) = training_log.read(path).captures
    return capture


def times_ms(capture: Capture) -> dict[int, float]:
    assert capture.rows is not None
    return {row.step: round((row.breakdown.duration_ns or 0) / 1e6, 2) for row in capture.rows.steps}


@pytest.mark.parametrize("name", FORMS)
def test_every_line_of_a_large_log_states_its_own_time(tmp_path: Path, name: str):
    framework, line = FORMS[name]
    lines = [line(step) for step in range(1, LINES + 1)]
    for place in range(1000, LINES, 2000):
        lines[place] += "\nsaved a checkpoint at 127.0.0.1, 12 files in 3 folders"
    head = "global_batch_size=32\n"
    (tmp_path / "train.log").write_text(head + "\n".join([*lines, ""]))
    capture = read(tmp_path / "train.log")
    assert capture.facts["framework"] == framework
    times = times_ms(capture)
    assert len(times) >= LINES - 3
    assert times == {step: float(step_ms(step)) for step in times}


def test_number_that_a_line_lacks_is_not_taken_from_others(tmp_path: Path):
    """From step 8,000 on the lines have no reader_cost."""
    lines = [ppcls(step) for step in range(1, LINES + 1)]
    lines[8000:] = [line.replace("reader_cost", "other_cost") for line in lines[8000:]]
    (tmp_path / "train.log").write_text("\n".join([*lines, ""]))
    capture = read(tmp_path / "train.log")
    assert capture.rows is not None
    lacks = {row.breakdown.data_loading_ns is None for row in capture.rows.steps if row.step > 8000}
    has = {row.breakdown.data_loading_ns is None for row in capture.rows.steps if row.step <= 8000}
    assert (has, lacks) == ({False}, {True})


@pytest.mark.parametrize("words", ["", "Loading checkpoint shards: "])
def test_bars_with_words_in_front_are_of_something_else(tmp_path: Path, words: str):
    """Of 5 steps a second; the other bars stand at 1 of 2."""
    bars = []
    for step in range(1, LINES + 1):
        minutes, seconds = divmod(step // 5, 60)
        block = "█" * (10 * step // LINES)
        done = 100 * step // LINES
        bars.append(f"\r{done:3}%|{block:10}| {step}/{LINES} [{minutes:02}:{seconds:02}<25:01,  5.00it/s]")
        if words and step % 100 == 0:
            bars.append(f"\r{words} 50%|#####     | 1/2 [00:02<00:02,  2.00s/it]")
    (tmp_path / "train.log").write_bytes(("***** Running training *****\n" + "".join(bars) + "\n").encode())
    times = times_ms(read(tmp_path / "train.log"))
    assert max(times) == LINES
    assert list(times.values()) == pytest.approx([200.0] * len(times), rel=0.05)


MEMORY = """
import re, resource, sys
from pathlib import Path
from tracker.readers import training_log
training_log.read(Path(sys.argv[1]))
status = Path("/proc/self/status")
if status.exists():
    # the peak of getrusage begins with that of the process that started this one
    print(int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) / 1024)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def memory_mib(path: Path) -> float:
    finished = subprocess.run([sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True)
    return float(finished.stdout)


def megatron(step: int) -> str:
    ms = 2500 + step * 7919 % 3001 / 10
    return (
        f" [{day(step % 9000)}] iteration {step:8}/ 9000000 | elapsed time per iteration (ms): {ms:.1f} | "
        f"throughput per GPU (TFLOP/s/GPU): {1e6 / ms:.1f} | global batch size:   512 |"
    )


def maxtext(step: int) -> str:
    s = 2.5 + step * 7919 % 301 / 1000
    return f"completed step: {step}, seconds: {s:.3f}, TFLOP/s/device: {500 / s:.3f}, Tokens/s/device: {8192 / s:.3f}"


def trainer(step: int) -> str:
    return f"{{'loss': {3 + step % 1000 / 1000:.4f}, 'learning_rate': {1 / (step + 1000)}, 'epoch': {step / 5e5:.2f}}}"


TRAINER_HEAD = """***** Running training *****
  Num examples = 4,000,000
  Total train batch size (w. parallel, distributed & accumulation) = 8
  Total optimization steps = 1,000,000
"""
TRAINER_TAIL = "{'train_runtime': 4000.0, 'train_steps_per_second': 250.0, 'train_loss': 3.5, 'epoch': 1.4}\n"


@pytest.mark.slow
@pytest.mark.parametrize(("line", "bytes_of_line"), [(megatron, 15), (maxtext, 10), (trainer, 10)])
def test_memory_of_a_log_grows_by_few_bytes_a_line(tmp_path: Path, line: Callable[[int], str], bytes_of_line: int):
    """500 MB of MaxText are 3.9 million lines: with 10 bytes of each they need 40 MiB, behind 55 for all else."""
    sizes = {}
    for count in (200_000, 700_000):
        with (tmp_path / "train.log").open("w") as file:
            file.write(TRAINER_HEAD if line is trainer else "")
            file.writelines(f"{line(step)}\n" for step in range(1, count + 1))
            file.write(TRAINER_TAIL if line is trainer else "")
        sizes[count] = memory_mib(tmp_path / "train.log")
    assert sizes[200_000] < 65
    assert (sizes[700_000] - sizes[200_000]) * 2**20 / 500_000 < bytes_of_line
