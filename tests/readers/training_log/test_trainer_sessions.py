"""Whose steps a rate of the Hugging Face Trainer is of: the time of a session by the steps that it did.

The runs have 1,000 steps in an epoch, a line every 5 steps, and 3.5 s a step.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from tracker import readers
from tracker.errors import SourceError
from tracker.profile import Capture
from tracker.readers import training_log

HEADER = (
    "***** Running training *****",
    "  Num examples = 32,000",
    "  Num Epochs = 1",
    "  Total train batch size (w. parallel, distributed & accumulation) = 32",
    "  Total optimization steps = 1,000",
)
RESUMED = ("  Continuing training from epoch 0", "  Continuing training from global step 800")


def line(step: int, more: str = "") -> str:
    return f"{{'loss': 1.2, 'grad_norm': 0.5, 'learning_rate': 2e-05, 'epoch': {step / 1000:.4f}{more}}}"


def lines(first: int, last: int) -> list[str]:
    return [line(step) for step in range(first + 5, last + 5, 5)]


def summary(runtime: float, train_loss: float, epoch: float = 1.0, planned: int = 1000) -> str:
    steps_s = planned / runtime
    rates = f"'train_samples_per_second': {32 * steps_s:.3f}, 'train_steps_per_second': {steps_s:.3f}"
    return f"{{'train_runtime': {runtime:.4f}, {rates}, 'train_loss': {train_loss}, 'epoch': {epoch:.4f}}}"


def read(folder: Path, text: Iterable[str], name: str = "train.log") -> tuple[Capture, tuple[str, ...]]:
    path = folder / name
    path.write_text("\n".join([*text, ""]))
    assert readers.claim(path) == "training_log"
    profile = training_log.read(path)
    return profile.captures[0], profile.warnings


def step_ms(capture: Capture) -> list[float]:
    assert capture.rows is not None
    return [(row.breakdown.duration_ns or 0) / 1e6 for row in capture.rows.steps]


def samples_s(capture: Capture) -> float | None:
    assert capture.rows is not None
    return capture.rows.steps[0].breakdown.samples_per_second


WHOLE = [*lines(0, 1000), summary(3500, 1.2)]
SESSIONS = {
    "whole run": WHOLE,
    "whole run with a header": [*HEADER, *WHOLE],
    "resumed, by its lines": [*lines(800, 1000), summary(700, 0.24)],
    "resumed, by its header": [*HEADER, *RESUMED, *lines(800, 1000), summary(700, 0.24)],
    "resumed, behind the session before": [*HEADER, *lines(0, 900), *HEADER, *RESUMED, *lines(800, 1000),
                                           summary(700, 0.24)],
    "resumed, by its losses alone": [*lines(0, 1000), summary(700, 0.24)],
    "stopped early": [*HEADER, *lines(0, 300), summary(1050, 1.2, epoch=0.3)],
    "resumed and stopped early": [*HEADER, *RESUMED, *lines(800, 900), summary(350, 0.1333, epoch=0.9)],
    "start of the log cut off": [*lines(500, 1000), summary(3500, 1.35)],
}  # fmt: skip


@pytest.mark.parametrize("name", SESSIONS)
def test_time_of_a_session_is_divided_by_its_own_steps(tmp_path: Path, name: str):
    capture, _ = read(tmp_path, SESSIONS[name])
    assert step_ms(capture) == [pytest.approx(3500, rel=0.01)]
    assert samples_s(capture) == pytest.approx(32 / 3.5, rel=0.01)


def test_rates_of_other_steps_are_named(tmp_path: Path):
    _, warnings = read(tmp_path, SESSIONS["resumed, by its header"])
    assert (
        "the time is that of 200 of 1,000 steps: the rates that the Trainer printed divide all 1,000 by it" in warnings
    )


@pytest.mark.parametrize("stopped", [5, 10])
@pytest.mark.parametrize("schedule", [lambda part: 1 - part, lambda part: (1 + math.cos(math.pi * part)) / 2])
def test_learning_rate_says_that_a_run_was_stopped_early(
    tmp_path: Path, schedule: Callable[[float], float], stopped: int
):
    """Of 10 epochs of 100 steps with a line every 10 steps, which ended with epoch 5, or with the last one."""
    text = [
        f"{{'loss': 1.2, 'learning_rate': {2e-05 * schedule(step / 1000)}, 'epoch': {step / 100}}}"
        for step in range(10, 100 * stopped + 1, 10)
    ]
    capture, _ = read(tmp_path, [*text, summary(350 * stopped, 1.2, epoch=stopped)])
    assert step_ms(capture) == [pytest.approx(3500, rel=0.01)]
    assert samples_s(capture) == pytest.approx(32 / 3.5, rel=0.01)


UNKNOWN = {
    "stopped within an epoch": [*lines(0, 300), summary(1050, 1.2, epoch=0.3)],
    "one summary alone": [summary(3500, 1.2)],
    "lines of a part of the session": [*lines(900, 1000), summary(700, 0.24)],
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_steps_that_nothing_says_give_no_step_time(tmp_path: Path, name: str):
    with pytest.raises(SourceError, match="no step time in it: its rates divide all steps of the run"):
        read(tmp_path, UNKNOWN[name])


def test_rate_of_few_digits_does_not_give_the_step(tmp_path: Path):
    """200 steps of 106.5 s: .009 steps/s would be 111.1 s."""
    text = [f"{{'loss': 1.2, 'epoch': {at / 20:.2f}}}" for at in range(1, 21)]
    rates = "'train_samples_per_second': 0.300, 'train_steps_per_second': 0.009, 'train_loss': 1.2"
    capture, _ = read(tmp_path, [*text, f"{{'train_runtime': 21300.0, {rates}, 'epoch': 1.0}}"])
    assert step_ms(capture) == [106_500]


def lines_with_times(first: int, last: int) -> list[str]:
    """The Trainer counts tokens: each line has the time since the start, which took 12 s before the first step."""
    return [line(step, f", 'train_runtime': {12 + 3.5 * (step - first):.4f}") for step in range(first + 5, last + 5, 5)]


@pytest.mark.parametrize(
    "text",
    [
        [*lines_with_times(800, 1000), summary(712, 0.24)],
        [*HEADER, *lines_with_times(800, 1000), summary(712, 0.24)],
        [*HEADER, *lines_with_times(800, 950)],
    ],
)
def test_times_of_the_lines_count_before_a_summary(tmp_path: Path, text: Sequence[str]):
    capture, _ = read(tmp_path, text)
    assert len(step_ms(capture)) > 20
    assert set(step_ms(capture)) == {3500}


def test_rate_of_a_resumed_bar_is_of_all_steps(tmp_path: Path):
    """20 steps behind step 980: the bar says 12 steps/s, for it jumped over the others."""
    bars = [f"{step // 10}%|#| {step}/1000 [{(step - 980) * 4 // 60:02}:{(step - 980) * 4 % 60:02}<00:01, 12.2it/s]" for
            step in range(981, 1001)]  # fmt: skip
    capture, _ = read(tmp_path, ["***** Running training *****", "\r".join(bars)])
    assert set(step_ms(capture)) == {4000}


# -- trainer_state.json


def state(losses: Callable[[int], float], train_loss: float, runtime: float, *, reached: int = 1000) -> str:
    history = [{"epoch": step / 1000, "loss": losses(step), "step": step} for step in range(20, reached + 1, 20)]
    end = {"epoch": reached / 1000, "step": reached, "train_loss": train_loss, "train_runtime": runtime,
           "train_samples_per_second": 32000 / runtime, "train_steps_per_second": 1000 / runtime}  # fmt: skip
    return json.dumps({"global_step": reached, "log_history": [*history, end], "max_steps": 1000}, indent=2)


STATES = {
    "whole run": state(lambda step: 2 - step / 1000, 1.49, 3500),
    "resumed at step 800": state(lambda _: 1.2, 0.24, 700),
    # the loss falls from 2 to 1: the last 200 steps have 20 x (1.18 + 1.16 + .. + 1.0) of it
    "resumed at step 800, losses that fall": state(lambda step: 2 - step / 1000, 0.218, 700),
    "stopped early": state(lambda _: 1.2, 1.2, 1050, reached=300),
}


@pytest.mark.parametrize("name", STATES)
def test_state_of_a_trainer_says_by_its_losses_what_was_resumed(tmp_path: Path, name: str):
    capture, _ = read(tmp_path, [STATES[name]], "trainer_state.json")
    assert step_ms(capture) == [pytest.approx(3500, rel=0.005)]
    assert samples_s(capture) == pytest.approx(32 / 3.5, rel=0.005)


def test_state_without_losses_gives_no_step_time(tmp_path: Path):
    content = json.loads(STATES["resumed at step 800"])
    content["log_history"] = content["log_history"][-1:]
    with pytest.raises(SourceError, match="no step time in it"):
        read(tmp_path, [json.dumps(content, indent=2)], "trainer_state.json")


def test_summary_of_a_run_alone_gives_no_step_time(tmp_path: Path):
    path = tmp_path / "all_results.json"
    path.write_text('{\n "epoch": 1.0,\n "train_runtime": 700.0,\n "train_steps_per_second": 1.429\n}')
    with pytest.raises(SourceError, match="a summary of the Hugging Face Trainer without a step time"):
        readers.claim(path)
    with pytest.raises(SourceError, match="no step time in it"):
        training_log.read(path)
