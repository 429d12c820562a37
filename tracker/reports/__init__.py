"""Results -> documents, in any format; knows no SQL and no input format.

A view (`views/<result>.py`) says what a report says; a renderer writes it: `text`, `markdown` and `html` write
documents, `github`, `junit` and `prometheus` checks and metrics, `json`, `csv` and `xlsx` the tables of the result. To
add a format: write `<name>.py` with `TITLE`, `SUFFIX` and `render`, and put its name into NAMES and SHOWS.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import PurePath
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from tracker.errors import UsageError

if TYPE_CHECKING:
    from tracker.results.screens import Result

NAMES: Final = ("csv", "github", "html", "json", "junit", "markdown", "prometheus", "speedscope", "text", "xlsx")
_WORDS: Final = {
    "Diff": "diff", "Matrix": "matrix", "Shown": "show", "Log": "log", "History": "history", "Findings": "findings",
    "ExplainedFinding": "explained", "ExplainedIncident": "explained", "Calibration": "calibration",
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


_ONE_FOR_ONE: Final = str.maketrans("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉·▲▼…×→", "_.-:=+*#...#### ^v~x>")
_LONGER: Final = ((re.compile(r" ±"), "+-"), (re.compile(r"±"), "+-"), (re.compile(r"…(?= )"), "..."))
_ANY: Final = re.compile("[▁▂▃▄▅▆▇█▏▎▍▌▋▊▉·▲▼…×→±]")
"""ASCII for the signs of reports, of the same width, so that tables stay aligned; in a sparkline a gap is a space."""


def render(
    result: Result,
    format: str = "text",
    *,
    only: Iterable[str] = (),
    tell: Callable[[str], None] = warnings.warn,
    **wishes: Any,
) -> str | bytes:
    """The document of `result`: text, or bytes of a workbook. `only`: words of `results.SECTIONS`; `wishes`: fields of
    `document.Look`; `tell` gets a sentence for everything that did not fit into the document.

    UsageError for a format that is none, or that cannot show this result.
    """
    from tracker.reports.document import Look
    from tracker.results import CLUSTER_SECTIONS, SECTIONS
    from tracker.results.options import check_words

    look = Look(only=tuple(only), tell=tell, **wishes)
    if look.limit is not None and look.limit < 0:
        raise UsageError(f"{look.limit} rows per table", remedy="give a limit of 1 or more, or 0 for all rows")
    what = word_of(result) or ""
    check_words("section", look.only, CLUSTER_SECTIONS if what == "cluster" else SECTIONS)
    check(format, what)
    renderer = _module(format)
    made: Any
    if format in ("text", "markdown", "html"):
        make = partial(import_module(f"tracker.reports.views.{what}").document, result)
        made = renderer.render(make(look) if format == "text" else make, look)
    elif format in ("github", "junit"):
        made = renderer.render(import_module("tracker.reports.views.checks").of(result, look))
    elif format in ("csv", "json", "xlsx"):
        made = renderer.render(what, result, look)
    else:
        made = renderer.render(result, look)
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


def screen(result: Result, width: int) -> str:
    """The text report of any result, so many characters wide, without colours; of what has none its headline."""
    if word_of(result) is None:
        return result.headline
    return str(render(result, "text", width=width, tell=lambda _: None))


def page(result: Result, rows: int) -> str:
    """The page of a result for a browser with so many rows of each table; "" where it has none."""
    what = word_of(result)
    if what is None or "html" not in able(what):
        return ""
    return str(render(result, "html", limit=rows, tell=lambda _: None))


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


def format_of_name(name: str) -> tuple[str | None, str]:
    """Return the format that the end of a file's name means, None where none has it, and that end.

    >>> format_of_name("x.html"), format_of_name("x.tar"), format_of_name("x")
    (('html', '.html'), (None, '.tar'), (None, ''))
    """
    endings = {suffix(each): each for each in NAMES}
    own = PurePath(name).suffix.lower()
    ending = max((each for each in endings if name.lower().endswith(each)), key=len, default=own)
    return endings.get(ending), ending


def title(format: str) -> str:
    """What `format` is good for, in a few words."""
    return str(_module(format).TITLE)


def _module(format: str) -> ModuleType:
    if format not in NAMES:
        raise UsageError(f"no report format {format!r}", remedy=f"choose one of {', '.join(NAMES)}")
    return import_module(f"tracker.reports.{format}")


def encodable(text: str, encoding: str | None) -> str:
    """`text` with ASCII for the signs of reports where `encoding` lacks one of those in it; other texts stay.

    >>> encodable("▁▄█ ±2 %, a…b", "ascii"), encodable("▁▄█", "utf-8")
    ('_:#+-2 %, a~b', '▁▄█')
    >>> encodable("… and 3 more", "latin-1"), encodable("3, ±2 %", "latin-1")
    ('... and 3 more', '3, ±2 %')
    """
    signs = "".join(set(_ANY.findall(text)))
    try:
        signs.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        for sign, word in _LONGER:
            text = sign.sub(word, text)
        return text.translate(_ONE_FOR_ONE)
    except LookupError:
        return text
    return text
