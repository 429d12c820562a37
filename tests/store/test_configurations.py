"""A source that begins to state more of its configuration: the history goes on, or its end is said."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.factories import capture, record
from tracker.store import Store, queries
from tracker.store.save import SavedRun, save_runs

OLD = {"precision": "bf16"}


def came(store: Store, *runs: Mapping[str, str], explicit: frozenset[str] = frozenset()) -> list[SavedRun]:
    """Runs with these configurations come in by one call; all but the `explicit` keys are stated by their files."""
    batch = [
        (record(configuration=dict(run), stated=frozenset(run) - explicit), [capture(0)], ["torch_profiler"])
        for run in runs
    ]
    return save_runs(store, batch)


def titles(store: Store) -> list[str]:
    return queries.runs(store).frame.sort_values("run_id")["configuration"].tolist()


def test_a_key_that_is_stated_from_now_on_does_not_end_the_history(store):
    came(store, OLD)
    (run,) = came(store, {**OLD, "batch_size": "4"})
    assert titles(store) == ["batch_size=4 precision=bf16"] * 2
    assert run.notes == ("states batch_size=4, which the runs before it did not: taken to be theirs as well",)
    (again,) = came(store, {**OLD, "batch_size": "4"})
    assert (titles(store), again.notes) == (["batch_size=4 precision=bf16"] * 3, ())


def test_another_value_is_another_configuration(store):
    came(store, OLD)
    came(store, {**OLD, "batch_size": "4"})
    (other,) = came(store, {**OLD, "batch_size": "8"})
    assert titles(store) == ["batch_size=4 precision=bf16"] * 2 + ["batch_size=8 precision=bf16"]
    assert other.notes == ()  # it contradicts, so nobody would expect it elsewhere


def test_two_values_in_one_ingest_are_two_new_configurations(store):
    came(store, OLD)
    runs = came(store, {**OLD, "batch_size": "4"}, {**OLD, "batch_size": "8"})
    assert titles(store) == ["precision=bf16", "batch_size=4 precision=bf16", "batch_size=8 precision=bf16"]
    assert runs[0].notes == ("states batch_size=4; runs differ in batch_size, so it is of a configuration of its own",)


def test_four_configurations_of_one_version_stay_four(store):
    came(store, *({"batch_size": batch, "devices": devices} for batch in "24" for devices in "18"))
    assert len(set(titles(store))) == 4


def test_a_key_of_the_user_starts_a_configuration_of_its_own(store):
    came(store, OLD)
    came(store, {**OLD, "batch_size": "4"}, explicit=frozenset({"batch_size"}))
    assert titles(store) == ["precision=bf16", "batch_size=4 precision=bf16"]


def test_a_key_that_is_no_longer_stated_is_said(store):
    came(store, {**OLD, "batch_size": "4"})
    (run,) = came(store, OLD)
    assert titles(store) == ["batch_size=4 precision=bf16", "precision=bf16"]
    assert run.notes == (
        "does not state batch_size, so it is of a configuration of its own; --config batch_size=4 adds it",
    )


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_that_fit_the_one_that_says_more_takes_the_key(store, order):
    known = [OLD, {**OLD, "tp": "2"}]
    for place in order:
        came(store, known[place], explicit=frozenset({"tp"}))
    came(store, {**OLD, "tp": "2", "batch_size": "4"})
    assert sorted(set(titles(store))) == ["batch_size=4 precision=bf16 tp=2", "precision=bf16"]
