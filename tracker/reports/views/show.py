"""The document of one run: how long a step takes, where its time goes, and its largest operators; all tables as
details.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from tracker.compare.references import FILES
from tracker.profile import NOT_LISTED, NOT_LISTED_COLLECTIVES
from tracker.reports.cells import PARTS, READABLE, cell, number, readable, share
from tracker.reports.commands import command_of, options_of, others_of
from tracker.reports.document import NAME, Bars, Block, Column, Document, Lines, Look, Table, few, table
from tracker.reports.rows import records
from tracker.reports.text import ROWS
from tracker.reports.views import bottleneck, show_tables, tree
from tracker.reports.views.advice import advice_table
from tracker.reports.views.sections import PRUNED, history_of, in_section, names_modules
from tracker.reports.views.show_tables import OF_E2E
from tracker.results import Shown
from tracker.units import (
    MISSING_TEXT,
    counted,
    format_moment,
    format_ns,
    format_numbers,
    ranges,
    some_of,
    steps_words,
    time_unit,
)

_FACTS: Final = 12


def document(shown: Shown, look: Look) -> Document:
    """The first screen has the parts of a step and the largest operators; a tree that was chosen takes their place."""
    run = shown.run
    device = " ".join(str(run[name]) for name in ("vendor", "device") if run.get(name)) or "unknown device"
    expected, ranks = run.get("ranks_expected"), run.get("ranks")
    size = (
        f"rank {number(records(shown.tables['overall'])[0].get('rank'))}" if ranks == 1 else counted(ranks or 0, "rank")
    )
    if expected and expected != ranks:
        size = f"{ranks} of {expected} ranks"
    steps = steps_words(shown.options.steps) if shown.options.steps else counted(run.get("steps") or 0, "step")
    what = " ".join(str(run[name]) for name in ("workload", "version") if run.get(name))
    what = "" if run.get("workload") == FILES else what
    words = [what, device, str(run.get("configuration") or ""), size, steps if run.get("steps") else "no step markers"]
    state = "" if run.get("state", "active") == "active" else f" [{run['state']}: {run.get('state_reason') or '-'}]"
    return Document(
        title=f"{_name(shown)}: {', '.join(filter(None, words))}{state}",
        headline=_headline(shown),
        remarks=tuple(_remarks(shown)),
        blocks=tuple(_blocks(shown, look)),
        notes=tuple(_notes(shown, look)),
        next_commands=tuple(_next(shown, look)),
    )


def _name(shown: Shown) -> str:
    run = shown.run
    if run.get("workload") != FILES and run.get("run_id"):
        return f"run {run['run_id']}"
    paths = list(dict.fromkeys(str(row["path"]) for row in records(shown.tables["sources"])))
    return str(run.get("reference") or "") or some_of(paths, most=2) or "run"


def _headline(shown: Shown) -> str:
    """How long a step takes, of how long to how long; without steps the whole capture, with the shares of its parts."""
    run, ranks = shown.run, records(shown.tables["overall"])
    step = run.get("step_ns")
    if step is not None:
        rows = records(shown.tables["steps"])
        ends = [row[name] for row in rows for name in ("shortest_ns", "longest_ns") if row.get(name) is not None]
        unit = time_unit(step, *ends)
        spread = ""
        if len(ends) > 2 and min(ends) != max(ends):
            spread = f" ({format_ns(min(ends), unit).split(' ')[0]} to {format_ns(max(ends), unit)})"
        return f"{format_ns(step, unit)} per step{spread}"
    known = [row["e2e_ns"] for row in ranks if row.get("e2e_ns") is not None]
    e2e = sum(known) / len(known) if known else run.get("e2e_ns")
    if e2e is None:
        return "The source states neither a step time nor how long the capture is"
    mean = f" (mean of {counted(len(ranks), 'rank')})" if len(ranks) > 1 else ""
    return f"E2E {cell(e2e, 'ns')}{mean} of the whole capture"


def _remarks(shown: Shown) -> Iterator[str]:
    if shown.run.get("tags"):
        yield f"tags: {shown.run['tags']}"
    unlike: dict[str, list[int]] = {}
    for row in records(shown.tables["overall"]):
        if row.get("quality", "ok") != "ok":
            unlike.setdefault(f"{row['quality']}: {row.get('quality_reason')}", []).append(row.get("rank") or 0)
    for why, ranks in unlike.items():
        yield f"rank {ranks[0]} is {why}" if len(ranks) == 1 else f"ranks {ranges(sorted(ranks))} are {why}"


def _blocks(shown: Shown, look: Look) -> Iterator[Block]:
    limit = look.rows(ROWS)
    if shown.tree_table is not None:
        yield tree.of_run(shown, look)
        if not look.only:
            return
    parts = _step(shown)
    if parts.rows:
        yield parts
    yield _largest(shown, look)
    for section in look.sections():
        found = show_tables.SECTIONS[section](shown, limit)
        yield from in_section(found, section, look.only, shown.options, shown.is_pruned)
    if shown.advice and not look.only:
        made = advice_table(shown.advice, str(shown.run["workload"]))
        yield replace(made, title="What could make it faster: tracker advise has all of it")
    facts = [row for row in records(shown.tables["facts"]) if row["kind"] == "fact"]
    if facts:
        more = [f"and {len(facts) - _FACTS} more"] if len(facts) > _FACTS and not look.details else []
        listed = facts if look.details else facts[:_FACTS]
        yield Lines("Facts", tuple([f"{row['key']}={row['value']}" for row in listed] + more), is_first=False)


def _step(shown: Shown) -> Table:
    """The parts of a step, or of the capture without step markers, with their share; memory below."""
    numbers: Mapping[str, Any] = shown.run.get("per_step") or {}
    e2e, step = numbers.get("e2e_ns"), shown.run.get("step_ns")
    whole = step or e2e
    known = [(numbers[name], PARTS[name]) for name in OF_E2E if numbers.get(name)]
    unit = time_unit(*(value for value, _ in known))
    if known and step and e2e and abs(step - e2e) > 0.001 * step:
        known.append((step - e2e, PARTS["outside_ns"]))
    rows = [("", [label, format_ns(value, unit), share(value / whole) if whole else ""]) for value, label in known]
    bars: list[float | None] = [value / whole if whole else None for value, _ in known]
    for name, label, kind in (
        ("data_loading_ns", "data loading", "ns"),
        ("samples_per_second", "samples per second", "count"),
        ("peak_allocated_bytes", "peak memory", "bytes"),
    ):
        if numbers.get(name):
            rows.append(("", [label, cell(numbers[name], kind), ""]))
    columns = [Column("", left=True), Column(""), Column("of step" if step else "of E2E")]
    parts = tuple(value for value, _ in known)
    drawn = Bars(tuple(label for _, label in known), (("step" if step else "E2E", format_ns(step or e2e), parts),))
    bars += [None] * (len(rows) - len(bars))
    return table("", columns, rows, is_first=True, bars=tuple(bars), chart=drawn if known else None)


def _largest(shown: Shown, look: Look) -> Table:
    """The operators with the most time, all shapes of a name together; kernels where no operator is known."""
    own = show_tables.self_time(shown)
    found = [row for row in records(show_tables.ops_by(shown, "name")) if row[own]]
    rows = [(row["name"], row[own], row["calls"]) for row in found]
    word, what, kind = "operator", "self time", "op_name"
    if not any(row["name"] not in READABLE for row in found) and len(shown.tables["kernels"]):
        sums: dict[str, list[float]] = {}
        for row in records(shown.tables["kernels"]):
            name = row["canonical_name"] or row["name"]
            if name not in (NOT_LISTED, NOT_LISTED_COLLECTIVES) and row["total_ns"]:
                total = sums.setdefault(name, [0.0, 0.0])
                total[:] = total[0] + row["total_ns"], total[1] + (row["calls"] or 0)
        rows = [(name, both[0], both[1]) for name, both in sums.items()]
        word, what, kind = "kernel", "time", "kernel"
    rows.sort(key=lambda row: (-row[1], row[0]))
    whole = sum(row[1] for row in rows)
    kept = rows[: look.rows(ROWS)]
    place = own.split("_", maxsplit=1)[0] if word == "operator" else "device"
    steps = 1 if shown.options.steps else max(shown.run.get("steps") or 1, 1)
    columns = [Column(word, **NAME), Column(f"{place} {what}"), Column("share"), Column("calls")]
    lines = [("", [readable(name), format_ns(time), share(time / whole), number(calls)]) for name, time, calls in kept]
    if more := rows[len(kept) :]:
        rest = sum(row[1] for row in more)
        lines.append(("sum", [f"{len(more):,} other {word}s", format_ns(rest), share(rest / whole), ""]))
    note = "" if lines else PRUNED if shown.is_pruned else f"no {word} has {place} {what}"
    over = f"all {steps} steps" if steps > 1 else "the capture"
    over = steps_words(shown.options.steps) if shown.options.steps else over
    ranks = f" and {shown.run['ranks']} ranks" if (shown.run.get("ranks") or 1) > 1 else ""
    links = tuple(history_of(shown.run.get("workload"), name, ("--kind", kind)) for name, _, _ in kept)
    return table(f"Largest {word}s, over {over}{ranks}", columns, lines, note=note, is_first=True, links=links)


def _notes(shown: Shown, look: Look) -> Iterator[str]:
    if shown.bottleneck is not None:
        yield f"Bottleneck: {bottleneck.sentence(shown.bottleneck)}"
    remarks = tuple(_remarks(shown))
    yield from few([note for note in shown.notes if not any(remark.endswith(note) for remark in remarks)], look)
    run = shown.run
    started = run.get("started_at_ns")
    when = f"started {format_moment(started)} UTC, " if started else ""
    size = f", world size {run['world_size']}" if run.get("world_size") else ""
    yield f"{when}format {run.get('format') or MISSING_TEXT}{size}"


def _next(shown: Shown, look: Look) -> Iterator[str]:
    run_id, chosen = shown.run.get("run_id"), shown.options
    reference = str(shown.run.get("reference") or f"run:{run_id}")
    by = chosen.by if chosen.tree else ()
    words = options_of(chosen, ("--step", format_numbers(chosen.steps)), ("--by", by), ("--depth", chosen.depth))
    file = f"run{run_id or ''}.xlsx"
    more = [] if look.details or look.only or chosen.tree else ["--details"]
    yield command_of(("tracker", "show"), [reference], [*words, *(more or ["-o", file])])
    if more:
        modules = ["--by module"] if names_modules(shown.tables["modules"]) else []
        yield from others_of([reference], *modules, f"-o {file}")
        if not chosen.steps:
            yield command_of(("tracker", "advise"), [reference])
