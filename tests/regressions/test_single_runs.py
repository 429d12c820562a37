"""One run a version, as most nightly series have: what one run decides, and which runs the next ones are beside."""

from __future__ import annotations

from tests.regressions.made import runs
from tracker.compare import diffs
from tracker.regressions.gates import gate_of_findings
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.results import FindingsOptions

COPIES = {"copy": 600_000}
"""A copy of .6 ms, in a step of 40 ms: 1.5 % of it."""

WRITTEN_OUT = {"tanh": 4_000_000}
"""An operator of 4 ms: 10 % of the step."""


def nightly(store, *versions):
    """Versions v1, v2, ... of one run each: five of 40 ms, then these: (what is changed, idle time in ns).

    Each is judged before the next one comes.
    """
    for number, (changed, idle_ns) in enumerate([({}, 0)] * 5 + list(versions)):
        runs(store, f"v{number + 1}", changed, count=1, start=number, idle_ns=idle_ns)
        update(store, tracks_of(store))


def test_runs_after_a_suspect_have_a_base_of_their_operators(memory_store):
    # v6 has a copy more, and takes 12 % longer; v7 has not, and a loader that takes 12 % longer
    nightly(memory_store, (COPIES, 4_000_000), ({}, 5_000_000), ({}, 0), ({}, 0))
    (beside_level,) = diffs(memory_store, ["v9"])
    # v7 is one bad run of that level
    assert beside_level.baseline.label == ",".join(f"run:{number}" for number in (1, 2, 3, 4, 5, 8))


def step_of_v6(store):
    """State, version that it was over in, and severity of the regression of the step in v6."""
    found = findings(store, options=FindingsOptions(version="v6", every=True)).tables
    ((state, ended),) = [
        row[1:] for row in found["findings"].rows("name", "state", "ended_version") if row[0] == "step"
    ]
    (severity,) = found["incidents"]["severity"].tolist()
    return state, ended, severity


def headline(store, version):
    (beside_level,) = diffs(store, [version])
    return beside_level.explanation.headline, beside_level.explanation.remarks


def test_one_run_with_new_operators_is_a_warning(memory_store):
    nightly(memory_store, (WRITTEN_OUT, 0))
    assert step_of_v6(memory_store) == ("new", None, "warning")
    assert gate_of_findings(findings(memory_store)).code == 1
    text, remarks = headline(memory_store, "v6")
    assert text.startswith("v6 is 9.9 % slower than")
    assert remarks == ("One run decides: operators that are certainly new or gone make up at least half of it.",)
    runs(memory_store, "v6", WRITTEN_OUT, count=1, start=6)
    update(memory_store, tracks_of(memory_store))
    assert step_of_v6(memory_store) == ("new", None, "critical")


def test_operators_that_are_gone_end_a_regression_in_one_run(memory_store):
    nightly(memory_store, (WRITTEN_OUT, 0), ({}, 0))
    assert step_of_v6(memory_store) == ("recovered", "v7", "warning")
    assert gate_of_findings(findings(memory_store)).code == 0
    text, _ = headline(memory_store, "v6")
    assert text.startswith("v6 is 9.9 % slower than"), "not a suspect that v7 did not confirm"
    _, remarks = headline(memory_store, "v7")
    assert remarks[-1] == "Back to the level of v5: the regression of v6 (I-1) is gone in v7 (one run)."


def test_runs_after_a_recovery_are_beside_the_level_before_it(memory_store):
    nightly(memory_store, (WRITTEN_OUT, 0), ({}, 0), ({}, 0))
    (beside_level,) = diffs(memory_store, ["v8"])
    assert beside_level.baseline.label == ",".join(f"run:{number}" for number in (1, 2, 3, 4, 5, 7))
