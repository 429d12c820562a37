"""Small results made by hand, with numbers that a reader can check in the head."""

from tests.reports.builders.diffs import (
    ALL_REDUCE,
    BROADCAST,
    MS,
    bottleneck,
    communication,
    diff,
    explanation,
    frame,
    judged,
    kernels,
    op,
    overall,
    side,
)
from tests.reports.builders.matrices import matrix
from tests.reports.builders.shown import METRIC, SHOWN_TABLES, breakdown, nullable, shown
from tests.reports.builders.trees import diff_with_tree, shown_with_tree

__all__ = [
    "ALL_REDUCE",
    "BROADCAST",
    "METRIC",
    "MS",
    "SHOWN_TABLES",
    "bottleneck",
    "breakdown",
    "communication",
    "diff",
    "diff_with_tree",
    "explanation",
    "frame",
    "judged",
    "kernels",
    "matrix",
    "nullable",
    "op",
    "overall",
    "shown",
    "shown_with_tree",
    "side",
]
