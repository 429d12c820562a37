from .families import SAMPLE_RULES
from .ranks import CALLS, P10, VALUE
from .rows import SampleArray, arrays_of, number_series, refresh, samples_of

__all__ = [
    "CALLS",
    "P10",
    "SAMPLE_RULES",
    "VALUE",
    "SampleArray",
    "arrays_of",
    "number_series",
    "refresh",
    "samples_of",
]
