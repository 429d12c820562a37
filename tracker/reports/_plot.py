"""Series over versions as a drawing: a panel per series, in SVG, or in PNG through Pillow.

A drawing is a list of lines, dots and texts; SVG is written as text, PNG needs something that knows fonts. Pillow is
the lightest library that does, is kept well, and needs nothing else.
"""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import pairwise
from typing import Final

from msgspec import Struct

from tracker.errors import UsageError
from tracker.reports._human import Row
from tracker.reports._human_history import form, points_of, title, what
from tracker.reports._layout import shorten
from tracker.reports.shared import records
from tracker.results import History
from tracker.units import printable

SUFFIXES: Final = (".svg", ".png")
_MOST: Final = 12
_WIDTH: Final = 960
_PANEL: Final = 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 24, 40, 44
_NEAR_ZERO: Final = 0.4
"""Smallest value / largest value up to which the axis of a series begins at 0."""

_LEAST_SPAN: Final = 0.05
_MARGIN: Final = 0.1
_LABELS: Final = 16
"""Versions that are named under a panel, at most."""

_TITLE: Final = 110
_INK, _GREY, _LIGHT = "#1f2933", "#7b8794", "#d9dee4"
_LINE, _DOT, _CHANGE, _ENVIRONMENT = "#1f5fa8", "#8db4dd", "#c62828", "#b7791f"


class Line(Struct, frozen=True):
    """A straight line, in pixels from the upper left."""

    x1: float
    y1: float
    x2: float
    y2: float
    color: str
    width: float = 1.0


class Dot(Struct, frozen=True):
    """A filled circle."""

    x: float
    y: float
    radius: float
    color: str


class Text(Struct, frozen=True):
    """A text whose `anchor` (start, middle, end) is at x; y is its base line."""

    x: float
    y: float
    words: str
    color: str = _INK
    size: int = 12
    anchor: str = "start"


Shape = Line | Dot | Text


def check(suffix: str) -> None:
    """UsageError where no drawing with this ending can be made here."""
    if suffix not in SUFFIXES:
        raise UsageError(f"no drawing ends in {suffix or 'nothing'}", remedy="name a file that ends in .svg or .png")
    if suffix == ".png" and find_spec("PIL") is None:
        raise UsageError("PNG needs Pillow, which is not installed", remedy="pip install pillow, or name a file.svg")


def render(history: History, suffix: str, tell: Callable[[str], None]) -> str | bytes:
    """The drawing of the first series, at most 12: lines of the medians, dots of the runs, marks where something
    changed.
    """
    series = records(history.series)
    if len(series) > _MOST:
        tell(f"{_MOST} of {len(series)} series are drawn")
    points = points_of(history)
    runs: dict[int, dict[str, list[float]]] = {}
    for run in records(history.runs):
        runs.setdefault(run["series_id"], {}).setdefault(run["version"], []).append(run["value"])
    shapes: list[Shape] = []
    for number, one in enumerate(series[:_MOST]):
        own = points[one["series_id"]]
        shapes += panel(one, own, [runs.get(one["series_id"], {}).get(point["version"], []) for point in own], number)
    height = _PANEL * min(len(series), _MOST)
    return svg(shapes, height) if suffix == ".svg" else png(shapes, height)


def limits(values: Sequence[float]) -> tuple[float, float]:
    """Where the axis of a series begins and ends: around its runs, and from 0 only where they come near it.

    It spans 5 % of the largest value at least, so that plain noise does not look like a change.

    >>> limits([100.0, 110.0]), limits([1.0, 10.0]), limits([100.0, 100.1]), limits([])
    ((99.0, 111.0), (0.0, 10.5), (97.5475, 102.5525), (0.0, 1.0))
    """
    lowest, highest = min(values, default=0.0), max(values, default=0.0)
    if lowest <= _NEAR_ZERO * highest:
        return 0.0, highest * 1.05 or 1.0
    missing = max(_LEAST_SPAN * highest - (highest - lowest), 0.0)
    margin = max(missing / 2, _MARGIN * (highest - lowest))
    return round(lowest - margin, 9), round(highest + margin, 9)


def panel(series: Row, points: Sequence[Row], runs: Sequence[Sequence[float]], number: int) -> list[Shape]:
    """One series: a line over its versions, on an axis that ends where its runs do; a text says so."""
    top, bottom = number * _PANEL + _TOP, (number + 1) * _PANEL - _BOTTOM
    low, high = limits([value for version in runs for value in version])
    shown = form(series["unit"], [high])
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(points) - 1, 1)

    def x(place: int) -> float:
        return _LEFT + (place * step if len(points) > 1 else (_WIDTH - _LEFT - _RIGHT) / 2)

    def y(value: float) -> float:
        return bottom - (bottom - top) * (value - low) / (high - low)

    shapes: list[Shape] = [Text(_LEFT, top - 16, shorten(f"{title(series)} ({what(series)})", _TITLE), size=13)]
    for level in (low, (low + high) / 2, high):
        shapes.append(Line(_LEFT, y(level), _WIDTH - _RIGHT, y(level), _LIGHT))
        shapes.append(Text(_LEFT - 8, y(level) + 4, shown(level), _GREY, 11, "end"))
    if low:
        shapes.append(Text(_WIDTH - _RIGHT, top - 4, f"the axis begins at {shown(low)}, not at 0", _GREY, 11, "end"))
    every = -(-len(points) // _LABELS)
    for place, point in enumerate(points):
        for marked, color in ((point["change_point"], _CHANGE), (point["environment"], _ENVIRONMENT)):
            if marked:
                shift = step / 2 if place else 0.0
                shapes.append(Line(x(place) - shift, top, x(place) - shift, bottom, color, 1.5))
        if place % every == 0:
            shapes.append(Text(x(place), bottom + 18, shorten(point["version"], 12), _GREY, 11, "middle"))
    for place, values in enumerate(runs):
        shapes += [Dot(x(place), y(value), 2.5, _DOT) for value in values]
    known = [(place, point["value"]) for place, point in enumerate(points) if point["value"] is not None]
    shapes += [Line(x(a), y(one), x(b), y(other), _LINE, 2.0) for (a, one), (b, other) in pairwise(known)]
    shapes += [Dot(x(place), y(value), 3.5, _LINE) for place, value in known]
    legend = [(point["change_point"], "lasting change", _CHANGE) for point in points]
    legend += [(point["environment"], "environment changed", _ENVIRONMENT) for point in points]
    words = {text: color for there, text, color in legend if there}
    for at, (text, color) in enumerate(words.items()):
        shapes.append(Text(_WIDTH - _RIGHT, bottom + 34 - 16 * at, text, color, 11, "end"))
    return shapes


def svg(shapes: Sequence[Shape], height: int) -> str:
    """`shapes` as an SVG document: text only, without scripts, links or anything from outside."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        *map(_element, shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _element(shape: Shape) -> str:
    if isinstance(shape, Line):
        return (
            f'<line x1="{shape.x1:.1f}" y1="{shape.y1:.1f}" x2="{shape.x2:.1f}" y2="{shape.y2:.1f}" '
            f'stroke="{shape.color}" stroke-width="{shape.width}"/>'
        )
    if isinstance(shape, Dot):
        return f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius}" fill="{shape.color}"/>'
    words = html.escape(printable(shape.words))
    return (
        f'<text x="{shape.x:.1f}" y="{shape.y:.1f}" fill="{shape.color}" font-size="{shape.size}" '
        f'text-anchor="{shape.anchor}">{words}</text>'
    )


def png(shapes: Sequence[Shape], height: int) -> bytes:
    """`shapes` as a PNG, at twice the size."""
    from PIL import Image, ImageDraw, ImageFont

    scale = 2
    image = Image.new("RGB", (_WIDTH * scale, height * scale), "#ffffff")
    draw = ImageDraw.Draw(image)
    for shape in shapes:
        if isinstance(shape, Line):
            ends = (shape.x1 * scale, shape.y1 * scale, shape.x2 * scale, shape.y2 * scale)
            draw.line(ends, fill=shape.color, width=round(shape.width * scale))
        elif isinstance(shape, Dot):
            x, y, radius = shape.x * scale, shape.y * scale, shape.radius * scale
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=shape.color)
        else:
            anchor = {"start": "ls", "middle": "ms", "end": "rs"}[shape.anchor]
            font = ImageFont.load_default(shape.size * scale)
            draw.text((shape.x * scale, shape.y * scale), printable(shape.words), shape.color, font, anchor)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()
