"""Experiments on both databases: their runs are stored, and nothing that follows versions has them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.factories import save
from tracker.errors import UsageError
from tracker.regressions import judgement
from tracker.regressions.board import board
from tracker.store import copying, experiments, open_store, pruning, queries, runs
from tracker.store.experiments import StoredExperiment
from tracker.store.run_record import ExperimentRun

pytestmark = pytest.mark.postgres


def add(store, **values) -> StoredExperiment:
    return experiments.add_experiment(
        store, StoredExperiment(baseline="main", candidate="HEAD", seed=7, limit_ratio=0.05, **values)
    )


def save_pair(store, number: int, pair: int) -> list[int]:
    """Save a run of each side, which run at the same time: not even that makes them ranks of one run."""
    found = []
    for side in ("baseline", "candidate"):
        place = ExperimentRun(number, side, pair)
        of_run = {"experiment": place, "commit": "a" * 40 if side == "baseline" else "b" * 40}
        found += save(store, side, f"gpt @ experiment E-{number}", of_run=of_run, ranks=1)
    return found


def test_an_experiment_is_changed_read_and_deleted_with_its_runs(store):
    first, second = add(store), add(store, finding_id=12)
    assert (first.name, second.name) == ("E-1", "E-2") and second.started_at_ns >= first.started_at_ns > 0
    save_pair(store, 1, pair=0)
    save_pair(store, 1, pair=1)
    broken = save_pair(store, 1, pair=2)
    experiments.leave_out(store, broken)
    listed = [(run.side, run.pair, run.workload) for run in experiments.list_runs(store, 1)]
    assert listed[2:] == [
        ("baseline", 1, "gpt @ experiment E-1"), ("candidate", 1, "gpt @ experiment E-1"),
        ("baseline", None, "gpt @ experiment E-1"), ("candidate", None, "gpt @ experiment E-1"),
    ]  # fmt: skip
    experiments.change_experiment(store, replace(first, state="decided", outcome="slower", change_ratio=0.1))
    assert experiments.read_experiment(store, 1).change_ratio == 0.1
    with store.connect() as connection:
        (decided,) = experiments.list_decided(connection)
    assert (decided.experiment_id, decided.outcome, decided.low_ratio) == (1, "slower", None)

    assert experiments.delete_experiment(store, 1) == 6
    assert [one.name for one in experiments.read_experiments(store)] == ["E-2"]
    assert len(queries.runs(store, state="all")) == 0
    assert add(store).name == "E-3"  # a number that once meant an experiment never means another one
    with pytest.raises(UsageError, match="there is no experiment E-1"):
        experiments.read_experiment(store, 1)


@pytest.mark.parametrize(
    ("settings", "changed", "decides"),
    [
        ('{"own_code": ["baseline", "candidate"]}', {"outcome": "no difference"}, True),
        ("{}", {"outcome": "no difference"}, False),  # both sides may have run the same code
        ("{}", {"outcome": "slower"}, True),
        ('{"differs_otherwise": true}', {"outcome": "slower"}, False),
        ("{}", {"outcome": "slower", "measured_by": "wall"}, False),
    ],
)
def test_only_what_is_known_of_two_commits_decides_a_finding(store, settings, changed, decides):
    added = add(store, settings=settings)
    save_pair(store, 1, pair=1)
    experiments.change_experiment(store, replace(added, state="decided", change_ratio=0.1, **changed))
    with store.connect() as connection:
        assert bool(experiments.list_decided(connection)) == decides


def test_nothing_that_follows_versions_has_its_runs(store):
    save(store, "v1", runs=3)
    add(store)
    run_id, _ = save_pair(store, 1, pair=1)
    judgement.update(store, judgement.tracks_of(store, [run_id]))
    judgement.update(store, judgement.tracks_of(store))
    assert queries.versions(store).listed("version") == ["v1"]
    assert queries.runs(store).listed("version") == ["v1", "v1", "v1"]
    assert [line.version for line in board(store).rows.lines] == ["v1"]
    assert not [row for row in queries.findings(store) if "experiment" in row.workload]
    with pytest.raises(UsageError, match=f"run {run_id} is of experiment E-1, which no history has"):
        runs.restore_all(store, [run_id])
    # they are read as any other run
    assert queries.runs_by_id(store, [run_id]).listed("state_reason") == ["a run of experiment E-1"]


def test_details_of_its_runs_are_pruned_and_their_numbers_stay(store):
    add(store)
    run_ids = save_pair(store, 1, pair=1)
    before = queries.run_level(store, run_ids).records()
    policy = pruning.Policy(before_ns=2**62, keep_versions=0)
    pruned, _ = pruning.prune_all(store, policy, now_ns=2**62)
    assert [one.run_id for one in pruned] == run_ids
    assert queries.run_level(store, run_ids).records() == before


def test_experiments_are_copied_with_their_runs(store, tmp_path):
    add(store)
    save_pair(store, 1, pair=1)
    with open_store(str(tmp_path / "copy.db")) as copy:
        copying.copy(store, copy)
        assert experiments.read_experiment(copy, 1) == experiments.read_experiment(store, 1)
        assert experiments.list_runs(copy, 1) == experiments.list_runs(store, 1)
