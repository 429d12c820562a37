"""Annotations as GitHub's runner reads them: one command per line, and no name is one."""

from __future__ import annotations

import re

import pytest

from tests.reports import builders
from tests.reports.builders import MS
from tests.reports.test_junit import HOSTILE
from tracker import reports
from tracker.results import Judgement

COMMAND = re.compile(r"::(?P<kind>error|warning|notice) title=(?P<title>[^:,]*)::(?P<text>.*)")
JUDGED = Judgement(True, ("3 runs against 5.",))


def commands(text):
    """(kind, title, message) of each line, as the runner reads them; every line has to be one."""
    assert text.endswith("\n")
    found = []
    for line in text[:-1].split("\n"):
        match = COMMAND.fullmatch(line)
        assert match, line
        title = match["title"].replace("%0D", "\r").replace("%0A", "\n").replace("%3A", ":").replace("%2C", ",")
        message = match["text"].replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
        found.append((match["kind"], title.replace("%25", "%"), message))
    return found


def regressed(name, times=1, verdict="REGRESSED"):
    ops = [
        {**builders.op(f"{name}{at}", "", 10 * MS, (20 + at) * MS), "verdict": verdict, "judged_diff": 1.0}
        for at in range(times)
    ]
    return builders.diff(ops=builders.frame("ops", ops), judgement=JUDGED)


def test_the_summary_comes_first_then_errors_then_warnings():
    found = commands(reports.render(builders.judged(), "github"))
    kind, title, message = found[0]
    assert (kind, title) == ("error", "tracker diff v41 v42")
    assert message.startswith("v42 ran 4.0 % slower than v41: 100.00 -> 104.00 ms per step")
    assert message.split("\n")[1] == "--fail-on new: exit 1, the operators found got slower by +2.0 % of the step"
    assert found[1][:2] == ("error", "REGRESSED: aten::mm [[64, 512], [512, 512]]")
    assert found[1][2].startswith("aten::mm [[64, 512], [512, 512]]: 20.00 ms -> 26.00 ms (+6.00 ms, +30.0 %); ")
    assert "; REGRESSED, judged +25.0 %, q <0.001" in found[1][2], "26 ms are 30 % more than 20 ms"


def test_a_finding_says_its_change_as_the_other_reports_of_findings_do():
    found = builders.findings([builders.finding(1, "aten::mm", ratio=0.5)])
    text = commands(reports.render(found, "github"))[1][2]
    assert "(+5.00 ms, +50.0 %); " in text
    assert text.count("%") == 1


def test_nothing_that_fails_is_a_notice_and_what_cannot_be_told_a_warning():
    (calm,) = commands(reports.render(regressed("mm", verdict="UNCHANGED"), "github"))
    assert calm[0] == "notice"
    refused = builders.diff(judgement=Judgement(False, ("1 run against 1.",), refusal="too few runs"))
    (unknown,) = commands(reports.render(refused, "github"))
    assert unknown[0] == "warning" and unknown[2].endswith("--fail-on new: exit 4, 1 run against 1")


@pytest.mark.parametrize("times", [8, 9, 10, 25])
def test_no_more_than_ten_of_a_kind_and_the_last_one_counts_the_others(times):
    found = commands(reports.render(regressed("mm", times), "github"))
    errors = [title for kind, title, _ in found if kind == "error"]
    assert len(errors) <= 10
    assert (errors[-1] == f"{times - 8} more") == (times > 9)
    assert errors[1] == f"REGRESSED: mm{times - 1}"  # the largest change first


def test_suspects_are_warnings():
    kinds = [kind for kind, _, _ in commands(reports.render(regressed("mm", 12, verdict="SUSPECT"), "github"))]
    assert kinds == ["warning"] * 10, "the summary is one of them: exit 4"


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_is_a_command_or_breaks_one(name):
    found = commands(reports.render(regressed(name), "github"))
    assert [kind for kind, _, _ in found] == ["error", "error"]
    found = commands(reports.render(builders.findings([builders.finding(1, name)]), "github"))
    assert [kind for kind, _, _ in found] == ["error", "error"]


def test_a_percent_sign_in_a_name_is_no_escape():
    (_, (_, title, message)) = commands(reports.render(regressed("a%0A::error::"), "github"))
    assert title == "REGRESSED: a%0A::error::0" and message.startswith("a%0A::error::0: 10.00 ms -> ")
