"""What an inbox of findings says first, and what explains one of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.reports import builders
from tests.reports.test_diff_screen import cells_of, line_of
from tracker.reports import render
from tracker.reports.views.findings import headline, state_text
from tracker.results import OPEN_STATES, STATES, FindingsOptions

INCIDENT = builders.incident(candidate_step_ns=104_000_000.0, step_delta_ns=4_000_000.0)


def finding(name, delta, *, kind="op_name", under=None, ratio=0.5):
    return builders.finding(1, name, kind=kind, delta=delta, under=under, ratio=ratio)


def test_the_first_two_lines_count_and_name_what_is_new():
    title, first = render(builders.findings(), "text", width=120).splitlines()[:2]
    assert title == ("gpt, NVIDIA H100, batch=32: 1 incident, 3 findings (2 new), 1 suspect, decided by the next runs")
    assert first.startswith("New in v42: the step is 10.0 % slower, 100.00 -> 110.00 ms per step")
    assert first.endswith("REGRESSED")


def test_findings_of_an_older_version_do_not_count_the_newest():
    """Of v42, the newest, 3 of 4 series were judged: of v41 that says nothing."""
    lines = [builders.line(judged_series=3, expected_series=4, coverage="judged 3 of 4 series; 1 needs more runs")]
    newest = render(builders.findings(lines=lines, options=FindingsOptions(version="v42")), "text", width=200)
    assert newest.splitlines()[0].endswith(", judged 3 of 4 series") and "\nJudged 3 of 4 series; 1 needs" in newest
    older = render(builders.findings(lines=lines, options=FindingsOptions(version="v41")), "text", width=200)
    assert "judged" not in older.lower()


def test_an_incident_adds_up_and_lists_its_findings():
    text = render(builders.findings(), "text", width=120)
    assert "I-3: NEW, REGRESSED in v42 (good until v41), critical" in text
    # 5 + 1 - 0.5 + 4.5 = 10 ms
    assert (
        "Step 100.00 -> 110.00 ms (+10.00 ms, +10.0 %) = operators found +5.00 ms, machine-wide drift +1.00 ms, other "
        "operators -0.50 ms, time outside operators +4.50 ms." in " ".join(text.split())
    )
    assert cells_of(text, "2  aten::mm")[1:5] == ["aten::mm", "+5.00 ms", "+50.0 %", "50.0 %"]
    following = text.partition("\nNext:\n")[2].splitlines()
    assert following[:2] == ["  tracker explain 1", '  tracker ack I-3 --reason "..."']
    assert following[2].startswith("  tracker expect I-3 --reason ")


def test_cause_and_share_of_a_finding_stay_at_80_columns():
    text = render(builders.findings(), "text", width=80)
    assert "of change" in text and "slower per call" in line_of(text, "2  aten::mm")


def test_time_outside_operators_has_one_name():
    """On a CPU it is the host between two operators, which no device idles through."""
    lines = [builders.line(exposed_communication_ns=5e6)]
    assert "time outside operators +4.50 ms" in " ".join(render(builders.findings(lines=lines), "text").split())


def test_what_only_came_is_added_and_no_regression():
    rows = [builders.finding(1, "aten::erf", change="presence")]
    text = render(builders.findings(rows, [builders.incident(severity="info")]), "text", width=200)
    assert text.splitlines()[1].endswith(" ADDED") and "\nI-3: NEW, ADDED in v42 " in text
    assert "\nI-3: NEW, REGRESSED in v42 " in render(builders.findings(rows), "text", width=100)


def test_all_findings_are_listed_where_all_were_chosen():
    rows = [builders.finding(at, f"aten::op{at}") for at in range(1, 31)]
    text = render(builders.findings(rows, options=FindingsOptions(every=True)), "text", width=100)
    assert all(f"aten::op{at} " in text for at in range(1, 31))
    assert "… and 20 more" in render(builders.findings(rows), "text", width=100)


def test_a_step_under_three_names_is_one_row():
    """Step and mean step 100 -> 110 ms, E2E 100.5 -> 110.5 ms; another E2E of 50 -> 60 ms stays."""

    def whole(name, before=100.0, after=110.0):
        ends = {"baseline_value": before * builders.MS, "candidate_value": after * builders.MS}
        return builders.finding(1, name, kind="run", **ends)

    text = render(builders.findings([whole("step"), whole("mean step"), whole("e2e", 100.5, 110.5)]), "text")
    assert "  step, mean step, e2e  " in text and text.count("e2e") == 1
    other = render(builders.findings([whole("step"), whole("e2e", 50.0, 60.0)]), "text")
    assert cells_of(other, "1  e2e")[1] == "e2e"


def test_many_incidents_are_counted_behind_three():
    incidents = [builders.incident(incident_id=number, version=f"v{number}") for number in range(40)]
    rows = [builders.finding(number, f"op{number}", incident_id=number // 9) for number in range(360)]
    rows += [builders.finding(None, "op", "suspect", incident_id=None, device=f"H{at}") for at in range(20)]
    text = render(builders.findings(rows, incidents), "text", width=100)
    assert "37 more incidents and 19 more tracks: --details" in text and len(text.splitlines()) <= 40
    assert "I-39:" in render(builders.findings(rows, incidents), "text", width=100, details=True)


def test_an_empty_inbox_says_so_and_how_to_see_what_was():
    text = render(builders.findings([], incidents=[]), "text", width=100)
    assert text.splitlines()[1] == "No open finding"
    assert text.splitlines()[-2:] == ["Next:", "  tracker findings --state all"]


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


def test_a_step_that_moved_is_the_headline_whatever_its_verdict():
    own = [finding("aten::mm", 3e6), finding("aten::mm", 3e6, kind="op", under=1), finding("aten::add", 1e6)]
    assert headline(INCIDENT, own) == (
        "the step is 4.0 % slower, 100.00 -> 104.00 ms per step (no finding itself); aten::mm +3.00 ms (+50.0 %) and 1 "
        "more finding"
    )
    still = replace(INCIDENT, candidate_step_ns=101e6, step_delta_ns=1e6)
    assert headline(still, own) == (
        "aten::mm +3.00 ms (+50.0 %) and 1 more finding; the step itself is no finding (+1.0 %)"
    )


def test_without_a_known_step_the_findings_are_the_headline():
    unknown = replace(INCIDENT, baseline_step_ns=None, candidate_step_ns=None, step_delta_ns=None)
    assert headline(unknown, [finding("aten::mm", 3e6)]) == "aten::mm +3.00 ms (+50.0 %)"
    assert headline(unknown, []) == "3 findings"


def test_what_ended_says_in_which_version():
    found = builders.finding(1, "aten::mm", "persisting")
    assert state_text(found) == "persisting"
    assert state_text(replace(found, state="recovered", ended_version="v10")) == "recovered in v10"
    assert state_text(replace(found, state="muted", until_version="v12")) == "muted until v12"
