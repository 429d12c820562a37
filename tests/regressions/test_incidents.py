"""Incidents, replacements and gates: sums that a reader checks in the head."""

from __future__ import annotations

import numpy as np
import pytest

from tests.regressions.tracks import GELU, MM, PEAK, STEP, track_of
from tracker.regressions import Moved, TrackState, gate_of, incidents_of, replacements, walk

NAN = np.nan


def walked(track):
    state = TrackState(len(track.series.kind))
    return state, list(walk(track, state))


def gates(track, **words):
    state = TrackState(len(track.series.kind))
    return [gate_of(track, state, result, **words).code for result in walk(track, state)]


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


def test_gate_fails_in_the_version_that_got_slower():
    track = track_of({MM: [400, 400, 500, 500, 400], STEP: [600, 600, 700, 700, 600]})
    assert gates(track) == [4, 0, 1, 0, 0]
    assert gates(track, every=True) == [4, 0, 1, 1, 0]


def test_gate_passes_a_faster_step_with_a_slower_operator():
    track = track_of({MM: [100, 100, 130], GELU: [400, 400, 300], STEP: [600, 600, 530]})
    assert gates(track) == [4, 0, 0]


def test_gate_counts_the_net_of_operators():
    track = track_of({MM: [30, 30, 40], STEP: [600, 600, 610]})
    assert gates(track) == [4, 0, 1]
    assert gates(track_of({MM: [30, 30, 34], STEP: [600, 600, 604]})) == [4, 0, 0]


def test_gate_fails_once_when_peak_memory_rises():
    track = track_of({PEAK: [100, 100, 111, 111], STEP: [600.0] * 4})
    assert gates(track) == [4, 0, 1, 0]
    assert gates(track_of({PEAK: [100] * 4 + [111] * 4, STEP: [600.0] * 8}, 1)) == [4, 4, 4, 0, 1, 0, 0, 0]


def test_gate_waits_for_a_suspected_step():
    track = track_of({STEP: [600.0] * 4 + [700.0] * 3}, 1)
    assert gates(track) == [4, 4, 4, 0, 4, 4, 1]


def test_excused_findings_pass_and_change_no_verdict():
    track = track_of({MM: [400, 400, 500], STEP: [600, 600, 700]})
    state, results = walked(track)
    verdicts = [result.judged.verdict.tolist() for result in results]
    keys = [one.key for one in state.findings]
    assert gate_of(track, state, results[-1]).code == 1
    assert gate_of(track, state, results[-1], excused=keys).code == 0
    assert [result.judged.verdict.tolist() for result in walked(track)[1]] == verdicts


def test_other_devices_and_settings_have_codes_of_their_own():
    track = track_of({STEP: [600.0] * 2})
    assert gates(track, comparable=False) == [3, 3]
    assert gates(track, judgeable=False) == [4, 4]
