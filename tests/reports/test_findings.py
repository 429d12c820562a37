"""What is said of an incident in one line, and of where a finding stands in a few words."""

from types import SimpleNamespace

import pandas as pd

from tracker.reports._human_findings import _runs, headline, standing

INCIDENT = {
    "baseline_step_ns": 100_000_000.0,
    "candidate_step_ns": 104_000_000.0,
    "step_delta_ns": 4_000_000.0,
    "findings": 3,
}


def finding(name, delta, *, kind="op_name", under=None, ratio=0.5):
    return {
        "kind": kind, "name": name, "delta": delta, "unit": "ns", "under": under, "ratio": ratio,
        "direction": "regression", "change": "level",
    }  # fmt: skip


def test_the_step_goes_first_where_it_is_a_finding_itself():
    own = [finding("step", 4e6, kind="run"), finding("aten::mm", 3e6)]
    assert headline(INCIDENT, own) == "step 100.00 ms -> 104.00 ms (+4.0 %)"


def test_a_step_that_only_drifts_is_not_the_headline():
    own = [finding("aten::mm", 3e6), finding("aten::mm", 3e6, kind="op", under=1), finding("aten::add", 1e6)]
    said = headline(INCIDENT, own)
    assert said == "aten::mm +3.00 ms (+50.0 %) and 1 more finding; the step itself is no finding (+4.0 %)"


def test_without_a_known_step_the_findings_speak():
    unknown = {**INCIDENT, "baseline_step_ns": None, "candidate_step_ns": None, "step_delta_ns": None}
    assert headline(unknown, [finding("aten::mm", 3e6)]) == "aten::mm +3.00 ms (+50.0 %)"
    assert headline(unknown, []) == "3 findings"


def test_what_is_over_says_since_which_version():
    assert standing({"state": "persisting", "ended_version": None}) == "persisting"
    assert standing({"state": "recovered", "ended_version": "v10"}) == "recovered in v10"
    muted = {"state": "muted", "until_version": "v12", "until_ns": None, "ended_version": None}
    assert standing(muted) == "muted until v12"


def test_runs_that_are_left_out_are_told_at_their_own_end():
    """40 runs from old to new, of which 30 are shown: up to the newest, from two before the first that was judged."""
    numbers = {"version": "v1", "value": 1e6, "calls": 1.0, "shared_factor": 0.0, "change": 0.0}

    def table(judged: int) -> object:
        rows = [{"run_id": at, "side": "candidate" if at >= judged else "", **numbers} for at in range(1, 41)]
        return _runs(SimpleNamespace(runs=pd.DataFrame(rows), finding={"unit": "ns"}))

    late = table(39)
    assert (late.rows[0][0], late.rows[-1][0], late.more) == ("11", "40", 0)
    assert late.lead.endswith("; 10 earlier runs left out")
    early = table(6)
    assert (early.rows[0][0], early.rows[-1][0], early.more) == ("4", "33", 7)
    assert early.lead.endswith("; 3 earlier runs left out")
