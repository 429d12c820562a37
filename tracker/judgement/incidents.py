"""One incident: the step before and after, how its change adds up, what else changed, how severe it is.

A version has one incident: what got worse and what got better in it belong together, and its net effect on the step
says how severe it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors.arrays import logs
from tracker.detectors.centre import Centre, centre_of, no_centre
from tracker.detectors.contribution import CANCELLING, severity
from tracker.detectors.judging import Weights, large_enough
from tracker.detectors.totals import EXPLAINED
from tracker.judgement.causes import Row
from tracker.judgement.environment import differing, facts_of
from tracker.judgement.families import THE_STEP, Family, leaf_of, telling, way_of
from tracker.judgement.judging import Values, steps_of
from tracker.lazy import pd
from tracker.results import CONFIRMED_STATES
from tracker.store import Store, queries
from tracker.store.chosen import Known
from tracker.store.judged import Line

F64 = NDArray[np.float64]

_NAMES: Final = ("incident_id", "workload", "configuration", "device", "version")
_PARTS: Final = {
    "free": "free_ns", "exposed communication": "exposed_communication_ns", "exposed copy": "exposed_copy_ns",
}  # fmt: skip
"""Run-level series that are parts of the step beside the operators, and the column of an incident for each."""

_PARTS_OF_STEP: Final = frozenset({"op", "op_name", "kernel", "module", "phase", "api"})
"""Kinds of series whose losses a faster version outweighs."""

_WORSE: Final = "regression"
_BETTER: Final = "improvement"
_CAME: Final = {_WORSE: "new_ns", _BETTER: "gone_ns"}
_OF_PART: Final = {"free_ns": "idle time", "exposed_communication_ns": "communication", "exposed_copy_ns": "copies"}


class Told(Struct, frozen=True):
    """An incident: `row` as in FINDINGS_COLUMNS; `ordinal` of its version; `environment`: what else changed."""

    row: Row
    ordinal: int
    environment: list[Row]

    @property
    def number(self) -> int:
        """The number of the incident."""
        return int(self.row["incident_id"])

    def share_of(self, finding: Row) -> float | None:
        """The part of the step's change that a finding makes; None where shares would mislead."""
        delta, step = finding["delta"], self.row["step_delta_ns"]
        if self.row["explained_share"] is None or finding["unit"] != "ns" or delta is None or finding["kind"] == "run":
            return None
        return float(delta / step)


class Teller:
    """Tells incidents of a database. `everything`: all findings there are, for what changed with later versions. What
    it reads of a line it reads once. `known`: what was read of the database before.
    """

    def __init__(self, store: Store, everything: Sequence[Row], known: Known | None = None) -> None:
        self._store, self._everything = store, everything
        self._known = Known() if known is None else known

    def told(self, own: Sequence[Row]) -> Told:
        """The incident that the findings `own` form, in both directions."""
        return _told(self._store, own, self._everything, self._values)

    def _values(self, line: Line, sides: Sequence[Sequence[int]]) -> Values:
        with self._store.connect() as connection:
            series = self._known.series_of(connection, line)
            values, calls = self._known.values_of(connection, [run for side in sides for run in side], series)
        return Values.of_keys(series.keys, values, calls)


def _told(
    store: Store,
    own: Sequence[Row],
    everything: Sequence[Row],
    values_of: Callable[[Line, Sequence[Sequence[int]]], Values],
) -> Told:
    first = own[0]
    line = Line(first["workload_id"], first["configuration_id"], first["device_id"])
    sides = [_runs(own, "step") or _runs(own, "baseline"), _until_the_next(own, everything)]
    values = values_of(line, sides)
    before, after = _steps(values, len(sides[0]), len(sides[1]))
    centre = centre_between(values, len(sides[0]), len(sides[1]), max(before or 0.0, after or 0.0))
    beside = _beside(values, *(len(side) for side in sides))
    delta = None if before is None or after is None else after - before
    captures = _by_side(queries.captures(store, [*sides[0], *sides[1]]), sides)
    environment = _environment(store, sides, captures, first["incident_id"])
    device_timed = all((capture["timeline"] == "device").any() for capture in captures)
    opened = [row for row in own if row["state"] in CONFIRMED_STATES]
    row = {
        **{name: first[name] for name in _NAMES},
        "direction": direction_of(own, leaf_of(values.families)),
        "good_version": _most([row["good_version"] for row in own if row["good_version"] is not None]),
        "severity": "",
        "is_new": any(row["is_new"] for row in own),
        "findings": sum(row["under"] is None for row in own),
        "open": sum(row["under"] is None for row in opened),
        "baseline_runs": " ".join(map(str, sides[0])),
        "candidate_runs": " ".join(map(str, sides[1])),
        "baseline_step_ns": before,
        "candidate_step_ns": after,
        "step_delta_ns": delta,
        **beside,
        **_sums(own, values, len(sides[0]), centre, [part for part in beside.values() if part is not None], delta),
        "shared_factor": math.expm1(centre.shift) if centre.series else None,
        "causes": ", ".join(_causes(own, environment, beside, delta, moved=device_timed and centre.moved)),
    }
    row["severity"] = _severity(own, row["direction"], before, after)
    return Told(row, first["ordinal"], environment)


def direction_of(own: Sequence[Row], leaf: Family | None) -> str:
    """What a version did to the step on the whole: what its own finding says; else the net of the operators, as long as
    nothing else got worse (memory, communication, a part of the whole run); else a regression where anything did.
    """
    known = [row for row in own if row["state"] != "invalid"] or own
    known = [row for row in known if not _is_even(row)]
    whole = {row["direction"] for row in known if row["kind"] == "run" and row["name"] in THE_STEP}
    if whole:
        return _WORSE if _WORSE in whole else _BETTER
    worse = [row for row in known if row["direction"] == _WORSE]
    if not worse or (len(worse) == len(known)):
        return _WORSE if worse else _BETTER
    net = sum(operator_deltas(known, leaf, creep=True).values())
    return _BETTER if net < 0 and all(row["kind"] in _PARTS_OF_STEP for row in worse) else _WORSE


def net_contribution(row: Row) -> float:
    """The part of the step that a finding changed; of one that stands for a replacement, net."""
    of = row["replaced"]
    if of is None:
        return row["contribution"] or 0.0
    return (of.net.contribution or 0.0) if row["finding_id"] == of.head else 0.0


def _is_even(row: Row) -> bool:
    """Whether a finding is part of a replacement that is no loss: by itself it says nothing of its version."""
    return row["replaced"] is not None and not row["replaced"].net.is_worse


def _sums(
    own: Sequence[Row], values: Values, baseline: int, centre: Centre, waiting: Sequence[float], delta: float | None
) -> Row:
    """How the change of the step adds up, exactly. `values`: of so many runs of the `baseline` and of those of the
    version. `waiting`: what changed beside the operators.
    """
    # the step of an incident of creep alone is told against the level that it crept from, any other one against the
    # runs just before, since when what creeps has moved least
    crept = all(row["change"] == "creep" for row in own)
    leaf = leaf_of(values.families)
    found = operator_deltas(own, leaf, creep=crept)
    of_kind = {"operators_ns": 0.0, "new_ns": 0.0, "gone_ns": 0.0}
    for row in own:
        part = found.get(row["finding_id"])
        if part is not None:
            of_kind[_CAME[row["direction"]] if row["change"] == "presence" else "operators_ns"] += part
    known = {row["series_id"]: row["baseline_value"] or 0.0 for row in own if row["finding_id"] in found}
    drift, others = _of_the_rest(values, leaf, baseline, centre, sum(known.values()), sum(found.values()))
    parts = [*found.values(), *waiting]
    explained = sum(parts) + (drift or 0.0)
    movement = sum(abs(part) for part in parts)
    cancelling = not delta or abs(delta) < CANCELLING * movement or explained * delta < 0
    return {
        **of_kind,
        "drift_ns": drift,
        "others_ns": others,
        "explained_share": None if cancelling or not delta else explained / delta,
        "rest_ns": None if delta is None else delta - explained - (others or 0.0),
        "gain_ns": sum(part for part in parts if part < 0),
        "loss_ns": sum(part for part in parts if part > 0),
    }


def _of_the_rest(
    values: Values, leaf: Family | None, baseline: int, centre: Centre, of_found: float, change: float
) -> tuple[float | None, float | None]:
    """What the operators that are no finding changed: with the machine, and beside that. None: not known.

    `of_found`: how long those that are findings took before; `change`: by how much they changed.
    """
    count = values.values.shape[1]
    if leaf is None or not baseline or count == baseline:
        return None, None
    rows = values.values[values.of(leaf)]
    sides = [float(np.nansum(side)) / side.shape[1] for side in (rows[:, :baseline], rows[:, baseline:])]
    if not all(sides):
        return None, None
    drift = math.expm1(centre.shift) * max(sides[0] - of_found, 0.0) if centre.series else 0.0
    return drift, sides[1] - sides[0] - change - drift


def _runs(own: Sequence[Row], side: str) -> list[int]:
    """The runs of a side: those that most findings of the incident rest on; `step`: those of the step."""
    text = _most([row[f"{side}_runs"] for row in own if row[f"{side}_runs"]])
    return [int(number) for number in str(text).split()] if text else []


def _until_the_next(own: Sequence[Row], everything: Sequence[Row]) -> list[int]:
    """The candidate runs up to what changed with a later version: runs of that one may have confirmed the findings, but
    their steps are not what this version made of the step.
    """
    first = own[0]
    names = ("workload_id", "configuration_id", "device_id")
    later = {
        row["first_run_id"]
        for row in everything
        if row["incident_id"] is not None
        and row["ordinal"] > first["ordinal"]
        and all(row[name] == first[name] for name in names)
    }
    runs = _runs(own, "candidate")
    return list(takewhile(lambda run: run not in later, runs)) or runs


def _most(values: Sequence[Any]) -> Any:
    return Counter(values).most_common(1)[0][0] if values else None


def _steps(line: Values, baseline: int, candidate: int) -> tuple[float | None, float | None]:
    """The mean step of the two sides; None where nobody knows."""
    if not baseline or not candidate:
        return None, None
    before, after = steps_of(line, list(range(baseline)), list(range(baseline, baseline + candidate)))
    # no leaf in any run of a side is no step of no length
    return before if before > 0 else None, after if after > 0 else None


def centre_between(line: Values, baseline: int, candidate: int, step: float) -> Centre:
    """What all operators share, on both sides. `step`: the larger one, 0.0 where nobody knows."""
    leaf = leaf_of(line.families)
    if leaf is None or not baseline or not candidate:
        return no_centre(baseline, candidate)
    values = line.values[line.of(leaf)]
    x, y = (logs(np.where(side > 0, side, np.nan), "values") for side in (values[:, :baseline], values[:, baseline:]))
    return centre_of(x, y, large_enough(x, y, Weights(step=step or None)))


def operator_deltas(own: Sequence[Row], leaf: Family | None, *, creep: bool) -> dict[int, float]:
    """Finding -> what it changes of the step, of findings of operators: of their shapes, and of a name where no shape
    is found; once where several findings are of one series. `creep`: also what crept.
    """
    if leaf is None:
        return {}
    known = [
        row
        for row in own
        if row["delta"] is not None
        and (creep or row["change"] != "creep")
        and row["state"] != "invalid"
        and row["metric"] == leaf[1]
    ]
    shapes = [row for row in known if row["kind"] == leaf[0]]
    named = {row["name"] for row in shapes}
    whole = [row for row in known if (leaf[0], row["kind"]) == ("op", "op_name") and row["name"] not in named]
    once = {row["series_id"]: row for row in reversed([*shapes, *whole])}
    return {row["finding_id"]: float(row["delta"]) for row in once.values()}


def _beside(line: Values, baseline: int, candidate: int) -> dict[str, float | None]:
    """What changed of the step beside the operators, from the first runs of `line` to the others; None: not known."""
    found: dict[str, float | None] = dict.fromkeys(_PARTS.values())
    for name, column in _PARTS.items():
        for row in line.run_rows(name):
            rows = line.of_way(way_of(line.families[row]))
            columns = range(baseline), range(baseline, baseline + candidate)
            sides = [telling(line.values, rows, side) for side in columns]
            if sides[0] and sides[1]:
                before, after = (float(np.nan_to_num(line.values[row, side]).mean()) for side in sides)
                found[column] = after - before
                break
    return found


def _severity(own: Sequence[Row], direction: str, before: float | None, after: float | None) -> str:
    """By the net effect on the step: what got worse in a version that is faster on the whole is for information."""
    if direction == _BETTER:
        return "info"
    worse = [row for row in own if row["direction"] == _WORSE and not _is_even(row)]
    whole = any(row["kind"] == "run" and row["name"] in THE_STEP for row in worse)
    ratio = None if before is None or after is None or before == 0 else after / before - 1.0
    largest = max((net_contribution(row) for row in worse), default=0.0)
    return severity(ratio, rule.REGRESSED if whole else rule.UNCHANGED, largest)


def _causes(
    own: Sequence[Row],
    environment: Sequence[Row],
    beside: Mapping[str, float | None],
    delta: float | None,
    *,
    moved: bool,
) -> list[str]:
    """The causes of the findings, the largest part of the step first, then of memory, then what else changed. `moved`:
    all operators did, by more than they do from run to run.
    """
    weights: dict[str, float] = {}
    for column, part in beside.items():
        if part is not None and delta and part / delta >= EXPLAINED:
            weights[_OF_PART[column]] = abs(part / delta)
    for row in own:
        if row["cause"] and row["under"] is None:
            part = abs(net_contribution(row)) if row["unit"] == "ns" else 0.0
            cause = row["cause"] if row["replaced"] is None else "replaced operators"
            weights[cause] = weights.get(cause, 0.0) + part
    words = sorted(weights, key=lambda cause: -weights[cause])
    words += ["method"] * any(row["key"].startswith("profiler ") for row in environment)
    return words + ["environment"] * (moved or any(not row["key"].startswith("profiler ") for row in environment))


def _by_side(frame: pd.DataFrame, sides: Sequence[Sequence[int]]) -> list[pd.DataFrame]:
    """The rows of the runs of each side."""
    return [frame[frame["run_id"].isin(side)] for side in sides]


def _environment(
    store: Store, sides: Sequence[Sequence[int]], captures: Sequence[pd.DataFrame], incident_id: int
) -> list[Row]:
    """The facts and profiler settings that no run of one side shares with any of the other."""
    known: list[dict[str, set[str]]] = []
    facts = _by_side(facts_of(store, [*sides[0], *sides[1]]), sides)
    for of_side, facts_of_side in zip(captures, facts, strict=True):
        own: dict[str, set[str]] = {}
        for fact in facts_of_side.itertuples():
            own.setdefault(fact.key, set()).add(fact.value)
        for capture in of_side.itertuples():
            settings = queries.settings_of(capture.settings) | {"steps": str(capture.steps)}
            for key, value in settings.items():
                own.setdefault(f"profiler {key}", set()).add(value)
        known.append(own)
    return [
        {"incident_id": incident_id, "key": key, "before": before, "after": after}
        for key, before, after in differing(*known)
    ]
