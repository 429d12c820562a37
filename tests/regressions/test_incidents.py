"""Incidents, replacements and gates: sums that a reader checks in the head."""

from __future__ import annotations

import numpy as np
import pytest

from tests.regressions.tracks import GELU, MM, STEP, track_of
from tracker.detect import DEFAULTS
from tracker.regressions import Moved, TrackState, incidents_of, replacements, walk
from tracker.regressions.sides import GateFacts

NAN = np.nan


def walked(track):
    state = TrackState(len(track.series.kind))
    return state, list(walk(track, state))


def test_parts_of_an_incident_add_up_to_the_step():
    track = track_of({MM: [400, 400, 500], GELU: [100, 100, NAN], STEP: [600, 600, 640]})
    state, results = walked(track)
    (found,) = incidents_of(track, state, results[-1])
    assert [round(part, -1) for part in (found.operators, found.gone, found.beside)] == [100, -100, 40]
    parts = found.operators + found.new + found.gone + found.machine + found.other_operators + found.beside
    assert parts == pytest.approx(found.after - found.before, rel=1e-12)
    assert found.findings[0].series == 2


def test_fusion_is_one_replacement_by_its_net():
    moved = [
        Moved(1, -30.0, 12, 0, places=frozenset({"mlp"})), Moved(2, -20.0, 12, 0, places=frozenset({"mlp"})),
        Moved(3, 40.0, 0, 12, places=frozenset({"mlp"})), Moved(4, 9.0, 0, 3, places=frozenset({"loss"})),
    ]  # fmt: skip
    (found,) = replacements(moved)
    assert (found.gone, found.come, found.net) == ((1, 2), (3,), -10.0)


def test_same_shapes_and_calls_in_place_are_one_replacement():
    moved = [Moved(1, -30.0, 12, 0, "[8]"), Moved(2, 31.0, 4, 16, "[8]"), Moved(3, 5.0, 0, 12, "[9]")]
    assert [(one.gone, one.come) for one in replacements(moved)] == [((1,), (2,))]


@pytest.mark.parametrize(
    ("facts", "code", "cause"),
    [
        (GateFacts(steps=(1,), peak=0.2, decided=True), 1, "step"),
        (GateFacts(steps=(-1,), net=0.02, decided=True), 0, ""),
        (GateFacts(net=0.01, decided=True), 1, "net of the operators"),
        (GateFacts(net=0.009, peak=0.09, decided=True), 0, ""),
        (GateFacts(steps=(-1,), peak=0.1, decided=True), 1, "peak memory"),
        (GateFacts(suspect=True, decided=True), 4, "suspect"),
        (GateFacts(decided=False), 4, "runs"),
    ],
)
def test_the_first_rule_that_holds_gives_the_exit_code(facts, code, cause):
    found = facts.result(DEFAULTS)
    assert (found.code, found.cause) == (code, cause)
