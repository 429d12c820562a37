"""The ranks of one run on screen: who holds the job back, a map of the ranks, then stages, roles, groups and links."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.compare.references import short_name
from tracker.reports.cells import READABLE, ColumnsOf, blank, cell, number, rate, readable, share, signed, words
from tracker.reports.commands import command_of, words_of
from tracker.reports.document import (
    NAME,
    UNDER,
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
from tracker.reports.rows import list_notes, table_of
from tracker.reports.text import ROWS
from tracker.reports.view import View, choose_tables
from tracker.results import CLUSTER_SECTIONS, SLOW, Cluster
from tracker.results.cluster import (
    BalanceRow,
    CallRow,
    ChangeRow,
    ClusterRows,
    GroupRow,
    HostRow,
    PeerRow,
    PipelineRow,
    RankLinkRow,
    RankOperatorRow,
    RankRow,
    RankStepRow,
    RoleRow,
    StageRow,
)
from tracker.units import MISSING_TEXT, counted, format_bytes, format_diff, format_ns, format_numbers

if TYPE_CHECKING:
    from tracker.results.screens import Rows

_TITLES: Final = {
    "ranks": "Ranks by own time, as a ratio to the median of their peers", "steps": "Own time of each rank and step",
    "hosts": "Hosts", "stages": "Stages", "pipeline": "Pipeline",
    "roles": "Communication by parallel type, median of the steps",
    "peers": "Waiting for other ranks, median of the steps",
    "groups": "Process groups, over the whole capture", "calls": "Longest collectives", "links": "Links",
    "operators": "Operators over the ranks: what equal ranks would save, over all steps",
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
"""Columns of the map of more than _FEW_RANKS ranks; more steps are grouped by their median."""
_FEW_RANKS: Final = 16
_TONE_OF_VERDICT: Final = {"SLOW": "worse", "SUSPECT": "strong", "UNEVEN": "strong"}
_CAUSES: Final = {"host": "CPU side"}
"""Causes that are called otherwise where a machine is a host, too."""
_METRICS: Final = {"own_ns": "own time", "own_max_ns": "own time, slowest", "step_ns": "step", "wait_ns": "waits"}


def _factor(value: float | None) -> str:
    return MISSING_TEXT if value is None else f"x{value:.2f}"


def _chance(q: float | None) -> str:
    return MISSING_TEXT if q is None else f"{q:.3f}" if q >= 0.001 else "<0.001"


def _metric(name: str) -> str:
    return _METRICS.get(name, name.removesuffix("_ns").replace("_", " "))


_rank = ColumnsOf(RankRow)
_step = ColumnsOf(RankStepRow)
_host = ColumnsOf(HostRow)
_stage = ColumnsOf(StageRow)
_pipeline = ColumnsOf(PipelineRow)
_role = ColumnsOf(RoleRow)
_waited = ColumnsOf(PeerRow)
_group = ColumnsOf(GroupRow)
_call = ColumnsOf(CallRow)
_rank_link = ColumnsOf(RankLinkRow)
_operator = ColumnsOf(RankOperatorRow)
_balance = ColumnsOf(BalanceRow)
_change = ColumnsOf(ChangeRow)


def _steps_of(count: int | None) -> str:
    return "" if count is None else number(count)


def _rank_verdict_words(row: RankRow) -> str:
    if row.partial:
        return "partial: not judged"
    cause = _CAUSES.get(row.cause or "", row.cause)
    return ", ".join(filter(None, (row.verdict, cause, row.place)))


def _longest_rank(row: StageRow) -> str:
    if row.own_max_rank is None:
        return MISSING_TEXT
    return f"{format_ns(row.own_max_ns)} ({number(row.own_max_rank)})"


def _name_peer(row: PeerRow) -> str:
    return number(row.peer) if row.is_global else f"{row.peer} of the group"


def _is_captured(row: PeerRow) -> str:
    if row.captured is None:
        return MISSING_TEXT
    return "yes" if row.captured else "no"


def _is_complete(row: GroupRow) -> str:
    return "yes" if row.complete else "no"


def _link_verdict_words(row: RankLinkRow) -> str:
    return ", ".join(filter(None, (row.verdict, row.place)))


def _calls(row: RankOperatorRow) -> str:
    return " to ".join(map(number, dict.fromkeys((row.fewest_calls, row.most_calls))))


def _value(row: ChangeRow, value: float | None) -> str:
    if value is None or row.unit == "ns":
        return cell(value, "ns", row.baseline_value, row.candidate_value)
    return f"{value:,.3f}"


def _change_in_percent(row: ChangeRow) -> str:
    return "" if row.diff is None else format_diff(row.diff)


_SHAPES: Final[Mapping[str, tuple[Column, ...]]] = {
    "ranks": (
        _rank.number("rank", lambda row: number(row.rank)),
        _rank.text("host", lambda row: words(row.host), drop=3, elastic=True),
        _rank.number("stage", lambda row: words(row.stage), drop=4),
        _rank.number("step", lambda row: format_ns(row.step_ns)),
        _rank.number("own time", lambda row: format_ns(row.own_ns)),
        _rank.number("of peers", lambda row: _factor(row.own_ratio)),
        _rank.number("slowest", lambda row: _steps_of(row.slowest_steps), drop=2),
        _rank.number("q", lambda row: _chance(row.q), drop=2),
        _rank.number("compute", lambda row: format_ns(row.compute_ns), drop=5),
        _rank.number("exposed comm.", lambda row: format_ns(row.exposed_communication_ns), drop=1),
        _rank.number("waits", lambda row: format_ns(row.wait_ns), drop=1),
        _rank.number("idle", lambda row: format_ns(row.idle_ns), drop=5),
        _rank.text("verdict", _rank_verdict_words),
    ),
    "steps": (
        _step.number("rank", lambda row: number(row.rank)),
        _step.number("step", lambda row: number(row.step)),
        _step.number("own time", lambda row: format_ns(row.own_ns)),
        _step.number("of peers", lambda row: _factor(row.own_ratio)),
    ),
    "hosts": (
        _host.text("host", lambda row: row.host, elastic=True),
        _host.number("ranks", lambda row: number(row.ranks)),
        _host.number("own time of others", lambda row: _factor(row.own_ratio)),
        _host.number("slowest", lambda row: number(row.slowest_steps)),
        _host.number("q", lambda row: _chance(row.q)),
        _host.text("verdict", lambda row: blank(row.verdict)),
    ),
    "stages": (
        _stage.number("stage", lambda row: words(row.stage)),
        _stage.number("ranks", lambda row: number(row.ranks)),
        _stage.number("own time", lambda row: format_ns(row.own_ns)),
        _stage.number("slowest rank", _longest_rank),
        _stage.number("spread", lambda row: _factor(row.spread), drop=1),
        _stage.number("compute", lambda row: format_ns(row.compute_ns), drop=2),
        _stage.number("exposed comm.", lambda row: format_ns(row.exposed_communication_ns), drop=2),
        _stage.number("idle", lambda row: format_ns(row.idle_ns), drop=3),
        _stage.number("bubble", lambda row: format_ns(row.bubble_ns)),
        _stage.number("of step", lambda row: share(row.bubble_share)),
        _stage.number("preparing", lambda row: format_ns(row.preparing_ns), drop=4),
        _stage.text("verdict", lambda row: blank(row.verdict)),
    ),
    "pipeline": (
        _pipeline.number("stages", lambda row: number(row.stages)),
        _pipeline.number("microbatches", lambda row: number(row.microbatches)),
        _pipeline.number("model", lambda row: format_ns(row.model_ns)),
        _pipeline.number("with even ranks", lambda row: format_ns(row.even_ns)),
        _pipeline.number("with even stages", lambda row: format_ns(row.flat_ns)),
        _pipeline.number("slowdown", lambda row: _factor(row.slowdown)),
        _pipeline.number("ideal bubble", lambda row: share(row.ideal_bubble_share), drop=1),
    ),
    "roles": (
        _role.text("role", lambda row: row.role),
        _role.number("rank", lambda row: number(row.rank)),
        _role.number("calls", lambda row: number(row.calls)),
        _role.number("time", lambda row: format_ns(row.total_ns)),
        _role.number("exposed", lambda row: format_ns(row.exposed_ns)),
        _role.number("share", lambda row: share(row.exposed_share)),
        _role.number("waits", lambda row: format_ns(row.wait_ns)),
    ),
    "peers": (
        _waited.number("rank", lambda row: number(row.rank)),
        _waited.text("role", lambda row: row.role),
        _waited.number("waits for rank", _name_peer),
        _waited.number("captured", _is_captured),
        _waited.number("calls", lambda row: number(row.calls)),
        _waited.number("waits", lambda row: format_ns(row.wait_ns)),
        _waited.number("longest call", lambda row: format_ns(row.longest_ns)),
        _waited.text("told by", lambda row: row.told_by, drop=1),
    ),
    "groups": (
        _group.text("role", lambda row: row.role),
        _group.text("ranks", lambda row: row.ranks, **UNDER),
        _group.text("kind", lambda row: row.kind),
        _group.number("calls", lambda row: number(row.calls)),
        _group.number("bytes", lambda row: format_bytes(row.bytes), drop=3),
        _group.number("time", lambda row: format_ns(row.elapse_ns)),
        _group.number("transit", lambda row: format_ns(row.transit_ns)),
        _group.number("waits", lambda row: format_ns(row.wait_ns)),
        _group.number("most by", lambda row: words(row.most_wait_rank), drop=1),
        _group.number("exposed", lambda row: format_ns(row.exposed_ns), drop=2),
        _group.number("bus GB/s", lambda row: rate(row.bus_gb_per_s), drop=2),
        _group.number("complete", _is_complete, drop=4),
    ),
    "calls": (
        _call.text("role", lambda row: row.role),
        _call.text("ranks", lambda row: row.ranks, **UNDER),
        _call.text("kind", lambda row: row.kind),
        _call.number("step", lambda row: number(row.step)),
        _call.number("bytes", lambda row: format_bytes(row.bytes), drop=1),
        _call.number("longest", lambda row: format_ns(row.elapse_ns)),
        _call.number("transit", lambda row: format_ns(row.transit_ns)),
        _call.number("last rank", lambda row: words(row.last_rank)),
        _call.number("late by", lambda row: format_ns(row.late_ns)),
    ),
    "links": (
        _rank_link.text("transport", lambda row: row.transport),
        _rank_link.number("from rank", lambda row: number(row.source_rank)),
        _rank_link.number("to rank", lambda row: number(row.target_rank)),
        _rank_link.number("bytes", lambda row: format_bytes(row.bytes)),
        _rank_link.number("GB/s", lambda row: rate(row.bandwidth_gb_per_s)),
        _rank_link.number("z", lambda row: rate(row.z), drop=1),
        _rank_link.text("verdict", _link_verdict_words),
    ),
    "operators": (
        _operator.text("operator", lambda row: readable(row.name), **NAME),
        _operator.text("input shapes", lambda row: row.input_shapes, **UNDER),
        _operator.number("stage", lambda row: words(row.stage), drop=3),
        _operator.number("ranks", lambda row: number(row.ranks), drop=2),
        _operator.number("calls", _calls, drop=1),
        _operator.number("median", lambda row: format_ns(row.median_ns)),
        _operator.number("minimum", lambda row: format_ns(row.min_ns), drop=4),
        _operator.number("maximum", lambda row: format_ns(row.max_ns)),
        _operator.number("rank", lambda row: number(row.max_rank)),
        _operator.number("would save", lambda row: format_ns(row.saving_ns)),
    ),
    "balance": (
        _balance.number("stage", lambda row: words(row.stage)),
        _balance.text("quantity", lambda row: row.quantity),
        _balance.number("mean", lambda row: cell(row.mean, row.unit)),
        _balance.number("largest", lambda row: cell(row.max, row.unit)),
        _balance.number("rank", lambda row: number(row.max_rank)),
        _balance.number("imbalance", lambda row: _factor(row.imbalance)),
    ),
    "changes": (
        _change.text("section", lambda row: row.section),
        _change.text("of", lambda row: row.name, elastic=True),
        _change.text("metric", lambda row: _metric(row.metric)),
        _change.number("baseline", lambda row: _value(row, row.baseline_value)),
        _change.number("candidate", lambda row: _value(row, row.candidate_value)),
        _change.number("change", lambda row: signed(_value(row, row.delta), row.delta)),
        _change.number("change %", _change_in_percent),
    ),
}
"""Section -> its columns on screen."""


def _find_tone(row: Struct) -> str:
    """Return the tone of a row by its verdict, "" for none."""
    if isinstance(row, RankRow | HostRow | StageRow | RankLinkRow):
        return _TONE_OF_VERDICT.get(row.verdict or "", "")
    return ""


def _find_rank(row: Struct) -> int | None:
    """Return the rank that a row is about, None for none."""
    match row:
        case RankRow() | RoleRow() | PeerRow():
            return row.rank
        case GroupRow():
            return row.most_wait_rank
        case CallRow():
            return row.last_rank
        case RankLinkRow():
            return row.source_rank
        case BalanceRow():
            return row.max_rank
    return None


def _link(found: Cluster, row: Struct) -> Target | None:
    """Return where the numbers of a row lead: a step or stage of the run, the history of an operator, or the rank that
    it names beside a peer.
    """
    run, workload = ("RUN", str(found.run["run_id"])), found.run.get("workload")
    if isinstance(row, RankStepRow):
        return Target("run", (run, ("--rank", str(row.rank)), ("--step", str(row.step))))
    if isinstance(row, StageRow):
        return None if row.stage is None else Target("cluster", (run, ("--stage", str(row.stage))))
    if isinstance(row, RankOperatorRow):
        is_named = workload and row.name not in READABLE
        return Target("history", (("KEY", row.name), ("--workload", str(workload)))) if is_named else None
    rank = _find_rank(row)
    peer = _find_peer(found.rows.ranks, rank)
    if peer is None:
        return None
    return Target("diff", tuple(("side", f"run:{found.run['run_id']}:rank{one}") for one in (peer, rank)))


def document(found: Cluster, look: Look) -> Document:
    """Return the report of `tracker cluster`."""
    run = found.run
    what = " ".join(str(run[name]) for name in ("workload", "version") if run.get(name) and run[name] != "files")
    hosts = len({row.host for row in found.rows.ranks if row.host})
    named = [
        what if run["reference"] != run.get("version") else short_name(run["reference"], str(run["workload"])),
        str(run["device"]),
    ]
    named += [str(run.get("configuration") or ""), counted(run["captured"], "rank")]
    named += [counted(hosts, "host")] if hosts > 1 else []
    against = (
        "" if found.baseline is None else f"{short_name(found.baseline['reference'], found.baseline['workload'])} -> "
    )
    return Document(
        title=f"{against}{', '.join(filter(None, named))}",
        headline=found.answer,
        verdict=found.verdict,
        tone=_TONE_OF_VERDICT.get(found.verdict, ""),
        remarks=found.remarks,
        blocks=tuple(_blocks(found, look)),
        notes=tuple(f"Note: {note}" for note in found.notes),
        next_commands=tuple(_next(found, look)),
    )


def _blocks(found: Cluster, look: Look) -> Iterator[Block]:
    changes = found.rows.changes
    if changes:
        first = _table(found, "changes", look.rows(_FIRST_ROWS * 3))
        yield replace(first, is_first=not look.only)
    for section in CLUSTER_SECTIONS:
        is_first = section in _FIRST and _matters(section, found.rows) and not changes
        made = _table(found, section, look.rows(ROWS if look.details or look.only else _FIRST_ROWS))
        if made.rows:
            yield replace(made, is_first=is_first, chart=_heat_map(found) if section == "ranks" else None)
        elif section in look.only:
            yield replace(made, note="no rows; what the captures cannot tell stands there without --only")
        if section == "ranks" and len(found.rows.ranks) > 1:
            yield _map(found, look)
    if found.missing:
        yield Lines("What the captures cannot tell", found.missing, is_wrapped=True)


def _find_peer(ranks: Sequence[RankRow], rank: int | None) -> int | None:
    """Return the rank without a verdict, of the stage of `rank`, that is most like all peers by its own time, or None.

    Such a rank is what `rank` is best compared with.
    """
    if rank is None:
        return None
    stage = next((row.stage for row in ranks if row.rank == rank), None)
    distances: dict[int, float] = {}
    for row in ranks:
        if row.own_ratio and not row.verdict and row.rank != rank and row.stage == stage:
            distances[row.rank] = abs(row.own_ratio - 1.0)
    return min(distances, key=distances.__getitem__, default=None)


def _matters(section: str, rows: ClusterRows) -> bool:
    """Return whether a section says something that the headline does not: several stages or hosts, a pipeline with its
    model, links with a verdict.
    """
    if section == "links":
        return any(row.verdict for row in rows.links)
    if section == "pipeline":
        return any(row.model_ns is not None for row in rows.pipeline)
    if section == "stages":
        return len(rows.stages) > 1
    return section != "hosts" or len(rows.hosts) > 1


def _table(found: Cluster, section: str, limit: int | None) -> Table:
    """Return the first rows of a section, with the columns that say something in any."""
    rows: Sequence[Struct] = getattr(found.rows, section)
    kept = rows[:limit]
    shown = []
    for column in _SHAPES[section]:
        if not kept or any(column.cell(row) not in ("", MISSING_TEXT) for row in kept):
            shown.append(column)
    made = table_of(_TITLES[section], shown, kept, tone=_find_tone, more=len(rows) - len(kept), section=section)
    # only a stored run has pages
    if section == "changes" or found.run.get("run_id") is None:
        return made
    return replace(made, links=tuple(_link(found, row) for row in kept))


def _map(found: Cluster, look: Look) -> Lines:
    """Draw a character per rank: the darker, the longer its own time beside that of its peers."""
    rows = sorted(found.rows.ranks, key=lambda row: (row.stage or 0, row.rank))
    lines = []
    for stage in dict.fromkeys(row.stage for row in rows):
        own = [row for row in rows if row.stage == stage]
        for start in range(0, len(own), _MAP_WIDTH):
            part = own[start : start + _MAP_WIDTH]
            name = "" if stage is None else f"stage {stage}  "
            marks = "".join(_shade(row.own_ratio) for row in part)
            lines.append(f"{name}rank {part[0].rank:>4}  {marks}")
    if len(lines) > _MAP_LINES and not look.details and not look.only:
        lines = [*lines[:_MAP_LINES], f"… {len(lines) - _MAP_LINES} more lines: --only ranks"]
    bounds = ", ".join(f"{shade} from x{bound:g}" for shade, bound in zip(_SHADES[1:], _BOUNDS, strict=True))
    title = f"Map of the ranks, own time by that of the peers: · less, {bounds}"
    return Lines(title, tuple(lines), section="ranks", is_first=found.baseline is None, is_drawing=True)


def _heat_map(found: Cluster) -> HeatMap | None:
    """Draw each rank in each step, of many steps the median of some; of many ranks each by the median of its steps."""
    ranks = sorted(found.rows.ranks, key=lambda row: (row.stage or 0, row.rank))
    number = found.run.get("run_id")
    if len(ranks) < 2:
        return None
    if len(ranks) > _MAP_WIDTH:
        parts = [ranks[start : start + _MAP_WIDTH] for start in range(0, len(ranks), _MAP_WIDTH)]
        names = tuple(f"+{at}" for at in range(_MAP_WIDTH))
        return HeatMap(
            "rank",
            names,
            tuple((str(part[0].rank), tuple(_rank_cell(row, number) for row in part)) for part in parts),
        )
    own = {(row.rank, row.step): row for row in found.rows.steps}
    steps = sorted({step for _, step in own})
    if not steps:
        return None
    size = -(-len(steps) // (_MAP_STEPS if len(ranks) > _FEW_RANKS else _MAP_WIDTH))
    groups = [steps[start : start + size] for start in range(0, len(steps), size)]
    rows = []
    for row in ranks:
        cells = tuple(_step_cell(row.rank, group, own, number) for group in groups)
        rows.append((f"rank {row.rank}", cells))
    return HeatMap("step", tuple(str(group[0]) for group in groups), tuple(rows))


def _step_cell(rank: int, steps: list[int], own: Mapping[tuple[int, int], RankStepRow], number: int | None) -> HeatCell:
    """Return the cell of a rank in one step, or in several by their median."""
    rows = [own[rank, step] for step in steps if (rank, step) in own]
    ratios = [row.own_ratio for row in rows if row.own_ratio is not None]
    ratio = median(ratios) if ratios else None
    if len(steps) == 1:
        link = None
        if number is not None and rows:
            link = Target("run", (("RUN", str(number)), ("--rank", str(rank)), ("--step", str(steps[0]))))
        time = format_ns(rows[0].own_ns) if rows else "not captured"
        return HeatCell(f"rank {rank}, step {steps[0]}: {time}, {_factor(ratio)}", ratio, link)
    return HeatCell(f"rank {rank}, steps {steps[0]} to {steps[-1]}: median {_factor(ratio)}", ratio)


def _rank_cell(row: RankRow, number: int | None) -> HeatCell:
    link = None if number is None else Target("run", (("RUN", str(number)), ("--rank", str(row.rank))))
    return HeatCell(f"rank {row.rank}: {format_ns(row.own_ns)}, {_factor(row.own_ratio)}", row.own_ratio, link)


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
    slow = next((row.rank for row in found.rows.ranks if row.verdict == SLOW), None)
    peer = _find_peer(found.rows.ranks, slow)
    if peer is not None and run.startswith("run:"):
        yield command_of(("tracker", "diff"), [f"{run}:rank{peer}", f"{run}:rank{slow}"], [])
    yield command_of(("tracker", "cluster"), sides, [*options, "-o", "cluster.xlsx"])


def list_csv(found: Cluster, look: Look) -> dict[str, Rows]:
    """Return the chosen tables; where a reader chose none, with the sentences."""
    tables = choose_tables(found, look)
    if not look.only:
        tables["notes"] = list_notes((found.headline, *found.remarks, *found.missing))
    return tables


VIEW = View(document, csv=list_csv, workbook="cluster")
