"""What calls of the device runtime and names of host work say of why the host is busy, by name."""

from __future__ import annotations

import re
from typing import Final

_LAUNCHES: Final = re.compile(r"launch|graph|enqueue", re.IGNORECASE)
_WAITS: Final = re.compile(
    r"(?:cuda|hip)(?:Device|Stream|Event)Synchronize"
    r"|cu(?:Ctx|Stream|Event)Synchronize"
    r"|aclrtSynchronize|(?:^|[:@_])(?:Stream|Device|Event)Synchronize|Synchronize(?:Stream|Device|Event)"
    # a copy that is not handed over holds its caller until it is done
    r"|(?:cuda|hip)Memcpy(?!.*Async)|cuMemcpy(?!.*Async)|hipMemcpyWithStream|aclrtMemcpy(?!.*Async)"
)
_ALLOCATES: Final = re.compile(
    r"(?:cuda|hip)(?:Ext)?(?:Host)?(?:Malloc|Free|Alloc)"
    r"|cuMem(?:Host)?(?:Alloc|Free|Create|Release|Map|Unmap|Address|SetAccess)|hipMem(?:Create|Release|Map|Unmap|Address)"
    r"|aclrt(?:Malloc|Free)"
)
_COMPILES: Final = re.compile(
    r"(?:cu|cuda|hip)(?:Module|Library)Load|nvrtc|hiprtc|aclopCompile|\bopCompile"
    r"|compile_inner|entire_frame_compile|backend_compile|inductor_compile|compile_fx|triton[ _.:]*compile",
    re.IGNORECASE,
)
_COLLECTS_GARBAGE: Final = re.compile(r"python gc|garbage.?collect|built-in function collect\b", re.IGNORECASE)
_FRAME: Final = re.compile(r".*\(\d+\): ", re.DOTALL)
_PATH: Final = re.compile(r"^[.~]?[/\\]|\.(?:py|so|cpp|cc|cu|h)\b")
_TRITON_COMPILER: Final = re.compile(r"triton[/\\]compiler[/\\]\w+\.py\(\d+\): compile$")


def launches_work(name: str) -> bool:
    """Return whether a call of the runtime launches a kernel or a graph, or makes a graph.

    >>> [launches_work(name) for name in ("cudaLaunchKernel", "hipGraphLaunch", "cudaMalloc", "cudaMemcpyAsync")]
    [True, True, False, False]
    """
    return _LAUNCHES.search(name) is not None


def waits_for_device(name: str) -> bool:
    """Return whether a call of the runtime returns only when the device has done something.

    >>> [waits_for_device(name) for name in ("cudaStreamSynchronize", "cudaMemcpy", "cudaMemcpyAsync", "hipFree")]
    [True, True, False, False]
    """
    return _WAITS.search(name) is not None


def allocates(name: str) -> bool:
    """Return whether a call of the runtime takes memory from the driver or gives it back.

    >>> [allocates(name) for name in ("cudaMalloc", "cuMemFree_v2", "hipHostMalloc", "cuMemcpyHtoD_v2")]
    [True, True, True, False]
    """
    return _ALLOCATES.search(name) is not None


def compiles(name: str) -> bool:
    """Return whether a call, a range or a Python frame makes or loads code of the device; no path says so.

    >>> [compiles(name) for name in ("cuModuleLoadData", "_compile.compile_inner", "Torch-Compiled Region: 0/0")]
    [True, True, False]
    >>> [compiles(name) for name in ("triton/compiler/compiler.py(226): compile", "compile_fx/autotuner.py(9): choose")]
    [True, False]
    """
    return _COMPILES.search(_without_paths(name)) is not None or _TRITON_COMPILER.search(name) is not None


def collects_garbage(name: str) -> bool:
    """Return whether a range or frame is a run of Python's garbage collector.

    >>> [collects_garbage(name) for name in ("<built-in function collect>", "Python GC", "data/collect.py(4): all")]
    [True, True, False]
    """
    return _COLLECTS_GARBAGE.search(_without_paths(name)) is not None


def _without_paths(name: str) -> str:
    """Return the function of a Python frame, and any other name without what is a path."""
    frame = _FRAME.match(name)
    if frame:
        return name[frame.end() :]
    return " ".join(word for word in name.split() if not _PATH.search(word))
