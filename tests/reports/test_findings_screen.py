"""What an inbox of findings says first, and what explains one of them."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from tests.reports import builders
from tests.reports.test_diff_screen import cells_of, line_of
from tracker.reports import render
from tracker.reports.views.explained import _runs
from tracker.reports.views.findings import headline, state_text
from tracker.results import OPEN_STATES, STATES, FindingsOptions

INCIDENT = {
    "baseline_step_ns": 100_000_000.0, "candidate_step_ns": 104_000_000.0, "step_delta_ns": 4_000_000.0, "findings": 3,
}  # fmt: skip


def finding(name, delta, *, kind="op_name", under=None, ratio=0.5):
    return {
        "kind": kind, "name": name, "delta": delta, "unit": "ns", "under": under, "ratio": ratio,
        "direction": "regression", "change": "level",
    }  # fmt: skip


def test_the_first_two_lines_count_and_name_what_is_new():
    title, first = render(builders.findings(), "text", width=120).splitlines()[:2]
    assert title == ("gpt, NVIDIA H100, batch=32: 1 incident, 3 findings (2 new), 1 suspect, decided by the next runs")
    assert first.startswith("New in v42: the step is 10.0 % slower, 100.00 -> 110.00 ms per step")
    assert first.endswith("REGRESSED")


def test_an_incident_adds_up_and_lists_its_findings():
    text = render(builders.findings(), "text", width=120)
    assert "I-3: NEW, REGRESSED in v42 (good until v41), critical" in text
    # 5 + 1 - 0.5 + 4.5 = 10 ms
    assert (
        "Step 100.00 -> 110.00 ms (+10.00 ms, +10.0 %) = operators found +5.00 ms, machine-wide drift +1.00 ms, other "
        "operators -0.50 ms, idle and communication +4.50 ms." in " ".join(text.split())
    )
    assert cells_of(text, "2  aten::mm")[1:5] == ["aten::mm", "+5.00 ms", "+50.0 %", "50.0 %"]
    assert text.splitlines()[-1].startswith(
        'Next: tracker explain 1 · tracker ack I-3 --reason "..." · tracker expect I-3 --reason '
    )


def test_cause_and_share_of_a_finding_stay_at_80_columns():
    text = render(builders.findings(), "text", width=80)
    assert "of step" in text and "slower per call" in line_of(text, "2  aten::mm")


def test_many_incidents_are_counted_behind_six():
    incidents = [builders.incident(incident_id=number, version=f"v{number}") for number in range(40)]
    rows = [builders.finding(number, "aten::mm", incident_id=number) for number in range(40)]
    text = render(builders.findings(rows, incidents), "text", width=100)
    assert "34 more incidents: --details" in text and len(text.splitlines()) <= 60
    assert "I-39:" in render(builders.findings(rows, incidents), "text", width=100, details=True)


def test_an_empty_inbox_says_so_and_how_to_see_what_was():
    text = render(builders.findings([], incidents=[]), "text", width=100)
    assert text.splitlines()[1] == "No open finding"
    assert text.splitlines()[-1] == "Next: tracker findings --state all"


@pytest.mark.parametrize(
    ("chosen", "headline"),
    [
        ({"states": STATES}, "No finding"),
        ({"states": ("recovered",)}, "No recovered finding"),
        ({"states": OPEN_STATES, "kind": "op"}, "No open finding with --kind op"),
        ({"version": "v2"}, "No finding with --version v2"),
    ],
)
def test_an_empty_list_names_the_states_that_were_chosen(chosen, headline):
    found = builders.findings([], incidents=[], options=FindingsOptions(**chosen))
    assert render(found, "text", width=100).splitlines()[1] == headline


def test_the_step_goes_first_where_it_is_a_finding_itself():
    own = [finding("step", 4e6, kind="run"), finding("aten::mm", 3e6)]
    assert headline(INCIDENT, own) == "the step is 4.0 % slower, 100.00 -> 104.00 ms per step"


def test_a_step_that_only_drifts_is_not_the_headline():
    own = [finding("aten::mm", 3e6), finding("aten::mm", 3e6, kind="op", under=1), finding("aten::add", 1e6)]
    assert headline(INCIDENT, own) == (
        "aten::mm +3.00 ms (+50.0 %) and 1 more finding; the step itself is no finding (+4.0 %)"
    )


def test_without_a_known_step_the_findings_are_the_headline():
    unknown = {**INCIDENT, "baseline_step_ns": None, "candidate_step_ns": None, "step_delta_ns": None}
    assert headline(unknown, [finding("aten::mm", 3e6)]) == "aten::mm +3.00 ms (+50.0 %)"
    assert headline(unknown, []) == "3 findings"


def test_what_ended_says_in_which_version():
    assert state_text({"state": "persisting", "ended_version": None}) == "persisting"
    assert state_text({"state": "recovered", "ended_version": "v10"}) == "recovered in v10"
    muted = {"state": "muted", "until_version": "v12", "until_ns": None, "ended_version": None}
    assert state_text(muted) == "muted until v12"


def test_runs_left_out_are_counted_at_their_own_end():
    """40 runs from old to new, of which 30 are shown: up to the newest, from two before the first that was judged."""
    numbers = {"version": "v1", "value": 1e6, "calls": 1.0, "shared_factor": 0.0, "change": 0.0}

    def shown(judged: int) -> object:
        rows = [{"run_id": at, "side": "candidate" if at >= judged else "", **numbers} for at in range(1, 41)]
        return _runs(SimpleNamespace(runs=pd.DataFrame(rows)), {"unit": "ns"}, 30)

    late = shown(39)
    assert (late.rows[0][0], late.rows[-1][0], late.more) == ("11", "40", 0)
    assert late.lead.endswith("; 10 earlier runs left out")
    early = shown(6)
    assert (early.rows[0][0], early.rows[-1][0], early.more) == ("4", "33", 7)
    assert early.lead.endswith("; 3 earlier runs left out")
