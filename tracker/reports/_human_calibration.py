"""How much repeats of one version differ, for people."""

from __future__ import annotations

from msgspec.structs import replace

from tracker.reports._human import NAME, UNDER, Column, Row, Table, make, series_name, share
from tracker.reports.cells import form
from tracker.reports.shared import command, records
from tracker.reports.views.history import KINDS
from tracker.results import Calibration
from tracker.units import MISSING_TEXT, counted, format_diff

_MOST = 10
"""Suspects that are named."""

NOTE = "Nothing changed between these runs, so every change that is found is false."


def header(calibration: Calibration) -> list[str]:
    """Whose repeats these are, and how they were split."""
    where = ", ".join(filter(None, (calibration.workload, calibration.device, calibration.configuration)))
    sides = f"{calibration.baseline} against {calibration.candidate}"
    return [
        f"{where}: {counted(len(calibration.run_ids), 'run')} of {', '.join(calibration.versions)}",
        f"{sides} runs: {counted(calibration.windows, 'window')} of neighbouring runs, "
        f"{counted(calibration.splits, 'split')} of all",
    ]


def tables(calibration: Calibration) -> list[Table]:
    """False verdicts by the smallest change that counts, what is found, suspects, and the series that vary most."""
    found = [_ratios(calibration), _power(calibration)]
    found += [_suspects(calibration)] if len(calibration.suspects) else []
    return found + ([_noisy(calibration)] if len(calibration.series) else [])


def _ratios(calibration: Calibration) -> Table:
    rows = records(calibration.ratios)
    ratios = list(dict.fromkeys(row["min_ratio"] for row in rows))
    cells = {(row["kind"], row["min_ratio"]): row for row in rows}
    # the smaller changes decide; what is left out first are the largest ones
    columns = [Column("series", left=True), Column("number"), Column("in use"), Column("false"), Column("proposed")]
    columns += [Column(_percent(ratio), drop=place) for place, ratio in enumerate(ratios)]
    columns += [Column("windows", drop=len(ratios) + 1)]
    shown: list[tuple[str, list[str]]] = []
    loud = _loud(calibration)
    for row in records(calibration.proposals):
        own = [cells[row["kind"], ratio] for ratio in ratios]
        used = cells[row["kind"], row["used_ratio"]]
        cell = [
            KINDS[row["kind"]], str(row["series"]), _percent(row["used_ratio"]), _share(row["used_share"]),
            _percent(row["proposed_ratio"]), *(f"{one['mean_false']:.2f}" for one in own), str(used["windows_false"]),
        ]  # fmt: skip
        shown.append(("worse" if row in loud else "", cell))
    note = (
        "false: share of the tested series, at the change in use; columns: false verdicts per split, in the mean, by "
        "the smallest change that counts; windows: of all windows of neighbouring runs together"
    )
    return make("False verdicts", columns, shown, note=note)


def _power(calibration: Calibration) -> Table:
    """A row per series, a column per number of runs."""
    rows = records(calibration.power)
    runs = sorted({row["runs"] for row in rows})
    columns = [Column("name", **NAME), Column("of", **UNDER), Column("step", drop=2)]
    columns += [Column(counted(count, "run")) for count in runs]
    shown: list[tuple[str, list[str]]] = []
    for number in dict.fromkeys(row["series_id"] for row in rows):
        own = [row for row in rows if row["series_id"] == number]
        least = {row["runs"]: row["detectable"] for row in own}
        of = str(own[0]["input_shapes"])
        part = MISSING_TEXT if own[0]["share"] is None else share(own[0]["share"])
        shown.append(("", [series_name(own[0]), of, part, *(format_diff(least[count]) for count in runs)]))
    table = make("Smallest slowdown that is found", columns, shown)
    return replace(table, note="in four of five cases, by the runs of a version, against the 8 runs before it")


def _suspects(calibration: Calibration) -> Table:
    rows = records(calibration.suspects)
    columns = [Column("series"), Column("name", **NAME), Column("of", **UNDER), Column("change"), Column("more runs")]
    shown: list[tuple[str, list[str]]] = []
    for row in rows[:_MOST]:
        of = " ".join(filter(None, (KINDS[row["kind"]], row["input_shapes"], row["part"])))
        more = "more than 16" if row["more_runs"] is None else str(row["more_runs"])
        shown.append(("strong", [str(row["series_id"]), series_name(row), of, format_diff(row["change"]), more]))
    left = f"; {len(rows) - _MOST} more" if len(rows) > _MOST else ""
    note = f"more runs: how many more runs like its own would decide{left}"
    return make(f"Suspects of {rows[0]['version']}", columns, shown, note=note)


def _noisy(calibration: Calibration) -> Table:
    columns = [
        Column("series"), Column("name", **NAME), Column("of", **UNDER), Column("per step"), Column("step", drop=2),
        Column("spread"),
    ]  # fmt: skip
    rows: list[tuple[str, list[str]]] = []
    for row in records(calibration.series):
        of = " ".join(filter(None, (KINDS[row["kind"]], row["input_shapes"], row["part"])))
        part = MISSING_TEXT if row["share"] is None else share(row["share"])
        shown = form(row["unit"], [row["value"]])(row["value"])
        rows.append(("", [str(row["series_id"]), series_name(row), of, shown, part, f"±{share(row['spread'])}"]))
    return make("What varies most", columns, rows)


def answer(calibration: Calibration) -> str:
    """How small a change of the step is found, and whether few enough verdicts are false on this device."""
    steps = [row for row in records(calibration.power) if row["kind"] == "run" and row["detectable"] is not None]
    found = ", ".join(f"{row['detectable'] * 100:.1f} % with {row['runs']} runs" for row in steps)
    words = [f"A slower step is found from {found}."] if found else []
    loud = [
        f"{KINDS[row['kind']]}: {_percent(row['proposed_ratio'])} instead of {_percent(row['used_ratio'])}"
        for row in _loud(calibration)
    ]
    words.append(
        f"On {calibration.device} smaller changes are noise. Proposed: {'; '.join(loud)}."
        if loud
        else f"On {calibration.device} there is at most one false verdict per comparison for every kind."
    )
    return " ".join(words)


def hint(calibration: Calibration) -> str:
    """What to do with it."""
    words = []
    if _loud(calibration):
        runs = [f"run:{number}" for number in calibration.run_ids]
        repeats = list(calibration.versions) if len(calibration.versions) == 1 else runs
        words.append(f"Use them: {command('tracker', 'calibrate', *repeats, '--apply', '--reason', '...')}")
    if len(calibration.series):
        words.append(f"Noisiest: {command('tracker', 'history', str(records(calibration.series)[0]['series_id']))}")
    return " ".join(words)


def _loud(calibration: Calibration) -> list[Row]:
    """The kinds of series for which the change in use lets too many false verdicts through."""
    rows = records(calibration.proposals)
    return [row for row in rows if row["proposed_ratio"] is None or row["proposed_ratio"] > row["used_ratio"]]


def _share(part: float | None) -> str:
    """A small share, with as many places as it takes.

    >>> _share(0.0004), _share(0.0), _share(None)
    ('0.04 %', '0 %', '-')
    """
    return MISSING_TEXT if part is None else f"{part * 100:.2g} %"


def _percent(ratio: float | None) -> str:
    return "none tried" if ratio is None else f"{ratio * 100:g} %"
