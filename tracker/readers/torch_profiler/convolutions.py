"""FLOPs of convolutions: their stride, padding and dilation stand in no shape, but among the concrete inputs of a call.

Counted as torch.utils.flop_counter counts them: 2 x batch x places x elements of the weight, where the places are those
of the result, of a transposed convolution those of the input. A gradient counts where `output_mask` asks for it, that
of a weight in groups once, where flop_counter has it as often as there are groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

import msgspec
import numpy as np

from tracker.profile import NO_STEP, OP_FLOPS, Counters, Strings
from tracker.readers.torch_profiler.schema import Args, plain

Shape = list[int]
_BACKWARD: Final = "aten::convolution_backward"
_CALLER: Final = "aten::_convolution"
"""It calls one of the others, but for transposed convolutions on a CPU."""
_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "aten::convolution_overrideable": ("stride", "padding", "dilation", "transposed"),
    "aten::_convolution": ("stride", "padding", "dilation", "transposed"),
    "aten::mkldnn_convolution": ("padding", "stride", "dilation"),
    "aten::miopen_convolution": ("padding", "stride", "dilation"),
    "aten::miopen_depthwise_convolution": ("padding", "stride", "dilation"),
    "aten::_conv_depthwise2d": ("", "stride", "padding", "dilation"),
    "aten::_slow_conv2d_forward": ("", "stride", "padding"),
    "aten::cudnn_convolution": ("padding", "stride", "dilation"),
    "aten::cudnn_convolution_transpose": (),
    "aten::miopen_convolution_transpose": (),
}
"""Name of a forward convolution -> its arguments behind input, weight and what stands before them."""


def is_convolution(name: str) -> bool:
    """Whether an operator of this name is a convolution whose FLOPs the concrete inputs say."""
    return name == _BACKWARD or name in _ARGUMENTS


class Convolutions:
    """The convolutions of a trace: how many calls there are of each name with its shapes and concrete inputs."""

    def __init__(self) -> None:
        self._calls: Counter[tuple[int, int, bytes, bytes]] = Counter()

    def add(self, name: int, shapes: int, args: Args) -> None:
        """Count a call of an operator of this name (code) with these shapes (code)."""
        self._calls[name, shapes, bytes(args.dims) or bytes(args.old_dims), bytes(args.concrete)] += 1

    def counters(self, strings: Strings) -> Counters:
        """Return the FLOPs of each call whose concrete inputs are known; `attribute`: its shapes."""
        rows = [
            (name, shapes, flops)
            for (name, shapes, dims, concrete), calls in self._calls.items()
            for flops in [_flops(strings[name], dims, concrete)] * calls
            if flops is not None
        ]
        return Counters(
            step=np.full(len(rows), NO_STEP, dtype=np.int64),
            source=np.full(len(rows), strings.code(OP_FLOPS) if rows else 0, dtype=np.int32),
            name=np.array([name for name, _, _ in rows], dtype=np.int32),
            attribute=np.array([shapes for _, shapes, _ in rows], dtype=np.int32),
            value=np.array([flops for _, _, flops in rows], dtype=np.float64),
        )


def _flops(name: str, dims: bytes, concrete: bytes) -> int | None:
    """FLOPs of one call; None where the trace does not say enough."""
    shapes, values = plain(dims), plain(concrete)
    if not isinstance(shapes, list) or not isinstance(values, list) or len(shapes) != len(values):
        return None
    try:
        if name == _BACKWARD:
            return _backward(shapes, [_value(text) for text in values])
        return _forward(name, shapes, [_value(text) for text in values])
    except (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError):
        return None  # an edited trace, or an operator with other arguments


def _value(text: Any) -> Any:
    """The value of a concrete input: `[2, 2]`, `True`; None for a tensor, which has none.

    >>> _value("[2, 2]"), _value("True"), _value("[False, True]"), _value("")
    ([2, 2], True, [False, True], None)
    """
    try:
        return msgspec.json.decode(str(text).replace("True", "true").replace("False", "false"))
    except msgspec.DecodeError:
        return None


def _forward(name: str, shapes: Sequence[Shape], values: Sequence[Any]) -> int | None:
    image, weight = shapes[0], shapes[1]
    if len(image) != len(weight) or len(image) < 3:
        return None
    # cuDNN takes the bias by itself
    first = 2 if name.startswith("aten::cudnn") else 3
    names = _ARGUMENTS[name]
    if name in ("aten::_conv_depthwise2d", "aten::_slow_conv2d_forward"):
        first = 3  # behind the size of the kernel stands the bias
    given = dict(zip(names, values[first : first + len(names)], strict=False))
    if name == _CALLER and not given.get("transposed"):
        return None
    if not names or given.get("transposed"):
        return 2 * image[0] * prod(image[2:]) * prod(weight)
    count = len(image) - 2
    stride, padding = _each(given["stride"], count), _each(given["padding"], count)
    dilation = _each(given["dilation"], count) if "dilation" in names else [1] * count
    places = 1
    for at in range(count):
        reach = dilation[at] * (weight[at + 2] - 1) + 1
        places *= (image[at + 2] + 2 * padding[at] - reach) // stride[at] + 1
    return 2 * image[0] * places * prod(weight) if places > 0 else None


def _each(value: Any, count: int) -> list[int]:
    """A number for each dimension of the image; one that is given for all of them holds for each."""
    given = value if isinstance(value, list) else [int(value)]
    return given if len(given) == count else given[:1] * count


def _backward(shapes: Sequence[Shape], values: Sequence[Any]) -> int | None:
    gradient, image, weight = shapes[:3]
    transposed, mask = values[7], values[10]
    if len(image) != len(weight) or not isinstance(mask, list):
        return None
    # each gradient multiplies what the convolution itself does
    one = 2 * image[0] * prod((image if transposed else gradient)[2:]) * prod(weight)
    return one * sum(map(bool, mask[:2]))
