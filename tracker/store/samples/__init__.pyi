from .arrays import SampleArray, arrays_of
from .measured import CALLS, P10, VALUE
from .words import SAMPLE_RULES, SUMMARY, UNPROFILED
from .writing import number_series, refresh, samples_of

__all__ = [
    "CALLS",
    "P10",
    "SAMPLE_RULES",
    "SUMMARY",
    "UNPROFILED",
    "VALUE",
    "SampleArray",
    "arrays_of",
    "number_series",
    "refresh",
    "samples_of",
]
