from .calls import list_calls
from .commits import notes_on_commits
from .diff import diff, diffs
from .gates import gate_of_diff
from .log import log
from .matrix import matrix
from .references import label_of, may_be_path, names_path, needs_store, resolve, version_of
from .show import choose_advice, show

__all__ = [
    "choose_advice",
    "diff",
    "diffs",
    "gate_of_diff",
    "label_of",
    "list_calls",
    "log",
    "matrix",
    "may_be_path",
    "names_path",
    "needs_store",
    "notes_on_commits",
    "resolve",
    "show",
    "version_of",
]
