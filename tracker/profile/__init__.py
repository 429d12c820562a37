"""THE CONTRACT between readers, timeline and store: what one source of a profile says, in columns.

A reader turns files into a `Profile`: who ran (facts) and, per rank, what happened (`Events`, columns of NumPy arrays,
never one object per event). `tracker.timeline` turns the events of one rank into `Rows`: sums per distinct thing, the
grain of the database. A source that has only sums fills `Rows` itself.

Conventions: times are int64 ns on one clock per source; spans are half open, `start_ns <= end_ns`. Text is
dictionary-coded: an int32 code into `Strings`, code 0 is the empty string ("none"). A missing integer is `MISSING`
(never 0), a missing reference is -1. All arrays of one table have equal length.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
