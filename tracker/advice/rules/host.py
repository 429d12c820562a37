"""Why the device idles: launches, synchronisation, compilation and allocation on the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tracker.advice.rule import AdviceRule, Claim, Number, Remedy

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence, WorkPiece

Pieces = Sequence["WorkPiece"]
_IDLE: Final = 0.10
_SMALL: Final = 0.01
_SHORT_NS: Final = 10_000
_SYNCHRONISE: Final = (
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "hipDeviceSynchronize",
    "hipStreamSynchronize", "hipEventSynchronize", "aclrtSynchronizeDevice", "aclrtSynchronizeDeviceWithTimeout",
    "aclrtSynchronizeStream", "aclrtSynchronizeStreamWithTimeout",
)  # fmt: skip
_READS: Final = ("aten::item", "aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero")
_FEWEST_SYNCHRONISATIONS: Final = 4
"""Calls per step and rank; a loop that reads its loss and a profiler that ends the step make three."""
_LAUNCH: Final = (
    "cudaLaunchKernel", "cuLaunchKernel", "hipLaunchKernel", "hipExtModuleLaunchKernel", "hipModuleLaunchKernel"
)  # fmt: skip
_ALLOCATE: Final = (
    "cudaMalloc", "cudaFree", "cudaMallocAsync", "cudaFreeAsync", "hipMalloc", "hipFree",
    "aclrtMalloc", "aclrtFree", "aclrtMallocPhysical", "aclrtFreePhysical",
)  # fmt: skip
_COMPILE: Final = ("aclopCompileAndExecute", "aclopCompileAndExecuteV2", "opCompile")


def _launch_bound(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    idle = evidence.idle_ns.get(rank, 0.0)
    count, ns, _ = evidence.calls_of(rank, _LAUNCH)
    if not count or not pieces or idle < _IDLE * evidence.step_ns:
        return
    launch = ns / count
    calls = sum(piece.calls for piece in pieces)
    short = sum(piece.calls for piece in pieces if piece.ns / piece.calls < launch) / calls
    busy = sum(piece.ns for piece in pieces) / calls
    # a device that works for longer than the host needs to launch waits for something else
    if short >= 0.5 or (evidence.step_ns / calls > busy and busy < 4 * launch):
        yield Claim(resource="idle", ns=idle, numbers=(
            Number("idle", idle), Number("kernels", calls, "count"), Number("mean kernel", busy),
            Number("mean launch call", launch), Number("kernels shorter than their launch", short, "share"),
        ))  # fmt: skip


def _synchronisation(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    calls, ns, rows = evidence.calls_of(rank, _SYNCHRONISE)
    if calls < _FEWEST_SYNCHRONISATIONS or ns < _SMALL * evidence.step_ns:
        return
    longest = max(rows, key=lambda row: row["total_ns"] or 0)
    reads = list(evidence.op_calls(rank, _READS).items())[:2]
    numbers = (
        Number(f"calls of {longest['name']} and the like", calls, "count"), Number("their time", ns),
        *(Number(f"calls of {name}", count, "count") for name, count in reads),
    )  # fmt: skip
    is_summary = evidence.step_count(rank) < 2 and all(row["self_ns"] is None for row in rows)
    # where the device mostly waits for other ranks, the host that waits for it loses nothing
    if is_summary or (evidence.ranks[rank]["exposed_communication_ns"] or 0.0) >= ns:
        yield Claim(resource="none", numbers=numbers, confidence="hint")
    else:
        yield Claim(
            resource="idle", ns=min(ns, evidence.idle_ns.get(rank, 0.0)), numbers=numbers,
            confidence=None if evidence.has_markers else "hint",
        )  # fmt: skip


def _compilation(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    # one calls the other
    found = (evidence.calls_of(rank, (name,)) for name in _COMPILE)
    calls, ns, _ = next((one for one in found if one[0]), (0.0, 0.0, []))
    if ns and ns >= _SMALL * evidence.step_ns:
        yield Claim(
            resource="idle", ns=min(ns, evidence.idle_ns.get(rank, 0.0)),
            numbers=(Number("calls that compile", calls, "count"), Number("their time", ns)),
            confidence="hint" if evidence.step_count(rank) < 2 else None,
        )  # fmt: skip


def _allocation(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    calls, ns, _ = evidence.calls_of(rank, _ALLOCATE, after=2)
    if ns and ns >= _SMALL * evidence.step_ns:
        yield Claim(
            resource="idle", ns=min(ns, evidence.idle_ns.get(rank, 0.0)),
            numbers=(Number("allocation calls after the second step", calls, "count"), Number("their time", ns)),
        )  # fmt: skip


def _short_kernels(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    short = [piece for piece in pieces if piece.ns / piece.calls < _SHORT_NS]
    calls, ns = (sum(getattr(piece, name) for piece in pieces) for name in ("calls", "ns"))
    own_calls, own_ns = (sum(getattr(piece, name) for piece in short) for name in ("calls", "ns"))
    if short and own_calls >= 0.5 * calls and own_ns >= 0.1 * ns:
        share = Number("of all kernels", own_calls / calls, "share")
        yield Claim(cells=evidence.roofline.above_floor(short), numbers=(share,))


ALLOCATOR: Final = (
    Remedy("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", ("torch", "nvidia", "amd")),
    Remedy("PYTORCH_NPU_ALLOC_CONF=expandable_segments:True", ("torch", "ascend")),
)
RULES: Final = (
    AdviceRule(
        id="H1", title="the host launches kernels too slowly for the device",
        fires="the device idles for 10 % of the step outside data loading, and most kernels are shorter than the call "
            "that launches them",
        bound="exposed", confidence="likely", on_devices=True,
        remedies=(
            Remedy("larger batches, so that kernels last longer than their launch"),
            Remedy("torch.compile(mode='reduce-overhead'), or CUDA / HIP graphs by hand", ("torch", "nvidia", "amd")),
            Remedy("TASK_QUEUE_ENABLE=2 and CPU_AFFINITY_CONF=1; aclgraph where shapes are fixed",
                   ("torch", "ascend")),
            Remedy("paddle.jit.to_static", ("paddle",)),
            Remedy("graph mode: set_context(mode=GRAPH_MODE)", ("mindspore",)),
        ),
        sources=("HolisticTraceAnalysis, idle time breakdown", "TraceLens"), in_rank=_launch_bound,
    ),
    AdviceRule(
        id="H2", title="the host waits for the device again and again",
        fires="four synchronising calls or more in a step, of 1 % of it together; a hint where nothing marks the steps",
        bound="calls", confidence="likely", on_devices=True,
        remedies=(
            Remedy("keep values on the device: no .item(), nonzero() or print of a tensor in the loop"),
            Remedy("read the loss every n steps, and copy with non_blocking=True"),
        ),
        sources=("Nsight Systems, expert rule cuda_api_sync",), in_rank=_synchronisation,
    ),
    AdviceRule(
        id="H6", title="operators are compiled in the steps",
        fires="calls that compile operators take 1 % of a step; in the only step of a capture it is a hint",
        bound="calls", confidence="certain", on_devices=True,
        remedies=(
            Remedy("torch_npu.npu.set_compile_mode(jit_compile=False): binaries instead of compilation",
                   ("torch", "ascend")),
            Remedy("few lengths of sequences (buckets), so that shapes come again"),
        ),
        sources=("msprof-analyze, operator compilation",), in_rank=_compilation,
    ),
    AdviceRule(
        id="H7", title="device memory is allocated in the steps",
        fires="allocation calls of the runtime take 1 % of the steps after the second",
        bound="calls", confidence="certain", on_devices=True,
        remedies=(
            Remedy("no empty_cache() in the loop, and few different shapes"), *ALLOCATOR,
        ),
        sources=("torch: CUDA semantics, memory management", "msprof-analyze, memory"), in_rank=_allocation,
    ),
    AdviceRule(
        id="H8", title="most kernels are very short",
        fires="half of the kernels and a tenth of the kernel time are calls shorter than 10 us",
        bound="roofline", confidence="likely", on_devices=True,
        remedies=(
            Remedy("fuse them: torch.compile, foreach optimizers, fused modules", ("torch", "nvidia", "amd")),
            Remedy("fuse them: optimizers and modules of torch_npu that are one kernel", ("torch", "ascend")),
            Remedy("run them in a graph; larger batches"),
        ),
        sources=("TraceLens, short kernels",), in_rank=_short_kernels,
    ),
)  # fmt: skip
