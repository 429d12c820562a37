from .diff import diff, diffs
from .gates import gate_of_diff
from .log import log
from .matrix import matrix
from .references import may_be_path, names_path, needs_store, resolve
from .revisions import label_of, notes_between, version_of
from .show import show

__all__ = [
    "diff",
    "diffs",
    "gate_of_diff",
    "label_of",
    "log",
    "matrix",
    "may_be_path",
    "names_path",
    "needs_store",
    "notes_between",
    "resolve",
    "show",
    "version_of",
]
