"""Results -> documents: one module `to_<name>.py` per format, loaded on use; knows no SQL and no input format.

To add a format: write `to_<name>.py` with `TITLE`, `SUFFIX`, `BINARY` and a function per result that it can show
(`diff(diff, style)`, `show(shown, style)`, ...), and put `<name>` into `NAMES`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, TypedDict, Unpack

from tracker.errors import UsageError

if TYPE_CHECKING:
    from tracker.reports.message import Limits, Written
    from tracker.results import Message
    from tracker.results.gates import Gate
    from tracker.results.screens import Result

_FOLLOWING = ("github", "markdown", "text")
"""Formats of which several documents follow each other."""
NAMES = ("csv", "github", "json", "junit", "markdown", "prometheus", "text", "xlsx")


class Look(TypedDict, total=False):
    """How a document looks; every format takes what it needs.

    `only`: words of `results.SECTIONS`, empty for the format's default. `limit`: rows per table; None for the format's
    default (text and markdown 10, the others all), 0 for all. `width`: of the terminal, `color`: ANSI colours; both for
    text only. `gate`: what fails a build, for the formats that build systems read; None for what regressed at all.
    `tell` gets a sentence for everything that did not fit into the document; it warns where none is given.
    """

    only: Iterable[str]
    limit: int | None
    details: bool
    width: int | None
    color: bool
    gate: Gate | None
    tell: Callable[[str], None]


def render(result: Result, format: str = "text", **look: Unpack[Look]) -> str | bytes:
    """The document of `result`: text of a format, or bytes where `binary(format)`.

    UsageError for a format that is none, or that cannot show this result.
    """
    return _render(_word(result) or "", result, format, **look)


def _word(result: Result) -> str | None:
    from tracker import doctor, results

    words = {
        results.Diff: "diff", results.Matrix: "matrix", results.Shown: "show", results.Log: "log",
        results.History: "history", results.Findings: "findings", results.ExplainedFinding: "explained",
        results.Calibration: "calibration", results.Status: "status", doctor.Findings: "doctor",
    }  # fmt: skip
    return words.get(type(result))


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
    if _word(result) is None:
        return result.headline
    return str(render(result, "text", width=width, tell=_say_nothing))


def _say_nothing(_: str) -> None:
    """A screen has no room for what did not fit into it."""


def able(what: str) -> list[str]:
    """The formats that can show a result; `what`: the word behind `render_`."""
    return [name for name in NAMES if hasattr(_module(name), what)]


def check(format: str, what: str) -> None:
    """UsageError where a format cannot show a result; `what` as in `able`."""
    if not hasattr(_module(format), what):
        shows = " and ".join(other for other in ("diff", "findings") if hasattr(_module(format), other))
        raise UsageError(
            f"{format} is for {shows or 'other results'}", remedy=f"choose another --format: {', '.join(able(what))}"
        )


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
    return import_module(f"tracker.reports.to_{format}")


def _render(what: str, result: object, format: str, **look: Unpack[Look]) -> str | bytes:
    """What the function `what` of a format makes of a result."""
    from tracker.reports.shared import Style
    from tracker.results import check_sections

    sections, limit = tuple(look.get("only", ())), look.get("limit")
    check_sections(sections)
    if limit is not None and limit < 0:
        raise UsageError(f"{limit} rows per table", remedy="give a limit of 1 or more, or 0 for all rows")
    check(format, what)
    style = Style(
        only=sections,
        limit=limit,
        width=look.get("width"),
        color=look.get("color", False),
        tell=look.get("tell", warnings.warn),
        gate=look.get("gate"),
    )
    document: str | bytes = getattr(_module(format), what)(result, style)
    return document
