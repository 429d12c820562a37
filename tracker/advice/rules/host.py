"""Why the device idles: launches, synchronisation, compilation and allocation on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracker.advice.evidence import RuntimeCalls
from tracker.advice.rule import AdviceRule, Claim, Number, Remedy, find_rank_with_most
from tracker.advice.traits import BACKWARD, COMPILED, GRAPHS, OPTIMIZER, RANKS, STACKS, is_compiled
from tracker.profile import IdleCause
from tracker.profile.runtime_names import allocates, waits_for_device
from tracker.units import NS_PER_MS

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence
    from tracker.advice.pieces import WorkPiece

Pieces = Sequence["WorkPiece"]
_PLACES: Final = 3
_WORTH_A_WORD: Final = 0.1
"""Of a claim: the part behind waits from which on it is named."""
_SHORT_NS: Final = 10_000
_MOST: Final = 0.5
"""Of a claim: the part of its largest place from which on that alone is to be changed."""
_LONG_NS: Final = 500_000
"""An operator that holds the host for so long computes, copies or decodes; it does not only launch."""
_READS: Final = ("aten::item", "aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero")
_FEWEST_SYNCHRONISATIONS: Final = 4
"""Calls per step and rank; a loop that reads its loss and a profiler that ends the step make three."""
_LAUNCH: Final = (
    "cudaLaunchKernel", "cuLaunchKernel", "hipLaunchKernel", "hipExtModuleLaunchKernel", "hipModuleLaunchKernel"
)  # fmt: skip
_COMPILE: Final = ("aclopCompileAndExecute", "aclopCompileAndExecuteV2", "opCompile")


def _idle(evidence: Evidence, rank: int, *causes: IdleCause, word: str = "in") -> Claim | None:
    """Return the idle time of these causes, with its largest places and what a wait for the device has opened of it;
    None where there is none.
    """
    places = evidence.idle_of(rank, *causes)
    ns = sum(places.values())
    if not ns:
        return None
    named = [Number(f"{word} {place}", own) for place, own in places.items() if place]
    behind = () if IdleCause.SYNCHRONISATION in causes else _behind_a_wait(evidence, rank, ns, *causes)
    numbers = (Number("idle", ns), *_rare(evidence, rank, *causes), *named[:_PLACES], *behind)
    return Claim(
        resource="idle", ns=ns, causes=causes, numbers=numbers, marks=tuple(_marks_of_place(next(iter(places))))
    )


def _marks_of_place(place: str) -> Iterator[str]:
    """Yield what the largest place of idle time is by its name."""
    if not place:
        return
    yield PLACED
    if _OPTIMIZER in place:
        yield IN_OPTIMIZER
    if any(word in place.lower() for word in _LOADING):
        yield LOADS


def _rare(evidence: Evidence, rank: int, *causes: IdleCause) -> Iterator[Number]:
    """Yield in how many steps causes come that come now and then: their time is a mean."""
    found = evidence.idle.come_in(rank, *causes)
    if found is not None:
        yield Number("in steps", f"{found[0]} of {found[1]}, here as their mean", "text")


def _behind_a_wait(evidence: Evidence, rank: int, ns: float, *causes: IdleCause) -> Iterator[Number]:
    """Yield the part of idle time that is in gaps which a wait for the device opened, where it is worth a word: without
    the wait the host would have been ahead.
    """
    behind_ns = evidence.idle.behind_waits(rank, *causes)
    if behind_ns < _WORTH_A_WORD * ns:
        return
    wait = evidence.idle.only_wait(rank) or "calls that wait for the device"
    yield Number(f"behind {wait}, which let the queue run dry:", behind_ns)


def _behind_these_waits(evidence: Evidence, rank: int, ns: float) -> Iterator[Number]:
    """Yield what stands behind the waits of a rank, where it is worth a word beside the time of the waits themselves:
    it is claimed by its own cause.
    """
    others = [cause for cause in IdleCause if cause.is_of_host and cause is not IdleCause.SYNCHRONISATION]
    behind_ns = evidence.idle.behind_waits(rank, *others)
    if behind_ns >= _WORTH_A_WORD * ns:
        yield Number("more stands behind these waits, as work of the host:", behind_ns)


def _idle_by(*causes: IdleCause, word: str = "in") -> Callable[[Evidence, int, Pieces], Iterator[Claim]]:
    """Return what finds the idle time of these causes."""

    def found(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
        claim = _idle(evidence, rank, *causes, word=word)
        if claim is not None:
            yield claim

    return found


def _launch_bound(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    claim = _idle(evidence, rank, IdleCause.OPERATOR, IdleCause.LAUNCH_LATENCY)
    if claim is None:
        return
    claim = replace(claim, marks=(*claim.marks, *_marks_of_operators(evidence, rank, claim.ns)))
    launches = evidence.calls_of(rank, _LAUNCH.__contains__)
    calls = sum(piece.calls for piece in pieces)
    if not launches.calls or not calls:
        yield claim
        return
    launch, busy = launches.ns / launches.calls, sum(piece.ns for piece in pieces) / calls
    short = sum(piece.calls for piece in pieces if piece.ns / piece.calls < launch) / calls
    numbers = (
        Number("kernels", calls, "count"), Number("mean kernel", busy), Number("mean launch call", launch),
        Number("kernels shorter than their launch", short, "share"),
    )  # fmt: skip
    yield replace(claim, numbers=(*claim.numbers, *numbers))


def _marks_of_operators(evidence: Evidence, rank: int, ns: float) -> Iterator[str]:
    """Yield what holds of the place of most idle time in operators: a call that copies, or an operator that is long."""
    places = evidence.idle_of(rank, IdleCause.OPERATOR)
    place = next(iter(places), "")
    if not place or places[place] < _MOST * ns:
        return
    calls = evidence.op_calls(rank, (place,)).get(place, 0.0)
    if "emcpy" in place:
        yield COPIES
    elif "GraphLaunch" in place:
        yield IN_GRAPH
    elif calls and places[place] >= _LONG_NS * calls and not is_compiled(place):
        yield ONE_PLACE


def _synchronisation(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    waits = evidence.calls_of(rank, waits_for_device)
    calls, ns = waits.calls, waits.ns
    reads = [Number(f"calls of {name}", count, "count") for name, count in evidence.op_calls(rank, _READS).items()][:2]
    if evidence.says_why_idle:
        claim = _idle(evidence, rank, IdleCause.SYNCHRONISATION)
        if claim is not None:
            places = evidence.idle_of(rank, IdleCause.SYNCHRONISATION)
            claim = replace(claim, marks=(*claim.marks, *_marks_of_waits(places)))
            numbers = [*claim.numbers]
            if calls:
                numbers.append(Number("calls that wait for the device", calls, "count"))
            numbers += [*reads, *_behind_these_waits(evidence, rank, claim.ns)]
            yield replace(claim, numbers=tuple(numbers))
        return
    if calls < _FEWEST_SYNCHRONISATIONS or not ns:
        return
    time = Number("their time", ns)
    if ns > evidence.step_ns:
        time = Number("their time", "more than the step, for several threads wait at once", "text")
    numbers = [Number(f"calls of {waits.longest} and the like", calls, "count"), time, *reads]
    is_summary = evidence.step_count(rank) < 2 and waits.is_summary
    # where the device mostly waits for other ranks, the host that waits for it loses nothing
    if is_summary or (evidence.ranks[rank].exposed_communication_ns or 0.0) >= ns:
        yield Claim(resource="none", numbers=tuple(numbers), confidence="hint")
    else:
        yield Claim(
            resource="idle", ns=min(ns, evidence.idle_ns.get(rank, 0.0)), numbers=tuple(numbers),
            confidence=None if evidence.has_markers else "hint",
        )  # fmt: skip


def _marks_of_waits(places: Mapping[str, float]) -> Iterator[str]:
    """Yield what waits for the device are by their calls."""
    named = [place for place in places if place]
    waits = [place for place in named if "Synchronize" in place or "synchronize" in place]
    if waits:
        yield SYNCHRONISES
    if waits and waits == named:
        yield ONLY_SYNCHRONISE
    if any(word in place for place in named for word in ("Memcpy", "memcpy", "copy_", "aten::to")):
        yield COPIES


def _compilation(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    # one calls the other
    found = (evidence.calls_of(rank, name.__eq__) for name in _COMPILE)
    made = next((one for one in found if one.calls), RuntimeCalls())
    idle_ns = evidence.idle_ns.get(rank, 0.0)
    causes: tuple[IdleCause, ...] = ()
    if evidence.says_why_idle:
        causes = (IdleCause.COMPILE,)
        idle_ns = sum(evidence.idle_of(rank, *causes).values())
    if made.ns and idle_ns:
        yield Claim(
            resource="idle", ns=min(made.ns, idle_ns), causes=causes,
            numbers=(Number("calls that compile", made.calls, "count"), Number("their time", made.ns)),
            confidence="hint" if evidence.step_count(rank) < 2 else None,
        )  # fmt: skip


def _allocation(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    made = evidence.calls_of(rank, allocates, after=2)
    later = (
        Number("allocation calls after the second step", made.calls, "count"), Number("their time", made.ns),
        Number("in steps", f"{made.steps} of {made.of_steps}, here as their mean", "text"),
    ) if made.ns else ()  # fmt: skip
    if evidence.says_why_idle:
        claim = _idle(evidence, rank, IdleCause.ALLOCATION)
        if claim is not None:
            yield replace(claim, numbers=(*claim.numbers, *later))
    elif made.ns:
        yield Claim(resource="idle", ns=min(made.ns, evidence.idle_ns.get(rank, 0.0)), numbers=later)


def _unexplained(evidence: Evidence) -> Iterator[Claim]:
    """The idle time without a cause, of the rank that has most."""
    rank, ns = find_rank_with_most({rank: evidence.unexplained_idle_ns(rank) for rank in evidence.ranks})
    if not ns:
        return
    causes = (IdleCause.UNKNOWN,) if evidence.says_why_idle else ()
    numbers = [Number("idle without a cause", ns)]
    if evidence.ranks[rank].idle_ns is None and evidence.stated_idle_ns is not None:
        numbers.append(Number("idle by the profiler's own number, data loading included", evidence.stated_idle_ns))
    parts = [evidence.counters.get((_OVERVIEW, name, "CPU time per step (ms)"), 0.0) * NS_PER_MS for name in _PHASES]
    if any(parts):
        outside = 1 - sum(parts) / evidence.step_ns
        numbers.append(Number("CPU time of no phase (Others)", outside, "share"))
    yield Claim(resource="idle", rank=rank, ns=ns, causes=causes, numbers=tuple(numbers))


def _short_kernels(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    short = [piece for piece in pieces if piece.ns / piece.calls < _SHORT_NS]
    if short:
        calls, own_calls = (sum(piece.calls for piece in own) for own in (pieces, short))
        share = Number("of all kernels", own_calls / calls, "share")
        yield Claim(cells=evidence.roofline.above_floor(short), numbers=(share,))


_OVERVIEW: Final = "overview_summary"
_PHASES: Final = ("Dataloader", "Forward", "Backward", "Optimization")
"""Rows of Paddle's summary: what it leaves of the step it calls Others."""
ONE_PLACE: Final = "one place"
"""Most of the idle time is in one operator that is long itself: to launch faster wins nothing there."""
PLACED: Final = "placed"
"""The capture names where the idle time is."""
SYNCHRONISES: Final = "synchronises"
ONLY_SYNCHRONISE: Final = "only synchronises"
"""The waits are calls that do nothing but wait, as those of a user do."""
COPIES: Final = "copies"
IN_OPTIMIZER: Final = "in the optimizer"
IN_GRAPH: Final = "in a graph launch"
LOADS: Final = "loads"
"""The name of the place is one that a data loader may have."""
_OPTIMIZER: Final = "Optimizer."
_LOADING: Final = ("load", "batch", "data", "fetch", "read", "prefetch", "sample")
MARKS: Final = (ONE_PLACE, PLACED, SYNCHRONISES, ONLY_SYNCHRONISE, COPIES, IN_OPTIMIZER, IN_GRAPH, LOADS)
"""Marks of the claims of this family."""
ALLOCATOR: Final = (
    Remedy("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", ("torch", "nvidia", "amd"), since=(2, 1)),
    Remedy("PYTORCH_NPU_ALLOC_CONF=expandable_segments:True", ("torch", "ascend")),
)
RULES: Final = (
    AdviceRule(
        id="H4", title="Python collects garbage while the device waits",
        fires="the device idles in runs of the garbage collector that the capture names",
        bound="exposed", confidence="certain", on_devices=True,
        remedies=(
            Remedy("gc.disable(), gc.freeze() after the first steps, and gc.collect(1) every n steps on all ranks"),
        ),
        sources=("torchtitan, utils.GarbageCollection",), in_rank=_idle_by(IdleCause.GARBAGE_COLLECTION),
    ),
    AdviceRule(
        id="H6", title="operators are compiled in the steps",
        fires="operators are compiled by calls of the runtime; in the only step of a capture it is a hint",
        bound="calls", confidence="certain", on_devices=True,
        remedies=(
            Remedy("torch_npu.npu.set_compile_mode(jit_compile=False): binaries instead of compilation",
                   ("torch", "ascend")),
            Remedy("few different shapes (buckets of lengths), so that they come again"),
        ),
        sources=("msprof-analyze, operator compilation",), in_rank=_compilation,
    ),
    AdviceRule(
        id="H5", title="code of the device is compiled or loaded in the steps",
        fires="the device idles while code is compiled, tuned or loaded",
        bound="exposed", confidence="certain", on_devices=True,
        remedies=(
            Remedy("few different shapes, or mark_dynamic: each new one compiles again", ("torch",), since=(2, 0),
                   needs=(COMPILED,)),
            Remedy("CUDA_MODULE_LOADING=EAGER: kernels are loaded at the start", ("nvidia",)),
            Remedy("few different shapes; more warm-up steps before the profile"),
        ),
        sources=("torch: compilation, CUDA lazy loading",), in_rank=_idle_by(IdleCause.COMPILE),
    ),
    AdviceRule(
        id="H7", title="device memory is allocated in the steps",
        fires="the device idles while the runtime allocates, of three steps or more without the first; where the "
            "source does not say why it idles: calls that allocate after the second step",
        bound="exposed", confidence="certain", on_devices=True,
        remedies=(
            Remedy("no empty_cache() in the loop", ("torch", "paddle")), *ALLOCATOR,
            Remedy("few different shapes, so that memory is used again; more warm-up steps before the profile"),
        ),
        sources=("torch: CUDA semantics, memory management", "msprof-analyze, memory"), in_rank=_allocation,
    ),
    AdviceRule(
        id="H12", title="the profiler itself keeps the host busy",
        fires="the device idles while the profiler works for itself; without it no time is lost",
        bound="exposed", confidence="likely", on_devices=True,
        remedies=(
            Remedy("nsys profile --cuda-flush-interval, --sample=none, --cpuctxsw=none", sources=("nsys",)),
            Remedy("record fewer steps, and no stacks or shapes", sources=("torch", "ascend", "paddle")),
            Remedy("compare with the time of a step without the profiler"),
        ),
        sources=("Nsight Systems: profiler overhead", "Kineto: ActivityType::OVERHEAD"),
        in_rank=_idle_by(IdleCause.PROFILER),
    ),
    AdviceRule(
        id="H2", title="the host waits for the device",
        fires="the device idles in calls that wait for it, and until the host can launch again; where the source does "
            "not say why it idles: four such calls or more, a hint where nothing marks the steps",
        bound="exposed", confidence="likely", on_devices=True,
        remedies=(
            Remedy("keep values on the device: no .item(), nonzero() or print of a tensor in the loop",
                   ("torch", "paddle"), unless=(ONLY_SYNCHRONISE,)),
            Remedy("keep values on the device: no asnumpy() or print of a tensor in the loop", ("mindspore",),
                   unless=(ONLY_SYNCHRONISE,)),
            Remedy("no synchronize() in the loop but for a measurement", needs=(SYNCHRONISES,)),
            Remedy("read the loss every n steps", needs=(BACKWARD,)),
            Remedy("copy from pinned memory with non_blocking=True", ("torch",), needs=(COPIES,)),
            Remedy("wait for the device only where its result is needed", is_last=True),
        ),
        sources=("Nsight Systems, expert rule cuda_api_sync",), in_rank=_synchronisation,
    ),
    AdviceRule(
        id="H1", title="the host runs operators while the device waits",
        fires="the device idles while the host runs operators or launches what they ask for",
        bound="exposed", confidence="likely", on_devices=True,
        remedies=(
            Remedy("the operator that is named: out of the loop, on fewer data of the host, or on the device",
                   needs=(ONE_PLACE,)),
            Remedy("the call that is named copies: from pinned memory it returns at once (non_blocking=True)",
                   ("torch",), needs=(COPIES,)),
            Remedy("larger batches, so that kernels last longer than their launch", unless=(ONE_PLACE,)),
            Remedy("torch.compile(mode='reduce-overhead'), or CUDA / HIP graphs by hand", ("torch", "nvidia", "amd"),
                   since=(2, 0), unless=(ONE_PLACE, COMPILED, GRAPHS)),
            Remedy("mode='reduce-overhead' for what torch.compile compiles already: its kernels in graphs",
                   ("torch", "nvidia", "amd"), since=(2, 0), needs=(COMPILED,), unless=(ONE_PLACE, GRAPHS)),
            Remedy("what no graph launches yet: into one", ("nvidia", "amd"), needs=(GRAPHS,),
                   unless=(ONE_PLACE, IN_GRAPH)),
            Remedy("launch the next graph while this one runs: no wait for the device in between", needs=(IN_GRAPH,)),
            Remedy("CUDA / HIP graphs by hand", ("torch", "nvidia", "amd"), until=(2, 0), unless=(ONE_PLACE, GRAPHS)),
            Remedy("TASK_QUEUE_ENABLE=2 and CPU_AFFINITY_CONF=1; aclgraph where shapes are fixed",
                   ("torch", "ascend"), unless=(ONE_PLACE,)),
            Remedy("paddle.jit.to_static", ("paddle",), unless=(ONE_PLACE,)),
            Remedy("graph mode: set_context(mode=GRAPH_MODE)", ("mindspore",), unless=(ONE_PLACE,)),
        ),
        sources=("HolisticTraceAnalysis, idle time breakdown", "TraceLens"), in_rank=_launch_bound,
    ),
    AdviceRule(
        id="H3", title="the host runs no operator while the device waits",
        fires="the device idles while no operator and no call of the runtime runs",
        bound="exposed", confidence="likely", on_devices=True,
        remedies=(
            Remedy("fewer calls of the host in the optimizer: foreach=True or fused=True, zero_grad(set_to_none=True)",
                   ("torch", "nvidia", "amd"), since=(2, 0), needs=(IN_OPTIMIZER,)),
            Remedy("look at the code at that place: logging, metrics, checks, work on the batch between operators",
                   needs=(PLACED,)),
            Remedy("look at the code between operators: logging, metrics, checks, work on the batch",
                   unless=(PLACED,)),
            Remedy("where that place is a data loader of your own: [readers] loaders of the settings file names it",
                   needs=(LOADS,)),
            Remedy("record with_stack=True once: the stacks around the gap name the line",
                   sources=("torch_profiler", "ascend"), unless=(STACKS,)),
            Remedy("nsys profile --python-sampling=true once: the samples name the functions of Python",
                   sources=("nsys",)),
        ),
        sources=("HolisticTraceAnalysis, idle time breakdown",), in_rank=_idle_by(IdleCause.NO_OPERATOR),
    ),
    AdviceRule(
        id="H9", title="launched work waits on the device",
        fires="the device idles although work for it is launched",
        bound="exposed", confidence="likely", on_devices=True,
        remedies=(
            Remedy("find what it waits for: an event of another stream, or a copy"),
            Remedy("or another rank: tracker cluster", needs=(RANKS,)),
            Remedy("issue copies and collectives earlier, or on a stream that nothing else waits for"),
        ),
        sources=("HolisticTraceAnalysis, idle time breakdown",),
        in_rank=_idle_by(IdleCause.DEPENDENCY, word="before"),
    ),
    AdviceRule(
        id="H10", title="the device pauses between kernels",
        fires="the device idles from one launched kernel to the next",
        bound="exposed", confidence="likely", on_devices=True,
        remedies=(
            Remedy("CUDA or HIP graphs, or fewer and longer kernels by torch.compile", ("torch", "nvidia", "amd"),
                   since=(2, 0), unless=(COMPILED, GRAPHS)),
            Remedy("a fused optimizer: fewer and longer kernels", needs=(OPTIMIZER,)),
            Remedy("fused modules, larger batches: fewer and longer kernels"),
        ),
        sources=("TraceLens, short kernels",), in_rank=_idle_by(IdleCause.BETWEEN_KERNELS),
    ),
    AdviceRule(
        id="H11", title="the device idles, and the run does not say why",
        fires="the device idles, and no launch or call of the host says why",
        bound="exposed", confidence="likely", on_devices=True,
        remedies=(
            Remedy("look at the Python code between the phases of a step: logging, metrics, copies of batches",
                   ("paddle",)),
            Remedy("profile with targets=[ProfilerTarget.CPU, ProfilerTarget.GPU]: launches name the cause",
                   sources=("paddle_trace",)),
            Remedy("export a trace once (export_chrome_tracing): it has what the host does in the gaps",
                   sources=("paddle_summary",)),
            Remedy("record one step with ProfilerActivity.CPU as well: launches name the cause",
                   sources=("torch_profiler",)),
            Remedy("keep trace_view.json, or record one step with ProfilerActivity.CPU and Level1", ("torch",),
                   sources=("ascend",)),
            Remedy("nsys profile --trace=cuda,nvtx,osrt over whole steps: launches name the cause", sources=("nsys",)),
            Remedy("record the host as well (msprof with runtime and CANN data)", sources=("cann",)),
            Remedy("record the host as well: launches name the cause", is_last=True),
        ),
        sources=("Paddle: guide to model performance, 1.2",), in_run=_unexplained,
    ),
    AdviceRule(
        id="H8", title="many kernels are very short",
        fires="calls of kernels shorter than 10 us: what moving their bytes does not explain",
        bound="roofline", confidence="likely", on_devices=True, is_general=True,
        remedies=(
            Remedy("fuse them: torch.compile", ("torch", "nvidia", "amd"), since=(2, 0), unless=(COMPILED,)),
            Remedy("fuse them: foreach=True or fused=True in the optimizer", ("torch", "nvidia", "amd"), since=(2, 0),
                   needs=(OPTIMIZER,)),
            Remedy("fuse them: optimizers and modules of torch_npu that are one kernel", ("torch", "ascend")),
            Remedy("run them in a graph", unless=(GRAPHS,)),
            Remedy("larger batches"),
        ),
        sources=("TraceLens, short kernels",), in_rank=_short_kernels,
    ),
)  # fmt: skip
