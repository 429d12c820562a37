"""Which runs of a track can be compared for which series: those that were recorded alike (see `results.recording`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.detect import Key
from tracker.results.recording import Recording, differences, remedies, rests_on
from tracker.store.judged import LineRun
from tracker.store.queries.recordings import Recorded, contents
from tracker.units import format_numbers

F64 = NDArray[np.float64]
BOOL = NDArray[np.bool_]

_SHAPED: Final = 0.1
"""Share of the operators of a run that have shapes where shapes were recorded: half to nearly all of them."""


def alike(keys: Sequence[Key], recordings: Sequence[Recording], last: int) -> BOOL | None:
    """(series, runs): whether each run was recorded like the run `last`, in all that the series rests on.

    None where all are alike.
    """
    if len(set(recordings)) < 2:
        return None
    own = recordings[last]
    pairs = list(dict.fromkeys(key[:2] for key in keys))
    same = {}
    for pair in pairs:
        on = rests_on(*pair, own.timeline)
        known = {one: one.sign(on) == own.sign(on) for one in set(recordings)}
        same[pair] = np.array([known[one] for one in recordings], dtype=bool)
    return np.array([same[key[:2]] for key in keys], dtype=bool).reshape(len(keys), len(recordings))


def recordings_of(keys: Sequence[Key], values: F64, runs: Sequence[Recorded]) -> list[Recording]:
    """The recording of each run (a column of `values`), with what its series show."""
    kinds = np.array([key[0] for key in keys], dtype=object)
    shaped = np.array([bool(key[3]) for key in keys], dtype=bool)
    there = ~np.isnan(values)
    memory, modules = (there[kinds == kind].any(axis=0) for kind in ("memory", "module"))
    ops, with_shapes = (there[own].sum(axis=0) for own in (kinds == "op", (kinds == "op") & shaped))
    return [
        run.with_rows(
            shapes=has_shapes(int(with_shapes[at]), int(ops[at])), memory=bool(memory[at]), modules=bool(modules[at])
        )
        for at, run in enumerate(runs)
    ]


def has_shapes(shaped: int, ops: int) -> bool | None:
    """Whether operators were recorded with shapes, by how many of them have any; None without operators.

    A few with shapes among many without, such as collectives that carry their sizes, are none.
    """
    return shaped >= ops * _SHAPED if ops else None


def recorded_runs(connection: Connection, runs: Sequence[LineRun]) -> dict[int, Recorded]:
    """Run -> what its captures say of how it was recorded; runs that say the same have one object."""
    said = contents(connection, [run.recording_id for run in runs if run.recording_id is not None])
    nothing = Recorded()
    return {run.run_id: nothing if run.recording_id is None else said[run.recording_id] for run in runs}


def settings_sentence(
    version: str, before: Sequence[Recording], own: Collection[Recording], run_ids: Sequence[int]
) -> str:
    """Why a version is compared with none, or only with some, of the runs before it; "" where all were recorded alike.

    `before`: how the runs `run_ids` before it were recorded; `own`: its own recordings.
    """
    other = [one for one in before if one not in own]
    differing = differences(other[-1:], own) if other else ()
    if not differing:
        return ""
    like = sorted(run for run, one in zip(run_ids, before, strict=True) if one in own)
    alike = f"only with run {format_numbers(like)}, recorded alike" if like else "with no run before it"
    what = "; ".join(one.sentence for one in differing)
    return f"{version} is compared {alike} where the settings matter: {what}. {remedies(differing)}"
