"""How a reader wants a document."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from tracker.results import SECTIONS
from tracker.results.verdicts import Gate


class Look(Struct, frozen=True):
    """`only`: words of SECTIONS, empty for the format's default; `details`: all of them. `limit`: rows per table, None
    for the format's default, 0 for all. `width`: of the terminal; `color`: ANSI colours. `gate`: what fails a build,
    for the formats that build systems read; None for what regressed at all. `tell` gets a sentence for everything that
    did not fit into the document.
    """

    only: tuple[str, ...] = ()
    details: bool = False
    limit: int | None = None
    width: int | None = None
    color: bool = False
    gate: Gate | None = None
    tell: Callable[[str], None] = print

    def sections(self, default: Sequence[str] = SECTIONS) -> tuple[str, ...]:
        """The sections to show, in reading order."""
        return tuple(section for section in SECTIONS if section in (self.only or default))

    def rows(self, default: int | None) -> int | None:
        """How many rows a table may have, None for all."""
        limit = default if self.limit is None else self.limit
        return limit or None
