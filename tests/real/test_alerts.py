"""What a team hears of a real nightly training, night by night: exactly this, and nothing of quiet versions."""

from __future__ import annotations

import pytest

import tracker
from tests.notify.made import DAY, Team, alerts
from tests.real.conftest import nightly_versions
from tracker.config import Owner, Rule
from tracker.reports.message import write as render_message

pytestmark = pytest.mark.slow

EXPECTED = [
    # copy_ of new shapes is certain with the first run; layer_norm in float64 needs another one
    "v05 [warning] opened v05",
    "v05 [warning] added v05",
    # taken back in v07
    "v07 [warning] recovered v05",
    # GELU written out: operators came and went with the first run, the step follows; taken back in v09
    "v08 [warning] opened v08",
    "v08 [critical] added v08",
    "v09 [critical] recovered v08",
    # copies of activations kept; taken back in v11, in which every batch is late: idle time and the step
    "v10 [warning] opened v10",
    "v10 [warning] added v10",
    "v11 [critical] opened v11",
    "v11 [warning] recovered v10",
    "v12 [critical] recovered v11",
]
"""Night in which it came, severity, event, version that it is about."""


@pytest.fixture(scope="module")
def heard():
    """All messages of 12 nights: (night, message)."""
    owner = Owner(op="*layer_norm*", who="Li Wei")
    settings = alerts(Rule(channels=("team",), severity="info"), owners=(owner,))
    versions = nightly_versions()
    found = []
    with tracker.open_store("sqlite://") as store:
        team = Team(store, settings)
        for version, paths in versions.items():
            for path in paths:
                tracker.ingest([path], version=version, workload="gpt", store=store)
                for pause in (DAY // 4, DAY // 24):
                    arrived = len(team.box.arrived)
                    team.now_ns += pause
                    team.look()
                    found += [(version, message) for _, message in team.box.arrived[arrived:]]
    return found


def test_the_team_hears_exactly_what_happened(heard):
    """Nothing of v06, which changed nothing: two of its three runs had resembled each other."""
    said = [
        f"{night} [{message.severity}] {message.event} {message.incidents[0].version}" for night, message in heard
    ]  # fmt: skip
    assert said == EXPECTED


def of(heard, event, version):
    """The incident of the message of this event on a version."""
    (found,) = [
        message.incidents[0] for _, message in heard
        if message.event == event and message.incidents[0].version == version
    ]  # fmt: skip
    return found


def test_each_message_names_what_the_manifest_says(heard):
    names = {
        version: {one.name for event in events for one in of(heard, event, version).shown}
        for version, events in {"v05": ("added",), "v08": ("added",), "v10": ("added",), "v11": ("opened",)}.items()
    }
    assert {"aten::native_layer_norm", "aten::native_layer_norm_backward", "aten::copy_"} <= names["v05"]
    gelu = "aten::gelu_backward, aten::gelu -> aten::mul, aten::add, aten::pow and 3 more"
    assert gelu in names["v08"], "what was replaced is one change"
    assert not {"aten::mul", "aten::pow", "aten::tanh", "aten::add"} & names["v08"]
    assert "aten::copy_" in names["v10"]
    assert names["v11"] <= {"idle time"}, "late batches are no operator's fault"
    assert of(heard, "opened", "v11").by_step
    assert ("Li Wei",) in {message.owners for _, message in heard if message.incidents[0].version == "v05"}


def test_each_change_of_the_step_adds_up(heard):
    for _, message in heard:
        (incident,) = message.incidents
        parts = (
            incident.operators_ns, incident.new_ns, incident.gone_ns, incident.machine_ns,
            incident.other_operators_ns, incident.earlier_ns, incident.beside_ns,
        )  # fmt: skip
        assert sum(part or 0.0 for part in parts) == pytest.approx(incident.step_delta_ns, abs=1.0)


def test_what_was_replaced_is_told_with_its_net(heard):
    """3.5 ms of gelu are 24 ms of other operators; the gelu that went is no gain beside that."""
    first = of(heard, "added", "v08").shown[0]
    assert (first.baseline_value, first.candidate_value) == pytest.approx((3.5e6, 24e6), rel=0.1)
    assert of(heard, "added", "v08").beside == ()


def test_a_chat_reads_both_sides_of_what_was_replaced(heard):
    message = next(one for _, one in heard if one.event == "added" and one.incidents[0].version == "v08")
    lines = render_message(message, "short").body.splitlines()
    assert lines[0].startswith("- aten::gelu_backward, aten::gelu -> aten::mul, aten::add, aten::pow and 3 more: 3.")
    assert len(lines) <= 11, "with the title at most 12 lines"
