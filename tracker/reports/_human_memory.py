"""Tables for people of memory: what ops allocate, who owns the peak, the largest single allocations; of a run and of a
diff."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracker.profile import BEFORE_CAPTURE, MAX_BLOCKS
from tracker.reports import _human_verdicts
from tracker.reports._human import (
    NAME,
    PLACE,
    UNDER,
    Column,
    Row,
    Table,
    cell,
    diff_cell,
    grain_cells,
    grain_columns,
    make,
    number,
    pair,
    readable,
    share,
    side_cells,
    side_columns,
    tone,
    top,
    values,
    verdict_columns,
)
from tracker.reports.shared import is_small, records
from tracker.results import Diff, Shown
from tracker.units import MISSING_TEXT

if TYPE_CHECKING:
    import pandas as pd

_NO_SHAPES: Final = "-"


def memory(shown: Shown, limit: int | None) -> Table:
    """Ops that allocate most."""
    rows, more = top(shown.memory, limit)
    columns = [*grain_columns(rows), Column("operator", **NAME), Column("input shapes", **UNDER)]
    columns += [
        Column("allocator", **UNDER),
        Column("component", left=True),
        Column("allocations"),
        Column("bytes"),
        Column("unreleased"),
        Column("held", drop=1),
    ]
    cells = []
    for row in rows:
        sizes = [row["bytes"], row["unreleased_bytes"]]
        line = [readable(row["op"]), row["input_shapes"] or "", _through(row), row["component"] or MISSING_TEXT]
        line += [number(row["calls"]), *(cell(size, "bytes", *sizes) for size in sizes), cell(row["held_ns"], "ns")]
        cells.append(("", [*grain_cells(row), *line]))
    return make("Memory allocated by operators", columns, cells, more=more)


def diff_memory(diff: Diff, limit: int | None) -> Table:
    """Ops by change of the bytes that they allocate."""
    table = diff.tables["memory"]
    rows, more = top(table, limit)
    columns = [Column("operator", **NAME), Column("input shapes", **UNDER), Column("allocator", **UNDER)]
    columns += side_columns(calls="allocations")
    cells = []
    for row in rows:
        line = [readable(row["name"]), row["input_shapes"] or _NO_SHAPES, _through(row)]
        line += [*side_cells(row, of="bytes", unit="bytes"), *_human_verdicts.cells(table, row)]
        cells.append((tone(row, row["delta_bytes"]), line))
    return make("Memory allocated by operators", [*columns, *verdict_columns(table)], cells, more=more)


def _through(row: Row) -> str:
    """The helper that made the call, where it is not the op itself."""
    own, others = row.get("allocator"), row.get("more_allocators")
    more = f" and {number(others)} more" if others else ""
    return "" if not own or (own == row.get("op", row.get("name")) and not more) else f"{own}{more}"


def peak(shown: Shown, limit: int | None) -> Table:
    """Who held the memory when it was most, of the rank with the highest peak; with a line per component."""
    frame = _highest(shown)
    rows, more = top(frame, limit)
    several = len(set(frame["component"])) > 1
    columns = [Column("operator", **NAME), Column("input shapes", **UNDER), Column("module", **UNDER)]
    columns += [Column("allocator", **UNDER), *([Column("component", left=True)] if several else [])]
    columns += [Column("blocks", drop=1), Column("bytes"), Column("share"), Column("since", drop=2)]
    columns.append(Column("code", **PLACE))
    totals = {name: own.sum(min_count=1) for name, own in frame.groupby("component", sort=False)["bytes"]}
    cells = []
    for row in rows:
        whole = totals[row["component"]]
        part = row["bytes"] / whole if row["bytes"] is not None and whole else None
        line = [row["op"], row["input_shapes"] or "", row["module"] or "", _through(row)]
        line += [row["component"]] * several
        line += [
            number(row["calls"]),
            cell(row["bytes"], "bytes"),
            share(part),
            _since(row["first_ns"], row["first_step"]),
        ]
        cells.append(("", [*line, row["code_line"] or ""]))
    for component, own in frame.groupby("component", sort=False):
        known = None if own["bytes"].isna().any() else int(own["bytes"].sum())
        line = [
            f"= peak of {component}",
            "",
            "",
            "",
            *([component] if several else []),
            "",
            cell(known, "bytes"),
            "",
            "",
        ]
        cells.append(("sum", [*line, ""]))
    found = make(f"Memory at the peak, by owner{_when(frame)}", columns, cells if rows else [], more=more)
    ranks = len(set(shown.memory_peak["rank"]))
    return replace(found, note=f"The rank with the highest peak of {ranks}.") if ranks > 1 and rows else found


def _highest(shown: Shown) -> pd.DataFrame:
    """The rows of the rank with the highest peak, those of the component with most memory first."""
    frame = shown.memory_peak
    if not len(frame):
        return frame
    sums = frame.groupby("rank")["bytes"].sum()
    frame = frame[frame["rank"] == sums.idxmax()]
    size = frame.groupby("component")["bytes"].transform("sum")
    order = frame.assign(_size=size, _before=frame["op"] == BEFORE_CAPTURE)
    order = order.sort_values(["_size", "component", "bytes"], ascending=[False, True, False], kind="stable")
    return order.drop(columns=["_size", "_before"]).reset_index(drop=True)


def _when(frame: pd.DataFrame) -> str:
    """The moment of the peak of the first component, in words."""
    if not len(frame):
        return ""
    row = records(frame.head(1))[0]
    return f" (rank {number(row['rank'])}, {_since(row['peak_ns'], row['peak_step'])})"


def _since(time_ns: int | None, step: int | None) -> str:
    """A moment: its time from the start of the capture, and its step."""
    if time_ns is None:
        return ""
    where = f", step {number(step)}" if step is not None and step >= 0 else ""
    return f"{cell(time_ns, 'ns')}{where}"


def blocks(shown: Shown, limit: int | None) -> Table:
    """The largest single allocations."""
    frame = shown.memory_blocks.sort_values("bytes", ascending=False, kind="stable").reset_index(drop=True)
    rows, more = top(frame, limit)
    columns = [Column("operator", **NAME), Column("input shapes", **UNDER), Column("module", **UNDER)]
    columns += [Column("rank", drop=1), Column("component", left=True, drop=2), Column("bytes"), Column("at")]
    columns += [Column("held"), Column("code", **PLACE)]
    cells = []
    for row in rows:
        line = [readable(row["op"]), row["input_shapes"] or "", row["module"] or "", number(row["rank"])]
        line += [row["component"], cell(row["bytes"], "bytes"), _since(row["time_ns"], row["step"]), _held(row)]
        cells.append(("", [*line, row["code_line"] or ""]))
    return make("Largest single allocations", columns, cells, more=more, note=_cut(shown) if rows else "")


def _held(row: Row, prefix: str = "") -> str:
    """How long a block was held: to the end of the capture where it was not released."""
    if row[f"{prefix}is_released"] == 0:
        return "not released"
    return cell(row[f"{prefix}held_ns"], "ns")


def _cut(shown: Shown) -> str:
    """How many allocations were not kept one by one; "" where all were."""
    allocations, kept = shown.memory["calls"].sum(), len(shown.memory_blocks)
    if shown.options.op or shown.options.module or allocations <= kept:
        return ""
    return f"{kept:,} of {allocations:,} allocations are stored one by one: the largest {MAX_BLOCKS} of each component."


def diff_peak(diff: Diff, limit: int | None) -> Table:
    """Who held the memory when it was most, on both sides, by change."""
    table = diff.tables["memory_peak"]
    every = records(table)
    several = len({row["component"] for row in every}) > 1
    rows, more = top(table, limit)
    columns = [Column("operator", **NAME), Column("input shapes", **UNDER), Column("module", **UNDER)]
    columns += [Column("allocator", **UNDER), *([Column("component", left=True)] if several else [])]
    columns += [*side_columns(calls="blocks"), Column("code", **PLACE)]
    cells = []
    for row in rows:
        line = [row["name"], row["input_shapes"] or "", row["module"] or "", _through(row)]
        line += [row["component"]] * several
        cells.append(
            (tone(row, row["delta_bytes"]), [*line, *side_cells(row, "bytes", "bytes"), row["code_line"] or ""])
        )
    for component in sorted({row["component"] for row in every}):
        own = [row for row in every if row["component"] == component]
        line = [f"= peak of {component}", "", "", "", *([component] if several else []), ""]
        cells.append(("sum", [*line, *_sum_cells(own), ""]))
    return make("Memory at the peak, by owner", columns, cells if rows else [], more=more)


def _sum_cells(rows: Sequence[Row]) -> list[str]:
    """Both peaks, their difference and DIFF."""
    sums: list[float | None] = []
    for side in ("baseline", "candidate"):
        own = [row[f"{side}_bytes"] for row in rows if row["status"] == "both" or row[f"{side}_bytes"] is not None]
        sums.append(None if not own or None in own else sum(own))
    before, after = sums
    delta = None if before is None or after is None else after - before
    change = None if delta is None or not before else delta / before
    return [*values("bytes", before, after, delta), diff_cell({"diff": change})]


def peak_changed(diff: Diff) -> bool:
    """Whether what is held at the peak changed by more than two runs of one program differ in."""
    rows = records(diff.tables["memory_peak"])
    before = sum(row["baseline_bytes"] or 0 for row in rows)
    return any(row["delta_bytes"] and before and not is_small(row["delta_bytes"] / before) for row in rows)


def diff_blocks(diff: Diff, limit: int | None) -> Table:
    """The largest single allocations of both sides, the largest of an op beside the largest of it."""
    rows, more = top(diff.tables["memory_blocks"], limit)
    columns = [Column("operator", **NAME), Column("input shapes", **UNDER), Column("allocator", **UNDER)]
    columns += [Column("place", drop=1), *side_columns(calls=""), Column("held"), Column("code", **PLACE)]
    cells = []
    for row in rows:
        line = [readable(row["name"]), row["input_shapes"] or "", _through(row), number(row["place"])]
        held = pair(*(_held(row, side) if row[f"{side}bytes"] is not None else MISSING_TEXT for side in _SIDES))
        cells.append((tone(row, row["delta_bytes"]), [*line, *side_cells(row, "bytes", "bytes")[1:], held, _line(row)]))
    return make("Largest single allocations", columns, cells, more=more)


_SIDES: Final = ("baseline_", "candidate_")


def _line(row: Row) -> str:
    return str(row["candidate_code_line"] or row["baseline_code_line"] or "")
