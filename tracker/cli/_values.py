"""What of typer is worked around: its use of pydantic, and its error, which has another name in each version.

Typer converts words of the command line with pydantic whatever there is, even nothing; to import it takes longer than
many a command.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import typer


def _exception() -> Any:
    # from 0.26 on typer has click inside, before it stands on the package
    found = getattr(typer, "TyperException", None)
    return import_module("click").ClickException if found is None else found


Misuse: Any = _exception()
"""What typer raises for a command line that it cannot read: with `format_message()`, `exit_code`, and mostly `ctx`."""


def without_pydantic(command: Any, above: typer.Context | None = None) -> None:
    """Take what was not given, texts, paths and the words of a choice as they are, in `command` and those below it."""
    context = typer.Context(command, parent=above, **command.context_settings)
    for parameter in command.get_params(context):  # with the one for help, whose names the context knows
        if hasattr(parameter, "type_descriptor"):  # a later typer may convert in another way
            parameter.process_value = partial(_value, parameter, parameter.process_value)
    for below in getattr(command, "commands", {}).values():
        without_pydantic(below, context)


def _value(parameter: Any, convert: Callable[[Any, Any], Any], context: Any, given: Any) -> Any:
    annotation = parameter.type_descriptor.annotation
    (kind,) = get_args(annotation) or (annotation,)
    many = isinstance(given, list | tuple)
    values = [_plain(kind, item) for item in (given if many else [given])]
    is_absent = given is None and not parameter.required
    if not is_absent and (None in values or not values):
        return convert(context, given)
    value = values if many else values[0]
    return value if parameter.callback is None else parameter.callback(context, parameter, value)


def _plain(kind: type, given: Any) -> Any:
    """`given` as a `kind`; None for what must be converted, or refused."""
    if not isinstance(given, str):
        return given if isinstance(given, kind) else None
    is_known = kind in (str, Path) or (issubclass(kind, StrEnum) and given in list(kind))
    return kind(given) if is_known and given.isprintable() else None
