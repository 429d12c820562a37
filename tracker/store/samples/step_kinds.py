"""The samples of a run by the kinds of its steps: each kind has all series that all steps have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from tracker.schema.series import OF_WHOLE_CAPTURE
from tracker.store.bulk import clean
from tracker.store.samples.families import RankRows
from tracker.store.samples.ranks import Samples


def kinds_of_ranks(ranks: Sequence[RankRows]) -> list[str]:
    """Return the kinds of steps of the ranks of a run, in order."""
    return sorted({step.kind for rank in ranks for step in rank.steps} - {""})


def of_kind(rows: RankRows, kind: str) -> RankRows:
    """Return the rows of a rank with the steps of one kind alone."""
    return replace(rows, steps=[step for step in rows.steps if step.kind == kind])


def with_step_kind(samples: Samples, kind: str) -> Samples:
    """Return samples as those of a kind of steps, without the series of OF_WHOLE_CAPTURE: a capture has one peak of
    memory, whatever its steps do.
    """
    own = [place for place, key in enumerate(samples.keys) if key.name not in OF_WHOLE_CAPTURE]
    return Samples(
        keys=[samples.keys[place]._replace(step_kind=clean(kind)) for place in own],
        numbers=samples.numbers[own],
        share=samples.share[own],
        rank_spread=samples.rank_spread[own],
        steps=samples.steps[own],
        intermittent=samples.intermittent[own],
    )


def join_samples(parts: Sequence[Samples]) -> Samples:
    """Return the samples of all steps and of each kind as those of one run."""
    if len(parts) == 1:
        return parts[0]
    return Samples(
        keys=[key for part in parts for key in part.keys],
        numbers=np.concatenate([part.numbers for part in parts]),
        share=np.concatenate([part.share for part in parts]),
        rank_spread=np.concatenate([part.rank_spread for part in parts]),
        steps=np.concatenate([part.steps for part in parts]),
        intermittent=np.concatenate([part.intermittent for part in parts]),
    )
