"""One number per run and series: what the judgement reads, made from the rows of a run as they are saved.

`families` says which series there are, `measured` what a rank says of each, `ranks` makes one number of all ranks,
`stored` finds the rows of ranks that came in earlier, `writing` writes, `arrays` has all of a run in one row, and
`words` is what their readers must know.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
