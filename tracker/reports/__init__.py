"""Results -> documents, in any format; knows no SQL and no input format.

A view (`views/<result>.py`) says what a report says; a renderer writes it: `text`, `markdown` and `html` write
documents, `github`, `junit` and `prometheus` checks and metrics, `json`, `csv` and `xlsx` the tables of the result. To
add a format: write `<name>.py` with `TITLE`, `SUFFIX`, `BINARY` and `render`, and put its name into NAMES and SHOWS.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from tracker.errors import UsageError

if TYPE_CHECKING:
    from tracker.reports.message import Limits, Written
    from tracker.results import Message
    from tracker.results.screens import Result
    from tracker.results.verdicts import Gate

NAMES: Final = ("csv", "github", "html", "json", "junit", "markdown", "prometheus", "speedscope", "text", "xlsx")
_WORDS: Final = {
    "Diff": "diff", "Matrix": "matrix", "Shown": "show", "Log": "log", "History": "history", "Findings": "findings",
    "ExplainedFinding": "explained", "ExplainedIncident": "incident", "Calibration": "calibration",
    "Cluster": "cluster", "Advised": "advice", "Board": "board", "Status": "status",
}  # fmt: skip
"""Class of a result -> its view."""
SHOWS: Final = {
    **dict.fromkeys(("text", "json", "html"), (*_WORDS.values(), "doctor")),
    "markdown": tuple(word for word in _WORDS.values() if word != "status"),
    **dict.fromkeys(("csv", "xlsx"), tuple(_WORDS.values())),
    **dict.fromkeys(("github", "junit", "prometheus"), ("diff", "findings")),
    "speedscope": ("diff", "show"),
}
"""Format -> the results that it can show."""
_FOLLOWING: Final = ("github", "markdown", "text")
"""Formats of which several documents follow each other."""


class Wishes(TypedDict, total=False):
    """How a document looks; every format takes what it needs.

    `only`: words of `results.SECTIONS`, empty for the format's default; `details`: all of them. `limit`: rows per
    table; None for the format's default (text and markdown 10, html 10,000, the others all), 0 for all. `width`: of
    the terminal, `color`: ANSI colours; both for text only. `gate`: what fails a build, for the formats that build
    systems read; None for what regressed at all. `tell` gets a sentence for everything that did not fit into the
    document; it warns where none is given.
    """

    only: Iterable[str]
    details: bool
    limit: int | None
    width: int | None
    color: bool
    gate: Gate | None
    tell: Callable[[str], None]


def render(result: Result, format: str = "text", **wishes: Unpack[Wishes]) -> str | bytes:
    """The document of `result`: text of a format, or bytes where `binary(format)`.

    UsageError for a format that is none, or that cannot show this result.
    """
    from tracker.reports.look import Look
    from tracker.results import CLUSTER_SECTIONS, SECTIONS
    from tracker.results.options import check_words

    sections, limit = tuple(wishes.get("only", ())), wishes.get("limit")
    if limit is not None and limit < 0:
        raise UsageError(f"{limit} rows per table", remedy="give a limit of 1 or more, or 0 for all rows")
    what = word_of(result) or ""
    check_words("section", sections, CLUSTER_SECTIONS if what == "cluster" else SECTIONS)
    check(format, what)
    look = Look(
        only=sections, details=wishes.get("details", False), limit=limit, width=wishes.get("width"),
        color=wishes.get("color", False), gate=wishes.get("gate"), tell=wishes.get("tell", warnings.warn),
    )  # fmt: skip
    renderer = _module(format)
    made: Any
    if format in ("text", "markdown", "html"):
        make = partial(import_module(f"tracker.reports.views.{what}").document, result)
        made = renderer.render(make(look) if format == "text" else make, look)
    elif format in ("github", "junit"):
        made = renderer.render(import_module("tracker.reports.views.checks").of(result, look))
    elif format == "prometheus":
        made = renderer.render(import_module("tracker.reports.views.metrics").of(result, look))
    else:
        made = getattr(renderer, what)(result, look)
    document: str | bytes = made
    return document


def word_of(result: Result) -> str | None:
    """The word of the view of a result; None where it has none."""
    # by name: to import what examines files costs a sixth of a diff
    kind = type(result)
    return "doctor" if kind.__module__.startswith("tracker.doctor") else _WORDS.get(kind.__name__)


def joined(pages: Sequence[str], format: str) -> str:
    """Several documents of one format as one; UsageError for formats that cannot."""
    if format in _FOLLOWING:
        return "\n\n".join(page.rstrip("\n") for page in pages) + "\n"
    if not hasattr(_module(format), "joined"):
        raise UsageError(
            f"{format} holds one comparison, and there are {len(pages)}",
            remedy="choose with --config KEY=VALUE or VERSION@DEVICE",
        )
    document: str = _module(format).joined(pages)
    return document


def render_message(
    message: Message, form: str = "long", *, markdown: bool = False, limits: Limits | None = None
) -> Written:
    """Title and body of a message, long, short or json, as it fits into `limits`."""
    from tracker.reports.message import write

    return write(message, form, markdown=markdown, limits=limits)


def screen(result: Result, width: int) -> str:
    """The text report of any result, so many characters wide, without colours; of what has none its headline."""
    if word_of(result) is None:
        return result.headline
    return str(render(result, "text", width=width, tell=lambda _: None))


def able(what: str) -> list[str]:
    """The formats that can show a result; `what`: the word of its view."""
    return [name for name in NAMES if what in SHOWS[name]]


def check(format: str, what: str) -> None:
    """UsageError where a format cannot show a result; `what` as in `able`."""
    _module(format)
    if what not in SHOWS[format]:
        shows = " and ".join(SHOWS[format]) if len(SHOWS[format]) < 3 else "other results"
        raise UsageError(f"{format} is for {shows}", remedy=f"choose another --format: {', '.join(able(what))}")


def suffix(format: str) -> str:
    """The file name suffix of `format`, with its dot: `.xlsx`."""
    return str(_module(format).SUFFIX)


def title(format: str) -> str:
    """What `format` is good for, in a few words."""
    return str(_module(format).TITLE)


def binary(format: str) -> bool:
    """Whether a document of `format` is bytes, which no terminal should see."""
    return bool(_module(format).BINARY)


def _module(format: str) -> ModuleType:
    if format not in NAMES:
        raise UsageError(f"no report format {format!r}", remedy=f"choose one of {', '.join(NAMES)}")
    return import_module(f"tracker.reports.{format}")
