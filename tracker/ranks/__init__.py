"""How the ranks of one run relate: who is slow and why, what waits for whom, which link is weak.

`own_time` has that of each rank and judges it (`judging`), `work` compares what ranks compute, `exchange` what
they send each other; `job` puts it together, and `missing` says what the captures cannot tell.
"""

from __future__ import annotations

from tracker.ranks.job import cluster

__all__ = ["cluster"]
