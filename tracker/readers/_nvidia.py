"""What NVIDIA's profilers call devices, API functions and memory operations, spelled as all readers spell them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tracker.profile import UNKNOWN_DEVICE, Device, LaunchLevel

VENDOR: Final = "NVIDIA"

# CUPTI writes the CUDA version since which the function has its present form: cudaLaunchKernel_v7000. The _v2 of
# cuMemAlloc_v2 is part of the name.
_ABI_VERSION: Final = re.compile(r"_v\d{4,5}$")
_DRIVER: Final = re.compile(r"cu[A-Z]")
_LAUNCH: Final = re.compile(r"cu(?:da)?(?:Launch(?:Cooperative)?(?:Kernel|Grid)|GraphLaunch)|cudaLaunch$|cuLaunch$")

_COPIES: Final[Mapping[int, str]] = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP",
    11: "Unified HtoD", 12: "Unified DtoH", 13: "Unified DtoD",
}  # fmt: skip
"""ENUM_CUDA_MEMCPY_OPER."""

_MEMORIES: Final[Mapping[int, str]] = {
    0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device Static", 6: "Managed Static",
}  # fmt: skip
"""ENUM_CUDA_MEM_KIND."""

_OPERATION: Final = re.compile(r"\[CUDA (?:(Unified) Memory )?(memcpy|memset) ?([^\]]*)\]")


def device_of(name: str) -> Device:
    """The hardware model as every reader names it; unknown for no name.

    >>> device_of("NVIDIA A100-SXM4-80GB"), device_of("Tesla V100-SXM2-16GB").model
    (Device(vendor='NVIDIA', model='A100-SXM4-80GB'), 'Tesla V100-SXM2-16GB')
    """
    model = name.strip().removeprefix(f"{VENDOR} ").strip()
    return Device(VENDOR, model) if model else UNKNOWN_DEVICE


def api_name(name: str) -> str:
    """The name of an API function without the version of its binary interface, as PyTorch's profiler writes it.

    >>> api_name("cudaLaunchKernel_v7000"), api_name("cuMemAlloc_v2"), api_name("cudaGetDeviceProperties_v2_v12000")
    ('cudaLaunchKernel', 'cuMemAlloc_v2', 'cudaGetDeviceProperties_v2')
    """
    return _ABI_VERSION.sub("", name)


def api_level(name: str) -> LaunchLevel:
    """Whether a CUDA function is of the runtime or of the driver below it.

    >>> api_level("cudaLaunchKernel").name, api_level("cuLaunchKernelEx").name
    ('RUNTIME', 'DRIVER')
    """
    return LaunchLevel.DRIVER if _DRIVER.match(name) else LaunchLevel.RUNTIME


def launches_work(name: str) -> bool:
    """Whether a CUDA function starts a kernel or a graph.

    >>> [launches_work(name) for name in ("cudaLaunchKernelExC", "cuLaunchKernel", "cudaGraphLaunch", "cudaMalloc")]
    [True, True, True, False]
    """
    return _LAUNCH.match(name) is not None


def copy_name(kind: int, source: int, target: int) -> str:
    """The name of a copy from CUPTI's numbers, in the words of PyTorch's profiler; unknown numbers are left out.

    >>> copy_name(1, 0, 2), copy_name(8, -1, -1), copy_name(0, 0, 2)
    ('Memcpy HtoD (Pageable -> Device)', 'Memcpy DtoD', 'Memcpy (Pageable -> Device)')
    """
    ends = (_MEMORIES.get(source), _MEMORIES.get(target))
    route = f"({ends[0]} -> {ends[1]})" if all(ends) else ""
    return " ".join(filter(None, ("Memcpy", _COPIES.get(kind), route)))


def memset_name(kind: int) -> str:
    """The name of a memset from CUPTI's number of the memory.

    >>> memset_name(2), memset_name(-1)
    ('Memset (Device)', 'Memset')
    """
    return f"Memset ({_MEMORIES[kind]})" if kind in _MEMORIES else "Memset"


def operation_name(text: str) -> str:
    """The name of a memory operation in a report of `nsys stats`; any other text as it is.

    >>> operation_name("[CUDA memcpy HtoD]"), operation_name("[CUDA memcpy Host-to-Device]")
    ('Memcpy HtoD', 'Memcpy HtoD')
    >>> operation_name("[CUDA memset]"), operation_name("[CUDA Unified Memory memcpy HtoD]")
    ('Memset', 'Memcpy Unified HtoD')
    """
    match = _OPERATION.fullmatch(text.strip())
    if not match:
        return text.strip()
    unified, operation, route = match.groups()
    if "-to-" in route:
        source, _, target = route.partition("-to-")
        route = f"{source[0]}to{target[0]}"
    return " ".join(filter(None, (operation.capitalize(), unified, route)))
