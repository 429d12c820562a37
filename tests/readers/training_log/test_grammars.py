"""Each grammar over a small log in the words of its framework, and over what launchers and people do to logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tracker import readers
from tracker.profile import Capture, Profile
from tracker.readers import training_log

PLAIN_MS = 200.0
"""The time of a step of every log here, but for the first one, which takes ten times as long."""


class Dialect(NamedTuple):
    """How a framework writes: the lines in front of the first step line, a step line by its number and the time of a
    step in s, the steps of a log, and what the log states. `warm_up`:
    how many of its intervals are left out.
    """

    framework: str
    line: Callable[[int, float], str]
    steps: Sequence[int] = range(10, 130, 10)
    head: Sequence[str] = ()
    unit: str | None = None
    scope: str | None = None
    rate: float | None = None
    is_cumulative: bool = False
    warm_up: int = 1

    @property
    def count(self) -> int:
        """How many intervals count."""
        return len(self.steps) - self.warm_up


def megatron(step: int, s: float) -> str:
    return (
        f" [2026-05-11 02:59:22.912300] iteration {step:8}/     500 | consumed samples: {step * 64} | elapsed time per "
        f"iteration (ms): {s * 1000:.1f} | throughput per GPU (TFLOP/s/GPU): {40 / s:.1f} | learning rate: 5.0E-06 | "
        "global batch size:    64 | lm loss: 1.186185E+01 | number of skipped iterations:   0 | number of nan "
        "iterations:   0 |"
    )


def mindspeed(step: int, s: float) -> str:
    return (
        f" iteration  {step}/50000 | consumed samples: 5632 | consumed tokens:  11534336 | elapsed time per iteration "
        f"(ms):  {s * 1000:.2f} | learning rate:    1.499E-05 | gloabl batch size:  512 | lm loss:  1.376514E+01 | "
        f"number of skipped iterations: 0 | samples per second: {512 / s:.3f} | TFLOPs: 149.24 |"
    )


def deepspeed(step: int, s: float) -> str:
    return (
        f"[2023-04-18 01:46:59,171] [INFO] [timer.py:199:stop] epoch=0/micro_step={step}/global_step={step}, "
        f"RunningAvgSamplesPerSec=173.4455644119137, CurrSamplesPerSec={32 / s}, MemAllocated=3.96GB, "
        "MaxMemAllocated=22.95GB"
    )


def torchtitan(step: int, s: float) -> str:
    return (
        f"[titan] 2026-05-11 07:58:57,995 - root - INFO - step: {step:2}  loss: 10.00168  grad_norm: 71296.3672  "
        f"memory: 22.48GiB(71.70%)  tps: {round(16 * 2048 / s / 8):,}  tflops: 11.64  mfu: 3.73%"
    )


def nemo(step: int, s: float) -> str:
    return (
        f"Training epoch 0, iteration {step}/999 | lr: 1.499e-07 | global_batch_size: 4 | global_step: {step} | "
        f"reduced_train_loss: 11.03 | train_step_timing in s: {s:.4} | consumed_samples: {step * 4}"
    )


def nemo_bar(step: int, s: float) -> str:
    return (
        f"Epoch 0: :  12%|#2 | {step}/999 [00:31<03:52, v_num=0, reduced_train_loss=10.90, global_step={step}.0, "
        f"consumed_samples=96.0, train_step_timing in s={s:.4}]"
    )


def llamafactory(step: int, elapsed: float) -> str:
    minutes, seconds = divmod(round(elapsed), 60)
    return json.dumps(
        {"current_steps": step, "total_steps": 8660, "loss": 2.4, "epoch": 0.1, "percentage": 0.1,
         "elapsed_time": f"{minutes // 60}:{minutes % 60:02}:{seconds:02}", "remaining_time": "5:58:33",
         "throughput": "0.00", "total_tokens": step * 1000}
    )  # fmt: skip


def tqdm_bar(step: int, elapsed: float) -> str:
    minutes, seconds = divmod(round(elapsed), 60)
    return f" {step / 5:.0f}%|##   | {step}/5000 [{minutes:02}:{seconds:02}<25:01,  5.00it/s]"


def mindformers(step: int, s: float) -> str:
    return (
        "2025-04-07 15:34:29,173 - [mindformers/core/callback/callback.py:529] - INFO - { Epoch:[  1/  2], step:"
        f"[{step:5}/ 1900], loss: 10.633, per_step_time: {round(s * 1000)}ms, lr: 1e-05, overflow cond: False, "
        f"train_throughput_per_npu: {40 / s:.3f}T"
    )


def time_monitor(step: int, s: float) -> str:
    return f"Train epoch time: {s * 125 * 1000:.3f} ms, per step time: {s * 1000:.3f} ms"


def loss_monitor(step: int, s: float) -> str:
    return f"Epoch:[  0/ 10], step:[{step:5}/ 1875], loss:[2.302/2.302], time:{s * 1000:.3f} ms, lr:0.01"


def mmcv(step: int, s: float) -> str:
    return json.dumps(
        {"mode": "train", "epoch": 1, "iter": step, "lr": 0.0, "memory": 14090, "data_time": 0.001, "loss": 0.002,
         "time": round(s, 5)}
    )  # fmt: skip


def mmengine(step: int, s: float) -> str:
    return json.dumps(
        {"lr": 0.02, "data_time": 0.001, "loss": 0.7, "time": s, "epoch": 1, "iter": step, "memory": 3000, "step": step}
    )


def mmengine_text(step: int, s: float) -> str:
    return (
        f"2023/01/05 17:02:33 - mmengine - INFO - Epoch(train)   [1][{step:4}/7330]  lr: 2.0e-04  eta: 1 day, 2:03:04  "
        f"time: {s:.4f}  data_time: 0.0010  memory: 3456  loss: 1.2"
    )


def mmcv_text(step: int, s: float) -> str:
    return (
        f"2021-05-01 10:00:00,123 - mmdet - INFO - Epoch [1][{step}/7330]\tlr: 1.978e-03, eta: 5:58:21, "
        f"time: {s:.3f}, data_time: 0.001, memory: 3779, loss_cls: 0.5, loss: 1.2"
    )


def detectron2(step: int, elapsed: float) -> str:
    return (
        f"[11/17 15:16:55 d2.utils.events]:  eta: 21:12:09  iter: {step}  total_loss: 0.3992  loss_cls: 0.2716  "
        f"time: {elapsed / step:.4f}  last_time: 0.1000  data_time: 0.0010  last_data_time: 0.0012   lr: 0.0004  "
        "max_mem: 11811M"
    )


def metrics_json(step: int, s: float) -> str:
    return json.dumps(
        {"data_time": 0.001, "eta_seconds": 99.8, "iteration": step, "lr": 1e-5, "time": s, "total_loss": 2.1}
    )


def fairseq(step: int, s: float) -> str:
    row = {"epoch": 1, "update": 0.3, "loss": "9.4", "wps": f"{8192 / s:.1f}", "ups": f"{1 / s:.2f}", "wpb": "8192",
           "bsz": "8", "num_updates": str(step), "train_wall": "2", "wall": str(round(step * s))}  # fmt: skip
    return f"2020-12-10 12:21:56 | INFO | train_inner | {json.dumps(row)}"


def fairseq_simple(step: int, s: float) -> str:
    return (
        f"2020-12-10 12:21:56 | INFO | train_inner | epoch 001:  {step} / 1101 loss=14.1, ppl=2.0, wps={8192 / s:.1f}, "
        f"ups={1 / s:.2f}, wpb=8192, bsz=8, num_updates={step}, lr=1e-05, gnorm=4.4, train_wall=2, wall=18"
    )


def nanogpt(step: int, s: float) -> str:
    return f"iter {step}: loss 3.6700, time {s * 1000:.2f}ms, mfu 2.23%"


def modded(step: int, elapsed: float) -> str:
    return f"step:{step}/6200 train_time:{elapsed * 1000:.0f}ms step_avg:{elapsed * 1000 / step:.2f}ms"


def llm_c(step: int, s: float) -> str:
    return (
        f"step {step:4}/6200 | loss 4.5 (+0.1z)| norm 1.2 (+0.3z)| lr 1.0e-04 | {s * 1000:.2f} ms | 40.1% bf16 MFU | "
        f"{round(8192 / s)} tok/s"
    )


def mllog(step: int, s: float) -> str:
    row = {
        "namespace": "",
        "time_ms": 1746079666616,
        "event_type": "POINT_IN_TIME",
        "key": "tracked_stats",
        "value": {"throughput": 32 / s},
        "metadata": {"file": "callbacks.py", "lineno": 287, "step": step},
    }
    return f":::MLLOG {json.dumps(row)}"


def paddlenlp(step: int, s: float) -> str:
    return (
        f"[2024-05-08 14:51:05,000] [    INFO] - loss: 11.2, learning_rate: 1e-06, global_step: {step}, "
        f"interval_runtime: {s * 10:.4f}, interval_samples_per_second: {32 / s:.4f}, interval_steps_per_second: "
        f"{1 / s:.4f}, interval_tokens_per_second_per_device: {2048 / s:.4f}, progress_or_epoch: 0.01"
    )


def torchtune(step: int, s: float) -> str:
    return (
        f"Step {step} | loss:1.234 lr:2e-05 tokens_per_second_per_gpu:{2048 / s:.4f} peak_memory_active:30.1 "
        "peak_memory_alloc:30.1 peak_memory_reserved:31.5 "
    )


def nanochat(step: int, s: float) -> str:
    return (
        f"step {step:05d}/21400 (0.12%) | loss: 8.900012 | grad norm: 0.2 | lrm: 1.00 | dt: {s * 1000:.2f}ms | "
        f"tok/sec: {round(8192 / s):,} | mfu: 47.0 | total time: 0.05m"
    )


def verl(step: int, s: float) -> str:
    return (
        f"step:{step} - global_seqlen/min:484245 - actor/lr:1e-06 - training/global_step:{step} - training/epoch:0 - "
        f"timing_s/gen:{s / 2:.4f} - timing_s/step:{s:.6f} - timing_per_token_ms/gen:0.01 - perf/throughput:{400 / s}"
    )


def prime_rl(step: int, s: float) -> str:
    return (
        f"12:03:05 SUCCESS Step {step} | Time: {s:.2f}s | Loss: 0.1234 | Entropy: 0.2 | Grad. Norm: 0.12 | LR: 1.0e-06 "
        f"| Throughput: {round(8192 / s)} tokens/s | MFU: 12.3% | Peak Mem.: 61.2 GiB"
    )


def maxtext(step: int, s: float) -> str:
    return (
        f"completed step: {step}, seconds: {s:.3f}, TFLOP/s/device: {40 / s:.3f}, Tokens/s/device: {8192 / s:.3f}, "
        "total_weights: 196608, loss: 11.400"
    )


def timm(step: int, s: float) -> str:
    return (
        f"Train: 0 [{step:>4d}/1251 ({step / 12.51:>3.0f}%)]  Loss: 6.95 (6.95)  Time: {s:.3f}s, {32 / s:>7.2f}/s  "
        "(0.412s, 2487.11/s)  LR: 1.000e-06  Data: 0.010 (0.023)"
    )


def metric_logger(step: int, s: float) -> str:
    return (
        f"Epoch: [0]  [{step:4d}/1251]  eta: 0:10:00  lr: 0.5  img/s: {32 / s:.1f}  loss: 6.9 (6.95)  time: {s:.4f}  "
        "data: 0.0100  max mem: 1234"
    )


def keras(epoch: int, s: float) -> str:
    """The first epoch takes 2 s a step, which Keras rounds to whole seconds: its total says more."""
    mean = f"{s:.0f}s" if s >= 1 else f"{s * 1000:.0f}ms"
    return f"Epoch {epoch}/12\n500/500 {'━' * 20} {500 * s:.0f}s {mean}/step - loss: 1.2 - val_loss: 1.1"


def ultralytics(epoch: int, s: float) -> str:
    minutes, seconds = divmod(118 * s, 60)
    time = f"{minutes:.0f}:{seconds:02.0f}" if minutes else f"{seconds:.1f}s"
    words = f"{f'{epoch}/100':>11}{'2.51G':>11}{1.249:11.4g}{1.614:11.4g}{45:11.4g}{640:11.4g}"
    return f"{words}: 100% {'━' * 12} 118/118 {1 / s:.1f}it/s {time}"


def lightning(step: int, elapsed: float) -> str:
    return (
        f"Epoch 0:  {step / 10:.0f}%|#   | {step}/1000 [00:{int(elapsed):02}<01:12, {step / elapsed:5.2f}it/s, "
        "v_num=3, train_loss=1.230]"
    )


def swift(step: int, elapsed: float) -> str:
    hours, minutes, seconds = int(elapsed) // 3600, int(elapsed) // 60 % 60, int(elapsed) % 60
    row = {
        "loss": 1.2, "memory(GiB)": 40.1, "train_speed(iter/s)": round(step / elapsed, 6), "epoch": 0.1,
        "global_step/max_steps": f"{step}/9000", "percentage": "5.00%",
        "elapsed_time": f"{f'{hours}h ' if hours else ''}{minutes}m {seconds}s", "remaining_time": "10m 0s",
    }  # fmt: skip
    return str(row)


DIALECTS = {
    "Megatron": Dialect("megatron", megatron, unit="TFLOP/s", scope="per rank", rate=200.0),
    "MindSpeed": Dialect("megatron", mindspeed, unit="samples/s", scope="total", rate=2560.0),
    "DeepSpeed": Dialect(
        "deepspeed", deepspeed, head=["  train_batch_size ............. 32", "global_batch_size=32"], unit="samples/s",
        scope="total", rate=160.0,
    ),
    "torchtitan": Dialect(
        "torchtitan", torchtitan, unit="tokens/s", scope="per rank", rate=20480.0,
        head=[
            "Building device mesh with parallelism: pp=8, dp_replicate=1, dp_shard=1, cp=1, tp=1, ep=1, etp=1",
            "Trainer is initialized with local batch size 16, global batch size 16, gradient accumulation steps 1, "
            "sequence length 2048, total steps 1000 (warmup 200)",
        ],
    ),
    "NeMo": Dialect("nemo", nemo),
    "NeMo 1": Dialect("nemo", nemo_bar),
    "LLaMA-Factory": Dialect(
        "llamafactory", llamafactory, steps=range(500, 6500, 500), unit="tokens/s", scope="total", rate=5000.0,
        is_cumulative=True,
    ),
    "Hugging Face": Dialect(
        "transformers", tqdm_bar, steps=range(500, 6500, 500), head=["***** Running training *****"], is_cumulative=True
    ),
    "MindFormers": Dialect("mindformers", mindformers, unit="TFLOP/s", scope="per rank", rate=200.0),
    "TimeMonitor": Dialect("mindspore", time_monitor),
    "LossMonitor": Dialect("mindspore", loss_monitor),
    "mmcv": Dialect("mmcv", mmcv),
    "MMEngine": Dialect("mmengine", mmengine),
    "MMEngine text": Dialect("mmengine", mmengine_text),
    "mmcv text": Dialect("mmengine", mmcv_text),
    "Detectron2": Dialect("detectron2", detectron2, is_cumulative=True),
    "metrics.json": Dialect("detectron2", metrics_json),
    "fairseq": Dialect("fairseq", fairseq, unit="words/s", scope="total", rate=40960.0),
    "fairseq text": Dialect("fairseq", fairseq_simple, unit="words/s", scope="total", rate=40960.0),
    "nanoGPT": Dialect("nanogpt", nanogpt),
    "modded-nanogpt": Dialect("modded-nanogpt", modded, steps=range(1, 40), is_cumulative=True, warm_up=11),
    "llm.c": Dialect("llm.c", llm_c, unit="tokens/s", scope="total", rate=40960.0),
    "MLPerf": Dialect(
        "mlperf", mllog, unit="samples/s", scope="total", rate=160.0,
        head=[':::MLLOG {"namespace": "", "time_ms": 1, "key": "global_batch_size", "value": 32, "metadata": {}}'],
    ),
    "torchtune": Dialect(
        "torchtune", torchtune, unit="tokens/s", scope="per rank", rate=10240.0,
        head=["batch_size: 4", "global_batch_size=8", "seq_length=2048", "world_size: 8"],
    ),
    "nanochat": Dialect("nanochat", nanochat, unit="tokens/s", scope="total", rate=40960.0),
    "verl": Dialect("verl", verl, unit="tokens/s", scope="per rank", rate=2000.0),
    "prime-rl": Dialect("prime-rl", prime_rl, unit="tokens/s", scope="total", rate=40960.0),
    "MaxText": Dialect("maxtext", maxtext, unit="tokens/s", scope="per rank", rate=40960.0),
    "timm": Dialect("timm", timm, unit="samples/s", scope="total", rate=160.0),
    "torchvision": Dialect("torchvision", metric_logger, unit="samples/s", scope="per rank", rate=160.0),
    "Keras": Dialect("keras", keras, steps=range(1, 13)),
    "Ultralytics": Dialect("ultralytics", ultralytics, steps=range(1, 13)),
    "Lightning": Dialect("lightning", lightning, is_cumulative=True),
    "ms-swift": Dialect("ms-swift", swift, steps=range(500, 6500, 500), is_cumulative=True),
    "PaddleNLP": Dialect("paddlenlp", paddlenlp, unit="tokens/s", scope="per rank", rate=10240.0),
}  # fmt: skip


def step_lines(dialect: Dialect) -> list[str]:
    """Step lines in which the first step takes ten times as long as the others, which take 200 ms."""
    lines = []
    elapsed, before = 0.0, 0
    for place, step in enumerate(dialect.steps):
        step_s = (10 if place == 0 else 1) * PLAIN_MS / 1000
        elapsed += step_s * (step - before)
        before = step
        lines.append(dialect.line(step, elapsed if dialect.is_cumulative else step_s))
    return lines


def read(path: Path) -> Profile:
    assert readers.claim(path) == "training_log"
    return training_log.read(path)


def capture_of(path: Path) -> Capture:
    (capture,) = read(path).captures
    return capture


def times_ms(capture: Capture) -> list[float]:
    assert capture.rows is not None
    return [round(row.breakdown.duration_ns / 1e6, 1) for row in capture.rows.steps if row.breakdown.duration_ns]


def written(folder: Path, lines: Sequence[str], name: str = "train.log", end: str = "\n") -> Path:
    path = folder / name
    path.write_bytes(end.join([*lines, ""]).encode())
    return path


@pytest.mark.parametrize("name", DIALECTS)
def test_every_interval_behind_the_warm_up_is_a_row(tmp_path: Path, name: str):
    dialect = DIALECTS[name]
    capture = capture_of(written(tmp_path, [*dialect.head, *step_lines(dialect)]))
    assert capture.facts["framework"] == dialect.framework
    assert times_ms(capture) == pytest.approx([PLAIN_MS] * dialect.count, rel=0.03)
    settings = capture.settings
    assert (settings.get("throughput_unit"), settings.get("throughput_scope")) == (dialect.unit, dialect.scope)
    assert capture.rows is not None
    rates = [row.breakdown.samples_per_second for row in capture.rows.steps]
    assert rates == (
        [None] * len(rates) if dialect.rate is None else pytest.approx([dialect.rate] * len(rates), rel=0.03)
    )


PREFIXES = {
    "rank of torchrun": "[rank7]:", "default": "[default0]:", "mpirun": "[1,0]<stdout>:", "srun": "0: ",
    "host": "vm-07-14: ", "logger": "[---utils.py:382] : ", "indented": "      ",
    "kubernetes": "2026-05-11T02:59:22.912300123Z stdout F ", "pod": "[pod/train-worker-0/pytorch] ",
    "ray": "(TrainWorker pid=1234, ip=10.0.0.1) ", "compose": "trainer-1  | ", "srun of many": " 12: ",
    "colours": "\x1b[32m20260511\x1b[0m[\x1b[36mrank-7/8\x1b[0m]\x1b[1m ",
}  # fmt: skip


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", DIALECTS)
def test_prefix_and_text_in_another_encoding_do_no_harm(tmp_path: Path, name: str, prefix: str):
    dialect = DIALECTS[name]
    lines = [PREFIXES[prefix] + line for line in [*dialect.head, *step_lines(dialect)]]
    path = tmp_path / "train.log"
    path.write_bytes("训练开始\n".encode("gbk") + "\n".join(lines).encode() + "\n结束\n".encode("gbk"))
    assert len(times_ms(capture_of(path))) == dialect.count


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize("name", DIALECTS)
def test_any_line_end_does_no_harm(tmp_path: Path, name: str, end: str):
    dialect = DIALECTS[name]
    path = written(tmp_path, [*dialect.head, *step_lines(dialect)], end=end)
    assert len(times_ms(capture_of(path))) == dialect.count


@pytest.mark.parametrize("name", [name for name in DIALECTS if name != "TimeMonitor"])  # which numbers no epoch
def test_line_that_stands_twice_counts_once(tmp_path: Path, name: str):
    dialect = DIALECTS[name]
    doubled = [line for line in step_lines(dialect) for _ in range(2)]
    profile = read(written(tmp_path, [*dialect.head, *doubled]))
    assert len(times_ms(profile.captures[0])) == dialect.count
    assert f"{len(dialect.steps)} lines state a step again; each step counts once" in profile.warnings


@pytest.mark.parametrize("name", DIALECTS)
def test_log_of_one_family_names_no_other(tmp_path: Path, name: str):
    dialect = DIALECTS[name]
    profile = read(written(tmp_path, [*dialect.head, *step_lines(dialect)]))
    assert not [text for text in profile.warnings if "also has step lines" in text]


@pytest.mark.parametrize("name", DIALECTS)
def test_last_line_that_is_cut_off_is_left_out(tmp_path: Path, name: str):
    dialect = DIALECTS[name]
    lines = [*dialect.head, *step_lines(dialect)]
    cut = lines[-1][: int(len(lines[-1]) * 0.7)]
    path = tmp_path / "train.log"
    path.write_text("\n".join([*lines[:-1], cut]))
    assert times_ms(capture_of(path)) == pytest.approx([PLAIN_MS] * (dialect.count - 1), rel=0.03)


@pytest.mark.parametrize("name", DIALECTS)
def test_secret_of_an_argument_dump_is_nowhere(tmp_path: Path, name: str):
    dialect = DIALECTS[name]
    token = "hf_PLANTED0token1SECRET2"
    dump = [
        f"  hf_token ............. {token}", f"--api-key={token}", f"{{'wandb_api_key': '{token}'}}",
        f"model_name_or_path: https://user:{token}@host/model", f"Driver Version: {token}", f"PyTorch: {token}",
        f"Namespace(batch_size=8, password='{token}', seq_length={token})", f"world_size: {token}",
    ]  # fmt: skip
    profile = read(written(tmp_path, [*dump, *dialect.head, *step_lines(dialect)]))
    assert token not in repr(profile)


def test_framework_of_no_file_has_a_dialect_here():
    from tracker.readers.training_log.grammars import GRAMMARS

    tested = {dialect.framework for dialect in DIALECTS.values()}
    assert {grammar.name for grammar in GRAMMARS} - tested == {"paddle"}  # test_paddle.py
