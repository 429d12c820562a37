"""All sections of a diff of two sides."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tracker.compare import (
    collectives,
    counters,
    coverage,
    environment,
    explain,
    input_pipeline,
    kernels,
    memory,
    op_kernels,
    operator_arguments,
    operators,
    overall,
    sections,
    step_kinds,
    tree_tables,
    verdicts,
)
from tracker.compare.bottleneck import bottleneck
from tracker.compare.bubbles import with_known_bubbles
from tracker.compare.comparable import compare_recordings
from tracker.compare.filters import check_exchange, check_named
from tracker.compare.loading import load_all, load_own_runs
from tracker.compare.notes import notes_on_comparison
from tracker.compare.own_runs import OwnRuns
from tracker.compare.pairs import Pair, find_pairs, merge_base_of
from tracker.compare.references import needs_store, words_of
from tracker.compare.sections import compare_table
from tracker.compare.side import OwnRows, WorkTables
from tracker.errors import UsageError
from tracker.profile.branches import main_of
from tracker.regressions.budgets import judge_side
from tracker.regressions.sides import verdicts_of_sides
from tracker.results import DIFF_COLUMNS, Diff, DiffOptions
from tracker.results.budgets import JudgedBudget
from tracker.results.diff import DiffSamples
from tracker.schema.column_names import BASELINE_NS, CANDIDATE_NS, LEVEL, MODULE, NAME, RUN_ID, VERSION
from tracker.schema.series import IDLE_SERIES, RUN, key_of_run
from tracker.store import queries
from tracker.units import some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracker.columns import Columns
    from tracker.compare.side import LoadedSide
    from tracker.compare.verdicts import Judged
    from tracker.results import Bottleneck
    from tracker.store import Store


def diff(store: Store | None, baseline: str, candidate: str, *, options: DiffOptions | None = None) -> Diff:
    """Candidate against baseline: what became slower, by how much, and why. `store` may be None for paths alone.

    Every number is per step, by store/samples/statistics.py, of the ranks that report it. diff(a, a) is all zero;
    diff(a, b) mirrors diff(b, a). All sections are there, whatever `options.only`. Sides that do different work have
    empty tables, unless `options.force`: the answer and the judgement say why.

    UsageError where both sides have runs of several devices and configurations; see `diffs`.
    """
    with _reading(store, (baseline, candidate)):
        found = find_pairs(store, (baseline, candidate), options or DiffOptions())
        if len(found) > 1:
            words = ", ".join(f"{pair.sides[1]} {words_of(pair.options.config.items())}".strip() for pair in found)
            raise UsageError(
                f"{baseline} and {candidate} have runs of several devices and configurations: {words}",
                remedy="choose one: VERSION@DEVICE, or a value of the configuration (--config KEY=VALUE)",
            )
        return _diff(store, found[0])


def diffs(
    store: Store | None, sides: Sequence[str], *, options: DiffOptions | None = None, against: str = "window"
) -> list[Diff]:
    """As `diff`, for each device and configuration that both sides have runs of. `sides`: baseline and candidate, or
    the candidate alone, which is compared with what `against` says (see `find_baseline`).
    """
    with _reading(store, sides):
        return [_diff(store, pair) for pair in find_pairs(store, sides, options or DiffOptions(), against)]


def _reading(store: Store | None, sides: Sequence[str]) -> AbstractContextManager[object]:
    """Return one state of the database for all that is asked, where no side is read into another one meanwhile."""
    return store.reading() if store is not None and all(map(needs_store, sides)) else nullcontext()


def _diff(store: Store | None, pair: Pair) -> Diff:
    options = pair.options
    with ExitStack() as stack:
        steps = (options.baseline_steps, options.candidate_steps)
        more_runs = [run_id for own in (pair.bases or {}).values() for run_id in own.runs]
        left, right = load_all(store, pair.sides, options, stack, runs=pair.runs, steps=steps, more_runs=more_runs)
        left, right = with_known_bubbles(left), with_known_bubbles(right)
        left, right = _with_branch(left, right, pair), _with_branch(right, left, pair)
        every_run = left, right
        left, right = left.leave_out_partial(), right.leave_out_partial()
        kinds = _find_kinds(left, right, pair)
        if kinds.shown:
            left, right = (step_kinds.of_kind(side, kinds.shown) for side in (left, right))
            before, after = (step_kinds.of_kind(side, kinds.shown) for side in every_run)
            every_run = before, after
        recorded, options = compare_recordings(left, right, options)
        if recorded.other_work is not None:
            left = left.reshape(recorded.other_work.inputs.shapes)
        found = recorded.operators(operators.compare(left, right, options))
        judged = verdicts.judge(*every_run, options, recorded, found, bases=pair.bases)
        own = _find_own_rows(left, right, options, judged, found)
        rows_of = left if own is None else own.side
        if own is not None:
            found = recorded.operators(operators.compare(rows_of, right, options))
        check_named("operator", options.op, _op_names(found), (left, right))
        if options.module:
            unfiltered = replace(options, op=None, module=None, minimum_ns=None)
            everything = compare_table(sections.MODULES, left, right, unfiltered)
            check_named("module", options.module, everything.listed(MODULE), (left, right))
        check_exchange(options, (left, right))
        allocated, allocated_details = memory.compare_allocations(rows_of, right, options)
        at_peak = _of_peak(left, own)
        measured = kernels.measure_kernels(left, right)
        single_kernels = op_kernels.compare(left, right, options, found)
        matched = {one.table: compare_table(one, rows_of, right, options) for one in sections.MATCHED_TABLES}
        matched["kernels"], kernel_metrics = kernels.add_metrics(measured, matched["kernels"])
        made = {
            **matched,
            "environment": environment.compare(left, right),
            "overall": overall.compare_overall(left, right, rows_of),
            "ops": found.ops,
            "op_details": found.details,
            "op_kernels": single_kernels.table,
            "kernel_metrics": kernel_metrics,
            "communication_links": collectives.compare_links(left, right, options),
            "memory": allocated,
            "memory_details": allocated_details,
            "memory_peak": memory.compare_owners(at_peak, right, options),
            "memory_peak_totals": memory.compare_totals(at_peak, right),
            "memory_blocks": memory.compare_blocks(at_peak, right, options, allocated),
            "counters": counters.compare(left, right),
            "input_operations": input_pipeline.compare_operations(left, right),
            "input_queues": input_pipeline.compare_queues(left, right),
            "operator_arguments": operator_arguments.compare_arguments(left, right),
        }
        tables = {name: made[name] for name in DIFF_COLUMNS}
        drawn = _draw_tree(left, right, options, judged, tables["modules"])
        result = Diff(
            baseline=left.side,
            candidate=right.side,
            metric=_metric(operators.own_time(left), operators.own_time(right)),
            tables={name: judged.add_verdicts(name, recorded.marked(name, table)) for name, table in tables.items()},
            explanation=step_kinds.add_others(
                explain.explain((left, right), found, measured, options, judged, recorded, tables, own), kinds
            ),
            step_kinds=kinds.rows,
            options=options,
            bottlenecks=_find_bottlenecks(left, right),
            tree_table=recorded.tree(tree_tables.compare_trees(left, right, options, judged)) if options.tree else None,
            judgement=judged.judgement,
            gates=judged.gates,
            budgets=_judge_budgets(every_run[1]),
            samples=DiffSamples(
                overall=overall.overall_of_runs(left, right, rows_of),
                keys=found.keys,
                ops=found.runs,
                curves=memory.curves(at_peak, right),
                word=drawn.word,
                tree=drawn.nodes,
            ),
            notes=(
                *pair.notes,
                *filter(None, [step_kinds.note_on_mix(kinds, [left.side.label, right.side.label])]),
                *_note_on_levels(judged, own, found),
                *recorded.notes(),
                *filter(None, [operator_arguments.note_on_arguments(tables["operator_arguments"])]),
                *notes_on_comparison(left, right, found, options),
                *memory.note_on_rules(left, right),
                *memory.notes_on_blocks(at_peak, right),
                *measured.notes,
                *single_kernels.notes,
            ),
        )
        return _without_tables(result) if result.is_refused else result


def _with_branch(side: LoadedSide, other: LoadedSide, pair: Pair) -> LoadedSide:
    """Return a side with what is known of its branch: where it left the main line, if the other side is of that."""
    of, names_branch = side.side, side.side.label in pair.branches
    is_beside_main_line = main_of(of.workload) == other.side.workload != of.workload
    merge_base = merge_base_of(side.store, side.run_ids) if is_beside_main_line else ""
    return replace(side, side=replace(of, names_branch=names_branch, merge_base=merge_base))


def _judge_budgets(candidate: LoadedSide) -> tuple[JudgedBudget, ...]:
    """Return how the runs of the candidate came out by the budgets of the settings."""
    side = candidate.side
    return judge_side(candidate.store, side.workload, side.configuration, side.device, side.run_ids)


def _find_kinds(left: LoadedSide, right: LoadedSide, pair: Pair) -> step_kinds.Kinds:
    """Return the kinds of steps of two sides, by their verdicts; nothing where all steps are of one kind."""
    asked = pair.options.step_kind
    if any(side.chosen_steps for side in (left, right)):
        if asked is not None:
            raise step_kinds.name_both()
        return step_kinds.Kinds()
    if asked is None and not step_kinds.differ_in_kinds(left, right):
        return step_kinds.Kinds()
    judged = verdicts_of_sides(left.store, left.run_ids, right.run_ids, candidate_store=right.store, bases=pair.bases)
    return step_kinds.choose_kind_of_steps(left, right, asked, judged)


def _find_bottlenecks(left: LoadedSide, right: LoadedSide) -> tuple[Bottleneck, Bottleneck] | None:
    """Return what bounds each side; None where they were read by two rules on idle time, which tell it otherwise."""
    if len(coverage.find_idle_rules((left, right))) > 1:
        return None
    return bottleneck(left), bottleneck(right)


def _find_own_rows(
    left: LoadedSide, right: LoadedSide, options: DiffOptions, judged: Judged, in_step: operators.Operators
) -> OwnRows | None:
    """Return the baseline with the runs that the verdict of each row rests on, where these are not those of the step.

    `in_step`: the operators with every row of the runs of the step.
    """
    bases = judged.bases
    if not bases:
        return None
    own_runs = OwnRuns(
        step=frozenset(left.run_ids),
        of_series={key: frozenset(own.runs) for key, own in bases.items()},
        own_time=judged.own_time,
        by_name=judged.by_name,
        left_out=judged.partial_tables,
    )
    kernels_in_step = compare_table(sections.KERNELS, left, right, options)
    tables = WorkTables(in_step.everything, in_step.names, kernels_in_step)
    side = with_known_bubbles(load_own_runs(left, options, own_runs))
    if left.step_kind:
        side = step_kinds.of_kind(side, left.step_kind)
    kept = {} if side.own_runs is None else side.own_runs.of_series
    moved = {run_id for key in kept for run_id in bases[key].other_level}
    order = queries.order_of_versions(left.store, left.side.workload)
    versions = {version for run_id, version in left.runs.rows(RUN_ID, VERSION) if run_id in moved}
    return OwnRows(side, tables, tuple(sorted(versions, key=lambda version: order.get(version, 0))))


def _note_on_levels(judged: Judged, own: OwnRows | None, found: operators.Operators) -> tuple[str, ...]:
    """Return a sentence on rows that are compared with other runs than the step, and on what had another level in some
    runs of the step, the largest first.
    """
    if own is None or own.side.own_runs is None:
        return ()
    moved = {key for key in own.side.own_runs.of_series if judged.bases[key].other_level}
    names = [key.name for key in moved if key.kind == RUN and not key.name.startswith(IDLE_SERIES)]
    of_ops = {key.name for key in moved if key.kind == "op_name"}
    rows = sorted(found.names.rows(NAME, BASELINE_NS), key=lambda row: -(row[1] or 0.0))
    listed = [*sorted(names), *(name for name, _ in rows if name in of_ops)]
    own_level = "Each row is compared with the newest runs of its own level"
    if not listed:
        return (f"{own_level}, which may be other runs.",)
    return (f"{own_level}; in {', '.join(own.versions)} {some_of(listed)} had another one.",)


def _of_peak(left: LoadedSide, own: OwnRows | None) -> LoadedSide:
    """Return the baseline with the runs that its peak memory is compared with."""
    of_peak = None
    if own is not None and own.side.own_runs is not None:
        of_peak = own.side.own_runs.of_number(key_of_run("peak memory").metric)
    return left if own is None or of_peak is None else own.side.of_runs(sorted(of_peak))


class _DrawnTree(Struct, frozen=True):
    """The `word` and the `tree` of `DiffSamples`."""

    word: str = ""
    nodes: tuple[tuple[int, str, float | None, float | None], ...] = ()


def _draw_tree(
    left: LoadedSide, right: LoadedSide, options: DiffOptions, judged: Judged, modules: Columns
) -> _DrawnTree:
    """Return a tree of modules where they are known, else of calls; nothing where none is asked for, and where a tree
    is a table of the result.
    """
    if not options.with_flame or options.tree:
        return _DrawnTree()
    word = "module" if any(modules.listed(MODULE)) else "op"
    tree = tree_tables.compare_trees(left, right, replace(options, by=(word,)), judged)
    nodes = tree.rows(LEVEL, NAME, BASELINE_NS, CANDIDATE_NS)
    return _DrawnTree(word, tuple((level, name, before, after) for level, name, before, after in nodes))


def _without_tables(found: Diff) -> Diff:
    """Return a diff of sides that do different work: what differs between them, and no numbers."""
    tables = {name: table if name == "environment" else table.head(0) for name, table in found.tables.items()}
    alone = explain.keep_headline(found.explanation)
    return replace(found, tables=tables, explanation=alone, bottlenecks=None, tree_table=None, samples=DiffSamples())


def _op_names(found: operators.Operators) -> Iterator[str]:
    """Yield the names of operators under which rows may be asked for: of both sides, and those that a map renames."""
    for rows in (found.baseline_rows, found.candidate_rows, found.everything):
        yield from dict.fromkeys(rows.listed(NAME))


def _metric(baseline: str, candidate: str) -> str:
    """Return `self_ns` where one side ran on a device and the other on the host: each op is then judged where
    it ran.
    """
    return baseline if baseline == candidate else "self_ns"
