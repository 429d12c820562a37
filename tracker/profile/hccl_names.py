"""Names of the kernels by which HCCL itself runs a collective: readers and timeline ask for them.

In its modes for vector cores and for the AI CPU, HCCL launches a kernel for each collective, which the profiler lists
among the kernels that compute.
"""

from __future__ import annotations

import re
from typing import Final

_ENDING: Final = re.compile(r"_?(?:aiv|ai_?cpu)_?kernel$")
"""How the names end: on vector cores, or on the AI CPU."""

_ON_VECTOR_CORES: Final = "aivkernel"
"""The whole name of each kernel on vector cores, whatever the collective."""

_COLLECTIVE: Final = re.compile(
    r"(?:.*[^a-z])?hcom_.*|.*(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|send_?recv).*"
    # words that operators have, too (ReduceSum, GatherV2, ScatterNd), count where they are the whole name
    r"|(?:hccl)?_?(?:broadcast|bcast|reduce|gather|scatter|send|recv|receive|barrier)v?"
)
"""What stands before the ending."""

_FUSED: Final = re.compile(r"matmul|gemm|mm_|_mm|attention|quant")
"""A kernel that computes beside its collective is compute."""


def is_hccl_kernel(name: str) -> bool:
    """Return whether a kernel of this name is one by which HCCL itself runs a collective.

    >>> [is_hccl_kernel(name) for name in ("AivKernel", "allgatherAicpuKernel", "hcom_broadcast_AivKernel")]
    [True, True, True]
    >>> [is_hccl_kernel(name) for name in ("MyAivKernel", "ReduceSumAicpuKernel", "MatmulAllReduceAicpuKernel")]
    [False, False, False]
    """
    text = name.lower()
    if text == _ON_VECTOR_CORES:
        return True
    # nearly all names end in another way
    ending = _ENDING.search(text) if text.endswith("kernel") else None
    if ending is None:
        return False
    before = text[: ending.start()]
    return _COLLECTIVE.fullmatch(before) is not None and not _FUSED.search(before)
