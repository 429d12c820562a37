"""The document of one run: how long a step takes, where its time goes, and its largest operators; all tables by
section as details, over its whole capture, the largest rows first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from tracker.compare.references import FILES
from tracker.profile import (
    IDLE_REASONS,
    OF_A_MOMENT,
    IdleCause,
)
from tracker.reports import cells
from tracker.reports.cells import PARTS, ColumnsOf, cell, col, measured, number, readable, share
from tracker.reports.commands import command_of, options_of
from tracker.reports.document import (
    NAME,
    Bars,
    Block,
    Column,
    Document,
    Lines,
    Look,
    Plot,
    PlotSeries,
    Table,
    Target,
    few,
)  # fmt: skip
from tracker.reports.rows import list_notes, list_options, plain, records, rows_of, table_of, unit_of
from tracker.reports.text import ROWS, shorten
from tracker.reports.view import View, choose_tables
from tracker.reports.views import bottleneck, log_course, sections, tree
from tracker.reports.views.advice import advice_table
from tracker.reports.views.sections import grain_of, history_of, in_section
from tracker.reports.views.show_tables import (
    calls_of,
    is_log,
    memory_over_time,
    name_number,
    tables_of_section,
)
from tracker.reports.views.slow_steps import slow_steps_table
from tracker.results import Shown
from tracker.results.machine_state import describe_machine
from tracker.results.recording import has_no_device_data, incomplete_of
from tracker.results.run_summary import (
    PARTS_OF_STEP,
    find_idle_reason,
    list_step_ends,
    list_step_times,
    list_usual_idle_causes,
    mean_e2e_ns,
    self_time_column,
    sum_largest_rows,
    whole_step_ns,
)
from tracker.results.shown_rows import (
    CaptureRow,
    CounterRow,
    FactRow,
    LargestRow,
    StepOfRankRow,
)
from tracker.schema.series import UNPROFILED_STEP
from tracker.units import (
    MISSING_TEXT,
    counted,
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

_FACTS: Final = 12
_IDLE_PLACES: Final = 5
"""Places of idle time that a page lists first."""
_FAR_AWAY: Final = 10
"""A step that took so many times as long as others does not choose their unit."""
_BESIDE: Final = ("data_loading_ns", "samples_per_second", "peak_allocated_bytes")
_WORTH_A_LINE: Final = 0.02
"""A cause of idle time, of the step."""
_CAUSES: Final = 4
_PLACE_LETTERS: Final = 60
_ALL: Final = 0.995


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
    elif len(shown.tables["ops"]) or len(shown.tables["kernels"]) or not is_log(shown):
        yield _largest(shown, look)
    if look.has_drawings and not look.only and "step" not in shown.options.grains and len(shown.tables["steps"]) > 1:
        yield replace(_each_step(shown, look.rows(ROWS)), chart=_course_of_steps(shown), is_first=False)
    for section in look.sections():
        found = tables_of_section(section, shown, limit)
        yield from in_section(found, section, look.only, shown.options, shown.is_pruned)
        if section == "memory" and look.has_drawings:
            yield from memory_over_time(shown, limit)
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
            rows.append(_PartOfStep(name_number(shown, name, PARTS), text))
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


def _each_step(shown: Shown, limit: int | None) -> Table:
    """Show one row per rank and step with its parts, in order."""
    steps = shown.tables["steps"]
    with_values = [name for name in ("marker_ns", *PARTS_OF_STEP) if name in steps and any(steps.listed(name))]
    number_of_run = shown.run.get("run_id")

    def step_alone(row: StepOfRankRow) -> Target | None:
        if number_of_run is None:
            return None
        return Target("run", (("RUN", str(number_of_run)), ("--rank", str(row.rank)), ("--step", str(row.step))))

    columns = [Column("step", grain_of, left=True), col("time", "duration_ns")]
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
    calls_of_row = calls_of(shown, word, _query_of_largest)

    def single_calls(row: LargestRow) -> Target | None:
        return None if row.kind == _OTHERS else calls_of_row(row)

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


def _over_what(shown: Shown, is_per_step: bool) -> str:
    """Return of what the numbers of the largest operators are: of a step, or of the whole capture."""
    ranks = shown.run.get("ranks") or 1
    if not is_per_step:
        return f"over the capture and {ranks} ranks" if ranks > 1 else "over the capture"
    chosen = f", {steps_words(shown.options.steps)}" if shown.options.steps else ""
    middle = f", median of {ranks} ranks" if ranks > 1 else ""
    return f"per step{chosen}{middle}"


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
