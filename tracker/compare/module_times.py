"""The time of each module of one run, its total without counting nested ops twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tracker.lazy import pd

_NUMBERS: Final = ["calls", "host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns"]


def module_times(ops: pd.DataFrame, grains: Sequence[str]) -> pd.DataFrame:
    """Own and total time of the ops of each module and phase, the most own time first.

    `self`: of the ops of the module itself; these add up. `total`: of them and of the ops of the modules inside, as
    `--by module` has it: the sum of their self times, since the totals of nested ops overlap. Where a source knows no
    self times (sums per phase), its totals.
    """
    key = [*(grain for grain in grains if grain in ("rank", "step")), "module", "phase"]
    named = ops[(ops["module"] != "") | (ops["phase"] != "")]
    known = named[["host_self_ns", "device_self_ns"]].notna().any(axis=1)
    for place in ("host", "device"):
        own, total = named[f"{place}_self_ns"], named[f"{place}_total_ns"]
        named = named.assign(**{f"{place}_total_ns": own.where(known, total)})
    parted = known.groupby([named[name] for name in key]).transform("any")
    named = named[known | ~parted]
    grouped = named.groupby(key)[_NUMBERS].sum(min_count=1).reset_index()
    grouped = _with_inner(grouped, key)
    order = grouped[["device_self_ns", "host_self_ns"]].fillna(0)
    grouped = grouped.assign(_a=order["device_self_ns"], _b=order["host_self_ns"])
    grouped = grouped.sort_values(["_a", "_b", *key], ascending=[False, False, *[True] * len(key)])
    return grouped.drop(columns=["_a", "_b"]).reset_index(drop=True)


def _with_inner(grouped: pd.DataFrame, key: Sequence[str]) -> pd.DataFrame:
    """`grouped` with the totals of the modules inside added to those around them; one around that has no ops itself in
    this phase gets a row, with an own time of 0.
    """
    names = [*key, *_NUMBERS]
    found: dict[tuple[Any, ...], dict[str, int | None]] = {}
    inner: list[tuple[tuple[Any, ...], dict[str, int | None]]] = []
    for row in grouped[names].itertuples(index=False, name=None):
        *grain, module, phase = place = row[: len(key)]
        numbers = {name: None if pd.isna(n) else int(n) for name, n in zip(_NUMBERS, row[len(key) :], strict=True)}
        found[place] = dict(numbers)
        while "/" in module:
            module = module.rpartition("/")[0]
            inner.append(((*grain, module, phase), numbers))
    for place, numbers in inner:
        around = found.setdefault(place, {name: None if numbers[name] is None else 0 for name in _NUMBERS})
        for name in ("host_total_ns", "device_total_ns"):
            if numbers[name] is not None:
                around[name] = (around[name] or 0) + (numbers[name] or 0)
    frame = pd.DataFrame([[*place, *numbers.values()] for place, numbers in found.items()], columns=names)
    return frame.astype({name: grouped[name].dtype for name in names})
