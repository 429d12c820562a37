"""Who hears of an incident: rules and owners, by table."""

from __future__ import annotations

import pytest

from tests.notify.made import alerts
from tracker.config import Owner, Rule
from tracker.config.owners import owner_of
from tracker.notify.routes import Route, Subject, alarm_channels, routes

RULES = {
    "all": Rule(channels=("a",)),
    "gpt": Rule(channels=("a",), workload="GPT*"),
    "h100": Rule(channels=("a",), device="h100*"),
    "attention": Rule(channels=("a",), op="*attention*"),
    "critical": Rule(channels=("a",), severity="critical"),
    "better": Rule(channels=("a",), directions=("improvement",)),
    "info": Rule(channels=("a",), severity="info", when="at once"),
}


def subject(**more):
    found = {"workload": "gpt-7b", "device": "NVIDIA H100 80GB", "severity": "warning", "direction": "regression"}
    return Subject(**{**found, "names": ["aten::mm", "flash_attention_fwd"], **more})


@pytest.mark.parametrize(
    ("rule", "more", "when"),
    [
        ("all", {}, "grouped"),
        ("all", {"severity": "critical"}, "at once"),
        ("all", {"severity": "info"}, None),
        ("all", {"direction": "improvement", "severity": "info"}, None),
        ("gpt", {}, "grouped"),
        ("gpt", {"workload": "bert"}, None),
        ("h100", {}, "grouped"),
        ("h100", {"device": "NVIDIA A100"}, None),
        ("attention", {}, "grouped"),
        ("attention", {"names": ["aten::mm"]}, None),
        ("critical", {}, None),
        ("critical", {"severity": "critical"}, "at once"),
        ("better", {"direction": "improvement", "severity": "info"}, "grouped"),
        ("better", {}, None),
        ("info", {}, "at once"),
    ],
)
def test_a_rule_holds_where_all_its_entries_do(rule, more, when):
    found = routes(alerts(RULES[rule]), subject(**more))
    assert found == ({} if when is None else {"a": Route(when)})


def test_the_soonest_of_several_rules_counts():
    found = routes(alerts(RULES["all"], RULES["info"]), subject())
    assert found == {"a": Route("at once")}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"a": Route("grouped"), "own": Route("grouped", ("*attention*",))}),
        ({"names": ["aten::mm"]}, {"a": Route("grouped")}),
        ({"severity": "info"}, {}),
        ({"direction": "improvement"}, {}),
    ],
)
def test_an_owner_hears_of_regressions_of_their_operators(more, expected):
    owner = Owner(op="*attention*", who="Li Wei", channels=("own",))
    assert routes(alerts(RULES["all"], owners=(owner,)), subject(**more)) == expected


def test_a_rule_goes_before_an_owner_on_the_same_channel():
    owner = Owner(op="*", who="Li Wei", channels=("a",))
    assert routes(alerts(RULES["all"], owners=(owner,)), subject()) == {"a": Route("grouped")}


def test_an_operator_has_the_first_owner_that_fits():
    owners = (Owner(op="*norm*", who="Ann", workload="bert"), Owner(op="aten::*", who="Li Wei"))
    assert owner_of(owners, "gpt", "aten::layer_norm") == "Li Wei"
    assert owner_of(owners, "bert", "aten::layer_norm") == "Ann"
    assert owner_of(owners, "gpt", "gemm") == ""


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([Rule(channels=("a",)), Rule(channels=("b",), op="x")], ["a"]),
        ([Rule(channels=("b",), op="x")], ["b"]),
        ([Rule(channels=("a",), workload="bert"), Rule(channels=("b",), workload="gpt*")], ["b"]),
        ([Rule(channels=("a",), workload="bert")], ["a"]),
        ([Rule(channels=("a",), severity="critical"), Rule(channels=("b",))], ["b"]),
    ],
)
def test_an_alarm_always_finds_somebody(rules, expected):
    assert alarm_channels(alerts(*rules), "gpt-7b") == expected
