"""The ranks of one run on screen: who holds the job back, a map of the ranks, then stages, roles, groups and links."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from tracker.compare.headline import short_labels
from tracker.reports.cells import READABLE, cell, number, readable, share, signed
from tracker.reports.commands import command_of
from tracker.reports.document import (
    NAME,
    UNDER,
    WORDS,
    Block,
    Column,
    Document,
    HeatMap,
    Lines,
    Look,
    Table,
    Target,
    table,
)
from tracker.reports.rows import Row, records
from tracker.reports.text import ROWS
from tracker.results import SLOW, Cluster
from tracker.units import MISSING_TEXT, counted, format_diff, format_numbers

if TYPE_CHECKING:
    from tracker.columns import Columns

_TITLES: Final = {
    "ranks": "Ranks, by own time to that of their peers", "steps": "Own time of each rank and step",
    "hosts": "Hosts", "stages": "Stages", "pipeline": "Pipeline",
    "roles": "Communication by parallel type, mean of a step",
    "groups": "Process groups, over the whole capture", "calls": "Longest collectives", "links": "Links",
    "operators": "Operators over the ranks: what equal ranks would save, over the whole capture",
    "balance": "Load balance", "changes": "Changes from the first run to the second",
}  # fmt: skip
_FIRST: Final = ("ranks", "hosts", "stages", "pipeline", "links")
_FIRST_ROWS: Final = 5
_SHADES: Final = "·░▒▓█"
_BOUNDS: Final = (0.95, 1.05, 1.25, 1.5)
"""Own time to that of the peers from which on a rank has the next shade."""
_MAP_WIDTH: Final = 64
_MAP_LINES: Final = 16
_RANK_OF: Final = {
    "ranks": "rank", "steps": "rank", "roles": "rank", "groups": "most_wait_rank", "calls": "last_rank",
    "links": "source_rank", "balance": "max_rank",
}  # fmt: skip
"""Section -> the column with the rank that a row is about."""
_OF: Final = {"SLOW": "worse", "SUSPECT": "strong", "UNEVEN": "strong"}
_CAUSES: Final = {"host": "CPU side"}
"""Causes that are called otherwise where a machine is a host, too."""
_METRICS: Final = {"own_ns": "own time", "own_max_ns": "own time, slowest", "step_ns": "step", "wait_ns": "waits"}
_Cells = Callable[[Row], str]


def _time(name: str) -> _Cells:
    return lambda row: cell(row[name], "ns")


def _text(name: str) -> _Cells:
    return lambda row: MISSING_TEXT if row[name] is None else str(row[name])


def _factor(name: str) -> _Cells:
    return lambda row: MISSING_TEXT if row[name] is None else f"x{row[name]:.2f}"


def _chance(row: Row) -> str:
    return MISSING_TEXT if row["q"] is None else f"{row['q']:.3f}" if row["q"] >= 0.001 else "<0.001"


def _verdict(row: Row) -> str:
    cause = _CAUSES.get(row.get("cause") or "", row.get("cause"))
    return ", ".join(filter(None, (row["verdict"], cause, row.get("place"))))


def _speed(name: str) -> _Cells:
    return lambda row: MISSING_TEXT if row[name] is None else f"{row[name]:,.2f}"


def _count(name: str) -> _Cells:
    return lambda row: number(row[name])


_SHAPES: Final[Mapping[str, tuple[tuple[Column, _Cells], ...]]] = {
    "ranks": (
        (Column("rank"), _count("rank")), (Column("host", drop=3, **WORDS), _text("host")),
        (Column("stage", drop=4), _text("stage")), (Column("step"), _time("step_ns")),
        (Column("own time"), _time("own_ns")), (Column("of peers"), _factor("own_ratio")),
        (Column("slowest", drop=2), lambda row: "" if row["slowest_steps"] is None else number(row["slowest_steps"])),
        (Column("q", drop=2), _chance), (Column("compute", drop=5), _time("compute_ns")),
        (Column("exposed comm.", drop=1), _time("exposed_communication_ns")),
        (Column("waits", drop=1), _time("wait_ns")), (Column("idle", drop=5), _time("idle_ns")),
        (Column("verdict", left=True), _verdict),
    ),
    "steps": (
        (Column("rank"), _count("rank")), (Column("step"), _count("step")), (Column("own time"), _time("own_ns")),
        (Column("of peers"), _factor("own_ratio")),
    ),
    "hosts": (
        (Column("host", **WORDS), _text("host")), (Column("ranks"), _count("ranks")),
        (Column("own time of others"), _factor("own_ratio")), (Column("slowest"), _count("slowest_steps")),
        (Column("q"), _chance), (Column("verdict", left=True), _verdict),
    ),
    "stages": (
        (Column("stage"), _text("stage")), (Column("ranks"), _count("ranks")), (Column("own time"), _time("own_ns")),
        (Column("slowest rank"), lambda row: f"{cell(row['own_max_ns'], 'ns')} ({number(row['own_max_rank'])})"),
        (Column("spread", drop=1), _factor("spread")), (Column("compute", drop=2), _time("compute_ns")),
        (Column("exposed comm.", drop=2), _time("exposed_communication_ns")),
        (Column("idle", drop=3), _time("idle_ns")),
        (Column("bubble"), _time("bubble_ns")), (Column("of step"), lambda row: share(row["bubble_share"])),
        (Column("preparing", drop=4), _time("preparing_ns")), (Column("verdict", left=True), _verdict),
    ),
    "pipeline": (
        (Column("stages"), _count("stages")), (Column("microbatches"), _count("microbatches")),
        (Column("model"), _time("model_ns")), (Column("with even ranks"), _time("even_ns")),
        (Column("with even stages"), _time("flat_ns")), (Column("slowdown"), _factor("slowdown")),
        (Column("ideal bubble", drop=1), lambda row: share(row["ideal_bubble_share"])),
    ),
    "roles": (
        (Column("role", left=True), _text("role")), (Column("rank"), _count("rank")),
        (Column("calls"), _count("calls")),
        (Column("time"), _time("total_ns")), (Column("exposed"), _time("exposed_ns")),
        (Column("share"), lambda row: share(row["exposed_share"])), (Column("waits"), _time("wait_ns")),
    ),
    "groups": (
        (Column("role", left=True), _text("role")), (Column("ranks", **UNDER), _text("ranks")),
        (Column("kind", left=True), _text("kind")), (Column("calls"), _count("calls")),
        (Column("bytes", drop=3), lambda row: cell(row["bytes"], "bytes")), (Column("time"), _time("elapse_ns")),
        (Column("transit"), _time("transit_ns")), (Column("waits"), _time("wait_ns")),
        (Column("most by", drop=1), _text("most_wait_rank")), (Column("exposed", drop=2), _time("exposed_ns")),
        (Column("bus GB/s", drop=2), _speed("bus_gb_per_s")),
        (Column("complete", drop=4), lambda row: "yes" if row["complete"] else "no"),
    ),
    "calls": (
        (Column("role", left=True), _text("role")), (Column("ranks", **UNDER), _text("ranks")),
        (Column("kind", left=True), _text("kind")), (Column("step"), _count("step")),
        (Column("bytes", drop=1), lambda row: cell(row["bytes"], "bytes")), (Column("longest"), _time("elapse_ns")),
        (Column("transit"), _time("transit_ns")), (Column("last rank"), _text("last_rank")),
        (Column("late by"), _time("late_ns")),
    ),
    "links": (
        (Column("transport", left=True), _text("transport")), (Column("from rank"), _count("source_rank")),
        (Column("to rank"), _count("target_rank")), (Column("bytes"), lambda row: cell(row["bytes"], "bytes")),
        (Column("GB/s"), _speed("bandwidth_gb_per_s")), (Column("z", drop=1), _speed("z")),
        (Column("verdict", left=True), _verdict),
    ),
    "operators": (
        (Column("operator", **NAME), lambda row: readable(row["name"])),
        (Column("input shapes", **UNDER), lambda row: str(row["input_shapes"] or "")),
        (Column("stage", drop=3), _text("stage")), (Column("ranks", drop=2), _count("ranks")),
        (Column("calls", drop=1), lambda row: _range(row["fewest_calls"], row["most_calls"])),
        (Column("median"), _time("median_ns")), (Column("minimum", drop=4), _time("min_ns")),
        (Column("maximum"), _time("max_ns")), (Column("rank"), _count("max_rank")),
        (Column("would save"), _time("saving_ns")),
    ),
    "balance": (
        (Column("stage"), _text("stage")), (Column("quantity", left=True), _text("quantity")),
        (Column("mean"), lambda row: cell(row["mean"], row["unit"])),
        (Column("largest"), lambda row: cell(row["max"], row["unit"])), (Column("rank"), _count("max_rank")),
        (Column("imbalance"), _factor("imbalance")),
    ),
    "changes": (
        (Column("section", left=True), _text("section")), (Column("of", **WORDS), _text("name")),
        (Column("metric", left=True), lambda row: _METRICS.get(row["metric"], _words(row["metric"]))),
        (Column("baseline"), lambda row: _value(row, "baseline_value")),
        (Column("candidate"), lambda row: _value(row, "candidate_value")),
        (Column("change"), lambda row: signed(_value(row, "delta"), row["delta"])),
        (Column("change %"), lambda row: "" if row["diff"] is None else format_diff(row["diff"])),
    ),
}  # fmt: skip
"""Section -> its columns on screen, each with what makes its cells."""


def _words(metric: str) -> str:
    return metric.removesuffix("_ns").replace("_", " ")


def _value(row: Row, name: str) -> str:
    value = row[name]
    if value is None or row["unit"] == "ns":
        return cell(value, "ns", row["baseline_value"], row["candidate_value"])
    return f"{value:,.3f}"


def _range(least: float, most: float) -> str:
    return number(least) if least == most else f"{number(least)} to {number(most)}"


def document(found: Cluster, look: Look) -> Document:
    """The report of `tracker cluster`."""
    return Document(
        title=_title(found),
        headline=found.answer,
        verdict=found.verdict,
        tone=_OF.get(found.verdict, ""),
        remarks=found.remarks,
        blocks=tuple(_blocks(found, look)),
        notes=tuple(f"Note: {note}" for note in found.notes),
        next_commands=tuple(_next(found, look)),
    )


def _title(found: Cluster) -> str:
    run = found.run
    what = " ".join(str(run[name]) for name in ("workload", "version") if run.get(name) and run[name] != "files")
    hosts = len({host for host in found.tables["ranks"].listed("host") if host})
    words = [
        what if run["reference"] != run.get("version") else short_labels([run["reference"]])[0],
        str(run["device"]),
    ]
    words += [str(run.get("configuration") or ""), counted(run["captured"], "rank")]
    words += [counted(hosts, "host")] if hosts > 1 else []
    against = "" if found.baseline is None else f"{short_labels([found.baseline['reference']])[0]} -> "
    return f"{against}{', '.join(filter(None, words))}"


def _blocks(found: Cluster, look: Look) -> Iterator[Block]:
    if len(found.tables["changes"]):
        first = _table("changes", found.tables["changes"], look.rows(_FIRST_ROWS * 3))
        yield replace(first, is_first=not look.only)
    for section, rows in found.tables.items():
        if section == "changes":
            continue
        is_first = section in _FIRST and _matters(section, rows) and not len(found.tables["changes"])
        made = _table(section, rows, look.rows(ROWS if look.details or look.only else _FIRST_ROWS))
        made = replace(made, links=tuple(_links(found, section, records(rows)[: len(made.rows)])))
        if made.rows:
            yield replace(made, is_first=is_first, chart=_heat_map(found) if section == "ranks" else None)
        elif section in look.only:
            yield replace(made, note="no rows: see what the captures cannot tell")
        if section == "ranks" and len(rows) > 1:
            yield _map(found, look)
    if found.missing:
        yield Lines("What the captures cannot tell", found.missing, is_wrapped=True)


def _links(found: Cluster, section: str, rows: list[Row]) -> Iterator[Target | None]:
    """Where the numbers of each row lead: a step or stage of the run, the history of an operator, or the rank that it
    names beside its nearest peer.
    """
    number, workload = found.run.get("run_id"), found.run.get("workload")
    ranks = records(found.tables["ranks"])
    run = ("RUN", str(number))
    for row in rows if number is not None else ():
        rank = row.get(_RANK_OF.get(section, ""))
        peer = _peer(ranks, rank)
        if section == "steps":
            yield Target("run", (run, ("--rank", str(rank)), ("--step", str(row["step"]))))
        elif section == "stages":
            yield None if row["stage"] is None else Target("cluster", (run, ("--stage", str(row["stage"]))))
        elif section == "operators" and workload and row["name"] not in READABLE:
            yield Target("history", (("KEY", row["name"]), ("--workload", str(workload))))
        elif peer is not None:
            yield Target("diff", tuple(("side", f"run:{number}:rank{one}") for one in (peer, rank)))
        else:
            yield None


def _peer(ranks: list[Row], rank: int | None) -> int | None:
    """The rank of the same stage whose own time is nearest to that of all peers, without a verdict; None for none."""
    stage = next((row["stage"] for row in ranks if row["rank"] == rank), None)
    able = [row for row in ranks if row["rank"] != rank and row["stage"] == stage and row["own_ratio"]]
    peers = [row for row in able if not row["verdict"]] if rank is not None else []
    return min(peers, key=lambda row: abs(row["own_ratio"] - 1.0))["rank"] if peers else None


def _matters(section: str, rows: Columns) -> bool:
    """Whether a section says something that the headline does not: stages where there are several, links with a
    verdict.
    """
    if section == "links":
        return any(rows.listed("verdict"))
    if section == "pipeline":
        return any(value is not None for value in rows.listed("model_ns"))
    return section not in ("stages", "hosts") or len(rows) > 1


def _table(section: str, rows: Columns, limit: int | None) -> Table:
    shapes = _SHAPES[section]
    kept = records(rows.head(limit))
    known = [
        (column, make) for column, make in shapes
        if not kept or any(make(row) not in ("", MISSING_TEXT) for row in kept)
    ]  # fmt: skip
    lines = [(_OF.get(row.get("verdict") or "", ""), [make(row) for _, make in known]) for row in kept]
    columns, more = [column for column, _ in known], len(rows) - len(kept)
    return table(_TITLES[section], columns, lines, more=more, section=section)


def _map(found: Cluster, look: Look) -> Lines:
    """A character per rank: the darker, the longer its own time beside that of its peers."""
    rows = sorted(records(found.tables["ranks"]), key=lambda row: (row["stage"] or 0, row["rank"]))
    lines = []
    for stage in dict.fromkeys(row["stage"] for row in rows):
        own = [row for row in rows if row["stage"] == stage]
        for start in range(0, len(own), _MAP_WIDTH):
            part = own[start : start + _MAP_WIDTH]
            name = "" if stage is None else f"stage {stage}  "
            marks = "".join(_shade(row["own_ratio"]) for row in part)
            lines.append(f"{name}rank {part[0]['rank']:>4}  {marks}")
    if len(lines) > _MAP_LINES and not look.details and not look.only:
        lines = [*lines[:_MAP_LINES], f"… {len(lines) - _MAP_LINES} more lines: --only ranks"]
    bounds = ", ".join(f"{shade} x{bound:g}" for shade, bound in zip(_SHADES[1:], _BOUNDS, strict=True))
    title = f"Map of the ranks, own time of peers: · less, {bounds} and more"
    return Lines(title, tuple(lines), section="ranks", is_first=found.baseline is None, is_drawing=True)


def _heat_map(found: Cluster) -> HeatMap | None:
    """Each rank in each step; of many ranks each by the median over its steps."""
    ranks = sorted(records(found.tables["ranks"]), key=lambda row: (row["stage"] or 0, row["rank"]))
    if len(ranks) < 2:
        return None
    if len(ranks) > _MAP_WIDTH:
        parts = [ranks[start : start + _MAP_WIDTH] for start in range(0, len(ranks), _MAP_WIDTH)]
        return HeatMap(tuple((f"rank {part[0]['rank']}", tuple(map(_rank_cell, part))) for part in parts))
    cells: dict[int, list[tuple[str, float | None]]] = {row["rank"]: [] for row in ranks}
    for row in records(found.tables["steps"]):
        words = f"rank {row['rank']}, step {row['step']}: {cell(row['own_ns'], 'ns')}, {_factor('own_ratio')(row)}"
        cells[row["rank"]].append((words, row["own_ratio"]))
    return (
        HeatMap(tuple((f"rank {rank}", tuple(own)) for rank, own in cells.items() if own))
        if any(cells.values())
        else None
    )


def _rank_cell(row: Row) -> tuple[str, float | None]:
    return f"rank {row['rank']}: {cell(row['own_ns'], 'ns')}, {_factor('own_ratio')(row)}", row["own_ratio"]


def _shade(ratio: float | None) -> str:
    return "?" if ratio is None else _SHADES[sum(ratio >= bound for bound in _BOUNDS)]


def _next(found: Cluster, look: Look) -> Iterator[str]:
    chosen, run = found.options, str(found.run["reference"])
    sides = [run] if found.baseline is None else [str(found.baseline["reference"]), run]
    given: list[tuple[str, Any]] = [("--rank", rank) for rank in chosen.ranks]
    given += [("--stage", chosen.stage), ("--step", format_numbers(chosen.steps) or None)]
    given += [("--workload", chosen.workload), ("--microbatches", chosen.microbatches)]
    options = [str(part) for name, value in given if value is not None for part in (name, value)]
    if not look.details and not look.only:
        yield command_of(("tracker", "cluster"), sides, [*options, "--details"])
    ranks = records(found.tables["ranks"])
    slow = next((row for row in ranks if row["verdict"] == SLOW), None)
    peer = _peer(ranks, slow["rank"]) if slow else None
    if slow and peer is not None and run.startswith("run:"):
        yield command_of(("tracker", "diff"), [f"{run}:rank{peer}", f"{run}:rank{slow['rank']}"], [])
    yield command_of(("tracker", "cluster"), sides, [*options, "-o", "cluster.xlsx"])
