"""Which runs of a line were as they should be, as far as the runs tell it themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.judgement.families import RUN
from tracker.judgement.follow.following import Follower
from tracker.judgement.follow.watched import Watched


def normal_runs(watched: Watched, rows: Sequence[int]) -> NDArray[np.bool_]:
    """(rows, runs): no finding of the level or of the calls of these series was open in the run. Of nothing that users
    did; a suspicion that the last runs leave open counts as one.
    """
    families = {watched.families[row] for row in rows}
    of_runs = any(family[0] == RUN for family in families)
    # what other families say changes nothing for these, but for the leaves, which explain the step
    wanted = families | ({watched.leaf} if of_runs else set())
    kinds = {family: own for family, own in watched.kinds.items() if family in wanted}
    follower = Follower(replace(watched, kinds=kinds, ways=watched.ways if of_runs else {}), ())
    for run in range(len(watched.runs)):
        follower.observe(run)
    return follower.baselines.normal[list(rows)]
