"""Which runs the files of each shared folder form, ingested in one call."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.real import data
from tracker.intake import IngestOptions, find_documents, form_runs
from tracker.intake.at_once import read_all
from tracker.units import ranges

pytestmark = pytest.mark.slow

RUNS = {
    "ascend/kernel_details_2023": {"0": 1},
    "ascend/run_2024-10": {"0-1": 4},
    "ascend/run_2025-01": {"0-1": 4},
    "ascend/trace_view_2024": {"0": 1},
    "ascend/transformer_4ranks_pp2_dp2": {"0-3": 1},
    "cann/PROF_000001_20230818142704322_COJGGGCANRMICFBC": {"0": 1},
    "cann/PROF_000001_20230818142704567_GQFAMHBKGODKJMLA": {"1": 1},
    "cann/neo-pan_ascend-msprof-skill_8d845a46": {"0": 1},
    "cann/vllm-ascend_906343206e8d": {"0": 2},
    "nsys/a100_transformer": {"0": 5},
    "nsys/no_kernel_table": {"0": 2},
    "nsys/stats_text": {"0": 1},
    "nsys/wan_2gpu_before_after": {"0-1": 2},
    "paddle/cpu_captures": {"0": 6},
    "paddle/logs": {"0": 90},
    "paddle/summary_text": {"0": 14},
    "pytorch/a100_vs_v100_nccl": {"1": 1, "3": 1},
    "pytorch/edge_cases": {"0": 3, "34": 1},
    "pytorch/format_drift": {"0": 2},
    "pytorch/h100_vs_mi300": {"0": 6},
    "pytorch/mi300_resnet_ddp_rank0": {"0": 1},
    "pytorch/torch_compile_triton": {"0": 1},
    "pytorch/two_ranks_nccl": {"0-1": 1},
    "pytorch/v100_resnet50_2021": {"0": 2},
    "torch_cpu/ddp_gloo_2ranks": {"0-1": 4},
    "torch_cpu/nightly_gpt": {"0": 36},
    "torch_cpu/repeats_gpt": {"0": 20},
    "torch_cpu/with_stack": {"0": 1},
    "training_logs/deepspeed": {"0": 3},
    "training_logs/detectron2": {"0": 3},
    "training_logs/fairseq": {"0": 2},
    "training_logs/huggingface": {"0": 1},  # the results of one of them alone do not say of which steps they are
    "training_logs/megatron": {"0": 6},
    "training_logs/mindspeed": {"0": 3},
    "training_logs/mlperf": {"0": 5},
    "training_logs/mmengine": {"0": 5},
    "training_logs/nanogpt": {"0": 4},
    "training_logs/paddle": {"0": 4},
    "training_logs/tensorboard": {"0": 6},
}
"""Folder -> the ranks of the runs -> how many runs have them."""


@pytest.mark.parametrize("folder", RUNS)
def test_folder_forms_the_runs_that_its_files_state(folder: str):
    pieces = read_all([data.path(folder)], IngestOptions(keep_going=True)).pieces
    formed = form_runs(pieces)
    documents = find_documents(formed)
    runs = [run for place, run in enumerate(formed) if place not in documents]
    assert Counter(ranges([piece.capture.rank or 0 for piece in run]) for run in runs) == RUNS[folder]
