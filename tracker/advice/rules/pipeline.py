"""Ranks and stages that do not take equally long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tracker.advice.gains import MORE_MICROBATCHES, pipeline_ns, taus
from tracker.advice.rule import AdviceRule, Claim, Number, Remedy
from tracker.detect.losses import COMPUTE_PART, COPIES_PART, IDLE_PART, LOADING_PART
from tracker.detect.peers import FEWEST_STEPS
from tracker.profile import median

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence

_STAGES: Final = 0.02
_BUBBLE: Final = 0.05
ALWAYS: Final = "always"
"""Mark of a claim: one rank is the slowest of nearly each step."""
EXPERTS: Final = "experts"
"""Mark of a claim: ranks exchange tokens, as experts do."""
MARKS: Final = (ALWAYS, EXPERTS)
"""Marks of the claims of this family."""


def _slow_rank(evidence: Evidence) -> Iterator[Claim]:
    for slow in evidence.slow_ranks:
        host = evidence.ranks[slow.rank].host
        where = f" on {host}" if host else ""
        numbers = [
            Number("its own time by that of its peers", slow.ratio, "ratio"),
            Number("steps in which it is the slowest", slow.slowest_steps, "count"),
        ]
        marks: tuple[str, ...] = ()
        if slow.cause.part:
            numbers.append(Number(f"{slow.cause.part}, more than that of its peers", slow.cause.more_ns))
            marks = (slow.cause.part,)
        yield Claim(
            resource="rank", rank=slow.rank, place=f"rank {slow.rank}", ns=slow.cost_ns,
            title=f"rank {slow.rank}{where} is slow", numbers=tuple(numbers), marks=marks,
        )  # fmt: skip


def _own_times(evidence: Evidence) -> list[tuple[int | None, float]]:
    """Return the stages of a pipeline with their own times: medians of ranks and steps."""
    stages = [stage for stage in evidence.stages if stage.steps]
    return [(stage.number, float(median(stage.own))) for stage in stages] if len(stages) > 1 else []


def _stages(evidence: Evidence) -> Iterator[Claim]:
    own, count = taus(evidence), evidence.microbatches or 1
    if not own:
        yield from _stages_without_model(evidence)
        return
    even, flat = pipeline_ns(own, count), pipeline_ns([sum(own) / len(own)] * len(own), count)
    if even > flat:
        numbers = [Number(f"stage {stage.number}, per microbatch", tau)
                   for stage, tau in zip([one for one in evidence.stages if one.steps], own, strict=True)]  # fmt: skip
        yield Claim(
            resource="pipeline", ns=even - flat, numbers=(*numbers, Number("microbatches", float(count), "count"))
        )


def _stages_without_model(evidence: Evidence) -> Iterator[Claim]:
    """What equal stages would win, of any number of microbatches: the longest takes so much more than the mean."""
    own = _own_times(evidence)
    if own and evidence.is_pipeline:
        times = [ns for _, ns in own]
        numbers = [Number(f"stage {number}", ns) for number, ns in own]
        yield Claim(resource="pipeline", ns=max(times) - sum(times) / len(times), numbers=tuple(numbers))


def _bubble(evidence: Evidence) -> Iterator[Claim]:
    own, count = taus(evidence), evidence.microbatches or 1
    if not own:
        yield from _bubble_without_model(evidence)
        return
    share = (len(own) - 1) / (count + len(own) - 1)
    # of four times as many microbatches of the same size each step does four times the work
    now, then = pipeline_ns(own, count), pipeline_ns(own, MORE_MICROBATCHES * count) / MORE_MICROBATCHES
    yield Claim(
        resource="bubble", ns=max(0.0, now - then),
        numbers=(Number("bubble", share, "share"), Number("microbatches", float(count), "count"),
                 Number("stages", float(len(own)), "count"),
                 Number("the bound holds for", f"{MORE_MICROBATCHES * count} microbatches, per {count}", "text")),
    )  # fmt: skip


def _bubble_without_model(evidence: Evidence) -> Iterator[Claim]:
    """The waiting for other stages of the stage that takes longest: that which even stages would have, too."""
    own = _own_times(evidence)
    if not own or not evidence.is_pipeline:
        return
    number, _ = max(own, key=lambda pair: pair[1])
    waits = [times.bubble_ns for times in evidence.rank_times if times.stage == number and times.bubble_ns is not None]
    if waits:
        ns = float(median(waits))
        words = f"stage {number}, which takes longest, waits for the others"
        yield Claim(resource="bubble", ns=ns, numbers=(Number(words, ns),))


def _uneven(evidence: Evidence) -> Iterator[Claim]:
    for stage in evidence.stages:
        place = "" if stage.number is None else f"stage {stage.number}"
        if stage.leader is not None and len(stage.steps) >= FEWEST_STEPS:
            # one rank that is always the last one is no work that moves around
            rank, slowest = stage.ranks[stage.leader], int(stage.judged.slowest[stage.leader])
            yield Claim(
                resource="none", rank=rank, place=f"rank {rank}", confidence="hint", marks=(ALWAYS,),
                title=f"rank {rank} takes longest in {slowest} of {len(stage.steps)} steps",
                numbers=(Number("slowest rank of a step by the median", stage.spread or 0.0, "ratio"),),
            )  # fmt: skip
        elif stage.is_uneven and evidence.moves_work(stage):
            over = float(median(stage.own.max(axis=0) - stage.own.mean(axis=0)))
            has_experts = any(kind == "all_to_all" for _, kind in evidence.collectives)
            marks = (EXPERTS,) if has_experts else ()
            yield Claim(
                resource="rank", ns=over, place=place,
                numbers=(Number("slowest rank of a step by the median", stage.spread or 0.0, "ratio"),
                         Number("slowest less the mean", over)),
                marks=marks,
            )  # fmt: skip


RULES: Final = (
    AdviceRule(
        id="P1", title="a rank is slow", fires="tracker cluster calls a rank SLOW", bound="what-if",
        confidence="certain",
        remedies=(
            Remedy("on that rank: its loader, its storage, more workers", needs=(LOADING_PART,)),
            Remedy("tracker cluster tells more work from a slow device; take a slow one out of the job",
                   needs=(COMPUTE_PART,)),
            Remedy("on that rank: its copies; are its memory and its bus those of the others?",
                   needs=(COPIES_PART,)),
            Remedy("on that rank: what its program does while nothing runs (tracker show --rank)",
                   needs=(IDLE_PART,)),
            Remedy("tracker cluster names its cause: data, host, copies, more work or a slow device", is_last=True),
        ),
        sources=("Lin et al., OSDI'25",), in_run=_slow_rank,
    ),
    AdviceRule(
        id="P2", title="stages of the pipeline are uneven",
        fires="equal stages would save time in the model of the pipeline, or, where the number of microbatches is not "
            "known, the longest stage takes more than the mean one; shown from 2 % of the step",
        bound="what-if", confidence="certain", shown_from=_STAGES,
        remedies=(Remedy("move layers: the first stage holds the embedding, the last one the head and the loss"),),
        sources=("Lin et al., OSDI'25",), in_run=_stages,
    ),
    AdviceRule(
        id="P3", title="the bubble of the pipeline",
        fires="stages wait for the first and the last microbatch: (p - 1) / (m + p - 1) of the step, of p stages, m "
            "microbatches; where m is not known, what the longest stage waits for others; shown where four times as "
            "many, or no waiting, would win 5 % of the step",
        bound="what-if", confidence="certain", shown_from=_BUBBLE,
        remedies=(Remedy("more microbatches; an interleaved schedule"),),
        sources=("Narayanan et al., SC'21",), in_run=_bubble,
    ),
    AdviceRule(
        id="P4", title="the work moves around between ranks",
        fires="tracker cluster calls a stage UNEVEN; where one rank takes longest in 80 % of the steps, a hint that "
            "names it",
        bound="what-if", confidence="likely",
        remedies=(
            Remedy("sort or pack batches by length, so that ranks have equal work", unless=(ALWAYS,)),
            Remedy("an even load of the experts: their capacity, and how tokens are sent to them", needs=(EXPERTS,)),
            Remedy("record more steps: tracker cluster then says whether it is slow", needs=(ALWAYS,)),
        ),
        sources=("Lin et al., OSDI'25",), in_run=_uneven,
    ),
)  # fmt: skip
