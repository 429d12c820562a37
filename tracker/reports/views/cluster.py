"""The ranks of one run on screen: who holds the job back, a map of the ranks, then stages, roles, groups and links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracker.compare.references import short_labels
from tracker.reports.cells import READABLE, cell, col, number, of, rate, signed, words
from tracker.reports.commands import command_of, words_of
from tracker.reports.document import (
    UNDER,
    WORDS,
    Block,
    Column,
    Document,
    HeatCell,
    HeatMap,
    Lines,
    Look,
    Table,
    Target,
)
from tracker.reports.rows import Row, list_notes, records, table_of
from tracker.reports.text import ROWS
from tracker.reports.view import View, choose_tables
from tracker.reports.views.sections import OPERATOR, SHAPES
from tracker.results import SLOW, Cluster
from tracker.units import MISSING_TEXT, counted, format_diff, format_numbers

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.results.screens import Rows

_TITLES: Final = {
    "ranks": "Ranks by own time, as a ratio to the median of their peers", "steps": "Own time of each rank and step",
    "hosts": "Hosts", "stages": "Stages", "pipeline": "Pipeline",
    "roles": "Communication by parallel type, median of the steps",
    "peers": "Waiting for other ranks, median of the steps",
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
_MAP_STEPS: Final = 32
_FEW_RANKS: Final = 16
"""Steps that a map of more than so many ranks shows; of more it shows medians."""
_RANK_OF: Final = {
    "ranks": "rank", "steps": "rank", "roles": "rank", "peers": "rank", "groups": "most_wait_rank",
    "calls": "last_rank", "links": "source_rank", "balance": "max_rank",
}  # fmt: skip
"""Section -> the column with the rank that a row is about."""
_OF: Final = {"SLOW": "worse", "SUSPECT": "strong", "UNEVEN": "strong"}
_CAUSES: Final = {"host": "CPU side"}
"""Causes that are called otherwise where a machine is a host, too."""
_METRICS: Final = {"own_ns": "own time", "own_max_ns": "own time, slowest", "step_ns": "step", "wait_ns": "waits"}


def _factor(value: float | None) -> str:
    return MISSING_TEXT if value is None else f"x{value:.2f}"


def _chance(q: float | None) -> str:
    return MISSING_TEXT if q is None else f"{q:.3f}" if q >= 0.001 else "<0.001"


def _metric(name: str) -> str:
    return _METRICS.get(name, name.removesuffix("_ns").replace("_", " "))


def _calls(row: Row) -> str:
    return " to ".join(map(number, dict.fromkeys((row["fewest_calls"], row["most_calls"]))))


def _peer_cell(row: Row) -> str:
    return number(row["peer"]) if row["is_global"] else f"{row['peer']} of the group"


def _captured_cell(row: Row) -> str:
    return MISSING_TEXT if row["captured"] is None else "yes" if row["captured"] else "no"


def _verdict(row: Row) -> str:
    if row.get("partial"):
        return "partial: not judged"
    cause = _CAUSES.get(row.get("cause") or "", row.get("cause"))
    return ", ".join(filter(None, (row["verdict"], cause, row.get("place"))))


_SHAPES: Final[Mapping[str, tuple[Column, ...]]] = {
    "ranks": (
        col("rank"), col("host", form=words, drop=3, **WORDS), Column("stage", of("stage", words), drop=4),
        col("step", "step_ns"), col("own time", "own_ns"), col("of peers", "own_ratio", _factor),
        Column("slowest", lambda row: "" if row["slowest_steps"] is None else number(row["slowest_steps"]), drop=2),
        col("q", form=_chance, drop=2), col("compute", "compute_ns", drop=5),
        col("exposed comm.", "exposed_communication_ns", drop=1), col("waits", "wait_ns", drop=1),
        col("idle", "idle_ns", drop=5), Column("verdict", _verdict, left=True),
    ),
    "steps": (
        col("rank"), col("step"), col("own time", "own_ns"), col("of peers", "own_ratio", _factor),
    ),
    "hosts": (
        col("host", form=words, **WORDS), col("ranks"), col("own time of others", "own_ratio", _factor),
        col("slowest", "slowest_steps"), col("q", form=_chance), Column("verdict", _verdict, left=True),
    ),
    "stages": (
        Column("stage", of("stage", words)), col("ranks"), col("own time", "own_ns"),
        Column("slowest rank", lambda row: f"{cell(row['own_max_ns'], 'ns')} ({number(row['own_max_rank'])})"),
        col("spread", form=_factor, drop=1), col("compute", "compute_ns", drop=2),
        col("exposed comm.", "exposed_communication_ns", drop=2), col("idle", "idle_ns", drop=3),
        col("bubble", "bubble_ns"), col("of step", "bubble_share"), col("preparing", "preparing_ns", drop=4),
        Column("verdict", _verdict, left=True),
    ),
    "pipeline": (
        col("stages"), col("microbatches"), col("model", "model_ns"), col("with even ranks", "even_ns"),
        col("with even stages", "flat_ns"), Column("slowdown", of("slowdown", _factor)),
        col("ideal bubble", "ideal_bubble_share", drop=1),
    ),
    "roles": (
        col("role", form=words), col("rank"), col("calls"), col("time", "total_ns"), col("exposed", "exposed_ns"),
        col("share", "exposed_share"), col("waits", "wait_ns"),
    ),
    "peers": (
        col("rank"), col("role", form=words), Column("waits for rank", _peer_cell), Column("captured", _captured_cell),
        col("calls"), col("waits", "wait_ns"), col("longest call", "longest_ns"), col("told by", "told_by", drop=1),
    ),
    "groups": (
        col("role", form=words), Column("ranks", of("ranks", words), **UNDER), col("kind", form=words), col("calls"),
        col("bytes", drop=3), col("time", "elapse_ns"), col("transit", "transit_ns"), col("waits", "wait_ns"),
        col("most by", "most_wait_rank", words, drop=1), col("exposed", "exposed_ns", drop=2),
        col("bus GB/s", "bus_gb_per_s", drop=2),
        Column("complete", lambda row: "yes" if row["complete"] else "no", drop=4),
    ),
    "calls": (
        col("role", form=words), Column("ranks", of("ranks", words), **UNDER), col("kind", form=words), col("step"),
        col("bytes", drop=1), col("longest", "elapse_ns"), col("transit", "transit_ns"),
        col("last rank", "last_rank", words), col("late by", "late_ns"),
    ),
    "links": (
        col("transport", form=words), col("from rank", "source_rank"), col("to rank", "target_rank"), col("bytes"),
        col("GB/s", "bandwidth_gb_per_s"), Column("z", of("z", rate), drop=1), Column("verdict", _verdict, left=True),
    ),
    "operators": (
        OPERATOR, SHAPES, Column("stage", of("stage", words), drop=3), col("ranks", drop=2),
        Column("calls", _calls, drop=1), col("median", "median_ns"), col("minimum", "min_ns", drop=4),
        col("maximum", "max_ns"), col("rank", "max_rank"), col("would save", "saving_ns"),
    ),
    "balance": (
        Column("stage", of("stage", words)), col("quantity", form=words),
        Column("mean", lambda row: cell(row["mean"], row["unit"])),
        Column("largest", lambda row: cell(row["max"], row["unit"])), col("rank", "max_rank"),
        Column("imbalance", of("imbalance", _factor)),
    ),
    "changes": (
        col("section", form=words), col("of", "name", words, **WORDS), col("metric", form=_metric),
        Column("baseline", lambda row: _value(row, "baseline_value")),
        Column("candidate", lambda row: _value(row, "candidate_value")),
        Column("change", lambda row: signed(_value(row, "delta"), row["delta"])),
        Column("change %", lambda row: "" if row["diff"] is None else format_diff(row["diff"])),
    ),
}  # fmt: skip
"""Section -> its columns on screen."""


def _value(row: Row, name: str) -> str:
    value = row[name]
    if value is None or row["unit"] == "ns":
        return cell(value, "ns", row["baseline_value"], row["candidate_value"])
    return f"{value:,.3f}"


def document(found: Cluster, look: Look) -> Document:
    """Return the report of `tracker cluster`."""
    run = found.run
    what = " ".join(str(run[name]) for name in ("workload", "version") if run.get(name) and run[name] != "files")
    hosts = len({host for host in found.tables["ranks"].listed("host") if host})
    named = [
        what if run["reference"] != run.get("version") else short_labels([run["reference"]])[0],
        str(run["device"]),
    ]
    named += [str(run.get("configuration") or ""), counted(run["captured"], "rank")]
    named += [counted(hosts, "host")] if hosts > 1 else []
    against = "" if found.baseline is None else f"{short_labels([found.baseline['reference']])[0]} -> "
    return Document(
        title=f"{against}{', '.join(filter(None, named))}",
        headline=found.answer,
        verdict=found.verdict,
        tone=_OF.get(found.verdict, ""),
        remarks=found.remarks,
        blocks=tuple(_blocks(found, look)),
        notes=tuple(f"Note: {note}" for note in found.notes),
        next_commands=tuple(_next(found, look)),
    )


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
            yield replace(made, note="no rows; what the captures cannot tell stands there without --only")
        if section == "ranks" and len(rows) > 1:
            yield _map(found, look)
    if found.missing:
        yield Lines("What the captures cannot tell", found.missing, is_wrapped=True)


def _links(found: Cluster, section: str, rows: list[Row]) -> Iterator[Target | None]:
    """Yield where the numbers of each row lead: a step or stage of the run, the history of an operator, or the rank
    that it names beside a peer.
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
    """Return the rank without a verdict, of the stage of `rank`, that is most like all peers by its own time, or None.

    Such a rank is what `rank` is best compared with.
    """
    if rank is None:
        return None
    stage = next((row["stage"] for row in ranks if row["rank"] == rank), None)
    peers = []
    for row in ranks:
        is_usual = row["own_ratio"] and not row["verdict"]
        if is_usual and row["rank"] != rank and row["stage"] == stage:
            peers.append(row)
    nearest = min(peers, key=lambda row: abs(row["own_ratio"] - 1.0), default=None)
    return None if nearest is None else nearest["rank"]


def _matters(section: str, rows: Columns) -> bool:
    """Return whether a section says something that the headline does not: several stages, links with a verdict."""
    if section == "links":
        return any(rows.listed("verdict"))
    if section == "pipeline":
        return any(value is not None for value in rows.listed("model_ns"))
    return section not in ("stages", "hosts") or len(rows) > 1


def _table(section: str, rows: Columns, limit: int | None) -> Table:
    """Return the rows of a section, with the columns that say something in any."""
    kept = records(rows.head(limit))
    known = [
        one for one in _SHAPES[section] if not kept or any(one.cell(row) not in ("", MISSING_TEXT) for row in kept)
    ]
    tone, more = (lambda row: _OF.get(row.get("verdict") or "", "")), len(rows) - len(kept)
    return table_of(_TITLES[section], known, kept, tone=tone, more=more, section=section)


def _map(found: Cluster, look: Look) -> Lines:
    """Draw a character per rank: the darker, the longer its own time beside that of its peers."""
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
    bounds = ", ".join(f"{shade} from x{bound:g}" for shade, bound in zip(_SHADES[1:], _BOUNDS, strict=True))
    title = f"Map of the ranks, own time by that of the peers: · less, {bounds}"
    return Lines(title, tuple(lines), section="ranks", is_first=found.baseline is None, is_drawing=True)


def _heat_map(found: Cluster) -> HeatMap | None:
    """Draw each rank in each step, of many steps the median of some; of many ranks each by the median of its steps."""
    ranks = sorted(records(found.tables["ranks"]), key=lambda row: (row["stage"] or 0, row["rank"]))
    number = found.run.get("run_id")
    if len(ranks) < 2:
        return None
    if len(ranks) > _MAP_WIDTH:
        parts = [ranks[start : start + _MAP_WIDTH] for start in range(0, len(ranks), _MAP_WIDTH)]
        names = tuple(f"+{at}" for at in range(_MAP_WIDTH))
        return HeatMap(
            "rank",
            names,
            tuple((str(part[0]["rank"]), tuple(_rank_cell(row, number) for row in part)) for part in parts),
        )
    own = {(row["rank"], row["step"]): row for row in records(found.tables["steps"])}
    steps = sorted({step for _, step in own})
    if not steps:
        return None
    size = -(-len(steps) // (_MAP_STEPS if len(ranks) > _FEW_RANKS else _MAP_WIDTH))
    groups = [steps[start : start + size] for start in range(0, len(steps), size)]
    rows = []
    for row in ranks:
        cells = tuple(_step_cell(row["rank"], group, own, number) for group in groups)
        rows.append((f"rank {row['rank']}", cells))
    return HeatMap("step", tuple(str(group[0]) for group in groups), tuple(rows))


def _step_cell(rank: int, steps: list[int], own: Mapping[tuple[int, int], Row], number: int | None) -> HeatCell:
    """Return the cell of a rank in one step, or in several by their median."""
    rows = [own[rank, step] for step in steps if (rank, step) in own]
    ratios = [row["own_ratio"] for row in rows if row["own_ratio"] is not None]
    ratio = median(ratios) if ratios else None
    if len(steps) == 1:
        link = None
        if number is not None and rows:
            link = Target("run", (("RUN", str(number)), ("--rank", str(rank)), ("--step", str(steps[0]))))
        time = cell(rows[0]["own_ns"], "ns") if rows else "not captured"
        return HeatCell(f"rank {rank}, step {steps[0]}: {time}, {_factor(ratio)}", ratio, link)
    return HeatCell(f"rank {rank}, steps {steps[0]} to {steps[-1]}: median {_factor(ratio)}", ratio)


def _rank_cell(row: Row, number: int | None) -> HeatCell:
    link = None if number is None else Target("run", (("RUN", str(number)), ("--rank", str(row["rank"]))))
    words = f"rank {row['rank']}: {cell(row['own_ns'], 'ns')}, {_factor(row['own_ratio'])}"
    return HeatCell(words, row["own_ratio"], link)


def _shade(ratio: float | None) -> str:
    # as it is printed: x1.05 has the shade of x1.05
    return "?" if ratio is None else _SHADES[sum(round(ratio, 2) >= bound for bound in _BOUNDS)]


def _next(found: Cluster, look: Look) -> Iterator[str]:
    chosen, run = found.options, str(found.run["reference"])
    sides = [run] if found.baseline is None else [str(found.baseline["reference"]), run]
    options = words_of(
        ("--rank", chosen.ranks), ("--stage", chosen.stage), ("--step", format_numbers(chosen.steps)),
        ("--workload", chosen.workload), ("--microbatches", chosen.microbatches),
    )  # fmt: skip
    if not look.details and not look.only:
        yield command_of(("tracker", "cluster"), sides, [*options, "--details"])
    ranks = records(found.tables["ranks"])
    slow = next((row for row in ranks if row["verdict"] == SLOW), None)
    peer = _peer(ranks, slow["rank"]) if slow else None
    if slow and peer is not None and run.startswith("run:"):
        yield command_of(("tracker", "diff"), [f"{run}:rank{peer}", f"{run}:rank{slow['rank']}"], [])
    yield command_of(("tracker", "cluster"), sides, [*options, "-o", "cluster.xlsx"])


def list_csv(found: Cluster, look: Look) -> dict[str, Rows]:
    """Return the chosen tables; where a reader chose none, with the sentences."""
    tables = choose_tables(found, look)
    if not look.only:
        tables["notes"] = list_notes((found.headline, *found.remarks, *found.missing))
    return tables


VIEW = View(document, csv=list_csv, workbook="cluster")
