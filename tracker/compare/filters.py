"""The filters that `show` and `diff` share."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from tracker.columns import Columns
from tracker.store import queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracker.compare.side import LoadedSide
    from tracker.results import Selection


def matching(table: Columns, column: str, pattern: str | None) -> Columns:
    """Return the rows whose `column` matches the glob `pattern` (case matters); all rows without a pattern or such a
    column.

    >>> matching(Columns({"name": np.array(["aten::mm", "nccl"], dtype=object)}), "name", "aten::*").listed("name")
    ['aten::mm']
    """
    if not pattern or column not in table:
        return table
    return table.taken(np.array([fnmatchcase(text, pattern) for text in table.texts(column)], dtype=bool))


def check_named(
    what: str, pattern: str | None, names: Iterable[str], sides: Iterable[LoadedSide], *, section: str = ""
) -> None:
    """UsageError where `pattern` matches none of the `names` that the `sides` have, with those like it. `what`: of what
    the names are, such as operator; `section`: where they are listed, if that is called otherwise.
    """
    if not pattern:
        return
    known = [str(name) for name in names if name]
    if not any(fnmatchcase(name, pattern) for name in known):
        *others, last = (side.side.label for side in sides)
        where = f"tracker show {last} --only {section or what}"
        those = f"{', '.join(others)} or {last}" if others else last
        raise queries.unknown(what, pattern, known, f" in {those}", where=where)


def check_exchange(chosen: Selection, sides: Sequence[LoadedSide]) -> None:
    """UsageError where no collective of the `sides` has the kind or the group that is chosen; none where they have no
    collectives, which their tables say.
    """
    for what, pattern, column in (("kind", chosen.kind, "kind"), ("group", chosen.group, "group_role")):
        if pattern:
            found = []
            for side in sides:
                found += side.query(queries.communication, in_steps=False).listed(column)
            if found:
                check_named(f"{what} of collectives", pattern, found, sides, section="communication")
