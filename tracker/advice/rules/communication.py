"""Communication that compute does not hide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tracker.advice.rule import AdviceRule, Claim, Number, Remedy

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence

_EXPOSED: Final = 0.10
_SMALL: Final = 0.01
_LITTLE: Final = 1024
"""Payload of a call, in bytes, that is a number and not work."""
_WHOLE: Final = ("default", "default_pg", "world", "mp", "unknown")
_BUCKETS: Final = ("dp", "default", "world", "unknown")
"""Part of the role of a group whose calls carry gradients, which buckets put together."""
_RETRANSMISSION_NS: Final = 4e9
_LARGE: Final = {"RDMA": 1e6}
_LARGE_ELSEWHERE: Final = 16e6
_SMALL_BYTES: Final = 0.2


def _exposed(evidence: Evidence) -> Iterator[Claim]:
    for role, rank, row in _worst(evidence):
        exposed, wait = row["exposed_ns"], row["wait_ns"]
        if exposed < _EXPOSED * evidence.step_ns or (wait or 0.0) >= exposed / 2:
            continue
        numbers = [Number("exposed", exposed), Number("calls", row["calls"], "count")]
        unknown = Number("waiting for other ranks", evidence.why_waiting_is_unknown(role), "text")
        numbers.append(unknown if wait is None else Number("of it waiting for other ranks", wait))
        small = _small_share(evidence, role, rank)
        numbers += [Number("of the bytes in small transfers", small, "share")] if small else []
        yield _claim(role, rank, exposed - (wait or 0.0), numbers, f"exposed communication{_of(role)}",
                     "likely" if wait is None else None)  # fmt: skip


def _claim(role: str, rank: int, ns: float, numbers: list[Number], title: str = "", confidence: Any = None) -> Claim:
    return Claim(resource="communication", rank=rank, role=role, place=role, ns=ns, numbers=tuple(numbers),
                 title=title, confidence=confidence)  # fmt: skip


def _of(role: str) -> str:
    return "" if role == "unknown" else f" of {'the default group' if role.startswith('default') else role}"


def _worst(evidence: Evidence) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Of each role the rank in which most is exposed beyond waiting."""
    for role, ranks in evidence.roles.items():
        known = {rank: row for rank, row in ranks.items() if row["exposed_ns"] is not None}
        if known:
            rank = max(known, key=lambda one: (known[one]["exposed_ns"] - (known[one]["wait_ns"] or 0.0), -one))
            yield role, rank, known[rank]


def _waiting(evidence: Evidence) -> Iterator[Claim]:
    sums: dict[int, list[float]] = {}
    for ranks in evidence.roles.values():
        for rank, row in ranks.items():
            if row["exposed_ns"] is not None and row["wait_ns"] is not None:
                own = sums.setdefault(rank, [0.0, 0.0])
                own[0], own[1] = own[0] + row["exposed_ns"], own[1] + row["wait_ns"]
    found = [(wait, exposed, -rank) for rank, (exposed, wait) in sums.items() if wait >= exposed / 2]
    wait, exposed, rank = max(found, default=(0.0, 0.0, 0))
    if exposed and exposed >= _EXPOSED * evidence.step_ns:
        numbers = [Number("exposed", exposed), Number("of it waiting for other ranks", wait)]
        numbers += evidence.waited_for(-rank)
        yield Claim(resource="none", rank=-rank, numbers=tuple(numbers))


def _small_calls(evidence: Evidence) -> Iterator[Claim]:
    """Packets or calls that are too small for their link, where `_exposed` does not say so already."""
    for role, rank, row in _worst(evidence):
        wait = row["wait_ns"] or 0.0
        exposed, share = row["exposed_ns"] - wait, _small_share(evidence, role, rank)
        is_covered = row["exposed_ns"] >= _EXPOSED * evidence.step_ns and wait < row["exposed_ns"] / 2
        if share and exposed >= _SMALL * evidence.step_ns and not is_covered:
            # a call of the best size takes nothing less than its bytes: what the rest could win is at most all of it
            numbers = [Number("of the bytes in small transfers", share, "share"), Number("exposed", exposed)]
            yield _claim(role, rank, exposed * share, numbers, f"small transfers{_of(role)}")


def _small_share(evidence: Evidence, role: str, rank: int) -> float:
    """The share of the bytes of a role that moves in packets or calls too small for their link; 0.0 where that is
    little, where buckets could not put them together, and where a step moves too few bytes for one that is not small.
    """
    if not any(word in role for word in _BUCKETS):
        return 0.0
    own = [row for row in evidence.communication.get(rank, ()) if (row["group_role"] or "unknown") == role]
    sizes: list[tuple[float, float, str]] = [
        (row["packet_bytes"], row["bytes"] or 0.0, row["transport"]) for row in evidence.links.get(rank, ())
        if row["group_role"] in (role, "") and row["source_rank"] is None and row["packet_bytes"] is not None
    ] or [(row["bytes"] / row["calls"], row["bytes"], "") for row in own if row["bytes"] and row["calls"]]  # fmt: skip
    moved = sum(size for _, size, _ in sizes)
    small = sum(size for each, size, transport in sizes if each < _LARGE.get(transport, _LARGE_ELSEWHERE))
    least = min((_LARGE.get(transport, _LARGE_ELSEWHERE) for *_, transport in sizes), default=0.0)
    is_much = moved >= least * evidence.step_count(rank) and small > _SMALL_BYTES * moved
    return small / moved if is_much and moved else 0.0


def _little(evidence: Evidence) -> Iterator[Claim]:
    for role, ranks in evidence.roles.items():
        found: list[tuple[float, float, int]] = []
        for rank in ranks if role in _WHOLE else ():
            own = [
                row for row in evidence.communication[rank]
                if (row["group_role"] or "unknown") == role and row["exposed_ns"] and row["calls"]
                and _payload(evidence, row) < _LITTLE
            ]  # fmt: skip
            steps = evidence.step_count(rank)
            found.append(
                (sum(row["exposed_ns"] for row in own) / steps, sum(row["calls"] for row in own) / steps, -rank)
            )
        exposed, calls, rank = max((one for one in found if one[1] >= 1), default=(0.0, 0.0, 0))
        if calls:
            yield _claim(role, -rank, exposed, [Number("calls", calls, "count"), Number("exposed", exposed)],
                         f"collectives of less than 1 kB{_of(role)}")  # fmt: skip


def _payload(evidence: Evidence, row: dict[str, Any]) -> float:
    """Bytes of a call, of what went over links where the collective itself does not say; infinite if nothing says."""
    if row["bytes"] is not None:
        return float(row["bytes"] / row["calls"])
    moved = [
        one["bytes"] for one in evidence.links.get(row["rank"], ())
        if (one["kind"], one["group_role"]) == (row["kind"], row["group_role"])
        and one["packet_bytes"] is None and one["transport"] != "LOCAL" and one["bytes"] is not None
    ]  # fmt: skip
    return float(sum(moved) / row["calls"]) if moved else float("inf")


def _retransmission(evidence: Evidence) -> Iterator[Claim]:
    for role, ranks in evidence.roles.items():
        rank = max(ranks, key=lambda one: (ranks[one]["longest_ns"], -one))
        longest = ranks[rank]["longest_ns"]
        if longest >= _RETRANSMISSION_NS and any(row["transport"] == "RDMA" for row in evidence.links.get(rank, ())):
            yield _claim(role, rank, ranks[rank]["exposed_ns"] or 0.0, [Number("longest call", longest)])


def _gloo(evidence: Evidence) -> Iterator[Claim]:
    if evidence.facts.get("distributed_backend", "") == "gloo":
        for role, rank, row in _worst(evidence):
            numbers = [Number("backend", "gloo", "text"), Number("exposed", row["exposed_ns"])]
            yield _claim(role, rank, row["exposed_ns"], numbers)


RULES: Final = (
    AdviceRule(
        id="N1", title="exposed communication",
        fires="exposed communication of a parallel type takes 10 % of the step, and less than half of it is waiting",
        bound="exposed", confidence="certain",
        remedies=(
            Remedy("overlap with the backward pass (some buckets of 25 MB or more); gradient accumulation",
                   ("dp", "default", "world", "unknown", "embd")),
            Remedy("prefetch of the parameters, gradient accumulation", ("fsdp", "hsdp")),
            Remedy("sequence parallel, overlap with the matmuls, tensor parallel inside one node", ("tp", "sp", "mp")),
            Remedy("overlap of all_to_all with the experts' work", ("ep",)),
            Remedy("overlap of the ring with attention", ("cp",)),
            Remedy("more microbatches, interleaved stages, sends that do not block", ("pp",)),
        ),
        sources=("torch_tb_profiler", "Megatron-LM"), in_run=_exposed,
    ),
    AdviceRule(
        id="N2", title="ranks wait for each other, not for the network",
        fires="half of the exposed communication of a rank, and 10 % of the step, is waiting for other ranks",
        bound="none", confidence="certain",
        remedies=(Remedy("find who is late: tracker cluster; the cause is on that rank (P1, P2, P4, I1)"),),
        sources=("Lin et al., OSDI'25",), in_run=_waiting,
    ),
    AdviceRule(
        id="N3", title="small transfers",
        fires="a fifth of the gradients' bytes moves in packets below 1 MB (RDMA) or 16 MB, a step moves more than "
            "that, and 1 % of the step is exposed; where N1 fires it says so itself",
        bound="exposed", confidence="likely", on_devices=True,
        remedies=(
            Remedy("larger buckets: bucket_cap_mb", ("torch",)), Remedy("HCCL_BUFFSIZE", ("ascend",)),
            Remedy("larger buckets: comm_buffer_size", ("paddle",)), Remedy("all_reduce_fusion_config", ("mindspore",)),
        ),
        sources=("msprof-analyze, packets; by bytes here, not by count",), in_run=_small_calls,
    ),
    AdviceRule(
        id="N6", title="tiny collectives in each step",
        fires="exposed collectives of less than 1 kB over all ranks in each step",
        bound="exposed", confidence="certain",
        remedies=(Remedy("no all_reduce of the loss or of a norm in each step; every n steps, or asynchronously"),),
        sources=("Megatron-LM, training loop",), in_run=_little,
    ),
    AdviceRule(
        id="N8", title="a collective of seconds over RDMA", fires="a call over RDMA takes 4 s or more: retransmission",
        bound="exposed", confidence="likely", on_devices=True,
        remedies=(Remedy("check the network: links, flow control, timeouts"),),
        sources=("msprof-analyze, RDMA retransmission",), in_run=_retransmission,
    ),
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
)  # fmt: skip
