"""Small results made by hand, with numbers that a reader can check in the head."""

from tests.reports.builders.diffs import (
    ALL_REDUCE,
    BROADCAST,
    MS,
    Contribution,
    bottleneck,
    communication,
    diff,
    explanation,
    explanation_of,
    frame,
    judged,
    kernels,
    op,
    overall,
    side,
)
from tests.reports.builders.found import finding, findings, incident, line
from tests.reports.builders.matrices import matrix
from tests.reports.builders.shown import METRIC, SHOWN_TABLES, breakdown, nullable, shown
from tests.reports.builders.trees import diff_with_tree, shown_with_tree

__all__ = [
    "ALL_REDUCE",
    "BROADCAST",
    "METRIC",
    "MS",
    "SHOWN_TABLES",
    "Contribution",
    "bottleneck",
    "breakdown",
    "communication",
    "diff",
    "diff_with_tree",
    "explanation",
    "explanation_of",
    "finding",
    "findings",
    "frame",
    "incident",
    "judged",
    "kernels",
    "line",
    "matrix",
    "nullable",
    "op",
    "overall",
    "shown",
    "shown_with_tree",
    "side",
]
