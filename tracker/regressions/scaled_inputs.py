"""Inputs of another size: two sides that do other work, which is not the same work done slower or faster.

One size in the shapes of the operators that take half of the time is another one on the other side, in all of them: a
longer sequence, a larger batch. Everything else about these operators is equal: their names, how often they are called,
and their other sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from tracker.columns import F64, I64, Flags
from tracker.profile.shapes import Shape, shapes_of
from tracker.regressions.replacements import MOVED
from tracker.schema.series import SeriesKey
from tracker.store.samples.statistics import over_runs
from tracker.units import counted

LEAST_FACTOR: Final = 1.05
"""Inputs that grew or shrank by less are the same work: batches differ."""
_HALF: Final = 0.5
"""Part of the time of all operators that those with scaled inputs take at least, on both sides."""
_EXACT: Final = 0.001
"""By how much the factor of a size may differ: a sequence without its last element grows from 2047 to 3071."""
_MOST_VOTERS: Final = 10
"""Operators that are looked at for the factor, those with most time."""
_MOST_SHAPES: Final = 50
"""Shapes of an operator that are looked at for it."""
_MOST_FACTORS: Final = 5

OpKey = tuple[str, str]
"""Name and shapes of an operator."""


class Work(NamedTuple):
    """What an operator with some shapes takes: ns and calls, both per step."""

    ns: float
    calls: float


Works = Mapping[OpKey, Work]


class ScaledInputs(Struct, frozen=True):
    """Inputs that have another size on each side.

    `before`, `after`: the size that most operators have. `names`: those that have it, most time first. `elements`: how
    many times as many elements the tensors with such sizes have after. `shapes`: operator and shapes of the baseline
    -> its shapes in the candidate, of all operators with scaled inputs.
    """

    before: int
    after: int
    names: tuple[str, ...]
    elements: float
    shapes: Mapping[OpKey, str]

    def list_scaled(self) -> tuple[frozenset[str], frozenset[OpKey]]:
        """Return the operators of which some shapes are scaled, and these with their shapes on either side."""
        keys = {*self.shapes, *((name, new) for (name, _), new in self.shapes.items())}
        return frozenset(name for name, _ in keys), frozenset(keys)

    @property
    def words(self) -> str:
        """What differs, in a phrase.

        >>> ScaledInputs(2048, 3072, ("aten::mm", "aten::gelu"), 1.5, {}).words
        '2048 -> 3072 in 2 operators, 1.5 x the elements'
        """
        where = counted(len(self.names), "operator")
        return f"{self.before} -> {self.after} in {where}, {self.elements:.3g} x the elements"


def find_scaled_inputs(before: Works, after: Works, totals: tuple[float, float]) -> ScaledInputs | None:
    """Return how the inputs of two sides differ in one size; None where they do not, or differ in more.

    `before`, `after`: operators that all runs of a side have; `totals`: the time of all operators of each side, ns.
    """
    gone, come = _group_by_name(before, after), _group_by_name(after, before)
    best: dict[OpKey, str] = {}
    best_time = 0.0
    for factor in _propose_factors(gone, come):
        pairs = _pair_shapes(gone, come, factor)
        time = sum(before[key].ns for key in pairs)
        if time > best_time:
            best, best_time = pairs, time
    after_time = sum(after[name, shapes].ns for (name, _), shapes in best.items())
    if not best_time or best_time < _HALF * totals[0] or after_time < _HALF * totals[1]:
        return None
    return _describe(best, before)


def _group_by_name(works: Works, others: Works) -> dict[str, dict[str, Work]]:
    """Return operator -> its shapes that the other side does not have, those with most time first."""
    groups: dict[str, dict[str, Work]] = {}
    for (name, shapes), work in sorted(works.items(), key=lambda item: (-item[1].ns, item[0])):
        if (name, shapes) not in others:
            groups.setdefault(name, {})[shapes] = work
    return groups


def _propose_factors(gone: Mapping[str, Mapping[str, Work]], come: Mapping[str, Mapping[str, Work]]) -> Iterator[float]:
    """Yield by which factors sizes of the operators with most time may have been scaled."""
    shared = sorted(gone.keys() & come.keys(), key=lambda name: -sum(work.ns for work in gone[name].values()))
    seen: list[float] = []
    for name in shared[:_MOST_VOTERS]:
        for old in list(gone[name])[:_MOST_SHAPES]:
            for new in list(come[name])[:_MOST_SHAPES]:
                factor = _find_factor(old, new)
                is_large = factor is not None and max(factor, 1.0 / factor) >= LEAST_FACTOR
                if factor is not None and is_large and not any(_is_factor(factor, 1.0, one) for one in seen):
                    seen.append(factor)
                    yield factor
                    if len(seen) == _MOST_FACTORS:
                        return


def _find_factor(old: str, new: str) -> float | None:
    """Return the factor by which all sizes differ that differ at all; None where there is no such factor."""
    pairs = [pair for pair in _list_sizes(old, new) if pair[0] != pair[1]]
    if not pairs or any(not before or not after for before, after in pairs):
        return None
    # large sizes say it best: 2047 -> 3071 beside 2048 -> 3072
    before, after = max(pairs)
    factor = after / before
    return factor if all(_is_factor(after, before, factor) for before, after in pairs) else None


def _is_factor(after: float, before: float, factor: float) -> bool:
    return abs(after / (before * factor) - 1.0) <= _EXACT


def _list_sizes(old: str, new: str) -> list[tuple[int, int]]:
    """Return the sizes at each place of two shapes; () where they have other tensors or other dimensions."""
    old_shapes, new_shapes = shapes_of(old), shapes_of(new)
    if [len(shape) for shape in old_shapes] != [len(shape) for shape in new_shapes]:
        return []
    pairs: list[tuple[int, int]] = []
    for one, other in zip(old_shapes, new_shapes, strict=True):
        pairs += zip(one, other, strict=True)
    return pairs


def _pair_shapes(
    gone: Mapping[str, Mapping[str, Work]], come: Mapping[str, Mapping[str, Work]], factor: float
) -> dict[OpKey, str]:
    """Return the shapes of the baseline with those of the candidate that are theirs but for the factor, of operators of
    which each shape has such a one, called as often.
    """
    pairs: dict[OpKey, str] = {}
    for name in gone.keys() & come.keys():
        if len(gone[name]) != len(come[name]):
            continue
        own = _pair_shapes_of_one(gone[name], come[name], factor)
        if len(own) == len(gone[name]):
            pairs |= {(name, old): new for old, new in own.items()}
    return pairs


def _pair_shapes_of_one(gone: Mapping[str, Work], come: Mapping[str, Work], factor: float) -> dict[str, str]:
    left = dict(come)
    pairs: dict[str, str] = {}
    for old, work in gone.items():
        for new, other in left.items():
            if _are_as_often(work.calls, other.calls) and _is_scaled(old, new, factor):
                pairs[old] = new
                del left[new]
                break
    return pairs


def _are_as_often(before: float, after: float) -> bool:
    return abs(after - before) <= MOVED * max(before, after)


def _is_scaled(old: str, new: str, factor: float) -> bool:
    differing = [pair for pair in _list_sizes(old, new) if pair[0] != pair[1]]
    return bool(differing) and all(before > 0 and _is_factor(after, before, factor) for before, after in differing)


def _describe(pairs: Mapping[OpKey, str], works: Works) -> ScaledInputs:
    names_of_size: dict[tuple[int, int], dict[str, float]] = {}
    elements = [0.0, 0.0]
    for (name, old), new in pairs.items():
        work = works[name, old]
        for one, other in zip(shapes_of(old), shapes_of(new), strict=True):
            if one == other:
                continue
            for place, shape in enumerate((one, other)):
                elements[place] += prod(shape) * work.calls
            for size in _list_differing(one, other):
                times = names_of_size.setdefault(size, {})
                times[name] = times.get(name, 0.0) + work.ns

    def order_sizes(size: tuple[int, int]) -> tuple[int, float, tuple[int, int]]:
        times = names_of_size[size]
        return -len(times), -sum(times.values()), size

    size = min(names_of_size, key=order_sizes)
    names = sorted(names_of_size[size], key=lambda name: (-names_of_size[size][name], name))
    # a source that counts no calls: each shape counts once
    factor = elements[1] / elements[0] if elements[0] else size[1] / size[0]
    return ScaledInputs(*size, tuple(names), factor, dict(pairs))


def _list_differing(one: Shape, other: Shape) -> Iterable[tuple[int, int]]:
    return dict.fromkeys(pair for pair in zip(one, other, strict=True) if pair[0] != pair[1])


def has_half(times: F64, is_other: Flags) -> bool:
    """Return whether the operators that only one side has take half of its time."""
    total = float(times.sum())
    return bool(total) and float(times[is_other].sum()) >= _HALF * total


class OtherRuns(Struct, frozen=True, eq=False):
    """Runs of a track that did other work than those of a version. `cells` (series, runs): which of their numbers say
    nothing of it. `inputs`: by the number of their version, how their inputs differ, the newest last.
    """

    cells: Flags
    inputs: Mapping[int, ScaledInputs]


def find_other_runs(
    keys: Sequence[SeriesKey], values: F64, calls: F64, versions: I64, like: int = -1
) -> OtherRuns | None:
    """Return which runs did other work than the version of the run at `like`; None where none did.

    `values`, `calls` (series, runs): of each run, nan for what it does not have; `versions` (runs,): of what it is a
    repeat. The step, its parts, and all that says nothing of the inputs it works on, are not compared with such runs;
    operators with the same inputs are. Each kind of steps has inputs of its own.
    """
    if not len(versions):
        return None
    cells = np.zeros(values.shape, dtype=bool)
    inputs: dict[int, ScaledInputs] = {}
    rows_of_kind: dict[str, list[int]] = {}
    for row, key in enumerate(keys):
        rows_of_kind.setdefault(key.step_kind, []).append(row)
    for kind in sorted(rows_of_kind):
        rows = rows_of_kind[kind]
        own_keys = [keys[row] for row in rows]
        found = _find_of_kind(own_keys, values[rows], calls[rows], versions, like)
        for version, scaled in found.items():
            # all steps together come first
            inputs.setdefault(version, scaled)
            cells[rows] |= find_concerned(scaled, own_keys)[:, None] & (versions == version)
            # of operators with the inputs of these runs the new ones say nothing
            is_old = [key.kind == "op" and (key.name, key.input_shapes) in scaled.shapes for key in own_keys]
            cells[rows] |= np.array(is_old, dtype=bool)[:, None] & (versions == versions[like])
    return OtherRuns(cells, inputs) if inputs else None


def _find_of_kind(
    keys: Sequence[SeriesKey], values: F64, calls: F64, versions: I64, like: int
) -> dict[int, ScaledInputs]:
    """Return version -> how its inputs differ from those of the version of the run at `like`, in series of one kind of
    steps.
    """
    rows = [row for row, key in enumerate(keys) if key.kind == "op"]
    if not rows:
        return {}
    there = ~np.isnan(values[rows])
    is_new = versions == versions[like]
    is_shaped = np.array([bool(keys[row].input_shapes) for row in rows], dtype=bool)
    in_new = there[:, is_new].any(axis=1)
    inputs: dict[int, ScaledInputs] = {}
    for version in dict.fromkeys(versions[~is_new].tolist()):
        is_own = versions == version
        in_own = there[:, is_own].any(axis=1)
        is_other = in_own != in_new
        if not (is_other & is_shaped).any():
            # most versions have the inputs of the one before
            continue
        sides = [_take_side(values[rows][:, own], calls[rows][:, own]) for own in (is_own, is_new)]
        found = _find_between(sides, is_other, [keys[row] for row in rows])
        if found is not None:
            inputs[version] = found
    return inputs


class _SideOfRuns(NamedTuple):
    """The operators of some runs: their time and calls, and which of them all of the runs have."""

    ns: F64
    calls: F64
    is_of_all: Flags


def _take_side(values: F64, calls: F64) -> _SideOfRuns:
    ns = np.nan_to_num(over_runs(values))
    is_of_all = np.asarray(~np.isnan(values).any(axis=1))
    return _SideOfRuns(ns, np.nan_to_num(over_runs(calls)), is_of_all)


def _find_between(sides: Sequence[_SideOfRuns], is_other: Flags, keys: Sequence[SeriesKey]) -> ScaledInputs | None:
    """Return how the inputs of two groups of runs differ; most differ in nothing, or in little."""
    if not all(has_half(side.ns, is_other) for side in sides):
        return None
    totals = [float(side.ns.sum()) for side in sides]
    works: list[dict[OpKey, Work]] = []
    for side in sides:
        own: dict[OpKey, Work] = {}
        for at in np.flatnonzero(side.is_of_all).tolist():
            own[keys[at].name, keys[at].input_shapes] = Work(float(side.ns[at]), float(side.calls[at]))
        works.append(own)
    return find_scaled_inputs(works[0], works[1], (totals[0], totals[1]))


def find_concerned(scaled: ScaledInputs, keys: Sequence[SeriesKey]) -> Flags:
    """Return which series say something of work that is other work; operators with the same inputs do not."""
    names, shaped = scaled.list_scaled()
    found = []
    for key in keys:
        if key.kind == "op":
            found.append((key.name, key.input_shapes) in shaped)
        else:
            found.append(key.kind != "op_name" or key.name in names)
    return np.array(found, dtype=bool)
