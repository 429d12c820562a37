"""How a run comes to its branch: by an option, by what lies beside the profile, by its folder, by the environment."""

from __future__ import annotations

import pytest

from tests.test_sidecar import beside, trace
from tracker import api
from tracker.errors import SourceError, UsageError
from tracker.hooks import spool
from tracker.hooks.job import Job
from tracker.intake import IngestOptions, Sidecar, ingest, pack, take_spooled
from tracker.store import Store, open_store, queries


def workloads(store: Store) -> list[str]:
    return queries.runs(store).listed("workload")


@pytest.mark.parametrize(
    ("said", "options", "workload"),
    [
        ({"branch": "fix"}, {}, "gpt @ fix"),
        ({"branch": "fix"}, {"branch": "pr12"}, "gpt @ pr12"),
        ({"branch": "fix"}, {"branch": ""}, "gpt"),
        ({}, {"otherwise": Sidecar(branch="pr12")}, "gpt @ pr12"),
        ({}, {}, "gpt"),
        # what the main line is called
        ({"branch": "main"}, {}, "gpt"),
        ({"branch": "master"}, {}, "gpt"),
        ({"branch": "trunk", "main_branch": "trunk"}, {}, "gpt"),
        ({"branch": "main", "main_branch": "trunk"}, {}, "gpt @ main"),
        ({"branch": "develop", "main_branch": "trunk"}, {"main_branch": "develop"}, "gpt"),
    ],
)
def test_the_first_that_names_a_branch_counts(memory_store, tmp_path, said, options, workload):
    profile = trace(tmp_path)
    beside(profile, version="v7", workload="gpt", **said)
    (result,) = ingest(memory_store, [profile], options=IngestOptions(**options))
    assert (result.workload, workloads(memory_store)) == (workload, [workload])


def test_a_branch_may_be_a_part_of_the_workload(memory_store, tmp_path):
    ingest(memory_store, [trace(tmp_path)], version="v1", workload="gpt @ pr12")
    assert queries.runs(memory_store).listed("branch") == ["pr12"]


def test_a_profile_is_of_one_branch(memory_store, tmp_path):
    profile = trace(tmp_path)
    ingest(memory_store, [profile], version="v1", workload="gpt", options=IngestOptions(branch="pr12"))
    with pytest.raises(UsageError, match="gpt @ pr12"):
        ingest(memory_store, [profile], version="v1", workload="gpt")
    (result,) = ingest(memory_store, [profile], version="v1", workload="gpt", options=IngestOptions(branch="pr12"))
    assert result.already


def test_a_pack_keeps_the_branch(tmp_path):
    packed = tmp_path / "a.trk"
    made = pack([trace(tmp_path)], asked=Sidecar(version="v1", workload="gpt", branch="pr12"))
    packed.write_bytes(made.content)
    with open_store("sqlite://") as store:
        ingest(store, [packed])
        assert workloads(store) == ["gpt @ pr12"]


def test_a_layout_may_name_the_branch(tmp_path):
    from tracker.watch.find import laid_out

    trace(tmp_path / "gpt" / "pr12" / "v1")
    placed, _ = laid_out([tmp_path], "{workload}/{branch}/{version}/*")
    with open_store("sqlite://") as store:
        ingest(store, list(placed), options=IngestOptions(places=placed))
        assert workloads(store) == ["gpt @ pr12"]


@pytest.mark.parametrize(
    ("said", "problem"),
    [({"branch": "  "}, "branch"), ({"main_commits": ["HEAD"]}, "main_commits"), ({"branch": "a\nb"}, "branch")],
)
def test_a_branch_or_commit_that_is_none_is_said(memory_store, tmp_path, said, problem):
    profile = trace(tmp_path)
    beside(profile, version="v7", workload="gpt", **said)
    with pytest.raises(SourceError, match=problem):
        ingest(memory_store, [profile])
    with pytest.raises(UsageError, match="the branch is empty"):
        ingest(memory_store, [trace(tmp_path / "b", seed=1)], version="v1", workload="gpt @  ")


def test_a_hook_hands_its_branch_over(memory_store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environ = {"TRACKER_BRANCH": "pr12", "TRACKER_DELIVER": "0", "HOME": str(tmp_path)}
    profile = trace(tmp_path)
    Job(environ, version="v1", workload="gpt").hand_over(str(profile))
    spool.add(str(tmp_path / "spool"), {"profile": str(profile)}, now_ns=1)
    (done,) = take_spooled(memory_store, tmp_path / "spool")
    assert (done.error, workloads(memory_store)) == (None, ["gpt @ pr12"])


def test_a_run_that_was_filed_wrongly_is_filed_anew(memory_store, tmp_path):
    """The repository calls its main line trunk, which nobody had said."""
    profile = trace(tmp_path)
    (result,) = ingest(memory_store, [profile], version="v1", workload="gpt", options=IngestOptions(branch="trunk"))
    api.edit_runs([result.run_id], workload="gpt", store=memory_store)
    assert workloads(memory_store) == ["gpt"]
    assert queries.versions_with_branches(memory_store).rows("workload", "version").__next__() == ("gpt", "v1")


def test_python_names_a_branch_too(memory_store, tmp_path):
    frame = api.ingest(trace(tmp_path), version="v1", workload="gpt", branch="pr12", store=memory_store)
    assert list(frame["workload"]) == ["gpt @ pr12"]
    assert list(api.versions("gpt", store=memory_store)["branch"]) == ["pr12"]
    assert api.forget_branch("pr12", store=memory_store) == 1
