"""One finding with everything that decided: each test with its value and limit, its runs, its life."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracker.advice.versions import on_findings
from tracker.detect import JudgedSeries, judge_version
from tracker.detect.power import detectable_change
from tracker.detect.sides import sides_of
from tracker.errors import UsageError
from tracker.lazy import pd
from tracker.regressions import comparable
from tracker.regressions.environment import changed_between
from tracker.regressions.hosts import note_of, slow_host
from tracker.regressions.inbox import found_rows, incident_of, line_of, rank_of, share_of
from tracker.regressions.limits import MIN_CONTRIBUTION, MIN_RATIO, limit_of, traits_of, words_of_limit
from tracker.regressions.replaced import as_one, mark_replaced
from tracker.regressions.rows import series_in_order, track_of_runs
from tracker.regressions.track import Track
from tracker.regressions.tracks import TrackNow, Tracks
from tracker.results import EXPLAIN_COLUMNS, FINDINGS_COLUMNS, ExplainedFinding
from tracker.store import Store, judged, queries, thresholds
from tracker.store.thresholds import Threshold
from tracker.units import format_diff, format_ns, time_unit

Row = dict[str, Any]
BOOL = NDArray[np.bool_]

_MOST_RUNS: Final = 64
"""Runs that are read around the finding: the newest ones beside those that decided."""


def explain(store: Store, finding_id: int) -> ExplainedFinding:
    """Everything about one finding. Reads only; UsageError where there is no such finding."""
    tracks = Tracks(store)
    everything = [row for row in found_rows(store, tracks=tracks) if row["finding_id"] is not None]
    finding = next((row for row in everything if row["finding_id"] == finding_id), None)
    if finding is None:
        there = "tracker findings --state all lists them"
        raise UsageError(
            f"there is no finding {finding_id}",
            remedy=there if everything else "there are none yet: tracker runs lists what there is",
        )
    track = tracks.of(line_of(finding))
    assert track is not None  # it has a finding
    mark_replaced(store, everything, {finding["incident_id"]})
    incident = incident_of([row for row in everything if row["incident_id"] == finding["incident_id"]])
    shown = as_one(finding)
    shown["share_of_change"] = share_of(shown, incident)
    sides = [{int(run) for run in finding[side].split()} for side in ("baseline_runs", "candidate_runs")]
    data, keys, limits = _data(store, track, sides[0] | sides[1], max(sides[1]))
    row = keys.index((finding["kind"], finding["metric"], finding["name"], finding["input_shapes"], finding["part"]))
    base, new = (np.isin(data.run_ids, list(side)) for side in sides)
    columns = data.window(
        int(data.versions[new].min(initial=1)), np.flatnonzero(~new), np.flatnonzero(new), track.limits
    )
    window, order = columns
    own = judge_version(window, data.series, np.tile(base[order], (len(keys), 1)), new[order], limits=track.limits)
    beyond = sides_of(window.centred(data.series.shares_shift), np.tile(base[order], (len(keys), 1)), new[order]).beyond
    with store.connect() as connection:
        sentence = comparable.settings_note(connection, track.line, track.runs, track.limits.look_back)
        runs = [[*map(int, str(finding[name] or "").split())] for name in ("candidate_runs", "baseline_runs")]
        is_slower = finding["direction"] == "regression"
        host = slow_host((connection, runs[0]), (connection, runs[1])) if is_slower else ""
    facts = queries.of_version(store, "version_facts", track.line, finding["version_id"])
    centred = window.centred(data.series.shares_shift)[row]
    return ExplainedFinding(
        finding={name: shown[name] for name in FINDINGS_COLUMNS["findings"]},
        tests=_frame(tests_of(finding, own, row, data, track, limits, bool(beyond[row] != 0)), "tests"),
        runs=_frame(
            _runs(track, data, row, sides, dict(zip(order.tolist(), centred, strict=True)), window.shift, order), "runs"
        ),
        events=_frame(events_of(store, finding, track), "events"),
        facts=_frame(
            [fact | {"before": fact["value_before"], "after": fact["value_after"]} for fact in facts], "facts"
        ),
        environment=pd.DataFrame(
            changed_between(store, incident), columns=list(FINDINGS_COLUMNS["environment"]), dtype=object
        ),
        notes=tuple(filter(None, (_part_words(finding, shown), sentence, note_of(host)))),
        advice=on_findings(store, [shown], runs[1], runs[0]) if is_slower and not host else (),
    )


def _part_words(finding: Row, shown: Row) -> str:
    """Which operator of a replacement the tests and runs are of; "" for a finding that is shown as it is."""
    if shown is finding:
        return ""
    ends = [finding[name] for name in ("baseline_value", "candidate_value")]
    before, after = (format_ns(end or 0.0, time_unit(*ends)) for end in ends)
    change = f", {format_diff(finding['ratio'])}" if finding["ratio"] is not None else ""
    return f"Tests and runs are of {finding['name']}, the largest part of it: {before} -> {after} per step{change}."


def findings_of(store: Store, incident_id: int) -> list[int]:
    """The findings of an incident that no other one covers, the step first; UsageError where there is none."""
    own = [row for row in found_rows(store) if row["incident_id"] == incident_id]
    if not own:
        raise UsageError(f"there is no incident I-{incident_id}", remedy="tracker findings --state all lists them")
    mark_replaced(store, own, {incident_id})
    return [int(row["finding_id"]) for row in sorted(own, key=rank_of) if row["under"] is None]


def tests_of(
    finding: Row, own: JudgedSeries, row: int, data: Track, track: TrackNow, limits: Sequence[Threshold], beyond: bool
) -> list[Row]:
    """What had to hold, each with its value and limit: JUDGEMENT, section 4, rule 4. `beyond`: whether every run after
    is above, or below, every run before.
    """
    key = (finding["kind"], finding["metric"], finding["name"], finding["input_shapes"], finding["part"])
    runs = [len(finding[side].split()) for side in ("baseline_runs", "candidate_runs")]
    defaults = track.limits
    presence = finding["change"] == "presence"
    least = 2 if presence else defaults.least_base
    new = 1 if presence else defaults.least_new
    found = [
        _test("runs before", runs[0], least, runs[0] >= least, "newest runs of the level before", limits, "least_base"),
        _test("runs after", runs[1], new, runs[1] >= new, "runs that show the change together", limits, "confirm"),
    ]
    if not presence:
        ratio = defaults.gradual if finding["change"] == "gradual" else float(np.expm1(data.series.ratio[row]))
        change = math.expm1(float(own.change[row]))
        what = "change, machine-wide drift removed" if data.series.shares_shift[row] else "change"
        passes = abs(float(own.change[row])) >= math.log1p(ratio) - 1e-9
        found.append(_test("change", change, ratio, passes, what, limits, MIN_RATIO, key))
        found.append(_test("range", None, None, beyond, "every run after is beyond every run before", limits, ""))
    if not data.series.of_step[row] or data.series.floor[row] > 0:
        floor = float(data.series.floor[row])
        passes = abs(finding["contribution"]) >= floor - 1e-12
        found.append(
            _test(
                "contribution",
                finding["contribution"],
                floor,
                passes,
                "change as a part of the step",
                limits,
                MIN_CONTRIBUTION,
                key,
            )
        )
    if not presence:
        alpha = defaults.alpha_gradual if finding["change"] == "gradual" else defaults.alpha
        q = finding["q"]
        found.append(_test("q", q, alpha, q is None or q <= alpha, "false discovery rate (q)", limits, "alpha"))
        least_change = float(np.expm1(detectable_change(own, data.series.family, defaults)[row]))
        if not math.isnan(least_change):
            found.append(
                _test(
                    "detectable",
                    least_change,
                    None,
                    None,
                    "smallest change that such runs show in 4 of 5 cases",
                    limits,
                    "",
                )
            )
    return found


def _test(
    test: str, value: float | None, limit: float | None, passes: bool | None, meaning: str,
    limits: Sequence[Threshold], name: str, key: tuple[str, str, str, str, str] | None = None,
) -> Row:  # fmt: skip
    origin = limit_of(name, key or ("", "", "", "", ""), limits) if name else None
    source = "default" if origin is None else f"{words_of_limit(origin)}, {origin.who}: {origin.reason}"
    return {
        "test": test, "value": value, "limit": limit, "passes": passes, "meaning": meaning,
        "limit_from": source if limit is not None else None,
    }  # fmt: skip


def events_of(store: Store, finding: Row, track: TrackNow) -> list[Row]:
    """When a finding began and ended, and what users said, in the order of time as far as it is known."""
    decided = track.labels.get(finding["decided_version_id"], "")
    began = "" if decided == finding["version"] else f"confirmed by the runs of {decided}"
    events = [{"state": finding["verdict"], "who": "tracker", "version": finding["version"], "reason": began}]
    for word in queries.finding_words(store).get(finding["finding_id"], ()):
        end = word["until_version"] or word["until_ns"]
        until = "" if end is None else f" until {end if word['until_version'] else pd.Timestamp(end).date()}"
        events.append(
            {
                "state": f"{word['action']}{until}",
                "who": word["who"],
                "when_ns": word["when_ns"],
                "reason": word["reason"],
            }
        )
    if finding["ended_version"] is not None:
        by = track.labels.get(finding["ended_by_version_id"], "")
        why = "" if by == finding["ended_version"] else f"confirmed by the runs of {by}"
        events.append(
            {"state": finding["base_state"], "who": "tracker", "version": finding["ended_version"], "reason": why}
        )
    return events


def _data(
    store: Store, track: TrackNow, wanted: set[int], like: int
) -> tuple[Track, list[tuple[str, str, str, str, str]], tuple[Threshold, ...]]:
    """The runs that decided and the newest ones, as a track in memory: those that were recorded like the run `like`."""
    newest = {run.run_id for run in track.runs[-_MOST_RUNS:]}
    runs = [run for run in track.runs if run.run_id in newest | wanted]
    with store.connect() as connection:
        series = series_in_order(judged.series_of(connection, track.line))
        values, calls = judged.values_of(connection, [run.run_id for run in runs], series)
        limits = thresholds.of_line(connection, track.line)
        recorded = comparable.recorded_runs(connection, runs)
    device_timed = all(run.timeline == "device" for run in runs if run.run_id in wanted)
    traits = traits_of(series.keys, limits, device_timed=device_timed)
    place = {version: at for at, version in enumerate(track.versions, 1)}
    at = [run.run_id for run in runs].index(like)
    data = track_of_runs(series.keys, values, calls, runs, place, recorded, traits, at)
    return data, list(series.keys), limits


def _runs(
    track: TrackNow, data: Track, row: int, sides: Sequence[set[int]], centred: dict[int, float],
    shift: NDArray[np.float64], order: NDArray[np.int64],
) -> list[Row]:  # fmt: skip
    numbers = data.run_ids.tolist()
    level = [centred[at] for at, run in enumerate(numbers) if run in sides[0] and not math.isnan(centred[at])]
    base = sum(level) / len(level) if level else math.nan
    shared = dict(zip(order.tolist(), shift.tolist(), strict=True))
    last = max((at for at, run in enumerate(numbers) if run in sides[1]), default=len(numbers))
    sign = -1.0 if data.series.more_is_better[row] else 1.0
    runs = {run.run_id: run for run in track.runs}
    found = []
    for at, run_id in enumerate(numbers):
        side = "baseline" if run_id in sides[0] else "candidate" if run_id in sides[1] else "later" if at > last else ""
        found.append(
            {
                "run_id": run_id, "version": runs[run_id].version, "side": side,
                "started_at_ns": runs[run_id].started_at_ns, "value": data.values[row, at],
                "calls": data.calls[row, at], "shared_factor": math.expm1(shared[at]),
                "change": math.expm1(sign * (centred[at] - base)),
            }
        )  # fmt: skip
    return found


def _frame(rows: Sequence[Row], table: str) -> pd.DataFrame:
    columns = EXPLAIN_COLUMNS[table]
    cells = [[_known(row.get(column)) for column in columns] for row in rows]
    frame = pd.DataFrame(cells, columns=list(columns), dtype=object)
    return frame.where(frame.notna(), pd.NA)


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
