from .families import SAMPLE_RULES
from .ranks import BY_CALLS_COLUMNS, CALLS, VALUE
from .rows import SampleArray, arrays_of, keep_step_alone, number_series, refresh, rename_series, samples_of

__all__ = [
    "BY_CALLS_COLUMNS",
    "CALLS",
    "SAMPLE_RULES",
    "VALUE",
    "SampleArray",
    "arrays_of",
    "keep_step_alone",
    "number_series",
    "refresh",
    "rename_series",
    "samples_of",
]
