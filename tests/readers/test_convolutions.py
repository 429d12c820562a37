"""FLOPs of convolutions, of which no shape states the stride: the numbers of torch.utils.flop_counter of PyTorch 2."""

from __future__ import annotations

import pytest

from tests.readers.test_records import decoding
from tests.readers.traces import op, write
from tracker import readers, timeline
from tracker.readers import Found, ReadOptions

ONES, TWOS, ZEROS = "[1, 1]", "[2, 2]", "[0, 0]"


def flops(tmp_path, name, shapes, concrete):
    """What is counted of a call: its FLOPs, or nothing."""
    dims = [*shapes, *([[]] * (len(concrete) - len(shapes)))]
    args = {"Input Dims": dims, "Input type": ["float"] * len(dims), "Concrete Inputs": concrete}
    path = write(tmp_path, [op(f"aten::{name}", 10, 5, **args), op("aten::add", 20, 1), op("aten::add", 30, 1)])
    capture = readers.read(Found(path, "torch_profiler"), ReadOptions()).captures[0]
    table = timeline.build(capture).rows.tables["counter"]
    return table["mean"].tolist()


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize(("name", "shapes", "concrete", "expected"), [
    # 2 x 10 images x 56 x 56 places x 64 x 64 x 3 x 3
    ("cudnn_convolution", [[10, 64, 56, 56], [64, 64, 3, 3]],
     ["", "", ONES, ONES, ONES, "1", "False", "False", "True"], 2_312_110_080),
    # stride 2, padding 3: 32 x 32 places
    ("mkldnn_convolution", [[4, 3, 64, 64], [64, 3, 7, 7]],
     ["", "", "", "[3, 3]", TWOS, ONES, "1"], 77_070_336),
    # dilation 2, padding 2: all 21 x 21 places
    ("miopen_convolution", [[2, 16, 21, 21], [32, 16, 3, 3]],
     ["", "", "", TWOS, ONES, TWOS, "1", "False", "False"], 8_128_512),
    # a transposed one counts by the places of its input
    ("_convolution", [[2, 16, 16, 16], [16, 8, 4, 4]],
     ["", "", "", TWOS, ONES, ONES, "True", ZEROS, "1", "False", "False", "True", "True"], 2_097_152),
    # the first layer asks for the gradient of its weight alone
    ("convolution_backward", [[10, 64, 112, 112], [10, 3, 224, 224], [64, 3, 7, 7]],
     ["", "", "", "[0]", TWOS, "[3, 3]", ONES, "False", ZEROS, "1", "[False, True, False]"], 2_360_279_040),
    ("convolution_backward", [[2, 8, 64, 64], [2, 16, 32, 32], [16, 8, 4, 4]],
     ["", "", "", "[0]", TWOS, ONES, ONES, "True", ZEROS, "1", "[True, True, False]"], 16_777_216),
])  # fmt: skip
def test_flops_are_those_of_torch(tmp_path, is_compiled, name, shapes, concrete, expected):
    with decoding(compiled=is_compiled):
        assert flops(tmp_path, name, shapes, concrete) == [expected]


@pytest.mark.parametrize("concrete", [[], ["", "", "what"], ["", "", "[1, 1]", "[0, 0]", "[1, 1]", "1"]])
def test_a_call_of_which_too_little_is_known_counts_none(tmp_path, concrete):
    """No concrete inputs, other ones, and a stride of 0."""
    assert flops(tmp_path, "cudnn_convolution", [[10, 64, 56, 56], [64, 64, 3, 3]], concrete) == []


def test_what_calls_another_convolution_counts_none(tmp_path):
    given = ["", "", "", ONES, ONES, ONES, "False", ZEROS, "1", "False", "False", "True", "True"]
    assert flops(tmp_path, "_convolution", [[2, 16, 16, 16], [16, 16, 3, 3]], given) == []
