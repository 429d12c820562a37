"""The one table that says which kernels are communication: by the launching op, then by the kernel's own name.

The op decides first, the innermost that has an opinion. Communication libraries and the custom collectives of inference
engines launch kernels whose names say nothing (`barrier_kernel`, `dispatch`); there the op's namespace is the evidence.
An op that fuses a collective with compute leaves the decision to the names of its kernels. A kernel that does both at
once (a matmul that gathers its input) is compute.

Patterns are searched in lower case and have no unbounded repetition: the time is linear in the length of a name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from tracker.profile import is_hccl_kernel


class OpSays(IntEnum):
    """What an op's name says about the kernels that it launches."""

    NOTHING = -1
    """The op around it may say more."""
    BY_NAME = 0
    """It works on its own or fuses compute with a collective: the kernel's name decides."""
    COMMUNICATES = 1
    """Its kernels are communication, but for those that are known to be compute."""


_WORDS: Final = (
    r"all[_-]?reduce|all[_-]?gather|reduce[_-]?scatter|all[_-]?to[_-]?all|all2all|cross_device_reduce|multimem_"
)

_FUSED_OP: Final = re.compile(
    r"fused|fusion|matmul|gemm|linear|norm|attention|quant|(?:^|[^a-z])(?:scaled_)?b?mm(?:[^a-z]|$)"
)
"""Ops that compute beside their collective: `symm_mem::fused_all_gather_matmul`, `trtllm_allreduce_fusion`."""

_HELPER_OP: Final = re.compile(r"layout|wait_tensor|init_|register_|buffer_ptr|empty|meta_size|permute")
"""Ops of communication libraries that move nothing between devices."""

_LIBRARY_OP: Final = re.compile(
    r"(?:^|[^a-z0-9])(?:_?c10d(?:_functional)?|symm_mem|symmetric_memory|nvshmem|rocshmem|deep_?ep|hybrid_ep|mscclpp|pplx(?:_kernels)?"
    r"|_c_custom_ar|_c_quick_ar|custom_ar|quick_ar)(?:::|\.)"
)
"""Namespaces in which every op communicates."""

_ENGINE_OP: Final = re.compile(
    r"(?:^|[^a-z0-9])(?:vllm|_c|trtllm|tensorrt_llm|flashinfer|sglang|sgl_kernel|sgl|aiter|te|transformer_engine)"
    r"(?:::|\.)[a-z0-9_.:]{0,64}?(?:" + _WORDS + r"|all_?red|qr_all|userbuffers)"
)
"""Namespaces of inference engines, in which the rest of the name decides."""

_LIBRARY_KERNEL: Final = re.compile(
    r"(?<![a-z0-9_])(?:nccl|rccl|msccl|hcom_|oneccl|nvshmem|rocshmem|__nvshmem|ishmem)"
    # those of other makers: mcclDevKernel_SendRecv, xcclAllReduce, cncl_kernel
    r"|(?<![a-z0-9_])(?:[a-z]{1,2}ccl|cncl)(?:_|dev|kernel|all|reduce|broadcast|gather|scatter|send|recv)"
    r"|(?<![a-z0-9_])(?:intranode|internode)(?:_ll)?::(?:\w{1,32}::)?(?:cached_|notify_|combine|dispatch)"
    r"|deep_?ep::(?:\w{1,32}::)?(?:intranode|internode)|(?<![a-z0-9_])(?:hybrid_ep|pplx)::|symmetric_memory::|userbuffers"
)
"""Kernels of communication libraries, whatever they are called."""

_KERNEL: Final = re.compile(
    r"(?<!warp)(?<!warp_)(?<!block)(?<!block_)(?<!wave)(?<!wave_)(?<!lane)(?<!lane_)(?<!cta)(?<!cta_)(?:"
    + _WORDS
    + r")"
    r"|(?:one|two)_?shot_?(?:push|pull|reduce|kernel|lamport)|(?:put|wait)_signal_kernel|stream_write_value_kernel"
    r"|ep_?(?:dispatch|combine)_?(?:intra|inter)_?node|moe_?a2a|low_latency_(?:dispatch|combine)"
    r"|(?<![a-z0-9])a2a(?:_|::)(?:dispatch|combine)|(?<![a-z0-9])(?:barrier|sync)_all(?:_on_stream|(?![a-z0-9_]))"
    r"|(?<![a-z0-9])barrier_all_(?:intra|inter)_node|(?<![a-z0-9])barrier_on_stream"
)
"""Kernels of collectives that carry no library's name: those of PyTorch, vLLM, TensorRT-LLM, FlashInfer, sglang, aiter,
Triton; not the all-reduce within a warp or block.
"""

_OF_LIBRARY_KERNELS: Final = (
    "ccl", "cncl", "hcom_", "shmem", "node", "deep", "hybrid_ep", "pplx", "symmetric_memory", "userbuffers",
)  # fmt: skip
_OF_KERNELS: Final = (
    "all", "reduce", "multimem_", "shot", "signal_kernel", "write_value", "dispatch", "combine", "a2a", "barrier",
)  # fmt: skip
"""Each match of the two patterns above has one of these words: names without them, most of all, are not searched. To
look for a word takes a hundredth of the time.
"""

_COMPUTE_KERNEL: Final = re.compile(
    r"gemm|matmul|(?:^|[^a-z0-9])b?mm(?:[^a-z0-9]|$)|attention|flash(?!infer)|fmha|convolution|cutlass|nvjet|cijk_"
    r"|^triton_(?:poi|red|per|for|foreach|unk|tem|spl)_|at::native|at_cuda_detail|(?<![a-z0-9_])(?:cub|thrust)::|rocprim|hipcub"
    r"|elementwise|checkfornan|catarraybatchedcopy|multi_tensor_apply|layout"
)
"""Kernels that compute whatever launched them; Inductor names what it generates after the collectives beside it."""

_KERNEL_ARGUMENT: Final = re.compile(
    r"[<,] ?((?:[a-z0-9_]{1,64}::){0,8}[a-z0-9_]{1,96}_kernel|[a-z0-9_]{1,32}::cross_device_reduce)(?![a-z0-9])"
)
"""A kernel that is a template argument of the one that launches it."""

_KINDS: Final = (
    ("reduce_scatter", re.compile(r"reduce[_-]?scatter")),
    ("all_reduce", re.compile(r"all[_-]?red|cross_device_reduce|quickreduce|(?:one|two)_?shot_?reduce")),
    ("all_gather", re.compile(r"all[_-]?gather")),
    ("all_to_all", re.compile(r"all[_-]?to[_-]?all|all2all|a2a|dispatch|combine")),
    ("send_recv", re.compile(r"send[_-]?recv")),
    ("broadcast", re.compile(r"broadcast|bcast")),
    ("barrier", re.compile(r"barrier|(?:put|wait)_signal|sync_all|syncall")),
    ("gather", re.compile(r"gather")),
    ("scatter", re.compile(r"scatter")),
    ("reduce", re.compile(r"(?:^|[^a-z])reduce")),
    ("send", re.compile(r"(?:^|[^a-z])(?:i?send|put)(?:[^a-z]|$)|pushsend|(?:shmemx?_|shmem)[a-z0-9]{0,16}_?put")),
    (
        "recv",
        re.compile(r"(?:^|[^a-z])(?:i?recv|receive|get)(?:[^a-z]|$)|pushrecv|(?:shmemx?_|shmem)[a-z0-9]{0,16}_?get"),
    ),
)

_BRACKET: Final = re.compile(r"[<>()]")


def op_says(name: str) -> OpSays:
    """What the name of a launching op says about its kernels.

    >>> [op_says(name).name for name in ("symm_mem::multimem_all_reduce_", "symm_mem::fused_all_gather_matmul")]
    ['COMMUNICATES', 'BY_NAME']
    >>> op_says("aten::all").name, op_says("my all_reduce range").name
    ('NOTHING', 'NOTHING')
    """
    text = name.lower()
    if not _LIBRARY_OP.search(text) and not _ENGINE_OP.search(text):
        return OpSays.NOTHING
    if _FUSED_OP.search(text) or _HELPER_OP.search(text):
        return OpSays.BY_NAME
    return OpSays.COMMUNICATES


def is_communication(name: str, *, says: OpSays = OpSays.NOTHING) -> bool:
    """Whether a kernel of this name moves data between devices or waits for them; `says`: of the op that launched it.

    >>> is_communication("ncclDevKernel_AllReduce_Sum_f32_RING_LL"), is_communication("ampere_sgemm_128x64_nn")
    (True, False)
    >>> is_communication("mcclDevKernel_SendRecv(mcclDevComm*)"), is_communication("cclear_kernel")
    (True, False)
    >>> is_communication("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(unsigned long)")
    True
    >>> is_communication("barrier_kernel"), is_communication("barrier_kernel", says=OpSays.COMMUNICATES)
    (False, True)
    """
    text = name.lower()
    own = _own_name(text)
    if _has_word(own, _OF_LIBRARY_KERNELS) and _LIBRARY_KERNEL.search(own):
        return True
    if is_hccl_kernel(name):
        return True
    if _COMPUTE_KERNEL.search(own):
        return False
    if says is OpSays.COMMUNICATES or (_has_word(own, _OF_KERNELS) and _KERNEL.search(own)):
        return True
    return any(_KERNEL.search(name) for name in _KERNEL_ARGUMENT.findall(text))


def is_compute_kernel(name: str) -> bool:
    """Return whether a kernel of this name computes, whatever launched it."""
    return _COMPUTE_KERNEL.search(_own_name(name.lower())) is not None


def _has_word(text: str, words: Sequence[str]) -> bool:
    return any(word in text for word in words)


def kind_of_name(name: str) -> str:
    """The kind of collective that the name of a kernel or op says, '' where it says none.

    >>> kind_of_name("ncclDevKernel_ReduceScatter_Sum_f32"), kind_of_name("void vllm::cross_device_reduce_2stage<8>")
    ('reduce_scatter', 'all_reduce')
    >>> kind_of_name("deep_ep::internode_ll::dispatch"), kind_of_name("nvshmemi_init_kernel")
    ('all_to_all', '')
    """
    text = _own_name(name.lower())
    return next((kind for kind, pattern in _KINDS if pattern.search(text)), "")


def _own_name(text: str) -> str:
    """The qualified name of a function without template arguments and parameters.

    What stands behind a bracket is part of it: `std::enable_if<true, void>::type ns::kernel<4>` ends in its name.
    """
    text = text.replace("(anonymous namespace)::", "").replace("<unnamed>::", "").strip()
    kept: list[str] = []
    depth = start = 0
    for bracket in _BRACKET.finditer(text):
        if bracket[0] in "<(":
            if depth == 0:
                kept.append(text[start : bracket.start()])
            depth += 1
        elif depth:
            depth -= 1
            start = bracket.end()
    if depth == 0:
        kept.append(text[start:])
    return "".join(kept)
