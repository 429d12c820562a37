"""How the ranks of one run relate: who is slow and why, what waits for whom, which link is weak.

`own_time` has what is known of each rank and stage (who is slow, `detect.peers` judges), `work` compares what ranks
compute, `exchange` what they send each other; `job` puts it together, and `missing` says what is not known.
"""

from __future__ import annotations

from tracker.ranks.job import cluster

__all__ = ["cluster"]
