"""A printed number is known to half a unit of its last digit, which a run keeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tracker.profile import ROUNDING_SETTING, Profile
from tracker.readers import training_log


def read(folder: Path, lines: Sequence[str], name: str = "train.log") -> Profile:
    path = folder / name
    path.write_text("\n".join([*lines, ""]))
    return training_log.read(path)


def rounding(profile: Profile, number: str) -> float:
    """How far a number may be from what is printed, as a part of it."""
    return json.loads(profile.captures[0].settings.get(ROUNDING_SETTING, "{}")).get(number, 0.0)


def clock(seconds: int) -> str:
    return f"0:{seconds // 60:02}:{seconds % 60:02}"


STEPS = range(10, 310, 10)


def mindformers(time_ms: int) -> list[str]:
    return [f"{{ step:[{step}/ 310], loss: 11.8, per_step_time: {time_ms}ms, lr: 1.0e-05 }}" for step in STEPS]


LINES = {
    # half of 1 ms
    "whole ms, 8 of them": (mindformers(8), 0.0625),
    "whole ms, 1752 of them": (mindformers(1752), 0.0),
    # 2 s in 10 steps, whole seconds
    "differences of whole seconds": (
        [f'{{"current_steps": {step}, "total_steps": 310, "elapsed_time": "{clock(step * 2)}"}}' for step in STEPS],
        0.025,
    ),
    # 0.02 s of a step, two digits
    "seconds of a parsed line": ([f"iter {step}: batch_cost: 0.02 s ips: 800.0 images/s" for step in STEPS], 0.25),
    "rate of a parsed line": ([f"global step {step}, loss: 11.2, speed: 2.5 step/s" for step in STEPS], 0.02),
    "seconds of four digits": ([f"iter {step}: batch_cost: 0.0200 s ips: 800.0 images/s" for step in STEPS], 0.0025),
    "seconds since the start": (
        [f"step:{step}/310 train_time:{step * 100}ms step_avg:100.00ms" for step in range(1, 60)],
        0.005,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_time_is_known_to_half_its_last_digit(tmp_path: Path, name: str):
    lines, expected = LINES[name]
    assert rounding(read(tmp_path, lines), "duration_ns") == pytest.approx(expected, rel=0.02)


def test_throughput_and_data_loading_are_rounded_too(tmp_path: Path):
    lines = [f"iter {step}: reader_cost: 0.01 s batch_cost: 0.1000 s ips: 5.0 images/s" for step in STEPS]
    profile = read(tmp_path, lines)
    assert [rounding(profile, name) for name in ("duration_ns", "data_loading_ns", "samples_per_second")] == [
        pytest.approx(0.0005), pytest.approx(0.5), pytest.approx(0.01),
    ]  # fmt: skip


def test_bar_that_backspaces_write_over_says_no_last_digit(tmp_path: Path):
    """Keras 2 goes back over its bar with backspaces: 0.1500 of an earlier one is no time, and 150 ms is to 0.3 %."""
    bars = "".join(f"{step}/500 [====>.....] - ETA: 30s - loss: 0.1500" + 60 * "\b" for step in (100, 200, 300))
    end = "500/500 [==========] - 75s 150ms/step - loss: 1.2345"
    lines = [f"Epoch {epoch}/5\n{bars}{end}" for epoch in range(1, 6)]
    assert rounding(read(tmp_path, lines), "duration_ns") == pytest.approx(0.5 / 150, rel=0.01)


def test_number_that_is_the_time_by_chance_says_no_last_digit(tmp_path: Path):
    """An accuracy of 0.1500 in one of 20 epochs is none of the 150 ms."""
    lines = []
    for epoch in range(1, 21):
        accuracy = 0.15 if epoch == 7 else 0.2 + epoch / 100
        lines += [f"Epoch {epoch}/20", f"500/500 - 75s - 150ms/step - accuracy: {accuracy:.4f} - loss: 1.2345"]
    assert rounding(read(tmp_path, lines), "duration_ns") == pytest.approx(0.5 / 150, rel=0.01)


def test_number_that_knows_the_time_best_gives_the_step(tmp_path: Path):
    """32 samples at 2580.645 samples/s take 12.4 ms, which the time of the line rounds to 12 ms."""
    lines = ["  train_batch_size ............. 32"]
    lines += [f"steps: {step} loss: 2.3000 iter time (s): 0.012 samples/sec: 2580.645" for step in STEPS]
    profile = read(tmp_path, lines)
    assert profile.captures[0].rows is not None
    times_ms = {round((row.breakdown.duration_ns or 0) / 1e6, 3) for row in profile.captures[0].rows.steps}
    assert times_ms == {12.4}
    assert rounding(profile, "duration_ns") == 0


def test_rate_over_other_steps_gives_no_step(tmp_path: Path):
    """The throughput is a mean since the start: 32 samples at 1600 samples/s would be 20 ms."""
    lines = ["  train_batch_size ............. 32"]
    lines += [f"steps: {step} loss: 2.3000 iter time (s): 0.012 samples/sec: 1600.000" for step in STEPS]
    profile = read(tmp_path, lines)
    assert profile.captures[0].rows is not None
    assert {row.breakdown.duration_ns for row in profile.captures[0].rows.steps} == {12_000_000}


def test_rate_of_three_digits_says_how_many_steps_may_be(tmp_path: Path):
    """The time of 200 steps is known to 4 digits, but .009 steps/s may be 181 to 202 of them."""
    lines = ["***** Running training *****"]
    lines += ["{'train_runtime': 21300.0, 'train_samples_per_second': 0.3, 'train_steps_per_second': 0.009}"]
    profile = read(tmp_path, lines)
    assert rounding(profile, "duration_ns") == pytest.approx(0.056, abs=0.001)
    assert rounding(profile, "samples_per_second") == pytest.approx(0.0017, abs=0.0001)
