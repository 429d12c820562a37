"""The last resort: lines that repeat, of a program that no grammar knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec import json

from tracker import intake, readers
from tracker.errors import SourceError
from tracker.profile import INCOMPLETE_SETTING, Capture, Incomplete
from tracker.readers import ReadOptions, training_log
from tracker.schema.series import LOST_STEPS
from tracker.store import Store, queries

STEPS = range(10, 210, 10)
"""Twenty lines, of which the first one is warm-up."""


def log(folder: Path, lines: Sequence[str], name: str = "train.log") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("\n".join([*lines, ""]))
    return path


def times_ms(capture: Capture) -> set[float]:
    assert capture.rows is not None
    return {round((row.breakdown.duration_ns or 0) / 1e6, 1) for row in capture.rows.steps}


LINES: dict[str, Callable[[int], str]] = {
    "s/it": lambda step: f"2025-03-01 10:00:00 INFO step {step} | loss {step / 7:.4f} | lr 1e-4 | 8.01s/it",
    "ms": lambda step: f"Iter: [{step}/500] loss=0.123 8010.0 ms",
    "it/s": lambda step: f"global_step={step}, loss=2.5, speed: 0.1248439 it/s",
    "time first": lambda step: f"[took 8.01 s] iteration {step}: loss 2.5",
    "bar": lambda step: f"step {step}:  10%|{'#' * (step // 20)}{' ' * (10 - step // 20)}| done (8.01s)",
}


@pytest.mark.parametrize("kind", LINES)
def test_lines_that_repeat_are_read_as_a_guess(tmp_path: Path, kind: str):
    path = log(tmp_path, ["a program of our own", *map(LINES[kind], STEPS)])
    assert readers.claim(path) == "training_log"
    (capture,) = training_log.read(path).captures
    assert times_ms(capture) == {8010.0}
    assert capture.quality_reason.startswith("read as: ")
    assert capture.quality_reason.endswith("', a guess that --input-format training_log confirms")
    incomplete = json.decode(capture.settings[INCOMPLETE_SETTING], type=Incomplete)
    assert incomplete.forbids == (LOST_STEPS,)


def test_guess_names_unit_and_place_of_the_number(tmp_path: Path):
    path = log(tmp_path, [*map(LINES["s/it"], STEPS)])
    (capture,) = training_log.read(path).captures
    assert "read as: seconds per step from '... 8.01s/it'" in capture.quality_reason


def test_named_format_makes_the_guess_a_number_like_others(tmp_path: Path):
    path = log(tmp_path, [*map(LINES["ms"], STEPS)])
    profile = training_log.read(path, ReadOptions(is_named=True))
    (capture,) = profile.captures
    assert (capture.quality_reason, INCOMPLETE_SETTING in capture.settings) == ("", False)
    assert "read as: milliseconds per step from '... 8010.0 ms'" in profile.warnings


NO_STEP_LINES: dict[str, Callable[[int], str]] = {
    "no step": lambda step: f"request {step} took 8.01s",
    "no number of a step": lambda step: f"step took 8.0{step % 10}s",
    "no unit": lambda step: f"step {step} loss 2.5 time 8.01",
    "two times": lambda step: f"step {step} forward 3.01s backward 5.00s",
    "several units": lambda step: f"step {step} took 1m 3s",
    "time since the start": lambda step: f"step {step} after {step * 0.8:.1f}s",
    "time that is left": lambda step: f"step {step} eta: 801s",
    "data loading": lambda step: f"step {step} data loading 0.01s",
    "evaluation": lambda step: f"evaluation step {step} 8.01s",
    "samples": lambda step: f"step {step} 801 tokens/s",
    "the same step": lambda step: "step 3 of the installation: 8.01s",
    "steps that fall": lambda step: f"step {1000 - step}: 8.01s",
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_STEP_LINES)
def test_lines_without_the_time_of_a_step_are_refused(tmp_path: Path, kind: str):
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(log(tmp_path, [*map(NO_STEP_LINES[kind], STEPS)]))


def test_nine_lines_are_too_few(tmp_path: Path):
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(log(tmp_path, [*map(LINES["ms"], STEPS[:9])]))


@pytest.mark.parametrize("name", ["README.md", "train.py", "config.yaml"])
def test_document_with_such_lines_is_refused(tmp_path: Path, name: str):
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(log(tmp_path, [*map(LINES["ms"], STEPS)], name))


def test_json_with_such_lines_in_it_is_refused(tmp_path: Path):
    lines = [json.encode({"text": LINES["ms"](step)}).decode() for step in STEPS]
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(log(tmp_path, lines, "messages.jsonl"))


def test_step_line_of_a_known_program_is_no_guess(tmp_path: Path):
    nanogpt = [f"iter {step}: loss 3.6700, time 200.00ms, mfu 2.23%" for step in STEPS]
    (capture,) = training_log.read(log(tmp_path, [*map(LINES["s/it"], STEPS), *nanogpt])).captures
    assert capture.facts["framework"] == "nanogpt"
    assert times_ms(capture) == {200.0}


def slower(folder: Path, factor: float) -> list[Path]:
    """Three runs whose steps take `factor` times 8 s, with some noise."""
    lines = [[f"step {step} {factor * (8 + (step + run) % 7 / 100):.3f}s" for step in STEPS] for run in range(3)]
    return [log(folder, lines[run], f"train{run}.log") for run in range(3)]


def why_not_judged(store: Store) -> set[str]:
    runs = queries.runs(store).listed("run_id")
    return set(queries.captures(store, runs).listed("quality_reason"))


def test_guess_is_judged_when_it_is_read_again_with_its_format(store: Store, tmp_path: Path):
    intake.ingest(store, slower(tmp_path / "v1", 1.0), version="v1", workload="w")
    intake.ingest(store, slower(tmp_path / "v2", 1.2), version="v2", workload="w")
    assert {reason[:30] for reason in why_not_judged(store)} == {"read as: seconds per step from"}
    assert not len(queries.findings(store))
    assert intake.ingest_again(store).up_to_date == 6
    again = intake.ingest_again(store, options=intake.IngestOptions(format="training_log"))
    assert len(again.results) == 6
    assert why_not_judged(store) == {""}
    assert len(queries.findings(store))
    assert intake.ingest_again(store).up_to_date == 6
