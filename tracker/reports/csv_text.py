"""Tables as comma-separated values, of reports and of lists."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from tracker.reports.shared import names, no_formula, records
from tracker.units import printable

if TYPE_CHECKING:
    import pandas as pd

    from tracker.columns import Columns

Rows = list[dict[str, Any]]


def table(rows: Columns | pd.DataFrame) -> tuple[list[str], Rows]:
    """The names of the columns, and the rows."""
    return names(rows), records(rows)


def written(tables: dict[str, tuple[list[str], Rows]]) -> str:
    """Tables under one header, the column `section` first where there are several; what is missing is empty."""
    header = list(dict.fromkeys(name for columns, _ in tables.values() for name in columns))
    several = len(tables) > 1
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((["section"] if several else []) + header)
    for section, (_, rows) in tables.items():
        for row in rows:
            writer.writerow(([section] if several else []) + [_field(row.get(name)) for name in header])
    return out.getvalue()


def _field(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, list | dict):
        value = str(value)
    # one record per line, and nothing for a terminal to act on; JSON has control characters as they are
    return no_formula(printable(value)) if isinstance(value, str) else value
