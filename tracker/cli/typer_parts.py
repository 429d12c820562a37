"""Parts of typer that are replaced: the layout of help, conversion by pydantic, and its error, named by version.

rich would take 70 ms to lay out help, and pydantic 100 ms to convert texts, more than many a command takes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

_COLUMN: Final = 24
_ORDER: Final = ("Arguments", "Options", "Labels", "Sides", "Runs", "Rows", "Output", "Reading files", "Other")


# from 0.26 on typer includes click, before it depends on the package
Misuse: Any = getattr(typer, "TyperException", None) or import_module("click").ClickException
"""What typer raises for a command line that it cannot read: with `format_message()`, `exit_code`, and mostly `ctx`."""


class _Helped:
    """A command whose help lists options by group, and is written as any result is."""

    def get_help_option(self, ctx: Any) -> Any:
        """`--help`: typer's own is a traceback on a full disk, and success where stdout is closed."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.callback = _write_help
        return option

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options."""
        for title, rows in option_groups(self, ctx).items():
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_COLUMN)


class Command(_Helped, TyperCommand):
    """A command whose help lists arguments, then options by group, those of rare use last."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line."""
        arguments = [each for each in self.params if each.param_type_name == "argument"]
        return ["[OPTIONS]", *(f"{each.metavar}" if each.required else f"[{each.metavar}]" for each in arguments)]


class Group(_Helped, TyperGroup):
    """Commands in the order in which they are declared; `groups`: title -> names, for a help in several sections."""

    groups: dict[str, list[str]] = {}  # noqa: RUF012 set on subclasses

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of the help."""
        grouped = [name for names in self.groups.values() for name in names if name in self.commands]
        return grouped or list(self.commands)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands."""
        super().format_options(ctx, formatter)
        for title, names in (self.groups or {"Commands": list(self.commands)}).items():
            rows = [(name, _first_sentence(self.commands[name])) for name in names if name in self.commands]
            with formatter.section(title):
                formatter.write_dl(rows)


def _write_help(context: Any, option: Any, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from tracker.cli.output import emit

        emit(context.get_help(), as_it_is=True)
        context.exit()


def option_groups(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Title -> options with their help, those of rare use last."""
    found: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        is_argument = parameter.param_type_name == "argument"
        record = parameter.get_help_record(ctx)
        if is_argument:  # of which typer 0.16 loses the help, and later ones show the type
            record = (parameter.metavar, command.callback.help_of[parameter.name])
        title = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or ""
        if record is not None:
            found.setdefault(title, []).append(record)
    rest = "Options" if found.keys() <= {"Arguments", ""} else "Other"
    titles = sorted(found, key=lambda title: _ORDER.index(title or rest))
    return {title or rest: found[title] for title in titles}


def _first_sentence(command: Any) -> str:
    text = " ".join((command.short_help or command.help or "").split("\n\n", maxsplit=1)[0].split())
    return text.partition(". ")[0].removesuffix(".") + "."


def without_pydantic(command: Any, above: typer.Context | None = None) -> None:
    """Take texts as they are, in `command` and those below it: `options` makes the values of them."""
    context = typer.Context(command, parent=above, **command.context_settings)
    for parameter in command.get_params(context):  # with the one for help, whose names the context knows
        if hasattr(parameter, "type_descriptor"):  # a later typer may convert in another way
            parameter.process_value = partial(_unconverted, parameter, parameter.process_value)
    for below in getattr(command, "commands", {}).values():
        without_pydantic(below, context)


def _unconverted(parameter: Any, convert: Callable[[Any, Any], Any], context: Any, given: Any) -> Any:
    if parameter.required and (given is None or given in ([], ())):
        return convert(context, given)  # its error
    return given if parameter.callback is None else parameter.callback(context, parameter, given)
