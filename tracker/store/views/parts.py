"""What views are made of: columns with their meanings, and the tables that all of them join."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from tracker.store.sql import select_columns

Kind = Literal["text", "bigint", "double"]


class ViewColumn(Struct, frozen=True):
    """A column of a view: its name, the SQL that gives it, and what it means."""

    name: str
    sql: str
    kind: Kind
    meaning: str


class View(Struct, frozen=True):
    """A view. `source`: its SQL from FROM on; `before`: what stands before SELECT."""

    name: str
    title: str
    columns: tuple[ViewColumn, ...]
    source: str
    before: str = ""

    @property
    def query(self) -> str:
        """The SELECT that the view stands for."""
        columns = select_columns({column.name: column.sql for column in self.columns})
        return f"{self.before}SELECT{columns}\n{self.source}"


def word(name: str, sql: str, meaning: str) -> ViewColumn:
    """Return a column of texts."""
    return ViewColumn(name, sql, "text", meaning)


def whole(name: str, sql: str, meaning: str) -> ViewColumn:
    """Return a column of whole numbers."""
    return ViewColumn(name, sql, "bigint", meaning)


def real(name: str, sql: str, meaning: str) -> ViewColumn:
    """Return a column of real numbers."""
    return ViewColumn(name, sql, "double", meaning)


RUN_ID: Final = whole("run_id", "r.id", "the run: run:ID of the commands")

TRACK: Final = (
    word("workload", "w.name", "name of the training job that is followed; of a branch, NAME @ BRANCH"),
    word("version", "v.label", "label of the version"),
    whole("version_ordinal", "v.ordinal", "place of the version in the order of versions: order by it, not by label"),
    word("device", "TRIM(h.vendor || ' ' || h.model)", "vendor and model of the hardware"),
    word("configuration", "g.title", "what must be equal for runs to be compared, KEY=VALUE by blanks"),
)
"""What the rows of all views have, of the tables w, v, h and g."""

JOIN_TRACK: Final = """INNER JOIN workload AS w ON {0}.workload_id = w.id
INNER JOIN version AS v ON {0}.{1} = v.id
INNER JOIN device AS h ON {0}.device_id = h.id
INNER JOIN configuration AS g ON {0}.configuration_id = g.id"""


def same_track(left: str, right: str, *, indent: int) -> str:
    """Return the condition that rows of two tables are of one track; its further lines are indented by so much."""
    names = ("workload_id", "configuration_id", "device_id")
    return f"\n{' ' * indent}AND ".join(f"{left}.{name} = {right}.{name}" for name in names)
