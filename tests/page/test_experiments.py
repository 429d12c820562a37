"""Experiments on the page: their list, one of them, and the way there from a run."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from tests.factories import save
from tracker.experiment.conducting import KeptSettings, KeptSide
from tracker.experiment.measuring import Measured
from tracker.store import experiments, open_store
from tracker.store.experiments import StoredExperiment
from tracker.store.run_record import ExperimentRun


@pytest.fixture
def with_experiment(db):
    """A database with an experiment of one pair, whose candidate has the same step; its runs."""
    side = KeptSide("baseline", "main", "a" * 40, "b" * 40, "main", "/src", ".", None, False)
    kept = KeptSettings(
        (side, replace(side, name="candidate", text="HEAD")), "/src", "prof", (), "gpt", None, None, False, 0,
        Measured("", "", "step"), ("baseline", "candidate"),
    )  # fmt: skip
    with open_store(str(db)) as store:
        made = StoredExperiment(
            baseline="main", candidate="HEAD", seed=7, limit_ratio=0.05, host="node7", state="not decided",
            settings=msgspec.json.encode(kept).decode(), change_ratio=0.0, counted_runs=2, measured_by="profile",
        )  # fmt: skip
        experiments.add_experiment(store, made)
        found = []
        for name in ("baseline", "candidate"):
            of_run = {"experiment": ExperimentRun(1, name, 1)}
            found += save(store, name, "gpt @ experiment E-1", of_run=of_run, steps=3)
    return found


def test_experiments_are_listed_and_shown(page, with_experiment):
    listed = page.get("/experiments")
    assert listed.headline == "1 experiment" and "/experiment/E-1" in listed.hrefs("article")
    shown = page.get("/experiment/E-1")
    assert shown.headline.startswith("Not decided after 2 runs") and "main" in shown.text
    assert "tracker experiments show E-1" in shown.text
    assert page.get("/experiment/E-1.json").status == 200
    assert page.get("/experiment/E-2").status == 404 and page.get("/experiment/x").status == 404


def test_a_run_of_an_experiment_leads_to_it(page, with_experiment):
    baseline, candidate = with_experiment
    assert "/experiment/E-1" in page.get(f"/run/{baseline}").text
    # the versions of an experiment have no order, and its runs are compared all the same
    reply = page.get(f"/compare?side=run:{candidate}&side=run:{baseline}")
    assert reply.status == 303 and page.get(reply.headers["location"]).status == 200
    # nothing else has them
    assert "experiment" not in page.get("/").text and "run:" + str(baseline) not in page.get("/runs").text
