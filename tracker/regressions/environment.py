"""What else changed: the facts of the runs of two sides, and how their profilers were set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracker.lazy import pd
from tracker.profile import OF_A_RUN, OF_THE_CODE
from tracker.regressions.places import Place
from tracker.results import HISTORY_COLUMNS
from tracker.store import Store, queries

Row = dict[str, Any]


def changed_between(store: Store, incident: Row) -> list[Row]:
    """The facts and profiler settings that no run of one side of an incident shares with any run of the other."""
    sides = [[int(run) for run in incident[side].split()] for side in ("baseline_runs", "candidate_runs")]
    both = [run for side in sides for run in side]
    captures = list(queries.captures.columns(store, both).rows("run_id", "settings", "steps"))
    facts = facts_of(store, both)
    known: list[dict[str, set[str]]] = []
    for side in sides:
        own: dict[str, set[str]] = {}
        for run_id, key, value in facts:
            if run_id in side:
                own.setdefault(key, set()).add(value)
        for run_id, settings, steps in captures:
            for key, value in (queries.settings_of(settings) | {"steps": str(steps)}).items() if run_id in side else ():
                own.setdefault(f"profiler {key}", set()).add(value)
        known.append(own)
    return [
        {"incident_id": incident["incident_id"], "key": key, "before": before, "after": after}
        for key, before, after in differing(*known)
    ]


def changes(store: Store, place: Place) -> pd.DataFrame:
    """The facts that no run of a version shares with any run of the version before; columns as in HISTORY_COLUMNS.

    Several values of a version join with ` | `; what differs from run to run is no change of the version.
    """
    version_of = {run.run_id: run.version for run in place.runs}
    known: dict[str, dict[str, set[str]]] = {run.version: {} for run in place.runs}
    for run_id, key, value in facts_of(store, list(version_of)):
        known[version_of[run_id]].setdefault(key, set()).add(value)
    rows = []
    before: dict[str, set[str]] | None = None
    for version, after in known.items():
        changed = [] if before is None else differing(before, after)
        rows += [(place.workload, place.configuration, place.device, version, *change) for change in changed]
        before = after
    return pd.DataFrame(rows, columns=list(HISTORY_COLUMNS["environment"]), dtype=object)


def facts_of(store: Store, run_ids: Sequence[int]) -> list[tuple[int, str, str]]:
    """The environment of runs: run, key, value; without what names the run and its code."""
    facts = queries.facts.columns(store, list(run_ids), kind="fact").rows("run_id", "key", "value")
    return [fact for fact in facts if fact[1] not in OF_A_RUN | OF_THE_CODE]


def differing(
    before: Mapping[str, set[str]], after: Mapping[str, set[str]]
) -> list[tuple[str, str | None, str | None]]:
    """Keys of which the two sides share no value, with what each says; None for nothing.

    What only one side says is no change where the other one does not know: it counts for settings of the profiler, and
    for a variable of a job that stated its variables.

    >>> differing({"driver": {"535"}}, {"driver": {"550"}, "python_version": {"3.11"}, "NCCL_ALGO": {"Ring"}})
    [('driver', '535', '550')]
    >>> differing({"python_version": {"3.11"}}, {"python_version": {"3.11"}, "NCCL_ALGO": {"Ring"}})
    [('NCCL_ALGO', None, 'Ring')]
    """
    found = []
    for key in sorted(before.keys() | after.keys()):
        one, other = before.get(key, set()), after.get(key, set())
        counts = bool(one and other) or key.startswith("profiler ")
        states_variables = "python_version" in (after if one else before) or any(
            name[:1].isupper() for name in (after if one else before)
        )
        if not one & other and (counts or (key[:1].isupper() and states_variables)):
            found.append((key, " | ".join(sorted(one)) or None, " | ".join(sorted(other)) or None))
    return found
