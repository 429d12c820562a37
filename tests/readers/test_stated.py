"""What logs, launch arguments, settings and names of paths state of a configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.readers.test_logs_by_content import SPEEDS
from tests.readers.traces import op, write
from tracker import readers
from tracker.profile import Profile
from tracker.readers._stated import Stated, configuration_in_names, merged

LINES = {
    "batch_size: 4": {"batch_size": "4"},
    "GPUs used: 8": {"devices": "8"},
    "python train.py --micro-batch-size 4 --global-batch-size=128 --bf16 --seq-length 4096": {
        "micro_batch_size": "4", "global_batch_size": "128", "precision": "bf16", "sequence_length": "4096",
    },
    "Namespace(batch_size=96, use_amp=1, max_seq_length=128, fp16=False)": {
        "batch_size": "96", "precision": "amp", "sequence_length": "128",
    },
    "{'batch_size': 4, 'eval': {'batch_size': 1}, 'tp_degree': 2}": {"batch_size": "4", "tp": "2"},
    '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}': {
        "micro_batch_size": "4", "microbatches": "2",
    },
    "  tensor_model_parallel_size ............................ 2": {"tp": "2"},
    "using world size: 16, data-parallel-size: 2": {"devices": "16", "dp": "2"},
    "Building device mesh with parallelism: pp=8, tp=2": {"pp": "8", "tp": "2"},
    "sequence length 2048, local batch size 16, global batch size 32": {
        "sequence_length": "2048", "batch_size": "16", "global_batch_size": "32",
    },
    "['train.py', '-o', 'DataLoader.Eval.sampler.batch_size=64', '-o', 'DataLoader.Train.sampler.batch_size=256']": {
        "batch_size": "256",
    },
    "|        PADDLE_TRAINERS_NUM            8        |": {"devices": "8"},
    "torchrun --nproc_per_node=8 --nnodes=2 train.py --fp16": {"devices": "16", "precision": "fp16"},
    "params_dtype .................. torch.bfloat16": {"precision": "bf16"},
    "fp8_format: hybrid, fp8: hybrid, bf16: True": {"precision": "fp8"},
    # no statements: other words, other parts, nothing that can be
    "eval_batch_size: 8, dp_world_size=3": {},
    "batch_size in 3 parts, tp 4 of 7": {},
    "batch_size: None, tensor_model_parallel_size=-1, --fp16 False, use_amp: False": {},
    "batch_size: 0, seq_len: 12.5": {},
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_line_states_what_it_says(line: str):
    stated = Stated()
    stated.take(line)
    assert stated.configuration() == LINES[line]


def test_settings_of_the_evaluation_are_not_those_of_training():
    stated = Stated()
    lines = ["DataLoader : ", "    Eval : ", "        sampler : ", "            batch_size : 64", "    Train : ",
             "        sampler : ", "            batch_size : 256"]  # fmt: skip
    for line in lines:
        stated.take(f"[2022/06/06 15:35:40] ppcls INFO: {line}")
    assert stated.configuration() == {"batch_size": "256"}


PATHS = {
    "Deeplabv3_FP16_BS4-N1.log": {"batch_size": "4", "precision": "fp16", "devices": "1"},
    "Deeplabv3_FP32_BS2-N8.log": {"batch_size": "2", "precision": "fp32", "devices": "8"},
    "base_bs32_fp32_gpu8.log/20201218_76c46877a0": {"batch_size": "32", "precision": "fp32", "devices": "8"},
    "bert_base_seqlen128_bs32_fp16_MultiP_DP_N1C8": {
        "batch_size": "32", "precision": "fp16", "devices": "8", "sequence_length": "128",
    },
    "gpt_tp2_pp4_dp1_mbs4_gbs128_seq4096_bf16.log": {
        "micro_batch_size": "4", "global_batch_size": "128", "precision": "bf16", "sequence_length": "4096", "tp": "2",
        "pp": "4", "dp": "1",
    },
    "gpt_tp2pp4dp8_b32.log": {"batch_size": "32", "tp": "2", "pp": "4", "dp": "8"},
    "gpt-b32bf16-dp1/train.log": {"batch_size": "32", "precision": "bf16", "dp": "1"},
    "v1b32x/tp2pp4x/clip_vit_b32.log": {},
    "resnet_8npu_bs64/train.log": {"batch_size": "64", "devices": "8"},
    "N1/lbs3x/fp16x/run_2024.log": {},
    # no size is 0, and none has a rank
    "dp0_pp0_tp1_bs8.log": {"batch_size": "8"},
    "tp2_bs8_rank3.log": {"batch_size": "8"},
    "dp0_tp1/tp2_pp4.log": {"tp": "2", "pp": "4"},
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_names_of_benchmarks_state_their_configuration(path: str):
    assert configuration_in_names(Path(path)) == PATHS[path]


def test_the_text_counts_before_the_names_of_the_path():
    found, notes = merged({"batch_size": "8"}, {"batch_size": "4", "precision": "fp16"})
    assert found == {"batch_size": "8", "precision": "fp16"}
    assert notes == ("batch_size is 4 by the path's name, 8 by the text, which counts; --config batch_size=N decides",)


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ({"batch_size": "6656", "devices": "8"}, {"batch_size": "208", "devices": "32"}),  # all cards; one machine
        ({"precision": "amp"}, {"precision": "fp16"}),
        ({"precision": "amp"}, {"precision": "bf16"}),
    ],
)
def test_one_thing_in_other_words_is_no_contradiction(stated: dict[str, str], named: dict[str, str]):
    assert merged(stated, named) == (named, ())


def profile_of(path: Path) -> Profile:
    (found,) = readers.find(path)
    return readers.read(found)


def test_a_log_says_its_configuration_and_what_contradicts(tmp_path: Path):
    path = tmp_path / "Deeplabv3_FP16_BS4-N1.log"
    path.write_text("\n".join(["GPUs used: 1", "batch_size: 2", "batch_size: 3", *SPEEDS]))
    profile = profile_of(path)
    assert profile.captures[0].configuration == {"batch_size": "2", "precision": "fp16", "devices": "1"}
    assert profile.warnings == (
        "of 3 intervals the median leaves out 1 of warm-up",
        "batch_size is 4 by the path's name, 2 by the text, which counts; --config batch_size=N decides",
        "batch_size is 2 and 3 by the text; the first counts, --config batch_size=N decides",
    )


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("gpt_bs4_bf16", {"batch_size": "4", "precision": "bf16"}),
        ("fp16", {}),
        ("b32/dp1", {"batch_size": "32", "dp": "1"}),
        ("tp2pp4dp8", {"tp": "2", "pp": "4", "dp": "8"}),
        ("run_b32/dp1", {}),
    ],
)
def test_a_trace_takes_two_keys_of_a_name_not_one(tmp_path: Path, folder: str, expected: dict[str, str]):
    (tmp_path / folder).mkdir(parents=True)
    write(tmp_path / folder, [op("a", 1, 1)], name="rank0.json")
    assert profile_of(tmp_path).captures[0].configuration == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dp1_pp1_tp3_dcp1_ep3_rank3.json", {}),
        ("gpt_tp2_pp4_bs8_bf16.json", {"batch_size": "8", "precision": "bf16"}),
        ("tp2_pp4/a.json", {"tp": "2", "pp": "4"}),
        ("dp0_tp2/a.json", {}),
        ("llama_b200_bf16_seq4096.json", {"precision": "bf16", "sequence_length": "4096"}),
        ("llama_b64_bf16.json", {"batch_size": "64", "precision": "bf16"}),
    ],
)
def test_number_of_parallelism_in_the_name_of_a_trace_is_no_size(tmp_path: Path, name: str, expected: dict[str, str]):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    write(path.parent, [op("a", 1, 1)], name=path.name)
    assert profile_of(tmp_path).captures[0].configuration == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama_b200_bf16.log", {"precision": "bf16"}),
        ("llama-B300-bs8.log", {"batch_size": "8"}),
        ("b200/llama_b64_bf16.log", {"batch_size": "64", "precision": "bf16"}),
        ("910_npu_8npu_bs4.log", {"batch_size": "4", "devices": "8"}),
        ("gpu4090_bs4.log", {"batch_size": "4"}),
        ("rtx_4090_gpu_bs4.log", {"batch_size": "4"}),
        ("gpu8_b256.log", {"batch_size": "256", "devices": "8"}),
        ("310gpus_b200x.log", {"devices": "310"}),
    ],
)
def test_device_in_a_name_is_no_size(name: str, expected: dict[str, str]):
    assert configuration_in_names(Path("/logs") / name) == expected


def test_configuration_is_the_same_however_a_path_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    place = tmp_path / "gpt_bs4_bf16" / "run"
    place.mkdir(parents=True)
    write(place, [op("a", 1, 1)], name="rank0.json")
    (tmp_path / "link").symlink_to(place)
    typed = [(place, "."), (place, "./rank0.json"), (place.parent, "run/"), (tmp_path / "link", "rank0.json"),
             (tmp_path, "link"), (tmp_path, str(place / ".." / "run" / "rank0.json"))]  # fmt: skip
    for folder, path in typed:
        monkeypatch.chdir(folder)
        assert profile_of(Path(path)).captures[0].configuration == {"batch_size": "4", "precision": "bf16"}, path


def test_kineto_groups_say_the_parallel_sizes(tmp_path: Path):
    sizes = [("default_pg", 16), ("mesh_tp", 2), ("mesh_tp", 2), ("mesh_pp", 4), ("mesh_dp", 2), ("mesh_dp", 4)]
    groups = [{"pg_name": str(place), "pg_desc": desc, "pg_size": size} for place, (desc, size) in enumerate(sizes)]
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}
    content = {"distributedInfo": {"rank": 0, "world_size": 16, "pg_config": groups}, "traceEvents": [event]}
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert profile_of(tmp_path).captures[0].configuration == {"tp": "2", "pp": "4"}  # dp is of two sizes
