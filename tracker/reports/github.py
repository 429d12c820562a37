"""Annotations of a GitHub workflow: lines that its runner turns into errors, warnings and notices of the run."""

from __future__ import annotations

from typing import Final

from tracker.errors import EXIT_FINDINGS, EXIT_OK
from tracker.reports.document import Checks
from tracker.units import printable

TITLE = "annotations of a GitHub workflow"
SUFFIX = ".annotations"
_MOST: Final = 10
"""Annotations of one kind that GitHub shows of a step of a workflow."""
_KINDS: Final = {EXIT_OK: "notice", EXIT_FINDINGS: "error"}


def render(checks: Checks) -> str:
    """Write the headline, then what fails as errors and what may fail as warnings.

    Where they are too many, the last one says how many more there are.
    """
    kind = _KINDS.get(checks.gate.code, "warning")
    message = f"{checks.headline}\n--fail-on {checks.gate.word}: exit {checks.gate.code}, {checks.gate.because}"
    lines = [_annotation(kind, checks.title, message)]
    for rows, of in ((checks.failed, "error"), (checks.warned, "warning")):
        most = _MOST - (kind == of)
        shown = rows if len(rows) <= most else rows[: most - 1]
        lines += (_annotation(of, f"{row.verdict}: {row.name}", row.sentence) for row in shown)
        if len(shown) < len(rows):
            left_out = ", ".join(row.name for row in rows[len(shown) :][:_MOST])
            text = f"Among them {left_out}; the report has all of them."
            lines.append(_annotation(of, f"{len(rows) - len(shown)} more", text))
    return "".join(f"{line}\n" for line in lines)


def _annotation(kind: str, title: str, message: str) -> str:
    text = "%0A".join(_data(line) for line in message.split("\n"))
    return f"::{kind} title={_property(title)}::{text}"


def _data(text: str) -> str:
    """Write a line of a message, as the runner reads it: what is printable stays on this line, and `%` is no escape."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    """Write a property of a command; commas and colons would end it.

    >>> _property("aten::mul, 5 %")
    'aten%3A%3Amul%2C 5 %25'
    """
    return _data(text).replace(":", "%3A").replace(",", "%2C")
