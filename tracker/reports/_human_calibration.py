"""How much repeats of one version differ, for people."""

from __future__ import annotations

from msgspec.structs import replace

from tracker.reports._human import NAME, UNDER, Column, Row, Table, make, series_name, share
from tracker.reports._human_history import KINDS, form
from tracker.reports.shared import command, records
from tracker.results import Calibration
from tracker.units import MISSING_TEXT, counted

NOTE = "Nothing changed between these runs, so every finding is false. Cells: false findings per split, in the mean."


def header(calibration: Calibration) -> list[str]:
    """Whose repeats these are, and how they were parted."""
    where = ", ".join(filter(None, (calibration.workload, calibration.device, calibration.configuration)))
    sides = f"{calibration.baseline} against {calibration.candidate}"
    return [
        f"{where}: {counted(len(calibration.run_ids), 'run')} of {', '.join(calibration.versions)}",
        f"{sides} runs: {counted(calibration.windows, 'window')} of neighbouring runs, "
        f"{counted(calibration.splits, 'split')} of all",
    ]


def tables(calibration: Calibration) -> list[Table]:
    """False findings by the smallest change that counts, and the series that make the noise."""
    found = [_ratios(calibration)]
    found += [_recall(calibration)] if len(calibration.recall) else []
    return found + ([_noisy(calibration)] if len(calibration.series) else [])


def _ratios(calibration: Calibration) -> Table:
    rows = records(calibration.ratios)
    ratios = list(dict.fromkeys(row["min_ratio"] for row in rows))
    cells = {(row["kind"], row["min_ratio"]): row for row in rows}
    # the smaller changes decide; what is left out first are the largest ones
    columns = [Column("series", left=True), Column("number"), Column("in use"), Column("proposed")]
    columns += [Column(_percent(ratio), drop=place) for place, ratio in enumerate(ratios)]
    columns += [Column("windows", drop=len(ratios) + 1)]
    shown: list[tuple[str, list[str]]] = []
    loud = _loud(calibration)
    for row in records(calibration.proposals):
        own = [cells[row["kind"], ratio] for ratio in ratios]
        used = cells[row["kind"], row["used_ratio"]]
        tone = "worse" if row in loud else ""
        shown.append(
            (
                tone,
                [
                    KINDS[row["kind"]], str(row["series"]),
                    _percent(row["used_ratio"]), _percent(row["proposed_ratio"]),
                    *(f"{cell['mean_false']:.2f}" for cell in own), str(used["windows_false"]),
                ],
            )
        )  # fmt: skip
    note = "windows: findings of all windows of neighbouring runs together, at the change in use"
    return make("Smallest change that counts", columns, shown, note=note)


def _recall(calibration: Calibration) -> Table:
    """A row per series; of each change, how probably it is found with more and more runs of a version."""
    rows = records(calibration.recall)
    changes, runs = (sorted({row[name] for row in rows}) for name in ("change", "runs"))
    columns = [Column("name", **NAME), Column("step", drop=2)]
    columns += [Column(f"+{_percent(change)}", drop=int(change == changes[0])) for change in changes]
    shown: list[tuple[str, list[str]]] = []
    for number in dict.fromkeys(row["series_id"] for row in rows):
        own = [row for row in rows if row["series_id"] == number]
        chances = {(row["change"], row["runs"]): _chance(row["recall"]) for row in own}
        cells = [", ".join(chances[change, count] for count in runs) for change in changes]
        shown.append(("", [series_name(own[0]), share(own[0]["share"]), *cells]))
    table = make(f"What would be found, with {', '.join(map(str, runs))} runs of a version", columns, shown)
    return replace(table, note="how probably it is found that a series is slower by so much, against the 8 runs before")


def _chance(recall: float | None) -> str:
    return MISSING_TEXT if recall is None else f"{recall * 100:.0f} %"


def _noisy(calibration: Calibration) -> Table:
    columns = [
        Column("series"), Column("name", **NAME), Column("of", **UNDER), Column("per step"), Column("step", drop=2),
        Column("spread"), Column("two levels", drop=1),
    ]  # fmt: skip
    rows: list[tuple[str, list[str]]] = []
    for row in records(calibration.series):
        shown = form(row["unit"], [row["value"], row["low"], row["high"]])
        of = " ".join(filter(None, (KINDS[row["kind"]], row["input_shapes"], row["part"])))
        levels = f"{shown(row['low'])}, {shown(row['high'])} ({share(row['upper_share'])})" if row["low"] else ""
        cells = [
            str(row["series_id"]), series_name(row), of, shown(row["value"]),
            MISSING_TEXT if row["share"] is None else share(row["share"]), f"±{share(row['spread'])}", levels,
        ]  # fmt: skip
        rows.append(("strong" if row["low"] else "", cells))
    table = make("What varies most", columns, rows)
    return replace(table, note="two levels: the run is on one or the other (how many on the upper one)")


def answer(calibration: Calibration) -> str:
    """Whether the rule is quiet enough on this device."""
    loud = _loud(calibration)
    if not loud:
        return f"On {calibration.device} the rule is quiet: at most one false finding per comparison for every kind."
    words = [
        f"{KINDS[row['kind']]}: {_percent(row['proposed_ratio'])} instead of {_percent(row['used_ratio'])}"
        for row in loud
    ]
    return f"On {calibration.device} smaller changes are noise. Proposed: {'; '.join(words)}."


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
    """The kinds of series for which the change in use lets too many false findings through."""
    rows = records(calibration.proposals)
    return [row for row in rows if row["proposed_ratio"] is None or row["proposed_ratio"] > row["used_ratio"]]


def _percent(ratio: float | None) -> str:
    return "none tried" if ratio is None else f"{ratio * 100:g} %"
