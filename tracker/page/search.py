"""What the words of a reader may mean: workloads, versions, runs, findings and series, each with where it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.reports.cells import KINDS, ColumnsOf, readable
from tracker.reports.document import NAME, WORDS, Column, Document, Table, Target
from tracker.reports.rows import table_of
from tracker.store.names import find_names, like_pattern
from tracker.units import counted

if TYPE_CHECKING:
    from tracker.store import Store

_MOST: Final = 50
"""Rows of a kind: who finds more writes more of the name."""
_NUMBER: Final = re.compile(r"(run[: ]|I-)?(\d{1,18})", re.IGNORECASE)


class FoundName(Struct, frozen=True):
    """A row of search.sql, which says what the columns of each kind are."""

    name: str
    workload: str
    detail: str
    number: int


def search(store: Store, text: str | None) -> Document:
    """Return the document with all whose name has `text` in it, see `write_document`."""
    return write_document(text, find_rows(store, text or ""))


def find_rows(store: Store, text: str, most: int | None = None) -> dict[str, list[FoundName]]:
    """Return the rows of search.sql by kind, of each at most so many; without any where there is no text.

    `text` stands in the name, in any case; `*` and `?` stand for any characters. A number is also that of a run, a
    finding or an incident: `41`, `run:41`, `I-4`.
    """
    if not text:
        return {}
    parameters = _parameters(text, _MOST + 1 if most is None else most)
    found = {}
    for kind, *_ in _KINDS:
        found[kind] = [FoundName(**row) for row in find_names(store, kind, **parameters)]
    return found


def write_document(text: str | None, found: Mapping[str, Sequence[FoundName]]) -> Document:
    """Return the document with a table of each kind that has matches; without text it says what may be written."""
    if not text:
        headline = "Write a part of the name of a workload, version, operator or finding, or run:41, or I-4"
        return Document(title="Search", headline=headline)
    tables = list(_tables(found))
    total = sum(len(one.rows) for one in tables)
    more = "at least " if any(one.more for one in tables) else ""
    headline = f"{more}{counted(total, 'name')} with {text}" if total else f"Nothing has {text} in its name"
    return Document(title="Search", headline=f"{headline[:1].upper()}{headline[1:]}", blocks=tuple(map(_cut, tables)))


class Hit(Struct, frozen=True):
    """What the words of a reader may mean.

    - kind: which kind of search.sql it is; name: of it; what: the kind in words, with what tells it from others of that
      name; target: where it is
    - is_exact: the words are its whole name, but for a namespace
    """

    kind: str
    name: str
    what: str
    target: Target
    is_exact: bool


def list_hits(store: Store, text: str, most: int) -> list[Hit]:
    """Return at most so many things whose name has `text` in it, in the order of `order_hits`."""
    return order_hits(text, find_rows(store, text, most))[:most]


def order_hits(text: str, found: Mapping[str, Sequence[FoundName]]) -> list[Hit]:
    """Return what was found: what has exactly this name first, then operators and other series, then what else there
    is. A series of several kinds is listed once.
    """
    exact, others = list[Hit](), list[Hit]()
    seen = set()
    for kind, _, _, target in sorted(_KINDS, key=lambda one: one[0] != "series"):
        rows = found.get(kind, ())
        # all shapes of an operator together say more than those with shapes one by one
        for row in sorted(rows, key=lambda row: row.detail != "op_name") if kind == "series" else rows:
            name, workload = readable(row.name), row.workload
            if (kind, name, workload) in seen:
                continue
            seen.add((kind, name, workload))
            is_exact = _is_named(row.name, text.lower())
            what = _NOUNS[kind] if name == workload else f"{_NOUNS[kind]} of {workload}"
            (exact if is_exact else others).append(Hit(kind, name, what, target(row), is_exact))
    return [*exact, *others]


def _is_named(name: str, exact: str) -> bool:
    """Return whether a name is that, in any case and with or without a namespace.

    >>> _is_named("aten::mm", "mm"), _is_named("aten::addmm", "mm")
    (True, False)
    """
    lowered = name.lower()
    return lowered == exact or lowered.endswith(f"::{exact}")


def _parameters(text: str, most: int) -> dict[str, Any]:
    """Return the parameters of search.sql for the words of a reader."""
    lowered = text.lower()
    within = f"%::{like_pattern(text)}"
    return {"pattern": _pattern(text), "exact": lowered, "within": within, **_numbers(text), "most": most}


def _cut(table: Table) -> Table:
    """Return `table` with what to do about the rows that are left out: how many there are is not counted."""
    if not table.more:
        return table
    return replace(table, more=0, note=f"only the first {_MOST} are listed: write more of the name")


def _numbers(text: str) -> dict[str, int]:
    """Return the numbers of a run, a finding and an incident that `text` may mean; -1 for none.

    >>> _numbers("run:41"), _numbers("I-4")
    ({'run': 41, 'finding': -1, 'incident': -1}, {'run': -1, 'finding': -1, 'incident': 4})
    """
    found = _NUMBER.fullmatch(text)
    number, kind = (int(found[2]), (found[1] or "").lower()) if found else (-1, "none")
    return {
        "run": number if kind != "i-" else -1,
        "finding": number if kind == "" else -1,
        "incident": number if not kind.startswith("run") else -1,
    }


def _pattern(text: str) -> str:
    """Return the pattern of LIKE of names that have `text` in them, or fit it where it has `*` or `?`.

    >>> _pattern("aten::*norm_?"), _pattern("mm")
    ('aten::%norm!__', '%mm%')
    """
    pattern = like_pattern(text)
    return pattern if re.search("[*?]", text) else f"%{pattern}%"


def _tables(found: Mapping[str, Sequence[FoundName]]) -> Iterator[Table]:
    """Yield a table of each kind that has matches."""
    for kind, title, columns, target in _KINDS:
        rows = found.get(kind, ())
        if rows:
            yield table_of(title, columns, rows, _MOST, links=target, is_first=True, main=0)


def _workload(row: FoundName) -> tuple[str, str]:
    return "--workload", row.workload


def _board(row: FoundName) -> Target:
    return Target("board", (_workload(row),))


def _runs(row: FoundName) -> Target:
    return Target("runs", (("--version", row.name), _workload(row)))


def _board_of_device(row: FoundName) -> Target:
    return Target("board", (_workload(row), ("--device", row.name)))


def _run(row: FoundName) -> Target:
    return Target("run", (("RUN", str(row.number)),))


def _finding(row: FoundName) -> Target:
    return Target("finding", (("ID", str(row.number)),))


def _incident(row: FoundName) -> Target:
    return Target("incident", (("ID", row.name),))


def _history(row: FoundName) -> Target:
    return Target("history", (("KEY", row.name), ("--kind", row.detail), _workload(row)))


def _name(header: str) -> Column:
    return _found.text(header, lambda row: readable(row.name), **NAME)


def _detail(header: str) -> Column:
    return _found.text(header, lambda row: row.detail)


_found: Final = ColumnsOf(FoundName)
_OF: Final = _found.text("workload", lambda row: row.workload, **WORDS)
_KINDS: Final[tuple[tuple[str, str, tuple[Column, ...], Callable[[FoundName], Target]], ...]] = (
    ("workload", "Workloads", (_name("workload"),), _board),
    ("version", "Versions", (_name("version"), _OF, _detail("commit")), _runs),
    ("device", "Devices", (_name("device"), _OF), _board_of_device),
    ("run", "Runs", (_name("run"), _detail("version"), _OF), _run),
    ("incident", "Incidents", (_name("incident"), _detail("version"), _OF), _incident),
    (
        "finding",
        "Findings",
        (_name("finding"), _detail("version and state"), _OF, _found.number("id", lambda row: str(row.number))),
        _finding,
    ),
    (
        "series",
        "Operators and other series",
        (_name("name"), _found.text("kind", lambda row: KINDS[row.detail]), _OF),
        _history,
    ),
)
"""Kind of search.sql, its title, its columns, and where a row leads."""
_NOUNS: Final = {
    "workload": "workload", "version": "version", "device": "device", "run": "run", "incident": "incident",
    "finding": "finding", "series": "history",
}  # fmt: skip
"""Kind -> what a hit of it is called."""
