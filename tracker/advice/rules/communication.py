"""Communication that compute does not hide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from tracker.advice.rule import AdviceRule, Claim, Number, Remedy

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence

_EXPOSED: Final = 0.10
_SMALL: Final = 0.01
_LITTLE: Final = 1024
"""Payload of a call, in bytes, that is a number and not work."""
_WHOLE: Final = ("default", "default_pg", "world", "mp", "unknown")
_RETRANSMISSION_NS: Final = 4e9
_LARGE: Final = {"RDMA": 1e6}
_LARGE_ELSEWHERE: Final = 16e6
_SMALL_BYTES: Final = 0.2


def _exposed(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for role, rank, row in _worst(evidence):
        exposed, wait = row["exposed_ns"], row["wait_ns"]
        if exposed >= _EXPOSED * evidence.step_ns > 0 and (wait or 0.0) < exposed / 2:
            numbers = [Number("exposed", exposed), Number("calls", row["calls"] or 0.0, "count")]
            numbers += [Number("of it waiting for other ranks", wait)] if wait is not None else []
            if wait is None:
                numbers.append(
                    Number("waiting for other ranks", "not known: not all ranks of the groups are captured", "text")
                )
            yield Claim(resource="communication", rank=rank, role=role, place=role, ns=exposed - (wait or 0.0),
                        numbers=tuple(numbers), title=f"exposed communication of {role}")  # fmt: skip


def _worst(evidence: Evidence) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Of each role the rank in which most is exposed beyond waiting."""
    for role, ranks in evidence.roles.items():
        known = {rank: row for rank, row in ranks.items() if row["exposed_ns"] is not None}
        if known:
            rank = max(known, key=lambda one: (known[one]["exposed_ns"] - (known[one]["wait_ns"] or 0.0), -one))
            yield role, rank, known[rank]


def _waiting(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    sums: dict[int, list[float]] = {}
    for ranks in evidence.roles.values():
        for rank, row in ranks.items():
            if row["exposed_ns"] is not None and row["wait_ns"] is not None:
                own = sums.setdefault(rank, [0.0, 0.0])
                own[0], own[1] = own[0] + row["exposed_ns"], own[1] + row["wait_ns"]
    found = [(wait, exposed, rank) for rank, (exposed, wait) in sums.items() if wait >= exposed / 2]
    wait, exposed, rank = max(found, default=(0.0, 0.0, 0))
    if exposed >= _EXPOSED * evidence.step_ns > 0:
        yield Claim(
            resource="none", rank=rank, is_always_shown=True,
            numbers=(Number("exposed", exposed), Number("of it waiting for other ranks", wait)),
        )  # fmt: skip


def _small_calls(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    """Packets or calls that are too small for their link, by their share of the bytes."""
    for role, rank, row in _worst(evidence):
        sizes: list[tuple[float, float, str]] = [
            (one["packet_bytes"], one["bytes"] or 0.0, one["transport"]) for one in evidence.links
            if one["rank"] == rank and one["group_role"] in (role, "") and one["source_rank"] is None
            and one["packet_bytes"] is not None
        ]  # fmt: skip
        if not sizes:
            sizes = [
                (one["bytes"] / one["calls"], one["bytes"], "") for one in evidence.communication
                if one["rank"] == rank and (one["group_role"] or "unknown") == role and one["bytes"] and one["calls"]
            ]  # fmt: skip
        moved = sum(size for _, size, _ in sizes)
        small = sum(size for each, size, transport in sizes if each < _LARGE.get(transport, _LARGE_ELSEWHERE))
        exposed = row["exposed_ns"] - (row["wait_ns"] or 0.0)
        if moved and small > _SMALL_BYTES * moved and exposed >= _SMALL * evidence.step_ns > 0:
            # a call of the best size takes nothing less than its bytes: what the rest could win is at most all of it
            yield Claim(resource="communication", rank=rank, role=role, place=role, ns=exposed * small / moved,
                        title=f"small transfers of {role}",
                        numbers=(Number("bytes in small transfers", small / moved, "share"),
                                 Number("exposed", exposed)))  # fmt: skip


def _little(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for role, ranks in evidence.roles.items():
        found: list[tuple[float, float, int]] = []
        for rank in ranks if role in _WHOLE else ():
            own = [
                row for row in evidence.communication
                if row["rank"] == rank and (row["group_role"] or "unknown") == role
                and row["exposed_ns"] and row["calls"]
                and (size := _payload(evidence, row)) is not None and size < _LITTLE
            ]  # fmt: skip
            steps = evidence.ranks[rank]["steps"] or 1
            calls = sum(row["calls"] for row in own) / steps
            if calls >= 1:
                found.append((sum(row["exposed_ns"] for row in own) / steps, calls, -rank))
        if found:
            exposed, calls, rank = max(found)
            yield Claim(resource="communication", rank=-rank, role=role, place=role, ns=exposed,
                        title=f"collectives of less than 1 kB over {role}",
                        numbers=(Number("calls", calls, "count"), Number("exposed", exposed)))  # fmt: skip


def _payload(evidence: Evidence, row: Mapping[str, Any]) -> float | None:
    """Bytes of a call, of what went over links where the collective itself does not say."""
    if row["bytes"] is not None:
        return float(row["bytes"] / row["calls"])
    moved = [
        one["bytes"] for one in evidence.links
        if (one["rank"], one["kind"], one["group_role"]) == (row["rank"], row["kind"], row["group_role"])
        and one["packet_bytes"] is None and one["transport"] != "LOCAL" and one["bytes"] is not None
    ]  # fmt: skip
    return sum(moved) / row["calls"] if moved else None


def _retransmission(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    if not any(row["transport"] == "RDMA" for row in evidence.links):
        return
    for role, ranks in evidence.roles.items():
        for rank, row in ranks.items():
            if row["longest_ns"] >= _RETRANSMISSION_NS:
                yield Claim(resource="communication", rank=rank, role=role, place=role, ns=row["exposed_ns"] or 0.0,
                            numbers=(Number("longest call", row["longest_ns"]),))  # fmt: skip
                break


def _gloo(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    backend = evidence.facts.get("distributed_backend", "")
    if evidence.is_device and backend == "gloo":
        for role, rank, row in _worst(evidence):
            yield Claim(resource="communication", rank=rank, role=role, place=role, ns=row["exposed_ns"],
                        numbers=(Number("backend", backend, "text"), Number("exposed", row["exposed_ns"])))  # fmt: skip


RULES: Final = (
    AdviceRule(
        id="N1", title="exposed communication",
        fires="exposed communication of a parallel type takes 10 % of the step, and less than half of it is waiting",
        bound="exposed", confidence="certain",
        remedies=(
            Remedy("dp: larger buckets, overlap_grad_reduce, gradient accumulation; FSDP: prefetch"),
            Remedy("tp: sequence parallel, overlap with the matmuls, tensor parallel inside one node"),
            Remedy("ep: overlap of all_to_all; cp: overlap of the ring"),
        ),
        sources=("torch_tb_profiler", "Megatron-LM"), find=_exposed,
    ),
    AdviceRule(
        id="N2", title="ranks wait for each other, not for the network",
        fires="half of the exposed communication of a rank, and 10 % of the step, is waiting for other ranks",
        bound="none", confidence="certain",
        remedies=(Remedy("find who is late: tracker cluster; the cause is on that rank (P1, P2, P4, I1)"),),
        sources=("Lin et al., OSDI'25",), find=_waiting,
    ),
    AdviceRule(
        id="N3", title="small transfers",
        fires="a fifth of the bytes moves in packets below 1 MB (RDMA) or 16 MB, and their communication is exposed",
        bound="exposed", confidence="likely",
        remedies=(
            Remedy("larger buckets: bucket_cap_mb; fuse calls", ("torch",)),
            Remedy("HCCL_BUFFSIZE", ("ascend",)),
        ),
        sources=("msprof-analyze, packets; by bytes here, not by count",), find=_small_calls,
    ),
    AdviceRule(
        id="N6", title="tiny collectives in each step",
        fires="exposed collectives of less than 1 kB over all ranks in each step",
        bound="exposed", confidence="certain",
        remedies=(Remedy("no all_reduce of the loss or of a norm in each step; every n steps, or asynchronously"),),
        sources=("Megatron-LM, training loop",), find=_little,
    ),
    AdviceRule(
        id="N8", title="a collective of seconds over RDMA", fires="a call over RDMA takes 4 s or more: retransmission",
        bound="exposed", confidence="likely",
        remedies=(Remedy("check the network: links, flow control, timeouts"),),
        sources=("msprof-analyze, RDMA retransmission",), find=_retransmission,
    ),
    AdviceRule(
        id="N9", title="collectives of device tensors over gloo",
        fires="the device computes, and the backend of the process group is gloo", bound="exposed",
        confidence="certain",
        remedies=(
            Remedy("init_process_group('nccl')", ("nvidia", "amd")), Remedy("init_process_group('hccl')", ("ascend",)),
        ),
        sources=("torch: distributed backends",), find=_gloo,
    ),
)  # fmt: skip
