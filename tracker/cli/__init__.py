"""The command `tracker`: one file per command; errors are caught here and nowhere else, but defects in `__main__`.

Importing this room stays cheap, so that `tracker --help` starts fast: a command imports what it needs when it runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from copy import copy
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo, TyperInfo

from tracker import __version__
from tracker.cli import (
    actions,
    calibrate,
    db,
    demo,
    diff,
    doctor,
    findings,
    history,
    ingest,
    log,
    notify,
    pack,
    prune,
    run,
    runs,
    show,
    status,
    thresholds,
    versions,
    watch,
)
from tracker.cli._proposals import remember, with_database
from tracker.cli._values import Misuse, without_pydantic
from tracker.errors import TrackerError
from tracker.units import printable

_EXIT_INTERRUPTED = 130

_ORDER = (
    "demo", "doctor", "ingest", "pack", "run", "runs", "versions", "show", "diff", "history", "log", "findings",
    "explain", "ack", "expect", "mute", "unmute", "invalid", "calibrate", "thresholds", "notify", "watch", "status",
    "prune", "db",
)  # fmt: skip
"""The commands in the order of the work, as the help lists them."""


class _InOrderOfWork(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=_ORDER.index)


app = typer.Typer(
    name="tracker",
    cls=_InOrderOfWork,
    help=(
        "Follow AI-training profiles over versions: what became slower, since when, and why.\n\n"
        "\b\nStart here:\n"
        "  tracker demo                                           # bundled profiles, in seconds\n"
        "  tracker diff a.pt.trace.json b.pt.trace.json.gz        # two files, nothing to set up\n"
        "  tracker ingest ./profiles --version v1 --workload gpt  # keep them in a database\n"
        "  tracker diff v1 v2                                     # compare versions\n\n"
        "Results go to stdout, everything else to stderr. Exit code 0: it ran, 2: it could not."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from tracker.cli._output import emit
        from tracker.readers.torch_profiler import native

        how = "compiled" if native.is_built() else "not compiled, so slower"
        emit(f"tracker {__version__}; decoder of PyTorch traces: {how}")
        raise typer.Exit


@app.callback()
def _tracker(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version of tracker and stop.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


app.command("demo", short_help="See a real diff of bundled profiles, in seconds.")(demo.demo)
app.command("doctor", short_help="What a file or folder holds, before it is ingested.")(doctor.doctor)
app.command("ingest", short_help="Read profiles into the database.")(ingest.ingest)
app.command("pack", short_help="Pack profiles into one small file, to be ingested elsewhere.")(pack.pack)
app.command(
    "run",
    short_help="Run a job, then read the profiles that it left.",
    context_settings={"allow_interspersed_args": False},
)(run.run)
app.add_typer(runs.app, name="runs", short_help="Find runs; edit, tag, exclude, restore, delete them.")
app.add_typer(versions.app, name="versions", short_help="List versions; order them, pin the one to compare with.")
app.command("show", short_help="Show one run: where its time went.")(show.show)
app.command("diff", short_help="Compare two sides: what became slower, and why.")(diff.diff)
app.command("history", short_help="One key over the versions: since when is it slower?")(history.history)
app.command("log", short_help="Show what each version brought, per configuration.")(log.log)
app.command("findings", short_help="What got slower or faster for good, by version.")(findings.findings)
app.command("explain", short_help="One finding: every gate, its runs, its life.")(findings.explain)
app.command("ack", short_help="Say of findings: seen.")(actions.ack)
app.command("expect", short_help="Accept a change as intended and reset the baseline.")(actions.expect)
app.command("mute", short_help="Say of findings: not now, until an end.")(actions.mute)
app.command("unmute", short_help="End a mute before its time.")(actions.unmute)
app.command("invalid", short_help="Say of findings: wrong.")(actions.invalid)
app.command("calibrate", short_help="From repeats of one version: how small a change can be told from noise.")(
    calibrate.calibrate
)
app.add_typer(
    thresholds.app, name="thresholds", short_help="What counts as a change: list, set, take back limits of your own."
)
app.command("prune", short_help="Drop the details of old runs; history stays.")(prune.prune)
app.command("watch", short_help="Watch folders: ingest what is complete, judge it, tell people.")(watch.watch)
app.command("status", short_help="Who watches, what waits, what is stuck.")(status.status)
app.command("notify", short_help="Tell people of findings: send what is due, test the channels, list what waits.")(
    notify.notify
)
app.add_typer(db.app, name="db", short_help="The database: where it is, whether it is sound.")


def _no_options() -> None:
    pass


def app_for(words: Sequence[str]) -> typer.Typer:
    """The program with the one command that `words` begin with, or with all of them: to put together the options of
    every command takes longer than many a command. The help needs none: it has a line for each.
    """
    only = copy(app)
    if words[:1] in (["--help"], ["-h"]):
        told: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
        only.registered_groups = []
        only.registered_commands = [CommandInfo(of.name, short_help=of.short_help, callback=_no_options) for of in told]
        return only
    only.registered_commands = [command for command in app.registered_commands if [command.name] == list(words[:1])]
    only.registered_groups = [group for group in app.registered_groups if [group.name] == list(words[:1])]
    return only if only.registered_commands or only.registered_groups else app


def main() -> NoReturn:
    """Run the command line. A TrackerError becomes one line on stderr and its exit code, never a traceback."""
    remember(None)
    try:
        program = typer.main.get_command(app_for(sys.argv[1:2]))
        without_pydantic(program)
        sys.exit(program.main(prog_name="tracker", standalone_mode=False))
    except Misuse as error:
        sys.exit(_misused(error))
    except typer.Abort:
        sys.exit(_EXIT_INTERRUPTED)
    except TrackerError as error:
        sys.stderr.write(f"tracker: {with_database(printable(str(error)))}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(_EXIT_INTERRUPTED)


def _misused(error: Any) -> int:
    """Say on one line what is wrong with the command line; without arguments, show the help."""
    context: Any = getattr(error, "ctx", None)
    message = error.format_message()
    if context is not None and message == context.get_help():
        sys.stderr.write(f"{message}\n")
        return int(error.exit_code)
    # the validator's own words say how it works inside
    for words, plain in (
        (r"\bValue error, ", ""),
        (r"\bInput should be", "it should be"),
        (r", unable to parse.*", ""),
    ):
        message = re.sub(words, plain, message)
    path = context.command_path if context is not None else "tracker"
    sys.stderr.write(f"tracker: {printable(' '.join(message.split()).rstrip('.'))}; {path} --help\n")
    return int(error.exit_code)
