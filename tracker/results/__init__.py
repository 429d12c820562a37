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
from tracker.results.findings import (
    CONFIRMED_STATES,
    DIRECTIONS,
    EXPLAIN_COLUMNS,
    FINDINGS_COLUMNS,
    OPEN_STATES,
    STATES,
    ExplainedFinding,
    Findings,
    FindingsOptions,
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
from tracker.results.matrix import (
    MATRIX_COLUMNS,
    MATRIX_ROWS,
    Matrix,
    check_matrix,
)
from tracker.results.messages import (
    MESSAGE_SCHEMA,
    Message,
    ToldFinding,
    ToldIncident,
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
from tracker.results.status import Status
from tracker.results.thresholds import (
    THRESHOLDS,
    Bounds,
)
from tracker.results.verdicts import (
    VERDICT_COLUMNS,
    Judgement,
)
from tracker.results.words import (
    ADDED,
    API_KEY,
    BASELINES,
    BOTH,
    COMMUNICATION_KEY,
    CORE_TIME,
    COUNTER_KEY,
    CYCLES,
    GRAINS,
    KERNEL_KEY,
    KERNEL_TYPE_KEY,
    LINK,
    LINK_KEY,
    MATCHES,
    METRIC_KEY,
    MODULE_KEY,
    NODE,
    OP_KEY,
    OTHER_METRIC,
    PACKET,
    PIPE_TIME,
    RATIO,
    REMOVED,
    REPEATED_COUNTERS,
    SECTIONS,
    TRANSPORT,
    TREES,
)

__all__ = [
    "ADDED",
    "API_KEY",
    "BASELINES",
    "BOTH",
    "CALIBRATION_COLUMNS",
    "COMMUNICATION_KEY",
    "CONFIRMED_STATES",
    "CORE_TIME",
    "COUNTER_KEY",
    "CYCLES",
    "DIFF_COLUMNS",
    "DIRECTIONS",
    "EXPLAIN_COLUMNS",
    "FINDINGS_COLUMNS",
    "GRAINS",
    "HISTORY_COLUMNS",
    "KERNEL_KEY",
    "KERNEL_TYPE_KEY",
    "LINK",
    "LINK_KEY",
    "LOG_COLUMNS",
    "LOG_METRICS",
    "LOG_TITLES",
    "MATCHES",
    "MATRIX_COLUMNS",
    "MATRIX_ROWS",
    "MESSAGE_SCHEMA",
    "METRIC_KEY",
    "MODULE_KEY",
    "NODE",
    "OPEN_STATES",
    "OP_KEY",
    "OTHER_METRIC",
    "PACKET",
    "PIPE_TIME",
    "PROFILERS",
    "RATIO",
    "REMOVED",
    "REPEATED_COUNTERS",
    "SECTIONS",
    "SERIES_KINDS",
    "STATES",
    "THRESHOLDS",
    "TRANSPORT",
    "TREES",
    "TREE_COLUMNS",
    "TREE_DIFF_COLUMNS",
    "VERDICT_COLUMNS",
    "Bottleneck",
    "Bounds",
    "CalibrateOptions",
    "Calibration",
    "Cause",
    "Diff",
    "DiffOptions",
    "ExplainedFinding",
    "Explanation",
    "Findings",
    "FindingsOptions",
    "History",
    "HistoryOptions",
    "Judgement",
    "Log",
    "LogOptions",
    "Matrix",
    "Message",
    "Part",
    "Rename",
    "Selection",
    "ShowOptions",
    "Shown",
    "Side",
    "Status",
    "ToldFinding",
    "ToldIncident",
    "check_matrix",
    "check_sections",
]
