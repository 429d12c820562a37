"""The document of one run: how long a step takes, where its time goes, and its largest operators; all tables by
section as details, over its whole capture, the largest rows first.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from tracker.columns import Columns
from tracker.compare.references import FILES
from tracker.profile import (
    IDLE_REASONS,
    LOG_COUNTERS,
    OF_A_MOMENT,
    UNLINKED_OP,
    IdleCause,
    label_idle,
)
from tracker.reports import cells
from tracker.reports.cells import PARTS, ColumnsOf, cell, col, measured, number, of, per_call, readable, share, together
from tracker.reports.commands import command_of, options_of
from tracker.reports.document import (
    NAME,
    UNDER,
    WORDS,
    Bars,
    Block,
    Column,
    Curves,
    Document,
    Group,
    Lines,
    Look,
    Plot,
    PlotSeries,
    Table,
    Target,
    few,
    group,
)  # fmt: skip
from tracker.reports.rows import list_notes, list_options, plain, records, rows_of, table_of, unit_of
from tracker.reports.text import ROWS, shorten
from tracker.reports.view import View, choose_tables
from tracker.reports.views import bottleneck, input_pipeline, log_course, operator_arguments, sections, tree
from tracker.reports.views.advice import advice_table, efficiency_table
from tracker.reports.views.sections import CODE, COLLECTIVE, MODULE, OPERATOR, SHAPES, history_of, in_section, series_of
from tracker.reports.views.slow_steps import slow_steps_table
from tracker.results import GRAINS, LINK, PACKET, PIPE_TIME, TRANSPORT, Shown
from tracker.results.columns import MATCHED_COLUMNS
from tracker.results.machine_state import describe_machine
from tracker.results.recording import has_no_device_data, incomplete_of
from tracker.results.run_summary import (
    PARTS_OF_STEP,
    RANKS_BESIDE,
    KernelPipes,
    MemoryCourse,
    find_highest_peak,
    find_idle_reason,
    find_memory_course,
    group_pipes,
    has_device,
    list_step_ends,
    list_step_times,
    list_usual_idle_causes,
    mean_e2e_ns,
    order_counters,
    order_metrics,
    self_time_column,
    sum_largest_rows,
    sum_operators,
    whole_step_ns,
)
from tracker.results.sections import SECTION
from tracker.results.shown_rows import (
    AllocatedRow,
    BlockRow,
    CaptureRow,
    CollectiveRow,
    CounterRow,
    CounterSummaryRow,
    FactRow,
    IdleRow,
    KernelPipeRow,
    KernelRow,
    LargestRow,
    LinkTotalRow,
    MetricRow,
    OperatorRow,
    PeakOwnerRow,
    QueueRow,
    RankSummaryRow,
    SplitRow,
    StepOfRankRow,
    StepSummaryRow,
)
from tracker.schema.series import UNPROFILED_STEP
from tracker.units import (
    MISSING_TEXT,
    NS_PER_S,
    NS_PER_US,
    SAMPLES,
    counted,
    format_bytes,
    format_moment,
    format_ns,
    format_numbers,
    ranges,
    some_of,
    step_word,
    steps_words,
    time_unit,
)  # fmt: skip

if TYPE_CHECKING:
    from tracker.results.screens import Rows

SplitKind = TypeVar("SplitKind", bound=SplitRow)
_FACTS: Final = 12
_IDLE_PLACES: Final = 5
"""Places of idle time that a page lists first."""
_SPAN: Final = "E2E is the device's span: from the first start to the last end of its activity"
_FAR_AWAY: Final = 10
"""A step that took so many times as long as others does not choose their unit."""
_BREAKDOWN: Final = {
    "duration_ns": "duration", "e2e_ns": "E2E", "compute_ns": "  compute",
    "exposed_communication_ns": "  exposed communication", "exposed_copy_ns": "  exposed copies",
    "idle_ns": "  idle", "host_idle_ns": "    with nothing launched",
    "communication_ns": "communication", "overlap_ns": "  overlapped by compute", "copy_ns": "copies",
    "kernel_total_ns": "kernel time, summed", "unlinked_kernel_total_ns": "  without a launch",
    "kernel_count": "kernels", "data_loading_ns": "data loading", "data_loading_idle_ns": "  while the device idles",
    "bubble_ns": "pipeline bubble", "preparing_ns": "preparing", "samples_per_second": SAMPLES,
    "peak_allocated_bytes": "peak allocated", "peak_reserved_bytes": "peak reserved",
}  # fmt: skip
"""Row of the overall table -> its words."""
_DEVICE_ONLY: Final = ("kernel_total_ns", "unlinked_kernel_total_ns", "kernel_count", "copy_ns", "exposed_copy_ns")
_BESIDE: Final = ("data_loading_ns", "samples_per_second", "peak_allocated_bytes")
_WORTH_A_LINE: Final = 0.02
"""A cause of idle time, of the step."""
_CAUSES: Final = 4
_PLACE_LETTERS: Final = 60
_ALL: Final = 0.995
_CALLS: Final = col("calls")
_PER_STEP: Final = col("per step", "per_step_ns")
_TOTAL: Final = col("total", "total_ns")
_SHARE: Final = col("share")
_COMPONENT: Final = col("component")
_BYTES: Final = col("bytes")
_OP: Final = replace(OPERATOR, cell=of("op"))


def document(shown: Shown, look: Look) -> Document:
    """Return the report of a run: first the parts of a step and the largest operators, or the tree that was chosen."""
    remarks = _remarks(shown)
    notes = []
    if shown.bottleneck is not None and shown.partial.has_whole_steps:
        notes = [f"Bottleneck: {bottleneck.sentence(shown.bottleneck)}", *_idle_sentence(shown)]
    # a remark may end with what a note says, too
    more_notes = [note for note in shown.notes if not any(remark.endswith(note) for remark in remarks)]
    return Document(
        title=_title(shown),
        headline="; ".join(filter(None, (_headline(shown), shown.against))),
        remarks=tuple(remarks),
        blocks=tuple(_blocks(shown, look)),
        notes=(*notes, *_note_on_split_tables(shown, look), *few(more_notes, look), _origin(shown)),
        next_commands=tuple(_next(shown, look)),
    )


def _note_on_split_tables(shown: Shown, look: Look) -> list[str]:
    """Say where the tables are that `--by` splits, on a screen that has none of them."""
    split = [grain for grain in shown.options.grains if grain != "step"]
    if not split or look.only or look.details or look.has_drawings:
        return []
    return [f"Tables by {' and '.join(split)}: --details, or --only SECTION"]


def _title(shown: Shown) -> str:
    """Say which run it is: its number or its files, workload, version, device, configuration, ranks and steps."""
    run = shown.run
    is_of_files = run.get("workload") == FILES
    name = f"run {run.get('run_id')}"
    if is_of_files or not run.get("run_id"):
        paths = list(dict.fromkeys(shown.tables["sources"].listed("path")))
        name = str(run.get("reference") or "") or some_of(paths, most=2) or "run"
    what = "" if is_of_files else _joined(run, "workload", "version")
    device = _joined(run, "vendor", "device") or "unknown device"
    words = [what, device, str(run.get("configuration") or ""), _size(shown), _steps_chosen(shown)]
    state = ""
    if run.get("state", "active") != "active":
        state = f" [{run['state']}: {run.get('state_reason') or '-'}]"
    return f"{name}: {', '.join(filter(None, words))}{state}"


def _joined(run: Mapping[str, Any], *names: str) -> str:
    return " ".join(str(run[name]) for name in names if run.get(name))


def _size(shown: Shown) -> str:
    """Say how many ranks the run has, and of how many; of one rank, which."""
    expected, ranks = shown.run.get("ranks_expected"), shown.run.get("ranks")
    if expected and expected != ranks:
        return f"{ranks} of {expected} ranks"
    if ranks == 1:
        rank = next(iter(shown.tables["overall"].listed("rank")), None)
        return f"rank {number(rank)}"
    return counted(ranks or 0, "rank")


def _steps_chosen(shown: Shown) -> str:
    steps = shown.run.get("steps")
    if not steps:
        return "no step markers"
    of_all = counted(steps, step_word(shown.run.get("step_kind") or ""))
    return steps_words(shown.options.steps) if shown.options.steps else of_all


def _remarks(shown: Shown) -> list[str]:
    """Return the tags of the run, and which ranks are not like the others, and why."""
    tags = shown.run.get("tags")
    machine = describe_machine({fact.key: fact.value for fact in _list_facts(shown)})
    remarks = [*shown.partial.sentences, *([f"tags: {tags}"] if tags else [])]
    if machine:
        remarks.append(machine)
    ranks_of_reason: dict[str, list[int]] = {}
    for row in rows_of(CaptureRow, shown.tables["overall"]):
        # what a check found stands above
        if row.quality != "ok" and incomplete_of(json.loads(row.settings or "{}")) is None:
            reason = f"{row.quality}: {row.quality_reason}"
            ranks_of_reason.setdefault(reason, []).append(row.rank or 0)
    for reason, ranks in ranks_of_reason.items():
        if len(ranks) == 1:
            remarks.append(f"rank {ranks[0]} is {reason}")
        else:
            remarks.append(f"ranks {ranges(sorted(ranks))} are {reason}")
    return remarks


def _list_facts(shown: Shown) -> list[FactRow]:
    return [row for row in rows_of(FactRow, shown.tables["facts"]) if row.kind == "fact"]


def _origin(shown: Shown) -> str:
    """Say when the run started, and in which format it was recorded."""
    run = shown.run
    started_at_ns, world_size = run.get("started_at_ns"), run.get("world_size")
    started = f"started {format_moment(started_at_ns)} UTC, " if started_at_ns else ""
    world = f", world size {world_size}" if world_size else ""
    return f"{started}format {run.get('format') or MISSING_TEXT}{world}"


def _headline(shown: Shown) -> str:
    """Say how long a step takes, of how long to how long; without step markers how long the device works."""
    run, ranks = shown.run, len(shown.tables["overall"])
    step, of_log = run.get("step_ns"), run.get(UNPROFILED_STEP)
    if step is not None and run["measured_by"] == "step_ns":
        ends = list_step_ends(shown)
        is_spread = len(ends) > 2 and min(ends) != max(ends)
        spread = f" ({cells.times(min(ends), max(ends), to='to')})" if is_spread else ""
        unit = time_unit(step, *(end for end in ends if end < step * _FAR_AWAY))
        if of_log is not None and of_log != step:
            # what the user pays; what follows explains the one that the profiler made longer
            traced = f"under the profiler {format_ns(step, time_unit(step, of_log))}{spread}"
            shown_step = format_ns(of_log, time_unit(step, of_log))
            return f"{shown_step} per step by the timer log, without a profiler; {traced}{_without_device(shown)}"
        return f"{format_ns(step, unit)} per step{spread}{_without_device(shown)}"
    e2e = mean_e2e_ns(shown)
    if e2e is None:
        return "The source states neither a step time nor how long the capture is"
    mean = f" (mean of {counted(ranks, 'rank')})" if ranks > 1 else ""
    log = f"{format_ns(of_log)} per step by the timer log, without a profiler; " if of_log is not None else ""
    whole = f"a capture of {format_ns(step)}" if step is not None and round(step) > round(e2e) else "the whole capture"
    return f"{log}E2E {cell(e2e, 'ns')}{mean} of {whole}{_without_device(shown)}"


def _without_device(shown: Shown) -> str:
    """Say which ranks have no event of their device."""
    rows = rows_of(CaptureRow, shown.tables["overall"])
    ranks = [row.rank or 0 for row in rows if has_no_device_data(row.settings or "{}")]
    if not ranks:
        return ""
    return ", no device data" if len(ranks) == len(rows) else f", no device data of rank {ranges(sorted(ranks))}"


def _blocks(shown: Shown, look: Look) -> Iterator[Block]:
    limit = look.rows(ROWS)
    if shown.tree_table is not None:
        yield tree.of_run(shown, look)
        if not look.only:
            return
    parts = _step(shown)
    if parts.rows:
        yield _beside_slowest_step(parts, shown) if look.has_drawings else parts
    if look.has_drawings and not look.only:
        yield from _answers_of_a_page(shown)
    if shown.slow_steps:
        step_ns, mean_ns = shown.run.get("step_ns"), shown.run.get("mean_step_ns")
        cost_ns = None if step_ns is None or mean_ns is None else mean_ns - step_ns
        yield slow_steps_table({"": shown.slow_steps}, look, cost_ns)
    if "step" in shown.options.grains:
        yield _each_step(shown, look.rows(ROWS))
    course = log_course.table_of_course(rows_of(CounterRow, shown.tables["counters"]), shown.run.get("ranks") or 1)
    if course is not None:
        yield course
    elif len(shown.tables["ops"]) or len(shown.tables["kernels"]) or not _is_log(shown):
        yield _largest(shown, look)
    if look.has_drawings and not look.only and "step" not in shown.options.grains and len(shown.tables["steps"]) > 1:
        yield replace(_each_step(shown, look.rows(ROWS)), chart=_course_of_steps(shown), is_first=False)
    for section in look.sections():
        found = tables_of_section(section, shown, limit)
        yield from in_section(found, section, look.only, shown.options, shown.is_pruned)
        if section == "memory" and look.has_drawings:
            yield from _memory_over_time(shown, limit)
    if shown.advice and not look.only and not look.has_drawings:
        yield _advice(shown)
    # what is of the moment stands behind what is of the environment
    facts = sorted(_list_facts(shown), key=lambda row: row.key in OF_A_MOMENT)
    if facts:
        more = [f"and {len(facts) - _FACTS} more"] if len(facts) > _FACTS and not look.details else []
        listed = facts if look.details else facts[:_FACTS]
        yield Lines("Facts", tuple([f"{row.key}={row.value}" for row in listed] + more), is_first=False)


def _answers_of_a_page(shown: Shown) -> Iterator[Table]:
    """Yield what a page says first of a run beside its step: what could make it faster, and where the device idles."""
    if shown.advice:
        # its rows and the bar of the page lead to all of it
        yield replace(_advice(shown), title="What could make it faster", is_first=True)
    for one in tables_of_section("idle", shown, _IDLE_PLACES)[:1]:
        if one.rows:
            title = f"{one.title}: the largest places" if one.more else one.title
            yield replace(one, title=title, more=0, is_first=True)


def _advice(shown: Shown) -> Table:
    made = advice_table(shown.advice, str(shown.run["workload"]))
    return replace(made, title="What could make it faster: tracker advise has all of it")


def _beside_slowest_step(parts: Table, shown: Shown) -> Table:
    """Return the parts of the step with the slowest step beside it, where one is clearly slower."""
    chart = parts.chart
    rows = [row for row in rows_of(StepOfRankRow, shown.tables["steps"]) if row.duration_ns]
    if not isinstance(chart, Bars) or not shown.slow_steps or not rows:
        return parts
    slowest = max(rows, key=lambda row: row.duration_ns or 0)
    names = [name for name in PARTS_OF_STEP if (shown.run.get("per_step") or {}).get(name)]
    values = tuple(float(getattr(slowest, name, None) or 0.0) for name in names)
    side = (f"slowest: step {slowest.step}", format_ns(slowest.duration_ns), values)
    return replace(parts, chart=replace(chart, sides=(*chart.sides, side)))


def _is_log(shown: Shown) -> bool:
    """Return whether a log was read, which has no operators."""
    return shown.run.get("format") == LOG_COUNTERS


def _step(shown: Shown) -> Table:
    """Show the parts of a step, or of the capture without step markers, with their share; memory below."""
    numbers: Mapping[str, Any] = shown.run.get("per_step") or {}
    step_ns = shown.run.get("step_ns") if shown.run["measured_by"] == "step_ns" else None
    whole_ns = whole_step_ns(shown)
    parts = {name: numbers[name] for name in PARTS_OF_STEP if numbers.get(name)}
    unit = time_unit(*parts.values())
    rows = []
    for name, value in parts.items():
        rows.append(_PartOfStep(PARTS[name], format_ns(value, unit), value / whole_ns if whole_ns else None))
        if name == "compute_ns":
            rows += _work_of_cores(shown, whole_ns)
        if name == "idle_ns":
            rows += _why_idle(shown, whole_ns)
    for name in _BESIDE:
        if numbers.get(name):
            is_rate = name == "samples_per_second"
            text = measured(numbers[name]) if is_rate else cell(numbers[name], unit_of(name))
            rows.append(_PartOfStep(_name_number(shown, name, PARTS), text))
    word = "step" if step_ns else "E2E"
    columns = [_part.text("", lambda row: row.label), _part.number("", lambda row: row.text)]
    if any(row.share is not None for row in rows):
        columns.append(_part.number(f"of {word}", lambda row: "" if row.share is None else share(row.share)))
    chart = None
    if parts:
        labels = tuple(PARTS[name] for name in parts)
        chart = Bars(labels, ((word, format_ns(whole_ns or None), tuple(parts.values())),))

    def bar(row: _PartOfStep) -> float | None:
        return None if row.is_below else row.share

    return table_of("", columns, rows, is_first=True, bars=bar, chart=chart)


class _PartOfStep(Struct, frozen=True):
    """A part of a step. `share`: of the step; `is_below`: it is a part of the part above."""

    label: str
    text: str
    share: float | None = None
    is_below: bool = False


_part: Final = ColumnsOf(_PartOfStep)


def _work_of_cores(shown: Shown, whole_ns: float) -> list[_PartOfStep]:
    """Return the time of the operators on cube and on vector cores of an NPU, where they are told apart."""
    numbers: Mapping[str, Any] = shown.run.get("per_step") or {}
    known = {label: numbers[name] for name, label in cells.CORES.items() if name in numbers}
    unit = time_unit(*known.values())
    parts = []
    for label, ns in known.items():
        of_step = ns / whole_ns if whole_ns else None
        parts.append(_PartOfStep(f"  {label}", f"  {format_ns(ns, unit)}", of_step, is_below=True))
    return parts


def _why_idle(shown: Shown, whole_ns: float) -> list[_PartOfStep]:
    """Return the largest causes of the idle time, where they are a part of the step worth a line."""
    times = [
        (row.cause, row.per_step_ns)
        for row in list_usual_idle_causes(shown)
        if row.cause != IdleCause.UNKNOWN.word and row.per_step_ns
    ]
    worth = [(cause, ns) for cause, ns in times if ns >= _WORTH_A_LINE * whole_ns > 0][:_CAUSES]
    unit = time_unit(*(ns for _, ns in worth))
    parts = []
    for cause, ns in worth:
        parts.append(_PartOfStep(f"  {cause}", f"  {format_ns(ns, unit)}", ns / whole_ns, is_below=True))
    return parts


def _idle_sentence(shown: Shown) -> Iterator[str]:
    """Say why the device idles most, and where, of a step that idles for a part worth saying."""
    reason = find_idle_reason(shown)
    if reason is None:
        return
    cause = reason.cause
    text = f"Idle: {share(reason.share_of_idle)} of the idle time is {cause.word}: {IDLE_REASONS[cause]}"
    if reason.place:
        before = "before" if cause is IdleCause.DEPENDENCY else "in"
        text += "," if reason.share_of_cause > _ALL else f"; {share(reason.share_of_cause)} of that"
        text += f" {before} {shorten(reason.place, _PLACE_LETTERS)}"
    yield f"{text}."


def _name_number(shown: Shown, name: str, words: Mapping[str, str]) -> str:
    """Return the words of a number of the step; a throughput is named by what the source counts."""
    if name == "samples_per_second" and shown.run.get("throughput"):
        return str(shown.run["throughput"])
    return words[name]


def _each_step(shown: Shown, limit: int | None) -> Table:
    """Show one row per rank and step with its parts, in order."""
    steps = shown.tables["steps"]
    with_values = [name for name in ("marker_ns", *PARTS_OF_STEP) if name in steps and any(steps.listed(name))]
    number_of_run = shown.run.get("run_id")

    def step_alone(row: StepOfRankRow) -> Target | None:
        if number_of_run is None:
            return None
        return Target("run", (("RUN", str(number_of_run)), ("--rank", str(row.rank)), ("--step", str(row.step))))

    columns = [Column("step", _grain, left=True), col("time", "duration_ns")]
    for name in with_values:
        title = "host marker" if name == "marker_ns" else PARTS[name]
        columns.append(col(title, name, drop=1 if name == "marker_ns" else 2))
    return table_of("Each step", columns, steps, limit, kind=StepOfRankRow, is_first=True, links=step_alone, main=0)


def _course_of_steps(shown: Shown) -> Plot | None:
    """Return the time of each step: a series per rank, of many ranks the fastest, the median and the slowest one."""
    times = list_step_times(shown)
    steps = times.steps
    if len(steps) < 2:
        return None
    series = [PlotSeries(f"rank {rank}", "ns", tuple(own)) for rank, own in times.by_rank.items()]
    if not times.by_rank:
        labelled = {
            "slowest rank": times.slowest,
            f"median of {counted(times.ranks, 'rank')}": times.middle,
            "fastest rank": times.fastest,
        }
        series = [PlotSeries(label, "ns", tuple(own)) for label, own in labelled.items()]
    number_of_run = shown.run.get("run_id")
    links: list[Target | None] = []
    if number_of_run is not None:
        links += [Target("run", (("RUN", str(number_of_run)), ("--step", str(step)))) for step in steps]
    return Plot(
        names=tuple(map(str, steps)),
        heads=tuple(f"step {step}" for step in steps),
        series=tuple(series),
        links=tuple(links),
        leads_to="the step alone",
    )


def _largest(shown: Shown, look: Look) -> Table:
    """Show the operators with the most time per step, all shapes of a name together; kernels where no operator is
    known; the time of the whole capture where no step is marked.
    """
    rows = rows_of(LargestRow, shown.tables["largest"])
    word = rows[0].kind if rows else "operator"
    place = self_time_column(shown).split("_", maxsplit=1)[0] if word == "operator" else "device"
    what = f"{place} self time" if word == "operator" else f"{place} time"
    is_per_step = any(row.per_step_ns is not None for row in rows)
    single_calls = _calls_of(shown, word, _query_of_largest)

    def time_ns(row: LargestRow) -> float | None:
        return row.per_step_ns if is_per_step else row.total_ns

    def calls(row: LargestRow) -> str:
        return number(row.calls_per_step if is_per_step else row.calls)

    columns = [
        _largest_row.text(word, lambda row: readable(row.name), **NAME),
        _largest_row.number(what, lambda row: format_ns(time_ns(row))),
        _largest_row.number(f"of {word}s", lambda row: share(row.share)),
        _largest_row.number("calls", lambda row: "" if row.kind == _OTHERS else calls(row), link=single_calls),
    ]
    shown_rows = rows[: look.rows(ROWS)]
    other_rows = rows[len(shown_rows) :]
    if other_rows:
        shown_rows.append(sum_largest_rows(other_rows, kind=_OTHERS, name=f"{len(other_rows):,} other {word}s"))
    note = ""
    if not rows:
        note = sections.PRUNED if shown.is_pruned else f"no {word} has {what}"

    def link(row: LargestRow) -> Target | None:
        if row.kind == _OTHERS:
            return None
        kind = "op_name" if word == "operator" else "kernel"
        return history_of(shown.run.get("workload"), row.name, ("--kind", kind))

    return table_of(
        f"Largest {word}s, {_over_what(shown, is_per_step)}", columns, shown_rows, note=note, is_first=True,
        tone=lambda row: "sum" if row.kind == _OTHERS else "", links=link,
        bars=(lambda row: row.share) if look.has_drawings else (), has_shares=True,
    )  # fmt: skip


def _query_of_largest(row: LargestRow) -> list[tuple[str, str | None]]:
    return [("--calls", row.name)]


_largest_row: Final = ColumnsOf(LargestRow)
_OTHERS: Final = "others"
"""The kind of a row that stands for several of `largest`."""


def _calls_of(
    shown: Shown, kind: str, query: Callable[[SplitKind], Sequence[tuple[str, str | None]]]
) -> Callable[[SplitKind], Target | None]:
    """Return where the single calls of a row are listed; nowhere of files, which no page is of. `query`: the options
    that say of what the calls are.
    """
    run_id, chosen = shown.run.get("run_id"), shown.options
    same = [("--rank", str(rank)) for rank in chosen.ranks]
    if chosen.steps:
        same.append(("--step", format_numbers(chosen.steps)))

    def link(row: SplitKind) -> Target | None:
        if run_id is None or (isinstance(row, LargestRow) and row.kind == _OTHERS):
            return None
        named = [(name, value) for name, value in query(row) if value]
        of_row = []
        if row.rank is not None:
            of_row.append(("--rank", str(row.rank)))
        if row.step is not None:
            of_row.append(("--step", str(row.step)))
        kept = [pair for pair in same if pair[0] not in dict(of_row)]
        return Target("calls", (("RUN", str(run_id)), *named, ("--calls-of", kind), *of_row, *kept))

    return link


def _exactly(name: str | None) -> str:
    """Return the pattern that only this name fits."""
    return re.sub(r"([*?[])", r"[\1]", name or "")


def _over_what(shown: Shown, is_per_step: bool) -> str:
    """Return of what the numbers of the largest operators are: of a step, or of the whole capture."""
    ranks = shown.run.get("ranks") or 1
    if not is_per_step:
        return f"over the capture and {ranks} ranks" if ranks > 1 else "over the capture"
    chosen = f", {steps_words(shown.options.steps)}" if shown.options.steps else ""
    middle = f", median of {ranks} ranks" if ranks > 1 else ""
    return f"per step{chosen}{middle}"


def _over_all(shown: Shown) -> str:
    """Return what the sums of a table go over, as the end of its title: a column `per step` may stand beside them."""
    steps, ranks = shown.run.get("steps") or 0, shown.run.get("ranks") or 1
    if "step" in shown.options.grains:
        return ""
    parts = [f"all {ranks} ranks"] if ranks > 1 and "rank" not in shown.options.grains else []
    if shown.options.steps:
        parts.insert(0, steps_words(shown.options.steps))
    elif steps > 1:
        parts.insert(0, f"all {steps:,} steps")
    return f", {' and '.join(parts)}" if parts else ""


def _next(shown: Shown, look: Look) -> Iterator[str]:
    run_id, chosen = shown.run.get("run_id"), shown.options
    reference = str(shown.run.get("reference") or f"run:{run_id}")
    by = chosen.by if chosen.tree else ()
    words = options_of(chosen, ("--step", format_numbers(chosen.steps)), ("--by", by), ("--depth", chosen.depth))
    file = f"run{run_id or ''}.xlsx"
    more = [] if look.details or look.only or chosen.tree else ["--details"]
    if more:
        yield command_of(("tracker", "show"), [reference], [*words, *more])
        if sections.names_modules(shown.tables["modules"]):
            yield command_of(("tracker", "show"), [reference], [*words, "--by", "module"])
    yield command_of(("tracker", "show"), [reference], [*words, "-o", file])
    if more and not chosen.steps:
        yield command_of(("tracker", "advise"), [reference])


def _table(
    title: str, columns: Sequence[Column], rows: Columns | Sequence[SplitRow], limit: int | None, **parts: Any
) -> Table:
    """Return the first rows; where the table is split by rank or step, a first column names them."""
    of = [Column("of", _grain, left=True)] if _is_split(rows) else []
    return table_of(title, [*of, *columns], rows, limit, **parts)


def _is_split(rows: Columns | Sequence[SplitRow]) -> bool:
    if isinstance(rows, Columns):
        return len(rows) > 0 and any(name in rows for name in GRAINS)
    return any(row.rank is not None or row.step is not None for row in rows)


def _grain(row: SplitRow | StepOfRankRow) -> str:
    grains = [f"rank {number(row.rank)}"] if row.rank is not None else []
    if row.step is not None:
        grains.append(f"step {number(row.step)}")
    return ", ".join(grains)


def overall(shown: Shown, limit: int | None) -> list[Table]:
    """Return where the time went: a column per rank, or the spread over many ranks; then how steps differ."""
    overall = shown.tables["overall"]
    ranks = rows_of(CaptureRow, overall)
    spread = {row.metric: row for row in rows_of(RankSummaryRow, shown.tables["rank_summary"])}
    beside = len(ranks) <= RANKS_BESIDE
    heads = [f"rank {number(row.rank)}" for row in ranks] if beside else ["minimum", "median", "maximum", "at"]

    def numbers(name: str) -> list[str]:
        if not beside:
            return _spread(name, spread.get(name))
        values = [getattr(row, name, None) for row in ranks]
        return [cell(value, unit_of(name), *values) for value in values]

    def part(name: str) -> str:
        of_whole = spread[name].share if name in spread else None
        return "" if of_whole is None else share(of_whole)

    of_steps = {row.metric: row for row in rows_of(StepSummaryRow, shown.tables["step_summary"])}

    def per_step(name: str) -> str:
        row = of_steps.get(name)
        if row is None:
            return MISSING_TEXT
        # where rows are means of several steps, no median is known
        value = row.mean if row.median is None else row.median
        return cell(value, unit_of(name), value)

    hidden = () if has_device(shown) else _DEVICE_ONLY
    rows = [name for name in _BREAKDOWN if name not in hidden and overall.has(name)]
    timelines = ", ".join(dict.fromkeys(str(row.timeline) for row in ranks))
    what = steps_words(shown.options.steps) if shown.options.steps else "whole capture"
    has_steps = len(shown.tables["steps"]) > 1
    if has_steps:
        over = steps_words(shown.options.steps) if shown.options.steps else "the whole capture"
        what = f"per step and over {over}"
    title = f"Overall, {what} ({timelines} timeline, {counted(len(ranks), 'rank')})"
    columns = [
        Column("metric", lambda name: _name_number(shown, name, _BREAKDOWN), **WORDS),
        *([Column("per step", per_step)] if has_steps else []),
        group(map(Column, heads), numbers), Column("share", part),
    ]  # fmt: skip
    return [table_of(title, columns, rows, note=_SPAN if has_device(shown) else ""), _steps(shown)]


def _spread(name: str, row: RankSummaryRow | StepSummaryRow | None) -> list[str]:
    """Return minimum, median, maximum and where the maximum is."""
    if row is None:
        return [MISSING_TEXT] * 4
    ends = [cell(end, unit_of(name), row.maximum) for end in (row.minimum, row.median, row.maximum)]
    places = [f"rank {number(row.maximum_rank)}"] if row.maximum_rank is not None else []
    if isinstance(row, StepSummaryRow) and row.maximum_step is not None:
        places.append(f"step {number(row.maximum_step)}")
    return [*ends, ", ".join(places)]


def _steps(shown: Shown) -> Table:
    """Return the spread over all steps and ranks. Where rows are means of several steps, at most the shortest and the
    longest one are known.
    """
    summary = {row.metric: row for row in rows_of(StepSummaryRow, shown.tables["step_summary"])}
    steps = shown.tables["steps"]
    means = bool(summary) and all(row.median is None for row in summary.values())

    def numbers(name: str) -> list[str]:
        row = summary[name]
        if not means:
            return _spread(name, row)
        return [cell(end, unit_of(name), row.mean, row.maximum) for end in (row.minimum, row.mean, row.maximum)]

    names = ("duration_ns", "e2e_ns", *PARTS_OF_STEP, "samples_per_second")
    rows = [name for name in names if name in summary and summary[name].mean]
    heads = [Column("minimum"), Column("mean" if means else "median"), Column("maximum")]
    heads += [] if means else [Column("maximum at", left=True)]
    several = f", means of {counted(sum(steps.listed('steps')), 'step')}" if means else ""
    title = f"Steps ({counted(len(steps), 'row')} of rank and step{several})"
    words = Column("metric", lambda name: _name_number(shown, name, _BREAKDOWN).strip(), **WORDS)
    return table_of(title, [words, group(heads, numbers)], rows)


def operators(shown: Shown, limit: int | None) -> list[Table]:
    """Return operators with the most time, summed over modules, phases and types; device times where there is a device.

    `share`: of the self time of all ops. `average`, `minimum`, `maximum`: of a call, with what it calls.
    """
    times: dict[str, Column] = {}
    for place in ("device", "host") if has_device(shown) else ("host",):
        total = Column(f"{place} total", drop=3 if times else 2)
        times |= {f"{place}_self_ns": Column(f"{place} self"), f"{place}_total_ns": total}
    single_calls = _calls_of(shown, "operator", _query_of_operator)
    columns = [OPERATOR, SHAPES, replace(_CALLS, link=single_calls), _PER_STEP, together("ns", times), _SHARE]
    columns.append(per_call(self_time_column(shown).replace("self", "total"), 1, 4, 4))
    links = series_of(shown.run.get("workload"), _name_of_operator)
    title = f"Operators{_over_all(shown)}"
    return [_table(title, columns, sum_operators(shown), limit, kind=OperatorRow, links=links)]


def _query_of_operator(row: OperatorRow) -> list[tuple[str, str | None]]:
    return [("--calls", row.name), ("--shapes", row.input_shapes)]


def _name_of_operator(row: OperatorRow) -> str:
    return row.name


def kernels(shown: Shown, limit: int | None) -> list[Table]:
    """Return kernels, then copies and memsets, with the most time; with shapes where rows look alike without.

    The number per step is that of all rows of a kernel, and stands in the first of them.
    """
    single_calls = _calls_of(shown, "kernel", _query_of_kernel)
    found = []
    for title, name, first in (("Kernels", "kernels", "kernel"), ("Copies and memsets", "copies", "copy or memset")):
        every, is_copy = shown.tables[name], name == "copies"
        own = _distinguish(rows_of(KernelRow, every.head(limit)))
        unlinked = not is_copy and bool(own) and {*every.listed("op")} == {UNLINKED_OP}
        launched_by = [] if unlinked else [_kernel.text("launched by", lambda row: readable(row.row.op), **UNDER)]
        columns = [
            _kernel.text(first, lambda row: row.name, **NAME), *launched_by,
            _kernel.text("input shapes", lambda row: row.input_shapes, **UNDER),
            _kernel.text("category", lambda row: row.row.category, drop=2),
            *map(_of_kernel, (replace(_CALLS, link=single_calls),)),
            _kernel.number("per step", lambda row: format_ns(row.row.per_step_ns) if row.is_first else ""),
            *map(_of_kernel, [_TOTAL, _SHARE, *([_BYTES] if is_copy else []), per_call("total_ns", 1, 1, 1)]),
        ]  # fmt: skip
        if _is_split(every):
            columns.insert(0, _kernel.text("of", lambda row: _grain(row.row)))
        note = "No launch of them is in the capture, so no operator stands beside them." if unlinked else ""
        links = series_of(shown.run.get("workload"), _name_of_kernel, ("--kind", "kernel"))
        found.append(
            table_of(
                f"{title}{_over_all(shown)}", columns, own, None, more=len(every) - len(own), note=note, links=links
            )
        )
    return found


class _ShownKernel(Struct, frozen=True):
    """A kernel with the name and the shapes to show. `is_first`: it is the first row of its kernel."""

    row: KernelRow
    name: str
    input_shapes: str
    is_first: bool


_kernel: Final = ColumnsOf(_ShownKernel)


def _of_kernel(column: Column) -> Column:
    """Return the column of a row of `kernels` as that of a kernel with its name."""
    link = column.link
    if isinstance(column, Group):
        cells_of = column.cells
        return replace(column, cells=lambda shown: cells_of(shown.row))
    cell_of = column.cell
    of_row = None if link is None else lambda shown: link(shown.row)
    return replace(column, cell=lambda shown: cell_of(shown.row), link=of_row)


def _query_of_kernel(row: KernelRow) -> list[tuple[str, str | None]]:
    return [("--calls", row.name), ("--op", _exactly(row.op)), ("--shapes", row.input_shapes)]


def _name_of_kernel(shown: _ShownKernel) -> str:
    return shown.row.name


def _distinguish(rows: Sequence[KernelRow]) -> list[_ShownKernel]:
    """Return each kernel with the name and the shapes to show.

    Shapes (else those of its operator) where rows would look alike, the profiler's own name where they still do.
    """
    places: dict[tuple[str | None, ...], int] = {}
    first_rows = set()
    for place, row in enumerate(rows):
        series = (_grain(row), row.canonical_name, row.input_shapes, row.category)
        if series not in places:
            first_rows.add(place)
        places.setdefault(series, place)
    names = [readable(row.canonical_name or row.name) for row in rows]
    keys = [(_grain(row), name, row.op) for row, name in zip(rows, names, strict=True)]
    alike = Counter(keys)
    shapes = []
    for row, key in zip(rows, keys, strict=True):
        shapes.append((row.input_shapes or row.op_input_shapes or "") if alike[key] > 1 else "")
    still_alike = Counter(zip(keys, shapes, strict=True))
    found = []
    for place, row in enumerate(rows):
        is_told_apart = still_alike[keys[place], shapes[place]] == 1
        name = names[place] if is_told_apart else readable(row.name)
        found.append(_ShownKernel(row, name, shapes[place], place in first_rows))
    return found


def metrics(shown: Shown, limit: int | None) -> list[Table]:
    """Return, for the kernels with most time, the pipes that worked longest in their calls; then all metrics, of each
    kernel those that are nothing but zeros last.
    """

    def pipe(row: KernelPipeRow) -> str:
        value = format_ns((row.mean or 0.0) * NS_PER_US) if row.kind == PIPE_TIME else measured(row.mean)
        return f"{(row.metric or '').partition('(')[0].removesuffix('_time')} {value}"

    def below(pipes: KernelPipes) -> str:
        return ", ".join(pipe(own) for own in pipes.rows if own.metric)

    kernels = group_pipes(shown)
    of_kernel = ColumnsOf(KernelPipes)
    columns = [
        of_kernel.text("kernel", lambda pipes: readable(pipes.first.canonical_name or pipes.first.name), **NAME),
        of_kernel.text("input shapes", lambda pipes: cells.blank(pipes.first.input_shapes), **UNDER),
        of_kernel.number("calls", lambda pipes: number(pipes.first.calls)),
    ]
    # torch.profiler states occupancy of a kernel and no time of its cores
    if any(pipes.first.core_time_ns for pipes in kernels):
        columns.append(of_kernel.number("core time", lambda pipes: format_ns(pipes.first.core_time_ns)))
    if _is_split(shown.tables["kernel_pipes"]):
        columns.insert(0, of_kernel.text("of", lambda pipes: _grain(pipes.first)))
    busiest = table_of("Kernel metrics, means of a call", columns, kernels, limit, below=below)
    metric = ColumnsOf(MetricRow)
    columns = [
        metric.text("kernel", lambda row: readable(row.canonical_name or row.name), **NAME), SHAPES,
        metric.text("metric", lambda row: readable(row.metric), **NAME), _CALLS,
        cells.measures("mean", "minimum", "maximum"),
    ]  # fmt: skip
    return [busiest, _table("Kernel metrics", columns, order_metrics(shown), limit)]


def communication(shown: Shown, limit: int | None) -> list[Table]:
    """Return collectives with the most time; of the parts of it those that the source tells apart."""
    rows = shown.tables["communication"]
    times = {"total_ns": Column("total"), "exposed_ns": Column("exposed")}
    parts = sections.collective_parts(rows.listed("split_by"))
    times |= {name: column for name, column in parts.items() if rows.has(name)}
    single_calls = _calls_of(shown, "collective", _query_of_collective)
    columns = [
        *COLLECTIVE, replace(_CALLS, link=single_calls), replace(_BYTES, drop=4), replace(_PER_STEP, drop=7),
        together("ns", times),
        *[Column("split by", of("split_by"), drop=6)] * rows.has("split_by"), per_call("total_ns", 5, 5, 5),
    ]  # fmt: skip
    return [_table(f"Communication{_over_all(shown)}", columns, rows, limit, kind=CollectiveRow)]


def _query_of_collective(row: CollectiveRow) -> list[tuple[str, str | None]]:
    return [("--calls", row.kind), ("--group", _exactly(row.group_role))]


def links(shown: Shown, limit: int | None) -> list[Table]:
    """Return what links moved and how fast: per transport and group, from rank to rank, and by size of packet."""
    found, every = [], rows_of(LinkTotalRow, shown.tables["link_totals"])
    link = ColumnsOf(LinkTotalRow)
    transport = link.text("transport", lambda row: readable(row.transport))
    moved = [
        _BYTES, link.number("transit", lambda row: format_ns(row.transit_ns)),
        link.number("GB/s", lambda row: cells.rate(row.bandwidth_gb_per_s)),
    ]  # fmt: skip
    for level, title, columns in (
        (TRANSPORT, "Communication links", [
            transport, link.text("group", lambda row: cells.group_words(row.group_role, row.group_size), **WORDS),
            *moved, link.number("large packets", lambda row: share(row.large_packet_ratio)),
        ]),
        (LINK, "Links between ranks", [
            link.number("from rank", lambda row: number(row.source_rank)),
            link.number("to rank", lambda row: number(row.target_rank)), transport, *moved,
        ]),
        (PACKET, "Packets", [
            transport, link.number("packet size", lambda row: format_bytes(row.packet_bytes)),
            link.number("packets", lambda row: number(row.packets)), *moved,
        ]),
    ):  # fmt: skip
        own = [row for row in every if row.level == level]
        if level == PACKET:
            own.sort(key=lambda row: -(row.bytes or 0))
        found.append(_table(title, columns, own, limit))
    return found


def memory(shown: Shown, limit: int | None) -> list[Table]:
    """Return operators that allocate most."""

    def allocator(row: AllocatedRow) -> str:
        return sections.through(row.op, row.allocator, row.more_allocators)

    allocated = ColumnsOf(AllocatedRow)
    sizes = {"bytes": Column("bytes"), "unreleased_bytes": Column("unreleased")}
    columns = [
        _OP, SHAPES, allocated.text("allocator", allocator, **UNDER), _COMPONENT, Column("allocations", _CALLS.cell),
        together("bytes", sizes), col("held", "held_ns", drop=1),
    ]  # fmt: skip
    title = "Memory allocated by operators, whole capture"
    return [_table(title, columns, shown.tables["memory"], limit, kind=AllocatedRow)]


def _memory_over_time(shown: Shown, limit: int | None) -> Iterator[Table]:
    """Yield the curve of memory with its numbers, of the rank and the component that held most."""
    course = find_memory_course(shown)
    if course is None:
        return
    text = cells.form("bytes", [size for _, size in course.points])
    last = course.points[-1][0] * NS_PER_S
    columns = [
        Column("after", lambda point: format_ns(point[0] * NS_PER_S, time_unit(last))),
        Column("allocated", lambda point: text(point[1])),
    ]
    title = f"Memory over time, {_name_course(course)}"
    curve = Curves("bytes", ((_name_course(course), course.points),))
    yield table_of(title, columns, course.points, limit, section="memory", chart=curve)


def _name_course(course: MemoryCourse) -> str:
    return f"rank {number(course.rank)}, {course.component}"


def memory_peak(shown: Shown, limit: int | None) -> list[Table]:
    """Return who held the memory when it was most, of the rank with the highest peak; with a line per component."""
    peak = find_highest_peak(shown)
    peaks, own, rank = peak.totals, peak.owners, peak.rank
    several = len(peaks) > 1
    owner = ColumnsOf(PeakOwnerRow)
    columns = [
        _OP, SHAPES, MODULE, owner.text("allocator", lambda row: sections.through(row.op, row.allocator), **UNDER),
        *[_COMPONENT] * several, Column("blocks", _CALLS.cell, drop=1), _BYTES, _SHARE,
        owner.number("since", lambda row: _since(row.first_ns, row.first_step), drop=2), CODE,
    ]  # fmt: skip
    first = next(iter(peaks.values()), None)
    when = f" (rank {number(rank)}, {_since(first.peak_ns, first.peak_step)})" if first and own else ""
    note = f"The rank with the highest peak of {peak.ranks}." if peak.ranks > 1 and own else ""
    found = table_of(f"Memory at the peak, by owner{when}", columns, own, limit, note=note)
    sums = [
        [f"= peak of {component}", "", "", "", *[component] * several, "", cell(row.bytes, "bytes")]
        for component, row in peaks.items()
    ]
    return [sections.with_sums(found, sums)]


def _since(time_ns: int | None, step: int | None) -> str:
    """Return a moment: its time from the start of the capture, and its step."""
    if time_ns is None:
        return ""
    where = f", step {number(step)}" if step is not None and step >= 0 else ""
    return f"{cell(time_ns, 'ns')}{where}"


def memory_blocks(shown: Shown, limit: int | None) -> list[Table]:
    """Return the largest single allocations."""

    def held(row: BlockRow) -> str:
        return "not released" if row.is_released == 0 else cell(row.held_ns, "ns")

    rows = sorted(rows_of(BlockRow, shown.tables["memory_blocks"]), key=lambda row: -(row.bytes or 0))
    block = ColumnsOf(BlockRow)
    columns = [
        _OP, SHAPES, MODULE, col("rank", drop=1), replace(_COMPONENT, drop=2), _BYTES,
        block.number("at", lambda row: _since(row.time_ns, row.step)), block.number("held", held), CODE,
    ]  # fmt: skip
    return [table_of("Largest single allocations", columns, rows, limit)]


def counters(shown: Shown, limit: int | None) -> list[Table]:
    """Return a line per table and measurement of the profiler: over how many things, its mean where it is of one, and
    where it is largest; then every number, those that never were anything but zero last.
    """
    summary, counter = ColumnsOf(CounterSummaryRow), ColumnsOf(CounterRow)
    columns = [
        summary.text("source", lambda row: readable(row.source)),
        summary.text("measurement", lambda row: readable(row.attribute), **NAME),
        summary.number("number", lambda row: number(row.names), drop=1),
        cells.measures("mean", "smallest", "largest"),
        summary.text("largest of", lambda row: readable(row.max_name), **NAME),
    ]
    title = f"Counters of the {'log' if _is_log(shown) else 'profiler'}"
    overview = _table(title, columns, shown.tables["counter_summary"], limit, kind=CounterSummaryRow)
    columns = [
        counter.text("source", lambda row: readable(row.source)),
        counter.text("name", lambda row: readable(row.name), **NAME),
        counter.text("measurement", lambda row: readable(row.attribute), **NAME),
        counter.number("values", lambda row: number(row.calls), drop=1),
        cells.measures("mean", "minimum", "maximum"),
    ]
    return [overview, _table("All counters", columns, order_counters(shown), limit)]


def argument_tables(shown: Shown, limit: int | None) -> list[Table]:
    """Return with which arguments operators were called."""
    return operator_arguments.tables_of_run(shown.tables, limit, _table)


def input_tables(shown: Shown, limit: int | None) -> list[Table]:
    """Return the operations of the data pipeline, and the queues behind them."""
    return input_pipeline.tables_of_run(shown.tables, limit, _table)


def idle(shown: Shown, limit: int | None) -> list[Table]:
    """Return why the device does nothing, and how far ahead of it the host launches."""
    single_gaps = _calls_of(shown, "idle", _query_of_idle)
    why = [*sections.WHY_IDLE, col("gaps", link=single_gaps), _PER_STEP, col("total", "ns"), _SHARE]
    ahead = [
        col("stream"), col("kernels"),
        together("ns", {"mean_lead_ns": Column("mean lead"), "max_lead_ns": Column("largest")}),
        col("launched while the device is busy", "queued_share"),
    ]  # fmt: skip
    queues = sorted(rows_of(QueueRow, shown.tables["queues"]), key=lambda row: -row.kernels)
    return [
        _table(f"Idle time of the device{_over_all(shown)}", why, shown.tables["idle"], limit, kind=IdleRow),
        table_of("Launches ahead of the device", ahead, queues, limit),
    ]


def _query_of_idle(row: IdleRow) -> list[tuple[str, str | None]]:
    return [("--calls", label_idle(row.cause, row.place or ""))]


def _simple(title: str, name: str, *columns: Column) -> Callable[[Shown, int | None], list[Table]]:
    """Return what makes a section of one table, whose columns are always the same."""
    return lambda shown, limit: [
        _table(f"{title}{_over_all(shown)}", columns, shown.tables[name], limit, kind=SplitRow)
    ]


_DRAWN_SECTIONS: Final[Mapping[str, Callable[[Shown, int | None], list[Table]]]] = {
    "overall": overall, "operator": operators, "kernel": kernels, "metric": metrics, "communication": communication,
    "link": links, "memory": memory, "memory_peak": memory_peak, "memory_block": memory_blocks, "counter": counters,
    "input": input_tables, "argument": argument_tables,
    "kernel_type": _simple(
        "Kernel types", "kernel_types", col("kernel type", "type", **NAME),
        col("core type", "core_type"), _CALLS, _TOTAL, _SHARE, per_call("total_ns", 1, 1, 1),
    ),
    "module": _simple(
        "Modules", "modules", col("module", **NAME), col("phase"),
        Column("op calls", _CALLS.cell, drop=1), _PER_STEP,
        together("ns", {"device_self_ns": Column("device self"), "host_self_ns": Column("host self")}),
    ),
    "idle": idle,
    "api": _simple(
        "Host API calls", "api", col("API call", "name", **NAME), col("level"),
        _CALLS, _PER_STEP, together("ns", {"total_ns": Column("total"), "self_ns": Column("self")}),
        per_call("total_ns", 1, 1, 1),
    ),
    "efficiency": lambda shown, limit: [efficiency_table(shown.tables.get("efficiency"), limit)],
}  # fmt: skip
"""Section -> its tables, of those that are drawn in their own way."""


def tables_of_section(word: str, shown: Shown, limit: int | None) -> list[Table]:
    """Return the tables of a section; one that is not drawn in its own way has a column for each part of its key, the
    calls, the time and its share.
    """
    if word in _DRAWN_SECTIONS:
        return _DRAWN_SECTIONS[word](shown, limit)
    section = SECTION[word]
    table = section.tables[0]
    keys = [col(name.replace("_", " "), name) for name in MATCHED_COLUMNS[table].key]
    return _simple(section.title_of_run, table, *keys, _CALLS, _TOTAL, _SHARE)(shown, limit)


def list_json(shown: Shown, look: Look) -> dict[str, Any]:
    """Return the run with its facts and sources, then a list of rows per chosen section; memory with its course."""
    run = plain(shown.run)
    run.setdefault("facts", records(shown.tables["facts"]))
    run.setdefault("sources", records(shown.tables["sources"]))
    document = {"run": run, "options": list_options(shown.options), "notes": plain(shown.notes)}
    document["bottleneck"] = bottleneck.record(shown.bottleneck)
    if not look.only:
        document["slow_steps"] = plain(shown.slow_steps)
    for name, rows in choose_tables(shown, look).items():
        document[name] = records(rows)
    chosen = shown.chosen_sections(look.only)
    if "operator" in chosen:
        # sums of ops and kernels, for who reads one list; rows of ops can be added up from a table of cells
        document["largest"] = records(shown.tables["largest"].head(look.rows(None)))
    if not look.only:
        document["advice"] = plain(shown.advice)
    if "memory" in chosen:
        document["memory_curve"] = records(shown.tables["memory_curve"])
    return document


def list_csv(shown: Shown, look: Look) -> dict[str, Rows]:
    """Return the chosen tables; where a reader chose none, with what limits the run, its facts and its advice."""
    tables = choose_tables(shown, look)
    if look.only or shown.tree_table is not None:
        return tables
    tables["bottleneck"] = [] if shown.bottleneck is None else bottleneck.rows(shown.bottleneck)
    for name in ("facts", "sources"):
        tables[name] = shown.tables[name]
    tables["notes"] = list_notes(shown.notes)
    if shown.slow_steps:
        tables["slow_steps"] = [asdict(one) for one in shown.slow_steps]
    if shown.advice:
        tables["advice"] = shown.tables["advice"]
    return tables


VIEW = View(document, json=list_json, csv=list_csv, sheet_titles={"ops": "Operators"}, workbook="show")
