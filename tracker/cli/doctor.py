"""`tracker doctor`: what a place holds, before anything is ingested."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tracker.cli import _options as options
from tracker.errors import SourceError


class DoctorFormat(StrEnum):
    """How the findings are written."""

    TEXT = "text"
    JSON = "json"


def doctor(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", help="Profiles, or folders that may hold some; looked through whole.", show_default=False
        ),
    ],
    format: Annotated[
        DoctorFormat,
        typer.Option("--format", help="How to write it: text for people, json for scripts (schema 1: docs/json.md)."),
    ] = DoctorFormat.TEXT,
    input_format: options.InputFormat = None,
    flow_category: options.FlowCategory = None,
    allow_partial: options.AllowPartial = False,
) -> None:
    """Say what is there: which reader takes what, which runs it would form, what stays empty, what is unreadable.

    Everything is read as ingest would read it, and nothing is written; no database is needed. Problems do not stop it.
    The last line is the next command, with VERSION and WORKLOAD where only you know the words. Exit code 2 where
    nothing can be read.

    \b
    Example:
      tracker doctor ./profiles
      tracker doctor trace.json.gz logs/ --format json
    """
    from tracker import config, reports
    from tracker.cli._output import emit, screen, tell
    from tracker.cli._progress import progress
    from tracker.doctor import examine
    from tracker.intake import IngestOptions
    from tracker.readers import not_recognised_line

    settings = config.load(None)
    with progress() as report:
        findings = examine(
            paths,
            IngestOptions(
                format=input_format,
                flow_category=flow_category,
                allow_partial=allow_partial,
                max_bytes=settings.max_bytes,
                on_progress=report,
            ),
        )
    look = screen()
    document = reports.render(findings, format.value, width=look.width, color=look.color)
    emit(document if isinstance(document, str) else document.decode())
    if findings.not_recognised:
        tell(not_recognised_line(findings.not_recognised))
    if not findings.captures:
        raise SourceError(", ".join(findings.paths), "", "nothing here can be read", remedy="the findings say why")
