"""One number per run and series: what the judgement reads, made from the rows of a run as they are saved.

`families` says which series there are, `ranks` what a rank says of each and the one number of all ranks, `statistics`
how a number is made of several, and `rows` writes and reads: a row per series, and all of a run as one array.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
