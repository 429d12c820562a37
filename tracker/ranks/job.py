"""The ranks of one run beside each other, or those of two runs: the content of `tracker cluster`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from tracker.advice.step_order import numbers_by_order
from tracker.columns import Columns
from tracker.compare.loading import load_all
from tracker.compare.median_run import choose_median_run
from tracker.compare.references import named, needs_store
from tracker.compare.step_kinds import keep_kind
from tracker.detect.stages import TIMES, host_rows, stages_of
from tracker.detect.step_order import Numbers
from tracker.errors import UsageError
from tracker.ranks import exchange, losses, missing, own_time, waiting
from tracker.ranks.work import Work, moves_work_in, operator_rows
from tracker.results import CLUSTER_COLUMNS, Cluster, ClusterOptions, ShowOptions
from tracker.store import queries
from tracker.units import format_numbers

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
    from tracker.store import Store

_ASIDES: Final = 3
"""Losses that are named beside the largest."""
_MICROBATCHES: Final = ("microbatches", "num_microbatches", "num_micro_batches", "micro_batches")
Row = dict[str, Any]
_COMPARED: Final[Mapping[str, tuple[tuple[str, ...], tuple[tuple[str, str], ...]]]] = {
    "ranks": (("rank",), (("own_ns", "ns"), ("step_ns", "ns"), ("wait_ns", "ns"))),
    "hosts": (("host",), (("own_ratio", "ratio"),)),
    "stages": (("stage",), (("own_ns", "ns"), ("own_max_ns", "ns"), ("bubble_ns", "ns"), ("idle_ns", "ns"))),
    "pipeline": ((), (("model_ns", "ns"), ("slowdown", "number"))),
    "roles": (("role", "rank"), (("exposed_ns", "ns"), ("wait_ns", "ns"))),
    "groups": (("role", "ranks", "kind"), (("transit_ns", "ns"), ("wait_ns", "ns"), ("bus_gb_per_s", "number"))),
    "links": (("transport", "source_rank", "target_rank"), (("bandwidth_gb_per_s", "number"),)),
    "balance": (("stage", "quantity"), (("imbalance", "number"),)),
}
"""Section -> what names its rows, and the numbers of two runs that are compared, with their units."""


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
    rows = _changes(before, after)
    first = f"In the first run, {before.answer}{f' ({before.verdict})' if before.verdict else ''}."
    captured = [found.run["captured"] for found in (before, after)]
    remarks = [f"The runs have {captured[0]} and {captured[1]} ranks."] if captured[0] != captured[1] else []
    return replace(
        after,
        tables={**after.tables, "changes": Columns.of_rows(rows, CLUSTER_COLUMNS["changes"])},
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
        (reference,), runs = named(store, (reference,), options.workload)
        (side,) = load_all(store, (reference,), reading, stack, runs=runs, steps=(options.steps,), or_pruned=True)
        if len(side.run_ids) > 1:
            whole = side.leave_out_partial()
            run_id, which = choose_median_run(whole)
            found = _of_run(store, f"run:{run_id}", options)
            return replace(found, notes=(which, *whole.left_out, *found.notes))
        side, on_kinds = keep_kind(side, options.step_kind)
        found = _cluster(side, reference, options)
        return replace(found, notes=(*on_kinds, *found.notes))


def _cluster(side: LoadedSide, reference: str, options: ClusterOptions) -> Cluster:
    numbers = _steps_by_order(side)
    partial = {rank for _, rank in side.partial.captures_of_partial_steps}
    # a rank that lost records is nobody's peer
    whole = [(rank, stage) for rank, stage in side.captures.rows("rank", "stage") if rank not in partial]
    stages = stages_of(whole, side.steps.rows(*TIMES), numbers)
    work = Work(side)
    facts = {key: str(value) for _, key, value in queries.facts(side.store, side.run_ids).rows("kind", "key", "value")}
    microbatches, source = _microbatches(facts, options)
    steps = exchange.steps_of_ranks(side)
    roles = exchange.role_rows(side, steps)
    calls = exchange.calls_of(side)
    longest, late = exchange.call_rows(calls)
    rows = own_time.rank_rows(side, stages, work, exchange.waits_of_ranks(side, steps))
    has_clock = bool(calls.matched) and not calls.without_clock
    for row in rows:
        row["late_calls"] = late.get(row["rank"], 0) if has_clock else None
    moves = moves_work_in(side, stages, numbers)
    pipeline = own_time.pipeline_row(stages, microbatches, source)
    tables = {
        "ranks": sorted(rows, key=lambda row: (row.get("verdict") is None, -(row.get("own_ratio") or 0), row["rank"])),
        "steps": own_time.step_rows(stages),
        "hosts": sorted(
            host_rows({rank: host for rank, host in side.captures.rows("rank", "host") if host}, stages),
            key=lambda row: (row["verdict"] is None, -(row["own_ratio"] or 0.0), row["host"]),
        ),
        "stages": own_time.stage_rows(stages, rows, microbatches, moves),
        "pipeline": [pipeline] if pipeline else [],
        "roles": roles,
        "peers": waiting.peer_rows(side, calls, steps),
        "groups": exchange.group_rows(calls, [*steps]),
        "calls": longest,
        "links": exchange.link_rows(side),
        "operators": operator_rows(work, stages),
        "balance": exchange.balance_rows(side, rows),
        "changes": [],
    }
    # the ranks that took longest first, each with all of its steps
    place = {row["rank"]: at for at, row in enumerate(tables["ranks"])}
    tables["steps"].sort(key=lambda row: (place[row["rank"]], row["step"]))
    is_chosen = bool(options.ranks) or options.stage is not None
    found = losses.Job(tables, stages, moves, losses.idle_of_ranks(side, steps))
    answer, verdict, remarks = _answer(found, is_chosen=is_chosen)
    if partial and answer == losses.NO_RANK:
        answer = (
            f"no rank of those that are whole holds the others back; rank {format_numbers(sorted(partial))} is partial"
        )
    record = side.runs.records()[0]
    run = {"reference": reference, "captured": len(steps), **record}
    return Cluster(
        run=run,
        tables={name: Columns.of_rows(tables[name], names) for name, names in CLUSTER_COLUMNS.items()},
        answer=answer,
        verdict=verdict,
        remarks=(*side.partial.sentences, *remarks),
        missing=missing.sentences(side, stages, tables, calls, facts, options),
        notes=(*side.warnings, *_note_on_numbers(numbers)),
        options=options,
    )


def _steps_by_order(side: LoadedSide) -> Numbers:
    """Return which ranks count their steps otherwise, and what the others call each of them."""
    (run_id,) = side.run_ids
    steps = side.steps.rows("rank", "step", "start_ns", "duration_ns")
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
    found = (key for key in _MICROBATCHES if facts.get(key, "").isdecimal() and int(facts[key]) > 0)
    key = next(found, "")
    return (int(facts[key]), key) if key else (None, "")


def _answer(job: losses.Job, *, is_chosen: bool) -> tuple[str, str, tuple[str, ...]]:
    """Return the sentence that says what costs most, the verdict, and what limits it. `is_chosen`: other ranks are
    captured, and were left out.
    """
    is_alone = len(job.tables["ranks"]) < 2
    few = losses.remark_on_few_steps(job)
    if is_alone:
        few = f"one rank is {'chosen' if is_chosen else 'captured'}: there is no other to compare it with"
    found = losses.find_losses(job)
    in_one_step = tuple(waiting.remark_on_one_step(job.tables["peers"], job.step_ns))
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


def _changes(before: Cluster, after: Cluster) -> list[Row]:
    """Numbers of both runs by section and row, those of the candidate in its order; one side may lack a row."""
    rows: list[Row] = []
    for section, (keys, metrics) in _COMPARED.items():
        tables = [{tuple(row[key] for key in keys): row for row in found.tables[section].records()}
                  for found in (before, after)]  # fmt: skip
        for key in dict.fromkeys([*tables[1], *tables[0]]):
            name = " ".join(f"{word} {part}" for word, part in zip(keys, key, strict=True) if part is not None)
            for metric, unit in metrics:
                first, last = (table.get(key, {}).get(metric) for table in tables)
                if first is None and last is None:
                    continue
                delta = None if first is None or last is None else float(last - first)
                rows.append(
                    {
                        "section": section, "name": name or ("all ranks" if keys else section), "metric": metric,
                        "unit": unit,
                        "baseline_value": None if first is None else float(first),
                        "candidate_value": None if last is None else float(last),
                        "delta": delta, "diff": delta / first if delta is not None and first else None,
                    }
                )  # fmt: skip
    order = [*_COMPARED]
    rows.sort(key=lambda row: (order.index(row["section"]), -abs(row["diff"] or 0.0)))
    return rows
