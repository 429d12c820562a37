"""Which runs of a line were as they should be, as far as the runs tell it themselves, and what jumps between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tracker.detectors.within import MODES_OF
from tracker.judgement.families import RUN
from tracker.judgement.follow.following import Follower
from tracker.judgement.follow.jumps import columns_of, in_order, reason_of_jump
from tracker.judgement.follow.watched import Watched, WatchedRun, versions_of, watched_of
from tracker.judgement.judging import Values
from tracker.judgement.thresholds import Thresholds


def normal_runs(watched: Watched, rows: Sequence[int]) -> NDArray[np.bool_]:
    """(rows, runs): no finding of the level or of the calls of these series was open in the run. Of nothing that users
    did; a suspicion that the last runs leave open counts as one.
    """
    families = {watched.families[row] for row in rows}
    of_runs = any(family[0] == RUN for family in families)
    # what other families say changes nothing for these, but for the leaves, which explain the step
    wanted = families | (set(watched.leaves) if of_runs else set())
    kinds = {family: own for family, own in watched.kinds.items() if family in wanted}
    follower = Follower(replace(watched, kinds=kinds, ways=watched.ways if of_runs else {}), ())
    for of_version in versions_of(watched.runs):
        follower.observe(of_version)
    return follower.baselines.normal[list(rows)]


def jumping_rows(
    line: Values,
    rows: Iterable[int],
    past: Sequence[WatchedRun],
    newer: Sequence[int],
    other: Sequence[int],
    *,
    device_timed: bool,
    thresholds: Thresholds,
) -> dict[int, str]:
    """As `bistable.jumping` for `rows` of a line whose runs are at hand, by those runs alone: nothing that users did
    counts.

    `past`: what the first columns of `line` are, the runs before the columns `newer`; of the last 20 of them those
    count in which the series was as it should be. `other`: the columns that `newer` is compared with.
    """
    first = max(0, len(past) - MODES_OF)
    columns = [*range(first, len(past)), *newer, *other]
    watched = in_order(line, columns, thresholds)
    ends = len(past) - first, len(past) - first + len(newer)
    sides = range(*ends), range(ends[1], len(columns))
    suspects = [row for row in rows if reason_of_jump(watched, row, range(ends[0]), *sides, device_timed=device_timed)]
    if not suspects:
        return {}  # to follow the runs takes its time, and few series jump
    normal = normal_runs(watched_of(columns_of(line, range(len(past))), past, thresholds), suspects)
    accepted = [np.flatnonzero(own).tolist() for own in normal[:, first:]]
    reasons = {
        row: reason_of_jump(watched, row, own, *sides, device_timed=device_timed)
        for row, own in zip(suspects, accepted, strict=True)
    }
    return {row: reason for row, reason in reasons.items() if reason}
