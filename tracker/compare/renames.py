"""Replaced operators of a diff: those that went and those that came in their place, below one parent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tracker.columns import Columns
from tracker.compare import reduction
from tracker.compare.keys import places
from tracker.judgement.netting import MOVED, contexts_in
from tracker.judgement.replaced import Calls, Net, Replacement, replacements
from tracker.results import ADDED, BOTH, REMOVED, Rename
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.compare.sides import Loaded
    from tracker.compare.verdicts import Judged

_SMALLEST_SHARE: Final = 0.001
_NUMBERS: Final = ("baseline_ns", "candidate_ns", "baseline_calls", "candidate_calls")


def find_renames(baseline: Loaded, candidate: Loaded, ops: Columns, judged: Judged) -> tuple[Rename, ...]:
    """What replaced what, of at least 0.1 % of all op time, with its net as it is judged. Largest first.

    An op of which only one side can have recorded anything neither went nor came.
    """
    changed = _changed(ops)
    if len({calls.change > 0 for calls, _, _ in changed.values()}) < 2:
        return ()
    before, after = (
        contexts_in(side.op_tree(), side.ask(queries.ops), changed.keys()) for side in (baseline, candidate)
    )
    smallest = float(np.nansum(ops["baseline_ns"])) * _SMALLEST_SHARE
    found = []
    for one in replacements(before, after, {name: calls for name, (calls, _, _) in changed.items()}):
        times = {name: (time0, time1) for name, (_, time0, time1) in changed.items()}
        net = _net(one, times) if judged.found is None else judged.found.net(one, judged.metric)
        if net.holds(one) and max(net.before_ns, net.after_ns) >= smallest:
            found.append(_told(one, net, times))
    return tuple(sorted(found, key=lambda rename: (-max(rename.removed_ns, rename.added_ns), rename.parent)))


def _changed(ops: Columns) -> dict[str, tuple[Calls, float, float]]:
    """Name -> calls, and ns per step on both sides, of the ops that came, went, or are called more or less often."""
    place, first = places([ops["name"]])
    sums = [np.nan_to_num(reduction.exact_sums(ops[name], place, len(first))).tolist() for name in _NUMBERS]
    statuses = status_of_names(ops)
    found = {}
    for name, before, after, calls0, calls1 in zip(ops["name"][first].tolist(), *sums, strict=True):
        calls = Calls(calls0, calls1)
        status = statuses[name]
        if status == ADDED:
            calls = Calls(0.0, calls1 or 1.0)
        elif status == REMOVED:
            calls = Calls(calls0 or 1.0, 0.0)
        elif status != BOTH or not calls0 or not calls1:
            continue
        if abs(calls.change) > MOVED * max(calls.before, calls.after):
            found[name] = (calls, before, after)
    return found


def _net(one: Replacement, times: dict[str, tuple[float, float]]) -> Net:
    """The net of a replacement that nobody can judge."""
    return Net(
        sum(max(times[name][0] - times[name][1], 0.0) for name in one.gone),
        sum(max(times[name][1] - times[name][0], 0.0) for name in one.come),
    )


def _told(one: Replacement, net: Net, times: dict[str, tuple[float, float]]) -> Rename:
    removed, added = (
        " + ".join(sorted(names, key=lambda name: (-abs(times[name][1] - times[name][0]), name)))
        for names in (one.gone, one.come)
    )
    return Rename(
        removed, added, one.parent, net.before_ns, net.after_ns, net.verdict, net.q, net.contribution, net.is_worse
    )


def status_of_names(ops: Columns) -> dict[str, str]:
    """Name -> the status that all its ops share, BOTH where they differ."""
    found: dict[str, str] = {}
    for name, status in ops.rows("name", "status"):
        found[name] = status if found.get(name, status) == status else BOTH
    return found
