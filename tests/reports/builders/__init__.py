"""Small results made by hand, with numbers that a reader can check in the head."""

from tests.reports.builders.diffs import MS, bottleneck, diff, explanation, frame, judged, op, overall, side
from tests.reports.builders.matrices import matrix
from tests.reports.builders.shown import SHOWN_TABLES, breakdown, nullable, shown
from tests.reports.builders.trees import diff_with_tree, shown_with_tree

__all__ = [
    "MS",
    "SHOWN_TABLES",
    "bottleneck",
    "breakdown",
    "diff",
    "diff_with_tree",
    "explanation",
    "frame",
    "judged",
    "matrix",
    "nullable",
    "op",
    "overall",
    "shown",
    "shown_with_tree",
    "side",
]
