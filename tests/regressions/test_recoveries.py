"""A regression that is taken back: what went comes again, and that is no news to anybody."""

from __future__ import annotations

import pytest

from tests.notify.made import DAY, HOUR, Team, alerts
from tests.regressions.made import runs
from tracker.compare import diffs, gate_of_diff
from tracker.config import Rule
from tracker.regressions.gates import gate_of_findings
from tracker.regressions.inbox import findings
from tracker.regressions.judgement import tracks_of, update
from tracker.reports.message import title_of
from tracker.results import FindingsOptions

FUSED = {"gelu": 1_500_000}
"""A gelu of 1.5 ms in a step of 41.5 ms."""
WRITTEN_OUT = {"tanh": 4_000_000, "pow": 2_000_000}
"""The same as two operators, in a step of 46 ms."""
HALF = {"gelu": 750_000, "tanh": 2_000_000, "pow": 1_000_000}


def judged(store, *versions):
    """Versions v1, v2, ... of (what is changed in them, how many runs they have), and their findings.

    Returns the exit codes of the newest version at `--fail-on new`, of findings and of its diff.
    """
    start = 0
    for number, (changed, count) in enumerate(versions, 1):
        runs(store, f"v{number}", changed, start=start, count=count)
        start += count
        update(store, tracks_of(store))
    of_findings = gate_of_findings(findings(store))
    (beside_level,) = diffs(store, [f"v{len(versions)}"])
    assert gate_of_diff(beside_level).code == of_findings.code
    return of_findings.code


def new_in(store, version):
    """Names of what was found in a version, in any state."""
    found = findings(store, options=FindingsOptions(version=version, every=True))
    return {name for name, of in found.tables["findings"].rows("name", "version") if of == version}


@pytest.mark.parametrize("counts", [(3,), (1,), (2, 1), (1, 1, 1), (3, 3)])
def test_regression_that_is_taken_back_fails_no_gate(memory_store, counts):
    slow = [(WRITTEN_OUT, count) for count in counts]
    assert judged(memory_store, (FUSED, 3), (FUSED, 3), *slow, (FUSED, 3)) == 0
    assert new_in(memory_store, f"v{3 + len(counts)}") == set()


def test_regression_taken_back_in_two_steps_fails_no_gate(memory_store):
    slow = [(FUSED, 3), (FUSED, 3), (WRITTEN_OUT, 3), (WRITTEN_OUT, 3)]
    assert judged(memory_store, *slow, (HALF, 3)) == 0
    assert new_in(memory_store, "v5") == set()
    runs(memory_store, "v6", FUSED, start=15)
    update(memory_store, tracks_of(memory_store))
    assert gate_of_findings(findings(memory_store)).code == 0
    assert new_in(memory_store, "v6") == set()


@pytest.mark.parametrize("counts", [(3,), (2, 1)])
def test_operator_that_got_slower_beside_a_recovery_fails(memory_store, counts):
    # the step is 3.5 ms faster, though op07 takes 1 ms more: 2 % of it
    slow = [(WRITTEN_OUT, count) for count in counts]
    assert judged(memory_store, (FUSED, 3), (FUSED, 3), *slow, (FUSED | {"op07": 2.0}, 3)) == 1
    assert new_in(memory_store, f"v{3 + len(counts)}") == {"op07"}


def test_operator_that_returns_while_the_loss_stays_fails(memory_store):
    both = FUSED | WRITTEN_OUT
    assert judged(memory_store, (FUSED, 3), (FUSED, 3), (WRITTEN_OUT, 3), (WRITTEN_OUT, 3), (both, 3)) == 1
    assert "gelu" in new_in(memory_store, "v5")


def test_recovery_is_the_only_message(memory_store):
    team = Team(memory_store, alerts(Rule(channels=("team",), severity="info")))
    titles = []
    for number, changed in enumerate([FUSED, FUSED, WRITTEN_OUT, WRITTEN_OUT, FUSED]):
        runs(memory_store, f"v{number + 1}", changed, start=3 * number)
        update(memory_store, tracks_of(memory_store))
        for later in (DAY, HOUR):
            team.now_ns += later
            team.look()
        titles.append([title_of(message).partition(":")[0] for _, message in team.box.arrived])
        team.box.arrived.clear()
    assert titles == [[], [], ["[critical] gpt"], [], ["[recovered] gpt v5"]]
