"""Which events of a trace we take, and which table their rows go to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tracker.profile import DeviceKind, LaunchLevel

# category of ph "X" -> bucket; categories changed case and name over the years
OPS, ANNOTATIONS, FRAMES, RUNTIME, DRIVER, KERNELS, COPIES, MEMSETS, MEMORY, FLOWS = range(10)
SLICES: Final[Mapping[str, int]] = {
    "cpu_op": OPS,
    "Operator": OPS,
    "user_annotation": ANNOTATIONS,
    "python_function": FRAMES,
    "cuda_runtime": RUNTIME,
    "Runtime": RUNTIME,
    "xpu_runtime": RUNTIME,
    "mtia_runtime": RUNTIME,
    "privateuse1_runtime": RUNTIME,
    "glow_runtime": RUNTIME,
    "cuda_driver": DRIVER,
    "xpu_driver": DRIVER,
    "privateuse1_driver": DRIVER,
    "kernel": KERNELS,
    "Kernel": KERNELS,
    "mtia_ccp_events": KERNELS,
    "gpu_memcpy": COPIES,
    "Memcpy": COPIES,
    "gpu_memset": MEMSETS,
    "Memset": MEMSETS,
}
FLOW_CATEGORIES: Final = frozenset(("async", "async_cpu_to_gpu", "async_gpu", "ac2g", "async_npu"))
KIND: Final = {KERNELS: DeviceKind.KERNEL, COPIES: DeviceKind.COPY, MEMSETS: DeviceKind.MEMSET}
LEVEL: Final = {RUNTIME: LaunchLevel.RUNTIME, DRIVER: LaunchLevel.DRIVER}

_STREAM: Final = re.compile(r"\d{1,18}$")


def stream_of(said: object) -> int:
    """The number of a stream that is called `7` or `stream 7`; -1 where there is none.

    >>> stream_of("stream 7"), stream_of(7), stream_of(None)
    (7, 7, -1)
    """
    digits = _STREAM.search(str(said))
    return int(digits.group()) if digits else -1
