"""What calls of the device runtime and names of host work say of why the host is busy, by name."""

from __future__ import annotations

import re
from typing import Final

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
    r"(?:cu|hip)(?:Module|Library)Load|nvrtcCompile|hiprtcCompile|aclopCompile"
    r"|compile_inner|entire_frame_compile|backend_compile|inductor_compile|compile_fx|autotun",
    re.IGNORECASE,
)
_COLLECTS_GARBAGE: Final = re.compile(r"python gc|garbage.?collect|built-in function collect\b", re.IGNORECASE)


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
    """Return whether a call or range makes or loads code of the device.

    >>> [compiles(name) for name in ("cuModuleLoadData", "_compile.compile_inner", "Torch-Compiled Region: 0/0")]
    [True, True, False]
    """
    return _COMPILES.search(name) is not None


def collects_garbage(name: str) -> bool:
    """Return whether a range or frame is a run of Python's garbage collector.

    >>> [collects_garbage(name) for name in ("<built-in function collect>", "Python GC", "data/collect.py(4): all")]
    [True, True, False]
    """
    return _COLLECTS_GARBAGE.search(name) is not None
