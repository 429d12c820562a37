"""The document of a diff: the change of the step, what carries it, and what else changed; all tables as details."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from tracker.compare.headline import CUT_OUTS, FACTS
from tracker.compare.references import FILES, short_names
from tracker.compare.waiting import TRANSFER, WAIT
from tracker.profile import NPU_VENDOR
from tracker.profile.branches import branch_of, main_of
from tracker.reports import cells
from tracker.reports.cells import ColumnsOf, values
from tracker.reports.commands import command_of, options_of
from tracker.reports.document import (
    HERE,
    ICICLE,
    NAME,
    SENTENCE,
    Bars,
    Block,
    Column,
    Document,
    Lines,
    Look,
    Tab,
    Table,
    Target,
    few,
    group,
)
from tracker.reports.rows import list_notes, list_options, plain, records, rows_of, table_of
from tracker.reports.text import ROWS, shorten
from tracker.reports.view import View, choose_tables
from tracker.reports.views import bottleneck, diff_tables, tree
from tracker.reports.views.sections import SIDES, history_of, in_section, names_modules
from tracker.reports.views.slow_steps import mean_table, slow_steps_table
from tracker.results import ADDED, OTHER_SHAPES, REMOVED, TOP_LEVEL, Contribution, Diff, ShowOptions, Side
from tracker.results.diff import StepKind
from tracker.results.diff_rows import EnvironmentRow, MemoryPeakRow, OverallRow
from tracker.results.replaced_names import largest_that_came, replaced_name
from tracker.results.verdicts import CHANGED, EXCUSED, GLOSSES, gloss_of, word_of_step
from tracker.schema.series import UNPROFILED_STEP
from tracker.units import counted, format_diff, format_ns, format_numbers, some_of, step_word, steps_words, time_unit

if TYPE_CHECKING:
    from tracker.results.screens import Rows

_LABEL: Final = 16
_ENVIRONMENT_ROWS: Final = 4
_LEAST_CHANGE: Final = 0.005
"""Part of the step from which on its change has parts that say something."""
_LEAST_NET: Final = 0.8
"""Part of all that moved from which on a change has parts that say something: where losses and gains cancel, a part can
be -18 % or 119 % of it.
"""
_MUCH_WAITING: Final = 0.05
"""Change of waiting by the step from which on the ranks are worth a look."""
_NAME: Final = 60
"""Characters of an operator's name in a sentence."""
_OWN_LEVEL: Final = "own level"
_BESIDE: Final = (UNPROFILED_STEP, "mean_step_ns", "data_loading_ns", "peak_allocated_bytes", "samples_per_second")
"""Numbers of the step that are no part of its sum."""
_REST: Final = {False: "rest (medians do not add up)", True: "rest (kernels at the same time, medians)"}
_AT_ONCE: Final = "kernels at the same time"
_OPERATORS, _ICICLE, _KERNELS, _IDLE = "operators", "icicle", "kernels", "idle"
_COMMUNICATION: Final = "communication"
_TABS: Final = (
    Tab("why", "Why"), Tab(_OPERATORS, "Operators", ("operator", "module")), Tab(_ICICLE, "Icicle", ("tree",)),
    Tab(_KERNELS, "Kernels", ("kernel", "kernel_type", "metric", "api")),
    Tab("memory", "Memory", ("memory", "memory_peak", "memory_block")), Tab(_IDLE, "Idle by place", ("idle",)),
    Tab(_COMMUNICATION, "Communication", ("communication", "link")),
    Tab("counters", "Counters", ("input", "argument", "counter")),
    Tab("environment", "Environment", ("environment",)),
)  # fmt: skip
"""What a page shows of a diff at a time. `Why` has the step, its causes, and what the numbers rest on."""
_TAB_OF_CAUSE: Final = {
    "idle_ns": _IDLE, "exposed_communication_ns": _COMMUNICATION, WAIT: _COMMUNICATION, TRANSFER: _COMMUNICATION,
    "exposed_copy_ns": _KERNELS,
}  # fmt: skip
"""Part of the step -> the tab that says where it comes from."""
_BELOW_PART: Final = {
    "compute_ns": cells.CORES,
    "idle_ns": {"idle_share": "share of the step"},
}
"""Part of the step -> what stands below it of an NPU, in words."""
_WHOLE_OF_HALF: Final = {WAIT: "exposed_communication_ns", TRANSFER: "exposed_communication_ns"}
"""Half of a part of the step -> the part, which has a history."""


def document(diff: Diff, look: Look) -> Document:
    """Return the step, the causes and what else changed, or the tree that was chosen in place of these."""
    found = diff.explanation
    of_log = diff.unprofiled_step
    total = (found.delta_ns if of_log is None else of_log.delta) or 0.0
    tone = cells.TONES.get(found.verdict or "", "") or ("" if found.verdict else "worse" if total > 0 else "better")
    before, after = diff.baseline, diff.candidate

    def both(name: str) -> str:
        own, other = (str(getattr(side, name)) for side in (before, after))
        # the arrow leads from something to something
        return cells.pair(own or "none", other or "none") if own or other else ""

    where = [both(name) for name in ("device", "configuration") if both(name) not in cells.UNSAID]
    workload = _words_of_branches(before, after) or both("workload")
    where = [workload, *where] if workload not in cells.UNSAID else where
    runs = f"{counted(after.runs, 'run')} each" if before.runs == after.runs else f"{both('runs')} runs"
    words = [*where, runs if max(before.runs, after.runs) > 1 else "1 run each"]
    if max(before.ranks, after.ranks) > 1:
        words.append(f"median of {both('ranks')} ranks")
    coverage = None if diff.judgement is None else diff.judgement.coverage
    if coverage is not None and coverage.expected:
        words.append(coverage.count)
    remarks = list(found.remarks)
    if coverage is not None and coverage.is_low:
        remarks.append(f"{coverage.words.capitalize()}.")
    remarks += [one.sentence for one in diff.budgets if one.verdict == "not met"]
    is_explained = any(remark.startswith(CUT_OUTS) for remark in remarks)
    if diff.judgement is not None and not diff.judgement.judged and not is_explained:
        remarks += [one for one in diff.judgement.sentences[diff.is_refused :] if one not in remarks]
    return Document(
        title=", ".join([*words, _steps(before, after)]),
        headline=found.headline,
        verdict=_verdict_beside(found.headline, found.verdict, total_row(diff)),
        tone=tone if found.remarks == () or found.verdict else "",
        remarks=tuple(remarks),
        blocks=tuple(_blocks(diff, look)),
        notes=tuple(_notes(diff, look)),
        next_commands=tuple(_next(diff, look)),
        tabs=() if diff.is_refused or diff.options.tree or look.only else _TABS,
    )


def _words_of_branches(before: Side, after: Side) -> str:
    """Return what is compared where a side names a branch, or where it left the main line is known; "" else:
    `gpt, main v11 -> fix-attention b3, branched from v10`.
    """
    mains = {main_of(side.workload) for side in (before, after)}
    if len(mains) > 1 or not any(side.names_branch or side.merge_base for side in (before, after)):
        return ""
    return f"{mains.pop()}, {cells.pair(*(_line_and_version(side) for side in (before, after)))}"


def _line_and_version(side: Side) -> str:
    line = branch_of(side.workload) or (side.label.partition("@")[0] if side.names_branch else "main line")
    words = f"{line} {side.version}" if "," not in side.version else line
    return f"{words}, branched from {side.merge_base}" if side.merge_base else words


def _verdict_beside(headline: str, verdict: str | None, total: OverallRow | None) -> str:
    """Return the verdict of the step as it stands beside a headline: none that is no change where the headline also
    names other operators, for they changed. `total`: the row that has it.
    """
    is_of_step = verdict in CHANGED or FACTS not in headline
    return word_of_step(verdict, total.reason if total is not None else None) if is_of_step else ""


def total_row(diff: Diff) -> OverallRow | None:
    """Return the row of the step, or of what stands for it; None where there is none."""
    of_step = rows_of_step(diff)
    metric = diff.explanation.total_metric
    names = [metric, "duration_ns"] if metric == "step_ns" else [metric]
    return next((of_step[name] for name in names if name in of_step), None)


def rows_of_step(diff: Diff) -> dict[str, OverallRow]:
    """Return the rows of the overall table by their metric."""
    return {row.metric: row for row in rows_of(OverallRow, diff.tables["overall"])}


def _steps(before: Side, after: Side) -> str:
    if before.chosen_steps or after.chosen_steps:
        return f"only {cells.pair(steps_words(before.chosen_steps), steps_words(after.chosen_steps))}"
    if not before.steps and not after.steps:
        return "no step markers"
    texts = [
        f"{side.steps:,}" if side.fewest_steps in (None, side.steps) else f"{side.fewest_steps:,} to {side.steps:,}"
        for side in (before, after)
    ]
    many = "" if texts == ["1", "1"] else "s"
    return f"{cells.pair(*texts)} {step_word(before.step_kind)}{many} a run"


def _blocks(diff: Diff, look: Look) -> Iterator[Block]:
    if diff.is_refused:
        yield _environment(diff, look)
        return
    limit = look.rows(ROWS)
    if diff.tree_table is not None:
        yield tree.of_diff(diff, look)
    else:
        if diff.step_kinds:
            yield _step_kinds(diff)
        yield _step(diff)
        if _has_causes(diff):
            yield _causes(diff)
        yield from _slow_steps(diff, look)
        if look.has_drawings and not look.only:
            yield _icicle(diff)
        yield _environment(diff, look)
    for section in look.sections() if diff.tree_table is None or look.only else ():
        if section == "memory_peak" and section not in look.only:
            # what is held at the peak says something where it changed by more than two runs of one program differ in
            rows = rows_of(MemoryPeakRow, diff.tables["memory_peak"])
            whole = sum(row.baseline_bytes or 0 for row in rows)
            if not any(row.delta_bytes and whole and not cells.is_small(row.delta_bytes / whole) for row in rows):
                continue
        tables = in_section(
            diff_tables.tables_of_section(section, diff, limit), section, look.only, diff.options, False
        )
        if section == "operator" and tables and diff_tables.filters(diff):
            # who names operators wants to see these
            tables[0] = replace(tables[0], is_first=True)
        yield from tables
        if section == "memory" and look.has_drawings:
            yield from diff_tables.memory_over_time(diff)
    yield Lines("Replaced", tuple(_replaced(diff)), section="operator", is_first=False, is_wrapped=True)
    sides = zip(SIDES, diff.bottlenecks or (), strict=False)
    lines = tuple(f"{side}: {bottleneck.sentence(found)}" for side, found in sides)
    yield Lines("Bottleneck", lines, section="overall", is_first=False, is_wrapped=True)
    if diff.judgement is not None and diff.judgement.judged:
        yield Lines("Verdicts", diff.judgement.sentences, is_first=False, is_wrapped=True)


def _icicle(diff: Diff) -> Block:
    """Return the drawing of the tree of both sides; where none was asked for, the offer of a page to draw it."""
    if diff.samples.tree:
        return tree.flame_of_diff(diff)
    if diff.options.with_flame:
        return Lines("Icicle", ("the sources state no calls of operators",), section="tree", is_first=False)
    link = Target(HERE, ((ICICLE, "1"),), tab=_ICICLE)
    return Lines("Draw the operators of both sides by their callers", (), section="tree", is_first=False, link=link)


def heads(sides: Sequence[Side]) -> list[Column]:
    """Return the columns of two sides: their labels, of paths the folder that differs.

    They are `baseline` and `candidate` where these do not differ, and in short where they are too long to differ.
    """
    names = [
        name.split("/")[0] if main_of(side.workload) == FILES else name
        for name, side in zip(short_names(sides), sides, strict=True)
    ]
    texts = [shorten(name, _LABEL) for name in names]
    if names[0] == names[1]:
        return [Column(side) for side in SIDES]
    shorts = texts if texts[0] != texts[1] else SIDES
    return [Column(name, short="" if name == text else text) for name, text in zip(names, shorts, strict=True)]


def _step_kinds(diff: Diff) -> Table:
    """Return each kind of steps on both sides: how long one takes, and how many a run has."""
    unit = time_unit(*(ns for one in diff.step_kinds for ns in (one.baseline_ns, one.candidate_ns)))

    def times(one: StepKind) -> str:
        return f"{format_ns(one.baseline_ns, unit)} -> {format_ns(one.candidate_ns, unit)}"

    def counts(one: StepKind) -> str:
        return f"{one.baseline_steps:,} -> {one.candidate_steps:,}"

    def change(one: StepKind) -> str:
        return "" if one.diff is None else format_diff(one.diff)

    columns = [
        Column("steps of kind", lambda one: one.kind, **NAME),
        Column("step", times),
        Column("%", change),
        Column("steps a run", counts),
        Column("", lambda one: word_of_step(one.verdict, one.reason), left=True),
    ]
    return table_of("", columns, diff.step_kinds, is_first=True)


class _LineOfStep(Struct, frozen=True, kw_only=True):
    """A line of the table of the step.

    `numbers`: both sides, the change, and that in per cent; `bar`: a part of the largest change; `verdict`: of its
    number; `total`: the words of the verdict of the whole.
    """

    metric: str
    label: str
    numbers: tuple[str, ...]
    bar: float | None = None
    verdict: str | None = None
    tone: str = ""
    total: str = ""


_line: Final = ColumnsOf(_LineOfStep)


def _step(diff: Diff) -> Table:
    """Return the parts of a step on both sides, which add up to it; below, what is no part of it."""
    found, of_step = diff.explanation, rows_of_step(diff)
    sides = (found.baseline_ns, found.candidate_ns)
    unit = time_unit(*sides, found.delta_ns, *(part.delta_ns for part in found.parts))
    longest = max((abs(part.delta_ns) for part in found.parts), default=0.0)
    rest = cells.rest_of(found.delta_ns, [part.delta_ns for part in found.parts if part.name != "rest_ns"], unit)

    def numbers(before: float | None, after: float | None, delta: float | None) -> tuple[str, ...]:
        change = format_diff(delta / before) if delta is not None and before and before > 0 else ""
        return format_ns(before, unit), format_ns(after, unit), cells.signed(format_ns(delta, unit), delta), change

    lines, names = [], []
    for part in found.parts:
        row, label = of_step.get(part.name), cells.PARTS.get(part.name, part.title)
        names.append(label)
        line = _LineOfStep(
            metric=part.name,
            label=label,
            numbers=numbers(part.baseline_ns, part.candidate_ns, rest if part.name == "rest_ns" else part.delta_ns),
            bar=part.delta_ns / longest if longest else None,
            verdict=row.verdict if row is not None else None,
            tone=_tone_of_part(part.name, row, part.delta_ns),
        )
        lines.append(line)
        if _is_on_npu(diff):
            lines += _lines_below(part.name, of_step, unit)
    is_step = found.total_metric == "step_ns"
    total = total_row(diff)
    whole = _LineOfStep(
        metric=found.total_metric,
        label="= step time" if is_step else "= E2E",
        numbers=numbers(*sides, found.delta_ns),
        tone="strong",
        total=_verdict_of_total(diff, total),
    )
    lines.append(whole)
    for name in _BESIDE:
        row = of_step.get(name)
        if row is None or not (row.baseline_value or row.candidate_value):
            continue
        if any(part.name == name for part in found.parts):
            continue
        if name == "mean_step_ns" and (not is_step or not _differs(row, total)):
            continue
        lines.append(_line_beside(row))
    # a number of other runs must not stand under the names of those of the step
    before = replace(diff.baseline, label=_OWN_LEVEL) if found.has_own_levels else diff.baseline
    labels = heads([before, diff.candidate])
    changes = [Column("change"), Column("change %", drop=1, short="%")]
    columns = [
        _line.text("step" if is_step else "E2E", lambda line: cells.readable(line.label)),
        group([*labels, *changes], lambda line: line.numbers),
        _line.text("", _verdict_of_line),
    ]
    parts = [[getattr(part, f"{side}_ns") or 0.0 for part in found.parts] for side in SIDES]
    drawn = zip(labels, sides, parts, strict=True)
    chart = Bars(tuple(names), tuple((one.header, format_ns(value, unit), tuple(own)) for one, value, own in drawn))
    strips = tuple(diff.samples.overall.get(line.metric) for line in lines) if diff.samples.has_repeats else ()
    judged = [total, *(of_step.get(line.metric) for line in lines if line.metric != found.total_metric)]
    return table_of(
        "", columns, lines, tone=lambda line: line.tone, is_first=True, bars=lambda line: line.bar, chart=chart,
        links=lambda line: diff_tables.history_of_run(diff, line.metric), strips=strips,
        findings=sum(row is not None and diff_tables.is_finding(row.verdict, row.reason) for row in judged),
    )  # fmt: skip


def _verdict_of_line(line: _LineOfStep) -> str:
    return line.total or (line.verdict if line.verdict in CHANGED else None) or ""


def _verdict_of_total(diff: Diff, total: OverallRow | None) -> str:
    """Return the words of the verdict of what the parts add up to. `total`: its row."""
    if total is None:
        return word_of_step(diff.verdict_of_parts, None)
    return word_of_step(diff.verdict_of_parts or total.verdict, total.reason)


def _line_beside(row: OverallRow) -> _LineOfStep:
    """Return the line of a number of the step that is no part of its sum."""
    is_rate = row.metric == "samples_per_second"
    texts = values("count" if is_rate else row.unit, row.baseline_value, row.candidate_value, row.delta)
    return _LineOfStep(
        metric=row.metric,
        label=row.title if is_rate else cells.PARTS[row.metric],
        numbers=(*texts, format_diff(row.diff)),
        verdict=row.verdict,
        tone=cells.tone(cells.cost(row), row.diff, verdict=row.verdict),
    )


def _is_on_npu(diff: Diff) -> bool:
    return any(side.device.startswith(NPU_VENDOR) for side in (diff.baseline, diff.candidate))


def _lines_below(part: str, of_step: Mapping[str, OverallRow], unit: tuple[int, str]) -> Iterator[_LineOfStep]:
    """Yield what stands below a part of the step of an NPU: work of the cube and of the vector cores below compute, the
    share of the step (of scheduling) below idle time.
    """
    for metric, label in _BELOW_PART.get(part, {}).items():
        row = of_step.get(metric)
        if row is None:
            continue
        if row.unit == "ns":
            before, after = format_ns(row.baseline_value, unit), format_ns(row.candidate_value, unit)
            delta = cells.signed(format_ns(row.delta, unit), row.delta)
        else:
            before, after, delta = values(row.unit, row.baseline_value, row.candidate_value, row.delta)
        numbers = (before, after, delta, format_diff(row.diff))
        yield _LineOfStep(metric=metric, label=f"  {label}", numbers=numbers)


def _tone_of_part(name: str, row: OverallRow | None, delta_ns: float) -> str:
    """Return the tone of a part of the step: what is left over is neither better nor worse."""
    if name in ("rest_ns", "earlier_ns"):
        return "sum"
    return cells.tone(delta_ns, row.diff, verdict=row.verdict) if row is not None else ""


def _differs(mean: OverallRow, median: OverallRow | None) -> bool:
    """Return whether the mean step says something else than the median: slow steps among others."""
    if median is None:
        return False
    pairs = ((mean.baseline_value, median.baseline_value), (mean.candidate_value, median.candidate_value))
    return any(one and other and abs(one / other - 1.0) > 0.05 for one, other in pairs)


def _has_causes(diff: Diff) -> bool:
    """Return whether something carries the change other than the step that no source splits, which stands there
    already.
    """
    return any(row.metric != "whole_ns" for row in diff.explanation.contributions)


def _causes(diff: Diff) -> Table:
    """Return what carries the change, each cause once; the rows add up to the change of the step."""
    found = diff.explanation
    rows = found.contributions
    # parts of next to nothing, and of what cancels, are larger than the whole
    delta, moved = abs(found.delta_ns or 0.0), _sum_moves(rows)
    has_shares = bool(found.baseline_ns and delta >= max(_LEAST_CHANGE * found.baseline_ns, _LEAST_NET * moved))
    unit = time_unit(found.delta_ns, *(row.delta_ns for row in rows))
    rest = cells.rest_of(found.delta_ns, [row.delta_ns for row in rows if row.kind != "rest"], unit)
    if found.delta_ns is not None:
        whole = "= step time" if found.total_metric == "step_ns" else "= E2E"
        rows = (*rows, Contribution("whole", whole, found.delta_ns))

    def delta_of(row: Contribution) -> float:
        return rest if row.kind == "rest" else row.delta_ns

    def part(row: Contribution) -> str:
        return ("100 %" if row.kind == "whole" else cells.share_of_change(row.share)) if has_shares else ""

    def tone(row: Contribution) -> str:
        kinds = {"whole": "strong", "others": "sum", "earlier": "sum", "rest": "sum"}
        return cells.TONES.get(row.verdict or "", kinds.get(row.kind, ""))

    columns = [
        Column("cause", lambda row: name_of_cause(row, diff), **NAME),
        Column("change", lambda row: cells.signed(format_ns(delta_of(row), unit), delta_of(row))),
        Column("of change", part), Column("", lambda row: cells.MARKS.get(row.verdict or "", "")),
        Column("why", _why, **SENTENCE),
    ]  # fmt: skip
    adds = tuple(None if row.kind == "whole" else delta_of(row) for row in rows)
    return table_of("", columns, rows, is_first=True, tone=tone, links=lambda row: _link_of_cause(row, diff), adds=adds)


def _link_of_cause(row: Contribution, diff: Diff) -> Target | None:
    """Return where a cause leads: a part of the step to the tab with its places, anything else to its history, or to
    its rows; None for what is left over.
    """
    if row.kind == "part":
        history = diff_tables.history_of_run(diff, _WHOLE_OF_HALF.get(row.metric, row.metric))
        tab = _TAB_OF_CAUSE.get(row.metric)
        return Target(HERE, tab=tab, otherwise=history) if tab else history
    if row.kind == "whole":
        return diff_tables.history_of_run(diff, diff.explanation.total_metric)
    if row.kind in ("earlier", "rest"):
        return None
    are_several = row.kind in ("alike", "others")
    is_of_kernels = row.kind in ("kernel", "category", "overlap") or (are_several and row.name == "kernels")
    rows = Target(HERE, tab=_KERNELS if is_of_kernels else _OPERATORS)
    if are_several or row.kind in ("category", "overlap"):
        return rows
    name = largest_that_came(row.name) if row.kind == "replacement" else row.name
    history = history_of(diff.candidate.workload, name)
    return rows if history is None else replace(history, otherwise=rows)


def _slow_steps(diff: Diff, look: Look) -> Iterator[Table]:
    """Yield what carries the change of the mean step, and the slow steps of both sides, where there are any."""
    found = diff.explanation
    if found.mean is not None:
        yield mean_table(found.mean)
    labels = short_names([diff.baseline, diff.candidate])
    if labels[0] == labels[1]:
        labels = [*SIDES]
    steps_of_side = dict(zip(labels, (found.baseline_slow_steps, found.candidate_slow_steps), strict=True))
    if any(steps_of_side.values()):
        yield slow_steps_table(steps_of_side, look)


def _sum_moves(rows: Sequence[Contribution]) -> float:
    """Return how much the rows moved, whatever cancels; waiting and transfers, two halves of one part, as this part."""
    communication = fsum(row.delta_ns for row in rows if row.metric in (WAIT, TRANSFER))
    others = [abs(row.delta_ns) for row in rows if row.metric not in (WAIT, TRANSFER)]
    return fsum([abs(communication), *others])


def name_of_cause(row: Contribution, diff: Diff) -> str:
    """Return the words of a cause: an operator with its finding, a part of the step, or how many others there are."""
    if row.kind == "others":
        other = "other " if diff.explanation.contributions[0] is not row else ""
        one = row.name.replace("kinds", "kind").removesuffix("s")
        return f"{row.count:,} {other}{row.name if row.count != 1 else one}"
    if row.kind == "alike":
        return f"{row.count:,} {row.name} alike"
    if row.kind == "earlier":
        return cells.OTHER_RUNS
    if row.kind == "overlap":
        return _AT_ONCE
    if row.kind == "rest":
        has_overlap = any(one.kind == "overlap" for one in diff.explanation.contributions)
        return _REST[diff.metric != "host_self_ns" and not has_overlap]
    if row.kind == "part":
        return cells.PARTS.get(row.metric, row.name)
    if row.kind == "whole":
        return row.name
    if row.kind == "replacement":
        return replaced_name(row.name)
    finding = row.input_shapes if row.verdict in CHANGED or row.input_shapes == OTHER_SHAPES else ""
    return " ".join(filter(None, (cells.readable(row.name), finding)))


def _why(row: Contribution) -> str:
    """Say slower or more often, with the numbers that show it."""
    if row.kind in ("others", "earlier", "rest", "whole") or row.why in ("new", "gone"):
        return row.why
    if row.why in ("more calls", "fewer calls"):
        return f"{row.why}: {cells.calls(row.baseline_calls, row.candidate_calls)}"
    if row.baseline_ns is None and row.candidate_ns is None:
        return row.why
    times = cells.times(row.baseline_ns, row.candidate_ns)
    return f"{row.why.removesuffix(' per call')}: {times}".removeprefix(": ")


def _environment(diff: Diff, look: Look) -> Table:
    """Return what else differs between the two sides."""
    rows = rows_of(EnvironmentRow, diff.tables["environment"])
    if not rows:
        # where arguments of operators changed a note names them
        changed_more = len(diff.tables["operator_arguments"])
        what = "No setting that was recorded changed" if changed_more else "Nothing else that was recorded changed"
        note = f"{what} (environment, configuration, profiler settings)."
        return table_of("", [], [], note=note, is_first=True)
    before, after = heads([diff.baseline, diff.candidate])
    fact = ColumnsOf(EnvironmentRow)
    columns = [
        fact.text("kind", lambda row: cells.readable(row.kind)),
        fact.text("what else changed", lambda row: cells.readable(row.key), **NAME),
        replace(before, cell=lambda row: cells.readable(row.baseline), **NAME),
        replace(after, cell=lambda row: cells.readable(row.candidate), **NAME),
    ]
    limit = None if look.details or look.limit == 0 else _ENVIRONMENT_ROWS
    return table_of("", columns, rows, limit, is_first=True, section="environment", findings=len(rows))


def _notes(diff: Diff, look: Look) -> Iterator[str]:
    """Yield what was found, what users accepted, and what else to know."""
    judgement = diff.judgement
    if judgement is not None and judgement.judged:
        counts = Counter(dict(judgement.counts))
        marks = {mark: [word for word in CHANGED if cells.MARKS[word] == mark and counts[word]] for mark in "▲▼?"}
        found = [f"{mark} {', '.join(f'{counts[word]} {word}' for word in own)}" for mark, own in marks.items() if own]
        quiet = [f"{counts[word]} {word} ({_gloss(diff, word)})" for word in GLOSSES
                 if counts[word] and word != "UNCHANGED"]  # fmt: skip
        if counts:
            yield f"Operators: {', '.join([*(found or ['no finding']), *quiet, *_too_small(diff)])}."
        kernels = Counter(row.verdict for row in diff.explanation.contributions if row.kind == "kernel")
        of_kernels = [f"{cells.MARKS[word]} {kernels[word]} {word}" for word in CHANGED if kernels[word]]
        if of_kernels:
            yield f"Kernels outside of operators: {', '.join(of_kernels)}."
        excused = dict.fromkeys(_list_excused(diff))
        if excused:
            named = some_of([*excused])
            yield f"Users accepted these changes, or marked them as false positives; no gate counts them: {named}."
        if judgement.coverage is not None and judgement.coverage.judged < judgement.coverage.expected:
            yield f"{judgement.coverage.words.capitalize()}."
        # what was judged against what is a detail, unless it is not what a reader expects
        yield from (one for one in judgement.sentences[1:] if not one.startswith(("Operators by", "Too few operators")))
    yield from (one.sentence for one in diff.budgets if one.verdict != "not met")
    if diff.bottlenecks is not None and bottleneck.changed(diff):
        before, after = map(bottleneck.short, diff.bottlenecks)
        yield f"The bottleneck changed: {before} -> {after}."
    elif diff.bottlenecks is not None and diff.bottlenecks[1].bound is not None:
        before, after = map(bottleneck.short, diff.bottlenecks)
        yield f"Both sides are {after}." if before == after else f"The candidate is {after}, the baseline {before}."
    shows_operators = "operator" in look.sections() and len(diff.tables["ops"]) > 0
    if (chosen := diff_tables.filters(diff)) and not shows_operators:
        # the table of the operators says it where it stands
        yield f"{chosen} leaves operators out of the tables; what explains the change counts all of them."
    yield from few(diff.notes, look)


def _list_excused(diff: Diff) -> Iterator[str]:
    """Yield what the rows are called that users excused."""
    for table in diff.tables.values():
        if "reason" not in table or EXCUSED not in table.listed("reason"):
            continue
        name = "title" if "title" in table else "name"
        names = table.listed(name) if name in table else [None] * len(table)
        for called, reason in zip(names, table.listed("reason"), strict=True):
            if reason == EXCUSED:
                yield cells.readable(called)


def _gloss(diff: Diff, word: str) -> str:
    """Return what a verdict of operators means, by their reasons."""
    rows = diff.tables["ops"].rows("verdict", "reason")
    glosses = dict.fromkeys(gloss_of(word, reason) for verdict, reason in rows if verdict == word)
    return " or ".join(glosses) or GLOSSES[word]


def _too_small(diff: Diff) -> Iterator[str]:
    """Say how many operators came or went without a verdict, so that the counts are those of the rows."""
    rows = diff.tables["ops"].rows("status", "verdict")
    left = Counter(status for status, verdict in rows if verdict not in CHANGED)
    found = [f"{left[status]} {word}" for status, word in ((ADDED, "new"), (REMOVED, "gone")) if left[status]]
    if found:
        yield f"{' and '.join(found)} that cost next to nothing"


def _replaced(diff: Diff) -> Iterator[str]:
    """Yield a sentence per replacement: what went, what came, and the net."""
    for rename in diff.explanation.renames:
        unit = time_unit(rename.removed_ns, rename.added_ns)
        times = f"{format_ns(rename.removed_ns, unit)} -> {format_ns(rename.added_ns, unit)}"
        relative = format_diff(rename.added_ns / rename.removed_ns - 1.0) if rename.removed_ns else ""
        sides = ([shorten(name, _NAME) for name in side.split(" + ")] for side in (rename.removed, rename.added))
        names = " -> ".join(some_of(side, ", ", 8) for side in sides)
        under = f" under {rename.parent}" if rename.parent != TOP_LEVEL else ""
        yield f"{names}{under}: {rename.word}, {', '.join(filter(None, (times, relative)))}"


def question(diff: Diff) -> list[str]:
    """Return the options of the question, as on the command line."""
    chosen = diff.options
    words = options_of(
        chosen, ("--only", ",".join(chosen.only)), ("--by", chosen.tree), ("--depth", chosen.depth),
        ("--baseline-step", format_numbers(chosen.baseline_steps)),
        ("--candidate-step", format_numbers(chosen.candidate_steps)),
        ("--match", None if chosen.match == "shape" else chosen.match), ("--max-kernels", chosen.max_kernels),
        ("--config", chosen.config), ("--op-map", json.dumps(dict(chosen.op_map)) if chosen.op_map else None),
    )  # fmt: skip
    words += ["--single-kernels"] * chosen.single_kernels
    return words + ["--force"] * (chosen.force and not diff.is_refused)


def _next(diff: Diff, look: Look) -> Iterator[str]:
    sides: Sequence[str] = (diff.baseline.label, diff.candidate.label)
    options = question(diff)
    if look.baseline:
        sides = (diff.candidate.label,)
        options += ["--baseline", look.baseline] if look.baseline != "window" else []
    if diff.is_refused:
        yield command_of(("tracker", "diff"), sides, (*options, "--force"))
        return
    more = [] if look.details or look.only or diff.options.tree else ["--details"]
    if more:
        yield command_of(("tracker", "diff"), sides, (*options, *more))
        if names_modules(diff.tables["modules"]):
            yield command_of(("tracker", "diff"), sides, (*options, "--by", "module"))
    longer = _find_waiting_side(diff)
    if longer is not None:
        yield command_of(
            ("tracker", "cluster"), (longer.label,), options_of(ShowOptions(workload=diff.options.workload))
        )
    yield command_of(("tracker", "diff"), sides, (*options, "-o", "diff.xlsx"))


def _find_waiting_side(diff: Diff) -> Side | None:
    """Return the side that waits more for other ranks, by a part of the step worth asking about; None for none."""
    found = diff.explanation
    waiting = next((row for row in found.contributions if row.metric == WAIT), None)
    shorter_ns = min(found.baseline_ns or 0.0, found.candidate_ns or 0.0)
    if waiting is None or abs(waiting.delta_ns) < _MUCH_WAITING * shorter_ns:
        return None
    return diff.candidate if waiting.delta_ns > 0 else diff.baseline


def list_json(diff: Diff, look: Look) -> dict[str, Any]:
    """Return both sides, what else changed, a list of rows per chosen section, and the explanation."""
    sides = None
    if diff.bottlenecks is not None:
        before, after = map(bottleneck.record, diff.bottlenecks)
        sides = {"baseline": before, "candidate": after, "changed": bottleneck.changed(diff)}
    judgement = None
    if diff.judgement is not None:
        judgement = {**plain(diff.judgement), "counts": dict(diff.judgement.counts)}
    tables = {name: records(rows) for name, rows in choose_tables(diff, look).items()}
    return {
        "baseline": plain(diff.baseline),
        "candidate": plain(diff.candidate),
        "metric": diff.metric,
        "options": list_options(diff.options),
        "notes": plain(diff.notes),
        "environment": records(diff.tables["environment"]),
        "bottleneck": sides,
        **tables,
        "explanation": plain(diff.explanation),
        "judgement": judgement,
        "budgets": plain(diff.budgets),
    }


def list_csv(diff: Diff, look: Look) -> dict[str, Rows]:
    """Return the chosen tables; where a reader chose none, with what explains the change and its sentences."""
    tables = choose_tables(diff, look)
    if look.only or diff.tree_table is not None:
        return tables
    explanation = diff.explanation
    explained: dict[str, Rows] = {}
    for name in ("contributions", "parts", "causes"):
        explained[name] = [asdict(row) for row in getattr(explanation, name)]
    if explanation.mean is not None:
        explained["mean"] = [asdict(row) for row in explanation.mean.causes]
    for name in ("baseline_slow_steps", "candidate_slow_steps"):
        if getattr(explanation, name):
            explained[name] = [asdict(row) for row in getattr(explanation, name)]
    return {
        "environment": diff.tables["environment"],
        "bottleneck": bottleneck.rows(*diff.bottlenecks or ()),
        **tables,
        **explained,
        "judgement": list_notes(diff.judgement.sentences if diff.judgement else ()),
        "notes": list_notes((explanation.headline, *explanation.remarks, *diff.notes)),
    }


VIEW = View(document, json=list_json, csv=list_csv, workbook="diff")
