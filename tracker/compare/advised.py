"""What could make the runs of a side faster, and what is new since a baseline: the content of `tracker advise`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracker.advice import stored
from tracker.advice.judging import RunAdvice, of_run, with_remedies
from tracker.advice.versions import compared, merged
from tracker.columns import Columns
from tracker.compare.bottleneck import bottleneck
from tracker.compare.loading import load_all
from tracker.compare.overall import step_numbers
from tracker.compare.pairs import check_one_track
from tracker.compare.references import find_named, needs_store
from tracker.compare.slow_steps import list_slow_steps
from tracker.compare.step_kinds import keep_kind
from tracker.errors import UsageError
from tracker.results import Advice, Advised, AdviseOptions, ShowOptions
from tracker.results.advice import AdviceRow, EfficiencyRow
from tracker.schema.series import UNPROFILED_STEP

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
    from tracker.store import Store

_RUN: Final = ("workload", "version", "device", "configuration")


def advise(
    store: Store | None, reference: str, baseline: str | None = None, *, options: AdviseOptions | None = None
) -> Advised:
    """Return the advice on the runs that `reference` names, the median of what each run could win; with a `baseline`
    only what is new, grown by half, or gone since.

    References are those of `tracker diff`. UsageError where one names nothing, or a rule is none.
    """
    from tracker.advice.rules import RULES

    options = options or AdviseOptions()
    known = [rule.id for rule in RULES]
    unknown = [rule for rule in options.rules if rule.upper() not in known]
    if unknown:
        raise UsageError(f"no rule {unknown[0]!r}", remedy=f"choose from {', '.join(known)}")
    reading = ShowOptions(
        workload=options.workload, format=options.format, flow_category=options.flow_category,
        allow_partial=options.allow_partial, skip_bad_rows=options.skip_bad_rows, max_bytes=options.max_bytes,
        loaders=options.loaders, on_progress=options.on_progress,
    )  # fmt: skip
    names = (reference,) if baseline is None else (baseline, reference)
    with ExitStack() as stack:
        if store is not None and any(map(needs_store, names)):
            stack.enter_context(store.reading())
        sides = find_named(store, names, options.workload)
        settled, runs = sides.references, sides.runs
        if store is not None:
            check_one_track(store, runs, choose="")
        *before, side = (
            one.leave_out_partial() for one in load_all(store, settled, reading, stack, runs=runs, or_pruned=True)
        )
        side, on_kinds = keep_kind(side, options.step_kind)
        before = [keep_kind(one, side.step_kind or None)[0] for one in before]
        found = _of_side(side, options)
        items = found.items
        if before:
            items = compared(found.items, _of_side(before[0], options).items)
        if before and not all(one.partial.has_whole_steps for one in (*before, side)):
            # what is not known of one side is neither new nor gone
            items = ()
        chosen = _chosen(items, options)
        return Advised(
            run=_described(side, settled[-1]) | _step_without_profiler(side),
            step_ns=found.step_ns,
            together_ns=found.together_ns,
            items=chosen,
            tables={
                "advice": Columns.of_structs(AdviceRow, [item.row for item in chosen]),
                "efficiency": Columns.of_structs(EfficiencyRow, found.efficiency),
            },
            use=found.use,
            missing=found.missing,
            notes=(*sides.notes, *on_kinds, *found.notes, *side.warnings),
            bottleneck=bottleneck(side).bound,
            slow_steps=list_slow_steps(side),
            loss=found.loss,
            accounts=found.accounts,
            partial=replace(side.partial, sentences=(*side.left_out, *side.partial.sentences)),
            baseline=_described(before[0], settled[0]) if before else None,
            one_run=_name_one_run(side, settled[-1]),
            options=options,
        )


def _described(side: LoadedSide, reference: str) -> dict[str, object]:
    first = side.runs.records()[0]
    return {"reference": reference, "run_ids": list(side.run_ids), **{name: first[name] for name in _RUN}}


def _name_one_run(side: LoadedSide, reference: str) -> str:
    """Return how `tracker show` is asked for a run of a side, the last one; "" for several runs of files."""
    if len(side.run_ids) == 1:
        return reference
    return f"run:{side.run_ids[-1]}" if needs_store(reference) else ""


def _step_without_profiler(side: LoadedSide) -> dict[str, object]:
    """Return the step by a log beside the trace, where there is one: what is advised is of the step of the trace."""
    numbers = step_numbers(side)
    of_log = numbers.get(UNPROFILED_STEP)
    return {} if of_log is None or of_log == numbers.get("step_ns") else {UNPROFILED_STEP: of_log}


def _of_side(side: LoadedSide, options: AdviseOptions) -> RunAdvice:
    """Return what the rules say of the runs of a side together: of each piece of advice the median gain of the runs
    that have it. A pruned run gives what was stored.
    """
    pruned = side.pruned_runs()
    kept = stored.of_runs(side.store, sorted(pruned)) if pruned else {}
    return merged([
        kept.get(run_id, RunAdvice(step_ns=0.0)) if run_id in pruned
        else with_remedies(of_run(side.store, run_id, options.microbatches, side.step_kind or None))
        for run_id in side.run_ids
    ])  # fmt: skip


def _chosen(items: Sequence[Advice], options: AdviseOptions) -> tuple[Advice, ...]:
    rules = {rule.upper() for rule in options.rules}
    return tuple(
        item for item in items
        if (item.rule in rules if rules else item.is_shown or options.everything)
        and (not options.only or item.family in options.only)
    )  # fmt: skip
