"""Why the device idles: launches, synchronisation, compilation and allocation on the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from tracker.advice.rule import AdviceRule, Claim, Number, Remedy

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence

_IDLE: Final = 0.10
_SMALL: Final = 0.01
_SHORT_NS: Final = 10_000
_SYNCHRONISE: Final = (
    "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "hipDeviceSynchronize",
    "hipStreamSynchronize", "hipEventSynchronize", "aclrtSynchronizeDevice", "aclrtSynchronizeDeviceWithTimeout",
    "aclrtSynchronizeStream", "aclrtSynchronizeStreamWithTimeout",
)  # fmt: skip
_FEWEST_SYNCHRONISATIONS: Final = 4
"""Calls per step and rank; a loop that reads its loss and a profiler that ends the step make three."""
_LAUNCH: Final = (
    "cudaLaunchKernel",
    "cuLaunchKernel",
    "hipLaunchKernel",
    "hipExtModuleLaunchKernel",
    "hipModuleLaunchKernel",
)
_ALLOCATE: Final = ("cudaMalloc", "cudaFree", "cudaMallocAsync", "cudaFreeAsync", "hipMalloc", "hipFree",
                    "aclrtMalloc", "aclrtFree", "aclrtMallocPhysical", "aclrtFreePhysical")  # fmt: skip
_COMPILE: Final = ("aclopCompileAndExecute", "aclopCompileAndExecuteV2", "opCompile")


def _own_calls(evidence: Evidence, rank: int, names: Sequence[str]) -> list[dict[str, Any]]:
    return [row for row in evidence.api if row["rank"] == rank and row["name"] in names]


def _launch_bound(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for rank, idle in evidence.idle_ns.items():
        launches = _own_calls(evidence, rank, _LAUNCH)
        count = sum(row["calls"] or 0 for row in launches)
        pieces = [piece for piece in evidence.pieces if piece.rank == rank and piece.kind != "copy" and piece.calls]
        if not count or not pieces or idle < _IDLE * evidence.step_ns:
            continue
        launch = sum(row["total_ns"] or 0 for row in launches) / count
        calls = sum(piece.calls for piece in pieces)
        short = sum(piece.calls for piece in pieces if piece.ns / piece.calls < launch) / calls
        busy = sum(piece.ns for piece in pieces) / calls
        # a device that works for longer than the host needs to launch waits for something else
        if short >= 0.5 or (evidence.step_ns / calls > busy and busy < 4 * launch):
            yield Claim(
                resource="idle", rank=rank, ns=idle,
                numbers=(
                    Number("idle", idle), Number("kernels", calls, "count"), Number("mean kernel", busy),
                    Number("mean launch call", launch), Number("kernels shorter than their launch", short, "share"),
                ),
            )  # fmt: skip


def _synchronisation(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    if not evidence.is_device:
        return
    for rank in evidence.studied:
        steps = evidence.ranks[rank]["steps"] or 1
        rows = _own_calls(evidence, rank, _SYNCHRONISE)
        calls, ns = (sum(row[name] or 0 for row in rows) / steps for name in ("calls", "total_ns"))
        if calls < _FEWEST_SYNCHRONISATIONS or ns < _SMALL * evidence.step_ns:
            continue
        longest = max(rows, key=lambda row: row["total_ns"] or 0)
        reads = [row for row in evidence.ops if row["rank"] == rank and row["name"] in _READS]
        waits = evidence.ranks[rank]["exposed_communication_ns"] or 0.0
        idle = evidence.idle_ns.get(rank, 0.0)
        numbers = (
            Number(f"calls of {longest['name']} and the like", calls, "count"), Number("their time", ns),
            *(Number(f"calls of {row['name']}", row["calls"] / steps, "count") for row in reads[:2]),
        )  # fmt: skip
        # where the device mostly waits for other ranks, the host that waits for it loses nothing
        if waits >= ns or (steps < 2 and not any(row["self_ns"] is not None for row in rows)):
            yield Claim(resource="none", rank=rank, numbers=numbers, confidence="hint")
        else:
            yield Claim(resource="idle", rank=rank, ns=min(ns, idle), numbers=numbers)


_READS: Final = ("aten::item", "aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero")


def _compilation(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for rank in evidence.studied:
        steps = evidence.ranks[rank]["steps"] or 1
        # one calls the other
        rows = next((rows for name in _COMPILE if (rows := _own_calls(evidence, rank, (name,)))), [])
        ns = sum(row["total_ns"] or 0 for row in rows) / steps
        if ns >= _SMALL * evidence.step_ns > 0:
            calls = sum(row["calls"] or 0 for row in rows) / steps
            yield Claim(
                resource="idle", rank=rank, ns=min(ns, evidence.idle_ns.get(rank, 0.0)),
                numbers=(Number("calls that compile", calls, "count"), Number("their time", ns)),
                confidence="hint" if steps < 2 else None,
                is_always_shown=True,
            )  # fmt: skip


def _allocation(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for rank in evidence.studied:
        numbers = sorted({row["step"] for row in evidence.steps if row["rank"] == rank})
        later = set(numbers[2:])
        rows = [
            row for row in evidence.api_by_step
            if row["rank"] == rank and row["name"] in _ALLOCATE and row["step"] in later
        ] if later else []  # fmt: skip
        ns = sum(row["total_ns"] or 0 for row in rows) / max(1, len(later))
        if rows and ns >= _SMALL * evidence.step_ns:
            calls = sum(row["calls"] or 0 for row in rows) / len(later)
            yield Claim(
                resource="idle", rank=rank, ns=min(ns, evidence.idle_ns.get(rank, 0.0)),
                numbers=(Number("allocation calls after the second step", calls, "count"), Number("their time", ns)),
                is_always_shown=True,
            )  # fmt: skip


def _short_kernels(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    if not evidence.is_device:
        return
    for rank in evidence.studied:
        pieces = [piece for piece in evidence.pieces if piece.rank == rank and piece.kind != "copy" and piece.calls]
        short = [piece for piece in pieces if piece.ns / piece.calls < _SHORT_NS]
        calls, ns = sum(piece.calls for piece in pieces), sum(piece.ns for piece in pieces)
        own_calls, own_ns = sum(piece.calls for piece in short), sum(piece.ns for piece in short)
        if pieces and own_calls >= 0.5 * calls and own_ns >= 0.1 * ns:
            yield Claim(
                resource="work", rank=rank,
                cells=evidence.roofline.above_floor(short),
                numbers=(
                    Number("kernels shorter than 10 us", own_calls, "count"),
                    Number("of all", own_calls / calls, "share"), Number("their time", own_ns),
                ),
            )  # fmt: skip


RULES: Final = (
    AdviceRule(
        id="H1",
        title="the host launches kernels too slowly for the device",
        fires="the device idles for 10 % of the step outside data loading, and most kernels are shorter than the "
            "call that "
        "launches them",
        bound="exposed",
        confidence="likely",
        remedies=(
            Remedy("larger batches, so that kernels last longer than their launch"),
            Remedy("torch.compile(mode='reduce-overhead'), or CUDA / HIP graphs by hand", ("nvidia", "amd")),
            Remedy("TASK_QUEUE_ENABLE=2 and CPU_AFFINITY_CONF=1; aclgraph where shapes are fixed", ("ascend",)),
            Remedy("paddle.jit.to_static", ("paddle",)),
            Remedy("graph mode: set_context(mode=GRAPH_MODE)", ("mindspore",)),
        ),
        sources=("HolisticTraceAnalysis, idle time breakdown", "TraceLens"),
        find=_launch_bound,
    ),
    AdviceRule(
        id="H2",
        title="the host waits for the device again and again",
        fires="four synchronising calls or more in a step, of 1 % of it together",
        bound="calls",
        confidence="likely",
        remedies=(
            Remedy("keep values on the device: no .item(), nonzero() or print of a tensor in the loop"),
            Remedy("read the loss every n steps, and copy with non_blocking=True"),
        ),
        sources=("Nsight Systems, expert rule cuda_api_sync",),
        find=_synchronisation,
    ),
    AdviceRule(
        id="H6",
        title="operators are compiled in the steps",
        fires="calls that compile operators take 1 % of a step; in the only step of a capture it is a hint",
        bound="calls",
        confidence="certain",
        remedies=(
            Remedy("torch_npu.npu.set_compile_mode(jit_compile=False): binaries instead of compilation", ("ascend",)),
            Remedy("few lengths of sequences (buckets), so that shapes come again"),
        ),
        sources=("msprof-analyze, operator compilation",),
        find=_compilation,
    ),
    AdviceRule(
        id="H7",
        title="device memory is allocated in the steps",
        fires="allocation calls of the runtime take 1 % of the steps after the second",
        bound="calls",
        confidence="certain",
        remedies=(
            Remedy("no empty_cache() in the loop"),
            Remedy("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", ("nvidia", "amd")),
            Remedy("PYTORCH_NPU_ALLOC_CONF=expandable_segments:True", ("ascend",)),
        ),
        sources=("torch: CUDA semantics, memory management", "msprof-analyze, memory"),
        find=_allocation,
    ),
    AdviceRule(
        id="H8",
        title="most kernels are very short",
        fires="half of the kernels and a tenth of the kernel time are calls shorter than 10 us",
        bound="roofline",
        confidence="likely",
        remedies=(
            Remedy("fuse them: torch.compile, foreach optimizers, fused modules", ("torch",)),
            Remedy("run them in a graph; larger batches"),
        ),
        sources=("TraceLens, short kernels",),
        find=_short_kernels,
    ),
)  # fmt: skip
