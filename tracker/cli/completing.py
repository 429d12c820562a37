"""What a shell completes a word with: names that the database holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from tracker.results.options import Offers
    from tracker.store import Store


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
    from tracker.api.arguments import opened

    workload = next((options[key] for key in ("workload", "chosen_workload") if options.get(key)), None)
    with opened(config.load(options.get("db")), read_only=True) as store:
        return list(_offered(store, kind, start, workload))


def _offered(store: Store, kind: Offers, start: str, workload: str | None) -> Iterator[str]:
    from tracker.store.names import names_beginning_with

    if kind in ("run", "side"):
        # a shell may split the word behind the colon, and asks for `4` of `run:4` then
        before = "run:" if start.startswith("run:") else ""
        if kind == "run" or before:
            yield from (before + number for number in names_beginning_with(store, "run", start.removeprefix(before)))
            return
    if kind == "side":
        yield from (word for word in ("latest", "pinned") if word.startswith(start))
    yield from names_beginning_with(store, "version" if kind == "side" else kind, start, workload)
