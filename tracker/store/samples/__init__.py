"""One number per run and series: what the judgement reads, made from the rows of a run as they are saved.

`families` says which series there are, `measured` what a rank says of each, `ranks` makes one number of all ranks,
`stored` finds the rows of ranks that came in earlier, `refresh` writes, and `arrays` has all of a run in one row.
"""

from __future__ import annotations

from tracker.store.samples.arrays import SampleArray, arrays_of
from tracker.store.samples.families import SUMMARY, UNPROFILED
from tracker.store.samples.measured import CALLS, VALUE
from tracker.store.samples.refresh import SAMPLE_RULES, refresh, samples_of

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
