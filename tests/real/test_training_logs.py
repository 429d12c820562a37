"""Every shared training log, against a second reading of it that shares no code with the reader."""

from __future__ import annotations

import json
import re
import struct
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from tests.real import data
from tracker import readers
from tracker.compare import diff
from tracker.errors import SourceError
from tracker.profile import Capture, Device
from tracker.readers import training_log

FOLDER = "training_logs"
REFUSED = {
    "huggingface/mistral_README.md": "no known profiler",
    "huggingface/mistral_all_results.json": "without a step time",
    "huggingface/mistral_checkpoint-2500_trainer_state.json": "no times in it",
    "mindspeed/llama_readme_log_lines.md": "a document",
    "mindspore/dataset_autotune.md": "a document",
    "mindspore/mindformers_high_availability.md": "a document",
    "mindspore/transfer_learning_tutorial.md": "a document",
    "mindspore/vit_tutorial.md": "a document",
    "nanogpt/modded_llmc_main.txt": "no times in it",
}
# median of the step in ms, and how many intervals it is of
REFERENCE = {
    "megatron/primus_llama31_8b_50iter.log": (14962.0, 47),
    "megatron/primus_dsv2lite_fp8_mi355x_baseline.log": (32057.4, 17),
    "megatron/primus_dsv2lite_fp8_mi355x_candidate.log": (32048.2, 16),
    "mindspeed/qwen3_8b_tp2_pp4_vpp2.json": (931.8, 11),
    "mindspeed/qwen3_8b_tp2_pp4_vpp2_swap.json": (2281.4, 12),
    "deepspeed/opt-1.3b-sft-gbs128.log": (745.8, 735),
    "huggingface/mistral_trainer_log.jsonl": (2400.0, 865),
    "mmengine/vitpose-b.log.json": (192.37, 840),
    "mmengine/vitpose-b-simple.log.json": (238.27, 840),
    "detectron2/fasterrcnn_lr0.01.log.txt": (680.7, 996),
    "fairseq/wav2vec_first_try.out": (4480.0, 63),
    "nanogpt/modded_unet_ve_a.txt": (162.0, 1469),
    "nanogpt/modded_mfu_tweaks_a.txt": (157.0, 1469),
    "mlperf/amd_mi350x_llama31_8b_r0.txt": (1280.0, 13),
    "paddle/bert_base_fp16_gpu32_v100.log": (145.49, 49),
    "paddle/bert_base_fp32_gpu32_v100.log": (596.98, 49),
    "tensorboard/primus_titan_20250815-0859.tfevents": (1830.0, 100),
}
THROUGHPUT = {
    "megatron/primus_llama31_8b_50iter.log": (507.3, "TFLOP/s", "per rank"),
    "deepspeed/opt-1.3b-sft-gbs128.log": (171.63, "samples/s", "total"),
    "mlperf/amd_mi350x_llama31_8b_r0.txt": (25.00, "samples/s", "total"),
    "mlperf/amd_mi355x_llama31_8b_r0.txt": (30.66, "samples/s", "total"),
    "tensorboard/primus_titan_20250815-0859.tfevents": (1116.9, "tokens/s", "per rank"),
}


def logs() -> list[str]:
    folder = data.folder() / FOLDER
    return [str(path.relative_to(folder)) for path in sorted(folder.glob("*/*"))]


def path_of(name: str) -> Path:
    return Path(data.path(f"{FOLDER}/{name}"))


@lru_cache(maxsize=64)
def capture_of(name: str) -> Capture:
    (capture,) = training_log.read(path_of(name)).captures
    return capture


def times_of(name: str) -> list[float]:
    rows = capture_of(name).rows
    assert rows is not None
    return [row.breakdown.duration_ns / 1e6 for row in rows.steps if row.breakdown.duration_ns is not None]


# -- the second reading: regular expressions and JSON, one rule a framework, in ms


def lines_of(name: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", path_of(name).read_text(errors="replace")).splitlines()


def matches(name: str, pattern: str) -> list[re.Match[str]]:
    return [match for line in lines_of(name) if (match := re.search(pattern, line))]


def second_reading(name: str) -> list[float]:
    return {
        "megatron": megatron, "mindspeed": mindspeed, "deepspeed": deepspeed, "huggingface": huggingface,
        "mmengine": mmengine, "detectron2": detectron2, "fairseq": fairseq, "nanogpt": nanogpt, "mlperf": mlperf,
        "paddle": paddle, "tensorboard": tensorboard,
    }[name.split("/", maxsplit=1)[0]](name)  # fmt: skip


def megatron(name: str) -> list[float]:
    of_step = {
        int(m[1]): float(m[2]) for m in matches(name, r"iteration +(\d+)/.*elapsed time per iteration \(ms\): ([\d.]+)")
    }
    return [time for step, time in of_step.items() if step >= 4]


def mindspeed(name: str) -> list[float]:
    return json.loads(path_of(name).read_text())["time info"][3:]


def deepspeed(name: str) -> list[float]:
    batch = int(re.search(r"gbs(\d+)", name)[1])
    return [batch / float(m[1]) * 1000 for m in matches(name, r"CurrSamplesPerSec=([\d.]+)")][1:]


def huggingface(name: str) -> list[float]:
    rows = [json.loads(line) for line in path_of(name).read_text().splitlines()]
    seconds = {}
    for row in rows:
        hours, minutes, rest = row["elapsed_time"].split(":")
        seconds[row["current_steps"]] = int(hours) * 3600 + int(minutes) * 60 + int(rest)
    return [(b - a) * 1000 / (step - before) for (before, a), (step, b) in pairwise(seconds.items())]


def mmengine(name: str) -> list[float]:
    rows = [json.loads(line) for line in path_of(name).read_text().splitlines()[1:]]
    return [row["time"] * 1000 for row in rows if row["mode"] == "train"]


def detectron2(name: str) -> list[float]:
    if name.endswith(".json"):
        rows = [json.loads(line) for line in path_of(name).read_text().splitlines()]
        return list({row["iteration"]: row["time"] * 1000 for row in rows}.values())[1:]
    return [float(m[1]) * 1000 for m in matches(name, r"iter: \d+  total_loss.*?  time: ([\d.]+)")][1:]


def fairseq(name: str) -> list[float]:
    rows = [json.loads(m[1]) for m in matches(name, r"train_inner.*?(\{.*\})")]
    if "sweep" in name:  # lines were cut out of it
        return [1000 / float(row["ups"]) for row in rows]
    pairs = [(int(row["num_updates"]), float(row["wall"])) for row in rows]
    return [(b - a) * 1000 / (step - before) for (before, a), (step, b) in pairwise(pairs)]


def nanogpt(name: str) -> list[float]:
    if "modded" in name:
        found = {int(m[1]): int(m[2]) for m in matches(name, r"^step:(\d+)/\d+ train_time:(\d+)ms")}
        return [found[step] - found[step - 1] for step in found if step >= 12]
    return [float(m[1]) for m in matches(name, r"^iter \d+: loss [\d.]+, time ([\d.]+)ms")][1:]


def mlperf(name: str) -> list[float]:
    batch = int(
        re.search(r'"global_batch_size", "value": (\d+)|global_batch_size: (\d+)', path_of(name).read_text()).group(1)
        or 8
    )
    if rates := matches(name, r'"tracked_stats", "value": \{"throughput": ([\d.]+)\}'):
        return [batch / float(m[1]) * 1000 for m in rates][1:]
    return [float(m[1]) * 1000 for m in matches(name, r'"train_step_time": ([\d.]+)')][1:]


def paddle(name: str) -> list[float]:
    return [float(m[1]) * 1000 for m in matches(name, r"batch_cost: ([\d.]+)")][1:]


def tensorboard(name: str) -> list[float]:
    if name.endswith(".json"):
        values = json.loads(path_of(name).read_text())["iteration-time"]["values"]
        return [value * 1000 for step, value in values.items() if int(step) >= 4 and value != "nan"]
    tag = b"time_metrics/end_to_end(s)" if "titan" in name else b"time"
    content, at, found = path_of(name).read_bytes(), 0, []
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        record = content[at + 12 : at + 12 + length]
        # tag (1) and simple value (2) of a summary's value
        mark = b"\x0a" + bytes([len(tag)]) + tag + b"\x15"
        if (place := record.find(mark)) >= 0:
            found.append(struct.unpack_from("<f", record, place + len(mark))[0] * 1000)
        at += length + 16
    return found[1:]


# -- the tests


def test_the_shared_logs_are_there():
    data.path(FOLDER)
    assert len(logs()) == 51


@pytest.mark.parametrize("name", logs())
def test_log_agrees_with_a_second_reading(name: str):
    if name in REFUSED:
        with pytest.raises(SourceError, match=REFUSED[name]):
            readers.claim(path_of(name))
        return
    assert readers.claim(path_of(name)) == "training_log"
    found, expected = times_of(name), second_reading(name)
    assert median(found) == pytest.approx(median(expected), rel=0.02)
    assert len(found) <= len(expected) + 1


@pytest.mark.parametrize("name", REFERENCE)
def test_log_has_the_median_that_was_read_by_hand(name: str):
    expected, count = REFERENCE[name]
    found = times_of(name)
    assert (median(found), len(found)) == (pytest.approx(expected, rel=0.02), count)


@pytest.mark.parametrize("name", THROUGHPUT)
def test_log_states_its_throughput(name: str):
    expected, unit, scope = THROUGHPUT[name]
    capture = capture_of(name)
    assert capture.rows is not None
    rates = [row.breakdown.samples_per_second for row in capture.rows.steps]
    assert median(rates) == pytest.approx(expected, rel=0.02)
    assert (capture.settings["throughput_unit"], capture.settings["throughput_scope"]) == (unit, scope)


@pytest.mark.parametrize(
    ("name", "loading_ms"), [("mmengine/vitpose-b.log.json", 0.38), ("detectron2/fasterrcnn_lr0.01.log.txt", 66.7)]
)
def test_log_states_how_long_a_step_waits_for_data(name: str, loading_ms: float):
    rows = capture_of(name).rows
    assert rows is not None
    assert median(row.breakdown.data_loading_ns / 1e6 for row in rows.steps) == pytest.approx(loading_ms, rel=0.02)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("mindspeed/qwen3_8b_tp2_pp4_vpp2.json", "mindspeed/qwen3_8b_tp2_pp4_vpp2_swap.json", 1.448),
        ("mmengine/vitpose-b.log.json", "mmengine/vitpose-b-simple.log.json", 0.239),
        (
            "megatron/primus_dsv2lite_fp8_mi355x_baseline.log",
            "megatron/primus_dsv2lite_fp8_mi355x_candidate.log",
            -0.0003,
        ),
        ("megatron/primus_dsv4_hc_off.iter_lines.txt", "megatron/primus_dsv4_hc_on.iter_lines.txt", -0.004),
    ],
)
def test_pair_comes_out_as_it_was_read_by_hand(before: str, after: str, change: float):
    found = diff(None, str(path_of(before)), str(path_of(after)))
    step = found.overall.set_index("metric").loc["step_ns"]
    assert step["diff"] == pytest.approx(change, abs=0.0005)
    # of one run each nothing is claimed
    assert found.explanation.verdict is None


def test_argument_dump_is_the_configuration():
    assert dict(capture_of("megatron/primus_llama31_8b_50iter.log").configuration) == {
        "devices": "8", "dp": "8", "tp": "1", "pp": "1", "cp": "1", "ep": "1", "global_batch_size": "128",
        "micro_batch_size": "2", "sequence_length": "8192", "precision": "bf16", "layers": "32", "hidden_size": "4096",
        "ffn_hidden_size": "14336", "heads": "32",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("mmengine/vitpose-b.log.json", Device("NVIDIA", "A100-SXM4-40GB")),
        ("detectron2/fasterrcnn_lr0.01.log.txt", Device("NVIDIA", "RTX A6000")),
        ("nanogpt/modded_unet_ve_a.txt", Device("NVIDIA", "H100 80GB HBM3")),
        ("mlperf/amd_mi350x_llama31_8b_r0.txt", Device("AMD", "MI350X")),
        ("mlperf/dell_b200x8_llama2lora_r0.txt", Device("NVIDIA", "B200")),
    ],
)
def test_environment_names_the_device(name: str, device: Device):
    assert capture_of(name).device == device


def test_document_with_pasted_lines_is_read_where_the_format_is_named():
    capture = capture_of("mindspore/vit_tutorial.md")
    assert capture.rows is not None
    assert len(capture.rows.steps) == 9  # ten epochs, the first one warms up
    assert median(times_of("mindspore/vit_tutorial.md")) == pytest.approx(764.0, rel=0.01)
    assert times_of("mindspore/mindformers_high_availability.md")[-1] == 1758.0


def test_lines_of_two_families_are_counted_once():
    rows = capture_of("megatron/superbench_megatron_deepspeed.log").rows
    assert rows is not None
    assert [row.step for row in rows.steps] == [4, 5]
