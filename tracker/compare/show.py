"""One run, as it is: the content of `tracker show`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker.advice import stored
from tracker.advice.judging import RunAdvice, of_run, with_remedies
from tracker.columns import Column, Columns, objects
from tracker.compare import collectives, counters, input_pipeline, operator_arguments, summaries, tree_tables
from tracker.compare.beside import note_on_documents, notes_on_files_beside, remark_on_log
from tracker.compare.bottleneck import bottleneck
from tracker.compare.bubbles import with_known_bubbles
from tracker.compare.collectives import notes_of_groups
from tracker.compare.coverage import note_on_earlier_idle_rules, note_on_older_steps
from tracker.compare.filters import check_exchange, check_named, matching
from tracker.compare.kernels import kind_of
from tracker.compare.largest import largest_names
from tracker.compare.loading import load_all
from tracker.compare.median_run import choose_median_run
from tracker.compare.memory import note_on_blocks
from tracker.compare.module_times import module_times
from tracker.compare.notes import left_out, notes_on_waiting_runs, warnings
from tracker.compare.operators import own_time, with_host_spread
from tracker.compare.overall import (
    names_of_throughput,
    note_on_outside_work,
    note_on_steps_without_time,
    step_numbers,
)
from tracker.compare.overall_rows import CORE_TIMES, core_times
from tracker.compare.per_step import of_rows, query_fine, with_number
from tracker.compare.references import find_named, needs_store
from tracker.compare.side import GRAIN, rows_of_captures
from tracker.compare.slow_steps import list_slow_steps
from tracker.compare.step_kinds import count_kinds, keep_kind
from tracker.compare.summaries import with_share
from tracker.profile import NO_OP, NPU_VENDOR, STEP_SPREAD, UNLINKED_OP
from tracker.profile.code_lines import code_line
from tracker.profile.words import BESIDE_COMPUTE, COPIES
from tracker.readers import outside_ranges
from tracker.regressions.inbox import leading_cause_of
from tracker.regressions.sides import OpenFinding, find_open_finding
from tracker.regressions.standings import find_undecided_step
from tracker.regressions.track import TrackRuns, runs_of_track
from tracker.results import Advice, Shown, ShowOptions
from tracker.results.advice import AdviceRow, EfficiencyRow
from tracker.results.columns import MATCHED_COLUMNS
from tracker.schema.column_names import (
    ALLOCATOR,
    CALL_STACK,
    CALLS,
    CANONICAL_NAME,
    CATEGORY,
    CAUSE,
    CORE_TYPE,
    DEVICE_SELF_NS,
    DURATION_NS,
    E2E_NS,
    FORMAT,
    GROUP_ROLE,
    HOST_SELF_NS,
    INPUT_SHAPES,
    KERNELS,
    LEAD_NS,
    MAX,
    MAX_NS,
    METRIC,
    MIN,
    MIN_NS,
    MODULE,
    NAME,
    QUEUED,
    RANK,
    RANKS,
    RANKS_AWAITED,
    RUN_ID,
    SAMPLES_PER_SECOND,
    SOURCE,
    STAGE,
    START_NS,
    STEP,
    STEPS,
    TIME_NS,
    TOTAL_NS,
    TYPE,
    VENDOR,
    WHOLE_NS,
)
from tracker.schema.series import UNPROFILED_STEP
from tracker.store import queries
from tracker.store import tracks as stored_tracks
from tracker.store.samples.statistics import over_steps
from tracker.table import (
    AddUp,
    add_up_rows,
    is_among,
    number_distinct_rows,
    number_tables,
    rank_values,
    sort_largest_first,
)
from tracker.units import NS_PER_MS

if TYPE_CHECKING:
    from tracker.compare.side import LoadedSide
from tracker.store import Store

Tables = dict[str, Columns]
_METRIC_KERNEL = (NAME, CANONICAL_NAME, TYPE, CORE_TYPE, INPUT_SHAPES)
_NUMBERED = (queries.ops, queries.kernels, queries.communication, queries.api, queries.idle)
"""Questions whose rows are series, or parts of one."""
_OF_WHOLE_CAPTURE = (queries.memory, queries.memory_allocators)
_MOST_ADVICE = 3
_OF_DEVICE: Final = (
    "compute_ns", "communication_ns", "overlap_ns", "exposed_communication_ns", "copy_ns", "exposed_copy_ns",
    "idle_ns", "idle_share", "host_idle_ns", "data_loading_idle_ns", "rest_ns", *CORE_TIMES,
)  # fmt: skip
"""Numbers of a step that rest on all work of the device."""
_WHY_IDLE: Final = ("idle", "idle_causes", "queues")
_TYPE_NUMBERS: Final[Mapping[str, AddUp]] = {CALLS: "known", TOTAL_NS: "known", MIN_NS: "min", MAX_NS: "max"}


def show(store: Store | None, reference: str, *, options: ShowOptions | None = None) -> Shown:
    """Return what the database (or the path) `reference` holds of one run; docs/compare.md, "Sides", lists the
    references.

    Sums over steps and ranks, unless `options.by` asks for `rank` or `step`. Of several runs of a version it is the one
    of the median step, which the first note says. Raises UsageError when a path names several runs, a version those of
    several devices or configurations, or `options.steps` a step that is not there.
    """
    options = options or ShowOptions()
    with ExitStack() as stack:
        if store is not None and needs_store(reference):
            stack.enter_context(store.reading())
        sides = find_named(store, (reference,), options.workload)
        (reference,), runs = sides.references, sides.runs
        (side,) = load_all(store, (reference,), options, stack, runs=runs, steps=(options.steps,), or_pruned=True)
        if len(side.run_ids) > 1:
            whole = side.leave_out_partial()
            run_id, which = choose_median_run(whole)
            shown = show(store, f"run:{run_id}", options=options)
            waiting = notes_on_waiting_runs((side,))
            return replace(shown, notes=(*sides.notes, which, *whole.left_out, *waiting, *shown.notes))
        side, on_kinds = keep_kind(with_known_bubbles(side), options.step_kind)
        _check_filters(side, options)
        shown = _show_run(store, side, options, reference)
        notes = (*sides.notes, *on_kinds)
        return replace(shown, notes=(*notes, *shown.notes)) if notes else shown


def _show_run(store: Store | None, side: LoadedSide, options: ShowOptions, reference: str) -> Shown:
    """Return the one run of a side. `store`: of the command; the side of a path has one of its own."""
    captures = _captures(side)
    track, open_finding = _find_track(store, side)
    tables = _tables(side, options, ("run", *options.grains))
    advice = _advice(side) if options.with_advice else RunAdvice(step_ns=0.0)
    most = choose_advice(advice)
    of_advice = {
        "efficiency": Columns.of_structs(EfficiencyRow, advice.efficiency),
        "advice": Columns.of_structs(AdviceRow, [item.row for item in most]),
    }
    return Shown(
        run={"reference": reference, **side.runs.records()[0], **_steps_of(side), **_times(side, captures)},
        tables=_leave_out_lost(side, tables | _whole_tables(side, captures) | _summaries(tables, side) | of_advice),
        advice=most,
        options=options,
        is_pruned=bool(side.pruned_runs()),
        bottleneck=bottleneck(side),
        partial=side.partial,
        slow_steps=list_slow_steps(side),
        tree_table=tree_tables.show_tree(side, options) if options.tree else None,
        notes=tuple(_list_notes(store, side, tables["ops"], options, open_finding)),
        against=_against_level(side, track, open_finding),
    )


def _steps_of(side: LoadedSide) -> dict[str, Any]:
    """Return of which kind the steps are that are shown, "" where that has no name, and how many of several kinds."""
    if side.step_kind:
        return {"steps": side.side.steps, "step_kind": side.step_kind}
    kinds = [*count_kinds(side)]
    return {"step_kind": kinds[0] if len(kinds) == 1 else ""}


def _leave_out_lost(side: LoadedSide, tables: Tables) -> Tables:
    """Return the tables without why the device idles, where records are lost on which that rests."""
    if side.partial.has_whole_steps:
        return tables
    return {name: rows.head(0) if name in _WHY_IDLE else rows for name, rows in tables.items()}


def _list_notes(
    store: Store | None, side: LoadedSide, ops: Columns, options: ShowOptions, open_finding: OpenFinding | None
) -> list[str]:
    """Return what limits the numbers of the run, the most important first. `open_finding`: the first of its version."""
    is_stored = store is not None and side.store is store
    beside = (*note_on_documents(side), *notes_on_files_beside(side)) if is_stored else ()
    beside = (*remark_on_log(side), *beside)
    return [
        *_note_on_ranks(side),
        *notes_on_waiting_runs((side,)),
        *note_on_older_steps(side),
        *note_on_earlier_idle_rules(side),
        *beside,
        *_note_on_open_finding(open_finding),
        *left_out((side,)),
        *warnings((side,)),
        *note_on_outside_work(side),
        *note_on_steps_without_time(side),
        *note_on_blocks(side, set(side.captures.rows(RUN_ID, RANK))),
        *notes_of_groups((side,)),
        *_without_range(side, ops, options),
    ]


def _note_on_ranks(side: LoadedSide) -> Iterator[str]:
    """Yield that the run is not judged, where it has fewer ranks than it should."""
    for ranks, awaited in side.runs.rows(RANKS, RANKS_AWAITED):
        if awaited is not None:
            yield f"It has {ranks} of {awaited} ranks: it is not judged, and in no history."


def _advice(side: LoadedSide) -> RunAdvice:
    """Return what could make the run faster; of a pruned one what was stored."""
    (run_id,) = side.run_ids
    if side.pruned_runs():
        return stored.of_runs(side.store, [run_id]).get(run_id, RunAdvice(step_ns=0.0))
    return with_remedies(of_run(side.store, run_id))


def choose_advice(found: RunAdvice) -> tuple[Advice, ...]:
    """Return the pieces of advice that a screen of a run has: those that could win most."""
    return tuple(item for item in found.items if item.is_shown)[:_MOST_ADVICE]


def _note_on_open_finding(found: OpenFinding | None) -> Iterator[str]:
    """Yield what is worse in the version of a run, where that is not its step, which the headline has."""
    if found is not None and found.step_incident_id is None:
        yield f"{found.words}; tracker findings has all that is open."


def _against_level(side: LoadedSide, track: TrackRuns | None, found: OpenFinding | None) -> str:
    """Return how the step of the version of a run compares with its level, and why, in a clause; "" where nothing is
    open of it and no further run would decide it. `track`: of the run; `found`: the first finding that is open.
    """
    if found is not None and found.step_incident_id is not None:
        why = leading_cause_of(side.store, found.workload, found.step_incident_id)
        words = f"{found.words[:1].lower()}{found.words[1:]}"
        return f"{words}: {why}" if why else words
    if track is None:
        return ""
    is_on_device = side.side.timeline == "device"
    undecided = find_undecided_step(side.store, track, side.run_ids[0], is_on_device=is_on_device)
    return "" if undecided is None else undecided.words


def _find_track(store: Store | None, side: LoadedSide) -> tuple[TrackRuns | None, OpenFinding | None]:
    """Return the track of a stored run, and the first finding that is open in its version; None where there is none."""
    if store is None or side.store is not store:
        return None, None
    with store.connect() as connection:
        keys = stored_tracks.list_tracks(connection, [side.run_ids[0]])
        if not keys:
            return None, None
        track = runs_of_track(connection, keys[0])
        return track, find_open_finding(connection, track, side.run_ids[0])


def _whole_tables(side: LoadedSide, captures: Columns) -> Tables:
    """Return what no filter and no grain concerns."""
    steps, overall = _with_spread(side), summaries.with_shares(captures.without(RUN_ID))
    return {
        "overall": overall.without(WHOLE_NS),
        "steps": steps,
        "rank_summary": summaries.of_ranks(overall),
        "step_summary": summaries.of_steps(steps),
        "memory_curve": _memory_curve(side),
        "facts": side.query_with(queries.facts).without(RUN_ID),
        "sources": queries.sources(side.store, side.run_ids).without(RUN_ID),
    }


def _summaries(tables: Tables, side: LoadedSide) -> Tables:
    """Return the sums of the tables that pass the filters, and the peaks themselves."""
    return {
        "kernel_pipes": summaries.of_metrics(tables["kernel_metrics"]),
        "link_totals": summaries.of_links(tables["communication_links"]),
        "counter_summary": summaries.of_counters(tables["counters"]),
        "idle_causes": _idle_causes(side),
        "memory_peak_totals": summaries.of_peaks(_owners(side)),
    }


def _idle_causes(side: LoadedSide) -> Columns:
    """Return the idle time by cause, all places together, the largest first; `steps`: in how many steps it is."""
    numbers: dict[str, AddUp] = {"ns": "known", "gaps": "known"}
    # places are many, and causes few
    fine = add_up_rows(query_fine(side, queries.idle), [RUN_ID, *GRAIN, CAUSE], numbers)
    steps_of_cause = Counter(fine.listed(CAUSE))
    sums = sort_largest_first(add_up_rows(fine, [CAUSE], numbers), ["ns"], [CAUSE])
    sums = sums.having(steps=np.array([steps_of_cause[cause] for cause in sums.listed(CAUSE)], dtype=np.int64))
    return with_share(of_rows(side, sums, fine, ("cause",), "ns"), "ns")


def _queues(table: Columns) -> Columns:
    """Return how far ahead of the device each stream is launched: means over its kernels."""
    kernels = table.reals(KERNELS)
    return (
        table.having(mean_lead_ns=table.reals(LEAD_NS) / kernels, queued_share=table.reals(QUEUED) / kernels)
        .without(LEAD_NS)
        .without("queued")
    )


def _with_spread(side: LoadedSide) -> Columns:
    """Return the steps with `shortest_ns` and `longest_ns`: of a row that is the mean of several steps NA, unless the
    source names the shortest and the longest of them.
    """
    steps = side.steps.without(RUN_ID).without(WHOLE_NS)
    alone, duration = steps.integers(STEPS) == 1, steps.integers(DURATION_NS)
    unknown = ~(alone & steps.known(DURATION_NS))
    ends = [Column(np.where(unknown, 0, duration), unknown.copy()) for _ in range(2)]
    if not alone.all():
        counted = counters.of_side(side, ("run", "rank"))
        of_steps = (counted[SOURCE] == STEP_SPREAD[0]) & (counted[NAME] == STEP_SPREAD[1])
        for rank, *found in counted.taken(of_steps).rows(RANK, MIN, MAX):
            at = ~alone & (steps.integers(RANK) == rank)
            for end, number in zip(ends, found, strict=True):
                end.values[at], end.missing[at] = round(number * NS_PER_MS), False
    return steps.having(shortest_ns=ends[0], longest_ns=ends[1])


def _without_range(side: LoadedSide, ops: Columns, options: ShowOptions) -> list[str]:
    """Return how much device time of a capture lies in no range of the program, where other work does."""
    own, name = ops.integers(DEVICE_SELF_NS), ops[NAME]
    outside, whole = int(own[name == NO_OP].sum()), int(own[name != UNLINKED_OP].sum())
    (format,) = side.runs.listed(FORMAT)
    is_filtered = options.op or options.module or options.minimum_ns is not None
    return [] if is_filtered else [text for text in (outside_ranges(format, outside, whole),) if text]


def _check_filters(side: LoadedSide, options: ShowOptions) -> None:
    """UsageError where a filter names what the run does not have; nothing is known of one without details."""
    if side.pruned_runs():
        return
    if options.op:
        names: list[str] = []
        for question, column in ((queries.ops, "name"), (queries.kernels, "op"), (queries.memory, "op")):
            names += side.query(question, in_steps=False).listed(column)
        check_named("operator", options.op, names, (side,))
    if options.module:
        check_named("module", options.module, side.query(queries.ops, in_steps=False).listed(MODULE), (side,))
    check_exchange(options, (side,))


class _Choice(Struct, frozen=True):
    """What of a run a table may hold: what the filters let through, at the grain that was chosen.

    `by`: the columns that tell the rows of a table from each other, beside its key: run, and maybe rank and step.
    """

    side: LoadedSide
    options: ShowOptions
    by: Sequence[str]

    def list_rows(self, question: queries.Question) -> Columns:
        """Return the answer to a question: of what the steps launched; of memory, of the whole capture.

        With the number per step, where rows are series.
        """
        in_steps = self.side.has_markers and question not in _OF_WHOLE_CAPTURE
        table = self.side.query(question, by=self.by, in_steps=in_steps)
        if question is queries.communication:
            table = collectives.name_task_waits(self.side, table, by=self.by, in_steps=in_steps)
        if question in _NUMBERED:
            table = with_number(self.side, table, question)
        return table.without(RUN_ID)

    def keep_operators(self, table: Columns, column: str) -> Columns:
        """Return the rows whose operator, named in `column`, and module pass the filters."""
        return matching(matching(table, column, self.options.op), "module", self.options.module)

    def keep_large(self, table: Columns, *columns: str) -> Columns:
        """Return the rows in which one of these times is at least that of --min-us."""
        least_ns = self.options.minimum_ns
        if least_ns is None:
            return table
        return table.taken(np.logical_or.reduce([table.integers(name) >= least_ns for name in columns]))


def _tables(side: LoadedSide, options: ShowOptions, by: Sequence[str]) -> Tables:
    """Return what passes the filters: what the steps launched, but for memory, which is that of the whole capture."""
    choice = _Choice(side, options, by)
    every_kernel = choice.list_rows(queries.kernels)
    # of a thousand ranks the rows of each rank and step are most of the memory
    side.forget(queries.kernels)
    is_copy = is_among(every_kernel[CATEGORY], COPIES)
    # shares are of all rows of a table, so they come before the filters
    kernels_of_ops = choice.keep_operators(with_share(every_kernel.taken(~is_copy), TOTAL_NS), "op")
    copies_of_ops = choice.keep_operators(with_share(every_kernel.taken(is_copy), TOTAL_NS), "op")
    kernels = choice.keep_large(kernels_of_ops, TOTAL_NS)
    timed_ops = with_share(with_host_spread(side, choice.list_rows(queries.ops)), own_time(side))
    named_ops = choice.keep_operators(timed_ops, "name")
    # of a name all shapes count, those that are below the least time, too
    largest = largest_names(side, named_ops, kernels_of_ops, options)
    ops = choice.keep_large(named_ops, HOST_SELF_NS, DEVICE_SELF_NS)
    modules = _modules(side, ops, options)
    side.forget(queries.ops)
    return {
        "largest": choice.keep_large(largest, TOTAL_NS),
        "ops": ops,
        "kernels": kernels,
        "copies": choice.keep_large(copies_of_ops, TOTAL_NS),
        "communication": _collectives(choice),
        "memory": _with_allocators(
            choice.keep_operators(choice.list_rows(queries.memory), "op"),
            choice.keep_operators(choice.list_rows(queries.memory_allocators), "op"),
        ),
        "api": choice.keep_large(choice.list_rows(queries.api), TOTAL_NS),
        "idle": with_share(choice.list_rows(queries.idle), "ns"),
        "queues": _queues(choice.list_rows(queries.queue)),
        "modules": modules,
        "kernel_metrics": _kernel_metrics(side, options, kernels),
        "communication_links": _links(choice),
        "counters": counters.of_side(side, by).without(RUN_ID),
        "input_operations": input_pipeline.list_operations(input_pipeline.counters_of(side, by)),
        "input_queues": input_pipeline.list_queues(input_pipeline.counters_of(side, by)),
        "operator_arguments": operator_arguments.list_arguments(side, by, every_kernel),
        "kernel_types": _kernel_types(kernels, every_kernel),
        "memory_peak": choice.keep_operators(with_share(_owners(side), "bytes", ("rank", "component")), "op"),
        "memory_blocks": choice.keep_operators(_blocks(side), "op"),
        **_tables_of_levels(choice),
    }


def _tables_of_levels(choice: _Choice) -> Tables:
    """Return the tables whose rows are those of a level as they are."""
    found: Tables = {}
    for name, columns in MATCHED_COLUMNS.items():
        if columns.level:
            found[name] = with_share(choice.list_rows(queries.of_level(columns.level)), TOTAL_NS)
    return found


def _collectives(choice: _Choice) -> Columns:
    rows = choice.list_rows(queries.communication)
    chosen = matching(matching(rows, "kind", choice.options.kind), GROUP_ROLE, choice.options.group)
    return choice.keep_large(chosen, TOTAL_NS)


def _links(choice: _Choice) -> Columns:
    side = choice.side
    return collectives.links_of_side(side, choice.options, choice.by, in_steps=side.has_markers).without(RUN_ID)


def _modules(side: LoadedSide, ops: Columns, options: ShowOptions) -> Columns:
    """Return the time of each module and phase, of these operators, with the number per step."""
    times = module_times(ops, options.grains)
    return of_rows(side, times, query_fine(side, queries.ops), ("module", "phase"), own_time(side))


def _captures(side: LoadedSide) -> Columns:
    """Return the captures, NA for no stage, of the chosen steps."""
    stage = side.captures.integers(STAGE)
    captures = side.captures.having(stage=Column(stage, stage < 0))
    return captures if side.chosen_steps is None else _summed_steps(captures, side.steps)


def _kernel_metrics(side: LoadedSide, options: ShowOptions, kernels: Columns) -> Columns:
    """Return the metrics of the kernels, in the order of these, over the whole capture."""
    by = tuple(grain for grain in options.grains if grain == "rank")
    table = side.query_with(queries.kernel_metrics, by=by, ranks=side.ranks).without(RUN_ID)
    if side.is_part:  # the profiler does not say in which step
        table = table.head(0)
    key = [*by, *_METRIC_KERNEL]
    place: dict[tuple[Any, ...], int] = {}
    for kernel in kernels.rows(*key):
        place.setdefault(kernel, len(place))
    at = np.array([place.get(kernel, -1) for kernel in table.rows(*key)], dtype=np.int64)
    order = np.lexsort([rank_values(table[METRIC]), at])
    table = table.taken(order[at[order] >= 0])
    names = list(table.arrays)
    behind = names.index("metric") + 1
    table = table.having(kind=objects([kind_of(name) for name in table[METRIC]]))
    return table.only([*names[:behind], "kind", *names[behind:]])


def _kernel_types(kernels: Columns, every: Columns) -> Columns:
    """Return sums of the kernels whose type the profiler names, but for collectives, the longest first; `share`: of all
    of `every` kernel.
    """

    def typed(table: Columns) -> Columns:
        return table.taken((table[TYPE] != "") & ~is_among(table[CATEGORY], BESIDE_COMPUTE))

    key = [*summaries.grains_of(kernels), TYPE, CORE_TYPE]
    sums = sort_largest_first(add_up_rows(typed(kernels), key, _TYPE_NUMBERS), [TOTAL_NS], key)
    whole = int(typed(every).integers(TOTAL_NS).sum())
    return sums.having(share=sums.reals(TOTAL_NS) / (whole or np.nan))


def _summed_steps(captures: Columns, steps: Columns) -> Columns:
    """Return `captures` with the numbers of its chosen steps: sums, the largest peaks, the median rate.

    A row that is the mean of several steps counts as so many.
    """
    rank, weights = (RUN_ID, RANK), steps.integers(STEPS)
    how: dict[str, AddUp] = {
        name: "known" for name in steps.arrays if name in captures and name.endswith(("_ns", "_count"))
    }
    weighted = {name: Column(steps.integers(name) * weights, ~steps.known(name)) for name in how}
    how |= {name: "max" for name in steps.arrays if name.startswith("peak_")}
    sums = add_up_rows(steps.having(**weighted), rank, how)
    place = {key: at for at, key in enumerate(sums.rows(*rank))}
    at = np.array([place.get(key, -1) for key in captures.rows(*rank)], dtype=np.int64)
    found: dict[str, Any] = {name: Column(sums[name].values[at], sums[name].missing[at] | (at < 0)) for name in how}
    own, _ = number_distinct_rows([steps[name] for name in rank])
    rates = np.array(
        [
            over_steps(steps.reals(SAMPLES_PER_SECOND)[None, own == key], weights[own == key])[0]
            for key in range(len(sums))
        ]
    )
    return captures.having(**found, samples_per_second=np.where(at < 0, np.nan, rates[at]))


def _times(side: LoadedSide, captures: Columns) -> dict[str, object]:
    """Return the number of the step, and what the mean over all steps is; the E2E time of chosen steps.

    `measured_by`: `step_ns`, or `e2e_ns` in a capture without step markers, of which the parts add up to E2E.
    """
    numbers = step_numbers(side)
    if NPU_VENDOR in side.runs.listed(VENDOR):
        numbers = numbers | core_times(side)
    # how long the device worked and idled is not known where records of it are lost
    hidden = () if side.partial.has_whole_device else _OF_DEVICE
    times: dict[str, object] = {
        **{name: numbers.get(name) for name in ("step_ns", "mean_step_ns", UNPROFILED_STEP)},
        "measured_by": side.measured_by,
        "per_step": {name: ns for name, ns in numbers.items() if name not in hidden},
    }
    names = names_of_throughput(side)
    if len(names) == 1:
        times |= {"throughput": names.pop()}
    if side.chosen_steps is not None:
        known = [ns for ns in captures.listed(E2E_NS) if ns is not None]
        times |= {E2E_NS: int(fmean(known)) if known else None}
    return times


def _memory_curve(side: LoadedSide) -> Columns:
    """Return the points inside the chosen steps, which count their time alike: from the first event of the capture."""
    curve = rows_of_captures(side.query_with(queries.memory_curve), side.captures).without(RUN_ID)
    if side.chosen_steps is None:
        return curve
    rank, time = curve.integers(RANK), curve.integers(TIME_NS)
    kept = np.zeros(len(curve), dtype=bool)
    for number, start, duration in side.steps.rows(RANK, START_NS, DURATION_NS):
        if duration is not None:
            kept |= (rank == number) & (time >= start) & (time <= start + duration)
    return curve.taken(kept)


def _with_allocators(memory: Columns, fine: Columns) -> Columns:
    """Return `memory` with the allocator of most bytes of each row, and how many others there are."""
    key = [name for name in fine.arrays if name not in {"allocator", "calls", "bytes", "held_ns", "unreleased_bytes"}]
    (own, parts), _ = number_tables([memory, sort_largest_first(fine, ["bytes"], ["allocator"])], key)
    first = np.full(own.count, -1, dtype=np.int64)
    first[parts.number[::-1]] = np.arange(len(fine) - 1, -1, -1)
    others = np.bincount(parts.number, minlength=own.count) - 1
    names = [*parts.rows[ALLOCATOR].tolist(), None]
    return memory.having(
        allocator=objects([names[at] or None for at in first[own.number]]),
        more_allocators=Column(others, first < 0)[own.number],
    )


def _owners(side: LoadedSide) -> Columns:
    """Return what was held at the peaks; nothing of chosen steps, since a peak is one of the whole capture."""
    table = _of_memory(side, queries.memory_owners)
    return table if side.chosen_steps is None else table.head(0)


def _blocks(side: LoadedSide) -> Columns:
    """Return the largest single allocations, of the chosen steps."""
    table = _of_memory(side, queries.memory_blocks)
    return table if side.chosen_steps is None else table.taken(np.isin(table.integers(STEP), side.chosen_steps))


def _of_memory(side: LoadedSide, question: queries.Question) -> Columns:
    """Return the rows of the chosen ranks; the line of code last."""
    table = rows_of_captures(side.query_with(question), side.captures).without(RUN_ID)
    stacks = table[CALL_STACK]
    lines = objects([code_line(stack or "") or None for stack in stacks])
    return table.without(CALL_STACK).having(code_line=lines, call_stack=stacks)
