"""The options of commands that write a report: its format, its file, and how it looks."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Struct

from tracker.results.options import OUTPUT, Option

FORMATS: Final = ("text", "json", "markdown", "html", "csv", "xlsx", "junit", "github", "prometheus", "speedscope")
Color = Annotated[
    Literal["auto", "always", "never"],
    Option("Colours: auto is on a terminal only, and never where NO_COLOR is set.", group=OUTPUT),
]


class Page(Struct, frozen=True, kw_only=True):
    """How a report is written, and where."""

    format: Annotated[
        str | None,
        Option(
            "text, json (schema 1: docs/json.md), markdown, html, csv, xlsx (needs -o); of diff and findings also "
            "junit, github, prometheus; of diff and show also speedscope, the tree of --by. Default: text.",
            group=OUTPUT,
            words=FORMATS,
            metavar="FORMAT",
        ),
    ] = None
    output: Annotated[
        str | None,
        Option(
            "Also write the report there; the file's ending chooses the format. Default: no file.",
            "FILE|FOLDER",
            short="-o",
            group=OUTPUT,
        ),
    ] = None
    details: Annotated[bool, Option("All sections, in text and Markdown. Default: a first screen.", group=OUTPUT)] = (
        False
    )
    color: Color = "auto"
