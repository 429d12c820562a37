"""What a step is known to lose, largest first in words, and how the step adds up: advice, other work, the rest.

A loss is time in which nothing useful ran, as it was measured; what a rule can win is a bound. So the first line of the
advice names the largest loss, and only of a step without any the largest piece of advice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tracker.advice.rule import find_rank_with_most
from tracker.detect.losses import choose_largest, find_late_loss, find_stage_loss, make_loss
from tracker.profile import TIMER_BATCH, IdleCause
from tracker.results import Accounts, Loss
from tracker.units import NS_PER_MS, format_ns

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence
    from tracker.advice.rule import Claim

_MOSTLY: Final = 0.5
"""Part of the idle time of a cause that one place must have to be named."""
OF_HOST: Final = (
    IdleCause.GARBAGE_COLLECTION, IdleCause.COMPILE, IdleCause.ALLOCATION, IdleCause.SYNCHRONISATION,
    IdleCause.OPERATOR, IdleCause.NO_OPERATOR, IdleCause.LAUNCH_LATENCY,
)  # fmt: skip
"""Causes of idle time in which the device waits for the host."""
_UNKNOWN_IDLE: Final = "the device idles {ns}, and the run does not say why"
_IDLE: Final[Mapping[tuple[IdleCause, ...], str]] = {
    OF_HOST: "the device idles {ns} for the host",
    (IdleCause.PROFILER,): "the device idles {ns} while the profiler works for itself",
    (IdleCause.BETWEEN_KERNELS,): "the device idles {ns} between kernels",
    (IdleCause.DEPENDENCY,): "the device idles {ns} although work is launched",
    (IdleCause.UNKNOWN,): _UNKNOWN_IDLE,
}
"""Causes of idle time that are one loss -> its words."""
_NEARLY_ALL: Final = 0.8
"""Part of a loss from which on it is called by that part alone."""
_ALL: Final = 0.99
_PLACED: Final = frozenset((*OF_HOST, IdleCause.DATA_LOADING))
"""Causes whose places are what the host does, and worth a word."""
_SHORTEST: Final = 60
"""Longest name of a place in a first line."""


def find_largest_loss(evidence: Evidence) -> Loss | None:
    """Return the largest known loss of a run, None where none is 5 % of the step or more."""
    return choose_largest(_losses(evidence))


def _losses(evidence: Evidence) -> Iterator[Loss | None]:
    yield find_stage_loss(evidence.rank_times)
    yield from _losses_to_ranks(evidence)
    yield _loading(evidence)
    if evidence.is_device:
        yield from _idle(evidence)
        yield from _exposed(evidence)
    else:
        yield from _gaps_of_host(evidence)


def _losses_to_ranks(evidence: Evidence) -> Iterator[Loss | None]:
    """Yield what a late or a slow rank costs, and waiting; stages of a pipeline wait for each other in any case."""
    if evidence.late_rank is not None:
        yield find_late_loss(evidence.rank_times)
    for slow in evidence.slow_ranks:
        cause = f": {slow.cause.words}" if slow.cause.words else ""
        yield make_loss(
            "slow rank", slow.cost_ns, evidence.step_ns, f"rank {slow.rank} is slow and costs {{ns}}{cause}"
        )
    if evidence.late_rank is None and not evidence.is_pipeline:
        yield _waiting(evidence)


def _waiting(evidence: Evidence) -> Loss | None:
    """Return the longest waiting of a rank, or of now one and now another, with the rank that most of it is for."""
    rank, wait_ns = find_rank_with_most({rank: own.least for rank, own in evidence.waits.items()})
    if evidence.rotating_wait_ns > wait_ns:
        words = "ranks wait {ns} for each other, now one and now another"
        return make_loss("waiting", evidence.rotating_wait_ns, evidence.step_ns, words)
    peer, peer_ns = evidence.name_waited_for(rank) if wait_ns else ("", 0.0)
    words = f"rank {rank} waits {{ns}} for other ranks"
    if peer and peer_ns >= _ALL * wait_ns:
        words = f"rank {rank} waits {{ns}} for {peer}"
    elif peer and peer_ns >= _MOSTLY * wait_ns:
        words += f", {format_ns(min(peer_ns, wait_ns))} of it for {peer}"
    return make_loss("waiting", wait_ns, evidence.step_ns, words)


def _without_lateness(evidence: Evidence, rank: int, ns: float) -> float:
    """Return a loss on a rank without what the others wait for it: that is the same time."""
    late = evidence.late_rank
    return max(0.0, ns - late.ns) if late is not None and late.rank == rank else ns


def _largest_on_a_rank(evidence: Evidence, kind: str, times: Mapping[int, float], words: str) -> Loss | None:
    """Return the loss of the rank that loses most, and which it is where there are several."""
    left = {rank: _without_lateness(evidence, rank, ns) for rank, ns in times.items() if ns}
    rank = max(left, key=lambda one: (left[one], -one), default=None)
    if rank is None:
        return None
    return make_loss(kind, left[rank], evidence.step_ns, words + _name_rank(evidence, rank))


def _name_rank(evidence: Evidence, rank: int) -> str:
    return f", on rank {rank}" if len(evidence.ranks) > 1 else ""


def _loading(evidence: Evidence) -> Loss | None:
    idle = {rank: row.data_loading_idle_ns for rank, row in evidence.ranks.items()}
    if any(ns is not None for ns in idle.values()):
        known = {rank: ns for rank, ns in idle.items() if ns}
        return _largest_on_a_rank(evidence, "data loading", known, "data loading: the device waits {ns}")
    loading = {rank: row.data_loading_ns or 0.0 for rank, row in evidence.ranks.items()}
    # a timer beside the trace measured other steps: its share is that of its own step
    batch_ms = evidence.counters.get(TIMER_BATCH)
    if batch_ms:
        step_ns = batch_ms * NS_PER_MS
        return make_loss("data loading", max(loading.values()), step_ns, "data loading takes {ns} of the step")
    return _largest_on_a_rank(evidence, "data loading", loading, "data loading takes {ns} of the step")


def _idle(evidence: Evidence) -> Iterator[Loss | None]:
    if not evidence.says_why_idle:
        unknown = {rank: evidence.unexplained_idle_ns(rank) for rank in evidence.ranks}
        yield _largest_on_a_rank(evidence, "idle", unknown, _UNKNOWN_IDLE)
        return
    for causes, words in _IDLE.items():
        for rank in evidence.studied:
            places = evidence.idle_of(rank, *causes)
            named = words + _name_place(places, causes)
            yield _largest_on_a_rank(evidence, "idle", {rank: sum(places.values())}, named)


def _name_place(places: Mapping[str, float], causes: Sequence[IdleCause]) -> str:
    """Return where most of the idle time is, "" where no place has it, or its name is too long for a first line."""
    place = next(iter(places), "")
    is_named = place and len(place) <= _SHORTEST and set(causes) <= _PLACED
    if not is_named or places[place] < _MOSTLY * sum(places.values()):
        return ""
    return f", mostly in {place}"


def _exposed(evidence: Evidence) -> Iterator[Loss | None]:
    """Yield exposed communication, as one loss, and exposed copies."""
    yield _communication(evidence)
    copies = {rank: row.exposed_copy_ns or 0.0 for rank, row in evidence.ranks.items()}
    yield _largest_on_a_rank(evidence, "copies", copies, "exposed copies take {ns}")


def _communication(evidence: Evidence) -> Loss | None:
    """Return the exposed communication of the rank that has most, with its parts, without what is a loss of its own:
    what a late rank, other stages and waiting that goes round make of it.
    """
    exposed = {rank: row.exposed_communication_ns or 0.0 for rank, row in evidence.ranks.items()}
    rank, exposed_ns = find_rank_with_most(exposed)
    waits = evidence.waits.get(rank)
    own_losses_ns = evidence.rotating_wait_ns
    if evidence.late_rank is not None:
        own_losses_ns = evidence.late_rank.ns if waits is None else waits.least
    elif evidence.is_pipeline and waits is not None:
        own_losses_ns = waits.bubble or 0.0
    left_ns = exposed_ns - own_losses_ns
    wait_ns = 0.0 if own_losses_ns or waits is None else waits.least
    if wait_ns >= _NEARLY_ALL * left_ns:
        return None
    if wait_ns >= (1 - _NEARLY_ALL) * left_ns:
        parts = f"{format_ns(wait_ns)} waiting for other ranks, {format_ns(left_ns - wait_ns)} transfers"
        words = f"exposed communication takes {{ns}}{_name_rank(evidence, rank)}: {parts}"
        return make_loss("communication", left_ns, evidence.step_ns, words)
    words = _name_collective(evidence, rank, left_ns) + _name_rank(evidence, rank)
    return make_loss("communication", left_ns, evidence.step_ns, words)


def _name_collective(evidence: Evidence, rank: int, ns: float) -> str:
    """Return the words of exposed communication, with the kind of collective that is most of it."""
    kinds = {key: ranks[rank].transfer_ns or 0.0 for key, ranks in evidence.collectives.items() if rank in ranks}
    role, kind = max(kinds, key=lambda key: (kinds[key], key), default=("", "unknown"))
    of_role = "" if role in ("unknown", "default", "default_pg") else f" of {role}"
    if kind == "unknown" or kinds[role, kind] < _MOSTLY * ns:
        return "exposed communication takes {ns}"
    if kinds[role, kind] < _NEARLY_ALL * ns:
        return f"exposed communication takes {{ns}}, mostly {kind}{of_role}"
    return f"exposed {kind}{of_role} takes {{ns}}"


def _gaps_of_host(evidence: Evidence) -> Iterator[Loss | None]:
    gaps = {}
    for rank, row in evidence.ranks.items():
        gaps[rank] = max(0.0, (row.idle_ns or 0.0) - (row.data_loading_ns or 0.0))
    yield _largest_on_a_rank(evidence, "idle", gaps, "no operator runs for {ns}")
    yield _communication(evidence)


def account_for_step(evidence: Evidence, won_ns: float, claims: Sequence[Claim]) -> Accounts:
    """Return how the step adds up. The rest behind advice is what the rank that sets the pace loses without any, else
    work, as far as it is known to compute; of what nobody recorded nothing is explained.
    """
    rest_ns = max(0.0, evidence.step_ns - won_ns)
    lost_ns = min(rest_ns, sum(find_unclaimed(evidence, claims).values()))
    compute_ns = evidence.ranks[_find_pace(evidence)].compute_ns or 0.0
    work_ns = min(rest_ns - lost_ns, compute_ns)
    return Accounts(
        step_ns=evidence.step_ns, won_ns=evidence.step_ns - rest_ns, work_ns=work_ns,
        unexplained_ns=rest_ns - work_ns,
    )  # fmt: skip


def _find_pace(evidence: Evidence) -> int:
    """Return the rank that sets the pace of the others: with the longest own time."""
    return max(evidence.studied or evidence.ranks, key=lambda one: (_own_ns(evidence, one), -one))


def find_unclaimed(evidence: Evidence, claims: Sequence[Claim]) -> dict[str, float]:
    """Return what the rank that sets the pace loses and no claim is about, in ns of a step, by resource: what another
    one loses beside it is waiting for that rank, whatever it does meanwhile.
    """
    rank = _find_pace(evidence)
    row = evidence.ranks[rank]
    losses = {
        "idle": _without_lateness(evidence, rank, row.idle_ns or 0.0),
        "communication": row.exposed_communication_ns,
        "copies": row.exposed_copy_ns if evidence.is_device else None,
    }
    claimed: dict[str, float] = {}
    for claim in claims:
        resource = _RESOURCES.get(claim.resource)
        if resource is not None:
            claimed[resource] = claimed.get(resource, 0.0) + max(0.0, claim.ns)
    return {name: max(0.0, ns - claimed.get(name, 0.0)) for name, ns in losses.items() if ns}


def _own_ns(evidence: Evidence, rank: int) -> float:
    row = evidence.ranks[rank]
    return float((row.step_ns or 0.0) - (row.exposed_communication_ns or 0.0))


_RESOURCES: Final = {
    "idle": "idle", "loading": "idle", "rank": "idle", "communication": "communication", "waiting": "communication",
    "pipeline": "communication", "bubble": "communication", "copies": "copies",
}  # fmt: skip
"""Resource of a claim -> the part of the step that it is about."""
