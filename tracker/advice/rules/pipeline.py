"""Ranks and stages that do not take equally long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.advice.gains import MORE_MICROBATCHES, pipeline_ns, taus
from tracker.advice.rule import AdviceRule, Claim, Number, Remedy
from tracker.results import SLOW

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence

_STAGES: Final = 0.02
_BUBBLE: Final = 0.05


def _slow_rank(evidence: Evidence) -> Iterator[Claim]:
    for stage in evidence.stages:
        for at, rank in enumerate(stage.ranks):
            if stage.judged.verdict[at] == SLOW:
                host = evidence.ranks[rank]["host"]
                yield Claim(
                    resource="rank", rank=rank, place=f"rank {rank}", ns=float(stage.judged.cost[at]),
                    title=f"rank {rank}{f' on {host}' if host else ''} is slow",
                    numbers=(
                        Number("its own time by that of its peers", float(stage.judged.ratio[at]), "ratio"),
                        Number("steps in which it is the slowest", float(stage.judged.slowest[at]), "count"),
                    ),
                )  # fmt: skip


def _stages(evidence: Evidence) -> Iterator[Claim]:
    own, count = taus(evidence), evidence.microbatches or 1
    if not own:
        return
    even, flat = pipeline_ns(own, count), pipeline_ns([sum(own) / len(own)] * len(own), count)
    if even > flat:
        numbers = [Number(f"stage {stage.number}, per microbatch", tau)
                   for stage, tau in zip([one for one in evidence.stages if one.steps], own, strict=True)]  # fmt: skip
        yield Claim(
            resource="pipeline", ns=even - flat, numbers=(*numbers, Number("microbatches", float(count), "count"))
        )


def _bubble(evidence: Evidence) -> Iterator[Claim]:
    own, count = taus(evidence), evidence.microbatches or 1
    share = (len(own) - 1) / (count + len(own) - 1) if own else 0.0
    if share:
        # of four times as many microbatches of the same size each step does four times the work
        now, then = pipeline_ns(own, count), pipeline_ns(own, MORE_MICROBATCHES * count) / MORE_MICROBATCHES
        yield Claim(
            resource="bubble", ns=max(0.0, now - then),
            numbers=(Number("bubble", share, "share"), Number("microbatches", float(count), "count"),
                     Number("stages", float(len(own)), "count"),
                     Number("the bound holds for", f"{MORE_MICROBATCHES * count} microbatches, per {count}", "text")),
        )  # fmt: skip


def _uneven(evidence: Evidence) -> Iterator[Claim]:
    for stage in evidence.stages:
        if stage.is_uneven and evidence.moves_work(stage):
            over = float(np.median(stage.own.max(axis=0) - stage.own.mean(axis=0)))
            yield Claim(
                resource="rank", ns=over,
                place="" if stage.number is None else f"stage {stage.number}",
                numbers=(Number("slowest rank of a step by the median", stage.spread or 0.0, "ratio"),
                         Number("slowest less the mean", over)),
            )  # fmt: skip


RULES: Final = (
    AdviceRule(
        id="P1", title="a rank is slow", fires="tracker cluster calls a rank SLOW", bound="what-if",
        confidence="certain",
        remedies=(
            Remedy("tracker cluster names its cause: data, host, copies, more work or a slow device"),
            Remedy("a slow device: take its host out of the job and run it again"),
        ),
        sources=("Lin et al., OSDI'25",), in_run=_slow_rank,
    ),
    AdviceRule(
        id="P2", title="stages of the pipeline are uneven",
        fires="equal stages would save time in the model of the pipeline; the number of microbatches is known; shown "
            "from 2 % of the step",
        bound="what-if", confidence="certain", shown_from=_STAGES,
        remedies=(Remedy("move layers: the first stage holds the embedding, the last one the head and the loss"),),
        sources=("Lin et al., OSDI'25",), in_run=_stages,
    ),
    AdviceRule(
        id="P3", title="the bubble of the pipeline",
        fires="stages wait for the first and the last microbatch: (p - 1) / (m + p - 1) of the step, of p stages, m "
            "microbatches; shown where four times as many would win 5 % of the step",
        bound="what-if", confidence="certain", shown_from=_BUBBLE,
        remedies=(Remedy("more microbatches; an interleaved schedule"),),
        sources=("Narayanan et al., SC'21",), in_run=_bubble,
    ),
    AdviceRule(
        id="P4", title="the work moves around between ranks", fires="tracker cluster calls a stage UNEVEN",
        bound="what-if", confidence="likely",
        remedies=(Remedy("sort or pack batches by length; capacity of experts"),),
        sources=("Lin et al., OSDI'25",), in_run=_uneven,
    ),
)  # fmt: skip
