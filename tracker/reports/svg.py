"""Drawings of tables as SVG: without styles, scripts or links, as wide as where they stand.

Places along the width are per cent and those along the height are pixels, so that text and lines keep their size.
Colours are classes, which the style sheet of the page knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import Final

from markupsafe import Markup, escape
from rich.cells import cell_len

from tracker.reports import plot
from tracker.reports.cells import cell, form, readable
from tracker.reports.document import (
    REACH,
    Bars,
    Chart,
    Courses,
    Curves,
    Flame,
    HeatCell,
    HeatMap,
    Plot,
    Strip,
    Target,
    Trend,
)
from tracker.reports.plot import TONED, limits, line_path, title
from tracker.units import counted, format_diff, printable

_COLOURS: Final = {"compute": 0, "exposed communication": 1, "exposed copies": 2, "idle": 3, "data loading": 4}
"""Colour of a part of a step; the others share one."""
_LEVEL: Final = 20
_LETTER: Final = 7
"""Pixels of a letter, about."""
_HEAT_WIDTH, _HEAT_WIDTH_NARROW = 560, 290
"""Pixels that the boxes of a heat map have at least, on a wide and on a narrow screen."""
_WITH_NUMBERS, _WITH_NUMBERS_NARROW, _WITH_SIGNS_NARROW = 12, 6, 16
"""Boxes in a row that have room for a number, on a wide and on a narrow screen, and for signs on a narrow one."""
_HEAT_SCALE: Final = (
    ("-30 %", 0.5), ("-10 %", 0.8), ("-2 %", 0.95), ("same", 1.0), ("+2 %", 1.05), ("+10 %", 1.2), ("+30 %", 1.5),
)  # fmt: skip
"""Where a shade begins, in words, and a quotient within it: 5 % more or less is pale in every map."""
_STRIP: Final = 120
_MOST_DOTS: Final = 2
"""Versions up to which a small course is drawn as dots."""
_SPARK: Final = (180, 28)
"""Width and height of the course in a row of a table, in pixels."""
_LEAST_WIDTH: Final = 0.25
"""Per cent of the width below which a box of a flame is left out."""
_SHADES: Final = (0.02, 0.10, 0.30)
"""Relative changes from which on a box of a flame is darker."""


def chart(drawn: Chart, link: Callable[[Target], str] | None = None) -> Markup:
    """Draw `drawn`. `link`: the address of a point, None for a file."""
    if isinstance(drawn, Trend | Curves | Courses | Plot):
        found = plot.drawn_as_plot(drawn)
        return Markup(plot.draw(found, link) if found else "")
    if isinstance(drawn, HeatMap):
        return Markup(_heat_map(drawn, link))
    return Markup(_bars(drawn) if isinstance(drawn, Bars) else _flame(drawn))


def spark(drawn: Trend | None) -> Markup:
    """Draw a course of _SPARK pixels in a row of a table: a line, and a dot where a version has a verdict.

    Two versions are two dots, for a line between them is no course. What is beyond the scale has its number.
    """
    points = drawn.points if drawn is not None else ()
    values = [value for _, value, *_ in points if value is not None]
    if drawn is None or not values:
        return Markup("")
    width, height = _SPARK
    is_course = len(values) > _MOST_DOTS
    low, high = limits(values)
    if drawn.middle:
        low, high = drawn.middle * (1 - REACH), drawn.middle * (1 + REACH)
    scale = (height - 10) / (high - low)

    def y_of(value: float) -> float:
        # what is beyond a scale that others share touches its edge
        return height - 5 - (min(max(value, low), high) - low) * scale

    x_of = [4 + (width - 8) * (at + 0.5) / len(points) for at in range(len(points))]
    line = line_path([(x, point[1]) for x, point in zip(x_of, points, strict=True)], y_of)
    text = form(drawn.unit, values)
    dots = []
    for x, (label, value, _, word, tone) in zip(x_of, points, strict=True):
        if value is None:
            continue
        y, is_last = y_of(value), label == points[-1][0]
        says = ", ".join(filter(None, (f"{label}: {text(value)}", word)))
        if tone in TONED:
            # a shape as well as a colour
            dots.append(
                f'<path class="{tone}" transform="translate({x:.1f} {y:.1f})" d="{TONED[tone]}">{title(says)}</path>'
            )
        elif is_last or not is_course:
            dots.append(f"<circle cx={x:.1f} cy={y:.1f} r=2.5>{title(says)}</circle>")
        if drawn.middle and is_last and not low <= value <= high:
            beyond = format_diff(value / drawn.middle - 1)
            dots.append(f'<text class="{tone}" x={x + 8:.1f} y={height / 2 + 4:.1f}>{beyond}</text>')
    bands = []
    for first, last, smallest, largest in _levels_of_course(drawn) if is_course else ():
        left, right = x_of[first] - 3, x_of[last] + 3
        bands.append(f"M{left:.1f} {y_of(largest) - 1:.1f}H{right:.1f}V{y_of(smallest) + 1:.1f}H{left:.1f}z")
    says = f"{points[0][0]} to {points[-1][0]}: {text(min(values))} to {text(max(values))}"
    return Markup(
        f'<svg class=spark width={width} height={height} role=img aria-label="{_text(says)}">'
        f'<path class=levels d="{"".join(bands)}"/><path class=line d="{line if is_course else ""}"/>'
        f"{''.join(dots)}</svg>"
    )


def _levels_of_course(drawn: Trend) -> Iterator[tuple[int, int, float, float]]:
    """Yield the levels of a course: first and last place, smallest and largest value; one begins with each change."""
    first: int | None = None
    last, values = 0, list[float]()
    for place, (_, value, _, _, tone) in enumerate(drawn.points):
        if value is None:
            continue
        if first is not None and tone in TONED:
            yield first, last, min(values), max(values)
            first, values = None, []
        first = place if first is None else first
        last = place
        values.append(value)
    if first is not None:
        yield first, last, min(values), max(values)


def spans(adds: Sequence[float | None], bars: Sequence[float | None]) -> list[tuple[float, float] | None]:
    """Return where the bar of each row begins and ends: of `adds` each starts where the one above ends, and None starts
    at 0; of `bars` all start at 0.
    """
    if not adds:
        return [None if part is None else (0.0, part) for part in bars]
    ends = [0.0, *accumulate(add or 0.0 for add in adds)]
    return [(start if add is not None else 0.0, end) for add, (start, end) in zip(adds, pairwise(ends), strict=True)]


def axis_of_spans(every: Sequence[tuple[float, float] | None]) -> tuple[float, float]:
    """Return the ends of an axis that has room for every bar of a table, and for 0."""
    ends = [0.0, *chain.from_iterable(own for own in every if own)]
    return min(ends), max(ends)


def span(ends: tuple[float, float] | None, axis: tuple[float, float], tone: str) -> Markup:
    """Draw the bar of a row, on the axis of its table."""
    if ends is None:
        return Markup("")
    low, high = axis
    scale = 100 / (high - low or 1.0)
    start, width = (min(ends) - low) * scale, max(abs(ends[1] - ends[0]) * scale, 0.3)
    kind = tone or ("u" if ends[1] > ends[0] else "d")
    return Markup(
        f"<svg><rect class=a x={-low * scale:.4g}% /><rect class={kind} x={start:.4g}% width={width:.4g}% /></svg>"
    )


def strip(runs: Strip | None) -> Markup:
    """Draw the runs of both sides on one axis of _STRIP pixels, a dot each: the baseline above the candidate."""
    known = [value for side in runs or () for value in side]
    if not known:
        return Markup("")
    low, high = limits(known)
    scale = (_STRIP - 10) / (high - low)
    lines = [
        "".join(f"M{5 + (value - low) * scale:.0f} {y}h0" for value in side)
        for side, y in zip(runs or (), (4, 10), strict=True)
    ]
    return Markup(f'<svg><path d="{lines[0]}"/><path d="{lines[1]}"/></svg>')


def _bars(drawn: Bars) -> str:
    """Draw a bar per side on one axis, with the parts one after the other; what is below 0 has no length."""
    longest = max((sum(max(part, 0.0) for part in values) for _, _, values in drawn.sides), default=0.0) or 1.0
    found = []
    for label, whole, values in drawn.sides:
        start, parts = 0.0, []
        for name, value in zip(drawn.names, values, strict=True):
            width = max(value, 0.0) / longest * 100
            colour, words = _COLOURS.get(name, 5), f"{name} {cell(value, drawn.unit, *values)}"
            if width:
                parts.append(
                    f'<rect class=c{colour} x="{start:.2f}%" width="{width:.2f}%" height=22>{title(words)}</rect>'
                )
            start += width
        if min(values, default=0.0) < 0 < sum(values):  # the parts reach beyond the whole
            parts.append(f"<rect class=g x={sum(values) / longest * 100:.2f}% width=2 height=22 />")
        says = _text(f"{label}: {whole}")
        found.append(
            f'<b>{_text(label)}</b><svg height=22 role=img aria-label="{says}">{"".join(parts)}</svg>'
            f"<span>{_text(whole)}</span>"
        )
    return f'<div class="bars">{"".join(found)}</div>'


def swatch(name: str) -> Markup:
    """Draw the colour of a part of bars."""
    place = _COLOURS.get(name, 5)
    return Markup(
        f"<svg class=swatch width=10 height=10 aria-hidden=true><rect class=c{place} width=10 height=10 /></svg>"
    )


def _flame(drawn: Flame) -> str:
    """Draw the tree from above: as wide as the longer side, red where it got slower and blue where it got faster."""
    widths = _widths(drawn.rows)
    whole = sum(width for (level, *_), width in zip(drawn.rows, widths, strict=True) if level == 0) or 1.0
    starts: dict[int, float] = {0: 0.0}
    parts, depth = [], 0
    for (level, name, before, after), width in zip(drawn.rows, widths, strict=True):
        start = starts.get(level, 0.0)
        starts[level], starts[level + 1] = start + width, start
        share = width / whole * 100
        if share < _LEAST_WIDTH:
            continue
        depth = max(depth, level + 1)
        times = [cell(value, "ns", before, after) for value in (before, after)]
        change = (
            f" ({format_diff(after / before - 1)})" if before and after is not None and len(drawn.sides) > 1 else ""
        )
        says = f"{readable(name)}: {' -> '.join(times[: len(drawn.sides)])}{change}"
        shown = _text(readable(name)) if share > 3 else ""
        parts.append(
            f'<svg x="{start / whole * 100:.2f}%" y={level * _LEVEL} width="{share:.2f}%" height={_LEVEL - 1}>'
            f"<rect class={_shade(before, after, len(drawn.sides))} width=100% height=100% />"
            f"<text x=4 y=14>{shown}</text>{title(says)}</svg>"
        )
    says = (
        "wide as the longer side: slower is red, faster is blue, framed is new, dashed is gone"
        if len(drawn.sides) > 1
        else "wide as their time"
    )
    label = f"{len(parts)} boxes, {says}"
    return (
        f'<svg class=flame height={max(depth, 1) * _LEVEL} role=img aria-label="{label}">{"".join(parts)}</svg>'
        f'<p class="note">{says.capitalize()}. Click a box to enlarge it.</p>'
    )


def _heat_map(drawn: HeatMap, link: Callable[[Target], str] | None) -> str:
    """Draw a row of boxes per label, red where a value is above that of its peers and blue below, on a scale that is
    the same for all maps: it stands below the rows. Boxes with room have their number, else signs where much differs.
    """
    if not drawn.rows or not drawn.columns:
        return ""
    count = len(drawn.columns)
    width = 100 / count
    bottom = (len(drawn.rows) + 1) * _LEVEL
    labels = [(drawn.corner, 0), *((label, place * _LEVEL) for place, (label, _) in enumerate(drawn.rows, 1))]
    labels.append(("scale", bottom + 8))
    gutter = max(_LETTER * cell_len(text) for text, _ in labels) + 8
    parts = [*_column_names(drawn.columns)]
    has_links = False
    for place, (_, cells) in enumerate(drawn.rows, 1):
        for at, one in enumerate(cells):
            box = _heat_box(at * width, place * _LEVEL, width, one, _heat_words(one.ratio, count))
            address = link(one.link) if one.link and link else ""
            has_links = has_links or bool(address)
            # the table has the same links for a keyboard
            parts.append(f'<a href="{_text(address)}" tabindex=-1>{box}</a>' if address else box)
    for at, (words, ratio) in enumerate(_HEAT_SCALE):
        own = HeatCell("the same as the peers" if ratio == 1 else f"from {words} on", ratio)
        part = 100 / len(_HEAT_SCALE)
        parts.append(_heat_box(at * part, bottom + 8, part, own, (words, "")))
    says = f"{counted(len(drawn.rows), 'row')} by {drawn.corner}: own time beside that of the peers"
    names = [f"<text x={gutter - 8} y={y + 14} text-anchor=end>{_text(text)}</text>" for text, y in labels]
    height = bottom + 8 + _LEVEL
    return (
        f"<div class=frame><svg class=chart width={gutter:.0f} height={height} aria-hidden=true>{''.join(names)}</svg>"
        f'<svg class=heat height={height} role={"group" if has_links else "img"} aria-label="{_text(says)}">'
        f"{''.join(parts)}</svg></div>"
        f'<p class="note">Own time beside that of the peers: longer is red and +, shorter is blue and -, dashed is not '
        "known.</p>"
    )


def _heat_box(x: float, y: int, width: float, cell: HeatCell, words: tuple[str, str]) -> str:
    """Draw a box with its words, in the class of their width."""
    shade = "gone" if cell.ratio is None else _shade(1.0, cell.ratio, 2)
    text, kind = words
    written = f'<text class="{kind}" x="{x + width / 2:.2f}%" y={y + 14}>{_text(text)}</text>' if text else ""
    return (
        f'<rect class={shade} x="{x:.2f}%" y={y} width="{width:.2f}%" height={_LEVEL - 1}>{title(cell.words)}</rect>'
        f"{written}"
    )


def _heat_words(ratio: float | None, count: int) -> tuple[str, str]:
    """Return the words of a box of so many in a row, and their class: `odd` where only a wide screen has room."""
    if ratio is None:
        return "", ""
    if count <= _WITH_NUMBERS:
        # as the table has it
        return f"x{ratio:.2f}", "odd" if count > _WITH_NUMBERS_NARROW else ""
    strength = sum(abs(ratio - 1) >= least for least in _SHADES[1:])
    sign = "+" if ratio > 1 else "-"
    return sign * strength, "odd" if count > _WITH_SIGNS_NARROW else ""


def _column_names(names: Sequence[str]) -> Iterator[str]:
    """Draw the names of columns that have room, the first one and then as many apart as all need."""
    longest = max(map(cell_len, names)) + 1
    step = max(1, -(-len(names) * longest * _LETTER // _HEAT_WIDTH))
    step_narrow = max(1, -(-len(names) * longest * _LETTER // _HEAT_WIDTH_NARROW))
    step_narrow = -(-step_narrow // step) * step
    for at in range(0, len(names), int(step)):
        kind = "odd" if at % step_narrow else ""
        yield f'<text class="{kind}" x="{(at + 0.5) * 100 / len(names):.2f}%" y=14>{_text(names[at])}</text>'


def _widths(rows: Sequence[tuple[int, str, float | None, float | None]]) -> list[float]:
    """Return the width of each row: of its longer side, and at least of all that is below it."""
    found, below = [0.0] * len(rows), dict[int, float]()
    for place in range(len(rows) - 1, -1, -1):
        level, _, before, after = rows[place]
        found[place] = max(before or 0.0, after or 0.0, below.pop(level + 1, 0.0))
        below[level] = below.get(level, 0.0) + found[place]
    return found


def _shade(before: float | None, after: float | None, sides: int) -> str:
    """Return the class of a box by its relative change: n, r1 to r3, b1 to b3, new or gone."""
    if sides < 2:
        return "n"
    if not before or not after:
        return "new" if after else "gone"
    change = after / before - 1
    step = sum(abs(change) >= least for least in _SHADES)
    return f"{'r' if change > 0 else 'b'}{step}" if step else "n"


def _text(text: str) -> str:
    return str(escape(printable(text)))
