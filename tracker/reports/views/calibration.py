"""The document of a calibration: the smallest slowdown that is found, and how many verdicts of repeats are false."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from tracker.reports import cells
from tracker.reports.cells import col, of, percent
from tracker.reports.commands import command
from tracker.reports.document import NAME, UNDER, Block, Column, Document, Look, Table, group
from tracker.reports.rows import Row, records, table_of
from tracker.reports.view import View
from tracker.results import Calibration
from tracker.units import MISSING_TEXT, counted, format_diff

_USUAL: Final = 3
"""Runs of a version that the headline speaks of, where so many were tried."""
_ROWS: Final = 5


def document(calibration: Calibration, look: Look) -> Document:
    """Return what is found with how many runs, and whether the thresholds give few false verdicts."""
    where = ", ".join(filter(None, (calibration.workload, calibration.device, calibration.configuration)))
    splits = f"{counted(calibration.windows, 'window')} of neighbours, {counted(calibration.splits, 'split')}"
    counts = f"{counted(len(calibration.run_ids), 'run')} of {', '.join(calibration.versions)}"
    loud = [row for row in records(calibration.tables["proposals"]) if _is_loud(row)]
    found = [row for row in records(calibration.tables["power"]) if row["kind"] == "run"]
    known = [row for row in found if row["detectable"] is not None]
    best = next((row for row in known if row["runs"] == _USUAL), known[-1] if known else None)
    smallest = "No slowdown of the step is found with the runs tried"
    if best is not None:
        smallest = (
            f"A slowdown of the step is found from {percent(round(best['detectable'], 3))} with {best['runs']} runs"
        )
    quiet = "the thresholds give at most 1 false verdict per comparison"
    if loud:
        words = [f"{cells.KINDS[row['kind']]} ({cells.number(row['used_false'])} false verdicts)" for row in loud]
        quiet = f"thresholds are too low for {', '.join(words)}"
    one = len(calibration.versions) == 1
    named = [*calibration.versions, "--workload", calibration.workload]
    repeats = named if one else [f"run:{number}" for number in calibration.run_ids]
    more = [] if look.details else ["--details"]
    first = ["--apply", "--reason", "..."] if loud else more
    following = [command("tracker", "calibrate", *repeats, *first)]
    if loud and more:
        following.append(command("tracker", "calibrate", *repeats, *more))
    if len(calibration.tables["series"]):
        following.append(command("tracker", "history", str(records(calibration.tables["series"])[0]["series_id"])))
    return Document(
        title=f"{where}: {counts}; {calibration.baseline} against {calibration.candidate} runs, {splits}",
        headline=f"{smallest} on {calibration.device}; {quiet}",
        tone="worse" if loud else "",
        blocks=tuple(_blocks(calibration, look)),
        notes=calibration.notes,
        next_commands=tuple(following),
    )


def _blocks(calibration: Calibration, look: Look) -> Iterator[Block]:
    yield _power(calibration)
    yield _false(calibration, look)
    limit = None if look.details else look.rows(_ROWS)

    def of_series(row: Row) -> str:
        return " ".join(filter(None, (cells.KINDS[row["kind"]], row["input_shapes"], row["part"])))

    def needed(row: Row) -> str:
        return "more than 16" if row["more_runs"] is None else str(row["more_runs"])

    series = [
        Column("series", of("series_id", str)), col("name", **NAME), Column("of", of_series, **UNDER),
    ]  # fmt: skip
    if len(calibration.tables["suspects"]):
        rows = records(calibration.tables["suspects"])
        title = f"Suspects of {rows[0]['version']}, and how many more runs like its own decide them"
        more = [col("change"), Column("more runs", needed)]
        yield _cut(table_of(title, [*series, *more], rows, limit, tone=lambda row: "strong", is_first=True))
    if len(calibration.tables["series"]):
        more = [
            Column("per step", lambda row: cells.cell(row["value"], row["unit"])), col("of step", "share", drop=2),
            Column("spread", lambda row: f"±{cells.share(row['spread'])}"),
        ]  # fmt: skip
        rows = records(calibration.tables["series"])
        yield _cut(table_of("What varies most between runs", [*series, *more], rows, limit, is_first=True))


def _cut(made: Table) -> Table:
    return replace(made, note="--details shows all" if made.more else "")


def _power(calibration: Calibration) -> Table:
    """Return a row per series, a column per number of runs."""
    found: dict[int, list[Row]] = {}
    for row in records(calibration.tables["power"]):
        found.setdefault(row["series_id"], []).append(row)
    runs = sorted({row["runs"] for own in found.values() for row in own})

    def least(own: list[Row]) -> list[str]:
        known = {row["runs"]: row["detectable"] for row in own}
        return [format_diff(known.get(count)) for count in runs]

    columns = [
        Column("name", lambda own: cells.readable(own[0]["name"]), **NAME),
        Column("of", lambda own: str(own[0]["input_shapes"]), **UNDER),
        Column("of step", lambda own: cells.share(own[0]["share"]), drop=2),
        group((Column(counted(count, "run")) for count in runs), least),
    ]
    title = "Smallest slowdown found in four of five cases, by runs of the version, against the 8 runs before it"
    return table_of(title, columns, [*found.values()], is_first=True)


def _false(calibration: Calibration, look: Look) -> Table:
    """Return the false verdicts of a comparison at the threshold in use, with details at every one that was tried."""
    tried = records(calibration.tables["ratios"])
    ratios = list(dict.fromkeys(row["min_ratio"] for row in tried))
    found = {(row["kind"], row["min_ratio"]): f"{row['mean_false']:.2f}" for row in tried}

    def part(row: Row) -> str:
        return MISSING_TEXT if row["used_share"] is None else f"{row['used_share'] * 100:.2g} %"

    def needed(row: Row) -> str:
        proposed = row["proposed_ratio"]
        return f"above {percent(max(ratios))}" if proposed is None else percent(proposed)

    columns = [
        Column("kind", lambda row: cells.KINDS[row["kind"]], left=True), Column("series", of("series", str)),
        col("threshold", "used_ratio", percent), Column("false verdicts", lambda row: f"{row['used_false']:.2f}"),
        Column("of series", part), Column("needed", needed),
    ]  # fmt: skip
    if look.details:
        # the smaller changes decide; what is left out first are the largest ones
        heads = (Column(f"at {percent(ratio)}", drop=at) for at, ratio in enumerate(ratios))
        columns.append(group(heads, lambda row: [found[row["kind"], ratio] for ratio in ratios]))
    title = "False verdicts per comparison, at the threshold in use, and the threshold needed for at most 1"
    return table_of(
        title,
        columns,
        records(calibration.tables["proposals"]),
        is_first=True,
        tone=lambda row: "worse" if _is_loud(row) else "",
    )


def _is_loud(row: Row) -> bool:
    """Return whether the threshold in use lets too many false verdicts through for a kind of series."""
    return row["proposed_ratio"] is None or row["proposed_ratio"] > row["used_ratio"]


VIEW = View(
    document,
    sheet_titles={"ratios": "False verdicts", "power": "Smallest change found", "series": "Noisy series"},
)
