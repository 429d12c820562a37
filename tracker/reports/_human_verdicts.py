"""Verdicts for people: the line above the tables of a diff, and the columns at the end of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tracker.detect import DEFAULTS
from tracker.reports.shared import has
from tracker.results import ADDED, REMOVED, Diff
from tracker.results.verdicts import REASONS, STILL
from tracker.units import format_diff

if TYPE_CHECKING:
    import pandas as pd

    from tracker.columns import Columns

TONES: Final[Mapping[str, str]] = {
    "REGRESSED": "worse", "ADDED": "worse", "SUSPECT": "strong", "IMPROVED": "better", "REMOVED": "better",
}  # fmt: skip
"""Tone of a row by its verdict; the others have none."""
_SMALLEST_Q: Final = 0.001
_ROUNDING: Final = 0.001


def line(diff: Diff) -> str:
    """What the runs can tell, or why there are no verdicts; without the reason that the answer says."""
    return " ".join(diff.judgement.sentences[diff.is_refused :]) if diff.judgement is not None else ""


def judged(rows: Columns | pd.DataFrame) -> bool:
    """Whether any row of a table of a Diff has a verdict; without one there is no column for them."""
    return has(rows, "verdict")


def word(row: Mapping[str, Any]) -> str:
    """The verdict of a row; what came or went and is too small to matter has none.

    >>> word({"verdict": "REGRESSED"}), word({"verdict": "UNCHANGED", "status": "ADDED"}), word({"verdict": None})
    ('REGRESSED', '', '')
    """
    verdict = row.get("verdict") or ""
    return "" if row.get("status") in (ADDED, REMOVED) and verdict not in TONES else str(verdict)


def judged_text(row: Mapping[str, Any]) -> str:
    """The change that the verdict rests on, where it is another than the row shows by more than rounding.

    >>> judged_text({"diff": 0.3, "judged_diff": 0.25}), judged_text({"diff": 0.3, "judged_diff": 0.3004})
    ('+25.0 %', '')
    """
    shown, judged_on = row.get("diff"), row.get("judged_diff")
    if judged_on is None or (shown is not None and abs(judged_on - shown) <= _ROUNDING):
        return ""
    return format_diff(judged_on)


def still_open(row: Mapping[str, Any]) -> str:
    """What an older finding of the row says; "" for nothing."""
    reason = str(row.get("reason") or "")
    return reason if reason.startswith(STILL) else ""


def too_small(rows: Sequence[Mapping[str, Any]]) -> str:
    """Why rows are BELOW_LIMIT that have a clear change and a small q; "" where none is."""
    found = any(row.get("verdict") == "BELOW_LIMIT" and row.get("reason") == REASONS["CONTRIBUTION"] for row in rows)
    least = f"{DEFAULTS.floor * 100:g} %"
    return f"BELOW_LIMIT: significant, but too small a part of the step, usually below {least}." if found else ""


def q_text(q: float | None) -> str:
    """The false discovery rate, as short as it decides.

    >>> q_text(0.0312), q_text(1e-9), q_text(None)
    ('0.031', '<0.001', '')
    """
    if q is None:
        return ""
    return f"<{_SMALLEST_Q}" if q < _SMALLEST_Q else f"{q:.3f}"


def cells(rows: Columns | pd.DataFrame, row: Mapping[str, Any]) -> list[str]:
    """The cells of the verdict of a row of `rows`; none where nothing of them was judged."""
    return [word(row), judged_text(row), q_text(row.get("q"))] if row.get("verdict") or judged(rows) else []
