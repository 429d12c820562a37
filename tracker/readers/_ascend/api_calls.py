"""api_statistic.csv -> sums of host calls, where no trace has the calls themselves."""

from __future__ import annotations

import numpy as np

from tracker.profile import MISSING, ApiTotals, Strings, empty
from tracker.readers._ascend.csv_tables import CsvTable
from tracker.readers._ascend.levels import LEVELS


def api_totals_of(table: CsvTable, strings: Strings) -> ApiTotals:
    """A row per level and function; rows of levels that are not known, or without a count or a time, are left out."""
    levels = [LEVELS.get(cell.strip().lower(), -1) for cell in table.texts("level") or ()]
    if not levels or not table.has("api"):
        totals: ApiTotals = empty(ApiTotals)
        return totals
    level, calls, total_ns = np.array(levels), table.ints("count"), table.ns("api_time")
    kept = np.flatnonzero((level >= 0) & (calls != MISSING) & (total_ns != MISSING))
    return ApiTotals(
        level=level[kept].astype(np.int8),
        name=np.array(table.codes("api", strings, str.strip), dtype=np.int32)[kept],
        calls=calls[kept],
        total_ns=total_ns[kept],
        min_ns=table.ns("shortest")[kept],
        max_ns=table.ns("longest")[kept],
    )
