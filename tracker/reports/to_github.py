"""Annotations of a GitHub workflow: lines that its runner turns into errors, warnings and notices of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tracker.errors import EXIT_FINDINGS, EXIT_OK
from tracker.reports import _gated, _human_findings
from tracker.reports.shared import Style
from tracker.results import Diff, Findings
from tracker.results.gates import Gate, GatedRow
from tracker.units import printable

TITLE = "annotations of a GitHub workflow"
SUFFIX = ".annotations"
BINARY = False

_MOST: Final = 10
"""Annotations of one kind that GitHub shows of a step of a workflow."""
_KINDS: Final = {EXIT_OK: "notice", EXIT_FINDINGS: "error"}


def diff(diff: Diff, style: Style) -> str:
    """The answer, then what fails as errors and what may fail as warnings."""
    return _document(diff, diff.explanation.headline, _gated.gate_of(diff, style))


def findings(found: Findings, style: Style) -> str:
    """What matters in a sentence, then what fails as errors and what may fail as warnings."""
    return _document(found, _human_findings.answer(found), _gated.gate_of(found, style))


def _document(result: Diff | Findings, answer: str, gate: Gate) -> str:
    kind = _KINDS.get(gate.code, "warning")
    lines = [
        _annotation(kind, _gated.title(result), f"{answer}\n--fail-on {gate.word}: exit {gate.code}, {gate.because}")
    ]
    for rows, of in ((gate.of("failed"), "error"), (gate.of("suspect", "known"), "warning")):
        lines += _annotations(rows, of, _MOST - (kind == of))
    return "".join(f"{line}\n" for line in lines)


def _annotations(rows: Sequence[GatedRow], kind: str, most: int) -> Iterator[str]:
    """One per row; where there are more than `most`, the last one says how many."""
    shown = rows if len(rows) <= most else rows[: most - 1]
    for row in shown:
        yield _annotation(kind, f"{row.verdict}: {_gated.name(row)}", _gated.sentence(row))
    if len(shown) < len(rows):
        left_out = ", ".join(_gated.name(row) for row in rows[len(shown) :][:_MOST])
        yield _annotation(kind, f"{len(rows) - len(shown)} more", f"Among them {left_out}; the report has all of them.")


def _annotation(kind: str, title: str, message: str) -> str:
    text = "%0A".join(_data(line) for line in message.split("\n"))
    return f"::{kind} title={_property(title)}::{text}"


def _data(text: str) -> str:
    """A line of a message, as the runner reads it: what is printable stays on this line, and `%` is no escape."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    """A property of a command; commas and colons would end it.

    >>> _property("aten::mul, 5 %")
    'aten%3A%3Amul%2C 5 %25'
    """
    return _data(text).replace(":", "%3A").replace(",", "%2C")
