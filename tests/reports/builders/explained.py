"""One explained finding made by hand: aten::mm of v42, 3 runs of 15 ms behind 8 of 10 ms."""

from __future__ import annotations

from tests.reports.builders.diffs import MS
from tests.reports.builders.found import finding
from tracker.columns import Columns
from tracker.results import EXPLAIN_COLUMNS, FINDINGS_COLUMNS, ExplainedFinding

TESTS = (
    ("runs before", 8, 3, True, "default", "newest runs of the level before"),
    ("change", 0.5, 0.03, True, "default", "change, machine-wide drift removed"),
    ("range", None, None, True, None, "every run after is beyond every run before"),
    ("q", 0.2, 0.05, False, "of the track, ann: fewer alarms", "false discovery rate (q)"),
)


def _table(rows, columns):
    return Columns.of_rows([dict(zip(columns, row, strict=True)) for row in rows], columns)


def explained(number=2, name="aten::mm", *, tests=TESTS, events=1, facts=0, changes=0, notes=(), **more):
    """A finding with as many events, facts and changes of the environment."""
    runs = [
        (run, "v42" if run > 8 else "v41", "candidate" if run > 8 else "baseline", None,
         15.0 * MS if run > 8 else 10.0 * MS, 27, 0.01, 0.5 if run > 8 else 0.0)
        for run in range(1, 12)
    ]  # fmt: skip
    changed = [{"key": f"ENV{at}", "before": "0", "after": "1"} for at in range(changes)]
    return ExplainedFinding(
        finding=dict.fromkeys(FINDINGS_COLUMNS["findings"]) | finding(number, name, **more),
        tables={
            "tests": _table(tests, EXPLAIN_COLUMNS["tests"]),
            "runs": _table(runs, EXPLAIN_COLUMNS["runs"]),
            "events": _table([(None, "REGRESSED", "tracker", f"v{42 + at}", "why") for at in range(events)],
                             EXPLAIN_COLUMNS["events"]),
            "facts": _table([("op", f"aten::op{at}", "", "calls", 1, 2) for at in range(facts)],
                            EXPLAIN_COLUMNS["facts"]),
            "environment": Columns.of_rows(changed, EXPLAIN_COLUMNS["environment"]),
        },
        notes=notes,
    )  # fmt: skip
