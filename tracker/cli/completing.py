"""What a shell completes a word with: names that the database holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from tracker.results.options import Offers

LookUp = Callable[[str, str, str | None], list[str]]


def names_of(kind: Offers) -> Callable[[typer.Context, str], list[str]]:
    """Return the function that typer asks for names of this kind; of none a shell goes on with its own, paths.

    It reads the database that --db, the environment or the settings file name, and only of --workload where it stands
    in front.
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return _names(kind, incomplete, ctx.params)
        except Exception:  # noqa: BLE001 no database, a damaged one: a shell must not print a traceback into the line
            return []

    return complete


def _names(kind: Offers, start: str, options: dict[str, Any]) -> list[str]:
    from tracker import config
    from tracker.store.names import names_beginning_with, names_in_file

    workload = next((options[key] for key in ("workload", "chosen_workload") if options.get(key)), None)
    settings = config.load(options.get("db"))
    file = Path(settings.database.removeprefix("sqlite:///"))
    if "://" not in str(file) and file.is_file():
        with suppress(sqlite3.Error):  # such as a folder that is not writable: the usual way knows more
            return list(_offered(partial(names_in_file, file), kind, start, workload))

    from tracker.api.arguments import opened

    with opened(settings, read_only=True) as store:
        return list(_offered(partial(names_beginning_with, store), kind, start, workload))


def _offered(look_up: LookUp, kind: Offers, start: str, workload: str | None) -> Iterator[str]:
    """Yield what is offered behind `start`. `look_up`: kind, start and workload -> names of the database."""
    if kind in ("run", "side"):
        # a shell may split the word behind the colon, and asks for `4` of `run:4` then
        before = "run:" if start.startswith("run:") else ""
        if kind == "run" or before:
            yield from (before + number for number in look_up("run", start.removeprefix(before), None))
            return
    if kind == "side":
        yield from (word for word in ("latest", "pinned") if word.startswith(start))
    yield from look_up("version" if kind == "side" else kind, start, workload)
    if kind == "side":
        yield from look_up("branch", start, workload)
