from .accepted import Acceptance, acceptance_of, known_at, size_of, words_of
from .calibrating import calibrate
from .recorded import has_shapes
from .setting import Where, apply_calibration, overruled, set_thresholds, unset_thresholds
from .stored import KeptVersion, kept_version
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
    "acceptance_of",
    "apply_calibration",
    "calibrate",
    "has_shapes",
    "kept_version",
    "known_at",
    "lines_of",
    "older_runs",
    "overruled",
    "set_thresholds",
    "size_of",
    "unset_thresholds",
    "update",
    "verdicts_of",
    "words_of",
]
