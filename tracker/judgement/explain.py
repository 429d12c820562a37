"""One finding with everything that decided: each gate with its value and limit, its runs, its life."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracker.detectors import rule
from tracker.detectors.baseline import ENOUGH
from tracker.errors import UsageError
from tracker.judgement import incidents
from tracker.judgement.causes import Row
from tracker.judgement.follow import Watched
from tracker.judgement.keep import inverse_diff, watched_line
from tracker.judgement.recorded import sentence_of_line
from tracker.judgement.tell import found_rows, line_of, rank_of
from tracker.judgement.thresholds import ALPHA, CONFIRM, MIN_CONTRIBUTION, MIN_RATIO, Limit, Thresholds, told
from tracker.lazy import pd
from tracker.results import EXPLAIN_COLUMNS, FINDINGS_COLUMNS, STATES, ExplainedFinding, FindingsOptions
from tracker.store import Store, judged, queries
from tracker.store.chosen import Known
from tracker.store.judged import LineRun
from tracker.store.thresholds import Threshold


def explain(store: Store, finding_id: int) -> ExplainedFinding:
    """Everything about one finding. Reads only; UsageError where there is no such finding."""
    everything = found_rows(store, FindingsOptions(states=STATES))
    finding = next((row for row in everything if row["finding_id"] == finding_id), None)
    if finding is None:
        raise UsageError(
            f"there is no finding {finding_id}",
            remedy="tracker findings --state all lists them"
            if everything
            else "there are none yet: tracker runs lists what there is",
        )
    line, known = line_of(finding), Known()
    with store.connect() as connection:
        runs = judged.runs_of(connection, line)
        watched, series = watched_line(connection, line, runs)
        sentence = sentence_of_line(connection, line, runs, known)
    place = {run.run_id: at for at, run in enumerate(runs)}
    device_timed = watched.runs[place[finding["first_run_id"]]].device_timed
    environment: list[Row] = []
    finding["share_of_change"] = None
    if finding["incident_id"] is not None:
        own = [row for row in everything if row["incident_id"] == finding["incident_id"]]
        told = incidents.Teller(store, everything, known).told(own)
        environment, finding["share_of_change"] = told.environment, told.share_of(finding)
    events = queries.finding_events(store, [finding_id])
    return ExplainedFinding(
        finding={name: finding[name] for name in FINDINGS_COLUMNS["findings"]},
        gates=_frame(gates(finding, watched.thresholds, device_timed=device_timed), EXPLAIN_COLUMNS["gates"]),
        runs=_frame(_runs(finding, watched, series.index(finding["series_id"]), runs), EXPLAIN_COLUMNS["runs"]),
        events=events[list(EXPLAIN_COLUMNS["events"])],
        environment=_frame(environment, FINDINGS_COLUMNS["environment"]),
        notes=(sentence,) if sentence else (),
    )


def findings_of(store: Store, incident_id: int) -> list[int]:
    """The findings of an incident that no other one covers, the whole run first; UsageError where there is none."""
    own = [row for row in found_rows(store, FindingsOptions()) if row["incident_id"] == incident_id]
    if not own:
        raise UsageError(f"there is no incident {incident_id}", remedy="tracker findings --state all lists them")
    return [int(row["finding_id"]) for row in sorted(own, key=rank_of) if row["under"] is None]


def gates(finding: Row, thresholds: Thresholds, *, device_timed: bool) -> list[Row]:
    """What had to pass, with its value and limit (JUDGEMENT 4). `finding`: a row of sql/findings.sql."""
    limits = thresholds.of_change(finding["kind"], finding["name"], finding["change"], device_timed=device_timed)
    baseline, candidate = (len(str(finding[f"{side}_runs"]).split()) for side in ("baseline", "candidate"))
    presence, of_run = finding["change"] == "presence", finding["kind"] == "run"
    deciding = Limit(max(rule.FINDING_RUNS, limits[CONFIRM].value), limits[CONFIRM].origin)
    meanings = ("normal or accepted runs before the version", "the runs that show it together")
    if finding["change"] == "creep":
        # it is judged once, with all runs of its version
        deciding, meanings = (
            Limit(rule.FINDING_RUNS, None),
            ("runs at the best level before", "the runs of the version, together"),
        )
    found = [
        _gate("baseline runs", baseline, Limit(ENOUGH, None), meanings[0]),
        _gate("candidate runs", candidate, deciding, meanings[1]),
    ]
    if not presence:
        meaning = "change of the whole run, the machine's part included" if of_run else (
            "change without what all operators share"
        )  # fmt: skip
        ratio = finding["ratio"]
        limit = limits[MIN_RATIO]
        passes = None if ratio is None else abs(math.log1p(ratio)) >= math.log1p(limit.value) - rule.ROUNDING
        found.append(_gate("effect", ratio, limit, meaning, passes=passes))
    if finding["q"] is not None:
        passes = finding["q"] <= limits[ALPHA].value
        found.append(_gate("p", finding["p"], None, "chance of such a change, or a larger one, by noise"))
        found.append(_gate("q", finding["q"], limits[ALPHA], "share of false findings that is borne", passes=passes))
    if not of_run:
        contribution = finding["contribution"]
        least = limits[MIN_CONTRIBUTION]
        passes = None if contribution is None else abs(contribution) >= least.value - rule.ROUNDING
        found.append(_gate("contribution", contribution, least, "change as a part of the step", passes=passes))
    for name, meaning in (("low", "90 % interval of the change, from"), ("high", "90 % interval of the change, to"),
                          ("detectable", "smallest change that these runs would show four times in five")):  # fmt: skip
        if finding[name] is not None:
            found.append(_gate(name, finding[name], None, meaning))
    return found


def _gate(gate: str, value: float | None, limit: Limit | None, meaning: str, *, passes: bool | None = None) -> Row:
    """`passes`: None: it does where the value reaches the limit, if there is one."""
    if passes is None and limit is not None and value is not None:
        passes = value >= limit.value
    origin = None if limit is None else limit.origin
    return {
        "gate": gate, "value": value, "limit": None if limit is None else limit.value, "passes": passes,
        "limit_from": None if limit is None else "usual" if origin is None else _from(origin), "meaning": meaning,
    }  # fmt: skip


def _from(origin: Threshold) -> str:
    return f"{told(origin)}, {origin.who}: {origin.reason}"


def _runs(finding: Row, watched: Watched, row: int, runs: Sequence[LineRun]) -> list[Row]:
    sides = {side: {int(number) for number in finding[f"{side}_runs"].split()} for side in ("baseline", "candidate")}
    columns = [at for at, run in enumerate(runs) if run.run_id in sides["baseline"]]
    before = watched.centred[row, columns]
    known = before[~np.isnan(before)]
    level = float(np.log(known).mean()) if len(known) else math.nan
    inverse = finding["unit"] == "per_second"
    newest = max(sides["candidate"], key=[run.run_id for run in runs].index)
    after = [run.run_id for run in runs].index(newest)
    found = []
    for at, run in enumerate(runs):
        value = watched.raw[row, at]
        side = next((name for name, own in sides.items() if run.run_id in own), "later" if at > after else "")
        effect = math.expm1(math.log(watched.centred[row, at]) - level) if not math.isnan(value) else math.nan
        found.append(
            {
                "run_id": run.run_id, "version": run.version, "side": side,
                "started_at_ns": run.started_at_ns,
                "value": 1.0 / value if inverse else value, "calls": watched.calls[row, at],
                "shared_factor": math.expm1(watched.shared[at]), "effect": inverse_diff(effect) if inverse else effect,
            }
        )  # fmt: skip
    return found


def _frame(rows: Sequence[Row], columns: Sequence[str]) -> pd.DataFrame:
    cells = [[_known(row.get(column)) for column in columns] for row in rows]
    frame = pd.DataFrame(cells, columns=list(columns), dtype=object)
    return frame.where(frame.notna(), pd.NA)


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
