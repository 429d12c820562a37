"""One explained finding made by hand: aten::mm of v42, 3 runs of 15 ms behind 8 of 10 ms."""

from __future__ import annotations

from tests.reports.builders.diffs import MS
from tests.reports.builders.found import finding
from tracker.results import ExplainedFinding, finding_tests
from tracker.results.findings import (
    ChangedFact,
    ExplainedRows,
    FindingEvent,
    FindingFact,
    FindingRun,
    FindingTest,
)

TESTS = (
    ("runs before", 8, 3, True, "default", "newest runs of the level before"),
    ("change", 0.5, 0.03, True, "default", "change, machine-wide drift removed"),
    ("range", None, None, True, None, finding_tests.BEYOND.meaning),
    ("q", 0.2, 0.05, False, "alpha 0.05, ann: fewer alarms", "false discovery rate (q)"),
)


def explained(number=2, name="aten::mm", *, tests=TESTS, events=1, facts=0, changes=0, notes=(), **more):
    """A finding with as many events, facts and changes of the environment."""
    runs = []
    for run in range(1, 12):
        is_after = run > 8
        of_run = FindingRun(
            run_id=run,
            version="v42" if is_after else "v41",
            side="candidate" if is_after else "baseline",
            started_at_ns=None,
            value=15.0 * MS if is_after else 10.0 * MS,
            calls=27.0,
            shared_factor=0.01,
            change=0.5 if is_after else 0.0,
        )
        runs.append(of_run)
    names = ("test", "value", "limit", "passes", "limit_from", "meaning")
    rows = ExplainedRows(
        tests=tuple(FindingTest(**dict(zip(names, test, strict=True))) for test in tests),
        runs=tuple(runs),
        events=tuple(
            FindingEvent(state="REGRESSED", who="tracker", version=f"v{42 + at}", reason="why") for at in range(events)
        ),
        facts=tuple(
            FindingFact(kind="op", name=f"aten::op{at}", input_shapes="", what="calls", before=1, after=2)
            for at in range(facts)
        ),
        environment=tuple(
            ChangedFact(incident_id=None, key=f"ENV{at}", before="0", after="1") for at in range(changes)
        ),
    )
    return ExplainedFinding(finding(number, name, **more), rows, notes=notes)
