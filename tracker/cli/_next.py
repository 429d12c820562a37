"""The command that a result proposes: one that runs in this database and is about the same workload and versions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracker.store import Store


def diff_of(store: Store, workload: str, *, among: Collection[str] | None = None, pinned: bool = False) -> str | None:
    """`tracker diff` of the newest two versions of a workload that have active runs in one configuration on one device;
    None where no two have.

    `among`: the candidate is the newest of these. `pinned`: the baseline is the pinned version.
    """
    from tracker.reports.commands import command_of

    found = _newest_two(store, workload, among, pinned)
    if found is None:
        return None
    sides = [_side(store, workload, label, run_ids) for label, run_ids in found]
    # what is named by its runs needs no workload
    by_label = [label for label, _ in found if label in sides]
    return command_of(("tracker", "diff"), sides, ("--workload", workload) if by_label else ())


def _newest_two(
    store: Store, workload: str, among: Collection[str] | None, pinned: bool
) -> list[tuple[str, list[int]]] | None:
    """Label and runs of baseline and candidate, all of one configuration and device."""
    from tracker.store import queries

    versions = queries.versions.columns(store, workload)
    order = versions.listed("version")
    is_pinned = dict(zip(order, versions.listed("pinned"), strict=True))
    lines: dict[str, dict[tuple[str, str, str], list[int]]] = {label: {} for label in order}
    runs = queries.runs.columns(store, workload=workload)
    columns = ("version", "run_id", "configuration", "vendor", "device")
    for label, run_id, configuration, vendor, device in runs.rows(*columns):
        lines[label].setdefault((configuration, vendor, device), []).append(int(run_id))
    candidates = [label for label in order if (among is None or label in among) and lines[label]]
    for candidate in reversed(candidates):
        before = order[: order.index(candidate)]
        baselines = [label for label in order if is_pinned[label] and label != candidate] if pinned else before
        for line in sorted(lines[candidate], key=lambda one: -max(lines[candidate][one])):  # that of the newest run
            found = next((label for label in reversed(baselines) if line in lines[label]), None)
            if found is not None:
                return [(label, sorted(lines[label][line])) for label in (found, candidate)]
    return None


def _side(store: Store, workload: str, label: str, run_ids: Sequence[int]) -> str:
    """The label where it means just these runs, else the runs."""
    from tracker.compare.references import means

    return label if means(store, label, run_ids, workload) else ",".join(f"run:{number}" for number in run_ids)
