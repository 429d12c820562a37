"""The ranks of one run beside each other, or those of two runs: the content of `tracker cluster`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracker.advice.step_order import numbers_by_order
from tracker.compare.loading import load_all
from tracker.compare.median_run import choose_median_run
from tracker.compare.references import find_named, needs_store
from tracker.compare.step_kinds import keep_kind
from tracker.detect.stages import TIMES, judge_hosts, stages_of
from tracker.detect.step_order import Numbers
from tracker.errors import UsageError
from tracker.profile.words import MICROBATCH_SETTINGS
from tracker.ranks import exchange, losses, missing, own_time, waiting
from tracker.ranks.changes import list_changes
from tracker.ranks.work import Work, moves_work_in, operator_rows
from tracker.results import Cluster, ClusterOptions, ShowOptions
from tracker.results.cluster import ClusterRows
from tracker.schema.column_names import DURATION_NS, HOST, KEY, KIND, RANK, STAGE, START_NS, STEP, VALUE
from tracker.store import queries
from tracker.units import format_numbers

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
    from tracker.store import Store

_ASIDES: Final = 3
"""Losses that are named beside the largest."""


def cluster(store: Store | None, *references: str, options: ClusterOptions | None = None) -> Cluster:
    """The ranks of the run that `references` name; of two runs those of the second, and `changes` from the first.

    References are those of `tracker show`: a run, a version with one run, a path. UsageError where one names several
    runs, or there are not one or two.
    """
    options = options or ClusterOptions()
    if len(references) not in (1, 2):
        raise UsageError(f"{len(references)} sides", remedy="name one run, or two to compare them")
    found = [_of_run(store, reference, options) for reference in references]
    if len(found) == 1:
        return found[0]
    before, after = found
    first = f"In the first run, {before.answer}{f' ({before.verdict})' if before.verdict else ''}."
    captured = [found.run["captured"] for found in (before, after)]
    remarks = [f"The runs have {captured[0]} and {captured[1]} ranks."] if captured[0] != captured[1] else []
    return replace(
        after,
        rows=replace(after.rows, changes=tuple(list_changes(before.rows, after.rows))),
        answer=f"in the second run, {after.answer}",
        remarks=(*after.remarks, first, *remarks),
        baseline=before.run,
    )


def _of_run(store: Store | None, reference: str, options: ClusterOptions) -> Cluster:
    reading = ShowOptions(
        workload=options.workload, ranks=options.ranks, stage=options.stage, steps=options.steps, format=options.format,
        flow_category=options.flow_category, allow_partial=options.allow_partial, skip_bad_rows=options.skip_bad_rows,
        max_bytes=options.max_bytes, loaders=options.loaders, on_progress=options.on_progress,
    )  # fmt: skip
    with ExitStack() as stack:
        if store is not None and needs_store(reference):
            stack.enter_context(store.reading())
        sides = find_named(store, (reference,), options.workload)
        (reference,), runs = sides.references, sides.runs
        (side,) = load_all(store, (reference,), reading, stack, runs=runs, steps=(options.steps,), or_pruned=True)
        if len(side.run_ids) > 1:
            whole = side.leave_out_partial()
            run_id, which = choose_median_run(whole)
            found = _of_run(store, f"run:{run_id}", options)
            return replace(found, notes=(*sides.notes, which, *whole.left_out, *found.notes))
        side, on_kinds = keep_kind(side, options.step_kind)
        found = _cluster(side, reference, options)
        return replace(found, notes=(*sides.notes, *on_kinds, *found.notes))


def _cluster(side: LoadedSide, reference: str, options: ClusterOptions) -> Cluster:
    numbers = _steps_by_order(side)
    partial = {rank for _, rank in side.partial.captures_of_partial_steps}
    # a rank that lost records is nobody's peer
    whole = [(rank, stage) for rank, stage in side.captures.rows(RANK, STAGE) if rank not in partial]
    stages = stages_of(whole, side.steps.rows(*TIMES), numbers)
    work = Work(side)
    facts = {key: str(value) for _, key, value in queries.facts(side.store, side.run_ids).rows(KIND, KEY, VALUE)}
    microbatches, source = _microbatches(facts, options)
    steps = exchange.steps_of_ranks(side)
    roles = exchange.role_rows(side, steps)
    calls = exchange.calls_of(side)
    longest, late = exchange.call_rows(calls)
    has_clock = bool(calls.matched) and not calls.without_clock
    ranks = own_time.rank_rows(side, stages, work, exchange.waits_of_ranks(side, steps), late if has_clock else None)
    moves = moves_work_in(side, stages, numbers)
    hosts = judge_hosts({rank: host for rank, host in side.captures.rows(RANK, HOST) if host}, stages)
    hosts.sort(key=lambda row: (row.verdict is None, -(row.own_ratio or 0.0), row.host))
    peers = waiting.peer_rows(side, calls, steps)
    links = exchange.link_rows(side)
    rows = ClusterRows(
        ranks=tuple(ranks),
        steps=tuple(own_time.step_rows(stages, ranks)),
        hosts=tuple(hosts),
        stages=tuple(own_time.stage_rows(stages, ranks, microbatches, moves)),
        pipeline=tuple(own_time.pipeline_rows(stages, microbatches, source)),
        roles=tuple(roles),
        peers=tuple(peers),
        groups=tuple(exchange.group_rows(calls, [*steps])),
        calls=tuple(longest),
        links=tuple(links),
        operators=tuple(operator_rows(work, stages)),
        balance=tuple(exchange.balance_rows(side, ranks)),
    )
    is_chosen = bool(options.ranks) or options.stage is not None
    job = losses.Job(ranks, hosts, peers, links, stages, moves, losses.idle_of_ranks(side, steps))
    answer, verdict, remarks = _answer(job, is_chosen=is_chosen)
    if partial and answer == losses.NO_RANK:
        answer = (
            f"no rank of those that are whole holds the others back; rank {format_numbers(sorted(partial))} is partial"
        )
    record = side.runs.records()[0]
    run = {"reference": reference, "captured": len(steps), **record}
    return Cluster(
        run=run,
        rows=rows,
        answer=answer,
        verdict=verdict,
        remarks=(*side.partial.sentences, *remarks),
        missing=missing.sentences(side, stages, rows, calls, facts, options),
        notes=(*side.warnings, *_note_on_numbers(numbers)),
        options=options,
    )


def _steps_by_order(side: LoadedSide) -> Numbers:
    """Return which ranks count their steps otherwise, and what the others call each of them."""
    (run_id,) = side.run_ids
    steps = side.steps.rows(RANK, STEP, START_NS, DURATION_NS)
    with side.store.connect() as connection:
        return numbers_by_order(connection, run_id, steps)


def _note_on_numbers(numbers: Numbers) -> Iterator[str]:
    """Yield a sentence where ranks count their steps otherwise."""
    for rank, matched in numbers.items():
        first, last = min(matched), max(matched)
        yield (
            f"Rank {rank} counts its steps {first} to {last} where the others count {matched[first]} to "
            f"{matched[last]}: they are matched by their order."
        )


def _microbatches(facts: Mapping[str, str], options: ClusterOptions) -> tuple[int | None, str]:
    if options.microbatches is not None:
        return options.microbatches, "--microbatches"
    found = (key for key in MICROBATCH_SETTINGS if facts.get(key, "").isdecimal() and int(facts[key]) > 0)
    key = next(found, "")
    return (int(facts[key]), key) if key else (None, "")


def _answer(job: losses.Job, *, is_chosen: bool) -> tuple[str, str, tuple[str, ...]]:
    """Return the sentence that says what costs most, the verdict, and what limits it. `is_chosen`: other ranks are
    captured, and were left out.
    """
    is_alone = len(job.ranks) < 2
    few = losses.remark_on_few_steps(job)
    if is_alone:
        few = f"one rank is {'chosen' if is_chosen else 'captured'}: there is no other to compare it with"
    found = losses.find_losses(job)
    in_one_step = tuple(waiting.remark_on_one_step(job.peers, job.step_ns))
    if not found:
        is_compared = any(len(stage.ranks) > 1 for stage in job.stages)
        nothing = losses.NO_RANK if is_compared else "no rank can be compared with another"
        return few or nothing, "", in_one_step
    first, *others = found
    of_ranks = [loss for loss in found if loss.is_of_ranks]
    asides = []
    for loss in [loss for loss in others if loss.aside][:_ASIDES]:
        asides += [loss.aside, *(loss.remarks[:1] if loss.is_of_ranks else ())]
    limits = [losses.make_sentence(few)] if few else []
    verdict = of_ranks[0].verdict if of_ranks else first.verdict
    return first.answer, verdict, (*first.remarks, *asides, *in_one_step, *limits)
