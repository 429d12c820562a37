"""Tables for people of the links that collectives use: per transport, from rank to rank, by size of packet; of a run
and of a diff."""

from __future__ import annotations

from typing import Final

from tracker.lazy import pd
from tracker.reports._human import (
    GRAIN,
    NAME,
    UNDER,
    WORDS,
    Column,
    Row,
    Table,
    grain_cells,
    grain_columns,
    group_words,
    make,
    number,
    pair,
    readable,
    share,
    tone,
    top,
    values,
)
from tracker.reports.shared import records
from tracker.results import BOTH, Diff, Shown
from tracker.units import MISSING_TEXT, format_bytes, format_diff, format_ns, size_unit

_ENDS: Final = ("source_rank", "target_rank")


def links(shown: Shown, limit: int | None) -> Table:
    """A line per transport and group: what all links together moved, how fast, in how large packets."""
    frame = shown.communication_links
    whole = frame[frame["source_rank"].isna() & frame["packet_bytes"].isna()]
    groups = _summed(whole, ["transport", "group_role", "group_size"])
    listed = groups if limit is None else groups[:limit]
    columns = [*grain_columns(listed), Column("transport", left=True), Column("group", **WORDS), *_LINK_NUMBERS]
    rows = [("", [*grain_cells(row), row["transport"], _group(row), *_link_numbers(row)]) for row in listed]
    return make("Communication links", columns, rows, more=len(groups) - len(listed))


_LINK_NUMBERS: Final = (Column("bytes"), Column("transit"), Column("GB/s"), Column("large packets"))


def _link_numbers(row: Row) -> list[str]:
    size, transit = row["bytes"], row["transit_ns"]
    speed = size / transit if size is not None and transit else None
    return [format_bytes(size), format_ns(transit), _speed(speed), share(row["large_packet_ratio"])]


def _speed(value: float | None) -> str:
    return MISSING_TEXT if value is None else f"{value:,.2f}"


def _group(row: Row) -> str:
    return group_words({"data_type": "", "size_class_bytes": None, **row})


def _summed(frame: pd.DataFrame, key: list[str]) -> list[Row]:
    """Sums of `frame` per `key` (within the grain), the largest transit first; large packets weighted by bytes."""
    key = [*(name for name in GRAIN if name in frame.columns), *key]
    told = frame["bytes"].where(frame["large_packet_ratio"].notna()).astype("Float64")
    frame = frame.assign(_large=frame["large_packet_ratio"] * told, _told=told)
    sums = frame.groupby(key, dropna=False, sort=False)[["bytes", "transit_ns", "_large", "_told"]].sum(min_count=1)
    sums["large_packet_ratio"] = sums["_large"] / sums["_told"].where(sums["_told"] > 0)
    order = sums.reset_index().sort_values(["transit_ns", *key], ascending=[False, *[True] * len(key)], kind="stable")
    return records(order)


def link_matrix(shown: Shown, limit: int | None) -> Table:
    """From which rank to which: bytes and bandwidth of every single link."""
    frame = shown.communication_links
    rows = _summed(frame[frame["source_rank"].notna()], ["source_rank", "target_rank", "transport"])
    listed = rows if limit is None else rows[:limit]
    columns = [*grain_columns(listed), Column("from rank"), Column("to rank"), Column("transport", left=True)]
    cells = []
    for row in listed:
        ends = [*grain_cells(row), *(number(row[name]) for name in _ENDS), row["transport"]]
        cells.append(("", [*ends, *_link_numbers(row)[:3]]))
    return make("Links between ranks", [*columns, *_LINK_NUMBERS[:3]], cells, more=len(rows) - len(listed))


def packets(shown: Shown, limit: int | None) -> Table:
    """How large the packets were that each transport carried."""
    frame = shown.communication_links
    counted_packets = frame[frame["packet_bytes"].notna()]
    grain = [name for name in GRAIN if name in frame.columns]
    key = [*grain, "transport", "packet_bytes"]
    sums = counted_packets.groupby(key, sort=False)[["packets", "bytes", "transit_ns"]].sum(min_count=1).reset_index()
    rows, more = top(sums.sort_values(["bytes", *key], ascending=[False, *[True] * len(key)]), limit)
    columns = [*grain_columns(rows), Column("transport", left=True), Column("packet size"), Column("packets")]
    cells = []
    for row in rows:
        line = [row["transport"], format_bytes(row["packet_bytes"]), number(row["packets"])]
        cells.append(("", [*grain_cells(row), *line, *_link_numbers({**row, "large_packet_ratio": None})[:3]]))
    return make("Packets", [*columns, *_LINK_NUMBERS[:3]], cells, more=more)


def diff_links(diff: Diff, limit: int | None) -> Table:
    """A line per collective and transport: what all links together moved on both sides, and how fast."""
    table = diff.tables["communication_links"]
    rows, more = top(table.taken(~table.known("source_rank")), limit)
    columns = [Column("communication", **NAME), Column("group", **UNDER), Column("transport", left=True)]
    columns += [Column("bytes", drop=4), *_COMPARED, Column("large packets", drop=3)]
    cells = []
    for row in rows:
        line = [readable(row["kind"]), _group(row), row["transport"], _sizes(row)]
        packets = pair(*(share(row[f"{side}_large_packet_ratio"]) for side in ("baseline", "candidate")))
        cells.append((tone(row, row["delta_ns"]), [*line, *_transit(row), _speeds(row), packets]))
    return make("Links by change of transit time", columns, cells, more=more)


def diff_link_matrix(diff: Diff, limit: int | None) -> Table:
    """From which rank to which, for each collective: transit time and bandwidth of every single link."""
    table = diff.tables["communication_links"]
    rows, more = top(table.taken(table.known("source_rank")), limit)
    columns = [Column("communication", **NAME), Column("group", **UNDER), Column("transport", left=True)]
    columns += [Column("from rank"), Column("to rank"), *_COMPARED]
    cells = []
    for row in rows:
        line = [readable(row["kind"]), _group(row), row["transport"], *(number(row[name]) for name in _ENDS)]
        cells.append((tone(row, row["delta_ns"]), [*line, *_transit(row), _speeds(row)]))
    return make("Links between ranks by change of transit time", columns, cells, more=more)


_COMPARED: Final = (
    Column("baseline"),
    Column("candidate"),
    Column("change", drop=1),
    Column("DIFF"),
    Column("GB/s", drop=2),
)


def _transit(row: Row) -> list[str]:
    cells = values("ns", row["baseline_transit_ns"], row["candidate_transit_ns"], row["delta_ns"])
    return [*cells, row["status"] if row["status"] != BOTH else format_diff(row["diff"])]


def _speeds(row: Row) -> str:
    return pair(*(_speed(row[f"{side}_bandwidth_gb_per_s"]) for side in ("baseline", "candidate")))


def _sizes(row: Row) -> str:
    before, after = row["baseline_bytes"], row["candidate_bytes"]
    unit = size_unit(before, after)
    return pair(format_bytes(before, unit), format_bytes(after, unit))
