"""Step lines as older, newer and derived versions of a framework write them.

Every log here has 12 steps. The first one takes 2 s, the others 200 ms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tracker import readers
from tracker.profile import Capture
from tracker.readers import training_log

STEPS = range(1, 13)


class Version(NamedTuple):
    """A way to write a step line. `line`: the text by step, time of the step, and time since the start, in s.

    `rate`, `unit`: the throughput that a step of 200 ms states. `head`: lines in front of the first step line.
    `framework`: whose log it is. `warm_up`: how many of the 12 intervals are left out.
    """

    framework: str
    line: Callable[[int, float, float], str]
    unit: str | None = None
    rate: float | None = None
    head: Sequence[str] = ()
    warm_up: int = 3
    tail: Sequence[str] = ()


def bigscience(step: int, s: float, _: float) -> str:
    return (
        f"[default7]: iteration {step:8}/  115311 | consumed samples: 9841584 | consumed tokens:  20155564032 | "
        f"elapsed time per iteration (s): {s:.2f} | learning rate: 5.969E-05 | global batch size:  2048 | lm loss: "
        f"2.463556E+00 | number of skipped iterations:   0 | samples per second: {2048 / s:.3f} | TFLOPs: 149.02 |"
    )


def argonne(step: int, s: float, _: float) -> str:
    return (
        f"[2024-09-16 22:59:19.287338][INFO][training_log:661] -  iteration={step:8}/  635782 | consumed_samples= 768 "
        f"| elapsed_time_per_iteration_ms={s * 1000:.1f} | learning_rate=9.4e-09 | global_batch_size=768 | lm "
        f"loss=11.167250 | number_of_skipped_iterations=  0 | samples_per_second={768 / s:.3f} | "
        f"tokens_per_gpu_per_second_tgs={4096 * 32 / s:.3f} | [LM]TFLOPs=20.30 | [DS]TFLOPs=26.18 |"
    )


def microsoft_megatron(step: int, s: float, _: float) -> str:
    return (
        f" iteration {step:8}/  500 | consumed samples: 64 | elapsed time per iteration (ms): {s * 1000:.1f} | global "
        f"batch size:    64 | lm loss: 1.1E+01 | number of skipped iterations:   0 | tokens per gpu per second (tgs): "
        f"{4096 * 32 / s:.3f} | TFLOPs: 45.11 |"
    )


def first_megatron(step: int, s: float, _: float) -> str:
    return f" iteration {step:8}/  500 | elapsed time per iteration (ms): {s * 1000:.1f} | learning rate 1.5E-04 |"


def megatron_bridge(step: int, s: float, _: float) -> str:
    return (
        f" [2025-11-13 16:26:12] iteration {step:8}/      50 | consumed samples: 256 | elapsed time per iteration (ms):"
        f" {s * 1000:.1f} | throughput per GPU (TFLOP/s/GPU): {40 / s:.1f} | learning rate: 1.2E-05 | global batch "
        f"size:   256 | lm loss: 1.2E+01 | number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def deepspeed_0_7(step: int, s: float, _: float) -> str:
    return (
        f"[2022-09-01 01:46:59,171] [INFO] [timer.py:207:stop] 0/{step}, RunningAvgSamplesPerSec=173.4, "
        f"CurrSamplesPerSec={32 / s}, MemAllocated=3.96GB, MaxMemAllocated=22.95GB"
    )


def deepspeed_0_5(step: int, _: float, elapsed: float) -> str:
    # the mean since step 2, which is the first one that counts
    steady = elapsed - 2.2
    rate = 32 * (step - 2) / steady if step > 2 else float("-inf")
    return f"[2021-10-01 01:46:59,171] [INFO] [timer.py:157:stop] 0/{step}, SamplesPerSec={rate}"


def trainer_5(step: int, _: float, elapsed: float) -> str:
    return (
        f"{{'loss': '1.747', 'grad_norm': '5.769', 'learning_rate': '0', 'epoch': '0.1'}}\r {step}%|#    | "
        f"{step * 500}/6000 [{int(elapsed * 500) // 60:02}:{int(elapsed * 500) % 60:02}<25:01,  5.00it/s]"
    )


def old_llamafactory(step: int, _: float, elapsed: float) -> str:
    seconds = round(elapsed * 500)
    return json.dumps(
        {"current_steps": step * 500, "total_steps": 6000, "loss": 1.2, "eval_loss": None, "predict_loss": None,
         "reward": None, "learning_rate": 5e-05, "epoch": 0.1, "percentage": 10.0,
         "elapsed_time": f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}", "remaining_time": "0:03:00"}
    )  # fmt: skip


def torchtitan_2024(step: int, s: float, _: float) -> str:
    return (
        f"[rank0]:2024-08-05 12:57:31,000 - root - INFO - \x1b[36mstep: {step:2}  \x1b[32mloss: 12.2  \x1b[33mmemory: "
        f" 9.91GiB(31.27%)  \x1b[34mwps: {round(16 * 2048 / s / 8):,}  \x1b[35mmfu: 39.04%\x1b[0m"
    )


def torchtitan_without_peak(step: int, s: float, _: float) -> str:
    return (
        f"[rank0]:[titan] 2025-08-05 12:57:31,000 - root - INFO - step: {step}  loss:  8.0  grad_norm:  2.1  memory: "
        f"22.48GiB(71.70%)  tps: {round(16 * 2048 / s / 8):,}  tflops: 11.64  mfu: N/A"
    )


TITAN_HEAD = (
    "[rank0]:2024-08-05 12:57:20,000 - root - INFO - Building 1-D device mesh with ['dp_shard'], [8]",
    "[rank0]:2024-08-05 12:57:20,000 - root - INFO - Training starts at step 1, with local batch size 2, global batch "
    "size 16, sequence length 2048, total steps 1000 (warmup 200)",
)


def nemo_2(step: int, s: float, _: float) -> str:
    samples = f" | consumed_samples: {step * 8}" if step > 1 else ""
    return (
        f"i.pretrain/0 [default0]:Training epoch 0, iteration {step - 1}/249 | lr: 1.961e-06 | global_batch_size: 8 | "
        f"global_step: {step - 1} | reduced_train_loss: 1.315 | train_step_timing in s: {s:.4}{samples}"
    )


def nemo_1(step: int, s: float, _: float) -> str:
    return (
        f"Epoch 0: :  {step}%|#2 | {step}/100 [10:48<00:00, v_num=0, reduced_train_loss=0.0172, global_step="
        f"{step - 1:.2f}, consumed_samples=256.0, train_step_timing in s={s:.3f}]"
    )


def mindformers_without_epoch(step: int, s: float, _: float) -> str:
    return (
        f"{{ step:[{step:5}/   10], loss:  11.813965, per_step_time: {s * 1000:6.0f}ms, load_balancing_loss:   1.09, "
        f"lr: 1.0e-05, grad_norm:  13.83, throughput: {40 / s:6.2f}T }}"
    )


def mindspore_fps(step: int, s: float, _: float) -> str:
    return (
        f"2023-01-10 17:29:07,004:INFO:epoch[{step}], iter[{step * 377}], loss:1280.677487, per step time: "
        f"{s * 1000:.2f} ms, fps: {64 / s:.2f}, lr:0.003"
    )


def mindspore_monitor(step: int, s: float, _: float) -> str:
    return (
        f"epoch: [1/10] step: [{step}/100], loss: 6.5, overflow: False, lr: 0.001, per step time: {s * 1000:.3f} ms, "
        f"fps: {64 / s:.2f} img/s"
    )


def epochs_in_seconds(step: int, s: float, _: float) -> str:
    return f"epoch[{step}], epoch time: {s * 125:.2f}s, per step time: {s:.4f}s, loss=0.123"


def first_time_monitor(_: int, s: float, __: float) -> str:
    return f"epoch time: {s * 125 * 1000:.3f}, per step time: {s * 1000:.3f}"


def mmcv_by_iterations(step: int, s: float, _: float) -> str:
    return json.dumps(
        {"mode": "train", "epoch": 1, "iter": step * 50, "lr": 0.01, "memory": 8000, "data_time": 0.004,
         "decode.loss_ce": 1.2, "loss": 1.5, "time": round(s, 5)}
    )  # fmt: skip


def mmengine_generator(step: int, s: float, _: float) -> str:
    return json.dumps(
        {"discriminator/lr": 1e-4, "generator/lr": 1e-4, "data_time": 0.002, "loss_gan": 0.1, "time": s, "iter": step,
         "memory": 9000, "step": step}
    )  # fmt: skip


def detectron2_lazy(step: int, s: float, _: float) -> str:
    # the first line is of 19 iterations
    mean = (19 * 2.0 + 20 * 0.2 * (step - 1)) / (step * 20 - 1)
    return (
        f"[01/02 03:04:05 d2.utils.events]:  eta: 1 day, 1:12:09  iter: {step * 20 - 1}  loss: 0.3992  loss_cls: 0.27  "
        f"time: {mean:.4f}  last_time: {s:.4f}  data_time: 0.0010  last_data_time: 0.0012   lr: 0.0004  max_mem: 11811M"
    )


def metrics_without_eta(step: int, s: float, _: float) -> str:
    return json.dumps({"data_time": 0.001, "iteration": step * 20 - 1, "lr": 1e-5, "time": s, "total_loss": 2.1})


def fairseq_0_9(step: int, _: float, elapsed: float) -> str:
    return (
        f"2020-02-28 16:17:37 | INFO | train | epoch 001: {step * 500:6} / 31621 loss=15.180, nll_loss=15.180, "
        f"ppl=37113.65, wps=40960, ups=5, wpb=8192, bsz=256, num_updates={step * 500}, lr=1e-07, gnorm=4.2, "
        f"train_wall=19, wall={round(elapsed * 500)}"
    )


def fairseq_0_8(step: int, _: float, elapsed: float) -> str:
    return (
        f"| epoch 001: {step * 500:6} / 31621 loss=15.180, nll_loss=15.180, ppl=37113.65, wps=40960, ups=0, "
        f"wpb=8192.455, bsz=256.000, num_updates={step * 500}, lr=1.1e-07, gnorm=4.208, clip=0.000, oom=0.000, "
        f"wall={round(elapsed * 500)}, train_wall=19"
    )


def fairseq_hydra(step: int, s: float, elapsed: float) -> str:
    row = {"epoch": 1, "loss": "9.4", "wps": f"{8192 / s:.1f}", "ups": f"{1 / s:.2f}", "wpb": "8192", "bsz": "8",
           "num_updates": str(step), "train_wall": "2", "wall": str(round(elapsed))}  # fmt: skip
    return f"[2021-03-01 10:11:12,345][train_inner][INFO] - {json.dumps(row)}"


def modded_first(step: int, _: float, elapsed: float) -> str:
    return f"step:{step}/6200 train_loss:4.5 train_time:{elapsed * 1000:.0f}ms step_avg:{elapsed * 1000 / step:.2f}ms"


def paddlenlp_2022(step: int, s: float, _: float) -> str:
    return (
        f"[2022-08-31 15:38:22,994] [    INFO] - loss: 0.91882019, learning_rate: 2.97e-06, global_step: {step * 10}, "
        f"interval_runtime: {s * 10:.4f}, interval_samples_per_second: {8 / s:.3f}, interval_steps_per_second: "
        f"{1 / s:.3f}, epoch: 0.5"
    )


def paddlenlp_2024(step: int, s: float, _: float) -> str:
    return (
        f"[    INFO] - loss: 12.0635252, learning_rate: 2e-06, global_step: {step}, current_memory_allocated: 7.54, "
        f"max_memory_allocated: 7.55, interval_runtime: {s:.4f}, interval_samples_per_second: {1 / s:.4f}, "
        f"interval_tokens_per_second_per_device: {1024 / s:.4f}, interval_hardware_tflops_per_device: {2 / s:.2f}, "
        f"interval_steps_per_second: {1 / s:.4f}, progress_or_epoch: 0.0"
    )


def mlperf_step_time(step: int, s: float, _: float) -> str:
    row = {"namespace": "", "time_ms": 1746079666616 + step, "event_type": "POINT_IN_TIME", "key": "tracked_stats",
           "value": {"train_step_time": s}, "metadata": {"file": "a.py", "lineno": 1, "step": step}}  # fmt: skip
    return f"ray-training  | [0] :::MLLOG {json.dumps(row)}"


VERSIONS = {
    "Megatron of BigScience": Version("megatron", bigscience, "samples/s", 10240),
    "Megatron of Argonne": Version("megatron", argonne, "tokens/s", 655360),
    "Megatron of Microsoft": Version("megatron", microsoft_megatron, "tokens/s", 655360),
    "Megatron 1": Version("megatron", first_megatron),
    "Megatron Bridge": Version("megatron", megatron_bridge, "TFLOP/s", 200),
    "DeepSpeed 0.7": Version("deepspeed", deepspeed_0_7, "samples/s", 160, head=["train_batch_size ..... 32"]),
    "DeepSpeed 0.5": Version("deepspeed", deepspeed_0_5, "samples/s", 160, head=["train_batch_size ..... 32"]),
    "Hugging Face 5": Version("transformers", trainer_5, warm_up=1),
    "LLaMA-Factory 2023": Version("llamafactory", old_llamafactory, warm_up=1),
    "torchtitan 2024": Version("torchtitan", torchtitan_2024, "tokens/s", 20480, head=TITAN_HEAD),
    "torchtitan, unknown peak": Version("torchtitan", torchtitan_without_peak, "tokens/s", 20480, head=TITAN_HEAD),
    "NeMo 2": Version("nemo", nemo_2),
    "NeMo 1": Version("nemo", nemo_1),
    "MindFormers without epochs": Version("mindformers", mindformers_without_epoch, "TFLOP/s", 200),
    "MindSpore with fps": Version("mindspore", mindspore_fps),
    "MindSpore with steps": Version("mindspore", mindspore_monitor),
    "MindSpore in seconds": Version("mindspore", epochs_in_seconds, warm_up=1),
    "MindSpore without units": Version("mindspore", first_time_monitor, warm_up=1),
    "mmcv by iterations": Version("mmcv", mmcv_by_iterations),
    "MMEngine with two optimizers": Version("mmengine", mmengine_generator),
    "Detectron2 of a lazy config": Version("detectron2", detectron2_lazy),
    "metrics.json without eta": Version("detectron2", metrics_without_eta),
    "fairseq 0.9": Version("fairseq", fairseq_0_9, "words/s", 40960),
    "fairseq 0.8": Version("fairseq", fairseq_0_8, "words/s", 40960),
    "fairseq with hydra": Version("fairseq", fairseq_hydra, "words/s", 40960),
    "modded-nanogpt 1": Version("modded-nanogpt", modded_first, warm_up=11),
    "PaddleNLP 2022": Version("paddlenlp", paddlenlp_2022, "samples/s", 40),
    "PaddleNLP 2024": Version("paddlenlp", paddlenlp_2024, "tokens/s", 5120),
    "MLPerf of a step time": Version("mlperf", mlperf_step_time),
}


def lines_of(version: Version) -> list[str]:
    lines = list(version.head)
    elapsed = 0.0
    for step in STEPS:
        step_s = 2.0 if step == 1 else 0.2
        elapsed += step_s
        lines.append(version.line(step, step_s, elapsed))
    return [*lines, *version.tail]


def capture_of(folder: Path, version: Version) -> Capture:
    path = folder / "train.log"
    path.write_text("\n".join([*lines_of(version), ""]))
    assert readers.claim(path) == "training_log"
    (capture,) = training_log.read(path).captures
    return capture


@pytest.mark.parametrize("name", VERSIONS)
def test_step_takes_200_ms(tmp_path: Path, name: str):
    version = VERSIONS[name]
    capture = capture_of(tmp_path, version)
    assert capture.rows is not None
    times = [(row.breakdown.duration_ns or 0) / 1e6 for row in capture.rows.steps]
    assert capture.facts["framework"] == version.framework
    assert set(times) and times == pytest.approx([200.0] * len(times), rel=0.03)
    assert len(times) >= min(8, 12 - version.warm_up)


@pytest.mark.parametrize("name", [name for name, version in VERSIONS.items() if version.unit])
def test_throughput_is_that_of_the_line(tmp_path: Path, name: str):
    version = VERSIONS[name]
    capture = capture_of(tmp_path, version)
    assert capture.rows is not None
    rates = [row.breakdown.samples_per_second for row in capture.rows.steps]
    assert capture.settings["throughput_unit"] == version.unit
    assert rates == pytest.approx([version.rate] * len(rates), rel=0.03)
