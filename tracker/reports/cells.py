"""Numbers and names as people read them: one unit for all values of a row, `-` for missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from tracker.compare.references import FILES
from tracker.profile import NO_OP, NOT_LISTED, UNKNOWN_DEVICE, UNLINKED_OP
from tracker.reports.document import Column, group
from tracker.reports.rows import unit_of
from tracker.results import BOTH, PROFILERS, UNMATCHED
from tracker.results.board import LEAST_SEEN_CHANGE, BoardLine
from tracker.results.budgets import JudgedBudget
from tracker.results.diff_rows import OverallRow
from tracker.results.findings import TrackStanding
from tracker.results.shown_rows import CounterRow, CounterSummaryRow, MetricRow
from tracker.results.verdicts import CHANGED, GLOSSES, REASONS, JudgedRow, gloss_of, word_of_step
from tracker.schema.series import PROFILER_OF_WAY
from tracker.units import (
    MISSING_TEXT,
    SAMPLES,
    counted,
    format_bytes,
    format_diff,
    format_ns,
    size_unit,
    some_of,
    time_unit,
)

RowKind = TypeVar("RowKind")
READABLE: Final = {
    UNLINKED_OP: "(unlinked) its launch is not in the capture",
    NO_OP: "(no op) launched outside any op",
    NOT_LISTED: "(not listed) left out of the source's table",
}
PARTS: Final = {
    "compute_ns": "compute", "exposed_communication_ns": "exposed communication", "exposed_copy_ns": "exposed copies",
    "idle_ns": "idle", "data_loading_ns": "data loading", "others_ns": "all but data loading",
    "whole_ns": "not split by the source", "rest_ns": "rest (medians do not add up)",
    "earlier_ns": "parts of other runs",
    "mean_step_ns": "mean step", "peak_allocated_bytes": "peak memory", "samples_per_second": SAMPLES,
    "unprofiled_step_ns": "step without a profiler", "exposed_wait_ns": "waiting for other ranks",
    "exposed_transmit_ns": "transfers",
}  # fmt: skip
"""Parts of a step, and what stands beside them, in words."""
CORES: Final = {"operator_cube_ns": "cube operators", "operator_vector_ns": "vector operators"}
"""Work of each kind of cores of an NPU, in words."""
KINDS: Final = {
    "run": "whole run", "op_name": "op, all shapes", "op": "op", "kernel": "kernel", "communication": "collective",
    "module": "module", "phase": "phase", "api": "host API call", "memory": "memory of an op",
}  # fmt: skip
"""Kinds of series, in words."""
WAYS: Final = {way: word for way, word in PROFILER_OF_WAY.items() if way}
"""Part of a series of whole runs -> word of PROFILERS."""
UNSAID: Final = ("", FILES, UNKNOWN_DEVICE.model)
"""What a title need not say."""
TONES: Final[Mapping[str, str]] = {
    "REGRESSED": "worse", "ADDED": "worse", "SUSPECT": "strong", "IMPROVED": "better", "REMOVED": "better",
}  # fmt: skip
"""Tone of a row by its verdict; the others have none."""
MARKS: Final[Mapping[str, str]] = {
    "REGRESSED": "▲", "ADDED": "▲", "IMPROVED": "▼", "REMOVED": "▼", "SUSPECT": "?",
}  # fmt: skip
"""The mark of a verdict where there is no room for the word."""
_MOST_OF_CHANGE: Final = 10.0
"""Part / change of the total up to which a quotient says something."""
_PAIR: Final = re.compile(r" (?=[^ =]+=)")
OTHER_RUNS: Final = "rows of other runs"
"""By how much the rows differ from those of the runs of the step: each is compared with runs of its own level."""
_BARS: Final = "▁▂▃▄▅▆▇█"
_GAP: Final = "·"
_SMALL: Final = 0.01
_SMALLEST_Q: Final = 0.001
_ROUNDING: Final = 0.001


def part_of(kind: str, part: str, step_kind: str) -> str:
    """Return what tells a series from others of its name: of whole runs, in words, how they were measured; and of which
    kind of steps it is.
    """
    own = PROFILERS[WAYS[part]] if kind == "run" and part in WAYS else part
    return ", ".join(filter(None, (own, step_kind)))


def readable(name: Any) -> str:
    """Return a name as people should read it; the stand-ins for missing ops say what they are."""
    return MISSING_TEXT if name in (None, "") else READABLE.get(str(name), str(name))


def number(value: float | None) -> str:
    """Return a count, or a mean of counts.

    >>> number(1200), number(2.5), number(0.333), number(None)
    ('1,200', '2.5', '0.33', '-')
    """
    if value is None:
        return MISSING_TEXT
    text = f"{value:,.2f}".rstrip("0").rstrip(".")
    return text or "0"


def measured(value: float | None) -> str:
    """Return a measurement in its own unit, with four significant digits.

    >>> measured(0.06691), measured(10868.0), measured(1800.25), measured(1e-5), measured(None)
    ('0.06691', '10,868', '1,800', '1e-05', '-')
    """
    if value is None:
        return MISSING_TEXT
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def share_of_change(part: float | None) -> str:
    """Return a part of the change; below 1 % with a decimal.

    >>> share_of_change(0.713), share_of_change(0.0045), share_of_change(-0.0001), share_of_change(25.0)
    ('71 %', '0.4 %', '0.0 %', '')
    """
    part = leave_out_multiples(part)
    if part is None:
        return ""
    return f"{round(part * 100) + 0} %" if abs(part) >= 0.01 else share(part)


def leave_out_multiples(part: float | None) -> float | None:
    """Return a part of a change; None for one that is many times the whole, which hardly changed.

    >>> leave_out_multiples(-0.5), leave_out_multiples(-1734.473)
    (-0.5, None)
    """
    return None if part is None or abs(part) > _MOST_OF_CHANGE else part


def share(value: float | None) -> str:
    """Return a quotient in per cent.

    >>> share(0.125), share(-0.0001), share(None)
    ('12.5 %', '0.0 %', '-')
    """
    return MISSING_TEXT if value is None else f"{round(value * 100, 1) + 0.0:.1f} %"


def percent(value: float) -> str:
    """Return a threshold, with the digits that were given.

    >>> percent(0.05), percent(0.125)
    ('5 %', '12.5 %')
    """
    return f"{value * 100:g} %"


def signed(text: str, value: float | None) -> str:
    """Return the `text` of a change with its sign; no sign where it shows as zero."""
    digits = text.lstrip("-")
    if value is None or not any(char in "123456789" for char in digits):
        return digits if value is not None else text
    return text if value < 0 else f"+{text}"


def form(unit: str, values: Sequence[float | None]) -> Callable[[float | None], str]:
    """Return a function that writes values that are compared with each other: ns and bytes in one unit, others as
    counts.
    """
    if unit == "ns":
        return partial(format_ns, unit=time_unit(*values))
    if unit == "bytes":
        return partial(format_bytes, unit=size_unit(*values))
    if unit == "per_second":
        return lambda value: number(value) + "/s" * (value is not None)
    return share if unit == "ratio" else number


def cell(value: float | None, unit: str, *beside: float | None) -> str:
    """Return a number in the unit that suits it and the values beside it."""
    return form(unit, [value, *beside])(value)


def change(delta_ns: float | None) -> str:
    """Return a change of time with its sign."""
    return signed(format_ns(delta_ns), delta_ns)


_LEAST_SHOWN: Final = 100
"""A hundredth of a unit is the least that is shown of it."""


def times(before_ns: float | None, after_ns: float | None, *beside: float | None, to: str = "->") -> str:
    """Return two times in the unit that suits them and the values beside them, named once.

    Where that unit would make nothing of the smaller one, each has its own.

    >>> times(94_810_000, 123_700_000), times(918_000, 17_456_898_000, to="to")
    ('94.81 -> 123.70 ms', '918.00 us to 17.46 s')
    """
    unit = time_unit(before_ns, after_ns, *beside)
    if any(value_ns and abs(value_ns) < unit[0] / _LEAST_SHOWN for value_ns in (before_ns, after_ns)):
        return f"{format_ns(before_ns)} {to} {format_ns(after_ns)}"
    return f"{format_ns(before_ns, unit).split(' ')[0]} {to} {format_ns(after_ns, unit)}"


def values(unit: str, baseline: float | None, candidate: float | None, delta: float | None) -> tuple[str, str, str]:
    """Return baseline, candidate and change in one unit; `unit`: ns, bytes, count or ratio."""
    if unit == "ratio":
        points = MISSING_TEXT if delta is None else signed(f"{delta * 100:.1f} pp", delta)
        return share(baseline), share(candidate), points
    text = form(unit, [baseline, candidate, delta])
    return text(baseline), text(candidate), signed(text(delta), delta)


def rest_of(total: float | None, others: Sequence[float], unit: tuple[int, str]) -> float:
    """Return what is left of `total` (ns) beside `others`, such that all add up as they are shown in `unit`: what
    rounding loses belongs to the rest, so that each other number is shown as it stands elsewhere.

    >>> rest_of(1_000_000, [333_333] * 3, (1_000_000, "ms"))
    10000.0
    """
    shown = [float(format_ns(value, unit).split(" ")[0].replace(",", "")) for value in (total or 0.0, *others)]
    return round(shown[0] - sum(shown[1:]), 2) * unit[0]


def pair(baseline: str, candidate: str) -> str:
    """Return two cells as one: `12` where they are equal, else `12 -> 14`."""
    return baseline if baseline == candidate else f"{baseline} -> {candidate}"


def calls(baseline: float | None, candidate: float | None) -> str:
    """Return the calls of both sides; of the one side that has some where a row is on one side only."""
    if baseline is None or candidate is None:
        return number(candidate if baseline is None else baseline)
    return pair(number(baseline), number(candidate))


def diff_text(diff: float | None, status: str | None = BOTH) -> str:
    """Return the relative change in per cent, or ADDED, REMOVED or UNMATCHED.

    >>> diff_text(0.125), diff_text(None, "ADDED")
    ('+12.5 %', 'ADDED')
    """
    return status if status not in (BOTH, None) else format_diff(diff)


def is_small(diff: float | None) -> bool:
    """Return whether a relative change is too small to be coloured: below 1 %, as two runs of one program differ.

    >>> is_small(0.009), is_small(-0.02), is_small(None)
    (True, False, False)
    """
    return diff is not None and abs(diff) < _SMALL


def tone(delta: float | None, diff: float | None, status: str | None = BOTH, verdict: str | None = None) -> str:
    """Return the tone of a row: by its verdict where it was judged, else `worse` or `better` by the sign of the change,
    unless it is small.
    """
    if verdict:
        return TONES.get(verdict, "")
    if not delta or status == UNMATCHED or (status == BOTH and is_small(diff)):
        return ""
    return "worse" if delta > 0 else "better"


def cost(row: OverallRow) -> float | None:
    """Return the change of a row of the overall table, above 0 where it is for the worse; None where it is neither."""
    if row.metric in ("overlap_ns", "samples_per_second"):  # more of them is good news
        return row.delta and -row.delta
    # a count or a correction is neither good nor bad
    return None if row.unit == "count" or row.metric == "groups_at_once_ns" else row.delta


def deciding_runs(version: str, lacks_runs: float, lacks_base_runs: float = 0) -> str:
    """Say which further runs decide what is open; "" where none would.

    >>> deciding_runs("v4", 1), deciding_runs("v2", 1, 2), deciding_runs("v2", 0, 0)
    ('1 more run of v4 decides', '1 more run of v2 and 2 more runs before it decide', '')
    >>> deciding_runs("v2", 0, 1), deciding_runs("v2", 0, 2)
    ('1 more run of an earlier version decides', '2 more runs of earlier versions decide')
    """
    found = []
    if lacks_runs:
        found.append(f"{counted(int(lacks_runs), 'more run')} of {version}")
    if lacks_base_runs:
        earlier = "an earlier version" if lacks_base_runs == 1 else "earlier versions"
        found.append(f"{counted(int(lacks_base_runs), 'more run')} {'before it' if found else f'of {earlier}'}")
    if not found:
        return ""
    return f"{' and '.join(found)} decide{'s' if lacks_runs + lacks_base_runs == 1 else ''}"


def waiting_words(line: TrackStanding | BoardLine) -> str:
    """Say what a track waits for: how its step changed, and which runs decide; "" where that is settled, or says
    nothing.
    """
    words = deciding_runs(line.version, line.lacks_runs or 0, line.lacks_base_runs or 0)
    change = line.step_change
    if not words or change is None or (line.step_verdict != "SUSPECT" and abs(change) < LEAST_SEEN_CHANGE):
        return ""
    return f"step {format_diff(change)}: {words}"


def budget_words(judged: Sequence[JudgedBudget], most: int) -> Iterator[str]:
    """Yield a sentence on each budget that is not met, of the first few, and how many others came out how."""
    broken = [one for one in judged if one.verdict == "not met"]
    yield from (one.sentence for one in broken[:most])
    counts = {
        "more not met": max(0, len(broken) - most),
        "not judged": sum(one.verdict == "not judged" for one in judged),
        "met": sum(one.verdict == "met" for one in judged),
    }
    words = [f"{count:,} {word}" for word, count in counts.items() if count]
    if words:
        yield f"Budgets: {', '.join(words)}."


def so_far_words(line: BoardLine) -> str:
    """Say how many of the usual runs of a version came, where more may come and change what was found in it."""
    is_found = line.step_verdict in CHANGED or line.new or line.suspects
    return line.so_far if is_found else ""


def verdict_word(verdict: str | None, status: str | None = BOTH, reason: str | None = None) -> str:
    """Return the verdict of a row, with what else it may be; what came or went and is too small to matter has none.

    >>> verdict_word("REGRESSED"), verdict_word("UNCHANGED", "ADDED")
    ('REGRESSED', '')
    """
    if status in ("ADDED", "REMOVED") and verdict not in TONES:
        return ""
    return word_of_step(verdict or "", reason)


def judged_text(shown: float | None, judged_on: float | None) -> str:
    """Return the change that the verdict rests on, where it is another than the row shows by more than rounding.

    >>> judged_text(0.3, judged_on=0.25), judged_text(0.3, judged_on=0.3004)
    ('+25.0 %', '')
    """
    if judged_on is None or (shown is not None and abs(judged_on - shown) <= _ROUNDING):
        return ""
    return format_diff(judged_on)


def q_text(q: float | None) -> str:
    """Return the false discovery rate, as short as it decides.

    >>> q_text(0.0312), q_text(1e-9), q_text(None)
    ('0.031', '<0.001', '')
    """
    if q is None:
        return ""
    return f"<{_SMALLEST_Q}" if q < _SMALLEST_Q else f"{q:.3f}"


def verdict_or_why(verdict: str | None, *changes: float | None) -> str:
    """Return a verdict; one that is no change only where one of `changes` is 2 % or more.

    >>> verdict_or_why("REGRESSED", 0.3), verdict_or_why("UNCHANGED", 0.01), verdict_or_why("DRIFT", 0.07)
    ('REGRESSED', '', 'DRIFT')
    """
    is_visible = any(change is not None and abs(change) >= LEAST_SEEN_CHANGE for change in changes)
    return (verdict or "not judged") if verdict in TONES or is_visible else ""


def count_changes(rows: Iterable[JudgedRow]) -> str:
    """Count the changes of these rows by their verdict and what else it may be.

    >>> from tracker.results.verdicts import SeriesVerdict as Row
    >>> slower, of_a_host = Row("REGRESSED", "NONE"), Row("REGRESSED", "HOST")
    >>> count_changes([slower, slower, of_a_host, Row("UNCHANGED")])
    '2 REGRESSED, 1 REGRESSED or another host'
    """
    counts: Counter[tuple[int, str]] = Counter()
    for row in rows:
        if row.verdict in CHANGED:
            counts[CHANGED.index(row.verdict), word_of_step(row.verdict, row.reason)] += 1
    return ", ".join(f"{count} {word}" for (_, word), count in sorted(counts.items()))


def glosses(words: Iterable[str]) -> str:
    """Say what the verdicts mean that are no change, of those in `words`.

    >>> glosses(["DRIFT", "REGRESSED", "BELOW_LIMIT", "DRIFT"])
    'BELOW_LIMIT: too small to matter; DRIFT: moved as all operators did'
    """
    found = {*words}
    return "; ".join(f"{word}: {gloss}" for word, gloss in GLOSSES.items() if word in found)


class ShownVerdict(Struct, frozen=True):
    """A verdict on a screen: what it is of, its word there, and the code of its reason."""

    name: str
    word: str
    reason: str | None


def glosses_of(verdicts: Iterable[ShownVerdict]) -> str:
    """Say what `verdicts` mean that are no change. What no noise makes INCONCLUSIVE is named, with the reason.

    >>> verdicts = [ShownVerdict("v1", "INCONCLUSIVE", "OVERLAP"), ShownVerdict("v2", "INCONCLUSIVE", "HOST")]
    >>> glosses_of(verdicts).partition(",")[0]
    'INCONCLUSIVE: too noisy; v2 INCONCLUSIVE: too few of the runs before are of the same host'
    """
    words = []
    named: dict[str, list[str]] = {}
    for one in verdicts:
        if gloss_of(one.word, one.reason) == GLOSSES.get(one.word, ""):
            words.append(one.word)
        else:
            named.setdefault(f"{one.word}: {REASONS[one.reason or '']}", []).append(one.name)
    others = [f"{some_of([*dict.fromkeys(names)])} {meaning}" for meaning, names in named.items()]
    return "; ".join(filter(None, (glosses(words), *others)))


def pairs(configuration: str) -> list[tuple[str, str]]:
    """Return keys and values of a configuration.

    >>> pairs("batch=32 precision=bf16"), pairs("")
    ([('batch', '32'), ('precision', 'bf16')], [])
    """
    found = (pair.partition("=") for pair in _PAIR.split(configuration) if pair)
    return [(key, value) for key, _, value in found]


def of(name: str, form: Callable[[Any], str] = readable) -> Callable[[Any], str]:
    """Return a function that makes the cells of a column: what a row has in the field `name`, in this form."""
    return lambda row: form(getattr(row, name))


def col(header: str, name: str = "", form: Callable[[Any], str] | None = None, **kind: Any) -> Column:
    """Return the column of what rows have in the field `name` (the header, where that is ""), in the form of its unit
    unless `form` is another: numbers to the right, texts to the left. `kind`: other fields of the column.
    """
    unit = unit_of(name or header)
    return Column(header, of(name or header, form or _FORMS[unit]), **{"left": not unit} | kind)


class ColumnsOf(Generic[RowKind]):
    """Make the columns of rows of one kind: a type checker then names each field that these rows do not have."""

    def __init__(self, kind: type[RowKind]) -> None:
        self.kind = kind

    def number(self, header: str, cell: Callable[[RowKind], str], **look: Any) -> Column:
        """Return a column of numbers, aligned to the right. `look`: other fields of the column."""
        return Column(header, cell, **look)

    def text(self, header: str, cell: Callable[[RowKind], str], **look: Any) -> Column:
        """Return a column of texts, aligned to the left. `look`: other fields of the column."""
        return Column(header, cell, **{"left": True} | look)


def blank(value: Any) -> str:
    """Return a text, empty where there is none."""
    return str(value or "")


def words(value: Any) -> str:
    """Return a text as it is, `-` for None."""
    return MISSING_TEXT if value is None else str(value)


def rate(value: float | None) -> str:
    """Return a rate, in GB/s or the like."""
    return MISSING_TEXT if value is None else f"{value:,.2f}"


_FORMS: Final[Mapping[str, Callable[[Any], str]]] = {
    "ns": format_ns, "bytes": format_bytes, "count": number, "ratio": share, "change": format_diff,
    "number": measured, "rate": rate, "": readable,
}  # fmt: skip
"""Unit of a column -> how a cell of it is written."""


def together(unit: str, columns: Mapping[str, Column]) -> Column:
    """Return columns whose numbers are in one unit, by the name of what they show of a row."""

    def cells(row: Any) -> list[str]:
        values = [getattr(row, name) for name in columns]
        return [cell(value, unit, *values) for value in values]

    return group(columns.values(), cells)


def measures(*headers: str) -> Column:
    """Return mean, minimum and maximum of a measurement."""

    def cells(row: MetricRow | CounterRow | CounterSummaryRow) -> list[str]:
        return [measured(row.mean), measured(row.min), measured(row.max)]

    return group(map(Column, headers), cells)


def per_call(total: str, *drops: int) -> Column:
    """Return average, minimum and maximum of one call, in one unit; `drops`: of the three columns.

    `total`: the column of the time of all calls.
    """

    def cells(row: Any) -> list[str]:
        whole, calls = getattr(row, total), row.calls
        times = [whole / calls if whole is not None and calls else None, row.min_ns, row.max_ns]
        return [cell(time, "ns", *times) for time in times]

    heads = ("average", "minimum", "maximum")
    return group((Column(head, drop=drop) for head, drop in zip(heads, drops, strict=True)), cells)


def group_words(
    role: str | None, size: int | None, data_type: str | None = None, size_class_bytes: int | None = None
) -> str:
    """Return the key of a collective behind its kind: group, data type, size class.

    >>> group_words("dp", 8, "bfloat16", 1 << 20)
    'dp x8, bfloat16, size class 1.00 MiB'
    """
    # the match keys of the store are never NULL: -1 and 0 stand for "the source does not say" there
    group = " ".join(filter(None, (role, f"x{number(size)}" if size and size > 0 else "")))
    size_class = f"size class {format_bytes(size_class_bytes)}" if size_class_bytes and size_class_bytes > 0 else ""
    return ", ".join(filter(None, (group, data_type, size_class))) or MISSING_TEXT


def sparkline(values: Sequence[float | None]) -> str:
    """Draw the course of `values` as bars from the smallest to the largest; None is a gap.

    >>> sparkline([1.0, 1.0, None, 2.0, 1.5]), sparkline([3.0, 3.0])
    ('▁▁·█▄', '▁▁')
    """
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_GAP if value is None else _BARS[int((value - low) * scale + 1e-9)] for value in values)


def course_on_scale(changes: Sequence[float | None], reach: float) -> str:
    """Draw changes as bars from -`reach` to +`reach`, what is beyond at the edge; None is a gap.

    >>> course_on_scale([-0.5, 0.0, 0.25, None], 0.25)
    '▁▄█·'
    """
    bars = []
    for change in changes:
        if change is None:
            bars.append(_GAP)
            continue
        share_of_scale = (min(max(change, -reach), reach) + reach) / (2 * reach)
        bars.append(_BARS[int(share_of_scale * (len(_BARS) - 1))])
    return "".join(bars)


def spread(runs: int, value: float | None, minimum: float | None, maximum: float | None) -> str:
    """Say how many runs, and how far they lie from the middle of their range.

    >>> spread(3, 100.0, 98.0, 102.0), spread(1, 100.0, 100.0, 100.0)
    ('3, ±2.0 %', '1')
    """
    if runs < 2 or not value or minimum is None or maximum is None:
        return str(runs)
    return f"{runs}, ±{share((maximum - minimum) / 2 / value)}"
