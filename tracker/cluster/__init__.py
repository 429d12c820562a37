"""How the ranks of one run relate: who is slow and why, what waits for whom, which link is weak.

`ranks` has the own time of each rank and judges it (`judging`), `work` compares what ranks compute, `exchange` what
they send each other; `cluster` puts it together, and `missing` says what the captures cannot tell.
"""

from __future__ import annotations

from lazy_loader import attach

__getattr__, __dir__, __all__ = attach(__name__, submod_attrs={"cluster": ["cluster"]})
