from .baselines import baseline_of
from .diff import diff
from .gates import gate_of_diff, known_before
from .log import log
from .matrix import matrix
from .references import needs_store, resolve
from .show import show

__all__ = ["baseline_of", "diff", "gate_of_diff", "known_before", "log", "matrix", "needs_store", "resolve", "show"]
