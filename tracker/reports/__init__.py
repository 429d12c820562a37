"""Results -> documents, in any format; knows no SQL and no input format.

A view (`views/<word>.py`) says what is reported of a result; a renderer writes it: `text`, `markdown` and `html` write
documents, `json`, `csv` and `xlsx` tables; `github`, `junit`, `prometheus` and `speedscope` write what a few results
have. To add a format: write `<name>.py` with `TITLE`, `SUFFIX` and `render`, put its name into NAMES, and where it is
for a few results only, name these in its `OF`.
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
    from tracker.reports.view import View
    from tracker.results.screens import Result

NAMES: Final = ("csv", "github", "html", "json", "junit", "markdown", "prometheus", "speedscope", "text", "xlsx")
_VIEWS: Final = "tracker.reports.views"
_OF_DOCUMENTS: Final = ("text", "markdown", "html")
_OF_TABLES: Final = ("csv", "json", "xlsx")
_OF_CHECKS: Final = ("github", "junit")
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
    """Return the document of `result`: text, or bytes of a workbook.

    `only`: words of `results.SECTIONS`; `wishes`: fields of `document.Look`; `tell` gets a sentence for everything that
    did not fit into the document.

    UsageError for a format that is none, or that cannot show this result.
    """
    from tracker.reports.document import Look
    from tracker.results import CLUSTER_SECTIONS, SECTIONS
    from tracker.results.options import check_words

    look = Look(only=tuple(only), tell=tell, **wishes)
    if look.limit is not None and look.limit < 0:
        raise UsageError(f"{look.limit} rows per table", remedy="give a limit of 1 or more, or 0 for all rows")
    word = result.word
    check_words("section", look.only, CLUSTER_SECTIONS if word == "cluster" else SECTIONS)
    check(format, word)
    renderer = _module(format)
    view = view_of(word)
    made: Any
    if format in _OF_DOCUMENTS:
        make = partial(view.document, result)
        made = renderer.render(make(look) if format == "text" else make, look)
    elif format in _OF_TABLES:
        made = renderer.render(result, view, look)
    elif format in _OF_CHECKS:
        made = renderer.render(import_module(f"{_VIEWS}.checks").of(result, look))
    else:
        made = renderer.render(result, look)
    document: str | bytes = made
    return document


def view_of(word: str) -> View:
    """Return how results of this word are reported."""
    module = f"{_VIEWS}.{word}"
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        # it has nothing that is drawn in its own way
        found = import_module(f"{_VIEWS}.any_result")
    view: View = found.VIEW
    return view


def joined(pages: Sequence[str], format: str) -> str:
    """Return several documents of one format as one; UsageError for formats that cannot."""
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
    """Return the text report of any result, `width` characters wide, without colours; of what has none its headline."""
    if not result.word:
        return result.headline
    return str(render(result, "text", width=width, tell=lambda _: None))


def page(result: Result, rows: int) -> str:
    """Return the page of a result for a browser, with so many rows of each table; "" where it has none."""
    if not can_show("html", result.word):
        return ""
    return str(render(result, "html", limit=rows, tell=lambda _: None))


def able(word: str) -> list[str]:
    """Return the formats that can show results of this word."""
    return [format for format in NAMES if can_show(format, word)]


def can_show(format: str, word: str) -> bool:
    """Return whether a format can show results of this word; none can where it is empty."""
    if not word:
        return False
    words = _words_of(format)
    return word in words if words else format not in view_of(word).hides


def check(format: str, word: str) -> None:
    """Raise UsageError where a format cannot show results of this word."""
    if not can_show(format, word):
        words = _words_of(format)
        shows = " and ".join(words) if words else "other results"
        raise UsageError(f"{format} is for {shows}", remedy=f"choose another --format: {', '.join(able(word))}")


def _words_of(format: str) -> tuple[str, ...]:
    """Return the words of the results that a format is for; () for one that shows any."""
    module = _module(format)
    of = import_module(f"{_VIEWS}.checks") if format in _OF_CHECKS else module
    return tuple(getattr(of, "OF", ()))


def suffix(format: str) -> str:
    """Return the file name suffix of `format`, with its dot: `.xlsx`."""
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
    """Return what `format` is good for, in a few words."""
    return str(_module(format).TITLE)


def _module(format: str) -> ModuleType:
    if format not in NAMES:
        raise UsageError(f"no report format {format!r}", remedy=f"choose one of {', '.join(NAMES)}")
    return import_module(f"tracker.reports.{format}")


def encodable(text: str, encoding: str | None) -> str:
    """Return `text` with ASCII for the signs of reports where `encoding` lacks one of those in it; other texts stay.

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
