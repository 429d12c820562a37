"""Versions with runs of several configurations and devices: each is compared with its own, never a mixture."""

from __future__ import annotations

import pytest

from tests.factories import EPOCH_NS, capture, record, save
from tracker.compare import diff, diffs, matrix
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.results import DiffOptions
from tracker.store import save_run


@pytest.fixture
def filled(store):
    """v1: batches of 8 and 16, 10 and 20 ms a step; v2: 8, 16 and 32, 11, 20 and 40 ms."""
    for version, batches in (("v1", {"16": 20, "8": 10}), ("v2", {"8": 11, "16": 20, "32": 40})):
        for batch, milliseconds in batches.items():
            add(store, version, milliseconds, of_run={"configuration": {"batch": batch}})
    return store


def add(store, version, milliseconds, **more):
    start = EPOCH_NS + int(version[1:]) * 10**14
    save(store, version, runs=2, steps=2, step_ns=milliseconds * 1_000_000, started_at_ns=start, **more)


def test_each_configuration_is_compared_by_itself(filled):
    found = diffs(filled, ["v1", "v2"])
    why = [one.explanation for one in found]
    assert [one.candidate.configuration for one in found] == ["batch=8", "batch=16"]
    assert [(one.baseline_ns, one.candidate_ns) for one in why] == [(10e6, 11e6), (20e6, 20e6)]
    assert [one.notes[0] for one in found] == ["Not compared: NVIDIA H100 batch=32, only in v2."] * 2


def test_a_configuration_can_be_chosen(filled):
    found = diff(filled, "v1", "v2", options=DiffOptions(config={"batch": "16"}))
    assert (found.candidate.configuration, found.candidate.run_ids) == ("batch=16", (7, 8))
    assert len(matrix(filled, ["v1", "v2", "v1"], options=DiffOptions(config={"batch": "8"})).sides[1].run_ids) == 2


def test_one_answer_asks_which(filled):
    with pytest.raises(UsageError, match=r"several devices and configurations: v2 batch=8, v2 batch=16; choose one"):
        diff(filled, "v1", "v2")


def test_one_side_alone_is_compared_per_configuration(filled):
    found = diffs(filled, ["v2"])
    assert [(one.baseline.run_ids, one.candidate.run_ids) for one in found] == [((3, 4), (5, 6)), ((1, 2), (7, 8))]
    assert found[0].notes[1] == "Not compared: NVIDIA H100 batch=32, of which v2 has the first runs."


def test_devices_are_told_by_their_names(filled):
    add(filled, "v1", 30, device=Device("AMD", "MI300X"), of_run={"configuration": {"batch": "8"}})
    add(filled, "v2", 33, device=Device("AMD", "MI300X"), of_run={"configuration": {"batch": "8"}})
    found = diffs(filled, ["v1", "v2"], options=DiffOptions(config={"batch": "8"}))
    assert [one.candidate.label for one in found] == ["v2@AMD MI300X", "v2@NVIDIA H100"]
    assert [one.explanation.candidate_ns for one in found] == [33e6, 11e6]


def test_what_is_nowhere_is_refused(filled):
    with pytest.raises(UsageError, match=r"no configuration 'batch=64' of v1; there are batch=16, batch=8"):
        diff(filled, "v1", "v2", options=DiffOptions(config={"batch": "64"}))
    add(filled, "v3", 80, of_run={"configuration": {"batch": "64"}})
    with pytest.raises(UsageError, match="no device and configuration is on both sides: v2 has NVIDIA H100 batch=8; "):
        diff(filled, "v2", "v3")


def test_a_rank_stays_chosen_beside_a_version_of_several(filled):
    for rank, milliseconds in ((0, 10), (1, 30)):
        made = capture(rank, world_size=2, step_ns=milliseconds * 1_000_000, steps=2)
        save_run(
            filled,
            record("v0", configuration={"batch": "8"}, started_at_ns=EPOCH_NS),
            [made],
            formats=["torch_profiler"],
        )
    (found,) = diffs(filled, ["run:11:rank1", "v1"])
    assert (found.baseline.ranks, found.explanation.baseline_ns) == (1, 30e6)
    assert found.candidate.configuration == "batch=8"


def test_three_versions_of_several_configurations_are_no_matrix(filled):
    with pytest.raises(UsageError, match=r"v1 has runs of several devices and configurations: .*; choose with --"):
        matrix(filled, ["v1", "v2", "v1"])


def test_a_path_has_no_configuration_to_choose(filled):
    with pytest.raises(UsageError, match=r"--config chooses runs of a database, and .* is a path"):
        diff(filled, __file__, "v1", options=DiffOptions(config={"batch": "8"}))


def test_runs_named_by_their_numbers_are_taken_as_they_are(filled):
    found = diff(filled, "run:1,run:3", "run:5,run:7")
    assert found.judgement.sentences == ("Not judged: run:1,run:3 mixes configurations.",)
