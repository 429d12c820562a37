"""One run, as it is: the content of `tracker show`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pandas as pd

from tracker.compare.filters import matching
from tracker.compare.sides import load
from tracker.errors import UsageError
from tracker.results import Shown, ShowOptions
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.store import Store

_COPIES = ("copy", "memset")
_MODULE_NUMBERS = ["calls", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns"]


def show(store: Store | None, reference: str, *, options: ShowOptions | None = None) -> Shown:
    """What the database (or the path) `reference` holds of one run; DESIGN section 5 names the references.

    Sums over steps and ranks, unless `options.by` asks for `rank` or `step`. Raises UsageError when the reference names
    several runs; the message lists them.
    """
    options = options or ShowOptions()
    with ExitStack() as stack:
        side = load(store, reference, options, stack)
        if len(side.run_ids) > 1:
            names = ", ".join(f"run:{run_id}" for run_id in side.run_ids[:10])
            raise UsageError(f"{reference} is {len(side.run_ids)} runs", remedy=f"show one of {names}")
        grain: dict[str, Any] = {"by": ("run", *options.by), "ranks": side.ranks}
        ops = _drop_run(queries.ops(side.store, side.run_ids, **grain))
        kernels = _drop_run(queries.kernels(side.store, side.run_ids, **grain))
        communication = queries.communication(side.store, side.run_ids, **grain)
        communication = _drop_run(matching(matching(communication, "kind", options.kind), "group_role", options.group))
        memory = _drop_run(queries.memory(side.store, side.run_ids, **grain))
        api = _drop_run(queries.api(side.store, side.run_ids, **grain))
        ops, kernels, memory = (
            _only_op(ops, "name", options),
            _only_op(kernels, "op", options),
            _only_op(memory, "op", options),
        )
        least = options.minimum_ns
        ops = _large(ops, ["host_self_ns", "device_self_ns"], least)
        kernels, communication, api = (_large(frame, ["total_ns"], least) for frame in (kernels, communication, api))
        is_copy = kernels["category"].isin(_COPIES)
        curve = _drop_run(queries.memory_curve(side.store, side.run_ids))
        sources = _drop_run(queries.sources(side.store, side.run_ids))
        facts = _drop_run(queries.facts(side.store, side.run_ids))
        captures = side.captures.assign(stage=side.captures["stage"].where(side.captures["stage"] >= 0))
        return Shown(
            run={"reference": reference, **_plain(side.runs.iloc[0])},
            overall=_drop_run(captures),
            steps=_drop_run(side.steps),
            ops=ops,
            kernels=kernels[~is_copy].reset_index(drop=True),
            copies=kernels[is_copy].reset_index(drop=True),
            communication=communication,
            memory=memory,
            modules=_modules(ops, options),
            api=api,
            memory_curve=curve,
            facts=facts,
            sources=sources,
        )


def _large(frame: pd.DataFrame, columns: list[str], minimum_ns: int | None) -> pd.DataFrame:
    """The rows in which one of `columns` is at least `minimum_ns`."""
    if minimum_ns is None:
        return frame
    return frame[(frame[columns].fillna(0) >= minimum_ns).any(axis=1).astype(bool)].reset_index(drop=True)


def _drop_run(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns="run_id").reset_index(drop=True)


def _plain(row: pd.Series) -> dict[str, Any]:
    """A row with None for NA and plain Python numbers."""
    return {
        str(key): None
        if pd.api.types.is_scalar(value) and pd.isna(value)
        else getattr(value, "item", lambda v=value: v)()
        for key, value in row.items()
    }


def _only_op(frame: pd.DataFrame, column: str, options: ShowOptions) -> pd.DataFrame:
    return matching(matching(frame, column, options.op), "module", options.module).reset_index(drop=True)


def _modules(ops: pd.DataFrame, options: ShowOptions) -> pd.DataFrame:
    """Own and total time of the ops of each module and phase. Totals of nested ops overlap; self times add up."""
    key = [*[column for column in ("rank", "step") if column in options.by], "module", "phase"]
    named = ops[(ops["module"] != "") | (ops["phase"] != "")]
    grouped = named.groupby(key)[_MODULE_NUMBERS].sum(min_count=1).reset_index()
    order = grouped[["device_self_ns", "host_self_ns"]].fillna(0)
    grouped = grouped.assign(_a=order["device_self_ns"], _b=order["host_self_ns"])
    return (
        grouped.sort_values(["_a", "_b", *key], ascending=[False, False, *[True] * len(key)])
        .drop(columns=["_a", "_b"])
        .reset_index(drop=True)
    )
