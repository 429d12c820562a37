"""Advice on screen: what each change can win at most, on what that rests, and what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from tracker.compare.references import short_name
from tracker.reports.cells import ColumnsOf, number, readable, share
from tracker.reports.commands import command_of, words_of
from tracker.reports.document import SENTENCE, Block, Column, Document, Lines, Look, Table, Target
from tracker.reports.rows import plain, records, rows_of, table_of
from tracker.reports.text import ROWS
from tracker.reports.view import View
from tracker.reports.views.sections import OPERATOR, SHAPES
from tracker.reports.views.slow_steps import slow_steps_table
from tracker.results import Advice, Advised
from tracker.results.advice import GONE, NEW, EfficiencyRow
from tracker.schema.series import UNPROFILED_STEP
from tracker.units import MISSING_TEXT, counted, format_ns

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.results.screens import Rows

_FIRST: Final = 5
_FEW: Final = 3
_TYPES: Final = {"half": "16 bit", "byte": "8 bit", "fp32": "32 bit", "fp64": "64 bit", "tf32": "tf32"}


def document(found: Advised, look: Look) -> Document:
    """Return the report of `tracker advise`."""
    run = found.run
    what = " ".join(str(run[name]) for name in ("workload", "version") if run.get(name) and run[name] != "files")
    label = short_name(run["reference"], str(run["workload"]))
    words = [what if what.endswith(label) or run["reference"].startswith("run:") else label, str(run["device"] or "")]
    of_log = run.get(UNPROFILED_STEP)
    words += [str(run.get("configuration") or "")]
    words += [f"step {format_ns(of_log)} by the timer log, without a profiler"] if of_log else []
    words += [f"step {format_ns(found.step_ns)}{' under the profiler' if of_log else ''}" if found.step_ns else ""]
    words += [f"bottleneck: {found.bottleneck}"] if found.bottleneck else []
    before = (
        "" if found.baseline is None else f"{short_name(found.baseline['reference'], found.baseline['workload'])} -> "
    )
    remarks, blocks = [*found.partial.sentences], list[Block]()
    if found.use.get("hfu") is not None:
        model = f", MFU {share(found.use['mfu'])}" if found.use.get("mfu") is not None else ""
        least = "at least " if found.use["is_partial"] else ""
        rate, peak = found.use["tflops_per_s"], found.use["peak_tflops"]
        source = str(found.use["peak_source"]).partition(";")[0]
        remarks.append(f"HFU {least}{share(found.use['hfu'])}{model}: {rate:,.1f} of {peak:,g} TFLOP/s ({source}).")
    if found.baseline is None and found.how_the_step_adds_up:
        remarks.append(found.how_the_step_adds_up)
    if any(item.gain_ns and item.status != GONE for item in found.items):
        remarks.append("Bounds, no promises: changes of the same work do not add up.")
    if found.items:
        is_whole = look.details or found.options.everything
        shown = found.items[: look.rows(None if is_whole else _FIRST)]
        made = advice_table(shown, run["workload"], len(run["run_ids"]), with_sources=look.details)
        blocks.append(replace(made, more=len(found.items) - len(made.rows), is_first=True))
    if found.slow_steps:
        blocks.append(slow_steps_table({"": found.slow_steps}, look))
    if found.missing:
        is_first = len(found.missing) <= _FEW
        blocks.append(Lines("What cannot be judged", found.missing, is_wrapped=True, is_first=is_first))
    if len(found.tables["efficiency"]):
        blocks.append(efficiency_table(found.tables["efficiency"], look.rows(ROWS)))
    return Document(
        title=f"{before}{', '.join(filter(None, words))}",
        headline=found.headline,
        tone="strong" if found.items else "",
        remarks=tuple(remarks),
        blocks=tuple(blocks),
        notes=tuple(f"Note: {note}" for note in found.notes),
        next_commands=tuple(_next(found, look)),
    )


def advice_table(items: Sequence[Advice], workload: str, runs: int = 1, *, with_sources: bool = False) -> Table:
    """Return a row per piece of advice, and under it its evidence, what to do, and the lines of code.

    `with_sources`: and where the rule is from.
    """

    def text(item: Advice) -> str:
        status = f"{item.status}: " if item.status else ""
        where = [f"{name} {at}" for name, at in (("stage", item.stage), ("rank", item.rank)) if at is not None]
        gain_before_ns = item.gain_ns if item.status == GONE else item.baseline_gain_ns
        before = f" (was {format_ns(gain_before_ns)})" if gain_before_ns is not None else ""
        many = f" in {item.runs} of {counted(runs, 'run')}" if item.runs < runs else ""
        return f"{', '.join([f'{item.rule} {status}{readable(item.title)}', *where])}{before}{many}"

    def can_be_won(item: Advice) -> bool:
        # what is gone was won already
        return item.status != GONE

    columns = [
        Column("advice", text, **SENTENCE),
        Column("at most", lambda item: format_ns(item.gain_ns) if can_be_won(item) else ""),
        Column("of step", lambda item: share(item.gain_share) if can_be_won(item) else ""),
        Column("severity", lambda item: item.severity if item.gain_ns and can_be_won(item) else "", left=True, drop=2),
    ]
    of_workload = ("--workload", workload)
    return table_of(
        "", columns, items, below=partial(below, with_sources=with_sources),
        tone=lambda item: {GONE: "better", NEW: "worse"}.get(item.status, ""),
        links=lambda item: None if item.op is None else Target("history", (("KEY", item.op), of_workload)),
    )  # fmt: skip


def below(item: Advice, *, with_sources: bool = False) -> str:
    """Return evidence, remedies and code of a piece of advice, in sentences, and the sources of its rule."""
    evidence = "; ".join(one.words for one in item.numbers)
    parts = [f"{evidence[:1].upper()}{evidence[1:]}{' (a hint)' if item.confidence == 'hint' else ''}."]
    parts += [f"Do: {'; '.join(item.remedies[:_FEW])}." if item.remedies and item.status != GONE else ""]
    parts += [f"Code: {'; '.join(item.code)}." if item.code else ""]
    parts += [f"Source: {'; '.join(item.sources)}." if with_sources and item.sources else ""]
    return " ".join(filter(None, parts))


_use: Final = ColumnsOf(EfficiencyRow)


def _spell_rate(rate: float | None, digits: int) -> str:
    return MISSING_TEXT if rate is None else f"{rate:,.{digits}f}"


def efficiency_table(efficiency: Columns | None, limit: int | None) -> Table:
    """Return how near each operator with FLOPs comes to what the device can do.

    It has no rows where that was not chosen.
    """
    rows = [] if efficiency is None else rows_of(EfficiencyRow, efficiency)
    columns = [
        OPERATOR, SHAPES, _use.number("type", lambda row: _TYPES.get(row.number_kind or "", MISSING_TEXT), drop=2),
        _use.number("calls", lambda row: number(row.calls), drop=3),
        _use.number("mean per step", lambda row: format_ns(row.total_ns)),
        _use.number("TFLOP/s", lambda row: _spell_rate(row.tflops_per_s, 1)),
        _use.number("GB/s", lambda row: _spell_rate(row.gb_per_s, 0), drop=4),
        _use.text("bound", lambda row: readable(row.bound), drop=1),
        _use.number("efficiency", lambda row: share(row.efficiency)),
    ]  # fmt: skip
    measured = bool(rows) and all(row.ceiling != "spec" for row in rows)
    note = "Efficiency by the fastest of this run: the device is not in the table of devices." if measured else ""
    return table_of(
        "Efficiency: least possible time / measured time", columns, rows, limit, note=note, section="efficiency"
    )


def _next(found: Advised, look: Look) -> Iterator[str]:
    run = str(found.run["reference"])
    sides = [run] if found.baseline is None else [str(found.baseline["reference"]), run]
    chosen = found.options
    options = words_of(
        ("--workload", chosen.workload), ("--microbatches", chosen.microbatches), ("--only", ",".join(chosen.only)),
        ("--rule", chosen.rules),
    )  # fmt: skip
    if not look.details:
        yield command_of(("tracker", "advise"), sides, [*options, "--details"])
    if not chosen.everything and not chosen.rules:
        yield command_of(("tracker", "advise"), sides, [*options, "--all"])
    if found.baseline is None:
        if found.one_run:
            yield command_of(("tracker", "show"), [found.one_run])
    else:
        yield command_of(("tracker", "diff"), sides, words_of(("--workload", chosen.workload)))


def list_json(found: Advised, look: Look) -> dict[str, Any]:
    """Return the sides, what can be won together, the advice with its evidence, and the efficiency of operators."""
    names = (
        "headline", "run", "baseline", "step_ns", "together_ns", "loss", "accounts", "bottleneck", "missing", "notes",
        "slow_steps", "options",
    )  # fmt: skip
    document = {name: plain(getattr(found, name)) for name in names}
    limit = look.rows(None)
    advice = [plain(item) for item in found.items[:limit]]
    for item in advice:
        del item["is_shown"], item["marks"]
    document["advice"] = advice
    document["efficiency"] = plain(found.use) | {"rows": records(found.tables["efficiency"].head(limit))}
    return document


def list_csv(found: Advised, look: Look) -> dict[str, Rows]:
    """Return the advice, a row per item."""
    return {"advice": found.tables["advice"].head(look.rows(None))}


VIEW = View(document, json=list_json, csv=list_csv)
