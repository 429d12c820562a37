"""The command `tracker`: one module per command or family of commands, loaded when it runs.

Importing this room stays cheap, so that `tracker --help` starts fast. Errors are caught here, defects in `__main__`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, Final, NoReturn

import typer

from tracker import __version__
from tracker.cli.commands import COMMANDS, SUBCOMMANDS
from tracker.cli.typer_parts import Command, Group, Misuse, without_pydantic
from tracker.errors import EXIT_INTERRUPTED, TrackerError
from tracker.limits import interrupt
from tracker.units import printable

_GOES_ON: Final = ("watch", "page", "run", "ab")
_MODULES: Final = {
    "init": "start", "demo": "start", "doctor": "start",
    "explain": "findings", "ack": "findings", "expect": "findings", "mute": "findings", "unmute": "findings",
    "invalid": "findings", "note": "findings", "undo": "findings", "log": "history", "show": "diff", "status": "watch",
    "calibrate": "thresholds", "prune": "db",
}  # fmt: skip
"""The module of a command, where its name differs."""
_HELP = """Track the performance of AI training over versions: what became slower, since when, and why.

\b
Start here:
  tracker demo                                           # bundled profiles, no setup
  tracker diff a.pt.trace.json b.pt.trace.json.gz        # two files, no database
  tracker ingest ./profiles --version v1 --workload gpt  # store profiles
  tracker diff v1 v2                                     # compare versions

Results go to stdout, everything else to stderr. Exit code 0: success; 2: error."""


class _Program(Group):
    groups = {title: list(names) for title, names in COMMANDS.items()}  # noqa: RUF012


def program(words: Sequence[str] = ()) -> Any:
    """The program with the one command that `words` begin with, or with all: to make the options of every command
    takes longer than many a command runs. The help needs no options, only a line for each command.
    """
    app = typer.Typer(
        name="tracker",
        cls=_Program,
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_tracker)
    summaries = {name: summary for group in COMMANDS.values() for name, summary in group.items()}
    chosen = [words[0]] if words and words[0] in summaries else list(summaries)
    is_help = list(words[:1]) in (["--help"], ["-h"])
    for name in chosen:
        if is_help:
            app.command(name, short_help=summaries[name])(_no_options)
        elif name in SUBCOMMANDS:
            app.add_typer(_family(name), name=name, short_help=summaries[name])
        else:
            settings = {"allow_interspersed_args": False} if name == "run" else None
            function = _made(_MODULES.get(name, name), name, f"tracker {name}")
            app.command(name, cls=Command, short_help=summaries[name], context_settings=settings)(function)
    return typer.main.get_command(app)


def _family(name: str) -> typer.Typer:
    """The commands below a command, such as `tracker runs tag`; called by itself, it lists."""
    module = import_module(f"tracker.cli.{name}")
    app = typer.Typer(cls=Group, help=module.HELP, no_args_is_help=not hasattr(module, "find"), rich_markup_mode=None)
    if hasattr(module, "find"):
        app.callback(invoke_without_command=True)(_made(name, "find", f"tracker {name}", lists=True))
    for below in SUBCOMMANDS[name]:
        app.command(below, cls=Command)(_made(name, below, f"tracker {name} {below}"))
    return app


def _made(module: str, name: str, path: str, *, lists: bool = False) -> Any:
    from tracker.cli.options import command

    found = import_module(f"tracker.cli.{module}")
    name = name.replace("-", "_")
    return command(getattr(found, name, None) or getattr(found, f"{name}_"), path, lists=lists)


def _print_version(wanted: bool) -> None:
    if wanted:
        from tracker.cli.output import emit
        from tracker.readers.torch_profiler import native

        how = "compiled" if native.is_built() else "not compiled, so slower"
        emit(f"tracker {__version__}; decoder of PyTorch traces: {how}")
        raise typer.Exit


def _tracker(
    version: bool = typer.Option(
        False, "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
    ),
) -> None:
    pass


def _no_options() -> None:
    pass


def main() -> NoReturn:
    """Run the command line. A TrackerError becomes one line on stderr and its exit code, never a traceback; so does any
    other error that comes from a damaged database.
    """
    from tracker.cli.proposed import remember

    remember(None)
    try:
        with _guarded(sys.argv[1:2]):
            _main()
    except Misuse as error:
        sys.exit(_misused(error))
    except typer.Abort:
        sys.exit(EXIT_INTERRUPTED)
    except TrackerError as error:
        _note(f"tracker: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:
        from tracker.cli.database import damage_behind

        damaged = damage_behind(error)
        if damaged is None:
            raise
        _note(f"tracker: {damaged}")
        sys.exit(damaged.exit_code)


def _main() -> NoReturn:
    is_completion = "_TRACKER_COMPLETE" in os.environ
    # without words the help is shown, unless a shell wants to complete them
    built = program(_words_to_complete() if is_completion else sys.argv[1:2] or ["--help"])
    without_pydantic(built)
    interrupt.raise_again()
    sys.exit(built.main(prog_name="tracker", standalone_mode=False))


def _guarded(words: Sequence[str]) -> AbstractContextManager[None]:
    """Within the block, a file that does not answer in time is an error; not for a command that goes on for as long as
    it can, and has another process touch files.
    """
    if not words or words[0] in _GOES_ON:
        return nullcontext()
    from tracker.limits.touch import guarded

    return guarded()


def _words_to_complete() -> list[str]:
    """Return the command that a shell completes words of; none while it is the command itself that is written."""
    # bash, then zsh, fish and PowerShell
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = line.split()[1:]
    is_whole = len(words) > 1 or line[-1:].isspace()
    return words[:1] if is_whole else []


def _misused(error: Any) -> int:
    """Print on one line what is wrong with the command line; without arguments, the help."""
    context: Any = getattr(error, "ctx", None)
    message = error.format_message()
    if context is not None and message == context.get_help():
        for line in message.split("\n"):
            _note(line)
        return int(error.exit_code)
    path = context.command_path if context is not None else "tracker"
    line = re.sub(r"\s+", " ", message).strip().rstrip(".")
    _note(f"tracker: {line}; {_behind_dashes(error, context)}{path} --help")
    return int(error.exit_code)


def _behind_dashes(error: Any, context: Any) -> str:
    """What to do where a name such as `-v1` was read as an option of a command that takes names; else ""."""
    option = getattr(error, "option_name", "")
    if context is None or not re.fullmatch(r"-[^-]", option):
        return ""
    names = [each.metavar for each in context.command.params if each.param_type_name == "argument"]
    word = next((word for word in sys.argv[1:] if word.startswith(option)), option)
    return (
        f"a name that begins with - goes behind --: {context.command_path} ... -- {printable(word)}; " if names else ""
    )


def _note(text: str) -> None:
    from tracker.cli.output import note

    note(text)
