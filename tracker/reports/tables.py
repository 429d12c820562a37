"""Which tables of a result a reader chose, for the formats that write tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tracker.reports.look import Look
from tracker.reports.rows import Row, plain, pruned, records
from tracker.results import EXPLAIN_COLUMNS, SECTIONS, Bottleneck, Cluster, Diff, ExplainedIncident, Shown, Status

if TYPE_CHECKING:
    from tracker.columns import Columns

_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "overall": ("overall", "steps", "rank_summary", "step_summary"), "operator": ("ops",),
    "kernel": ("kernels", "copies"), "kernel_type": ("kernel_types",), "metric": ("kernel_metrics", "kernel_pipes"),
    "communication": ("communication",), "link": ("communication_links", "link_totals"), "memory": ("memory",),
    "memory_peak": ("memory_peak", "memory_peak_totals"), "memory_block": ("memory_blocks",), "module": ("modules",),
    "api": ("api",), "counter": ("counters", "counter_summary"),
    "efficiency": ("efficiency",),
}  # fmt: skip
"""Section -> the tables that answer it, as far as a diff or a run has them."""


def tables_of_incident(incident: ExplainedIncident) -> dict[str, list[Row]]:
    """The findings, and the tests, runs, events and facts of all, each row with the number of its finding."""
    tables = {"findings": [plain(dict(one.finding)) for one in incident.explained]}
    for name in EXPLAIN_COLUMNS:
        tables[name] = [
            {"finding_id": one.finding["finding_id"]} | row
            for one in incident.explained for row in records(getattr(one, name))
        ]  # fmt: skip
    return tables


def tables_of_status(status: Status) -> dict[str, list[Row]]:
    """What a status says of the whole, then its lists; what is expected in a folder is a list of its own."""
    values = plain(status)
    tables: dict[str, list[Row]] = {"status": [{key: one for key, one in values.items() if not isinstance(one, list)}]}
    tables |= {name: rows for name, rows in values.items() if isinstance(rows, list)}
    for row in tables["folders"]:
        del row["expected"]
        row |= {key: str(row[key]) for key in ("profiles", "not_taken")}
    tables["expected"] = [{"path": one.path} | plain(each) for one in status.folders for each in one.expected]
    return tables


def chosen_sections(result: Diff | Shown, look: Look, default: Sequence[str] = SECTIONS) -> tuple[str, ...]:
    """The sections to show, in reading order; a tree stands alone, unless `only` names sections."""
    if isinstance(result, Diff) and result.is_refused:
        return ()
    return () if result.tree_table is not None and not look.only else look.sections(default)


def selected(result: Diff | Shown, look: Look) -> Iterator[tuple[str, Columns]]:
    """Name and rows of each table of the chosen sections, cut to the limit; a tree comes first, cut at each level."""
    limit = look.rows(None)
    if result.tree_table is not None:
        yield "tree", pruned(result.tree_table, limit)
    for section in chosen_sections(result, look):
        for name in _TABLES[section]:
            if name in result.tables:
                yield name, result.tables[name].head(limit)


def chosen_tables(found: Cluster, look: Look) -> Iterator[tuple[str, Columns]]:
    """Name and rows of each chosen section of `tracker cluster`, cut to the limit; changes where there are two runs."""
    for name, rows in found.tables.items():
        if name in look.only or (not look.only and (name != "changes" or found.baseline is not None)):
            yield name, rows.head(look.rows(None))


def bottleneck_record(found: Bottleneck | None) -> dict[str, Any] | None:
    """A bottleneck by name: its class, quotients, what is missing, the thresholds."""
    if found is None:
        return None
    numbers = (
        "data_loading_share", "device_utilisation", "possible_gain_share", "utilisation_of", "outside_steps_share",
        "communication_share",
    )  # fmt: skip
    record: dict[str, Any] = {"class": found.bound, **{name: plain(getattr(found, name)) for name in numbers}}
    return record | {"missing": list(found.missing), "thresholds": plain(found.thresholds)}


def bottleneck_row(found: Bottleneck) -> Row:
    """The same as cells of one row."""
    limits = [f"{name.replace('_', ' ')} {value * 100:g} %" for name, value in found.thresholds.items()]
    texts = {"missing": "; ".join(found.missing), "thresholds": ", ".join(limits)}
    return (bottleneck_record(found) or {}) | texts


def bottleneck_rows(diff: Diff) -> list[Row]:
    """A row per side, for tables of values; none without bottlenecks."""
    sides = zip(("baseline", "candidate"), diff.bottlenecks or (), strict=False)
    return [{"side": side} | bottleneck_row(found) for side, found in sides]
