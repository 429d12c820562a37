"""How results display themselves: one short line as text, their first screen in a notebook, pandas frames by name."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, get_args, get_type_hints, overload

from msgspec import Struct
from msgspec.structs import asdict

from tracker.columns import Columns
from tracker.errors import UsageError
from tracker.lazy import pd
from tracker.units import printable

if TYPE_CHECKING:
    import pandas as pandas_of_types

SCREEN_WIDTH: Final = 100
SCREEN_LINES: Final = 40
_LONGEST_LINE: Final = 400
_LONGEST_HEADLINE: Final = 300
_FRAME: Final = "width: 100%; height: 640px; border: 0; background: white"
_ROWS: Final = re.compile(r"tuple\[(\w+), \.\.\.\]")


class Drawing(Struct, frozen=True):
    """What `reports`, which is above this room, does with results. `text`: the text report in so many characters;
    `page`: the page of a browser with the first rows of each table, "" where no page shows this result; `save`: writes
    the report to a file.
    """

    text: Callable[[Result, int], str]
    page: Callable[[Result], str]
    save: Callable[[Result, Path], None]


_drawn_with: list[Drawing] = []


def draw_with(drawing: Drawing) -> None:
    """Set what draws and writes results."""
    _drawn_with[:] = [drawing]


Rows = Columns | list[dict[str, object]]
"""The rows of a table as files have them: columns, or a dict for each."""


@cache
def kinds_of_rows(tables: type[Struct]) -> Mapping[str, type[Struct]]:
    """Return the struct that each table has a row of. `tables`: a struct whose fields are tuples of such rows."""
    return {name: get_args(hint)[0] for name, hint in get_type_hints(tables).items()}


def columns_of_rows(rows: Struct) -> dict[str, Columns]:
    """Return each table of `rows`, a struct whose fields are tuples of structs, as columns, by name."""
    kinds = kinds_of_rows(type(rows))
    return {name: Columns.of_structs(kind, getattr(rows, name)) for name, kind in kinds.items()}


class Result(Struct, frozen=True, eq=False):
    """Base of all results: short in a session, its first screen in a notebook, `to_pandas` for its tables.

    `word`: what reports call it: its view is `reports/views/<word>.py`, where it needs one; empty: no report shows it.
    `printed_by`: the command that docs/json.md says it is of; empty where the page has another result of it.
    `json_fields`: what its JSON document has in front of its tables.
    """

    word: ClassVar[str] = ""
    printed_by: ClassVar[str] = ""
    json_fields: ClassVar[tuple[str, ...]] = ("headline",)

    @property
    def headline(self) -> str:
        """One sentence that says what the result is, or what it answers."""
        return ""

    def chosen_tables(self, only: Sequence[str] = (), limit: int | None = None) -> dict[str, Rows]:
        """Return the tables that formats for programs write, by name.

        `only`: words of sections, of results that have some; empty: all tables. `limit`: rows of each table, of results
        whose tables are as long as what was measured; None: all.
        """
        return dict(getattr(self, "tables", {}))

    def __repr__(self) -> str:
        line = printable(self.headline)
        short = line if len(line) <= _LONGEST_HEADLINE else f"{line[: _LONGEST_HEADLINE - 3]}..."
        return f"<{type(self).__name__}: {short}>" if short else f"<{type(self).__name__}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("headline", self.headline)]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython prints; of a structure it would print every field."""
        printer.text(repr(self))

    def _repr_html_(self) -> str:
        """The headline, and the page of a browser in a frame of its own, whose styles and scripts stay inside; of a
        result without a page its first screen as escaped text.
        """
        page = _drawn_with[0].page(self) if _drawn_with else ""
        import html

        head, names = f"<p><b>{html.escape(_short(self.headline))}</b></p>", ", ".join(self._tables())
        if page:
            frame = f'<iframe sandbox="allow-scripts" style="{_FRAME}" srcdoc="{html.escape(page)}"></iframe>'
            return f"{head}{frame}<p>{html.escape(f'tables for to_pandas(): {names}')}</p>"
        lines = _drawn_with[0].text(self, SCREEN_WIDTH).rstrip("\n").split("\n") if _drawn_with else []
        left_out = len(lines) - SCREEN_LINES
        shown = "\n".join(line[:_LONGEST_LINE] for line in lines[:SCREEN_LINES])
        more = f"{left_out:,} more lines; " if left_out > 0 else ""
        return (
            f'{head}<pre style="line-height: 1.2">{html.escape(shown)[:20_000]}</pre>'
            f"<p>{html.escape(f'{more}tables for to_pandas(): {names}')}</p>"
        )

    def save(self, path: str | Path) -> None:
        """Write the whole report to a file, in the format that its ending names: .html, .xlsx, .md, .json, .csv, .txt.

        What was there is replaced only when all is written. UsageError for another ending, and for a format that does
        not show this result; SourceError where the file cannot be written.
        """
        _drawn_with[0].save(self, Path(path))

    @overload
    def to_pandas(self, table: str) -> pandas_of_types.DataFrame: ...
    @overload
    def to_pandas(self, table: None = None) -> dict[str, pandas_of_types.DataFrame]: ...
    def to_pandas(self, table: str | None = None) -> pandas_of_types.DataFrame | dict[str, pandas_of_types.DataFrame]:
        """The frame of the table of this name, or all tables as name -> frame. Frames are copies.

        UsageError for a name that no table has.
        """
        tables = self._tables()
        if table is None:
            return {name: _frame(rows) for name, rows in tables.items()}
        if table not in tables:
            raise UsageError(f"no table {table!r}", remedy=f"choose from {', '.join(tables)}")
        return _frame(tables[table])

    def _tables(self) -> dict[str, Any]:
        """Name -> what `_frame` takes, of every field that is a table."""
        # of a result that keeps rows these are made of them
        is_made = "tables" not in self.__struct_fields__ and hasattr(type(self), "tables")
        found: dict[str, Any] = {**self.tables} if is_made else {}  # type: ignore[attr-defined]
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, Columns):
                found[name.removesuffix("_table")] = value
            elif isinstance(value, Mapping) and value and all(isinstance(rows, Columns) for rows in value.values()):
                found.update(value)
            elif kind := self._kind_of_rows(name, value):
                found[name] = _StructRows(kind, value)
        return found

    def _kind_of_rows(self, name: str, value: Any) -> type[Struct] | None:
        """The struct that the field `name`, a tuple, has a row each of; a tuple without rows says so by its type."""
        if not isinstance(value, tuple):
            return None
        from inspect import get_annotations

        if value:
            return type(value[0]) if isinstance(value[0], Struct) else None
        for base in type(self).__mro__:
            found = _ROWS.match(str(get_annotations(base).get(name, "")))
            if found:
                kind = getattr(sys.modules[base.__module__], found[1], None)
                return kind if isinstance(kind, type) and issubclass(kind, Struct) else None
        return None


class Frame:
    """An attribute of a result with `tables`: the table of this name as a frame.

    Each caller gets a copy, which may be changed.
    """

    def __set_name__(self, owner: type[Result], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, result: None, owner: type[Result]) -> Frame: ...
    @overload
    def __get__(self, result: Result, owner: type[Result]) -> pandas_of_types.DataFrame: ...
    def __get__(self, result: Any, owner: type[Result]) -> pandas_of_types.DataFrame | Frame:
        return self if result is None else result.tables[self._name].frame.copy()


def frames(count: int) -> Iterator[Frame]:
    """Yield so many frames, for as many names."""
    return (Frame() for _ in range(count))


class _StructRows(Struct, frozen=True):
    kind: type[Struct]
    rows: tuple[Struct, ...]


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 3]}..."


def _frame(rows: Columns | _StructRows) -> pandas_of_types.DataFrame:
    if isinstance(rows, Columns):
        return rows.frame.copy()
    return pd.DataFrame([asdict(row) for row in rows.rows], columns=list(rows.kind.__struct_fields__))
