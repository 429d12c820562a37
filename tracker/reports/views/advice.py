"""Advice on screen: what each change can win at most, on what that rests, and what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracker.compare.headline import short_labels
from tracker.reports.cells import cell, number, readable, share
from tracker.reports.commands import command_of
from tracker.reports.document import NAME, SENTENCE, UNDER, Block, Column, Document, Lines, Table, Target, table
from tracker.reports.look import Look
from tracker.reports.rows import records
from tracker.reports.text import ROWS
from tracker.results import Advice, Advised
from tracker.results.advice import GONE, NEW
from tracker.units import MISSING_TEXT, counted, format_ns

if TYPE_CHECKING:
    from tracker.columns import Columns

_FIRST: Final = 5
_FEW: Final = 3
_EFFICIENCY: Final = (
    Column("operator", **NAME), Column("input shapes", **UNDER), Column("type", drop=2), Column("calls", drop=3),
    Column("per step"), Column("TFLOP/s"), Column("GB/s", drop=4), Column("bound", left=True, drop=1),
    Column("efficiency"),
)  # fmt: skip
_TYPES: Final = {"half": "16 bit", "byte": "8 bit", "fp32": "32 bit", "fp64": "64 bit", "tf32": "tf32"}


def document(found: Advised, look: Look) -> Document:
    """The report of `tracker advise`."""
    return Document(
        title=_title(found),
        headline=found.headline,
        tone="strong" if found.items else "",
        remarks=tuple(_remarks(found)),
        blocks=tuple(_blocks(found, look)),
        notes=tuple(f"Note: {note}" for note in found.notes),
        next_commands=tuple(_next(found, look)),
    )


def _title(found: Advised) -> str:
    run = found.run
    what = " ".join(str(run[name]) for name in ("workload", "version") if run.get(name) and run[name] != "files")
    label = short_labels([run["reference"]])[0]
    words = [what if what.endswith(label) or run["reference"].startswith("run:") else label, str(run["device"] or "")]
    words += [str(run.get("configuration") or ""), f"step {format_ns(found.step_ns)}" if found.step_ns else ""]
    words += [f"bottleneck: {found.bottleneck}"] if found.bottleneck else []
    before = "" if found.baseline is None else f"{short_labels([found.baseline['reference']])[0]} -> "
    return f"{before}{', '.join(filter(None, words))}"


def _remarks(found: Advised) -> Iterator[str]:
    if found.use.get("hfu") is not None:
        model = f", MFU {share(found.use['mfu'])}" if found.use.get("mfu") is not None else ""
        least = "at least " if found.use["is_partial"] else ""
        rate, peak = found.use["tflops_per_s"], found.use["peak_tflops"]
        source = str(found.use["peak_source"]).partition(";")[0]
        yield f"HFU {least}{share(found.use['hfu'])}{model}: {rate:,.1f} of {peak:,g} TFLOP/s ({source})."
    if any(item.gain_ns for item in found.items):
        yield "Bounds, no promises: changes of the same work do not add up."


def _blocks(found: Advised, look: Look) -> Iterator[Block]:
    items = found.items
    limit = look.rows(None if look.details else _FIRST)
    if items:
        made = advice_table(items if limit is None else items[:limit], found.run["workload"], len(found.run["run_ids"]))
        yield replace(made, more=len(items) - len(made.rows), is_first=True)
    if found.missing:
        yield Lines("What cannot be judged", found.missing, is_wrapped=True, is_first=len(found.missing) <= _FEW)
    if len(found.tables["efficiency"]):
        yield efficiency_table(found.tables["efficiency"], look.rows(ROWS))


def advice_table(items: Sequence[Advice], workload: str, runs: int = 1) -> Table:
    """A row per piece of advice, and under it its evidence, what to do, and the lines of code."""
    columns = [Column("advice", **SENTENCE), Column("at most"), Column("of step")]
    columns += [Column("severity", left=True, drop=2)]
    rows = []
    for item in items:
        status = f"{item.status}: " if item.status else ""
        where = [
            f"stage {item.stage}" if item.stage is not None else "",
            f"rank {item.rank}" if item.rank is not None else "",
        ]
        before = f" (was {format_ns(item.baseline_gain_ns)})" if item.baseline_gain_ns is not None else ""
        many = f" in {item.runs} of {counted(runs, 'run')}" if item.runs < runs else ""
        place = ", ".join(filter(None, where))
        text = f"{item.rule} {status}{readable(item.title)}{f', {place}' if place else ''}{before}{many}"
        gain = MISSING_TEXT if item.gain_ns is None else cell(item.gain_ns, "ns")
        tone = "better" if item.status == GONE else "worse" if item.status == NEW else ""
        rows.append((tone, [text, gain, share(item.gain_share), item.severity if item.gain_ns else ""]))
    made = table("", columns, rows)
    of = ("--workload", workload)
    links = tuple(None if item.op is None else Target("history", (("KEY", item.op), of)) for item in items)
    return replace(made, below=tuple(below(item) for item in items), links=links)


def below(item: Advice) -> str:
    """Evidence, remedies and code of a piece of advice, in sentences."""
    evidence = "; ".join(one.words for one in item.numbers)
    parts = [f"{evidence[:1].upper()}{evidence[1:]}{' (a hint)' if item.confidence == 'hint' else ''}."]
    parts += [f"Do: {'; '.join(item.remedies[:_FEW])}." if item.remedies and item.status != GONE else ""]
    parts += [f"Code: {'; '.join(item.code)}." if item.code else ""]
    return " ".join(filter(None, parts))


def efficiency_table(efficiency: Columns | None, limit: int | None) -> Table:
    """How near each operator with FLOPs comes to what the device can do; without rows where that was not asked."""
    rows = [] if efficiency is None else records(efficiency)
    kept = rows[:limit]
    lines = [
        ("", [readable(row["name"]), str(row["input_shapes"] or ""), _TYPES.get(row["number_kind"] or "", MISSING_TEXT),
              number(row["calls"]), cell(row["total_ns"], "ns"), f"{row['tflops_per_s']:,.1f}",
              MISSING_TEXT if row["gb_per_s"] is None else f"{row['gb_per_s']:,.0f}", row["bound"] or MISSING_TEXT,
              share(row["efficiency"]) if row["efficiency"] is not None else MISSING_TEXT])
        for row in kept
    ]  # fmt: skip
    measured = bool(rows) and all(row["ceiling"] != "spec" for row in rows)
    note = "Efficiency by the fastest of this run: the device is not in the table of devices." if measured else ""
    title = "Efficiency: floor of the time by the time"
    return replace(table(title, _EFFICIENCY, lines, more=len(rows) - len(kept), note=note), section="efficiency")


def _next(found: Advised, look: Look) -> Iterator[str]:
    run = str(found.run["reference"])
    sides = [run] if found.baseline is None else [str(found.baseline["reference"]), run]
    chosen = found.options
    given = [
        ("--workload", chosen.workload),
        ("--microbatches", chosen.microbatches),
        ("--only", ",".join(chosen.only)),
    ]
    options = [str(part) for name, value in given if value for part in (name, value)]
    options += [part for rule in chosen.rules for part in ("--rule", rule)]
    if not look.details:
        yield command_of(("tracker", "advise"), sides, [*options, "--details"])
    if not chosen.everything and not chosen.rules:
        yield command_of(("tracker", "advise"), sides, [*options, "--all"])
    if found.baseline is None:
        yield command_of(
            ("tracker", "show"), [run] if len(found.run["run_ids"]) == 1 else [f"run:{found.run['run_ids'][-1]}"]
        )
    else:
        yield command_of(("tracker", "diff"), sides, ["--workload", chosen.workload] if chosen.workload else [])
