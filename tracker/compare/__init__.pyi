from .baselines import baseline_of
from .diff import diff
from .gates import gate_of_diff, known_before
from .log import log
from .matrix import matrix
from .references import names_path, needs_store, resolve
from .revisions import between, version_of
from .show import show

__all__ = [
    "baseline_of",
    "between",
    "diff",
    "gate_of_diff",
    "known_before",
    "log",
    "matrix",
    "names_path",
    "needs_store",
    "resolve",
    "show",
    "version_of",
]
