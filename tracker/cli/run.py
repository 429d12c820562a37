"""`tracker run`: a job, and then the profiles that it left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from tracker.cli import _labels as labels
from tracker.cli import _options as options

_NOT_FOUND: Final = 127
_NOT_STARTED: Final = 126


def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="The job and its arguments.")],
    profiles: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Where the job leaves its profiles; what is new or changed there when it ends is read. Needed.",
            show_default=False,
        ),
    ],
    version: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL",
            help="What is profiled, as for tracker ingest. Default: what the profile's tracker.json says, else git "
            "describe --always --dirty in the current folder.",
            show_default=False,
        ),
    ] = None,
    workload: labels.Workload = None,
    commit: labels.Commit = None,
    note: labels.Note = None,
    config: labels.Configuration = None,
    tag: labels.Tags = None,
    device: labels.Device = None,
    expect_ranks: labels.ExpectRanks = None,
    format: options.InputFormat = None,
    db: options.Database = None,
) -> None:
    """Run a command and read the profiles that it leaves in a folder.

    The command keeps its streams, signals and exit code, whatever becomes of the profiles: what could not be read
    is told on stderr and waits for tracker ingest --spooled. Hooks inside of the job write below the folder and leave
    the rest to this.

    \b
    Example:
      tracker run --profiles ./prof --workload gpt -- python train.py --epochs 1
    """
    from tracker.cli import _child
    from tracker.cli._job import Job
    from tracker.cli._output import tell
    from tracker.intake import Sidecar

    options.one_line("--note", note)
    options.one_line("--commit", commit)
    said = Sidecar(
        version=version, workload=workload, commit=commit, note=note, device=device, expect_ranks=expect_ranks,
        configuration=options.pairs(config, "--config"), tags=options.pairs(tag, "--tag"),
    )  # fmt: skip
    job = Job(profiles, said, format, db)
    try:
        code = _child.run(command, {**os.environ, **job.variables()})
    except FileNotFoundError as error:
        tell(f"tracker: {command[0]}: {error.strerror}")
        raise typer.Exit(_NOT_FOUND) from error
    except OSError as error:
        tell(f"tracker: {command[0]}: cannot be started ({error.strerror})")
        raise typer.Exit(_NOT_STARTED) from error
    try:
        job.read_profiles()
    except Exception as error:  # noqa: BLE001 the job has its own end, whatever happens to its profiles
        tell(f"tracker: the profiles in {profiles} are not read ({error})")
    raise typer.Exit(code)
