from .accepted import Acceptance, acceptance_of, known_at, size_of, words_of
from .act import Wish, act, numbers_of, settle
from .calibrating import calibrate
from .explain import explain, findings_of
from .gates import gate_of_findings
from .recorded import has_shapes
from .setting import Where, apply_calibration, overruled, set_thresholds, unset_thresholds
from .show import history
from .stored import KeptVersion, kept_version
from .tell import findings
from .thresholds import Thresholds
from .update import lines_of, update
from .verdicts import Verdicts, verdicts_of
from .yardstick import older_runs

__all__ = [
    "Acceptance",
    "KeptVersion",
    "Thresholds",
    "Verdicts",
    "Where",
    "Wish",
    "acceptance_of",
    "act",
    "apply_calibration",
    "calibrate",
    "explain",
    "findings",
    "findings_of",
    "gate_of_findings",
    "has_shapes",
    "history",
    "kept_version",
    "known_at",
    "lines_of",
    "numbers_of",
    "older_runs",
    "overruled",
    "set_thresholds",
    "settle",
    "size_of",
    "unset_thresholds",
    "update",
    "verdicts_of",
    "words_of",
]
