"""Which events of a trace we take, and which table their rows go to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tracker.profile import DeviceKind, LaunchLevel

# category of ph "X" -> bucket; categories changed case and name over the years
OPS, ANNOTATIONS, FRAMES, RUNTIME, DRIVER, PROFILER, KERNELS, COPIES, MEMSETS, MEMORY, FLOWS = range(11)
SLICES: Final[Mapping[str, int]] = {
    "cpu_op": OPS,
    "Operator": OPS,
    "user_annotation": ANNOTATIONS,
    "python_function": FRAMES,
    "cuda_runtime": RUNTIME,
    "Runtime": RUNTIME,
    "cuda_driver": DRIVER,
    "overhead": PROFILER,
    "kernel": KERNELS,
    "Kernel": KERNELS,
    "mtia_ccp_events": KERNELS,
    "gpu_memcpy": COPIES,
    "Memcpy": COPIES,
    "gpu_memset": MEMSETS,
    "Memset": MEMSETS,
}
ENDS_OF_VENDORS: Final[Mapping[str, int]] = {"_runtime": RUNTIME, "_driver": DRIVER}
"""How the category of host calls ends that a back end of any vendor writes: `musa_runtime`, `xpu_driver`."""
FLOW_CATEGORIES: Final = frozenset(("async", "async_cpu_to_gpu", "async_gpu", "ac2g", "async_npu"))
KIND: Final = {KERNELS: DeviceKind.KERNEL, COPIES: DeviceKind.COPY, MEMSETS: DeviceKind.MEMSET}
LEVEL: Final = {RUNTIME: LaunchLevel.RUNTIME, DRIVER: LaunchLevel.DRIVER, PROFILER: LaunchLevel.PROFILER}

KERNEL_METRICS: Final[Mapping[str, str]] = {
    "occupancy": "est. achieved occupancy %",
    "blocks_per_sm": "blocks per SM",
    "warps_per_sm": "warps per SM",
}
"""Our columns of what a kernel used of the device, and what CUPTI's exporters call them among the args of a kernel.

They are of the launch, computed from grid, registers and shared memory; occupancy is the share in % of the warps that
fit on the device. NaN where a kernel does not state them, as those of other back ends.
"""

WAITS: Final = frozenset(("event_wait", "event_record"))
"""Events on the lanes of MTIA in which the device does nothing."""
REQUESTS_OF_COPIES: Final = frozenset(("dma_request",))
"""Events on the lanes of MTIA that move data."""

_STREAM: Final = re.compile(r"\d{1,18}$")


def bucket_of(category: str | None) -> int | None:
    """Return the bucket of the slices of a category, None for those that we do not take.

    >>> bucket_of("cpu_op") == OPS, bucket_of("musa_runtime") == RUNTIME, bucket_of("_runtime"), bucket_of(None)
    (True, True, None, None)
    """
    if category is None or category in SLICES:
        return None if category is None else SLICES[category]
    for end, bucket in ENDS_OF_VENDORS.items():
        if category.endswith(end) and len(category) > len(end):
            return bucket
    return None


def stream_of(said: object) -> int:
    """The number of a stream that is called `7` or `stream 7`; -1 where there is none.

    >>> stream_of("stream 7"), stream_of(7), stream_of(None)
    (7, 7, -1)
    """
    digits = _STREAM.search(str(said))
    return int(digits.group()) if digits else -1
