"""Communication that compute does not hide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tracker.advice.rule import AdviceRule, Claim, Number, Remedy, find_rank_with_most
from tracker.advice.traits import BACKWARD, PIPELINE, RANKS
from tracker.detect.losses import COMPUTE_PART, COPIES_PART, IDLE_PART, LOADING_PART, PARTS_OF_RANK

if TYPE_CHECKING:
    from tracker.advice.collectives import UsualCollectives
    from tracker.advice.evidence import Evidence

_LEAST_WAITING: Final = "of it waiting for other ranks, at least"
"""Where a part of a collective is hidden by compute, that part may have been the waiting."""
_LITTLE: Final = 1024
"""Payload of a call, in bytes, that is a number and not work."""
_WHOLE: Final = ("default", "default_pg", "world", "mp", "unknown")
_BUCKETS: Final = ("dp", "default", "world", "unknown")
"""Part of the role of a group whose calls carry gradients, which buckets put together."""
_IN_BUCKETS: Final = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
_ALIGNED: Final = 512
_RETRANSMISSION_NS: Final = 4e9
_LARGE: Final = {"RDMA": 1e6}
_LARGE_ELSEWHERE: Final = 16e6
LATE: Final = "late"
"""Mark of a claim: it names the rank that comes late."""
NAMED: Final = "named"
"""Mark of a claim: tasks name a rank that is waited for."""
ROTATES: Final = "rotates"
"""Mark of a claim: now one rank waits and now another."""
MEGATRON: Final = "megatron"
"""Mark of a claim: the roles of its groups are those of Megatron."""
MARKS: Final = (LATE, *PARTS_OF_RANK, NAMED, ROTATES, MEGATRON)
"""Marks of the claims of this family."""
_ROLES_OF_MEGATRON: Final = ("dp_cp", "embd", "dp_modulo_exp", "exp_dp", "tp_exp")
_TO_OVERLAP: Final = 4.0
"""Calls that a step may have in any case: gradients of the last layers move while those of the first are computed."""


def _exposed(evidence: Evidence) -> Iterator[Claim]:
    yield from _exposed_alone(evidence)
    for role, kind, rank, row in _worst(evidence):
        wait = row.wait_ns
        numbers = [Number("exposed", row.exposed_ns or 0.0), Number("calls", row.calls or 0.0, "count")]
        numbers += _rare(evidence, rank, row.steps)
        confidence = None
        if wait is None:
            numbers.append(Number("waiting for other ranks", evidence.why_waiting_is_unknown(role), "text"))
            confidence = "likely"
        else:
            numbers.append(Number(_LEAST_WAITING, wait))
        yield _claim(role, kind, rank, row.transfer_ns or 0.0, numbers, f"exposed {kind}{_of(role)}", confidence)


def _exposed_alone(evidence: Evidence) -> Iterator[Claim]:
    """The exposed communication of the rank that has most, where no collective states what of it is exposed."""
    if any(row.exposed_ns is not None for ranks in evidence.collectives.values() for row in ranks.values()):
        return
    exposed = {rank: row.exposed_communication_ns or 0.0 for rank, row in evidence.ranks.items()}
    rank, ns = find_rank_with_most(exposed)
    if ns:
        numbers = (Number("exposed", ns), Number("by collectives", "not known", "text"))
        yield Claim(resource="communication", rank=rank, ns=ns, numbers=numbers, confidence="likely")


def _rare(evidence: Evidence, rank: int, steps: int) -> Iterator[Number]:
    """Yield in how many steps something comes, where that are fewer than half of them: its times are means then."""
    count = evidence.step_count(rank)
    if 2 * steps < count:
        yield Number("in steps", f"{steps} of {count}, here as their mean", "text")


def _claim(
    role: str, kind: str, rank: int, ns: float, numbers: list[Number], title: str = "", confidence: Any = None
) -> Claim:
    marks = (MEGATRON,) if role in _ROLES_OF_MEGATRON else ()
    return Claim(resource="communication", rank=rank, role=role, kind=kind, place=f"{role} {kind}", ns=ns,
                 numbers=tuple(numbers), title=title, confidence=confidence, marks=marks)  # fmt: skip


def _of(role: str) -> str:
    if role == "unknown":
        return ""
    return " of the default group" if role.startswith("default") else f" of {role}"


def _worst(evidence: Evidence) -> Iterator[tuple[str, str, int, UsualCollectives]]:
    """Of each role and kind of collective the rank in which most is exposed beyond waiting, where any is."""
    for (role, kind), ranks in evidence.collectives.items():
        exposed = {rank: row.transfer_ns for rank, row in ranks.items() if row.transfer_ns}
        if exposed:
            rank, _ = find_rank_with_most(exposed)
            yield role, kind, rank, ranks[rank]


def _waiting(evidence: Evidence) -> Iterator[Claim]:
    """The rank that waits longest in exposed collectives, and who it waits for."""
    rank, wait = find_rank_with_most({rank: own.least for rank, own in evidence.waits.items()})
    rotating = evidence.rotating_wait_ns
    if rotating:
        number = Number("waiting of the rank that waits longest in a step", rotating)
        ranks = {row.exposed_communication_ns or 0.0: one for one, row in evidence.ranks.items()}
        yield Claim(
            resource="waiting", rank=ranks[max(ranks)], ns=rotating, numbers=(number,), marks=(ROTATES,),
            title="ranks wait for each other, now one and now another",
        )  # fmt: skip
        return
    if not wait:
        return
    exposed = evidence.ranks[rank].exposed_communication_ns
    numbers = [Number("exposed", exposed)] if exposed is not None else []
    numbers.append(Number(_LEAST_WAITING, wait))
    peer, peer_ns = evidence.name_waited_for(rank)
    marks: tuple[str, ...] = ()
    if peer:
        numbers.append(Number(f"of it for {peer}", min(wait, peer_ns)))
        marks = (NAMED,)
    if evidence.is_pipeline:
        # stages of a pipeline wait for each other in any case
        yield Claim(resource="none", rank=rank, numbers=tuple(numbers), marks=marks)
        return
    late = evidence.late_rank
    if late is None:
        yield Claim(resource="waiting", rank=rank, ns=wait, numbers=tuple(numbers), marks=marks)
        return
    others, wait_for_it = ("the others", "wait") if len(evidence.ranks) > 2 else ("the other one", "waits")
    numbers.append(Number(f"rank {late.rank} comes behind the next one by", late.ns))
    marks = (LATE,)
    if late.cause.part:
        numbers.append(Number(f"{late.cause.part}, more than that of {others}", late.cause.more_ns))
        marks = (LATE, late.cause.part)
    yield Claim(
        resource="waiting", rank=rank, ns=wait, numbers=tuple(numbers),
        title=f"rank {late.rank} comes late, and {others} {wait_for_it} for it", late_rank=late.rank, late_ns=late.ns,
        marks=marks,
    )  # fmt: skip


def _small_calls(evidence: Evidence) -> Iterator[Claim]:
    """Calls and packets that are too small for their link, and that buckets could put together.

    What the step wins by fewer of them is at most their part of what is exposed.
    """
    for role, kind, rank, row in _worst(evidence):
        small = _small_transfers(evidence, role, kind, rank)
        if small is None:
            continue
        exposed = row.transfer_ns or 0.0
        numbers = [
            Number(small.unit, small.count, "count"), Number("as many as are needed", small.needed, "count"),
            Number("of the bytes in small transfers", small.share, "share"), Number("exposed", exposed),
        ]  # fmt: skip
        ns = exposed * small.share * (1 - small.needed / small.count)
        title = f"{small.count:,.0f} small {small.unit} of {kind} a step{_of(role)}"
        yield _claim(role, kind, rank, ns, numbers, title)


class _Small(Struct, frozen=True):
    """Transfers of a step that are too small for their link: `unit`: calls or packets; `count`: how many; `needed`: how
    many would do; `share`: their part of the bytes.
    """

    unit: str
    count: float
    needed: float
    share: float


def _small_transfers(evidence: Evidence, role: str, kind: str, rank: int) -> _Small | None:
    """The small transfers of such collectives; None where there are none too many, and of what no bucket holds."""
    if kind not in _IN_BUCKETS or not any(word in role for word in _BUCKETS):
        return None
    own = [row for row in evidence.communication.get(rank, ())
           if row.place == (role, kind)]  # fmt: skip
    packets = [row for row in evidence.links.get(rank, ())
               if row.group_role in (role, "") and row.kind in (kind, "") and row.source_rank is None
               and row.packet_bytes is not None]  # fmt: skip
    sizes: list[tuple[float, float, str]]
    sizes = [(row.packet_bytes or 0, row.bytes or 0.0, row.transport) for row in packets]
    if not sizes:
        sizes = [(row.bytes / row.calls, row.bytes, "") for row in own if row.bytes and row.calls]
    moved = sum(size for _, size, _ in sizes)
    small = [(each, size, _LARGE.get(transport, _LARGE_ELSEWHERE)) for each, size, transport in sizes
             if 0 < each < _LARGE.get(transport, _LARGE_ELSEWHERE)]  # fmt: skip
    # of a usual step, as its calls are to those of all steps
    share = (evidence.collectives[role, kind][rank].calls or 0.0) / (sum(row.calls for row in own) or 1)
    count = share * sum(size / each for each, size, _ in small)
    needed = max(_TO_OVERLAP, share * sum(size / large for _, size, large in small))
    if count <= needed:
        return None
    return _Small("packets" if packets else "calls", count, needed, sum(size for _, size, _ in small) / moved)


def _unaligned(evidence: Evidence) -> Iterator[Claim]:
    """Collectives of an NPU whose payload is no multiple of 512 bytes: where a sum is none, at least one call is."""
    if evidence.vendor != "ascend":
        return
    for (role, kind), ranks in evidence.collectives.items():
        for rank in ranks:
            own = [row for row in evidence.communication[rank]
                   if row.place == (role, kind)
                   and (row.bytes or 0) % _ALIGNED]  # fmt: skip
            if own:
                sizes = ", ".join(f"{row.bytes:,} bytes in {row.calls:,} calls of all steps" for row in own[:3])
                yield Claim(resource="none", rank=rank, role=role, place=f"{role} {kind}",
                            numbers=(Number("payload", sizes, "text"),))  # fmt: skip
                break


def _little(evidence: Evidence) -> Iterator[Claim]:
    for (role, kind), ranks in evidence.collectives.items():
        found: list[tuple[float, float, int]] = []
        for rank in ranks if role in _WHOLE else ():
            otherwise = _payload_by_links(evidence, role, kind, rank)
            small = evidence.step_collectives.sum_small(role, kind, rank, _LITTLE, otherwise)
            if small is not None:
                found.append((small.transfer_ns or 0.0, small.calls or 0.0, -rank))
        exposed, calls, rank = max((one for one in found if one[1] >= 1), default=(0.0, 0.0, 0))
        if calls:
            yield _claim(role, kind, -rank, exposed, [Number("calls", calls, "count"), Number("exposed", exposed)],
                         f"{kind} of less than 1 kB{_of(role)}")  # fmt: skip


def _payload_by_links(evidence: Evidence, role: str, kind: str, rank: int) -> float:
    """Return the bytes of a call by what went over links; infinite if nothing says."""
    calls = sum(row.calls for row in evidence.communication.get(rank, ())
                if row.place == (role, kind))  # fmt: skip
    moved = [
        one.bytes for one in evidence.links.get(rank, ())
        if one.place == (role, kind)
        and one.packet_bytes is None and one.transport != "LOCAL" and one.bytes is not None
    ]  # fmt: skip
    return float(sum(moved) / calls) if moved and calls else float("inf")


def _retransmission(evidence: Evidence) -> Iterator[Claim]:
    for rank, rows in evidence.communication.items():
        if not any(row.transport == "RDMA" for row in evidence.links.get(rank, ())):
            continue
        longest = max(rows, key=lambda row: row.max_ns or 0, default=None)
        longest_ns = (longest.max_ns or 0) if longest is not None else 0
        if longest is not None and longest_ns >= _RETRANSMISSION_NS:
            role, kind = longest.place
            exposed = evidence.collectives[role, kind][rank].transfer_ns or 0.0
            yield _claim(role, kind, rank, exposed, [Number("longest call of all steps", longest_ns)])
            return


def _gloo(evidence: Evidence) -> Iterator[Claim]:
    if evidence.facts.get("distributed_backend", "") == "gloo":
        for role, kind, rank, row in _worst(evidence):
            numbers = [Number("backend", "gloo", "text"), Number("exposed", row.exposed_ns or 0.0)]
            yield _claim(role, kind, rank, row.transfer_ns or 0.0, numbers)


_DATA: Final = ("dp", "default", "world", "unknown")
_SHARDS: Final = ("all_gather", "reduce_scatter")
RULES: Final = (
    AdviceRule(
        id="N9", title="collectives of device tensors over gloo",
        fires="the device computes, and the backend of the process group is gloo", bound="exposed",
        confidence="certain", on_devices=True,
        remedies=(
            Remedy("init_process_group('nccl')", ("torch", "nvidia", "amd")),
            Remedy("init_process_group('hccl')", ("torch", "ascend")),
        ),
        sources=("torch: distributed backends",), in_run=_gloo,
    ),
    AdviceRule(
        id="N8", title="a collective of seconds over RDMA", fires="a call over RDMA takes 4 s or more: retransmission",
        bound="exposed", confidence="likely", on_devices=True,
        remedies=(Remedy("check the network: links, flow control, timeouts"),),
        sources=("msprof-analyze, RDMA retransmission",), in_run=_retransmission,
    ),
    AdviceRule(
        id="N6", title="tiny collectives in each step",
        fires="exposed collectives of less than 1 kB over all ranks in each step",
        bound="exposed", confidence="certain",
        remedies=(
            Remedy("no all_reduce of the loss or of a norm in each step; every n steps, or asynchronously",
                   kinds=("all_reduce",), needs=(BACKWARD,)),
            Remedy("put small values together into one call, or wait for them later", is_last=True),
        ),
        sources=("Megatron-LM, training loop",), in_run=_little,
    ),
    AdviceRule(
        id="N3", title="small transfers",
        fires="exposed collectives of gradients move in calls or packets below 1 MB (RDMA) or 16 MB, more of them than "
            "hold the same bytes and than four calls, which overlap",
        bound="exposed", confidence="likely",
        remedies=(
            Remedy("put gradients together: DistributedDataParallel with bucket_cap_mb=25 or more, or one flat tensor; "
                   "no all_reduce per parameter", ("torch",), needs=(BACKWARD,)),
            Remedy("HCCL_BUFFSIZE", ("ascend",)),
            Remedy("larger buckets: comm_buffer_size", ("paddle",), needs=(BACKWARD,)),
            Remedy("all_reduce_fusion_config", ("mindspore",), needs=(BACKWARD,)),
            Remedy("put small tensors together: one call of one flat tensor", is_last=True),
        ),
        sources=("msprof-analyze, packets; by bytes here, not by count",), in_run=_small_calls,
    ),
    AdviceRule(
        id="N4", title="payloads of collectives that are no multiple of 512 bytes",
        fires="on an NPU, the bytes of a collective are no multiple of 512",
        bound="none", confidence="hint", on_devices=True,
        remedies=(
            Remedy("pad tensors and buckets to multiples of 512 bytes: links move them in such pieces", ("ascend",)),
        ),
        sources=("msprof-analyze, byte alignment",), in_run=_unaligned,
    ),
    AdviceRule(
        id="N2", title="ranks wait for each other, not for the network",
        fires="exposed communication is waiting for other ranks; stages of a pipeline wait in any case, of these it "
            "claims no time",
        bound="exposed", confidence="certain",
        remedies=(
            Remedy("on that rank: its loader, its storage, more workers", needs=(LOADING_PART,)),
            Remedy("on that rank: less work, or a device and a clock like those of the others (tracker cluster tells "
                   "more work from a slow device)", needs=(COMPUTE_PART,)),
            Remedy("on that rank: its copies; are its memory and its bus those of the others?",
                   needs=(COPIES_PART,)),
            Remedy("on that rank: what its host does while its device runs nothing (tracker show --rank)",
                   ("nvidia", "amd", "ascend"), needs=(IDLE_PART,)),
            Remedy("on that rank: what its program does between operators (tracker show --rank)",
                   needs=(IDLE_PART,), is_last=True),
            Remedy("on that rank: its trace says what it does before it comes (tracker cluster)",
                   needs=(LATE,), unless=PARTS_OF_RANK),
            Remedy("stages of a pipeline wait for each other: even stages, more microbatches (P2, P3)",
                   needs=(PIPELINE,)),
            Remedy("look at that rank, or record it where it was not captured: its trace says why it comes late",
                   needs=(NAMED,), unless=(LATE, PIPELINE)),
            Remedy("it is another rank from step to step: look for what delays each of them now and then (other jobs "
                   "on their hosts, uneven batches)", needs=(ROTATES,)),
            Remedy("find who is late: tracker cluster; the cause is on that rank (P1, P4, I1)", needs=(RANKS,),
                   unless=(LATE, NAMED, PIPELINE, ROTATES)),
            Remedy("record all ranks of the group: tracker cluster then names who is late",
                   unless=(RANKS, LATE, NAMED, PIPELINE)),
        ),
        sources=("Lin et al., OSDI'25",), in_run=_waiting,
    ),
    AdviceRule(
        id="N1", title="exposed communication",
        fires="communication of a kind and parallel type is exposed, beyond waiting for other ranks",
        bound="exposed", confidence="certain",
        remedies=(
            Remedy("overlap with the backward pass: DistributedDataParallel in buckets of 25 MB or more; no_sync() "
                   "while gradients are accumulated", ("torch", *_DATA), kinds=("all_reduce", "reduce"),
                   needs=(BACKWARD,), unless=(MEGATRON,)),
            Remedy("overlap with the backward pass: --overlap-grad-reduce; gradient accumulation", ("torch", *_DATA),
                   kinds=("all_reduce", "reduce", "reduce_scatter"), needs=(BACKWARD, MEGATRON)),
            Remedy("overlap with the forward pass: --overlap-param-gather of the distributed optimizer",
                   ("torch", *_DATA), kinds=("all_gather",), needs=(BACKWARD, MEGATRON)),
            Remedy("overlap with the backward pass: DataParallel with comm_buffer_size=25 or more; no_sync() while "
                   "gradients are accumulated", ("paddle", *_DATA), kinds=("all_reduce",), needs=(BACKWARD,)),
            Remedy("overlap with the backward pass: all_reduce_fusion_config; gradient accumulation",
                   ("mindspore", *_DATA), kinds=("all_reduce",), needs=(BACKWARD,)),
            Remedy("prefetch of parameters in both passes, larger units, shards inside one node (HYBRID_SHARD)",
                   ("torch", "fsdp", "hsdp", *_DATA), kinds=_SHARDS, needs=(BACKWARD,), unless=(MEGATRON,)),
            Remedy("prefetch of parameters, larger units, shards inside one node", ("fsdp", "hsdp"), kinds=_SHARDS,
                   unless=(BACKWARD,)),
            Remedy("overlap of the sharded optimizer's collectives with both passes; shards inside one node",
                   ("paddle", "mindspore", "fsdp", "hsdp", *_DATA), kinds=_SHARDS, needs=(BACKWARD,)),
            Remedy("sequence parallel; overlap with the matmuls; tensor parallel inside one node", ("tp", "sp", "mp"),
                   kinds=("all_reduce", *_SHARDS)),
            Remedy("matmul and collective as one operator: torch_npu.npu_mm_all_reduce_base", ("torch", "ascend", "tp"),
                   kinds=("all_reduce",)),
            Remedy("overlap of the ring with attention", ("cp",), kinds=("send", "recv", "send_recv")),
            Remedy("overlap all_to_all with work that does not need it: experts or tables of the other half of a "
                   "batch; fewer bytes (16 or 8 bits); even parts for all ranks; peers inside one node",
                   kinds=("all_to_all", "send_recv")),
            Remedy("more microbatches, interleaved stages, sends that do not block", kinds=("send", "recv")),
            Remedy("more microbatches, interleaved stages, sends that do not block", ("pp",), kinds=("send_recv",)),
            Remedy("broadcast_buffers=False, or a profile behind the first steps, which send the parameters",
                   ("torch",), kinds=("broadcast",), needs=(BACKWARD,)),
            Remedy("profile behind the first steps, which send the parameters", ("paddle", "mindspore"),
                   kinds=("broadcast",), needs=(BACKWARD,)),
            Remedy("no barrier in the loop", kinds=("barrier",)),
            Remedy("issue it earlier, asynchronously, and wait where the result is needed", is_last=True),
        ),
        sources=("torch_tb_profiler", "Megatron-LM", "PyTorch: DistributedDataParallel, FullyShardedDataParallel"),
        in_run=_exposed,
    ),
)  # fmt: skip
