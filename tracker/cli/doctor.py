"""`tracker doctor`: what files and folders hold, before an ingest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec.structs import asdict, replace

from tracker import config
from tracker.cli.options import Color, JsonFormat, check_path
from tracker.cli.output import emit, note, progress, screen
from tracker.errors import SourceError
from tracker.results.options import OUTPUT, Option, Reading


def doctor(
    paths: Annotated[
        list[Path], Option("Profiles, or folders with profiles at any depth.", "PATH...", positional=True)
    ],
    reading: Reading,
    format: JsonFormat = "text",
    details: Annotated[bool, Option("All captures, runs and gaps. Default: a first screen.", group=OUTPUT)] = False,
    color: Color = "auto",
) -> None:
    """Check what files or folders hold before an ingest: formats, runs, missing data, unreadable files.

    Profiles are read as in an ingest; nothing is written, and no database is needed. The last line is the next command,
    with VERSION and WORKLOAD to fill in. Exit code 2 where nothing can be read.

    \b
    Example:
      tracker doctor ./profiles
      tracker doctor trace.json.gz logs/ --format json
    """
    from tracker import api, reports
    from tracker.readers import not_recognised_line

    for path in paths:
        check_path(path)
    with progress() as report:
        how = replace(reading, max_bytes=config.load(None).max_bytes, on_progress=report)
        findings = api.examine(paths, **asdict(how))
    emit(str(reports.render(findings, format, details=details, **screen(color))))
    if findings.not_recognised:
        note(not_recognised_line(findings.not_recognised))
    if not findings.captures:
        raise SourceError(", ".join(findings.paths), "", "nothing here can be read", remedy="see the findings above")
