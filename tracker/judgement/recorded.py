"""Which runs of a line are comparable for which series: values of other recordings are rows of their own.

A series that a profiler's setting disturbs (see `results.recording`) has a row for each way in which its runs were
recorded, with nothing in the others. So each window, each shared factor and each presence holds only runs of one
recording, whatever the order in which they came, and a run in the old setting is judged by the older runs of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray
from sqlalchemy import Connection

from tracker.detectors.centre import Centre
from tracker.judgement.best import LOOK_BACK
from tracker.results.recording import Recording, differences, remedies, rests_on
from tracker.store import samples
from tracker.store.chosen import Known
from tracker.store.judged import Line, LineRun
from tracker.store.queries.recordings import Recorded, contents, recorded
from tracker.units import format_numbers

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Key = tuple[str, str, str, str, str]

_SHAPED: Final = 0.1
"""Share of the operators of a run that have shapes where shapes were recorded: half to nearly all of them."""

_TAG: Final = 2**40
"""A series and one of its recordings are one number: below this the series."""


class Split(Struct, frozen=True, eq=False):
    """Rows for judging. `origin`: of each row the place of its key among those given; `tags`: which recording of it, 0
    for all runs or the first. `columns`: per kind and metric with several recordings, which each run has: all of the
    line, of which `values` may have the last ones alone.
    """

    keys: Sequence[Key]
    values: F64
    calls: F64
    origin: I64
    tags: I64
    columns: Mapping[tuple[str, str], I64]

    @property
    def is_split(self) -> bool:
        """Whether any series has rows of several recordings."""
        return bool(self.columns)

    def tag_of(self, key: Key, run: int) -> int:
        """The tag of a series in the run of this column."""
        found = self.columns.get(key[:2])
        return 0 if found is None else int(found[run])

    def numbers(self, ids: I64) -> I64:
        """A number for each row, that of its series where there is one recording. `ids`: of the keys given."""
        return np.asarray(ids[self.origin] + self.tags * _TAG)


def series_id(numbers: I64) -> I64:
    """The series of each number of `Split.numbers`."""
    return np.asarray(numbers % _TAG)


def tag_of_number(numbers: I64) -> I64:
    """Which recording of its series each number of `Split.numbers` is."""
    return np.asarray(numbers // _TAG)


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


def split(
    keys: Sequence[Key],
    values: F64,
    calls: F64,
    recordings: Sequence[Recording],
    before: Sequence[Collection[int]] = (),
) -> Split:
    """The rows of `keys`, more than one for those that the differences of the `recordings` (one per column) disturb.

    There may be recordings of runs before the first column; `before`: the tags that each key has in those.
    """
    columns = _tags(keys, recordings)
    if not columns:
        return Split(keys, values, calls, np.arange(len(keys)), np.zeros(len(keys), dtype=np.int64), {})
    first = len(recordings) - values.shape[1]
    rows: list[tuple[int, int]] = []
    for at, key in enumerate(keys):
        own = columns.get(key[:2])
        known = set() if own is None else set(own[first:][~np.isnan(values[at])].tolist())
        rows += [(at, tag) for tag in sorted(known.union(before[at] if before else ())) or [0]]
    origin, tags = (np.array(part, dtype=np.int64) for part in zip(*rows, strict=True))
    everywhere = np.zeros(values.shape[1], dtype=np.int64)
    pairs = list(dict.fromkeys(key[:2] for key in keys))
    place = {pair: at for at, pair in enumerate(pairs)}
    of_pairs = np.array([columns[pair][first:] if pair in columns else everywhere for pair in pairs])
    of_rows = np.array([place[key[:2]] for key in keys], dtype=np.int64)[origin]
    other = of_pairs[of_rows] != tags[:, None]
    masked = [np.where(other, np.nan, numbers[origin]) for numbers in (values, calls)]
    return Split([keys[at] for at in origin.tolist()], masked[0], masked[1], origin, tags, columns)


def _tags(keys: Sequence[Key], recordings: Sequence[Recording]) -> dict[tuple[str, str], I64]:
    """Per kind and metric that several of the recordings differ in, which of them each is, counted as they come."""
    distinct = list(dict.fromkeys(recordings))
    columns: dict[tuple[str, str], I64] = {}
    if len(distinct) < 2:
        return columns
    number = {one: at for at, one in enumerate(distinct)}
    numbers = np.array([number[one] for one in recordings], dtype=np.int64)
    for pair in dict.fromkeys(key[:2] for key in keys):
        place: dict[tuple[str, ...], int] = {}
        signs = [one.sign(rests_on(*pair, one.timeline)) for one in distinct]
        tags = np.array([place.setdefault(sign, len(place)) for sign in signs], dtype=np.int64)
        if len(place) > 1:
            columns[pair] = tags[numbers]
    return columns


def split_runs(connection: Connection, keys: Sequence[Key], values: F64, calls: F64, run_ids: Sequence[int]) -> Split:
    """`split` for runs of one database."""
    found = recorded(connection, run_ids)
    return split(keys, values, calls, recordings_of(keys, values, [found[run_id] for run_id in run_ids]))


def one_per_key(made: Split, candidate: Iterable[int], verdicts: Sequence[object]) -> I64:
    """Of each key given the row that speaks for it: one with a verdict before others, then that of most of the
    `candidate` columns.
    """
    runs = (~np.isnan(made.values[:, list(candidate)])).sum(axis=1)
    said = np.array([verdict is not None for verdict in verdicts], dtype=bool)
    order = np.lexsort([-made.tags, runs, said])  # the last one stays
    found = np.zeros(int(made.origin.max(initial=-1)) + 1, dtype=np.int64)
    found[made.origin[order]] = order
    return found


def recorded_runs(connection: Connection, runs: Sequence[LineRun]) -> dict[int, Recorded]:
    """Run -> what its captures say of how it was recorded; runs that say the same have one object."""
    said = contents(connection, [run.recording_id for run in runs if run.recording_id is not None])
    nothing = Recorded()
    return {run.run_id: nothing if run.recording_id is None else said[run.recording_id] for run in runs}


def factors_for(centre: Centre, known: Sequence[Sequence[int]], sides: Sequence[Sequence[int]]) -> Centre:
    """What is shared by the runs of `sides`, from that of the runs `known`; those that are not among them share 0."""
    if list(map(list, known)) == list(map(list, sides)):
        return centre
    factors = [
        dict(zip(own, of_side.tolist(), strict=True))
        for own, of_side in zip(known, (centre.baseline, centre.candidate), strict=True)
    ]
    one, other = (
        np.array([of_side.get(run, 0.0) for run in side], dtype=np.float64)
        for of_side, side in zip(factors, sides, strict=True)
    )
    return replace(centre, baseline=one, candidate=other)


def sentence_of_line(connection: Connection, line: Line, runs: Sequence[LineRun], known: Known) -> str:
    """Why the newest version of a line is compared with none, or only with some, of the runs before it; "" where all
    were recorded alike. `runs`: all of the line. What their captures say counts, and what their series show,
    where those of the newest run are not those of the run before its version. `known`: what was read before.
    """
    if not runs or runs[0].version_id == runs[-1].version_id:
        return ""
    newest = [run for run in runs if run.version_id == runs[-1].version_id]
    before = [run for run in runs if run.version_id != runs[-1].version_id][-LOOK_BACK:]
    asked = [run.run_id for run in (*before, *newest)]
    stated = known.recorded(connection, asked)
    if all(one == stated[0] for one in stated) and _same_series(connection, before[-1].run_id, newest[-1].run_id):
        return ""  # the texts of all series take longer to read than the rest of a history
    series = known.series_of(connection, line)
    values, _ = known.values_of(connection, asked, series)
    found = recordings_of(series.keys, values, stated)
    sides = found[: len(before)], found[len(before) :]
    like = [run for run, one in zip(before, sides[0], strict=True) if one in sides[1]]
    other = [one for one in sides[0] if one not in sides[1]]
    if not other:
        return ""
    differing = differences(other[-1:], sides[1])
    if not differing:
        return ""
    alike = f"only with run {format_numbers(sorted(run.run_id for run in like))}, recorded alike" if like else (
        "with no run before it"
    )  # fmt: skip
    what = "; ".join(one.sentence for one in differing)
    return f"{runs[-1].version} is compared {alike} where the settings matter: {what}. {remedies(differing)}"


def _same_series(connection: Connection, *run_ids: int) -> bool:
    """Whether these runs have exactly the same series, which then show nothing of how they were recorded."""
    one, *others = (array.series_ids for array in samples.arrays_of(connection, run_ids).values())
    return all(np.array_equal(one, other) for other in others)
