"""The commands of a message name what it is about; what cannot be named is named by its numbers."""

from __future__ import annotations

import shlex

import pytest

from tests.notify.made import MINUTE, NOW, Team, alerts, same, slower
from tracker import notify


def told_of(store, version, **more):
    """The commands of the message on a version that is slower than v1."""
    same(store, "v1", 0, **more)
    team = Team(store, alerts())
    team.round()
    slower(store, version, **more)
    team.round()
    notify.deliver(store, team.alerts, now_ns=NOW + 2 * MINUTE, send=team.box)
    ((_, message),) = team.box.arrived
    return message.commands


def test_a_version_with_a_backtick_is_quoted(memory_store):
    commands = told_of(memory_store, "v`2'")
    assert shlex.split(commands["reproduce"]) == ["tracker", "diff", "v1", "v`2'", "--workload", "gpt"]


@pytest.mark.parametrize("version", ["v2\u200b", "--db=/tmp/other", "~root", "v  2", "v2@everyone"])
def test_a_version_that_no_command_can_hold_is_named_by_its_runs(memory_store, version):
    commands = told_of(memory_store, version)
    assert commands["reproduce"] == "tracker diff run:1,run:2,run:3 run:4,run:5,run:6"
    assert commands["acknowledge"] == "tracker ack I-1 --reason ..."


def test_without_a_workload_that_can_be_written_the_rest_still_says_what_to_do(memory_store):
    commands = told_of(memory_store, "v2", workload="gpt\u202e")
    assert "look" not in commands
    assert commands["explain"].startswith("tracker explain ")
