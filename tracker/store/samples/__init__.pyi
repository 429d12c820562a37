from .arrays import SampleArray, arrays_of
from .measured import CALLS, VALUE
from .words import SAMPLE_RULES, SUMMARY, UNPROFILED
from .writing import refresh, samples_of

__all__ = [
    "CALLS",
    "SAMPLE_RULES",
    "SUMMARY",
    "UNPROFILED",
    "VALUE",
    "SampleArray",
    "arrays_of",
    "refresh",
    "samples_of",
]
