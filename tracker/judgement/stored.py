"""The verdicts on a version as they were kept: the same for diff and history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from sqlalchemy import Connection

from tracker.detectors import rule
from tracker.detectors.arrays import Columns
from tracker.lazy import pd
from tracker.store import Store, judged, queries
from tracker.store.chosen import Key
from tracker.store.judged import Line

_NUMBERS: Final = {"diff": 6, "p": 7, "q": 8, "contribution": 9, "detectable": 12}
_WORDS: Final = {"verdict": 10, "calls_verdict": 11, "reason": 13}
"""Column of `judging.Compared` -> place in sql/version_verdicts.sql."""
_DECIDED: Final = {
    ("level", "regression"): rule.REGRESSED, ("level", "improvement"): rule.IMPROVED,
    ("presence", "regression"): rule.ADDED, ("presence", "improvement"): rule.REMOVED,
}  # fmt: skip
_CONFIRMED: Final = "confirmed by the next runs"
_CLEARED: Final = "a suspicion that the next runs cleared"


class KeptVersion(Struct, frozen=True):
    """A version of a line that was judged. `baseline`: the runs that it was judged against."""

    line: Line
    version_id: int
    baseline: frozenset[int]


def numbers_of(run_ids: Iterable[int]) -> str:
    """Runs as text, in the order of their numbers."""
    return " ".join(map(str, sorted(run_ids)))


def kept_version(connection: Connection, line: Line, run_ids: Iterable[int]) -> KeptVersion | None:
    """The version that was judged by these runs of a line, and by the rule of now; None where there is none."""
    text = numbers_of(run_ids)
    for known in judged.judged_of(connection, line).values():
        if known.judged_runs == text and known.rule_version == rule.RULE_VERSION:
            baseline = frozenset(map(int, (known.baseline_runs or "").split()))
            return KeptVersion(line, known.version_id, baseline)
    return None


def kept_verdicts(store: Store, kept: KeptVersion) -> tuple[list[Key], Columns]:
    """The series that were judged in a version, and the columns of `judging.Compared` that are kept of them."""
    with store.connect() as connection:
        rows = judged.verdicts_of(connection, kept.line, kept.version_id)
    keys: list[Key] = [tuple(row[1:6]) for row in rows]
    columns: Columns = {
        name: np.array([np.nan if row[at] is None else row[at] for row in rows], dtype=np.float64)
        for name, at in _NUMBERS.items()
    }
    for name, at in _WORDS.items():
        columns[name] = np.array([row[at] for row in rows] + [None], dtype=object)[:-1]
    doubted = [place for place, word in enumerate(columns["verdict"].tolist()) if word == rule.SUSPECT]
    said = decided(store, [int(rows[place][0]) for place in doubted])
    for place in doubted:
        word, reason = said.get((int(rows[place][0]), kept.version_id), (rule.SUSPECT, columns["reason"][place]))
        columns["verdict"][place], columns["reason"][place] = word, reason
    return keys, columns


def decided(store: Store, series_ids: Sequence[int]) -> dict[tuple[int, int], tuple[str, str]]:
    """Series and version -> the verdict on a suspicion of it, and the reason, where later runs decided."""
    found: dict[tuple[int, int], tuple[str, str]] = {}
    for row in queries.decided_suspicions(store, series_ids).rows(
        "series_id", "version_id", "change", "direction", "is_confirmed"
    ):
        series_id, version_id, change, direction, is_confirmed = row
        if is_confirmed:
            found[series_id, version_id] = _DECIDED[change, direction], _CONFIRMED
        else:
            found.setdefault((series_id, version_id), (rule.UNCHANGED, _CLEARED))
    return found


def with_decided(store: Store, diffs: pd.DataFrame) -> pd.DataFrame:
    """`queries.series_diffs` with the suspicions that later runs decided."""
    doubted = diffs.index[diffs["baseline_verdict"] == rule.SUSPECT]
    if not len(doubted):
        return diffs
    said = decided(store, sorted({int(number) for number in diffs.loc[doubted, "series_id"]}))
    for at in doubted:
        key = int(diffs.at[at, "series_id"]), int(diffs.at[at, "version_id"])
        if key in said:
            diffs.loc[at, ["baseline_verdict", "reason"]] = said[key]
    return diffs
