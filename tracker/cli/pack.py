"""`tracker pack`: profiles into one small file, for an ingest elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

from msgspec.structs import asdict, replace

from tracker import api, config
from tracker.cli.options import Labels
from tracker.cli.output import emit, next_lines, note, progress
from tracker.errors import UsageError
from tracker.reports.commands import command
from tracker.results.options import Option, Reading, check_path
from tracker.units import counted, format_bytes, ranges

_STDOUT: Final = ("-", "/dev/stdout")


def pack(
    paths: Annotated[
        list[Path], Option("Profiles or packs, or folders with profiles at any depth.", "PATH...", positional=True)
    ],
    output: Annotated[
        str, Option("The file to write, such as run.trk; - is standard output.", "FILE|FOLDER", short="-o")
    ],
    labels: Labels,
    reading: Reading,
    force: Annotated[bool, Option("Replace a pack that exists. Default: an error.")] = False,
) -> None:
    """Pack profiles into one small file, for machines without a database. tracker ingest reads it.

    An ingest of the pack has the same result as one of the profiles; labels of that ingest override those of the pack.
    A pack has sums, no events, and only the metadata that an ingest stores. No database is needed.

    \b
    Example:
      tracker pack run1.pt.trace.json.gz -o run1.trk
      tracker pack ./profiles_of_v2 -o v2.trk --version v2 --workload resnet50
      tracker pack run1.pt.trace.json.gz -o - | ssh login 'cat > run1.trk'
      tracker diff run1.trk run2.trk
    """
    from tracker.cli.ingest import warnings_of_pack
    from tracker.intake import SUFFIX
    from tracker.readers import not_recognised_line

    if not output:
        raise UsageError("-o is empty", remedy="give a file or a folder: -o run.trk")
    target = None if output in _STDOUT else Path(output)
    if target is None and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("a pack cannot be shown on screen", remedy="give -o FILE.trk, or redirect it")
    if target is not None:
        check_path(target)
        if target.is_dir() or output.endswith("/"):
            target /= f"{(paths[0].resolve().name or 'run').removesuffix(SUFFIX)}{SUFFIX}"
    with progress() as report:
        settings = config.load(None)
        how = replace(reading, max_bytes=settings.max_bytes, loaders=settings.loaders, on_progress=report)
        made = api.pack(list(paths), target, force=force, **asdict(labels), **asdict(how))
    for warning in warnings_of_pack(made):
        note(f"warning: {warning}")
    ranks = f", {'rank' if len(made.ranks) == 1 else 'ranks'} {ranges(made.ranks)}" if made.ranks else ""
    sizes = f"{format_bytes(len(made.content))} from {format_bytes(made.read_bytes)}"
    summary = f"{counted(len(made.profiles), 'profile')}{ranks}, {sizes}"
    if target is None:
        emit(made.content)
        note(f"standard output: {summary}")
    else:
        needed = "".join(f" --{name} {name.upper()}" for name in made.unsaid)
        emit(f"{target}: {summary}.{next_lines(command('tracker', 'ingest', str(target)) + needed)}")
    if left := not_recognised_line(made.not_recognised):
        note(left)
