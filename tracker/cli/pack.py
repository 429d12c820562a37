"""`tracker pack`: profiles into one small file, to be ingested somewhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tracker.cli import _labels as labels
from tracker.cli import _options as options
from tracker.errors import SourceError, UsageError
from tracker.units import counted, format_bytes, ranges

if TYPE_CHECKING:
    from tracker.intake import Pack

_STDOUT: Final = ("-", "/dev/stdout")


def pack(  # one parameter per option
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Profiles: files, or folders that are searched for them. Packs may be packed again, into one.",
            show_default=False,
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE|FOLDER",
            help="The file to write, such as run.trk. A folder gets a file named after the first profile; - is "
            "standard output.",
            show_default=False,
        ),
    ],
    version: labels.Version = None,
    workload: labels.Workload = None,
    commit: labels.Commit = None,
    note: labels.Note = None,
    config: labels.Configuration = None,
    tag: labels.Tags = None,
    device: labels.Device = None,
    expect_ranks: labels.ExpectRanks = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the pack that is there. Default: an existing file stays.")
    ] = False,
    input_format: options.InputFormat = None,
    flow_category: options.FlowCategory = None,
    allow_partial: options.AllowPartial = False,
    skip_bad_rows: options.SkipBadRows = False,
) -> None:
    """Pack profiles into one small file, for machines without a database: tracker ingest takes it in.

    An ingest of the pack has the same result as one of the profiles, under the labels that are given here or there;
    those given there win. The pack holds sums, no events, and nothing of a trace's metadata that an ingest would not
    keep. No database is needed.

    \b
    Example:
      tracker pack run1.pt.trace.json.gz -o run1.trk
      tracker pack ./profiles_of_v2 -o v2.trk --version v2 --workload resnet50
      tracker pack run1.pt.trace.json.gz -o - | ssh login 'cat > run1.trk'
      tracker ingest run1.trk --version v1 --workload resnet50
      tracker diff run1.trk run2.trk
    """
    from tracker import __version__, intake
    from tracker import config as configuration
    from tracker.cli._ingested import warnings_of_pack
    from tracker.cli._output import emit, tell, write_file
    from tracker.cli._progress import progress
    from tracker.readers import not_recognised_line

    target = None if output in _STDOUT else _target(output, paths[0])
    if target is not None:
        _check_target(target, force=force)
    elif sys.stdout.isatty():
        raise UsageError("a pack cannot be shown on screen", remedy="give -o FILE.trk, or send it elsewhere")
    for path in paths:
        options.check_path(path)
    asked = intake.Sidecar(
        version=version,
        workload=workload,
        commit=options.one_line("--commit", commit),
        note=options.one_line("--note", note),
        device=device,
        expect_ranks=expect_ranks,
        configuration=options.pairs(config, "--config"),
        tags=options.pairs(tag, "--tag"),
    )
    with progress() as report:
        made = intake.pack(
            paths,
            asked=asked,
            writer=__version__,
            options=intake.IngestOptions(
                format=input_format,
                flow_category=flow_category,
                allow_partial=allow_partial,
                skip_bad_rows=skip_bad_rows,
                max_bytes=configuration.load(None).max_bytes,
                on_progress=report,
            ),
        )
    for warning in warnings_of_pack(made):
        tell(f"warning: {warning}")
    left = not_recognised_line(made.not_recognised)
    if target is None:
        emit(made.content)
        tell(f"standard output: {_held(made)}")
        if left:
            tell(left)
        return
    _check_target(target, force=force)
    write_file(target, made.content)
    emit(summary(made, target))
    if left:
        tell(left)


def _target(output: str, first: Path) -> Path:
    from tracker.intake import SUFFIX

    if not output:
        raise UsageError("-o is empty", remedy="give a file or a folder: -o run.trk")
    target = Path(output)
    if not (target.is_dir() or output.endswith("/")):
        return target
    name = (first.resolve().name or "run").removesuffix(SUFFIX)
    return target / f"{name}{SUFFIX}"


def _check_target(target: Path, *, force: bool) -> None:
    """Before and behind the reading: a SourceError where the pack cannot be written, or would replace what is there."""
    from tracker.cli._output import check_file
    from tracker.intake import is_pack

    check_file(target)
    if not target.is_file():
        return
    if not force:
        raise SourceError(target, "", "is there already", remedy="name another file, or replace it with --force")
    if not is_pack(target):
        raise SourceError(target, "", "is no pack and is not replaced", remedy="name another file")


def summary(made: Pack, target: Path) -> str:
    """The last line: what was packed, its size, and what comes next."""
    from tracker.reports.commands import command

    needed = {"version": "--version VERSION", "workload": "--workload WORKLOAD"}
    more = "".join(f" {needed[name]}" for name in made.unsaid)
    return f"{target}: {_held(made)}.  Next: {command('tracker', 'ingest', str(target))}{more}"


def _held(made: Pack) -> str:
    ranks = f", {'rank' if len(made.ranks) == 1 else 'ranks'} {ranges(made.ranks)}" if made.ranks else ""
    sizes = f"{format_bytes(len(made.content))} from {format_bytes(made.read_bytes)}"
    return f"{counted(len(made.profiles), 'profile')}{ranks}, {sizes}"
