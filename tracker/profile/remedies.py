"""What to do so that a profile holds what it lacks, by family of profilers: what doctor and advise both say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FAMILIES: Final[Mapping[str, str]] = {
    "torch": "torch",
    "ascend": "ascend",
    "cann": "cann",
    "msprof": "cann",
    "mindspore": "ascend",
    "paddle": "paddle",
    "nsys": "nsys",
    "nsight": "nsys",
}
"""How the name of a format starts -> the profilers that it comes from."""
MEMORY: Final = {
    "torch": "profile with profile_memory=True",
    "ascend": "profile with profile_memory=True",
    "paddle": "profile with profile_memory=True",
    "nsys": "nsys profile --cuda-memory-usage=true",
}
SHAPES: Final = {
    "torch": "profile with record_shapes=True; without shapes ops of different sizes fall together",
    "ascend": "profile with record_shapes=True; without shapes ops of different sizes fall together",
    "paddle": "profile with record_shapes=True; without shapes ops of different sizes fall together",
}
STACKS: Final = {
    "torch": "profile with with_stack=True (slower; for the code line of an op)",
    "ascend": "profile with with_stack=True (slower; for the code line of an op)",
}
ACTIVITIES: Final = {
    "torch": "profile on a machine with a device, with ProfilerActivity.CUDA among the activities",
    "ascend": "profile with ProfilerActivity.NPU among the activities",
    "paddle": "profile on a machine with a device, with targets=[ProfilerTarget.CPU, ProfilerTarget.GPU]",
    "nsys": "nsys profile --trace=cuda,nvtx, over steps that run on the device",
}
LEVEL: Final = {"ascend": "profile with profiler_level=ProfilerLevel.Level1"}


def family_of(format: str) -> str:
    """The profilers that a format comes from, "" where it is none of them."""
    return next((family for start, family in FAMILIES.items() if format.startswith(start)), "")
