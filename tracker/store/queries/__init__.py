"""The questions that the database answers, one function each; the SQL is in `store/sql`.

Frames have nullable dtypes (Int64, Float64, string, boolean): integers are exact, missing is NA. Times are ns, sizes
bytes. Rows come in a total order, the same on both databases. A `Question` also answers with `Columns`, without pandas:
`queries.ops.columns(store, run_ids)`.
"""

from __future__ import annotations

from tracker.store.queries.answers import Question
from tracker.store.queries.details import (
    api,
    communication,
    communication_links,
    communication_tasks,
    counters,
    kernel_metrics,
    kernels,
    memory,
    memory_allocators,
    memory_blocks,
    memory_curve,
    memory_owners,
    memory_peaks,
    op_tree,
    ops,
)
from tracker.store.queries.filters import check_filters, on_device, unknown, with_values
from tracker.store.queries.findings import Regression, finding_events, findings, lives, regressions
from tracker.store.queries.history import (
    drifted,
    line_series,
    lines,
    run_level,
    samples,
    series_diffs,
    series_lines,
    series_runs,
    thresholds,
)
from tracker.store.queries.recordings import Recorded, recorded, recorded_of, recordings
from tracker.store.queries.resolve import latest, pinned, require_run, run_ids_of_version
from tracker.store.queries.runs import (
    captures,
    facts,
    labels_of,
    order_of_versions,
    pruned,
    run_numbers,
    runs,
    runs_by_id,
    runs_of_versions,
    settings_of,
    sources,
    steps,
    told,
    version_notes,
    versions,
)

__all__ = [
    "Question",
    "Recorded",
    "Regression",
    "api",
    "captures",
    "check_filters",
    "communication",
    "communication_links",
    "communication_tasks",
    "counters",
    "drifted",
    "facts",
    "finding_events",
    "findings",
    "kernel_metrics",
    "kernels",
    "labels_of",
    "latest",
    "line_series",
    "lines",
    "lives",
    "memory",
    "memory_allocators",
    "memory_blocks",
    "memory_curve",
    "memory_owners",
    "memory_peaks",
    "on_device",
    "op_tree",
    "ops",
    "order_of_versions",
    "pinned",
    "pruned",
    "recorded",
    "recorded_of",
    "recordings",
    "regressions",
    "require_run",
    "run_ids_of_version",
    "run_level",
    "run_numbers",
    "runs",
    "runs_by_id",
    "runs_of_versions",
    "samples",
    "series_diffs",
    "series_lines",
    "series_runs",
    "settings_of",
    "sources",
    "steps",
    "thresholds",
    "told",
    "unknown",
    "version_notes",
    "versions",
    "with_values",
]
