"""Calling contexts: they are stored packed, rank by rank, and summed up here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tracker.columns import I64, Column, Columns
from tracker.profile import MISSING, NO_STEP
from tracker.store.bulk import fetch
from tracker.store.connect import Store
from tracker.store.contexts import NUMBERS, Contexts, damaged, unpacked
from tracker.store.failures import explain_damaged
from tracker.store.queries.answers import whole
from tracker.store.queries.keyed import Texts, keys_of
from tracker.store.sql import statement
from tracker.table import Groups, group_rows

_PLACE: Final = ("run_id", "rank", "stage", "step", "node", "parent")
_LINES: Final = (*_PLACE, "op_key_id", *NUMBERS)
_OP: Final = {"name": 0, "input_shapes": 1, "input_types": 2}

Steps = Sequence[int] | None


def op_tree(store: Store, parameters: Mapping[str, Any], steps: Steps, *, in_steps: bool, by_step: bool) -> Columns:
    """One row per run, rank and calling context, in the order of their numbers, of `steps` (None: all), without step -1
    where `in_steps`: their sum, or `by_step` a row for each. `parameters`: those of sql/op_tree.sql.

    Columns: run_id, rank, stage (NA: none), step (-1: summed), node, parent (-1: none); name, input_shapes,
    input_types; calls; host_total_ns: host time with the ops inside; device_total_ns: launched anywhere below;
    device_self_ns: by the op itself; kernel_count: device events launched anywhere below. A sum is that of what is
    known, NA where nothing is.
    """
    nothing = np.zeros((len(_LINES), 0), dtype=np.int64)
    lines = np.concatenate([nothing, *_ranks(store, parameters, steps, in_steps, by_step)], axis=1)
    found = dict(zip(_LINES, lines, strict=True))
    texts = Texts.of(found["op_key_id"], keys_of(store, "op_key", found["op_key_id"]), _OP)
    groups = group_rows(*(found[name] for name in ("run_id", "rank", "step", "node", "parent")), texts.places)
    first = groups.first
    return Columns(
        {
            **{name: _column(found[name][first]) for name in _PLACE},
            **texts.taken(first),
            **{name: groups.add_up(_column(found[name]), "known") for name in NUMBERS},
        }
    )


def _ranks(store: Store, parameters: Mapping[str, Any], steps: Steps, in_steps: bool, by_step: bool) -> Iterator[I64]:
    """The _LINES of each rank."""
    if not parameters["run_ids"]:
        return
    with store.connect() as connection:
        rows = fetch(connection.execute(statement("op_tree"), dict(parameters)))
    for run_id, rank, stage, content in rows:
        try:
            contexts = unpacked(bytes(content))
        except ValueError as error:
            found = damaged(run_id, rank)
            raise explain_damaged(store.url, found) from error
        summed = _summed(contexts, steps, in_steps, by_step)
        place = np.array([[run_id], [rank], [MISSING if stage is None else stage]], dtype=np.int64)
        yield np.vstack([place.repeat(summed.shape[1], axis=1), summed])


def _summed(contexts: Contexts, steps: Steps, in_steps: bool, by_step: bool) -> I64:
    """Step, node, parent, op_key_id and NUMBERS of each context that is in one of the chosen steps."""
    chosen = contexts.step >= (0 if in_steps else MISSING)
    if steps is not None:
        chosen &= np.isin(contexts.step, np.array(whole(steps), dtype=np.int64))
    place, step = contexts.place[chosen], contexts.step[chosen] if by_step else np.full(int(chosen.sum()), NO_STEP)
    # the rows are stored by place, then by step
    opens = (np.diff(place, prepend=-1) | np.diff(step, prepend=MISSING)) != 0
    starts = np.flatnonzero(opens)
    groups = Groups(np.cumsum(opens) - 1, starts, np.arange(len(place)))
    numbers = [groups.add_up_marked(row, MISSING, "known") for row in contexts.numbers[:, chosen]]
    at = place[starts]
    return np.vstack([step[starts], contexts.node[at], contexts.parent[at], contexts.op_key_id[at], *numbers])


def _column(values: I64) -> Column:
    """MISSING is missing."""
    missing = values == MISSING
    return Column(np.where(missing, 0, values), missing)
