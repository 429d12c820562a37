"""Results on their way from compare to reports: what one run holds (`Shown`) and what two sides differ in (`Diff`).

Numbers are not rounded here. Columns end in their unit: `_ns` nanoseconds, `_bytes` bytes, `_share` a quotient; `calls`
is a count. A missing number is NA in a frame and None in a field, never 0. `diff` is candidate / baseline - 1, NA
without a baseline.
"""

from __future__ import annotations

from tracker.results.calibration import (
    CALIBRATION_COLUMNS,
    CalibrateOptions,
    Calibration,
)
from tracker.results.columns import (
    DIFF_COLUMNS,
    LOG_COLUMNS,
    LOG_METRICS,
    LOG_TITLES,
    PROFILERS,
    TREE_COLUMNS,
    TREE_DIFF_COLUMNS,
)
from tracker.results.diff import (
    Bottleneck,
    Cause,
    Diff,
    Explanation,
    Part,
    Rename,
    Side,
)
from tracker.results.history import (
    HISTORY_COLUMNS,
    SERIES_KINDS,
    History,
    HistoryOptions,
)
from tracker.results.log import (
    Log,
)
from tracker.results.options import (
    DiffOptions,
    LogOptions,
    Selection,
    ShowOptions,
    check_sections,
)
from tracker.results.shown import (
    Shown,
)
from tracker.results.words import (
    ADDED,
    API_KEY,
    BOTH,
    COMMUNICATION_KEY,
    CORE_TIME,
    COUNTER_KEY,
    CYCLES,
    GRAINS,
    KERNEL_KEY,
    KERNEL_TYPE_KEY,
    LINK_KEY,
    MATCHES,
    METRIC_KEY,
    MODULE_KEY,
    NODE,
    OP_KEY,
    OTHER_METRIC,
    PIPE_TIME,
    RATIO,
    REMOVED,
    REPEATED_COUNTERS,
    SECTIONS,
    TREES,
)

__all__ = [
    "ADDED",
    "API_KEY",
    "BOTH",
    "CALIBRATION_COLUMNS",
    "COMMUNICATION_KEY",
    "CORE_TIME",
    "COUNTER_KEY",
    "CYCLES",
    "DIFF_COLUMNS",
    "GRAINS",
    "HISTORY_COLUMNS",
    "KERNEL_KEY",
    "KERNEL_TYPE_KEY",
    "LINK_KEY",
    "LOG_COLUMNS",
    "LOG_METRICS",
    "LOG_TITLES",
    "MATCHES",
    "METRIC_KEY",
    "MODULE_KEY",
    "NODE",
    "OP_KEY",
    "OTHER_METRIC",
    "PIPE_TIME",
    "PROFILERS",
    "RATIO",
    "REMOVED",
    "REPEATED_COUNTERS",
    "SECTIONS",
    "SERIES_KINDS",
    "TREES",
    "TREE_COLUMNS",
    "TREE_DIFF_COLUMNS",
    "Bottleneck",
    "CalibrateOptions",
    "Calibration",
    "Cause",
    "Diff",
    "DiffOptions",
    "Explanation",
    "History",
    "HistoryOptions",
    "Log",
    "LogOptions",
    "Part",
    "Rename",
    "Selection",
    "ShowOptions",
    "Shown",
    "Side",
    "check_sections",
]
