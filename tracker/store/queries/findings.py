"""Findings and what happened to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracker.store.bulk import LISTED
from tracker.store.connect import Store
from tracker.store.judged import Line
from tracker.store.queries.answers import rows, whole

Row = dict[str, Any]


def findings(store: Store, finding_ids: Sequence[int] | None = None, *, workload: str | None = None) -> list[Row]:
    """These findings, or all, of a workload, as dicts with the columns of sql/findings.sql."""
    ids = [] if finding_ids is None else whole(finding_ids)
    every = finding_ids is None or len(ids) > LISTED
    asked = {"all_findings": int(every), "finding_ids": [] if every else ids, "workload": workload} | dict.fromkeys(
        Line.__struct_fields__
    )
    found = [dict(row._mapping) for row in rows(store, "findings", **asked)]
    return [row for row in found if row["finding_id"] in {*ids}] if len(ids) > LISTED else found


def finding_words(store: Store) -> dict[int, list[Row]]:
    """Finding -> what users said of it, in order, with the columns of sql/finding_words.sql."""
    found: dict[int, list[Row]] = {}
    for row in rows(store, "finding_words"):
        found.setdefault(row.finding_id, []).append(dict(row._mapping))
    return found


def version_facts(store: Store, line: Line, version_id: int) -> list[Row]:
    """What changed for certain with a version of a track, with the columns of sql/version_facts.sql."""
    asked = {**line.parameters, "version_id": version_id}
    return [dict(row._mapping) for row in rows(store, "version_facts", **asked)]


def standings(store: Store) -> list[Row]:
    """Where findings stand, in their order, with the columns of sql/standings.sql."""
    return [dict(row._mapping) for row in rows(store, "standings")]
