"""Runs made by hand for the rules: a step of 100 ms on an H100, the rest as a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from tests.factories import breakdown, capture, record
from tracker.advice.judging import RunAdvice, of_run, with_remedies
from tracker.profile import MISSING, Device
from tracker.results import Advice
from tracker.store import Store, save_run

MS = 1_000_000
CPU = Device("", "cpu")
V100 = Device("NVIDIA", "Tesla V100-SXM2-32GB")
MI300X = Device("AMD", "AMD Instinct MI300X")
NPU = Device("Huawei", "Ascend910B")


def op(
    name: str, *shapes: Sequence[int], types: str = "c10::BFloat16", module: str = "", phase: str = ""
) -> dict[str, str]:
    """The key of an operator whose inputs are all of one type."""
    text = str([list(shape) for shape in shapes]).replace(" ", "")
    return {"name": name, "input_shapes": text, "input_types": ",".join([types] * len(shapes)), "module": module,
            "phase": phase}  # fmt: skip


def kernel(
    of: Mapping[str, str] | str, ms: float, *, name: str = "kernel", **more: Any
) -> tuple[str, int, dict[str, Any]]:
    """A kernel that an operator launched, and how long it takes in a step."""
    return (name, int(ms * MS), {"op": of, "category": "vector", **more})


def save(
    store: Store,
    version: str = "v1",
    *,
    times: Mapping[str, Any] | None = None,
    of_step: Sequence[Mapping[str, Any]] = (),
    of_run: Mapping[str, Any] | None = None,
    formats: Sequence[str] = ("torch_profiler",),
    ranks: int = 1,
    times_of: Mapping[int, Mapping[str, Any]] | None = None,
    communication_of: Mapping[int, Sequence[Any]] | None = None,
    idle_of: Mapping[int, Sequence[Any]] | None = None,
    times_of_steps: Mapping[int, Sequence[Mapping[str, Any]]] | None = None,
    factors: Mapping[str, Sequence[int]] | None = None,
    factors_of: Mapping[int, Mapping[str, Sequence[int]]] | None = None,
    waits: Sequence[tuple[int, int]] = (),
    order: Sequence[int] = (),
    **of_capture: Any,
) -> int:
    """Save a run whose steps take 100 ms and hold `times` (ms by column of a breakdown); `of_step`: of each step;
    `times_of`, `times_of_steps`, `communication_of`, `idle_of`: of single ranks. `factors`, `factors_of` a rank: of a
    table, how many times as long each step is. `waits`: place in the group of a rank that the first call waits for, and
    ns. `order`: in which the ranks come.
    """
    captures = []
    for rank in range(ranks):
        own = {"communication": communication_of[rank]} if communication_of else {}
        own |= {"idle": idle_of[rank]} if idle_of else {}
        made = capture(rank, **{"ops": [], "kernels": [], **({"world_size": ranks} if ranks > 1 else {}), **of_capture,
                                **own})  # fmt: skip
        steps = []
        for place, row in enumerate(made.rows.steps):
            stated = {"duration": 100, "e2e": 100, **(times or {}), **(of_step[place] if of_step else {}),
                      **(times_of or {}).get(rank, {}),
                      **(times_of_steps[rank][place] if times_of_steps else {})}  # fmt: skip
            numbers = {key if key.endswith("bytes") else f"{key}_ns": None if value is None else
                       value if key.endswith("bytes") else int(value * MS) for key, value in stated.items()
                       if key != "timeline"}  # fmt: skip
            numbers |= {"timeline": stated["timeline"]} if "timeline" in stated else {}
            steps.append(replace(row, breakdown=breakdown(**numbers)))
        overall = replace(made.rows.overall, timeline=(times or {}).get("timeline", "device"))
        if len(steps) == 1:
            # nothing marks the one step: it is as long as the capture
            overall = replace(overall, duration_ns=steps[0].breakdown.duration_ns)
        tables = dict(made.rows.tables)
        for name, of_steps in {**(factors or {}), **(factors_of or {}).get(rank, {})}.items():
            tables[name] = _scale_steps(tables[name], of_steps)
        if waits:
            rows = np.array([[0, peer, 0, 1, ns, ns] for peer, ns in waits]).T
            columns = ("communication", "peer", "is_global", "calls", "total_ns", "max_ns")
            tables["communication_wait"] = dict(zip(columns, rows, strict=True))
        captures.append(replace(made, rows=replace(made.rows, steps=tuple(steps), overall=overall, tables=tables)))
    device = {"device": of_capture["device"]} if "device" in of_capture else {}
    captures = [captures[rank] for rank in order or range(ranks)]
    saved = save_run(store, record(version, **{**device, **(of_run or {})}), captures, formats=list(formats))
    return saved.run_id


def _scale_steps(table: Mapping[str, Any], factors: Sequence[int]) -> dict[str, Any]:
    """Return a table whose times and calls are those of its steps times a factor."""
    scale = np.array(factors)[table["step"]]
    scaled = {
        name: np.where(values == MISSING, MISSING, values * scale)
        for name, values in table.items()
        if name.endswith("_ns") or name in ("ns", "calls")
    }
    return {**table, **scaled}


def advise(store: Store, *, microbatches: int | None = None, **made: Any) -> RunAdvice:
    """What the rules say of a run as `save` makes it."""
    return with_remedies(of_run(store, save(store, **made), microbatches))


def only(found: RunAdvice, rule: str) -> Advice:
    """The one piece of advice of a rule."""
    (item,) = [item for item in found.items if item.rule == rule]
    return item


def rules(found: RunAdvice) -> list[str]:
    """The rules that fired, in the order of their gain."""
    return [item.rule for item in found.items]


def gain_ms(found: RunAdvice, rule: str) -> float:
    """What one piece of advice can win, in ms, to a hundredth."""
    return round((only(found, rule).gain_ns or 0.0) / MS, 2)
