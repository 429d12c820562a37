"""A matrix of five versions made by hand."""

from __future__ import annotations

from tests.reports.builders.diffs import MS, side
from tracker.columns import Columns
from tracker.results import MATRIX_COLUMNS, Matrix

LABELS = ("v41", "v42", "v43", "v44", "v45")
ROWS = (
    ("overall", "Step time", "", "step_ns", 0, "ns", (100 * MS, 101 * MS, 120 * MS, 119 * MS, 110 * MS)),
    ("overall", "Idle time", "", "idle_ns", 1, "ns", (8 * MS, 8 * MS, 8 * MS, 9 * MS, 8 * MS)),
    ("overall", "Idle time, share of E2E", "", "idle_share", 1, "ratio", (0.08, 0.079, 0.067, 0.076, 0.073)),
    ("overall", "Peak memory allocated", "", "peak_allocated_bytes", 0, "bytes",
     (3 << 30, 3 << 30, 3 << 30, 4 << 30, 4 << 30)),
    ("op", "aten::mm", "[[64, 512], [512, 512]]", "", 0, "ns", (20 * MS, 20 * MS, 39 * MS, 39 * MS, 30 * MS)),
    ("op", "=cmd|' /C calc'!A0", "", "", 0, "ns", (None, None, None, 2 * MS, 2 * MS)),
    ("op", "aten::add", "[[64, 512], [64, 512]]", "", 0, "ns", (1_500_000, 1_500_000, None, None, None)),
)  # fmt: skip
VERDICTS = {("Step time", 2): "REGRESSED", ("aten::mm", 2): "REGRESSED", ("aten::mm", 4): "IMPROVED",
            ("aten::add", 2): "REMOVED", ("=cmd|' /C calc'!A0", 3): "ADDED", ("Step time", 4): "SUSPECT"}  # fmt: skip


def table(name, rows):
    columns = MATRIX_COLUMNS[name]
    return Columns.of_rows([dict(zip(columns, row, strict=True)) for row in rows], columns)


def matrix(**changes):
    """mm twice as long from v43 on, and half of that won back; one op goes, one comes."""
    rows, cells = [], []
    for number, (section, name, shapes, part, level, unit, values) in enumerate(ROWS):
        filled = [value or 0 for value in values]
        rows.append((number, section, name, shapes, part, level, unit, max(filled) - min(filled)))
        for at, value in enumerate(values):
            before = values[at - 1] if at else None
            both, neighbours = None not in (value, values[0]), None not in (value, before)
            delta, diff = (value - values[0], value / values[0] - 1) if both else (None, None)
            word = VERDICTS.get((name, at), "UNCHANGED" if at else None)
            cells.append((number, at, value, delta, diff, value / before - 1 if neighbours else None,
                          word, 0.01 if at else None, None))  # fmt: skip
    facts = {
        "sides": tuple(side(label) for label in LABELS), "metric": "device_self_ns", "by": "op",
        "tables": {"rows": table("rows", rows), "cells": table("cells", cells)},
        "judged": ("2 runs against 2: only large changes show; 3 or more runs of each version tell more.",) * 4,
    }  # fmt: skip
    return Matrix(**(facts | changes))
