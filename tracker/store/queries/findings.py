"""Findings and what happened to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tracker.lazy import pd
from tracker.store.bulk import LISTED
from tracker.store.connect import Store
from tracker.store.judged import Line
from tracker.store.queries.answers import answer_of, frame, rows, whole

Row = dict[str, Any]


class Regression(NamedTuple):
    """How a finding of a regression stands."""

    finding_id: int
    workload: str
    state: str
    candidate_runs: frozenset[int]


def findings(store: Store, finding_ids: Sequence[int] | None = None, *, workload: str | None = None) -> pd.DataFrame:
    """These findings, or all, of a workload. Columns: see sql/findings.sql."""
    ids = [] if finding_ids is None else whole(finding_ids)
    every = finding_ids is None or len(ids) > LISTED
    wanted = {"all_findings": int(every), "finding_ids": [] if every else ids, "workload": workload}
    found = frame(store, "findings", wanted)
    return found[found["finding_id"].isin(ids)].reset_index(drop=True) if len(ids) > LISTED else found


def finding_events(store: Store, finding_ids: Sequence[int]) -> pd.DataFrame:
    """What happened to findings, in order. Columns: see sql/finding_events.sql."""
    return answer_of(store, "finding_events", "finding_ids", finding_ids).frame


def lives(store: Store, line: Line) -> list[tuple[Row, list[Row]]]:
    """The findings of a line, by the versions that began them, with the columns of sql/line_findings.sql, each with
    what happened to it in order, with those of sql/line_events.sql; no frames, for a diff asks it.
    """
    known = [dict(row._mapping) for row in rows(store, "line_findings", **line.parameters)]
    events: dict[int, list[Row]] = {}
    for event in rows(store, "line_events", **line.parameters):
        events.setdefault(event.finding_id, []).append(dict(event._mapping))
    return [(row, events.get(row["finding_id"], [])) for row in known]


def regressions(store: Store) -> list[Regression]:
    """How all findings of regressions stand, in order of their ids; no frame, for every ingest asks it."""
    return [
        Regression(row.finding_id, row.workload, row.state, frozenset(map(int, (row.candidate_runs or "").split())))
        for row in rows(store, "regressions")
    ]


def found_changes(store: Store, finding_ids: Sequence[int] | None = None, *, workload: str | None = None) -> list[Row]:
    """These findings, or all, of a workload, as dicts with the columns of sql/found_changes.sql."""
    ids = [] if finding_ids is None else whole(finding_ids)
    every = finding_ids is None or len(ids) > LISTED
    asked = {"all_findings": int(every), "finding_ids": [] if every else ids, "workload": workload}
    found = [dict(row._mapping) for row in rows(store, "found_changes", **asked)]
    return [row for row in found if row["finding_id"] in {*ids}] if len(ids) > LISTED else found


def finding_words(store: Store) -> dict[int, list[Row]]:
    """Finding -> what users said of it, in order, with the columns of sql/finding_words.sql."""
    found: dict[int, list[Row]] = {}
    for row in rows(store, "finding_words"):
        found.setdefault(row.finding_id, []).append(dict(row._mapping))
    return found


def of_version(store: Store, question: str, line: Line, version_id: int) -> list[Row]:
    """What is kept of a version of a track: `suspects` or `version_facts`, with the columns of that question."""
    asked = {**line.parameters, "version_id": version_id}
    return [dict(row._mapping) for row in rows(store, question, **asked)]


def version_gates(store: Store, line: Line) -> list[Row]:
    """How the versions of a track came out, in their order, with the columns of sql/version_gates.sql."""
    return [dict(row._mapping) for row in rows(store, "version_gates", **line.parameters)]


def standings(store: Store) -> list[Row]:
    """Where findings stand, in their order, with the columns of sql/standings.sql."""
    return [dict(row._mapping) for row in rows(store, "standings")]
