"""The time of each module of one run, its total without counting nested ops twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tracker.columns import Column, Columns, objects
from tracker.schema.column_names import DEVICE_SELF_NS, HOST_SELF_NS, MODULE, PHASE
from tracker.table import add_up_rows, number_distinct_rows

_NUMBERS: Final = ("calls", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns")


def module_times(ops: Columns, grains: Sequence[str]) -> Columns:
    """Own and total time of the ops of each module and phase, the most own time first.

    `self`: of the ops of the module itself; these add up. `total`: of them and of the ops of the modules inside, as
    `--by module` has it: the sum of their self times, since the totals of nested ops overlap. Where a source knows no
    self times (sums per phase), its totals.
    """
    key = [*(grain for grain in grains if grain in ("rank", "step")), "module", "phase"]
    named = ops.taken((ops[MODULE] != "") | (ops[PHASE] != ""))
    known = named.known(HOST_SELF_NS) | named.known(DEVICE_SELF_NS)
    totals = {}
    for place in ("host", "device"):
        own, total = f"{place}_self_ns", f"{place}_total_ns"
        numbers = np.where(known, named.integers(own), named.integers(total))
        totals[total] = Column(numbers, ~np.where(known, named.known(own), named.known(total)))
    number, first = number_distinct_rows([named[name] for name in key])
    parted = np.bincount(number, known, len(first)) > 0
    rows = add_up_rows(named.having(**totals).taken(known | ~parted[number]), key, dict.fromkeys(_NUMBERS, "known"))
    found = _with_inner(rows, key)
    ordered = sorted(found.items(), key=lambda row: (-(row[1][4] or 0), -(row[1][2] or 0), row[0]))
    names = [*key, *_NUMBERS]
    cells = list(zip(*((*place, *numbers) for place, numbers in ordered), strict=True)) or [()] * len(names)
    return Columns(
        {
            name: objects(own) if name in ("module", "phase") else Column.of(own, np.int64)
            for name, own in zip(names, cells, strict=True)
        }
    )


def _with_inner(rows: Columns, key: Sequence[str]) -> dict[tuple[Any, ...], list[int | None]]:
    """Key -> _NUMBERS, with the totals of the modules inside added to those around them; one around that has no ops
    itself in this phase gets a row, with an own time of 0.
    """
    found: dict[tuple[Any, ...], list[int | None]] = {}
    inner: list[tuple[tuple[Any, ...], list[int | None]]] = []
    for row in rows.rows(*key, *_NUMBERS):
        place, numbers = row[: len(key)], list(row[len(key) :])
        found[place] = numbers.copy()
        *grain, module, phase = place
        while "/" in module:
            module = module.rpartition("/")[0]
            inner.append(((*grain, module, phase), numbers))
    for place, numbers in inner:
        around = found.setdefault(place, [None if number is None else 0 for number in numbers])
        for at in (1, 3):  # the totals
            if numbers[at] is not None:
                around[at] = (around[at] or 0) + (numbers[at] or 0)
    return found
