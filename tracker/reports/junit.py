"""Test results in the schema of JUnit, as GitLab, Jenkins and others read them: a test case per check.

What fails the gate is a failure, what the runs cannot decide is skipped, sides that are never compared are an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree

from tracker.reports.document import Checks
from tracker.units import NS_PER_S

TITLE = "test results for GitLab, Jenkins and others (JUnit XML)"
SUFFIX = ".xml"
_KINDS: Final = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def render(checks: Checks) -> str:
    """Write one failure per thing that the gate counts.

    What else fails in its group (shapes of an op) is in its text.
    """
    suite = ElementTree.Element("testsuite", name=checks.title)
    counted = {one.group: one for one in checks.failed}
    failing: dict[str, list[str]] = {}
    for row in checks.rows:
        if row.outcome == "failed" and row.group in counted and row != counted[row.group]:
            failing.setdefault(row.group, []).append(row.sentence)
    for row in checks.rows:
        if row.outcome == "failed" and row.group in counted and row != counted[row.group]:
            continue
        case = ElementTree.SubElement(suite, "testcase", classname=f"tracker.{row.section}", name=row.name)
        if row.time_ns is not None:
            case.set("time", f"{row.time_ns / NS_PER_S:.9f}")
        if row.outcome == "failed":
            failure = ElementTree.SubElement(case, "failure", message=row.short, type=row.verdict)
            failure.text = "\n".join([row.sentence, *failing.get(row.group, [])])
        elif row.outcome == "error":
            ElementTree.SubElement(case, "error", message=row.sentence, type=row.verdict)
        elif row.outcome != "passed":
            ElementTree.SubElement(case, "skipped", message=row.sentence)
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for name, kind in _KINDS.items():
        suite.set(name, str(sum(case.find(kind) is not None for case in cases)))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    return _written(root)


def joined(pages: Sequence[str]) -> str:
    """Join the test suites of several documents in one."""
    root = ElementTree.Element("testsuites")
    for page in pages:
        root.extend(ElementTree.fromstring(page))
    return _written(root)


def _written(root: ElementTree.Element) -> str:
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'
