"""Lines that are easily taken for another number: means since the start, other bars, other ranks, other batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.readers.training_log.test_traps import HEADER, counters, log, nano, read, scalar, times_ms
from tracker.errors import SourceError
from tracker.profile import Capture
from tracker.readers import training_log


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


# -- the configuration


MMENGINE = [json.dumps({"lr": 0.1, "data_time": 0.01, "loss": 2.0, "time": 0.5, "step": step}) for step in range(1, 20)]
MMENGINE_CONFIG = [
    "    GPU number: 4",
    "2026/01/02 03:04:05 - mmengine - INFO - Config:",
    "test_dataloader = dict(",
    "    batch_size=1,",
    "    dataset=dict(type='COCO'))",
    "val_dataloader = dict(",
    "    batch_size=2, num_workers=2)",
    "model = dict(",
    "    decode_head=dict(",
    "        num_layers=2,",
    "        hidden_size=64),",
    "    backbone=dict(",
    "        layer_cfgs=dict(num_heads=3, num_layers=5),",
    "        num_layers=12,",
    "        type='ViT'))",
    "train_dataloader = dict(",
    "    batch_size=16,",
    "    num_workers=2)",
]


def test_configuration_of_mmengine_is_that_of_the_training(tmp_path: Path):
    configuration = read(log(tmp_path, [*MMENGINE_CONFIG, *MMENGINE])).captures[0].configuration
    assert {key: configuration[key] for key in ("batch_size", "layers", "devices")} == {
        "batch_size": "16", "layers": "12", "devices": "4",
    }  # fmt: skip
    assert "hidden_size" not in configuration


def test_indented_sizes_behind_the_name_of_a_model_are_its_own(tmp_path: Path):
    lines = ["model = llama", "  num_layers = 32", *(nano(step, 100.0) for step in range(1, 21))]
    assert read(log(tmp_path, lines)).captures[0].configuration["layers"] == "32"


def test_loader_of_the_training_with_the_batch_of_the_test_is_read_too(tmp_path: Path):
    lines = [line.replace("batch_size=16", "batch_size=1") for line in MMENGINE_CONFIG]
    assert read(log(tmp_path, [*lines, *MMENGINE])).captures[0].configuration["batch_size"] == "1"


def test_job_resumed_on_more_devices_has_the_configuration_of_its_last_start(tmp_path: Path):
    lines = ["  world_size ......... 8", "  seq_length ......... 4096"]
    lines += [nano(step, 100.0) for step in range(1, 21)]
    lines += ["  world_size ......... 16", *(nano(step, 50.0) for step in range(16, 61))]
    profile = read(log(tmp_path, lines))
    configuration = profile.captures[0].configuration
    assert (configuration["devices"], configuration["sequence_length"]) == ("16", "4096")
    assert "the training was resumed with another configuration, which counts: devices from 8 to 16" in profile.warnings


@pytest.mark.parametrize(("text", "microbatches"), [("5 * 8", "40"), ("5 * world", None), ("5", "5")])
def test_product_is_its_value(tmp_path: Path, text: str, microbatches: str | None):
    lines = [f"gradient_accumulation_steps = {text}", *(nano(step, 100.0) for step in range(1, 21))]
    assert read(log(tmp_path, lines)).captures[0].configuration.get("microbatches") == microbatches


def ramped(step: int, ms: float, batch: int) -> str:
    return (
        f" iteration {step:8}/  500 | consumed samples: 64 | elapsed time per iteration (ms): {ms:.1f} | global batch "
        f"size:  {batch} | number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


@pytest.mark.parametrize(
    ("small", "batch", "said"), [(10, "512", "40 of 47 intervals"), (40, "256", "37 of 47 intervals")]
)
def test_batch_that_is_ramped_up_is_that_of_most_intervals(tmp_path: Path, small: int, batch: str, said: str):
    """Of 50 intervals the first 3 are warm-up."""
    lines = ["  global_batch_size ......... 512"]
    lines += [ramped(step, 500.0, 256) for step in range(1, small + 1)]
    lines += [ramped(step, 1000.0, 512) for step in range(small + 1, 51)]
    profile = read(log(tmp_path, lines))
    capture = profile.captures[0]
    assert capture.configuration["global_batch_size"] == batch
    (said_of_batch,) = [text for text in profile.warnings if "global batch size" in text]
    assert said_of_batch == (
        f"the global batch size changes from 256 to 512: {said} that count have {batch}, and the "
        "configuration is theirs; the median is of all intervals"
    )
    assert median_ms(capture) == {"512": 1000.0, "256": 500.0}[batch]


def test_parallel_sizes_of_mindformers(tmp_path: Path):
    lines = ["parallel_config:", "  data_parallel: 8", "  model_parallel: 4", "  pipeline_stage: 2"]
    lines += [f"{{ step:[{step}/  10], loss:  11.8, per_step_time:   200ms, lr: 1.0e-05 }}" for step in range(1, 10)]
    configuration = read(log(tmp_path, lines)).captures[0].configuration
    assert (configuration["dp"], configuration["tp"], configuration["pp"]) == ("8", "4", "2")


def test_micro_batch_of_deepspeed_has_no_dots(tmp_path: Path):
    lines = ["[2026-01-02 03:04:05,678] [INFO] [config.py:1000:print]   train_micro_batch_size_per_gpu  8"]
    lines += [nano(step, 100.0) for step in range(1, 21)]
    assert read(log(tmp_path, lines)).captures[0].configuration["micro_batch_size"] == "8"


# -- what is no interval, and what warms up


@pytest.mark.parametrize(("head", "step_ms"), [("  Total optimization steps = 200", 235_000.0), ("", 250_000.0)])
def test_time_of_a_whole_run_is_divided_by_its_steps(tmp_path: Path, head: str, step_ms: float):
    lines = ["***** Running training *****", head]
    lines += ["{'train_runtime': 47000.0, 'train_samples_per_second': 0.5, 'train_steps_per_second': 0.004}"]
    profile = read(log(tmp_path, lines))
    assert list(times_ms(profile.captures[0]).values()) == [step_ms]
    assert (
        "the time of a step comes from the time of the whole session, evaluation and saving included"
        in profile.warnings
    )


@pytest.mark.parametrize("norm", ["", "grad_norm:  2.1  "])
def test_validation_of_torchtitan_is_no_interval(tmp_path: Path, norm: str):
    prefix = "[rank0]:[titan] 2026-08-05 12:57:31,000 - root - INFO -"
    lines = [
        f"{prefix} Training starts at step 1, with local batch size 2, global batch size 16, sequence length 2048",
        f"{prefix} Building 1-D device mesh with ['dp_shard'], [8]",
    ]
    for step in range(1, 31):
        lines.append(f"{prefix} step: {step}  loss:  8.0  {norm}memory: 22.48GiB(71.70%)  tps: 20,480  tflops: 11.64")
        if step % 10 == 5:
            lines.append(f"{prefix} validate step: {step}  loss:  7.1  memory: 22.48GiB(71.70%)  tps: 99,999")
    profile = read(log(tmp_path, lines))
    assert set(times_ms(profile.captures[0]).values()) == {200.0}
    assert not [said for said in profile.warnings if "state a step again" in said]


def test_first_iteration_behind_an_evaluation_warms_up(tmp_path: Path):
    lines = ["step 0: train loss 10.9, val loss 10.9", nano(0, 30_000.0), *(nano(step, 100.0) for step in range(1, 30))]
    numbers = counters(read(log(tmp_path, lines)).captures[0])
    assert numbers["left out: warm-up"] == pytest.approx((30_000 + 100) / 2)
    assert "left out: evaluation or checkpoint" not in numbers


def test_first_interval_of_a_short_restart_warms_up(tmp_path: Path):
    lines = [nano(step, 100.0) for step in range(1, 21)]
    lines += [nano(18, 30_000.0), nano(19, 100.0), nano(20, 100.0)]
    profile = read(log(tmp_path, lines))
    assert set(times_ms(profile.captures[0]).values()) == {100.0}


def test_pipeline_engine_of_deepspeed(tmp_path: Path):
    lines = [
        f"steps: {step} loss: 2.3000 iter time (s): {9 if step == 10 else 0.5:.3f} samples/sec: 64.000"
        for step in range(10, 210, 10)
    ]
    capture = read(log(tmp_path, lines)).captures[0]
    assert capture.facts["framework"] == "deepspeed"
    assert set(times_ms(capture).values()) == {500.0}
    assert capture.rows is not None
    assert {row.breakdown.samples_per_second for row in capture.rows.steps} == {64.0}


def test_row_of_an_epoch_stands_for_its_steps(tmp_path: Path):
    lines = ["Train epoch time: 5810.500 ms, per step time: 3.099 ms"] * 10
    capture = read(log(tmp_path, lines)).captures[0]
    assert capture.rows is not None
    assert {row.steps for row in capture.rows.steps} == {1875}
    assert [row.step for row in capture.rows.steps][-1] == 18750
    assert set(times_ms(capture).values()) == {3.1}


def test_mean_throughput_of_llamafactory_is_refused_for_what_it_is(tmp_path: Path):
    line = "[INFO|2026-01-02 03:04:05] >> {'loss': 0.8, 'learning_rate': 2e-05, 'epoch': 0.1, 'throughput': 1234.5}"
    path = log(tmp_path, [line] * 9)
    with pytest.raises(SourceError, match="LLaMA-Factory with losses and the mean throughput since the start"):
        training_log.read(path)
