"""Exactly these runs against exactly those: the verdicts of a diff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.detectors.arrays import Columns
from tracker.detectors.centre import Centre
from tracker.judgement.bistable import ChosenSide, beside, jumping
from tracker.judgement.families import leaf_of
from tracker.judgement.judging import Compared, Values, compare, step_of
from tracker.judgement.recorded import one_per_key, recordings_of, split
from tracker.judgement.replaced import Net, Replacement, net_of
from tracker.judgement.stored import kept_verdicts, kept_version
from tracker.judgement.thresholds import Thresholds
from tracker.lazy import pd
from tracker.store import Store, thresholds
from tracker.store.chosen import ChosenRuns, Key, Known, all_keys, values_of_runs
from tracker.store.judged import Line
from tracker.store.queries.recordings import Recorded
from tracker.store.thresholds import Threshold

SERIES_KEY: Final = ("kind", "metric", "name", "input_shapes", "part")


class Verdicts(Struct, frozen=True, eq=False):
    """`places`: each series of either side, sorted, and its place in `columns`, those of
    `judging.Compared`.

    `centre`: what all operators share, which is taken out of the times. `thresholds`: the limits that it was judged by.
    `line`: the values of the runs that were judged, in its columns `baseline` and `candidate`.
    """

    places: Mapping[Key, int]
    columns: Columns
    centre: Centre
    thresholds: Thresholds
    line: Values
    baseline: range
    candidate: range

    def net(self, one: Replacement, metric: str) -> Net:
        """What a replacement makes of the step; `metric`: the time of operators that is judged."""
        family = leaf_of(self.line.families) or ("op", metric)
        return net_of(
            one, self.line, self.baseline, self.candidate, metric=metric,
            step=step_of(self.line, self.baseline, self.candidate), centre=self.centre,
            limits=self.thresholds.limits(family, [one.come[0]]),
        )  # fmt: skip

    @property
    def table(self) -> pd.DataFrame:
        """The columns with the index SERIES_KEY."""
        return pd.DataFrame(self.columns, index=pd.MultiIndex.from_tuples(list(self.places), names=SERIES_KEY))


def verdicts_of(
    store: Store,
    baseline_run_ids: Sequence[int],
    candidate_run_ids: Sequence[int],
    *,
    candidate_store: Store | None = None,
    older: Sequence[Sequence[int]] = (),
    known: Known | None = None,
) -> Verdicts:
    """The judgement of candidate runs against baseline runs, at least one each, all of one line.

    `candidate_store`: where the candidate runs are, if in another database. `older`: runs of older versions, in
    `store`, whose noise is the yardstick of one run against one (see `older_runs`). Reads only. Whether the runs may be
    judged at all (the same workload, configuration and device) is for the caller to know. The thresholds are those of
    the line of the baseline runs, or where there are none, of the candidate runs. What jumps between two levels in
    older runs of the line (see `jumping`) is INCONCLUSIVE. `known`: what was read of `store` before.
    """
    other = candidate_store or store
    read = {other: Known(), store: known or Known()}
    with store.connect() as connection:
        mine = candidate_run_ids if other is store else ()
        read[store].read(connection, [*baseline_run_ids, *mine, *chain.from_iterable(older)])
    sides = []
    recordings: list[Recorded] = []
    limits: dict[tuple[Store, Line], tuple[Threshold, ...]] = {}
    for side, run_ids in ((store, baseline_run_ids), (other, candidate_run_ids)):
        with side.connect() as connection:
            sides.append(ChosenSide(side, run_ids, values_of_runs(connection, run_ids, read[side]), read[side]))
            recordings += read[side].recorded(connection, run_ids)
            for line in read[side].lines_of(connection, run_ids):
                if (side, line) not in limits:
                    limits[side, line] = thresholds.of_line(connection, line)
    own = Thresholds(next(filter(None, limits.values()), ()))
    keys = all_keys([side.found.keys for side in sides])
    with store.connect() as connection:
        past = values_of_runs(connection, list(chain.from_iterable(older)), read[store])
        earlier = list(chain.from_iterable(older))
        recordings += read[store].recorded(connection, earlier)
    values, compared = _compared(keys, sides, past, list(map(len, older)), own, recordings)
    columns = compared.columns
    if other is store:
        columns = _as_kept(store, read[store], baseline_run_ids, candidate_run_ids, keys, columns)
    count = len(baseline_run_ids)
    of_sides = range(count), range(count, count + len(candidate_run_ids))
    centre = replace(
        compared.centre, baseline=compared.factors[list(of_sides[0])], candidate=compared.factors[list(of_sides[1])]
    )
    places = dict(zip(keys, range(len(keys)), strict=True))
    return Verdicts(places, columns, centre, own, values, *of_sides)


def _as_kept(
    store: Store,
    known: Known,
    baseline: Sequence[int],
    candidate: Sequence[int],
    keys: Sequence[Key],
    columns: Columns,
) -> Columns:
    """Of a whole version against the very runs that it was judged by, each series as it was judged: some have another
    baseline of their own.
    """
    with store.connect() as connection:
        lines = known.lines_of(connection, candidate)
        kept = kept_version(connection, lines[0], candidate) if len(lines) == 1 else None
    if kept is None or kept.baseline != set(baseline):
        return columns
    place = {key: at for at, key in enumerate(keys)}
    judged, said = kept_verdicts(store, kept)
    there = [at for at, key in enumerate(judged) if key in place]
    rows = [place[judged[at]] for at in there]
    found = {name: column.copy() for name, column in columns.items()}
    for name, values in said.items():
        found[name][rows] = values[there]
    return found


def _compared(
    keys: Sequence[Key],
    sides: Sequence[ChosenSide],
    past: ChosenRuns,
    versions: Sequence[int],
    limits: Thresholds,
    recordings: Sequence[Recorded],
) -> tuple[Values, Compared]:
    """The judgement of the second side against the first, a row per key, and the values that it rests on, the columns
    of the two sides first; what jumps between two levels is INCONCLUSIVE.

    `past`: older runs, so many of each of the older `versions`. `recordings`: how each run of all three was recorded.
    """
    baseline, candidate = sides
    values, calls = beside((baseline.found, candidate.found, past), keys)
    made = split(keys, values, calls, recordings_of(keys, values, recordings))
    count = len(baseline.run_ids)
    ends = list(accumulate(versions, initial=count + len(candidate.run_ids)))
    line = Values.of_split(made, [range(*bounds) for bounds in pairwise(ends)])
    judge = partial(
        compare,
        line,
        range(count),
        range(count, ends[0]),
        device_timed=[timeline == "device" for timeline in candidate.found.timelines],
        thresholds=limits,
    )
    compared = judge()
    changed = compared.changed
    jumps = jumping(baseline, candidate, {made.keys[row] for row in changed}, limits) if changed else {}
    if jumps:
        compared = judge(unclear={row: jumps[made.keys[row]] for row in changed if made.keys[row] in jumps})
    if not made.is_split:
        return line, compared
    chosen = one_per_key(made, range(count, ends[0]), compared.columns["verdict"].tolist())
    return line, replace(compared, columns={name: column[chosen] for name, column in compared.columns.items()})
