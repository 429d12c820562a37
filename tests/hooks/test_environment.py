"""What a job says of itself."""

from __future__ import annotations

import os
import subprocess
import time
from types import SimpleNamespace

import pytest

from tracker.hooks import environment
from tracker.intake.sidecar import FACTS


def test_only_listed_variables_become_facts():
    said = environment.facts({"NCCL_ALGO": "Ring", "HF_TOKEN": "hf_abc", "MY_SECRET": "x", "SLURM_JOB_ID": "41"}, {})
    assert {key: said[key] for key in ("NCCL_ALGO", "job_id")} == {"NCCL_ALGO": "Ring", "job_id": "41"}
    assert not {"hf_abc", "x"} & set(said.values())


def test_everything_that_a_job_can_say_is_allowed_in_a_sidecar():
    names = (*environment.FACTS, *environment.VARIABLES)
    variables = dict.fromkeys(names, "1") | {"SLURM_JOB_ID": "1"}
    assert set(environment.facts(variables)) <= set(names) <= FACTS


def test_a_value_that_is_no_short_word_is_left_out():
    assert "NCCL_ALGO" not in environment.facts({"NCCL_ALGO": "x" * 121}, {})
    assert "NCCL_ALGO" not in environment.facts({"NCCL_ALGO": "a\nb"}, {})


def test_versions_come_from_what_the_job_has_imported():
    torch = SimpleNamespace(
        __version__="2.6.0+cu124",
        version=SimpleNamespace(cuda="12.4", hip=None),
        backends=SimpleNamespace(cudnn=SimpleNamespace(version=lambda: 90100)),
        cuda=SimpleNamespace(nccl=SimpleNamespace(version=lambda: (2, 21, 5))),
    )
    said = environment.facts({}, {"torch": torch})
    names = ("torch_version", "cuda_version", "cudnn_version", "nccl_version")
    assert [said.get(name) for name in names] == ["2.6.0+cu124", "12.4", "90100", "2.21.5"]
    assert "hip_version" not in said


def test_a_framework_that_answers_otherwise_disturbs_nobody():
    said = environment.facts({}, {"torch": SimpleNamespace(__version__="1.4"), "paddle": object()})
    assert said["torch_version"] == "1.4"
    assert "cuda_version" not in said


@pytest.mark.parametrize(
    ("variables", "rank"),
    [
        ({"RANK": "3", "WORLD_SIZE": "8", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, (3, 8)),
        ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "16", "SLURM_NTASKS": "16"}, (5, 16)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "16"}, (None, None)),  # the script of a batch job
        ({"PADDLE_TRAINER_ID": "1", "PADDLE_TRAINERS_NUM": "2"}, (1, 2)),
        ({"RANK": "3"}, (None, None)),
        ({"RANK": "none", "WORLD_SIZE": "8", "RANK_ID": "1", "RANK_SIZE": "4"}, (1, 4)),
    ],
)
def test_rank_and_world_size_come_from_the_launcher(variables, rank):
    assert environment.rank_and_world_size(variables, {}) == rank


def test_torch_distributed_knows_the_rank_best():
    asked = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 2, get_world_size=lambda: 4
    )
    modules = {"torch": SimpleNamespace(distributed=asked)}
    assert environment.rank_and_world_size({"RANK": "0", "WORLD_SIZE": "1"}, modules) == (2, 4)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "code"
    folder.mkdir()
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (
        ("init", "-q"),
        (*author, "commit", "-q", "--allow-empty", "-m", "a"),
        (*author, "tag", "v1.2", "-ma"),
    ):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return folder


def test_git_names_version_commit_and_whether_the_tree_is_dirty(repository, tmp_path):
    said = environment.capture_git([str(tmp_path / "no such folder"), str(repository)], 10)
    assert (said["version"], said["git_dirty"], len(said["git_commit"])) == ("v1.2", "no", 40)
    (repository / "train.py").write_text("pass")
    subprocess.run(["git", "-C", str(repository), "add", "train.py"], check=True)
    said = environment.capture_git([str(repository)], 10)
    assert (said["version"], said["git_dirty"]) == ("v1.2-dirty", "yes")


def test_a_tag_that_speaks_of_dirt_is_none(repository):
    subprocess.run(["git", "-C", str(repository), "tag", "-d", "v1.2"], check=True)
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(repository), *author, "tag", "v1-dirtyfix", "-ma"], check=True)
    said = environment.capture_git([str(repository)], 10)
    assert (said["version"], said["git_dirty"]) == ("v1-dirtyfix", "no")


def test_no_repository_and_no_git_say_nothing(tmp_path, monkeypatch):
    assert environment.capture_git([str(tmp_path)], 10) == {}
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.capture_git([str(tmp_path)], 10) == {}


def test_a_git_that_hangs_is_not_waited_for(tmp_path, monkeypatch):
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\nexec sleep 60\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    began = time.monotonic()
    assert environment.capture_git([str(tmp_path)], 0.1) == {}
    assert time.monotonic() - began < 5
