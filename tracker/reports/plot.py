"""Charts of series over versions or over time, as SVG that a script may add a crosshair and a zoom to.

Places along the width are per cent, those along the height are pixels, so that text and lines keep their size. The
numbers that the script shows are texts which are made here; it only finds the nearest of them.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from gzip import compress
from operator import itemgetter
from typing import Final

from markupsafe import escape
from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len

from tracker.reports.cells import form, signed
from tracker.reports.document import Courses, Curves, Marker, Overview, Plot, PlotLevel, PlotSeries, Target, Trend
from tracker.reports.text import shorten
from tracker.units import (
    NS_PER_DAY,
    NS_PER_HOUR,
    NS_PER_MINUTE,
    NS_PER_S,
    counted,
    format_diff,
    printable,
    size_unit,
    time_unit,
)

LEAST_AXIS: Final = 0.05
"""Part of the largest value that an axis spans at least: noise must not look like a change."""
MOST_SERIES: Final = 6
"""Series of one plot: so many can be told from each other by colour and dashes."""
_HEIGHT: Final = 230
_TOP: Final = 30
_BOTTOM: Final = 24
_MARKER_ROW: Final = 16
"""Pixels of the whole drawing, of the space for words above the values, of the labels below the axis, and of the row
of markers between, where there are any.
"""
_TICKS: Final = 4
"""Steps between the ticks of an axis, about."""
_ROUND: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_LABEL_CELLS: Final = 14
"""Terminal cells of a label below the axis; the whole name stands in the line below the chart."""
_CELL, _WIDE_CELL = 7.6, 9.0
"""Pixels of a character of a label, and of a verdict in bold capitals."""
_WIDE, _NARROW = 575.0, 290.0
"""Pixels that a drawing has at least: on a screen of more than 700, and on one of 400."""
_MOST_DOTS: Final = 300
"""Positions up to which each value has a dot and a link, and each run a dot; of more only what changed has one."""
_BUCKETS: Final = 600
"""Parts of a longer course: of each its smallest and its largest value are drawn."""
_LINE: Final = 15
"""Pixels of the height of a line of text."""
_MOST_WORDS: Final = 150
"""Verdicts, the newest ones, that are written beside their values where they have room."""
_CURVE_PARTS: Final = 250
"""Parts of all curves of a plot over time together: a file of two sides stays small."""
_PARTS_OF_OVERVIEW: Final = 150
_HEIGHT_OF_OVERVIEW: Final = 36
"""Parts and pixels of the course of all versions below a chart of some of them."""
_MARK: Final = 12
"""Pixels of a marker and the space beside it."""
_LIMIT_REACH: Final = 2.0
"""How far beyond the values a limit is drawn, by the span of these."""
_LEAST_GAP: Final = 0.8
"""Per cent of the width between two markers."""
_DATES: Final = (
    (NS_PER_MINUTE, "%m-%d %H:%M"), (10 * NS_PER_MINUTE, "%m-%d %H:%M"), (NS_PER_HOUR, "%m-%d %H:%M"),
    (6 * NS_PER_HOUR, "%m-%d %H:%M"), (NS_PER_DAY, "%Y-%m-%d"), (2 * NS_PER_DAY, "%Y-%m-%d"),
    (7 * NS_PER_DAY, "%Y-%m-%d"), (14 * NS_PER_DAY, "%Y-%m-%d"),
)  # fmt: skip
"""Steps between round moments, and how these are written."""
_MONTHS: Final = (1, 3, 6, 12, 24, 60)
_MOST_DATES: Final = 8
_MARKS: Final = {
    "environment": ("M0-5l5 9h-10z", "environment changed"), "note": ("M-4-4h8v8h-8z", "note"),
    "level": ("M0-5l5 5l-5 5l-5-5z", "a level begins"), "incident": ("M0-5l5 5l-5 5l-5-5z", "version of the incident"),
}  # fmt: skip
"""Kind of a marker -> its shape around its place, and its words."""
TONED: Final = {"worse": "M0-6l6 10h-12z", "better": "M0 6l6-10h-12z"}
"""Tone of a value -> its shape: up for worse, down for better, as in the headline."""

Link = Callable[[Target], str] | None


class _Label(Struct, frozen=True):
    """A text in the drawing: its place along the width, the pixels of its width, and where its line stands."""

    x: float
    text: str
    width: float
    y: float


def drawn_as_plot(drawn: Trend | Curves | Courses | Plot) -> Plot | None:
    """Return any chart of series as a plot; None where there is nothing to draw."""
    if isinstance(drawn, Trend):
        drawn = _plot_of_trend(drawn)
    elif isinstance(drawn, Curves):
        found = _plot_of_curves(drawn)
        if found is None:
            return None
        drawn = found
    elif isinstance(drawn, Courses):
        drawn = _plot_of_courses(drawn)
    known = tuple(one for one in drawn.series if any(value is not None for value in one.values))
    return replace(drawn, series=known[:MOST_SERIES]) if known and drawn.names else None


def draw(drawn: Plot, link: Link) -> str:
    """Return the figure of a plot: the drawing, what it says at one position, and the same of all for a script.

    `link`: the address of a target, None for a file, which has no links.
    """
    values = [_values(one, drawn.axis) for one in drawn.series]
    unit = "change" if drawn.axis == "change" else drawn.series[0].unit
    runs = [value for one in drawn.series for own in one.runs for value in own] if drawn.axis != "change" else []
    every = [value for own in values for value in own if value is not None] + runs
    wanted = _limits_near(drawn, every, unit)
    every += [value for value, _ in wanted]
    ticks, write = ticks_of(*limits([*every, 0.0] if drawn.axis == "zero" else every, unit), unit)
    has_markers = any(drawn.markers)
    floor = _HEIGHT - _BOTTOM - _MARKER_ROW * has_markers

    def y_of(value: float) -> float:
        return _TOP + (ticks[-1] - value) / (ticks[-1] - ticks[0]) * (floor - _TOP)

    x_of = _positions(drawn)
    addresses = [link(one) if one and link else "" for one in drawn.links] or [""] * len(x_of)
    scale = [write(tick) for tick in ticks]
    gutter = max(math.ceil(_CELL * len(text)) for text in scale) + 8
    grid = [f'<rect class=grid width=100% y="{y_of(tick):.1f}" height=1 />' for tick in ticks]
    labels = [
        f'<text class=scale x={gutter - 8} y="{y_of(tick) + 4:.1f}" text-anchor=end>{_text(text)}</text>'
        for tick, text in zip(ticks, scale, strict=True)
    ]
    area = [
        _course(one, own, x_of, y_of, at, len(drawn.series))
        for at, (one, own) in enumerate(zip(drawn.series, values, strict=True))
    ]
    across = [
        f'<rect class=limit width=100% y="{y_of(value) - 0.75:.1f}" height=1.5>{title(words)}</rect>'
        for value, words in wanted
    ]
    parts = [
        *grid,
        *across,
        f'<svg class=area viewBox="0 0 100 {_HEIGHT}" width=100% height={_HEIGHT} preserveAspectRatio=none>'
        f"{''.join(_rules(drawn, x_of, floor))}{''.join(area)}</svg>",
        *_markers(drawn, x_of, floor),
        *_points(drawn, values, x_of, y_of, addresses),
        *_words(drawn, values, x_of, y_of, floor),
        *_labels_below(drawn, x_of),
    ]
    about = _about(drawn, ticks, write, unit)
    role = "group" if any(addresses) else "img"
    chosen = _position_to_read(drawn)
    packed = _packed(drawn, values, x_of, y_of, addresses)
    places = "".join(
        f' data-{name}="{_text(link(target))}"'
        for name, target in (("pair", drawn.pair), ("zoom", drawn.zoom))
        if target is not None and link is not None and link(target)
    )
    if any(addresses):
        places += f' data-click="{_text(drawn.leads_to)}"'
    return (
        f"<figure class=plot data-at={chosen}{places}>{_choices(drawn, link)}<div class=frame>"
        f"<svg class=chart width={gutter} height={_HEIGHT} aria-hidden=true>{''.join(labels)}</svg>"
        f'<svg class=chart height={_HEIGHT} role={role} aria-label="{_text(about)}">{"".join(parts)}</svg></div>'
        f"{_range_bar(drawn.overview, link)}{_readout(drawn, chosen)}{_legend(drawn, ticks, write, wanted)}"
        f'<script type="application/octet-stream">{packed}</script></figure>'
    )


def limits(values: Sequence[float], unit: str = "") -> tuple[float, float]:
    """Return the ends of an axis; it spans at least a part of the largest value, and 5 % of changes."""
    low, high = min(values), max(values)
    least = LEAST_AXIS if unit in ("change", "ratio") else LEAST_AXIS * max(abs(low), abs(high)) or 1.0
    lack = max(0.0, least - (high - low)) / 2
    return (low if low == 0 else low - lack), high + lack


def ticks_of(low: float, high: float, unit: str) -> tuple[list[float], Callable[[float], str]]:
    """Return round values from at most `low` to at least `high`, and how they are written: all with equal digits.

    >>> ticks, write = ticks_of(94_810_000, 123_700_000, "ns")
    >>> [write(tick) for tick in ticks]
    ['90 ms', '100 ms', '110 ms', '120 ms', '130 ms']
    """
    size, name = _unit_size(low, high, unit)
    least = (high - low) / size / _TICKS
    power = 10.0 ** math.floor(math.log10(least))
    step = next(part * power for part in _ROUND if part * power >= least * 0.999)
    first, last = math.floor(low / size / step + 1e-9), math.ceil(high / size / step - 1e-9)
    digits = next(count for count in range(12) if count == 11 or _is_whole(step * 10**count))

    def write(value: float) -> str:
        text = f"{value / size:,.{digits}f}"
        text = text.removeprefix("-") if not float(text.replace(",", "")) else text
        return f"+{text}{name}" if unit == "change" and value > 0 and text.strip("0.") else f"{text}{name}"

    return [at * step * size for at in range(first, last + 1)], write


def _is_whole(value: float) -> bool:
    return abs(value - round(value)) < 1e-6


def _unit_size(low: float, high: float, unit: str) -> tuple[float, str]:
    if unit == "ns":
        size, name = time_unit(low, high)
        return size, f" {name}"
    if unit == "bytes":
        size, name = size_unit(low, high)
        return size, f" {name}"
    if unit in ("change", "ratio"):
        return 0.01, " %"
    return 1.0, "/s" if unit == "per_second" else ""


def _values(series: PlotSeries, axis: str) -> list[float | None]:
    """Return what is drawn of a series: its values, or how they changed since the first one."""
    if axis != "change":
        return [*series.values]
    first = next((value for value in series.values if value), None)
    return [None if value is None or first is None else value / first - 1 for value in series.values]


def _limits_near(drawn: Plot, values: Sequence[float], unit: str) -> list[tuple[float, str]]:
    """Return the limits of the first series as values of the axis, those that do not press the values together."""
    own = drawn.limits
    if drawn.axis == "change":
        first = next((value for value in drawn.series[0].values if value), None)
        own = () if first is None else tuple((value / first - 1, words) for value, words in own)
    low, high = limits(values, unit)
    reach = _LIMIT_REACH * (high - low)
    return [(value, words) for value, words in own if low - reach <= value <= high + reach]


def _positions(drawn: Plot) -> list[float]:
    """Return where the positions are, in per cent of the width."""
    count = len(drawn.names)
    if not drawn.places:
        return [100 * (at + 0.5) / count for at in range(count)]
    first, last = min(drawn.places), max(drawn.places)
    # a moment may have a dot, which needs room; a curve begins at the edge
    room = 2.0 if drawn.is_dated else 0.0
    span = last - first
    if not span:
        return [50.0] * count
    return [room + (100 - 2 * room) * (place - first) / span for place in drawn.places]


def _course(
    series: PlotSeries,
    values: Sequence[float | None],
    x_of: Sequence[float],
    y_of: Callable[[float], float],
    at: int,
    count: int,
) -> str:
    """Return the line of a series, broken where it has no value, and what its runs say around it."""
    kind = "line" if count == 1 else f"curve s{at}"
    order = sorted(range(len(x_of)), key=x_of.__getitem__)
    path = line_path([(x_of[place], values[place]) for place in order], y_of)
    parts = []
    if count == 1 and series.levels and values == [*series.values]:
        parts.append(f'<path class=levels d="{_level_bands(series, x_of, y_of)}"/>')
    if count == 1 and series.runs and values == [*series.values]:
        if len(x_of) > _MOST_DOTS:
            parts.append(f'<path class=band d="{_band(series, x_of, y_of)}"/>')
        else:
            dots = [f"M{x:.2f} {y_of(value):.1f}h0" for x, own in zip(x_of, series.runs, strict=True) for value in own]
            parts.append(f'<path class=runs d="{"".join(dots)}"/>' if dots else "")
    return f'{"".join(parts)}<path class="{kind}" d="{path}"/>'


def line_path(places: Sequence[tuple[float, float | None]], y_of: Callable[[float], float]) -> str:
    """Return the path of a course: broken where a value is missing, a long one only with its extremes."""
    parts = []
    is_open = False
    for x, value in _thinned(places):
        if value is None:
            is_open = False
            continue
        parts.append(f"{'L' if is_open else 'M'}{x:.2f} {y_of(value):.1f}{'' if is_open else 'h0'}")
        is_open = True
    return "".join(parts)


def _thinned(
    places: Sequence[tuple[float, float | None]], parts: int = _BUCKETS
) -> Iterator[tuple[float, float | None]]:
    """Yield the places of a course; of a long one the smallest and the largest value of each part, and its gaps."""
    if len(places) <= 2 * parts:
        yield from places
        return
    size = -(-len(places) // parts)
    for start in range(0, len(places), size):
        part = places[start : start + size]
        known = [at for at, (_, value) in enumerate(part) if value is not None]
        kept = {at for at, (_, value) in enumerate(part) if value is None}
        if known:
            kept |= {min(known, key=lambda at: part[at][1] or 0.0), max(known, key=lambda at: part[at][1] or 0.0)}
        yield from (part[at] for at in sorted(kept))


def _band(series: PlotSeries, x_of: Sequence[float], y_of: Callable[[float], float]) -> str:
    """Return the outline of what the runs of a long course reach."""
    size = -(-len(x_of) // _BUCKETS)
    order = sorted(range(len(x_of)), key=x_of.__getitem__)
    upper, lower = [], []
    for start in range(0, len(order), size):
        own = [value for place in order[start : start + size] for value in series.runs[place]]
        if own:
            upper.append(f"{x_of[order[start]]:.2f} {y_of(max(own)):.1f}")
            lower.append(f"{x_of[order[start]]:.2f} {y_of(min(own)):.1f}")
    return f"M{'L'.join([*upper, *reversed(lower)])}z" if upper else ""


def _level_bands(series: PlotSeries, x_of: Sequence[float], y_of: Callable[[float], float]) -> str:
    """Return the outline of each level: from half-way to the position before it to half-way to the one behind it.

    By date versions may stand in another order than they came: then levels have no outline.
    """
    if list(x_of) != sorted(x_of):
        return ""
    parts = []
    for one in series.levels:
        left, right = _ends_of_level(one, x_of)
        parts.append(f"M{left:.2f} {y_of(one.largest):.1f}H{right:.2f}V{y_of(one.smallest):.1f}H{left:.2f}z")
    return "".join(parts)


def _ends_of_level(level: PlotLevel, x_of: Sequence[float]) -> tuple[float, float]:
    """Return where the band of a level begins and ends, in per cent of the width."""
    left = (x_of[level.first - 1] + x_of[level.first]) / 2 if level.first else 0.0
    right = (x_of[level.last] + x_of[level.last + 1]) / 2 if level.last + 1 < len(x_of) else 100.0
    return left, right


def _rules(drawn: Plot, x_of: Sequence[float], floor: float) -> Iterator[str]:
    """Yield a line over the whole height where something came with a version."""
    for kind in _MARKS:
        marked = [x for x, own in zip(x_of, drawn.markers, strict=False) if any(one.kind == kind for one in own)]
        lines = "".join(f"M{x:.2f} {_TOP - 8}V{floor}" for x in _spaced(sorted(marked)))
        if lines:
            yield f'<path class="rule {kind}" d="{lines}"/>'


def _markers(drawn: Plot, x_of: Sequence[float], floor: float) -> Iterator[str]:
    """Yield the signs of what came with each version, several ones of a version beside each other."""
    marked = {x: own for x, own in zip(x_of, drawn.markers, strict=False) if own}
    for x in _spaced(sorted(marked)):
        kinds = [kind for kind in _MARKS if any(one.kind == kind for one in marked[x])]
        for at, kind in enumerate(kinds):
            says = "; ".join(one.text for one in marked[x] if one.kind == kind)
            shift = (at - (len(kinds) - 1) / 2) * _MARK
            shape = f'<path transform="translate({shift:g} 0)" d="{_MARKS[kind][0]}"/>'
            y = floor + _MARKER_ROW / 2 + 1
            yield f'<svg class="mark {kind}" x="{x:.2f}%" y="{y:.1f}">{title(says)}{shape}</svg>'


def _spaced(places: Sequence[float]) -> list[float]:
    """Return places without those that are too near to the one before them."""
    kept: list[float] = []
    for x in places:
        if not kept or x - kept[-1] >= _LEAST_GAP:
            kept.append(x)
    return kept


def _shape(kind: str, x: float, y: float, path: str, says: str) -> str:
    return f'<svg class="{kind}" x="{x:.2f}%" y="{y:.1f}">{title(says)}<path d="{path}"/></svg>'


def _points(
    drawn: Plot,
    values: Sequence[list[float | None]],
    x_of: Sequence[float],
    y_of: Callable[[float], float],
    addresses: Sequence[str],
) -> Iterator[str]:
    """Yield a dot per value, a shape where it changed; of a long course only the shapes, of curves the largest."""
    is_curve = bool(drawn.places) and not drawn.is_dated
    for at, (series, own) in enumerate(zip(drawn.series, values, strict=True)):
        text = _written_as(series)
        tones = series.tones or [""] * len(own)
        shown = [place for place, value in enumerate(own) if value is not None]
        if is_curve:
            shown = [max(shown, key=lambda place: own[place] or 0.0)]
        elif len(own) > _MOST_DOTS:
            changed = [place for place in shown if tones[place]]
            apart = set(_spaced(sorted(x_of[place] for place in changed)))
            shown = [place for place in changed if x_of[place] in apart]
        for place in shown:
            value = own[place]
            if value is None:
                continue
            word = series.words[place] if series.words else ""
            says = ", ".join(filter(None, (f"{drawn.names[place]}: {text(series.values[place])}", word)))
            x, y, tone = x_of[place], y_of(value), tones[place]
            if tone in TONED:
                dot = _shape(f"dot {tone}", x, y, TONED[tone], says)
            else:
                kind = f"s{at}" if len(drawn.series) > 1 else ""
                dot = (
                    f'<circle class="{kind}" cx="{x:.2f}%" cy="{y:.1f}" r={4 if is_curve else 3}>{title(says)}</circle>'
                )
            address = addresses[place]
            yield f'<a href="{_text(address)}" aria-label="{_text(says)}">{dot}</a>' if address else dot


def _words(
    drawn: Plot,
    values: Sequence[list[float | None]],
    x_of: Sequence[float],
    y_of: Callable[[float], float],
    floor: float,
) -> Iterator[str]:
    """Yield the verdicts that have room, the newest first, then the numbers of levels that do; words must not meet, and
    the table has all verdicts.
    """
    if len(drawn.series) > 1 or not drawn.series[0].words:
        return
    series, own = drawn.series[0], values[0]
    candidates: list[tuple[_Label, str]] = []
    for place in range(len(own) - 1, -1, -1):
        value = own[place]
        if value is None or not series.words[place]:
            continue
        before = next((one for one in reversed(own[:place]) if one is not None), value)
        runs = series.runs[place] if series.runs and drawn.axis != "change" else ()
        # not where the line comes from
        y = y_of(min((value, *runs))) + 20 if value < before else y_of(max((value, *runs))) - 11
        word = series.words[place]
        label = _Label(x_of[place], word, _WIDE_CELL * cell_len(word), max(y, 11.0))
        candidates.append((label, series.tones[place] if series.tones else ""))
        if len(candidates) == _MOST_WORDS:
            break
    if drawn.axis != "change":
        kept = _apart((label for label, _ in candidates), _WIDE)
        for places in _labels_of_levels(series, x_of, y_of, floor):
            free = next((one for one in places if _has_room(one, kept, _WIDE)), None)
            if free is not None:
                kept.append(free)
                candidates.append((free, "mean"))
    wide = _apart((label for label, _ in candidates), _WIDE)
    narrow = _apart(wide, _NARROW)
    for label, tone in candidates:
        if label in wide:
            yield _written(label, f"word {tone} {'' if label in narrow else 'odd'}")


def _labels_of_levels(
    series: PlotSeries, x_of: Sequence[float], y_of: Callable[[float], float], floor: float
) -> Iterator[list[_Label]]:
    """Yield where the mean of each level may stand: above its band, or below it; nowhere beside one that is too short
    for it, or of one version.
    """
    text = _written_as(series)
    if list(x_of) != sorted(x_of):
        return
    for one in series.levels:
        left, right = _ends_of_level(one, x_of)
        words = text(one.mean)
        width = _CELL * cell_len(words)
        above, below = y_of(one.largest) - 5, y_of(one.smallest) + 14
        # of a single version the number would stand on the line, and say no more than its point
        if one.last > one.first and width <= (right - left) / 100 * _WIDE:
            yield [_Label((left + right) / 2, words, width, y) for y in (above, below) if _LINE <= y <= floor - 4]


def _apart(labels: Iterable[_Label], pixels: float) -> list[_Label]:
    """Return the labels, the first ones first, that meet no other one beside or above them."""
    kept: list[_Label] = []
    for label in labels:
        if _has_room(label, kept, pixels):
            kept.append(label)
    return kept


def _has_room(label: _Label, kept: Sequence[_Label], pixels: float) -> bool:
    """Return whether a label meets none of those that are kept."""
    left, right = _span(label, pixels)
    others = [_span(other, pixels) for other in kept if abs(other.y - label.y) < _LINE]
    return all(right <= start or end <= left for start, end in others)


def _labels_below(drawn: Plot, x_of: Sequence[float]) -> Iterator[str]:
    """Yield the labels below the axis that have room, the last one in any case."""
    labels = [_Label(x, text, _CELL * cell_len(text), _HEIGHT - 6) for x, text in _named_places(drawn, x_of)]
    wide = _without_meeting(sorted(labels, key=lambda label: -label.x), _WIDE)
    narrow = set(_without_meeting(wide, _NARROW))
    for label in reversed(wide):
        yield _written(label, "" if label in narrow else "odd")


def _named_places(drawn: Plot, x_of: Sequence[float]) -> Iterator[tuple[float, str]]:
    """Yield what is written below the axis: names of versions, round dates, or round times since the start."""
    if not drawn.places:
        for x, name in zip(x_of, drawn.names, strict=True):
            yield x, shorten(printable(name), _LABEL_CELLS)
        return
    first, last = min(drawn.places), max(drawn.places)
    left, right = min(x_of), max(x_of)
    scale = (right - left) / (last - first) if last > first else 0.0
    if drawn.is_dated:
        for moment, text in _dates(first, last):
            yield left + (moment - first) * scale, text
        return
    ticks, write = ticks_of(0.0, max(last * NS_PER_S, 1.0), "ns")
    for tick in ticks:
        if tick <= last * NS_PER_S:
            yield (tick / NS_PER_S - first) * scale + left, write(tick)


def _dates(first: float, last: float) -> Iterator[tuple[float, str]]:
    """Yield round moments between two, in seconds since 1970, and how they are written, in UTC.

    >>> [text for _, text in _dates(1_772_000_000, 1_774_000_000)]
    ['2026-02-26', '2026-03-05', '2026-03-12', '2026-03-19']
    """
    span = (last - first) * NS_PER_S
    for step_ns, written in _DATES:
        if span / step_ns <= _MOST_DATES:
            step = step_ns // NS_PER_S
            start = math.ceil(first / step) * step
            moments = [start + at * step for at in range(int((last - start) // step) + 1)] if start <= last else [first]
            for moment in moments:
                yield moment, datetime.fromtimestamp(moment, UTC).strftime(written)
            return
    begin, end = datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)
    months = (end.year - begin.year) * 12 + end.month - begin.month
    step = next((one for one in _MONTHS if months / one <= _MOST_DATES), _MONTHS[-1])
    for month in range(begin.year * 12 + begin.month, end.year * 12 + end.month):
        if month % step == 0:
            moment = datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp()
            yield moment, f"{month // 12}-{month % 12 + 1:02}"


def _without_meeting(labels: Sequence[_Label], pixels: float) -> list[_Label]:
    """Return the labels, from right to left, that have room on so many pixels."""
    kept: list[_Label] = []
    free = math.inf
    for label in labels:
        left, right = _span(label, pixels)
        if right <= free:
            kept.append(label)
            free = left
    return kept


def _anchor(label: _Label) -> str:
    half = label.width / _NARROW * 50
    return "start" if label.x < half else "end" if label.x > 100 - half else "middle"


def _span(label: _Label, pixels: float) -> tuple[float, float]:
    """Return from where to where a label goes, with a space around it, in per cent of so many pixels."""
    width = (label.width + 10) / pixels * 100
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[_anchor(label)]
    return label.x - shift * width, label.x + (1 - shift) * width


def _written(label: _Label, kind: str) -> str:
    words = " ".join(kind.split())
    return (
        f'<text class="{words}" x="{label.x:.2f}%" y="{label.y:.1f}" text-anchor={_anchor(label)}>'
        f"{_text(label.text)}</text>"
    )


def _position_to_read(drawn: Plot) -> int:
    """Return the position whose numbers stand below the chart until a reader points at another one."""
    if drawn.end in drawn.names:
        return drawn.names.index(drawn.end)
    if drawn.places and not drawn.is_dated:
        peaks = [one.values for one in drawn.series]
        return max(range(len(drawn.names)), key=lambda at: max((own[at] or 0.0 for own in peaks), default=0.0))
    return len(drawn.names) - 1


def _head(drawn: Plot, place: int) -> str:
    return (drawn.heads[place] if drawn.heads else "") or drawn.names[place]


def _sayings(series: PlotSeries) -> list[str]:
    """Return what is said of each value: the number, then what else is known."""
    text = _written_as(series)
    more = series.says or series.words or [""] * len(series.values)
    return [", ".join(filter(None, (text(value), also))) for value, also in zip(series.values, more, strict=True)]


def _written_as(series: PlotSeries) -> Callable[[float | None], str]:
    text = form(series.unit, series.values)
    return (lambda value: signed(text(value), value)) if series.is_change else text


def _readout(drawn: Plot, chosen: int) -> str:
    lines = []
    for at, series in enumerate(drawn.series):
        key = _swatch(at) if len(drawn.series) > 1 else ""
        label = f"{_text(series.label)} " if series.label else ""
        lines.append(f"<li>{key}{label}<b>{_text(_sayings(series)[chosen])}</b></li>")
    return f"<div class=readout><p>{_text(_head(drawn, chosen))}</p><ul>{''.join(lines)}</ul></div>"


def _legend(
    drawn: Plot, ticks: Sequence[float], write: Callable[[float], str], wanted: Sequence[tuple[float, str]]
) -> str:
    """Return what the signs of the drawing mean, and where an axis begins that is cut."""
    kinds = {marker.kind for own in drawn.markers for marker in own}
    parts = [
        f'<svg class="mark {kind}" width=12 height=12 viewBox="-6 -6 12 12" aria-hidden=true>'
        f'<path d="{shape}"/></svg>{words}'
        for kind, (shape, words) in _MARKS.items()
        if kind in kinds
    ]
    parts += [f"<i class=limit></i>{_text(words)}" for _, words in wanted]
    if len(drawn.series) == 1 and drawn.series[0].levels and drawn.axis != "change":
        parts.append("the band is what the runs of a level reach, its number their mean")
    if ticks[0] > 0:
        parts.append(f"the axis begins at {_text(write(ticks[0]))}")
    return f'<p class="legend">{"".join(f"<span>{part}</span>" for part in parts)}</p>' if parts else ""


def _about(drawn: Plot, ticks: Sequence[float], write: Callable[[float], str], unit: str) -> str:
    """Return what the drawing shows in words, for those who do not see it."""
    names = ", ".join(one.label for one in drawn.series if one.label)
    values = [value for one in drawn.series for value in _values(one, drawn.axis) if value is not None]
    text = format_diff if unit == "change" else form(unit, values)
    ends = f"{drawn.names[0]} to {drawn.names[-1]}: {text(min(values))} to {text(max(values))}"
    return f"{names}, {ends}" if names else ends


def _choices(drawn: Plot, link: Link) -> str:
    """Return the links to other ways to see a plot, which files have none of."""
    if link is None or not drawn.choices:
        return ""
    rows = []
    for row in drawn.choices:
        parts = []
        for words, target, is_chosen in row.choices:
            current = ' aria-current="true"' * is_chosen
            parts.append(f'<a href="{_text(link(target))}"{current}>{_text(words)}</a>')
        rows.append(f"<span>{_text(row.title)}: {' '.join(parts)}</span>")
    return f'<p class="bar ways">{"".join(rows)}</p>'


def _range_bar(overview: Overview | None, link: Link) -> str:
    """Return all versions of a series as a small course, with the part that is shown marked, and links to others."""
    known = [value for value in overview.values if value is not None] if overview else []
    if overview is None or link is None or not known:
        return ""
    low, high = limits(known)
    count = len(overview.names)
    x_of = [100 * (at + 0.5) / count for at in range(count)]
    places = [*_thinned([*zip(x_of, overview.values, strict=True)], _PARTS_OF_OVERVIEW)]
    path = line_path(places, lambda value: 3 + (high - value) / (high - low) * (_HEIGHT_OF_OVERVIEW - 6))
    start, width = 100 * overview.first / count, 100 * (overview.last - overview.first + 1) / count
    shown = f"{overview.names[overview.first]} to {overview.names[overview.last]}"
    says = f"{counted(count, 'version')}; shown: {shown}"
    ways = " ".join(f'<a href="{_text(link(target))}">{_text(words)}</a>' for words, target in overview.ways)
    return (
        f'<svg class=range height={_HEIGHT_OF_OVERVIEW} viewBox="0 0 100 {_HEIGHT_OF_OVERVIEW}" '
        f'preserveAspectRatio=none role=img aria-label="{_text(says)}">'
        f'<rect class=part x="{start:.2f}" width="{width:.2f}" height={_HEIGHT_OF_OVERVIEW} />'
        f'<path class=curve d="{path}"/></svg><p class="bar ways"><span>{_text(says)}: {ways}</span></p>'
    )


def _packed(
    drawn: Plot,
    values: Sequence[list[float | None]],
    x_of: Sequence[float],
    y_of: Callable[[float], float],
    addresses: Sequence[str],
) -> str:
    """Return what a script needs for a crosshair, as gzip of JSON in base64: places, names and what is said there."""
    found = {
        "x": [round(x, 2) for x in x_of],
        "names": [*drawn.names],
        "heads": [*map(printable, drawn.heads)],
        "links": [*addresses] if any(addresses) else [],
        "all": [*drawn.overview.names] if drawn.overview is not None else [],
        "seconds": max(drawn.places) if drawn.places and not drawn.is_dated else None,
        "series": [
            {
                "y": [None if value is None else round(y_of(value), 1) for value in own],
                "says": [*map(printable, _sayings(series))],
            }
            for series, own in zip(drawn.series, values, strict=True)
        ],
    }
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return b64encode(compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode()


def _swatch(place: int) -> str:
    """Return the line of a series of several, in its colour and its dashes."""
    return f'<svg class=swatch width=22 height=10 aria-hidden=true><path class="curve s{place}" d="M0 5h22"/></svg>'


def title(text: str) -> str:
    """Return the words that a browser shows at a shape."""
    return f"<title>{_text(text)}</title>"


def _text(text: str) -> str:
    return str(escape(printable(text)))


# ---- other charts as plots ----


def _plot_of_trend(drawn: Trend) -> Plot:
    names, values, runs, words, tones = (tuple(map(itemgetter(at), drawn.points)) for at in range(5))
    series = PlotSeries("", drawn.unit, values, runs if any(runs) else (), words, tones)
    return Plot(names=names, series=(series,), links=drawn.links)


def _plot_of_courses(drawn: Courses) -> Plot:
    # a mark alone on its version tells nothing: a course needs two
    if len(drawn.versions) < 2:
        return Plot(names=(), series=())
    marker = tuple(
        (Marker("incident", f"{version}: version of the incident"),) if version == drawn.marked else ()
        for version in drawn.versions
    )
    series = tuple(PlotSeries(label, drawn.unit, values, is_change=True) for label, values in drawn.series)
    return Plot(names=drawn.versions, series=series, axis="zero", markers=marker, end=drawn.marked)


def _plot_of_curves(drawn: Curves) -> Plot | None:
    """Return curves over time as series over the moments of all of them; each holds its value until its next one."""
    known = [(label, points) for label, points in drawn.curves if points]
    if not known:
        return None
    text = form(drawn.unit, [value for _, points in known for _, value in points])
    courses = [_peaks(points, _CURVE_PARTS // len(known)) for _, points in known]
    moments = sorted({0.0, *(time for course in courses for time, _ in course)})
    series = []
    for (label, points), course in zip(known, courses, strict=True):
        time, peak = max(points, key=itemgetter(1))
        says = f"{label}: at most {text(peak)} after {time:.3g} s"
        series.append(PlotSeries(says, drawn.unit, tuple(_held(course, moments))))
    names = tuple(f"after {moment:.4g} s" for moment in moments)
    return Plot(names=names, series=tuple(series), places=tuple(moments), axis="zero")


def _peaks(points: Sequence[tuple[float, float]], parts: int) -> list[tuple[float, float]]:
    """Return a curve with the smallest and largest value of each part of a long one."""
    return [(round(time, 6), value) for time, value in _thinned(points, parts) if value is not None]


def _held(points: Sequence[tuple[float, float]], moments: Sequence[float]) -> Iterator[float | None]:
    """Yield the value of a curve at each moment: that of its last point before, None outside of it."""
    at = -1
    for moment in moments:
        while at + 1 < len(points) and points[at + 1][0] <= moment:
            at += 1
        yield None if at < 0 or moment > points[-1][0] else points[at][1]
