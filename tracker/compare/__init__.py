"""Compares two sides: loads them, matches their rows, says what explains the change. Rounds nothing; knows no
format.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from tracker.compare import environment, explain, operators, others, overall
from tracker.compare.notes import notes
from tracker.compare.show import show
from tracker.compare.sides import load, needs_store, resolve
from tracker.results import Diff, DiffOptions

if TYPE_CHECKING:
    from tracker.store import Store

__all__ = ["diff", "needs_store", "resolve", "show"]


def diff(store: Store | None, baseline: str, candidate: str, *, options: DiffOptions | None = None) -> Diff:
    """Candidate against baseline: what became slower, by how much, and why. `store` may be None when both sides are
    paths.

    Every number is the mean per step and rank (of the stages in which a row occurs), the median over the runs of its
    side. diff(a, a) is all zero; diff(a, b) mirrors diff(b, a). Sections that `options.only` leaves out are still
    there.
    """
    options = options or DiffOptions()
    with ExitStack() as stack:
        left, right = (load(store, reference, options, stack) for reference in (baseline, candidate))
        found = operators.compare(left, right, options)
        exchange, exchange_details = others.communication(left, right, options)
        memory, memory_details = others.memory(left, right, options)
        before, after = overall.step_numbers(left), overall.step_numbers(right)
        return Diff(
            baseline=left.side,
            candidate=right.side,
            metric=_metric(operators.own_time(left), operators.own_time(right)),
            environment=environment.compare(left, right),
            overall=overall.compare(left, right),
            ops=found.ops,
            op_details=found.details,
            kernels=others.kernels(left, right, options),
            communication=exchange,
            communication_details=exchange_details,
            memory=memory,
            memory_details=memory_details,
            modules=others.modules(left, right, options),
            api=others.api(left, right, options),
            explanation=explain.explain(left, right, before, after, found),
            options=options,
            notes=notes(left, right, found, options),
        )


def _metric(baseline: str, candidate: str) -> str:
    """`self_ns` where one side ran on a device and the other on the host: each op is then judged where it ran."""
    return baseline if baseline == candidate else "self_ns"
