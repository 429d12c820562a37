"""Numbers -> verdicts and change points. Pure functions on NumPy arrays: no database, no files, no profiler.

`judge` and `change_points` are what scores a detector from outside; their signatures stay. The rest, by the question it
answers: `judging` (a family of series), `totals` (step time and other run-level series), `presence` (added, removed,
more calls), `creep`, `vote` (change points), `baseline` (against how many runs), `within` (two levels), `contribution`
(how severe), `calibrate` (repeats of one version) and `life` (a finding over time). `rule` has words and limits.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
