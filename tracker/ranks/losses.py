"""What a job loses in each step, by who or what is to blame, and the sentence that says the largest of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.compare.side import GRAIN
from tracker.detect.losses import LEAST_SHARE, RankTimes, find_stage_loss
from tracker.detect.peers import FEWEST_STEPS
from tracker.detect.stages import Stage
from tracker.profile.idle_causes import IDLE_CAUSES, IdleCause
from tracker.ranks import waiting
from tracker.ranks.exchange import median_of_steps
from tracker.ranks.own_time import JudgedRank, cause_of_slowest
from tracker.results import SLOW, SUSPECT, UNEVEN
from tracker.results.cluster import HostRow, RankLinkRow, RankRow
from tracker.schema.column_names import CAUSE, NS, RANK, STEP
from tracker.store import queries
from tracker.store.calls.splitting import PIPELINE
from tracker.units import counted, format_ns, format_numbers

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide

NO_RANK: Final = "no rank holds the others back"
_FEW_STEPS: Final = 10
"""Of more steps it is not their number that lets chance do so much."""
_NAMED: Final = 2
_CAUSES: Final = {
    "data loading": "it waits for its data", "host": "its CPU side takes longer", "copies": "its copies",
    "slow device": "its calls take longer, its device is slow", "more work": "it computes more than its peers",
    "compute": "its compute",
}  # fmt: skip
_CAUSES_IN_TURN: Final = {**_CAUSES, "compute": "its calls take longer"}


class JobLoss(Struct, frozen=True):
    """Time that each step loses. `answer`: the sentence without its full stop; `verdict`: its word, or "";
    `remarks`: what it rests on; `aside`: the sentence where something else loses more, "" for none. `is_of_ranks`: it
    is by ranks or a host with a verdict.
    """

    ns: float
    answer: str
    verdict: str = ""
    remarks: tuple[str, ...] = ()
    aside: str = ""
    is_of_ranks: bool = False


class Job(Struct, frozen=True, eq=False):
    """What the losses of a job are found in. `ranks`, `hosts`, `peers`, `links`: rows of the result; `moves`: of uneven
    stages, by number, whether their work moves; `idle`: ns of a step without work of the device, by rank and cause;
    empty for a host.
    """

    ranks: Sequence[JudgedRank]
    hosts: Sequence[HostRow]
    peers: Sequence[waiting.PeerWaits]
    links: Sequence[RankLinkRow]
    stages: Sequence[Stage]
    moves: Mapping[int | None, bool | None]
    idle: Mapping[int, Mapping[int, float]]

    @property
    def step_ns(self) -> float:
        """The step of the job: the median of its ranks; 0.0 where none is known."""
        known = [row.step_ns for row in self.ranks if row.step_ns]
        return float(np.median(known)) if known else 0.0

    def share(self, ns: float) -> str:
        """Return a part of the step in words, in brackets behind a blank; "" where the step is not known."""
        return f" ({100 * ns / self.step_ns:.1f} %)" if self.step_ns else ""


def find_losses(job: Job) -> list[JobLoss]:
    """Return what a step loses, the largest first; none of it is counted twice: waiting for a slow rank is its cost."""
    of_ranks = list(_find_slow_ranks(job))
    leading = list(_find_leading_ranks(job)) if not of_ranks else []
    in_turn = list(_find_ranks_in_turn(job)) if not of_ranks else []
    absent = list(_find_absent_rank(job))
    claimed = max((loss.ns for loss in (*of_ranks, *leading, *in_turn)), default=0.0)
    of_waits = max((loss.ns for loss in absent), default=claimed)
    others = [*_find_stages(job, claimed), *absent, *_find_waiting(job, max(claimed, of_waits)), *_find_idle(job)]
    least = LEAST_SHARE * job.step_ns
    found = [loss for loss in (*in_turn, *others) if loss.ns >= least and loss.ns > 0]
    found += [*of_ranks, *leading, *_find_slow_links(job)]
    if not of_ranks and not any(loss.ns >= least for loss in found):
        found += _find_stalls(job)
    # a verdict that costs nothing stands before none
    return sorted(found, key=lambda loss: (-loss.ns, not loss.is_of_ranks, loss.answer))


def remark_on_few_steps(job: Job) -> str:
    """Return why no rank can be called slow, where the steps are too few; "" else. Without a full stop."""
    known = [stage for stage in job.stages if len(stage.ranks) > 1]
    steps = max((len(stage.steps) for stage in known), default=FEWEST_STEPS)
    if steps >= FEWEST_STEPS or any(stage.leader is not None for stage in known):
        return ""
    if not steps:
        return "no step is in all ranks: none can be called slow"
    few = f"{counted(steps, 'step')} {'is' if steps == 1 else 'are'} too few to call a rank slow"
    return f"{few}: record {FEWEST_STEPS} or more"


def make_sentence(text: str) -> str:
    """Return a sentence with its capital and its full stop."""
    return f"{text[:1].upper()}{text[1:]}."


def idle_of_ranks(side: LoadedSide, steps: Mapping[int, Mapping[int, int]]) -> dict[int, dict[int, float]]:
    """Return the idle time of each rank by cause, medians over its steps; empty without a device."""
    if side.side.timeline != "device":
        return {}
    sums: dict[int, dict[int, dict[int, float | None]]] = {rank: {} for rank in steps}
    for rank, step, cause, ns in side.query(queries.idle, by=GRAIN).rows(RANK, STEP, CAUSE, NS):
        if step in steps.get(rank, {}):
            own = sums[rank].setdefault(IDLE_CAUSES.index(cause), {})
            own[step] = (own.get(step) or 0.0) + ns
    return {
        rank: {cause: median_of_steps(of_steps, steps[rank]) or 0.0 for cause, of_steps in own.items()}
        for rank, own in sums.items()
    }


def _find_slow_ranks(job: Job) -> Iterator[JobLoss]:
    """Yield the loss by ranks or a host with a verdict: of one stage together, the others as an aside."""
    for word in (SLOW, SUSPECT):
        named = [row for row in job.ranks if row.verdict == word]
        host = next((row for row in job.hosts if row.verdict == word), None)
        if host is not None and (not named or host.ranks > 1):
            yield _loss_by_host(job, host, word)
            return
        if named:
            yield _loss_by_ranks(job, named, word)
            return


def _loss_by_host(job: Job, host: HostRow, word: str) -> JobLoss:
    ranks = {row.rank for row in job.ranks if row.host == host.host}
    costs = []
    for stage in job.stages:
        is_own = np.array([rank in ranks for rank in stage.ranks])
        if stage.steps and is_own.any() and not is_own.all():
            costs.append(float(np.median(stage.own.max(axis=0) - stage.own[~is_own].max(axis=0))))
    cost = max([0.0, *costs])
    verb = "holds" if word == SLOW else "may hold"
    text = (
        f"host {host.host} {verb} the job back: the own time of its {counted(host.ranks, 'rank')} is "
        f"x{host.own_ratio or 0.0:.2f} that of the others"
    )
    text += f", {format_ns(cost)} a step" if cost else ""
    more = [] if word == SLOW else ["Record more steps to be sure."]
    evidence = f"Own time {_describe_evidence(host, host.steps)}"
    return JobLoss(cost, text, word, (evidence, *more), make_sentence(text), is_of_ranks=True)


def _loss_by_ranks(job: Job, named: Sequence[JudgedRank], word: str) -> JobLoss:
    """Return the loss by the ranks with the verdict `word`: those of the first one's stage together."""
    first = named[0]
    stage = next(stage for stage in job.stages if first.rank in stage.ranks)
    is_sure = word == SLOW
    group = [row for row in named if row.rank in stage.ranks] if is_sure else [first]
    numbers = [row.rank for row in group]
    verb = "may hold"
    if is_sure:
        verb = "hold" if len(group) > 1 else "holds"
    # a rank with a verdict has a cost
    cost_ns = first.cost_ns or 0.0
    who = f"{_name_ranks(numbers)}{_name_host(job, group)}"
    text = f"{who} {verb} the job back by {format_ns(cost_ns)} a step{_name_cause(group)}"
    remarks = [] if is_sure else ["Record more steps to be sure."]
    remarks += waiting.remarks_on(job.peers, numbers)
    others = [row.rank for row in named if row not in group][:_NAMED]
    remarks += [f"{'Slow' if is_sure else 'Suspect'} as well: rank {rank}." for rank in others]
    own_time = "Own time " if first.own_ns is None else f"Own time {format_ns(first.own_ns)}, "
    evidence = f"{own_time}{_describe_evidence(first, len(stage.steps))}"
    return JobLoss(cost_ns, text, word, (evidence, *remarks), make_sentence(text), is_of_ranks=True)


def _name_host(job: Job, group: Sequence[JudgedRank]) -> str:
    """Return the host of these ranks behind a blank, where all are on one of several; "" else."""
    hosts = {row.host for row in group}
    has_several = len({row.host for row in job.ranks}) > 1
    return f" on {group[0].host}" if has_several and len(hosts) == 1 and None not in hosts else ""


def _name_cause(group: Sequence[JudgedRank]) -> str:
    """Return what makes a rank slow, and where, behind a colon; "" for several ranks, and where it is not known."""
    first = group[0]
    if len(group) > 1 or not first.cause:
        return ""
    place = f" in {first.place}" if first.place else ""
    return f": {_CAUSES[first.cause]}{place}"


def _find_leading_ranks(job: Job) -> Iterator[JobLoss]:
    """Yield the loss by a rank that was the slowest of almost all steps, which chance may do: it is not called slow."""
    for stage in job.stages:
        at = stage.leader
        if at is None:
            continue
        steps = len(stage.steps)
        why = "too few steps" if steps <= _FEW_STEPS else "its steps vary too much"
        text = (
            f"rank {stage.ranks[at]} was slowest in {stage.judged.slowest[at]} of {counted(steps, 'step')}, "
            f"x{stage.judged.ratio[at]:.2f}: {why} to call it slow"
        )
        remarks = tuple(waiting.remarks_on(job.peers, [stage.ranks[at]]))
        yield JobLoss(float(stage.judged.cost[at]), text, "", remarks, make_sentence(text))


def _find_ranks_in_turn(job: Job) -> Iterator[JobLoss]:
    """Yield the loss by stages in which now one rank and now another takes longer: by work that moves, or by what
    delays each of them in turn.
    """
    uneven = [stage for stage in job.stages if stage.is_uneven]
    if not uneven:
        return
    moving = [stage for stage in uneven if job.moves[stage.number]]
    stage = max(moving or uneven, key=lambda one: one.cost_of_slowest)
    much = f"x{stage.spread or 0.0:.2f} the median rank, {format_ns(stage.cost_of_slowest)} longer"
    if moving:
        text = f"no rank is slow, and the work is uneven: the slowest of a step takes {much}"
        remarks = ("From step to step it is another rank.",)
        yield JobLoss(stage.cost_of_slowest, text, UNEVEN, remarks, make_sentence(text))
        return
    cause = cause_of_slowest(stage)
    why = f": {_CAUSES_IN_TURN[cause]}" if cause else ""
    text = f"no rank is slow, but in each step one takes {much}, now one and now another{why}"
    remark = "No work moves between the ranks from step to step."
    if job.moves[stage.number] is None:
        remark = (
            "Whether their work differs is not known: the captures name no shapes. Record them: record_shapes=True."
        )
    yield JobLoss(stage.cost_of_slowest, text, "", (remark,), make_sentence(text))


def _find_stages(job: Job, claimed_ns: float) -> Iterator[JobLoss]:
    """Yield the loss by stages of unequal length, or by the bubble of a pipeline. `claimed_ns`: what slow ranks
    cost.
    """
    times = []
    for row in job.ranks:
        of_rank = RankTimes(
            rank=row.rank, stage=row.stage, step_ns=row.step_ns, own_ns=row.own_ns, bubble_ns=row.bubble_ns
        )
        times.append(of_rank)
    found = find_stage_loss(times)
    if found is not None:
        yield JobLoss(found.ns - claimed_ns, found.words, "", (), make_sentence(found.words))


def _find_absent_rank(job: Job) -> Iterator[JobLoss]:
    """Yield the loss by a rank that was not captured, and that all captured ranks wait for."""
    steps = {row.rank: row.step_ns for row in job.ranks}
    text, lost = waiting.find_absent_rank(job.peers, steps)
    if text:
        yield JobLoss(lost, text, "", (), make_sentence(text))


def _find_waiting(job: Job, claimed_ns: float) -> Iterator[JobLoss]:
    """Yield the loss by waiting for captured ranks, or for places of a group, that no other loss explains: the bubble
    of a pipeline aside. `claimed_ns`: what slow ranks cost.
    """
    exposed_waits: dict[int, float] = {}
    for row in job.ranks:
        ns = _exposed_wait(row)
        if ns is not None:
            exposed_waits[row.rank] = ns
    if not exposed_waits:
        return
    longest = _find_longest_waits(job, exposed_waits)
    waits_for_peer: dict[str, dict[int, float]] = {}
    for of_peer in longest:
        # a rank that was not captured is a loss of its own
        if of_peer.captured != 0:
            waits_for_peer.setdefault(waiting.name_peer(of_peer), {})[of_peer.rank] = of_peer.wait_ns or 0.0
    peer, waits = next(iter(waits_for_peer.items()), ("", {}))
    # the one that all others wait for may be one of the ranks whose waiting is known
    is_for_one = len(waits_for_peer) == 1 and len(waits) >= max(1, len(exposed_waits) - 1)
    if is_for_one:
        lost = float(np.median([min(ns, exposed_waits[rank]) for rank, ns in waits.items()]))
        verb = "waits" if len(waits) == 1 else "wait"
        text = f"in collectives {_name_ranks([*waits])} {verb} {_format_span(waits.values())} a step for {peer}"
    else:
        lost = float(np.median([*exposed_waits.values()]))
        text = f"exposed waiting for other ranks in collectives is {format_ns(lost)} a step{job.share(lost)}"
        longest.sort(key=lambda row: (-(row.wait_ns or 0.0), row.rank))
        parts = []
        for of_peer in longest[:_NAMED]:
            part = f"rank {of_peer.rank} waits {format_ns(of_peer.wait_ns)} for {waiting.name_peer(of_peer)}"
            parts.append(part.removesuffix(","))
        text += f": {', '.join(parts)}" if parts else ""
    yield JobLoss(lost - claimed_ns, text)


def _find_longest_waits(job: Job, ranks: Collection[int]) -> list[waiting.PeerWaits]:
    """Return for each of these ranks the row of the peer that it usually waits for longest, that for other stages
    aside; none of a rank that waits for no peer for long.
    """
    least_ns = max(1.0, waiting.MUCH * job.step_ns)
    longest: dict[int, waiting.PeerWaits] = {}
    for row in job.peers:
        wait_ns = row.wait_ns or 0.0
        if row.rank not in ranks or row.role == PIPELINE or not row.is_usual or wait_ns < least_ns:
            continue
        if row.rank not in longest or wait_ns > (longest[row.rank].wait_ns or 0.0):
            longest[row.rank] = row
    return [*longest.values()]


def _exposed_wait(row: JudgedRank) -> float | None:
    """Return the waiting of a rank that no compute hides, but that for other stages; None where it is not known."""
    if row.exposed_wait_ns is None or row.exposed_communication_ns is None or row.partial:
        return None
    return float(min(row.exposed_wait_ns, row.exposed_communication_ns))


def _find_idle(job: Job) -> Iterator[JobLoss]:
    """Yield the loss by devices that idle, on the median rank of those without a verdict, with its largest cause."""
    idle_ns: dict[int, float] = {}
    idle_of_usual: dict[int, float] = {}
    for row in job.ranks:
        if row.rank not in job.idle or row.idle_ns is None:
            continue
        idle_ns[row.rank] = row.idle_ns
        if not row.verdict:
            idle_of_usual[row.rank] = row.idle_ns
    usual = idle_of_usual or idle_ns
    if not usual:
        return
    lost = float(np.median([*usual.values()]))
    who = "the device idles" if len(usual) == 1 else "in the median the devices idle"
    text = f"{who} {format_ns(lost)} a step{job.share(lost)}"
    causes: dict[int, float] = {}
    for rank in usual:
        for cause, ns in job.idle[rank].items():
            causes[cause] = causes.get(cause, 0.0) + ns / len(usual)
    largest = max(causes, key=lambda cause: (causes[cause], -cause), default=IdleCause.UNKNOWN)
    mean = float(np.mean([*usual.values()]))
    if largest != IdleCause.UNKNOWN and mean and causes[largest] >= mean / 2:
        text += f", {min(100.0, 100 * causes[largest] / mean):.0f} % of that is {IDLE_CAUSES[largest]}"
    yield JobLoss(lost, text)


def _find_slow_links(job: Job) -> Iterator[JobLoss]:
    """Yield the loss by slow links, beside the median of their transport."""
    steps = max([1, *(row.steps or 0 for row in job.ranks)])
    for slow in job.links:
        if slow.verdict != SLOW or slow.bandwidth_gb_per_s is None:
            continue
        speeds = [slow.bandwidth_gb_per_s]
        for link in job.links:
            # without a score it was not compared with the others of its transport
            is_compared = link.transport == slow.transport and link.z is not None
            if is_compared and link is not slow and link.bandwidth_gb_per_s is not None:
                speeds.append(link.bandwidth_gb_per_s)
        lost = slow.transit_ns * (1 - slow.bandwidth_gb_per_s / float(np.median(speeds))) / steps
        text = (
            f"the {slow.transport} link from rank {slow.source_rank} to {slow.target_rank} is slow: "
            f"{slow.bandwidth_gb_per_s:.2f} GB/s ({slow.place})"
        )
        yield JobLoss(max(0.0, lost), text, SLOW, (), make_sentence(text))


def _find_stalls(job: Job) -> Iterator[JobLoss]:
    """Yield the loss by few steps that a rank makes much longer, on the mean of the steps: no median shows them."""
    for stage in job.stages:
        stalls = stage.stalls
        if not stalls:
            continue
        lost = sum(stall.ns for stall in stalls) / len(stage.steps)
        longest = max(stalls, key=lambda stall: (stall.ns, -stall.step))
        where = f"in step {longest.step} only" if len(stalls) == 1 else f"in {len(stalls)} of {len(stage.steps)} steps"
        most = "" if len(stalls) == 1 else f", most in step {longest.step}"
        ranks = sorted({stall.rank for stall in stalls})
        who = f"rank {ranks[0]} takes" if len(ranks) == 1 else f"one of ranks {format_numbers(ranks)} takes"
        text = f"{where} {who} {format_ns(longest.ns)} longer{most}: {format_ns(lost)} a step on the mean"
        if lost >= LEAST_SHARE * job.step_ns:
            yield JobLoss(lost, text)


def _name_ranks(numbers: Sequence[int]) -> str:
    return f"rank {numbers[0]}" if len(numbers) == 1 else f"ranks {format_numbers(sorted(numbers))}"


def _format_span(values: Collection[float]) -> str:
    least, most = format_ns(min(values)), format_ns(max(values))
    return most if least == most else f"{least} to {most}"


def _describe_evidence(row: RankRow | HostRow, steps: int) -> str:
    """Return what the verdict of a row rests on, the end of a sentence. `steps`: in which it is compared."""
    # a row with a verdict has both numbers
    ratio, q = row.own_ratio or 0.0, row.q or 0.0
    chance = f"q {q:.3f}" if q >= 0.001 else "q < 0.001"
    return f"x{ratio:.2f} that of its peers; slowest in {row.slowest_steps} of {steps} steps, {chance}."
