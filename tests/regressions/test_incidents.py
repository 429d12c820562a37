"""Incidents, replacements and gates: sums that a reader checks in the head."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import astuple

from tests.regressions.tracks import GELU, MM, STEP, track_of
from tracker.detect import DEFAULTS
from tracker.regressions.judged_rows import incidents_of
from tracker.regressions.lifecycle import TrackState, walk
from tracker.regressions.replacements import OperatorChange, pair_changes
from tracker.regressions.sides import gate_of


def test_parts_of_an_incident_add_up_to_the_step():
    track = track_of({MM: [400, 400, 500], GELU: [100, 100, np.nan], STEP: [600, 600, 640]})
    state = TrackState(3)
    (found,) = incidents_of(track, state, list(walk(track, state))[-1], [7, 8, 9])
    assert [round(part, -1) for part in (found.operators_ns, found.gone_ns, found.beside_ns)] == [100, -100, 40]
    first, before, after, *parts, _ = astuple(found)
    assert (first, sum(parts)) == (9, pytest.approx(after - before, rel=1e-12))


def test_fusion_is_one_replacement():
    mlp, loss = (frozenset({place}) for place in ("mlp", "loss"))
    of_mlp = [
        OperatorChange("a", 30.0, 0.0, 12, 0, "", mlp),
        OperatorChange("b", 20.0, 0.0, 12, 0, "", mlp),
        OperatorChange("c", 0.0, 40.0, 0, 12, "", mlp),
    ]
    of_loss = [OperatorChange("d", 9.0, 0.0, 1, 0, "", loss), OperatorChange("e", 0.0, 9.0, 0, 1, "", loss)]
    assert pair_changes([*of_mlp, *of_loss]) == [(of_mlp[:2], of_mlp[2:]), (of_loss[:1], of_loss[1:])]


def test_same_shapes_and_calls_in_place_are_one_replacement():
    gone, come = OperatorChange("a", 30.0, 0.0, 12, 0, "[8]"), OperatorChange("b", 0.0, 31.0, 0, 12, "[8]")
    of_other_shapes = OperatorChange("c", 0.0, 5.0, 0, 12, "[9]")
    assert pair_changes([gone, come, of_other_shapes]) == [([gone], [come])]


@pytest.mark.parametrize(
    ("facts", "code", "cause"),
    [
        ({"signs": [1], "peak": 0.2, "is_decided": True}, 1, "step"),
        ({"signs": [-1], "net": 0.02, "is_decided": True}, 0, ""),
        ({"net": 0.01, "is_decided": True}, 1, "net of the operators"),
        ({"net": 0.009, "peak": 0.09, "is_decided": True}, 0, ""),
        ({"signs": [-1], "peak": 0.1, "is_decided": True}, 1, "peak memory"),
        ({"is_suspect": True, "is_decided": True}, 4, "suspect"),
        ({"is_decided": False}, 4, "runs"),
    ],
)
def test_the_first_rule_that_holds_gives_the_exit_code(facts, code, cause):
    found = gate_of(DEFAULTS, **facts)
    assert (found.code, found.cause) == (code, cause)
