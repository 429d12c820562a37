"""The document of a calibration: the smallest slowdown that is found, and how many verdicts of repeats are false."""

from __future__ import annotations

from typing import Final

from tracker.reports import cells
from tracker.reports.commands import command
from tracker.reports.document import NAME, UNDER, Block, Column, Document, Look, Table, table
from tracker.reports.rows import Row, records
from tracker.reports.views.history import KINDS
from tracker.results import Calibration
from tracker.units import MISSING_TEXT, counted, format_diff

_USUAL: Final = 3
"""Runs of a version that the headline speaks of, where so many were tried."""
_ROWS: Final = 5


def document(calibration: Calibration, look: Look) -> Document:
    """What is found with how many runs, and whether the thresholds are quiet enough."""
    where = ", ".join(filter(None, (calibration.workload, calibration.device, calibration.configuration)))
    splits = f"{counted(calibration.windows, 'window')} of neighbours, {counted(calibration.splits, 'split')}"
    counts = f"{counted(len(calibration.run_ids), 'run')} of {', '.join(calibration.versions)}"
    loud, found = _loud(calibration), [row for row in records(calibration.power) if row["kind"] == "run"]
    known = [row for row in found if row["detectable"] is not None]
    best = next((row for row in known if row["runs"] == _USUAL), known[-1] if known else None)
    smallest = "No slowdown of the step is found with the runs tried"
    if best is not None:
        smallest = (
            f"A slowdown of the step is found from {_percent(round(best['detectable'], 3))} with {best['runs']} runs"
        )
    quiet = "thresholds are quiet: at most 1 false verdict per comparison"
    if loud:
        words = [f"{KINDS[row['kind']]} ({cells.number(row['used_false'])} false verdicts)" for row in loud]
        quiet = f"thresholds are too low for {', '.join(words)}"
    one = len(calibration.versions) == 1
    named = [*calibration.versions, "--workload", calibration.workload]
    repeats = named if one else [f"run:{number}" for number in calibration.run_ids]
    more = [] if look.details else ["--details"]
    first = ["--apply", "--reason", "..."] if loud else more
    following = [command("tracker", "calibrate", *repeats, *first), *(more if loud else [])]
    if len(calibration.series):
        following.append(command("tracker", "history", str(records(calibration.series)[0]["series_id"])))
    return Document(
        title=f"{where}: {counts}; {calibration.baseline} against {calibration.candidate} runs, {splits}",
        headline=f"{smallest} on {calibration.device}; {quiet}",
        tone="worse" if loud else "",
        blocks=tuple(_blocks(calibration, look)),
        notes=calibration.notes,
        next_commands=tuple(following),
    )


def _blocks(calibration: Calibration, look: Look) -> list[Block]:
    found: list[Block] = [_power(calibration), _false(calibration, look)]
    lines: list[tuple[str, list[str]]]
    series = [Column("series"), Column("name", **NAME), Column("of", **UNDER)]
    limit = None if look.details else look.rows(_ROWS)

    def line(row: Row, *more: str) -> list[str]:
        of = " ".join(filter(None, (KINDS[row["kind"]], row["input_shapes"], row["part"])))
        return [str(row["series_id"]), cells.readable(row["name"]), of, *more]

    if len(calibration.suspects):
        rows = records(calibration.suspects)
        needed = ["more than 16" if row["more_runs"] is None else str(row["more_runs"]) for row in rows]
        lines = [
            ("strong", line(row, format_diff(row["change"]), text)) for row, text in zip(rows, needed, strict=True)
        ]
        title = f"Suspects of {rows[0]['version']}, and how many more runs like its own decide them"
        found.append(_cut(title, [*series, Column("change"), Column("more runs")], lines, limit))
    if len(calibration.series):
        lines = []
        for row in records(calibration.series):
            value, part = cells.cell(row["value"], row["unit"]), cells.share(row["share"])
            lines.append(("", line(row, value, part, f"±{cells.share(row['spread'])}")))
        columns = [*series, Column("per step"), Column("of step", drop=2), Column("spread")]
        found.append(_cut("What varies most between runs", columns, lines, limit))
    return found


def _cut(title: str, columns: list[Column], lines: list[tuple[str, list[str]]], limit: int | None) -> Table:
    more = len(lines) - len(lines[:limit])
    note = "--details shows all" if more else ""
    return table(title, columns, lines[:limit], more=more, note=note, is_first=True)


def _power(calibration: Calibration) -> Table:
    """A row per series, a column per number of runs."""
    found: dict[int, list[Row]] = {}
    for row in records(calibration.power):
        found.setdefault(row["series_id"], []).append(row)
    runs = sorted({row["runs"] for own in found.values() for row in own})
    columns = [Column("name", **NAME), Column("of", **UNDER), Column("of step", drop=2)]
    columns += [Column(counted(count, "run")) for count in runs]
    lines: list[tuple[str, list[str]]] = []
    for own in found.values():
        least = {row["runs"]: row["detectable"] for row in own}
        line = [cells.readable(own[0]["name"]), str(own[0]["input_shapes"]), cells.share(own[0]["share"])]
        lines.append(("", [*line, *(format_diff(least.get(count)) for count in runs)]))
    title = "Smallest slowdown found in four of five cases, by runs of the version, against the 8 runs before it"
    return table(title, columns, lines, is_first=True)


def _false(calibration: Calibration, look: Look) -> Table:
    """False verdicts of a comparison at the threshold in use; with details at every smallest change that was tried."""
    rows = records(calibration.ratios)
    ratios = list(dict.fromkeys(row["min_ratio"] for row in rows))
    found = {(row["kind"], row["min_ratio"]): row for row in rows}
    columns = [Column("kind", left=True), Column("series"), Column("threshold"), Column("false verdicts")]
    columns += [Column("of series"), Column("needed")]
    # the smaller changes decide; what is left out first are the largest ones
    columns += [Column(f"at {_percent(ratio)}", drop=at) for at, ratio in enumerate(ratios)] if look.details else []
    loud, lines = _loud(calibration), []
    for row in records(calibration.proposals):
        part = MISSING_TEXT if row["used_share"] is None else f"{row['used_share'] * 100:.2g} %"
        line = [KINDS[row["kind"]], str(row["series"]), _percent(row["used_ratio"]), f"{row['used_false']:.2f}", part]
        line += [f"above {_percent(max(ratios))}" if row["proposed_ratio"] is None else _percent(row["proposed_ratio"])]
        line += [f"{found[row['kind'], ratio]['mean_false']:.2f}" for ratio in ratios] if look.details else []
        lines.append(("worse" if row in loud else "", line))
    title = "False verdicts per comparison, at the threshold in use, and the threshold needed for at most 1"
    return table(title, columns, lines, is_first=True)


def _loud(calibration: Calibration) -> list[Row]:
    """The kinds of series for which the threshold in use lets too many false verdicts through."""
    rows = records(calibration.proposals)
    return [row for row in rows if row["proposed_ratio"] is None or row["proposed_ratio"] > row["used_ratio"]]


def _percent(ratio: float) -> str:
    return f"{ratio * 100:g} %"
