"""Verdicts for people: the line above the tables of a diff, and the columns at the end of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tracker.detectors import rule
from tracker.reports.shared import has
from tracker.results import ADDED, REMOVED, Diff
from tracker.results.verdicts import BELOW_FLOOR, JUMPS

if TYPE_CHECKING:
    import pandas as pd

    from tracker.columns import Columns

TONES: Final[Mapping[str, str]] = {
    "REGRESSED": "worse", "ADDED": "worse", "SUSPECT": "strong", "IMPROVED": "better", "REMOVED": "better",
}  # fmt: skip
"""Tone of a row by its verdict; the others have none."""
_SMALLEST_Q: Final = 0.001


def line(diff: Diff) -> str:
    """What the runs can tell, or why there are no verdicts; "" where nobody asked."""
    return " ".join(diff.judgement.sentences) if diff.judgement is not None else ""


def judged(rows: Columns | pd.DataFrame) -> bool:
    """Whether any row of a table of a Diff has a verdict; without one there is no column for them."""
    return has(rows, "verdict")


def word(row: Mapping[str, Any]) -> str:
    """The verdict of a row, with `(calls)` where the number of calls is a finding too; what came or went and is too
    small to matter has none.

    >>> word({"verdict": "REGRESSED", "calls_verdict": "REGRESSED"}), word({"verdict": None})
    ('REGRESSED (calls)', '')
    """
    verdict, calls = row.get("verdict") or "", row.get("calls_verdict") or ""
    if row.get("status") in (ADDED, REMOVED) and verdict not in TONES:
        return ""
    if calls not in TONES:
        return str(verdict)
    return f"{verdict} (calls)" if verdict == calls else f"{verdict}, calls {calls}"


def doubt(row: Mapping[str, Any]) -> str:
    """What else is known of an INCONCLUSIVE row that changed enough: that it jumps anyway; "" for nothing."""
    reason = str(row.get("reason") or "")
    return reason if row.get("verdict") == "INCONCLUSIVE" and reason.startswith(JUMPS) else ""


def too_small(rows: Sequence[Mapping[str, Any]]) -> str:
    """Why rows are BELOW_LIMIT that have a clear change and a small q; "" where none is."""
    told = any(row.get("verdict") == "BELOW_LIMIT" and row.get("reason") == BELOW_FLOOR for row in rows)
    least = f"{rule.MIN_CONTRIBUTION * 100:g} %"
    return f"BELOW_LIMIT: sure, but too small a part of the step, usually below {least}." if told else ""


def q_text(q: float | None) -> str:
    """The share of false discoveries, as short as it decides.

    >>> q_text(0.0312), q_text(1e-9), q_text(None)
    ('0.031', '<0.001', '')
    """
    if q is None:
        return ""
    return f"<{_SMALLEST_Q}" if q < _SMALLEST_Q else f"{q:.3f}"


def cells(rows: Columns | pd.DataFrame, row: Mapping[str, Any]) -> list[str]:
    """The cells of the verdict and q of a row of `rows`; none where nothing of them was judged."""
    return [word(row), q_text(row.get("q"))] if row.get("verdict") or judged(rows) else []
