"""Test results in the schema of JUnit, as GitLab, Jenkins and others read them: a test case per thing that was judged.

What fails the gate is a failure, what the runs cannot tell is skipped, sides that are never compared are an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from xml.etree import ElementTree

from tracker.errors import EXIT_FINDINGS, EXIT_NOT_COMPARABLE, EXIT_TOO_LITTLE_DATA
from tracker.regressions.gates import reason_of
from tracker.reports import _gated
from tracker.reports.shared import Style, records
from tracker.results import Diff, Findings
from tracker.results.gates import Gate, GatedRow
from tracker.units import NS_PER_S, printable

TITLE = "test results for GitLab, Jenkins and others (JUnit XML)"
SUFFIX = ".xml"
BINARY = False

_ROOM: Final = "tracker"


def diff(diff: Diff, style: Style) -> str:
    """A case for the whole run, and one per series that was judged and matters."""
    gate = _gated.gate_of(diff, style)
    rows = _gated.worth_a_line(gate, _gated.whole_ns(diff))
    suite = _suite(_gated.title(diff))
    step = "duration_ns" if diff.explanation.total_metric == "step_ns" else diff.explanation.total_metric
    if not any(row.key[:2] == ("run", step) for row in rows):
        _alone(suite, f"{_ROOM}.overall", "step", gate)
    _cases(suite, rows, gate)
    return _document(suite)


def findings(found: Findings, style: Style) -> str:
    """A case per line that runs were judged of, and one per finding."""
    gate = _gated.gate_of(found, style)
    suite = _suite(_gated.title(found))
    for row in records(found.tables["lines"]):
        where = " ".join(filter(None, (row["workload"], row["configuration"], f"on {row['device']}", row["version"])))
        case = _case(suite, f"{_ROOM}.line", where, row["step_ns"] or row["e2e_ns"])
        code, why = row[f"gate_{gate.word}"], reason_of(row, gate.word)
        if code == EXIT_TOO_LITTLE_DATA:
            ElementTree.SubElement(case, "skipped", message=why)
        elif code == EXIT_FINDINGS and not gate.of("failed"):
            ElementTree.SubElement(case, "failure", message=why, type="REGRESSED")
    _cases(suite, gate.rows, gate)
    return _document(suite)


def _suite(title: str) -> ElementTree.Element:
    return ElementTree.Element("testsuite", name=title)


def _case(suite: ElementTree.Element, room: str, name: str, time_ns: float | None) -> ElementTree.Element:
    """`time`: in seconds; left out where it is not known."""
    case = ElementTree.SubElement(suite, "testcase", classname=room, name=printable(name))
    if time_ns is not None:
        case.set("time", f"{time_ns / NS_PER_S:.9f}")
    return case


def _alone(suite: ElementTree.Element, room: str, name: str, gate: Gate) -> None:
    """The case of a step that was not judged."""
    case = _case(suite, room, name, None)
    if gate.code == EXIT_NOT_COMPARABLE:
        ElementTree.SubElement(case, "error", message=printable(gate.because), type="NOT_COMPARABLE")
    elif gate.code == EXIT_TOO_LITTLE_DATA:
        ElementTree.SubElement(case, "skipped", message=printable(gate.because))


def _cases(suite: ElementTree.Element, rows: Iterable[GatedRow], gate: Gate) -> None:
    """One failure per thing that the gate counts: what else fails under its name (shapes of an op) is told in it."""
    counted = {(row.section, row.name): row for row in gate.of("failed")}
    failing: dict[tuple[str, str], list[str]] = {}
    for row in gate.rows:
        if row.outcome == "failed" and row is not counted[row.section, row.name]:
            failing.setdefault((row.section, row.name), []).append(_gated.sentence(row))
    for row in rows:
        if row.outcome == "failed" and row is not counted[row.section, row.name]:
            continue
        case = _case(suite, f"{_ROOM}.{row.section}", _gated.name(row), row.candidate if row.unit == "ns" else None)
        text = _gated.sentence(row)
        if row.outcome == "failed":
            failure = ElementTree.SubElement(case, "failure", message=printable(row.words), type=row.verdict)
            failure.text = "\n".join([text, *failing.get((row.section, row.name), [])])
        elif row.outcome != "passed":
            ElementTree.SubElement(case, "skipped", message=text)


def _document(suite: ElementTree.Element) -> str:
    cases = suite.findall("testcase")
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {name: str(sum(case.find(kind) is not None for case in cases)) for name, kind in kinds.items()}
    for name, count in {"tests": str(len(cases)), **counts}.items():
        suite.set(name, count)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    return _written(root)


def joined(pages: Sequence[str]) -> str:
    """The test suites of several documents in one."""
    root = ElementTree.Element("testsuites")
    for page in pages:
        root.extend(ElementTree.fromstring(page))
    return _written(root)


def _written(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'
