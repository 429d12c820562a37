"""Spellings of collectives, and which of nested host events carries the call."""

from __future__ import annotations

import pytest

from tests.readers.test_torch_profiler import collective, only, texts
from tests.readers.traces import op, write
from tracker.profile import MISSING
from tracker.readers._collectives import kind_of, role_of

pytestmark = pytest.mark.usefixtures("decoder")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("allreduce", "all_reduce"),
        ("allreduce_coalesced", "all_reduce"),
        ("_all_gather_base", "all_gather"),
        ("all_gather_into_tensor_coalesced", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("alltoall_base", "all_to_all"),
        ("all_to_allv", "all_to_all"),
        ("_broadcast_oop", "broadcast"),
        ("_reduce_oop", "reduce"),
        ("send 0->1", "send"),
        ("recv 1<-0", "recv"),
        ("gather", "gather"),
        ("scatter", "scatter"),
        ("barrier", "barrier"),
        ("coalesced", "coalesced"),
        ("wait", ""),
    ],
)
def test_kinds_have_one_name(name, kind):
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    ("description", "role"),
    [
        ("default_pg", "default"),
        ("mesh_tp", "tp"),
        ("DATA_PARALLEL_GROUP_WITH_CP", "dp_cp"),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "pp"),
        ("EXPERT_MODEL_PARALLEL_GROUP", "ep"),
        ("undefined", ""),
    ],
)
def test_roles_are_words_of_the_description(description, role):
    assert role_of(description) == role


def annotation(name, ts, dur, dims, types):
    return op(name, ts, dur, cat="user_annotation", **{"Input Dims": dims, "Input type": types})


def test_record_without_annotation_carries_its_call_itself(tmp_path):
    args = {"Collective name": "recv", "In msg nelems": 0, "Out msg nelems": 6, "dtype": "Half", "Group size": 2}
    events = only(write(tmp_path, [op("record_param_comms", 1, 5, **args), op("record_param_comms", 9, 1)])).events
    assert events.ops.collective.tolist() == [0, -1]
    assert collective(events, 0) == ("recv", "", "float16", 2, 12)


def test_innermost_of_nested_annotations_carries_the_call(tmp_path):
    events = only(
        write(
            tmp_path,
            [
                annotation("nccl:coalesced", 1, 20, [], []),
                annotation("nccl:all_gather", 2, 5, [[4]], ["long int"]),
                annotation("nccl:all_gather", 9, 5, [[4]], ["long int"]),
                annotation("nccl:all_reduce", 40, 5, [[4]], ["float"]),
            ],
        )
    ).events
    assert events.ops.collective.tolist().count(-1) == 1
    assert texts(events, events.ops.name[events.ops.collective < 0]) == ["nccl:coalesced"]


def test_unknown_size_is_missing_not_zero(tmp_path):
    events = only(write(tmp_path, [annotation("nccl:all_reduce", 1, 2, [[[4], [2]]], ["TensorList"])])).events
    assert collective(events, 0) == ("all_reduce", "", "TensorList", MISSING, MISSING)


def test_tensors_of_one_call_are_summed_and_scalars_are_not(tmp_path):
    dims, types = [[2, 3], [4], []], ["float", "float", "Scalar"]
    events = only(write(tmp_path, [annotation("nccl:all_reduce", 1, 2, dims, types)])).events
    assert collective(events, 0)[-1] == 40
