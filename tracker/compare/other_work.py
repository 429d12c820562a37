"""Whether two sides did other work: inputs of another size, and how fast that was for its size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tracker.advice.pieces import WorkPiece
from tracker.advice.roofline import bytes_moved, flops
from tracker.compare import match
from tracker.compare.operators import own_time
from tracker.detect import DEFAULTS
from tracker.profile.shapes import elements, shapes_of
from tracker.regressions.scaled_inputs import ScaledInputs, Work, find_scaled_inputs, has_half
from tracker.schema.column_names import CALLS, INPUT_SHAPES, INPUT_TYPES, NAME, NS
from tracker.store import queries
from tracker.store.samples.statistics import over_runs
from tracker.table import number_tables
from tracker.units import format_diff

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracker.columns import Columns
    from tracker.compare.side import LoadedSide
    from tracker.regressions.scaled_inputs import OpKey, Works

_MOST_RATES: Final = 3
"""Operators of which it is said how fast they were for their size, those with most time."""


class OtherWork(Struct, frozen=True):
    """Two sides that did other work. `inputs`: what differs; `rates`: how fast the largest operators were for it."""

    inputs: ScaledInputs
    rates: tuple[str, ...]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences for below a headline."""
        not_judged = "Not judged: the step, its parts, and these operators."
        return (f"{'; '.join(self.rates)}.", not_judged) if self.rates else (not_judged,)


def find_other_work(baseline: LoadedSide, candidate: LoadedSide) -> OtherWork | None:
    """Return how the inputs of two sides differ in size; None where they do the same work, where more than one size
    differs, or where the runs of one side have other inputs than each other.
    """
    tables = [_take_times(side) for side in (baseline, candidate)]
    rows, keys = number_tables(tables, [NAME, INPUT_SHAPES])
    there, times = [], []
    for own in rows:
        there.append(np.bincount(own.number, minlength=own.count) > 0)
        known = np.nan_to_num(own.rows.reals(NS))
        times.append(np.bincount(own.number, known, own.count).astype(np.float64))
    # most sides have the same shapes, and need no numbers per run
    for place in (0, 1):
        if not has_half(times[place], there[place] & ~there[1 - place]):
            return None
    works = []
    totals = []
    for side, own in zip((baseline, candidate), rows, strict=True):
        numbers = match.reduce_per_run(side, own, ["ns", "calls"])
        means = {name: np.nan_to_num(over_runs(table)) for name, table in numbers.items()}
        totals.append(float(means[NS].sum()))
        # batches of any length: what not all runs of a side have says nothing of its inputs
        is_of_all = np.asarray(~np.isnan(numbers[NS]).any(axis=1))
        works.append(_make_works(keys, is_of_all.tolist(), means[NS].tolist(), means[CALLS].tolist()))
    found = find_scaled_inputs(works[0], works[1], (totals[0], totals[1]))
    if found is None:
        return None
    types: dict[OpKey, str] = {}
    for table in tables:
        types.update(zip(table.rows(NAME, INPUT_SHAPES), table.listed(INPUT_TYPES), strict=True))
    return OtherWork(found, tuple(_compare_rates(found, works[0], works[1], types)))


def _take_times(side: LoadedSide) -> Columns:
    ops = side.query(queries.ops)
    return ops.having(ns=ops[own_time(side)])


def _make_works(keys: Columns, chosen: Sequence[bool], times: Sequence[float], calls: Sequence[float]) -> Works:
    works: dict[OpKey, Work] = {}
    for (name, shapes), is_chosen, ns, count in zip(keys.rows(NAME, INPUT_SHAPES), chosen, times, calls, strict=True):
        if is_chosen:
            works[name, shapes] = Work(ns, count)
    return works


def _compare_rates(inputs: ScaledInputs, before: Works, after: Works, types: Mapping[OpKey, str]) -> list[str]:
    """Return how the time per FLOP, byte or element of the operators with most time changed."""
    pairs_of_name: dict[str, list[tuple[OpKey, OpKey]]] = {}
    for (name, old), new in inputs.shapes.items():
        pairs_of_name.setdefault(name, []).append(((name, old), (name, new)))
    times = {name: sum(before[old].ns for old, _ in pairs) for name, pairs in pairs_of_name.items()}
    sentences = []
    for name in sorted(times, key=lambda name: (-times[name], name))[:_MOST_RATES]:
        pairs = pairs_of_name[name]
        if not times[name]:
            continue
        for word, measure in _MEASURES.items():
            rates = []
            for works, keys in ((before, [old for old, _ in pairs]), (after, [new for _, new in pairs])):
                costs = [measure(_make_piece(key, works[key], types.get(key, ""))) for key in keys]
                if all(costs):
                    cost = sum((one or 0.0) * (works[key].calls or 1.0) for one, key in zip(costs, keys, strict=True))
                    rates.append(sum(works[key].ns for key in keys) / cost)
            if len(rates) == 2 and rates[0]:
                change = rates[1] / rates[0] - 1.0
                words = "unchanged" if abs(change) < DEFAULTS.ratio else format_diff(change)
                sentences.append(f"{name}: time per {word} {words}")
                break
    return sentences


def _make_piece(key: OpKey, work: Work, types: str) -> WorkPiece:
    name, shapes = key
    return WorkPiece(
        at=0, rank=0, kind="op", name=name, op=name, module="", phase="", text=shapes, op_text=shapes,
        types=tuple(types.split(",")), calls=work.calls, ns=work.ns,
    )  # fmt: skip


def _count_elements(piece: WorkPiece) -> float:
    return float(sum(map(elements, shapes_of(piece.text))))


_MEASURES: Final[Mapping[str, Callable[[WorkPiece], float | None]]] = {
    "FLOP": flops,
    "byte": bytes_moved,
    "element": _count_elements,
}
"""What the work of an operator is measured in, the best first."""
