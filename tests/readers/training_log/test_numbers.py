"""Lines that are easily taken for another number: means since the start, other bars, other ranks, other batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.readers.training_log.test_traps import HEADER, counters, log, nano, read, scalar, times_ms
from tracker.profile import Capture


def median_ms(capture: Capture) -> float:
    times = sorted(times_ms(capture).values())
    return times[len(times) // 2]


def bars(total: int, seconds: Sequence[float], stride: int, prefix: str = "", rate: str = "1.00it/s") -> list[str]:
    """The bar of tqdm each `stride` steps; `seconds`: since its start."""
    return [
        f"{prefix}{100 * stride * at // total:3}%|###  | {stride * at}/{total} "
        f"[{int(s) // 60:02}:{int(s) % 60:02}<00:10, {rate}]"
        for at, s in enumerate(seconds, 1)
    ]


# -- Detectron2


def test_time_of_detectron2_is_the_mean_since_the_start_beside_the_last_one_too(tmp_path: Path):
    """100 iterations of 500 ms, then 400 of 1 s: the mean at the end is 900 ms."""
    elapsed, lines = 0.0, []
    for step in range(1, 501):
        elapsed += 0.5 if step <= 100 else 1.0
        if step % 20 == 0:
            lines.append(
                f"[11/17 15:16:55] d2.utils.events INFO:  eta: 1:12:09  iter: {step - 1}  total_loss: 2.1  "
                f"time: {elapsed / step:.4f}  last_time: 1.2345  data_time: 0.0010  last_data_time: 0.0012  lr: 0.0004"
            )
    capture = read(log(tmp_path, lines)).captures[0]
    times = times_ms(capture)
    assert (times[79], times[499]) == (pytest.approx(500, rel=0.02), pytest.approx(1000, rel=0.02))
    assert median_ms(capture) == pytest.approx(1000, rel=0.02)


# -- bars of Hugging Face


TRAINING = [f"\r{bar}" for bar in bars(200, [25 * at for at in range(1, 21)], 10, rate="2.50s/it")]
PREDICTION = bars(1000, [80 * at for at in range(1, 11)], 100, rate="1.25it/s")


@pytest.mark.parametrize(
    ("head", "between"),
    [
        ("", "{'loss': 1.7, 'grad_norm': 5.7, 'learning_rate': 0, 'epoch': 0.1}"),
        ("  Total optimization steps = 200", ""),
    ],
)
def test_longer_bar_of_a_prediction_is_not_that_of_the_training(tmp_path: Path, head: str, between: str):
    """200 steps of 2.5 s, then 1,000 of 800 ms, which last longer."""
    lines = ["***** Running training *****", head]
    for bar in TRAINING:
        lines += [bar, between]
    capture = read(log(tmp_path, [*lines, *PREDICTION])).captures[0]
    assert set(times_ms(capture).values()) == {2500.0}
    assert max(times_ms(capture)) == 200


def test_bar_of_loading_is_no_step_and_ends_no_configuration(tmp_path: Path):
    lines = [
        *bars(2, [300, 600], 1, "Loading checkpoint shards: ", "300.00s/it"),
        "***** Running training *****",
        "  Instantaneous batch size per device = 8",
        *TRAINING,
    ]
    capture = read(log(tmp_path, lines)).captures[0]
    assert capture.configuration["batch_size"] == "8"
    assert set(times_ms(capture).values()) == {2500.0}


# -- TensorBoard of MMEngine


def test_tags_of_mmengine_without_a_prefix_are_no_detectron2(tmp_path: Path):
    """An epoch of 100 steps in 10 lines, and the point of its validation, whose step is the number of the epoch."""
    events = []
    for step in range(10, 301, 10):
        events += [scalar(1000.0 + step, step, tag, value) for tag, value in (("lr", 0.1), ("loss", 2.0))]
        events += [scalar(1000.0 + step, step, "data_time", 0.01), scalar(1000.0 + step, step, "time", 0.5)]
        if step % 100 == 0:
            events += [scalar(1001.0 + step, step // 100, tag, 0.09) for tag in ("data_time", "time")]
    path = tmp_path / "events.out.tfevents.1000.host"
    path.write_bytes(HEADER + b"".join(events))
    profile = read(path)
    capture = profile.captures[0]
    assert capture.facts["framework"] == "mmengine"
    assert set(times_ms(capture).values()) == {500.0}
    assert max(times_ms(capture)) == 300
    assert not [said for said in profile.warnings if "resumed" in said or "trainings" in said]


def test_tags_of_detectron2_are_those_beside_its_losses(tmp_path: Path):
    events = []
    for step in range(19, 400, 20):
        events += [scalar(1000.0 + step, step, tag, 2.0) for tag in ("eta_seconds", "total_loss")]
        events += [scalar(1000.0 + step, step, "data_time", 0.01), scalar(1000.0 + step, step, "time", 0.5)]
    path = tmp_path / "events.out.tfevents.1000.host"
    path.write_bytes(HEADER + b"".join(events))
    assert read(path).captures[0].facts["framework"] == "detectron2"


# -- ranks


def test_rank_with_the_step_lines_counts_not_one_that_says_a_word(tmp_path: Path):
    lines = [f"[rank7]: {nano(step, 100.0)}" for step in range(1, 31)] + [f"[rank3]: {nano(30, 900.0)}"]
    profile = read(log(tmp_path, lines))
    assert len(times_ms(profile.captures[0])) == 28
    assert set(times_ms(profile.captures[0]).values()) == {100.0}
    assert "2 ranks report the speed; the steps are those of rank 7" in profile.warnings


# -- LLaMA-Factory


def clock(seconds: int) -> str:
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def test_interval_behind_an_evaluation_of_the_same_step_holds_it(tmp_path: Path):
    """10 steps of 1 s a line; behind step 100 an evaluation of 60 s, whose line repeats the step."""
    lines = []
    for step in range(10, 301, 10):
        late = 60 if step > 100 else 0
        row = {"current_steps": step, "total_steps": 300, "loss": 1.2, "elapsed_time": clock(step + late)}
        lines.append(json.dumps(row))
        if step == 100:
            row = {"current_steps": step, "total_steps": 300, "eval_loss": 1.2, "elapsed_time": clock(step + 60)}
            lines.append(json.dumps(row))
    profile = read(log(tmp_path, lines, "trainer_log.jsonl"))
    capture = profile.captures[0]
    assert 110 not in times_ms(capture)
    assert counters(capture)["left out: evaluation or checkpoint"] == pytest.approx(7000)
    assert not [said for said in profile.warnings if "3 times the median" in said]
