"""Which runs of a track can be compared for which series: those that were recorded alike (see `results.recording`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.detect import Key
from tracker.results.recording import Recording, differences, remedies, rests_on
from tracker.store import judged, samples
from tracker.store.judged import Line, LineRun
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


def settings_note(connection: Connection, line: Line, runs: Sequence[LineRun], look_back: int) -> str:
    """Why the newest version of a track is compared with none, or only with some, of the newest `look_back` runs before
    it; "" where all were recorded alike. `runs`: all of the track, in their order.

    What captures say counts, and what series show, where these are not the same as before.
    """
    newest = [run for run in runs if run.version_id == runs[-1].version_id]
    before = [run for run in runs if run.version_id != runs[-1].version_id][-look_back:]
    if not before:
        return ""
    known = recorded_runs(connection, [*before, *newest])
    stated = [known[run.run_id] for run in (*before, *newest)]
    ids = [array.series_ids for array in samples.arrays_of(connection, (before[-1].run_id, newest[-1].run_id)).values()]
    if all(one == stated[0] for one in stated) and np.array_equal(ids[0], ids[-1]):
        return ""  # the texts of all series take longer to read than the rest
    series = judged.series_of(connection, line)
    values, _ = judged.values_of(connection, [run.run_id for run in (*before, *newest)], series)
    found = recordings_of(series.keys, values, stated)
    earlier, own = found[: len(before)], found[len(before) :]
    differing = differences([one for one in earlier if one not in own][-1:], own)
    if not differing:
        return ""
    like = sorted(run.run_id for run, one in zip(before, earlier, strict=True) if one in own)
    alike = f"only with run {format_numbers(like)}, recorded alike" if like else "with no run before it"
    what = "; ".join(one.sentence for one in differing)
    return f"{newest[0].version} is compared {alike} where the settings matter: {what}. {remedies(differing)}"
