"""The filters that `show` and `diff` share."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from tracker.lazy import pd
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded


def matching(frame: pd.DataFrame, column: str, pattern: str | None) -> pd.DataFrame:
    """The rows whose `column` matches the glob `pattern` (case matters); all rows without a pattern or such a column.

    >>> matching(pd.DataFrame({"name": ["aten::mm", "nccl"]}), "name", "aten::*")["name"].tolist()
    ['aten::mm']
    """
    if not pattern or column not in frame:
        return frame
    return frame[np.array([fnmatchcase(str(text), pattern) for text in frame[column]], dtype=bool)]


def check_named(what: str, pattern: str | None, names: Iterable[str], sides: Iterable[Loaded]) -> None:
    """UsageError where `pattern` matches none of the `names` that the `sides` have, with those like it. `what`: of what
    the names are, operator or module.
    """
    if not pattern:
        return
    known = [str(name) for name in names if name]
    if not any(fnmatchcase(name, pattern) for name in known):
        *others, last = (side.side.label for side in sides)
        where = f"tracker show {last} --only {what}"
        raise queries.unknown(what, pattern, known, f" in {', '.join(others)} or {last}", where=where)
