"""From claims to what the step can win at most. Two claims on the same nanosecond never add up.

A piece of work gives at most its own time, to the largest claim on it; idle time, data loading, exposed copies and the
communication of a role give at most what there is; time that two rules claim is of the first. A stage gives what its
slowest rank does; a pipeline of p stages and m microbatches takes sum(tau) + (m - 1) x max(tau), tau being the own time
of a stage by m. What balances the stages or ranks is computed after all else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.profile import median

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence
    from tracker.advice.rule import Claim

Stage = int | None
_Pool = tuple[str, int | None, str]
"""Resource, rank, and which part of it: a cause of idle time, or the collectives of a kind and role."""
MORE_MICROBATCHES: Final = 4
"""How many times more microbatches the bubble is compared with."""
_OF_THE_JOB: Final = ("pipeline", "bubble", "rank")
"""What is no time of one rank, and is computed from the own times of all of them."""


def local_ns(evidence: Evidence, claim: Claim) -> float:
    """What a claim gives back on its rank, at most: never more than the time of what it claims."""
    if claim.resource == "work":
        claimed = sum(min(max(ns, 0.0), evidence.pieces[at].ns) for at, ns in claim.cells.items())
        return min(claimed, _most_work_ns(evidence, claim))
    if claim.resource == "none":
        return 0.0
    limit = _available(evidence, claim)
    return max(0.0, claim.ns if limit is None else min(claim.ns, limit))


def _most_work_ns(evidence: Evidence, claim: Claim) -> float:
    """Return the time in which the rank of a claim works at all: kernels of several streams take longer together."""
    row = evidence.ranks.get(claim.rank) if claim.rank is not None else None
    if not evidence.is_device or row is None or row.compute_ns is None:
        return evidence.step_ns
    return float(min(evidence.step_ns, row.compute_ns + (row.exposed_copy_ns or 0.0)))


def gain_ns(evidence: Evidence, claim: Claim) -> float:
    """What the step can win by a claim, at most."""
    local = local_ns(evidence, claim)
    if claim.resource in _OF_THE_JOB or claim.rank is None:
        return min(local, evidence.step_ns)
    return min(evidence.step_ns, _step_gain(evidence, {evidence.ranks[claim.rank].stage: local}))


def together_ns(evidence: Evidence, claims: Sequence[Claim]) -> float:
    """What the step can win by all claims, at most."""
    pieces: dict[int, float] = {}
    others: dict[tuple[Stage, str, str], dict[int, float]] = {}
    limits: dict[tuple[Stage, str, str], dict[int, float | None]] = {}
    balance: dict[str, float] = {}
    for claim in claims:
        if claim.resource == "work":
            for at, ns in claim.cells.items():
                pieces[at] = max(pieces.get(at, 0.0), min(max(ns, 0.0), evidence.pieces[at].ns))
        elif claim.resource in _OF_THE_JOB:
            balance[claim.resource] = max(balance.get(claim.resource, 0.0), local_ns(evidence, claim))
        elif claim.resource != "none" and claim.rank is not None:
            key = (evidence.ranks[claim.rank].stage, claim.resource, _kind_of(claim))
            own = others.setdefault(key, {})
            own[claim.rank] = own.get(claim.rank, 0.0) + max(0.0, claim.ns)
            limits.setdefault(key, {})[claim.rank] = _available(evidence, claim)
    # what one rank of a stage can give, all of them can
    stages: dict[Stage, float] = {}
    for at, ns in pieces.items():
        stage = evidence.ranks[evidence.pieces[at].rank].stage
        stages[stage] = stages.get(stage, 0.0) + ns
    for rank in evidence.studied if evidence.is_device else ():
        row = evidence.ranks[rank]
        stage = row.stage
        # kernels may run beside each other: together they give no more than the time in which any ran
        if row.compute_ns is not None and stage in stages:
            stages[stage] = min(stages[stage], row.compute_ns + (row.exposed_copy_ns or 0.0))
    kept_ns = _least_kept_work_ns(evidence, stages)
    exposed: dict[Stage, float] = {}
    longest_ns = 0.0
    for (stage, resource, kind), own in others.items():
        known = limits[stage, resource, kind]
        most = max(ns if known[rank] is None else min(ns, known[rank] or 0.0) for rank, ns in own.items())
        longest_ns = max(longest_ns, most)
        if resource in ("communication", "waiting"):
            exposed[stage] = exposed.get(stage, 0.0) + most
        else:
            stages[stage] = stages.get(stage, 0.0) + most
    for stage, ns in exposed.items():
        # collectives of several groups may run at the same time
        stages[stage] = stages.get(stage, 0.0) + min(ns, _most_exposed_ns(evidence, stage, ns))
    # where parts of the step overlap, one loss alone may leave less than the compute
    most_ns = max(evidence.step_ns - kept_ns, min(evidence.step_ns, longest_ns))
    return min(most_ns, _step_gain(evidence, stages, balance))


def _least_kept_work_ns(evidence: Evidence, of_work: Mapping[Stage, float]) -> float:
    """Return the compute that stays in the step whatever is won beside it: of the rank that has least of it left.

    What one rank idles and another one waits is not the time of one rank: their sum can be the whole step, and no step
    is without its work. 0 where the compute of a rank is not known. `of_work`: what claims of work give, by stage.
    """
    kept = []
    for row in evidence.ranks.values():
        if row.compute_ns is None:
            return 0.0
        kept.append(max(0.0, row.compute_ns - of_work.get(row.stage, 0.0)))
    return min(evidence.step_ns, *kept) if kept else 0.0


def _most_exposed_ns(evidence: Evidence, stage: Stage, unknown: float) -> float:
    """Return the exposed communication of the rank of a stage that has most; `unknown` where no rank states it."""
    ranks = [row.exposed_communication_ns for row in evidence.ranks.values() if row.stage == stage]
    return float(max((ns for ns in ranks if ns is not None), default=unknown))


class _Late(Struct):
    """How long other ranks wait for one, by which rule, and what of it no claim on that rank explains yet."""

    rule: str
    ns: float
    left_ns: float


class TakenTime:
    """What of the time of a run rules have claimed already: each ns of it belongs to the first that claims it."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._of_pieces: dict[int, list[tuple[str, float]]] = {}
        self._of_pools: dict[_Pool, list[tuple[str, float]]] = {}
        self._late: dict[int, _Late] = {}

    def take_rest(self, rule: str, claim: Claim) -> tuple[Claim, dict[str, float]]:
        """Return a claim of a rule without what others have claimed, and how much of it which of them has, in ns. From
        then on the rest is claimed, too.

        Of a piece of work the larger part holds: beside a rule that saves 80 % of it, one that saves 90 % wins 10 %
        more. Of idle time and exposed communication each rule has a part of its own.
        """
        others: dict[str, float] = {}
        if claim.resource == "work":
            cells = {at: self._take_of_piece(rule, at, ns, others) for at, ns in claim.cells.items()}
            return replace(claim, cells=cells), others
        if claim.resource in ("none", "pipeline", "bubble"):
            return claim, others
        if claim.resource == "rank" and claim.rank is not None:
            # what makes a rank slow, and time in which it runs nothing, may be the same
            rest = self._take_of_pool(rule, ("rank", claim.rank, ""), claim.ns, claim.ns, others)
        elif claim.resource == "rank":
            rest = claim.ns
        else:
            rest = sum(self._take_of_pool(rule, pool, size, ns, others) for pool, size, ns in self._pools_of(claim))
        if claim.late_rank is not None:
            self._late[claim.late_rank] = _Late(rule, min(rest, claim.late_ns), min(rest, claim.late_ns))
        elif claim.rank in self._late and claim.resource in ("rank", "idle", "loading"):
            rest -= self._share_with_late(self._late[claim.rank], claim.resource == "rank", rest, others)
        return replace(claim, ns=rest), others

    def _share_with_late(self, late: _Late, is_whole: bool, ns: float, others: dict[str, float]) -> float:
        """Return how much of a claim on a rank is what the others wait for: of one on its whole time as much as they
        wait, of parts of its time together.
        """
        shared = min(ns, late.ns if is_whole else late.left_ns)
        if not is_whole:
            late.left_ns -= shared
        if shared:
            others[late.rule] = others.get(late.rule, 0.0) + shared
        return shared

    def _take_of_piece(self, rule: str, at: int, ns: float, others: dict[str, float]) -> float:
        wanted = min(max(ns, 0.0), self._evidence.pieces[at].ns)
        taken = self._of_pieces.setdefault(at, [])
        rest = max(0.0, wanted - sum(part for _, part in taken))
        _note_others(taken, wanted - rest, others)
        taken.append((rule, rest))
        return rest

    def _take_of_pool(
        self, rule: str, pool: _Pool, size: float | None, wanted: float, others: dict[str, float]
    ) -> float:
        taken = self._of_pools.setdefault(pool, [])
        left = wanted if size is None else max(0.0, size - sum(part for _, part in taken))
        rest = min(wanted, left)
        _note_others(taken, wanted - rest, others)
        taken.append((rule, rest))
        return rest

    def _pools_of(self, claim: Claim) -> Iterator[tuple[_Pool, float | None, float]]:
        """Yield what a claim takes its time from, how much there is of it (None: not known), and what the claim wants
        of it.
        """
        wanted = local_ns(self._evidence, claim)
        if claim.rank is None or not claim.causes:
            yield (claim.resource, claim.rank, _kind_of(claim)), _available(self._evidence, claim), wanted
            return
        for cause in claim.causes:
            size = sum(self._evidence.idle_of(claim.rank, cause).values())
            yield (claim.resource, claim.rank, cause.word), size, min(size, wanted)
            wanted -= min(size, wanted)


def _note_others(taken: Sequence[tuple[str, float]], shared: float, others: dict[str, float]) -> None:
    """Add to `others` which rules have claimed the time that is shared with them, the first ones first."""
    for rule, part in taken:
        own = min(part, shared)
        if own > 0:
            others[rule] = others.get(rule, 0.0) + own
        shared -= own


def _kind_of(claim: Claim) -> str:
    return f"{claim.role} {claim.kind}".strip()


def _available(evidence: Evidence, claim: Claim) -> float | None:
    """The time there is of a resource on the rank of a claim, None where nobody states it."""
    if claim.rank is None or claim.resource in _OF_THE_JOB:
        return evidence.step_ns
    row = evidence.ranks[claim.rank]
    if claim.resource == "idle":
        return evidence.idle_ns.get(claim.rank)
    if claim.resource == "loading":
        stated = [row.data_loading_idle_ns if row.data_loading_idle_ns is not None else row.data_loading_ns]
    elif claim.resource == "copies":
        stated = [row.exposed_copy_ns]
    elif claim.resource == "waiting":
        stated = [row.exposed_communication_ns]
    else:
        of_kind = evidence.collectives.get((claim.role, claim.kind), {}).get(claim.rank)
        # waiting for other ranks is claimed as such
        stated = [of_kind.transfer_ns if of_kind else None, row.exposed_communication_ns]
    least: float | None = min((ns for ns in stated if ns is not None), default=None)
    return least


def taus(evidence: Evidence, gains: Mapping[Stage, float] | None = None) -> list[float]:
    """Of each stage its own time by the microbatches, the median of its ranks and steps, less what it gains; empty
    where there is one stage, or the number of microbatches is not known.
    """
    count = evidence.microbatches
    stages = [stage for stage in evidence.stages if stage.steps]
    if len(stages) < 2 or not count:
        return []
    own = [float(median(stage.own)) - (gains or {}).get(stage.number, 0.0) for stage in stages]
    return [max(0.0, ns) / count for ns in own]


def pipeline_ns(own: Sequence[float], microbatches: int) -> float:
    """The closed form of a pipeline without overlap (1F1B; Narayanan et al., SC'21)."""
    return sum(own) + (microbatches - 1) * max(own)


def _step_gain(
    evidence: Evidence, stages: Mapping[Stage, float], balance: Mapping[str, float] = MappingProxyType({})
) -> float:
    before = taus(evidence)
    if not before:
        # without a model of the pipeline a stage gives the step no more than what it saves itself
        return max(stages.values(), default=0.0) + sum(balance.values())
    count = evidence.microbatches or 1
    after = taus(evidence, stages)
    if "pipeline" in balance:
        after = [sum(after) / len(after)] * len(after)
    more = MORE_MICROBATCHES if "bubble" in balance else 1
    won = pipeline_ns(before, count) - pipeline_ns(after, more * count) / more
    return max(0.0, won) + balance.get("rank", 0.0)
