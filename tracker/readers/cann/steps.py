"""Iterations of a graph as steps: from the timeline (step_trace in it or beside it), else from step_trace.csv.

What they are made of (FP_BP Time, Iteration Refresh, Reduce, Data_aug Bound) becomes counters. Data_aug Bound is the
start of the forward pass less the end of the iteration before: a gap, whatever filled it, so that it is counted
neither as data loading nor as preparation.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
from msgspec import Struct

from tracker.profile import I64, MISSING, Markers
from tracker.readers._ascend.counters import CounterRows
from tracker.readers._ascend.csv_tables import CsvTable
from tracker.readers._ascend.spellings import plain
from tracker.readers.cann.trace import GAP_CATEGORY, STEP_CATEGORY, MsprofTrace
from tracker.units import NS_PER_US

SOURCE: Final = "step_trace"
REDUCTION: Final = "Reduce"
# columns of the table -> the words of the timeline
_CATEGORIES: Final = {
    plain("FP to BP Time(us)"): "FP_BP Time",
    plain("Iteration Refresh(us)"): "Iteration Refresh",
    plain("Data Aug Bound(us)"): GAP_CATEGORY,
    plain("Reduce Duration(us)"): REDUCTION,
}


class Steps(Struct, frozen=True):
    """The iterations of one device. `warnings`: about iterations that are no steps."""

    markers: Markers
    warnings: tuple[str, ...] = ()


def steps_of_trace(trace: MsprofTrace, counters: CounterRows) -> Steps:
    """The iterations that the timeline shows; their parts go to `counters`."""
    # the step trace stands in a file of its own and in the timeline: one model has a lane in each
    spans = {
        (trace.model_of(lane), iteration, category, name): span
        for (lane, iteration, category, name), span in sorted(trace.spans.items())
    }
    models = Counter(model for model, _, category, _ in spans if category == STEP_CATEGORY)
    if not models:
        return Steps(_markers({}))
    chosen = _chosen(models)
    iterations = {}
    for (model, iteration, category, name), (start, end) in spans.items():
        if model == chosen and category == STEP_CATEGORY:
            iterations[iteration] = (start, end)
        elif model == chosen:
            # Reduce_3_0 is the first reduction of iteration 3
            which = name.rpartition("_")[2] if category == REDUCTION else ""
            counters.add(SOURCE, [which], f"{category}(us)", [(end - start) / NS_PER_US], [iteration])
    gaps = {(trace.model_of(lane), iteration): value for (lane, iteration), value in sorted(trace.gaps_us.items())}
    for (model, iteration), value in gaps.items():
        # the first iteration has none before it: the file writes 0 where the table of the same name has N/A
        if model == chosen and (iteration != min(iterations) or value):
            counters.add(SOURCE, [""], f"{GAP_CATEGORY}(us)", [value], [iteration])
    return Steps(_markers(iterations), _other_models(models, chosen))


def steps_of_table(table: CsvTable, counters: CounterRows) -> Steps:
    """The iterations of step_trace.csv; its measurements go to `counters`."""
    table.need("iteration", "iteration_end", "iteration_time")
    iteration, models = table.ints("iteration", -1), table.ints("model", -1)
    end, duration = table.ns("iteration_end"), table.ns("iteration_time")
    known = Counter(models[iteration >= 0].tolist())
    if not known:
        return Steps(_markers({}))
    model = _chosen(known)
    rows = np.flatnonzero((models == model) & (iteration >= 0) & (end != MISSING) & (duration >= 0))
    reductions = 0
    for position, title in enumerate(table.header):
        category = _CATEGORIES.get(plain(title))
        if category is None:
            continue
        which = str(reductions) if category == REDUCTION else ""
        reductions += category == REDUCTION
        counters.add(SOURCE, [which] * len(rows), f"{category}(us)", table.floats(position)[rows], iteration[rows])
    spans = {int(iteration[row]): (int(end[row] - duration[row]), int(end[row])) for row in rows.tolist()}
    return Steps(_markers(spans), _other_models(known, model))


def _chosen(models: Counter[int]) -> int:
    """The model with the most iterations; of equals the first. Each counts its iterations from 1."""
    return min(models, key=lambda model: (-models[model], model))


def _other_models(models: Counter[int], chosen: int) -> tuple[str, ...]:
    others = sum(count for model, count in models.items() if model != chosen)
    if not others:
        return ()
    return (f"steps are the iterations of model {chosen}; {others} iterations of other models are none",)


def _markers(spans: dict[int, tuple[int, int]]) -> Markers:
    ordered = sorted(spans.items(), key=lambda item: item[1])

    def column(values: list[int]) -> I64:
        return np.array(values, dtype=np.int64)

    return Markers(
        start_ns=column([start for _, (start, _) in ordered]),
        end_ns=column([end for _, (_, end) in ordered]),
        step=column([iteration for iteration, _ in ordered]),
        process=np.zeros(len(ordered), dtype=np.int32),
    )
