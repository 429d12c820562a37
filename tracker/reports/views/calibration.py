"""The document of a calibration: the smallest slowdown that is found, and how many verdicts of repeats are false."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tracker.reports import cells
from tracker.reports.cells import ColumnsOf, percent
from tracker.reports.commands import command
from tracker.reports.document import NAME, UNDER, Block, Column, Document, Look, Table, group
from tracker.reports.rows import rows_of, table_of
from tracker.reports.view import View
from tracker.results import Calibration
from tracker.results.thresholds import CalibrationSuspect, NoisySeries, ProposedRatio, SeriesPower
from tracker.units import MISSING_TEXT, counted, format_diff

_USUAL: Final = 3
"""Runs of a version that the headline speaks of, where so many were tried."""
_ROWS: Final = 5


def document(calibration: Calibration, look: Look) -> Document:
    """Return what is found with how many runs, and whether the thresholds give few false verdicts."""
    where = ", ".join(filter(None, (calibration.workload, calibration.device, calibration.configuration)))
    splits = f"{counted(calibration.windows, 'window')} of neighbours, {counted(calibration.splits, 'split')}"
    counts = f"{counted(len(calibration.run_ids), 'run')} of {', '.join(calibration.versions)}"
    loud = [row for row in calibration.rows.proposals if _is_loud(row)]
    smallest = "No slowdown of the step is found with the runs tried"
    known = [
        (row.runs, row.detectable)
        for row in rows_of(SeriesPower, calibration.tables["power"])
        if row.kind == "run" and row.detectable is not None
    ]
    if known:
        runs, least = next((found for found in known if found[0] == _USUAL), known[-1])
        smallest = f"A slowdown of the step is found from {percent(round(least, 3))} with {runs} runs"
    quiet = "the thresholds give at most 1 false verdict per comparison"
    if loud:
        words = [f"{cells.KINDS[row.kind]} ({cells.number(row.used_false)} false verdicts)" for row in loud]
        quiet = f"thresholds are too low for {', '.join(words)}"
    one = len(calibration.versions) == 1
    named = [*calibration.versions, "--workload", calibration.workload]
    repeats = named if one else [f"run:{number}" for number in calibration.run_ids]
    more = [] if look.details else ["--details"]
    first = ["--apply", "--reason", "..."] if loud else more
    following = [command("tracker", "calibrate", *repeats, *first)]
    if loud and more:
        following.append(command("tracker", "calibrate", *repeats, *more))
    if calibration.rows.series:
        following.append(command("tracker", "history", str(calibration.rows.series[0].series_id)))
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

    suspects = rows_of(CalibrationSuspect, calibration.tables["suspects"])
    if suspects:
        title = f"Suspects of {suspects[0].version}, and how many more runs like its own decide them"
        columns = [
            *_NAMES,
            _suspect.number("change", lambda row: format_diff(row.change)),
            _suspect.number("more runs", _needed_runs),
        ]
        yield _cut(table_of(title, columns, suspects, limit, tone=lambda row: "strong", is_first=True))
    noisy = rows_of(NoisySeries, calibration.tables["series"])
    if noisy:
        columns = [
            *_NAMES,
            _noisy.number("per step", lambda row: cells.cell(row.value, row.unit)),
            _noisy.number("of step", lambda row: cells.share(row.share), drop=2),
            _noisy.number("spread", lambda row: f"±{cells.share(row.spread)}"),
        ]
        yield _cut(table_of("What varies most between runs", columns, noisy, limit, is_first=True))


def _what_of_name(row: CalibrationSuspect | NoisySeries) -> str:
    """Return what tells a series from others of its name."""
    return " ".join(filter(None, (cells.KINDS[row.kind], row.input_shapes, row.part)))


def _needed_runs(row: CalibrationSuspect) -> str:
    return "more than 16" if row.more_runs is None else str(row.more_runs)


_suspect, _noisy = ColumnsOf(CalibrationSuspect), ColumnsOf(NoisySeries)
_series: ColumnsOf[CalibrationSuspect | NoisySeries] = ColumnsOf(CalibrationSuspect)
_NAMES: Final = (
    _series.number("series", lambda row: str(row.series_id)),
    _series.text("name", lambda row: cells.readable(row.name), **NAME),
    _series.text("of", _what_of_name, **UNDER),
)
"""The columns that say which series it is."""


def _cut(made: Table) -> Table:
    return replace(made, note="--details shows all" if made.more else "")


class _PowerOfSeries(Struct, frozen=True):
    """The smallest change of a series that is found, by the runs of the version."""

    series: SeriesPower
    detectable: Mapping[int, float | None]


_power_of_series: Final = ColumnsOf(_PowerOfSeries)


def _power(calibration: Calibration) -> Table:
    """Return a row per series, a column per number of runs."""
    found: dict[int, list[SeriesPower]] = {}
    for row in rows_of(SeriesPower, calibration.tables["power"]):
        found.setdefault(row.series_id, []).append(row)
    runs = sorted({row.runs for own in found.values() for row in own})
    rows = [_PowerOfSeries(own[0], {row.runs: row.detectable for row in own}) for own in found.values()]

    def least(row: _PowerOfSeries) -> list[str]:
        return [format_diff(row.detectable.get(count)) for count in runs]

    columns = [
        _power_of_series.text("name", lambda row: cells.readable(row.series.name), **NAME),
        _power_of_series.text("of", lambda row: row.series.input_shapes, **UNDER),
        _power_of_series.number("of step", lambda row: cells.share(row.series.share), drop=2),
        group((Column(counted(count, "run")) for count in runs), least),
    ]
    title = "Smallest slowdown found in four of five cases, by runs of the version, against the 8 runs before it"
    return table_of(title, columns, rows, is_first=True)


def _false(calibration: Calibration, look: Look) -> Table:
    """Return the false verdicts of a comparison at the threshold in use, with details at every one that was tried."""
    tried = calibration.rows.ratios
    ratios = list(dict.fromkeys(row.min_ratio for row in tried))
    found = {(row.kind, row.min_ratio): f"{row.mean_false:.2f}" for row in tried}

    def part(row: ProposedRatio) -> str:
        return MISSING_TEXT if row.used_share is None else f"{row.used_share * 100:.2g} %"

    def needed(row: ProposedRatio) -> str:
        proposed = row.proposed_ratio
        return f"above {percent(max(ratios))}" if proposed is None else percent(proposed)

    proposal = ColumnsOf(ProposedRatio)
    columns = [
        proposal.text("kind", lambda row: cells.KINDS[row.kind]),
        proposal.number("series", lambda row: str(row.series)),
        proposal.number("threshold", lambda row: percent(row.used_ratio)),
        proposal.number("false verdicts", lambda row: f"{row.used_false:.2f}"),
        proposal.number("of series", part),
        proposal.number("needed", needed),
    ]
    if look.details:
        # the smaller changes decide; what is left out first are the largest ones
        heads = (Column(f"at {percent(ratio)}", drop=at) for at, ratio in enumerate(ratios))
        columns.append(group(heads, lambda row: [found[row.kind, ratio] for ratio in ratios]))
    title = "False verdicts per comparison, at the threshold in use, and the threshold needed for at most 1"
    return table_of(
        title,
        columns,
        calibration.rows.proposals,
        is_first=True,
        tone=lambda row: "worse" if _is_loud(row) else "",
    )


def _is_loud(row: ProposedRatio) -> bool:
    """Return whether the threshold in use lets too many false verdicts through for a kind of series."""
    return row.proposed_ratio is None or row.proposed_ratio > row.used_ratio


VIEW = View(
    document,
    sheet_titles={"ratios": "False verdicts", "power": "Smallest change found", "series": "Noisy series"},
)
