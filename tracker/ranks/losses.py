"""What a job loses in each step, by who or what is to blame, and the sentence that says the largest of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from tracker.compare.side import GRAIN
from tracker.detect.losses import LEAST_SHARE, RankTimes, find_stage_loss
from tracker.detect.peers import FEWEST_STEPS
from tracker.detect.stages import Stage
from tracker.profile.idle_causes import IDLE_CAUSES, IdleCause
from tracker.ranks import waiting
from tracker.ranks.exchange import median_of_steps
from tracker.ranks.own_time import cause_of_slowest
from tracker.results import SLOW, SUSPECT, UNEVEN
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
Row = dict[str, Any]
Tables = Mapping[str, Sequence[Row]]


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
    """What the losses of a job are found in. `tables`: of the result; `moves`: of uneven stages, by number, whether
    their work moves; `idle`: ns of a step without work of the device, by rank and cause; empty for a host.
    """

    tables: Tables
    stages: Sequence[Stage]
    moves: Mapping[int | None, bool | None]
    idle: Mapping[int, Mapping[int, float]]

    @property
    def step_ns(self) -> float:
        """The step of the job: the median of its ranks; 0.0 where none is known."""
        known = [row["step_ns"] for row in self.tables["ranks"] if row.get("step_ns")]
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
    for rank, step, cause, ns in side.query(queries.idle, by=GRAIN).rows("rank", "step", "cause", "ns"):
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
        named = [row for row in job.tables["ranks"] if row.get("verdict") == word]
        host = next((row for row in job.tables["hosts"] if row["verdict"] == word), None)
        if host is not None and (not named or host["ranks"] > 1):
            yield _loss_by_host(job, host, word)
            return
        if named:
            yield _loss_by_ranks(job, named, word)
            return


def _loss_by_host(job: Job, host: Row, word: str) -> JobLoss:
    ranks = {row["rank"] for row in job.tables["ranks"] if row.get("host") == host["host"]}
    costs = []
    for stage in job.stages:
        is_own = np.array([rank in ranks for rank in stage.ranks])
        if stage.steps and is_own.any() and not is_own.all():
            costs.append(float(np.median(stage.own.max(axis=0) - stage.own[~is_own].max(axis=0))))
    cost = max([0.0, *costs])
    verb = "holds" if word == SLOW else "may hold"
    text = (
        f"host {host['host']} {verb} the job back: the own time of its {counted(host['ranks'], 'rank')} is "
        f"x{host['own_ratio']:.2f} that of the others"
    )
    text += f", {format_ns(cost)} a step" if cost else ""
    more = [] if word == SLOW else ["Record more steps to be sure."]
    return JobLoss(
        cost, text, word, (_describe_evidence(host, host["steps"]), *more), make_sentence(text), is_of_ranks=True
    )


def _loss_by_ranks(job: Job, named: Sequence[Row], word: str) -> JobLoss:
    rows = job.tables["ranks"]
    first = named[0]
    own = next(stage for stage in job.stages if first["rank"] in stage.ranks)
    group = [row for row in named if row["rank"] in own.ranks] if word == SLOW else [first]
    numbers = [row["rank"] for row in group]
    hosts = {row.get("host") for row in group}
    has_several_hosts = len({row.get("host") for row in rows}) > 1
    where = f" on {first['host']}" if has_several_hosts and len(hosts) == 1 and None not in hosts else ""
    place = f" in {first['place']}" if first.get("place") else ""
    cause = f": {_CAUSES[first['cause']]}{place}" if first.get("cause") and len(group) == 1 else ""
    verb = ("hold" if len(group) > 1 else "holds") if word == SLOW else "may hold"
    text = f"{_name_ranks(numbers)}{where} {verb} the job back by {format_ns(first['cost_ns'])} a step{cause}"
    more = [] if word == SLOW else ["Record more steps to be sure."]
    more += waiting.remarks_on(job.tables["peers"], numbers)
    others = [row["rank"] for row in named if row not in group][:_NAMED]
    more += [f"{'Slow' if word == SLOW else 'Suspect'} as well: rank {rank}." for rank in others]
    return JobLoss(
        first["cost_ns"],
        text,
        word,
        (_describe_evidence(first, len(own.steps)), *more),
        make_sentence(text),
        is_of_ranks=True,
    )


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
        remarks = tuple(waiting.remarks_on(job.tables["peers"], [stage.ranks[at]]))
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
    for row in job.tables["ranks"]:
        numbers = {name: row.get(name) for name in ("stage", "step_ns", "own_ns", "bubble_ns")}
        times.append(RankTimes(rank=row["rank"], **numbers))
    found = find_stage_loss(times)
    if found is not None:
        yield JobLoss(found.ns - claimed_ns, found.words, "", (), make_sentence(found.words))


def _find_absent_rank(job: Job) -> Iterator[JobLoss]:
    """Yield the loss by a rank that was not captured, and that all captured ranks wait for."""
    steps = {row["rank"]: row.get("step_ns") for row in job.tables["ranks"]}
    text, lost = waiting.find_absent_rank(job.tables["peers"], steps)
    if text:
        yield JobLoss(lost, text, "", (), make_sentence(text))


def _find_waiting(job: Job, claimed_ns: float) -> Iterator[JobLoss]:
    """Yield the loss by waiting for captured ranks, or for places of a group, that no other loss explains: the bubble
    of a pipeline aside. `claimed_ns`: what slow ranks cost.
    """
    exposed_waits: dict[int, float] = {}
    for row in job.tables["ranks"]:
        ns = _exposed_wait(row)
        if ns is not None:
            exposed_waits[row["rank"]] = ns
    if not exposed_waits:
        return
    longest = _find_longest_waits(job, exposed_waits)
    waits_for_peer: dict[str, dict[int, float]] = {}
    for row in longest:
        # a rank that was not captured is a loss of its own
        if row["captured"] != 0:
            waits_for_peer.setdefault(waiting.name_peer(row), {})[row["rank"]] = row["wait_ns"]
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
        longest.sort(key=lambda row: (-row["wait_ns"], row["rank"]))
        parts = []
        for row in longest[:_NAMED]:
            part = f"rank {row['rank']} waits {format_ns(row['wait_ns'])} for {waiting.name_peer(row)}"
            parts.append(part.removesuffix(","))
        text += f": {', '.join(parts)}" if parts else ""
    yield JobLoss(lost - claimed_ns, text)


def _find_longest_waits(job: Job, ranks: Collection[int]) -> list[Row]:
    """Return for each of these ranks the row of the peer that it usually waits for longest, that for other stages
    aside; none of a rank that waits for no peer for long.
    """
    least_ns = max(1.0, waiting.MUCH * job.step_ns)
    longest: dict[int, Row] = {}
    for row in job.tables["peers"]:
        rank, wait_ns = row["rank"], row["wait_ns"] or 0.0
        if rank not in ranks or row["role"] == PIPELINE or not row["is_usual"] or wait_ns < least_ns:
            continue
        if rank not in longest or wait_ns > longest[rank]["wait_ns"]:
            longest[rank] = row
    return [*longest.values()]


def _exposed_wait(row: Row) -> float | None:
    """Return the waiting of a rank that no compute hides, but that for other stages; None where it is not known."""
    ns, exposed = row.get("exposed_wait_ns"), row.get("exposed_communication_ns")
    if ns is None or exposed is None or row.get("partial"):
        return None
    return float(min(ns, exposed))


def _find_idle(job: Job) -> Iterator[JobLoss]:
    """Yield the loss by devices that idle, on the median rank of those without a verdict, with its largest cause."""
    rows = [row for row in job.tables["ranks"] if row["rank"] in job.idle and row.get("idle_ns") is not None]
    usual = [row for row in rows if not row.get("verdict")] or rows
    if not usual:
        return
    lost = float(np.median([row["idle_ns"] for row in usual]))
    who = "the device idles" if len(usual) == 1 else "in the median the devices idle"
    text = f"{who} {format_ns(lost)} a step{job.share(lost)}"
    causes: dict[int, float] = {}
    for row in usual:
        for cause, ns in job.idle[row["rank"]].items():
            causes[cause] = causes.get(cause, 0.0) + ns / len(usual)
    largest = max(causes, key=lambda cause: (causes[cause], -cause), default=IdleCause.UNKNOWN)
    mean = float(np.mean([row["idle_ns"] for row in usual]))
    if largest != IdleCause.UNKNOWN and mean and causes[largest] >= mean / 2:
        text += f", {min(100.0, 100 * causes[largest] / mean):.0f} % of that is {IDLE_CAUSES[largest]}"
    yield JobLoss(lost, text)


def _find_slow_links(job: Job) -> Iterator[JobLoss]:
    """Yield the loss by slow links, beside the median of their transport."""
    counts = [row.get("steps") or 0 for row in job.tables["ranks"]]
    steps = max([1, *counts])
    for row in job.tables["links"]:
        if row.get("verdict") == SLOW:
            speed = row["bandwidth_gb_per_s"]
            speeds = [speed]
            for other in job.tables["links"]:
                # without a score it was not compared with the others of its transport
                is_compared = other["transport"] == row["transport"] and other.get("z") is not None
                if is_compared and other is not row:
                    speeds.append(other["bandwidth_gb_per_s"])
            lost = row["transit_ns"] * (1 - speed / float(np.median(speeds))) / steps
            text = (
                f"the {row['transport']} link from rank {row['source_rank']} to {row['target_rank']} is slow: "
                f"{speed:.2f} GB/s ({row['place']})"
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


def _describe_evidence(row: Mapping[str, Any], steps: int) -> str:
    """Return what the verdict of a row rests on, a sentence."""
    own = f"Own time {format_ns(row['own_ns'])}, " if row.get("own_ns") is not None else "Own time "
    chance = f"q {row['q']:.3f}" if row["q"] >= 0.001 else "q < 0.001"
    return (
        f"{own}x{row['own_ratio']:.2f} that of its peers; slowest in {row['slowest_steps']} of {steps} steps, {chance}."
    )
