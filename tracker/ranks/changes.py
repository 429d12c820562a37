"""What changed from one run to another, rank by rank and table by table: the `changes` of `tracker cluster`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from tracker.results.cluster import ChangeRow, ClusterRows


class _Number(Struct, frozen=True):
    """A number of a row, by which two runs are compared. `name`: of its row, which tells it from others of its table;
    `metric`, `unit`: of the number, which is None where it is not known.
    """

    name: str
    metric: str
    unit: str
    value: float | None


def list_changes(before: ClusterRows, after: ClusterRows) -> list[ChangeRow]:
    """Return the numbers of both runs, table by table, those that changed most first. One run may lack a row."""
    changes: list[ChangeRow] = []
    for section, list_numbers in _COMPARED.items():
        rows = [*_compare(section, list(list_numbers(before)), list(list_numbers(after)))]
        rows.sort(key=lambda row: -abs(row.diff or 0.0))
        changes += rows
    return changes


def _compare(section: str, before: Sequence[_Number], after: Sequence[_Number]) -> Iterator[ChangeRow]:
    """Yield the change of each number that either run knows, those of the second run in its order."""
    first = {(number.name, number.metric): number.value for number in before}
    last = {(number.name, number.metric): number.value for number in after}
    units = {(number.name, number.metric): number.unit for number in (*before, *after)}
    for key in dict.fromkeys([*last, *first]):
        baseline, candidate = first.get(key), last.get(key)
        if baseline is None and candidate is None:
            continue
        delta = None if baseline is None or candidate is None else float(candidate - baseline)
        yield ChangeRow(
            section=section,
            name=key[0],
            metric=key[1],
            unit=units[key],
            baseline_value=None if baseline is None else float(baseline),
            candidate_value=None if candidate is None else float(candidate),
            delta=delta,
            diff=delta / baseline if delta is not None and baseline else None,
        )


def _list_ranks(rows: ClusterRows) -> Iterator[_Number]:
    for row in rows.ranks:
        name = f"rank {row.rank}"
        yield _Number(name, "own_ns", "ns", row.own_ns)
        yield _Number(name, "step_ns", "ns", row.step_ns)
        yield _Number(name, "wait_ns", "ns", row.wait_ns)


def _list_hosts(rows: ClusterRows) -> Iterator[_Number]:
    for row in rows.hosts:
        yield _Number(f"host {row.host}", "own_ratio", "ratio", row.own_ratio)


def _list_stages(rows: ClusterRows) -> Iterator[_Number]:
    for row in rows.stages:
        name = "all ranks" if row.stage is None else f"stage {row.stage}"
        yield _Number(name, "own_ns", "ns", row.own_ns)
        yield _Number(name, "own_max_ns", "ns", row.own_max_ns)
        yield _Number(name, "bubble_ns", "ns", row.bubble_ns)
        yield _Number(name, "idle_ns", "ns", row.idle_ns)


def _list_pipeline(rows: ClusterRows) -> Iterator[_Number]:
    for row in rows.pipeline:
        yield _Number("pipeline", "model_ns", "ns", row.model_ns)
        yield _Number("pipeline", "slowdown", "number", row.slowdown)


def _list_roles(rows: ClusterRows) -> Iterator[_Number]:
    for row in rows.roles:
        name = f"role {row.role} rank {row.rank}"
        yield _Number(name, "exposed_ns", "ns", row.exposed_ns)
        yield _Number(name, "wait_ns", "ns", row.wait_ns)


def _list_groups(rows: ClusterRows) -> Iterator[_Number]:
    for row in rows.groups:
        name = f"role {row.role} ranks {row.ranks} kind {row.kind}"
        yield _Number(name, "transit_ns", "ns", row.transit_ns)
        yield _Number(name, "wait_ns", "ns", row.wait_ns)
        yield _Number(name, "bus_gb_per_s", "number", row.bus_gb_per_s)


def _list_links(rows: ClusterRows) -> Iterator[_Number]:
    for row in rows.links:
        name = f"transport {row.transport} source_rank {row.source_rank} target_rank {row.target_rank}"
        yield _Number(name, "bandwidth_gb_per_s", "number", row.bandwidth_gb_per_s)


def _list_balance(rows: ClusterRows) -> Iterator[_Number]:
    for row in rows.balance:
        stage = "" if row.stage is None else f"stage {row.stage} "
        yield _Number(f"{stage}quantity {row.quantity}", "imbalance", "number", row.imbalance)


_COMPARED: Final[dict[str, Callable[[ClusterRows], Iterable[_Number]]]] = {
    "ranks": _list_ranks,
    "hosts": _list_hosts,
    "stages": _list_stages,
    "pipeline": _list_pipeline,
    "roles": _list_roles,
    "groups": _list_groups,
    "links": _list_links,
    "balance": _list_balance,
}
"""Table -> what is compared of it."""
