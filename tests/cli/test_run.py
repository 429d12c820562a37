"""`tracker run`: the command is what it would be without it, and its profiles are read."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hooks.jobs import until
from tests.test_sidecar import beside, trace
from tracker.hooks import spool
from tracker.store import open_store, queries

ROOT = Path(__file__).parents[2]


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job's own folder, with a profile `made.json` that it can leave."""
    for name, value in (
        ("TRACKER_SPOOL", tmp_path / "spool"),
        ("TRACKER_DB", tmp_path / "jobs.db"),
        ("HOME", tmp_path),
    ):
        monkeypatch.setenv(name, str(value))
    for name in ("TRACKER_VERSION", "TRACKER_WORKLOAD", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    trace(tmp_path, "made.json")
    (tmp_path / "prof").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(copied_tracker):
    """Calls `tracker run` in a process of its own: run("--profiles", "prof", "--", "true")."""

    def call(*words, **more) -> subprocess.CompletedProcess:
        command = [*copied_tracker, "run", *map(str, words)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False, **more)

    return call


LABELS = ("--profiles", "prof", "--version", "v1", "--workload", "toy")


def runs(folder: Path) -> list[dict]:
    with open_store(str(folder / "jobs.db"), create=False) as store:
        return queries.runs(store).frame.to_dict("records")


def queued(folder: Path) -> list[str]:
    return [path for place in spool.spools(str(folder / "spool")) for path in spool.entries(place)]


def test_a_command_keeps_its_streams_and_its_exit_code_and_its_profile_is_read(job, run):
    script = "cat; echo out; echo err >&2; cp made.json prof/a.json; exit 3"
    done = run(*LABELS, "--config", "batch=8", "--", "sh", "-c", script, input="in\n")
    assert (done.returncode, done.stdout) == (3, "in\nout\n")
    ended = "note: the job ended with exit code 3"
    assert done.stderr.splitlines() == ["err", ended, "run 1  toy v1  NVIDIA H100  rank 0  1 step  100.00 us  a.json"]
    assert runs(job)[0]["configuration"] == "batch=8"
    assert queued(job) == []


def test_what_lay_there_before_is_not_read_unless_it_changed(job, run):
    old, changed = trace(job / "prof", "old.json", seed=1), trace(job / "prof", "changed.json", seed=2)
    done = run(*LABELS, "cp", "made.json", changed)  # without the --, the command takes the rest
    assert done.returncode == 0
    assert [line.rpartition("  ")[2] for line in done.stderr.splitlines()] == ["changed.json"]
    assert old.exists()


def test_a_command_that_leaves_no_profile_is_told(job, run):
    done = run(*LABELS, "--", "sh", "-c", "exit 5")
    assert (done.returncode, done.stderr) == (
        5, "note: the job ended with exit code 5\nwarning: the job wrote no new profile in prof\n",
    )  # fmt: skip
    assert not (job / "jobs.db").exists()


def test_a_profile_that_no_reader_knows_is_told_in_the_words_of_an_ingest(job, tracker, run):
    """Such as one that the profiler could not write, on a disk that was full."""
    done = run(*LABELS, "--", "sh", "-c", "cp made.json prof/a.json; echo no gzip > prof/b.pt.trace.json.gz")
    problem = "is named .gz, but is no gzip file, and no reader knows its content"
    warning = f"warning: prof/b.pt.trace.json.gz: {problem}; it was passed over, although its name says torch_profiler"
    assert warning in done.stderr.splitlines()
    assert warning in tracker("ingest", "prof", "--version", "v1", "--workload", "toy").err.splitlines()
    again = run(*LABELS, "--", "touch", "prof/b.pt.trace.json.gz")
    assert again.stderr.splitlines() == [warning, "warning: the job wrote no new profile in prof"]
    assert run(*LABELS, "--", "true").stderr == "warning: the job wrote no new profile in prof\n", "it lay there before"


def test_the_environment_and_the_version_are_those_of_the_job(job, monkeypatch, run):
    for line in ("init -q", "commit -q --allow-empty -m a", "tag v7 -m a"):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *line.split()], check=True)
    monkeypatch.setenv("SLURM_JOB_ID", "41")
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    done = run("--profiles", "prof", "--workload", "toy", "--", "cp", "made.json", "prof")
    assert "toy v7" in done.stderr
    with open_store(str(job / "jobs.db"), create=False) as store:
        facts = queries.facts(store, [1]).frame
        commit = queries.versions(store, "toy").frame["commit"][0]
    known = dict(zip(facts["key"], facts["value"], strict=True))
    assert (known["job_id"], known["NCCL_ALGO"], known["git_commit"], known["git_dirty"]) == (
        "41",
        "Ring",
        commit,
        "no",
    )
    assert "python_version" not in known  # that of tracker is not that of the job


def test_hooks_in_the_job_are_told_the_labels_and_deliver_nothing(job, run):
    names = ("VERSION", "WORKLOAD", "CONFIGURATION", "EXPECT_RANKS", "DELIVER")
    script = f"echo {' '.join(f'$TRACKER_{name}' for name in names)}"
    done = run(*LABELS, "--config", "a=1", "--config", "b=2", "--expect-ranks", "8", "--", "sh", "-c", script)
    assert done.stdout == "v1 toy a=1,b=2 8 0\n"  # who wraps the job delivers


def test_a_comma_in_a_value_reaches_hooks_in_the_job_as_it_is(job, run):
    script = "from tracker.hooks.job import Job; print(Job().told()['configuration'])"
    done = run(*LABELS, "--config", "shape=8,mode=x", "--config", "batch=4", "--", sys.executable, "-c", script)
    assert done.stdout == "{'shape': '8,mode=x', 'batch': '4'}\n"


def test_a_sidecar_that_the_job_wrote_is_read(job, run):
    beside(trace(job / "image", "a.json"), version="v2", workload="said")
    done = run("--profiles", "prof", "--", "sh", "-c", "cp image/* prof")
    assert "said v2" in done.stderr


def test_a_profile_that_cannot_be_read_waits_and_the_exit_code_is_the_commands(job, run):
    good, bad = "cp made.json prof/a.json", "head -c 300 made.json > prof/b.json"
    done = run(*LABELS, "--", "sh", "-c", f"{good}; {bad}; exit 7")
    assert done.returncode == 7
    assert len(runs(job)) == 1
    (entry,) = queued(job)
    assert "b.json" in Path(entry).read_text()
    assert "prof/b.json: " in done.stderr
    assert f"note: not ingested yet: tracker ingest --spooled {Path(entry).parent}" in done.stderr


def test_a_job_whose_only_profile_cannot_be_read_makes_no_database(job, run):
    run(*LABELS, "--", "sh", "-c", "head -c 300 made.json > prof/b.json")
    assert len(queued(job)) == 1
    assert not (job / "jobs.db").exists()


def test_a_database_that_is_away_keeps_all_for_later(job, monkeypatch, tracker, run):
    monkeypatch.setenv("TRACKER_DB", str(job / "jobs.db"))  # the fixture `tracker` takes it away
    monkeypatch.setenv("TRACKER_SPOOL", str(job / "spool"))
    (job / "jobs.db").write_text("no database")
    done = run(*LABELS, "--", "sh", "-c", "cp made.json prof; exit 4")
    assert done.returncode == 4
    assert len(queued(job)) == 1
    (job / "jobs.db").unlink()
    again = tracker("ingest", "--spooled")
    assert again.out.splitlines()[0].startswith("run 1  toy v1")
    assert queued(job) == []


def test_a_spool_that_cannot_be_written_does_not_keep_the_profile_out(job, monkeypatch, run):
    monkeypatch.setenv("TRACKER_SPOOL", str(job / "made.json"))
    done = run(*LABELS, "--", "cp", "made.json", "prof")
    assert done.returncode == 0
    assert "no profile is queued there" in done.stderr
    assert len(runs(job)) == 1


def test_a_command_that_is_not_there_is_127(job, run):
    done = run(*LABELS, "--", "no-such-command")
    assert (done.returncode, done.stderr) == (127, "tracker: no-such-command: No such file or directory\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_reaches_the_command_which_decides_how_it_ends(job, number):
    name = number.name.removeprefix("SIG")
    script = f"trap 'cp made.json prof; exit 9' {name}; touch ready; while :; do sleep 0.05; done"
    command = [sys.executable, "-m", "tracker", "run", *LABELS, "--", "sh", "-c", script]
    started = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a shell lets what it starts in the background ignore SIGINT, and that is inherited
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 one thread
    )
    until((job / "ready").exists)
    started.send_signal(number)
    _, told = started.communicate(timeout=60)
    assert started.returncode == 9
    assert "toy v1" in told  # the profile of a job that was cut short is read as well


def test_a_signal_that_another_thread_receives_reaches_the_command(tmp_path):
    script = """if True:
        import os, signal, sys, threading, time
        from tracker.cli.run import run_child
        def receive():
            while not os.path.exists("ready"):
                time.sleep(0.01)
            time.sleep(0.1)  # the main thread waits for the command
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        threading.Thread(target=receive).start()
        words = ["sh", "-c", "trap 'exit 9' TERM; touch ready; while :; do sleep 0.05; done"]
        sys.exit(run_child(words, os.environ))
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, timeout=30, check=False)
    assert done.returncode == 9


def test_a_command_that_a_signal_ends_has_the_exit_code_of_a_shell(job, run):
    done = run(*LABELS, "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 128 + 9
    assert done.stderr.startswith("note: the job ended with exit code 137: signal 9, Killed\n")


def test_wrong_options_are_told_before_the_job_starts(job, run):
    done = run("--profiles", "prof", "--config", "nonsense", "--", "touch", "started")
    assert (done.returncode, (job / "started").exists()) == (2, False)


def test_a_folder_that_is_a_profile_is_read_when_a_file_in_it_is_new(job, run):
    (source,) = (ROOT / "tests" / "data" / "ascend_text").glob("worker-1_*")
    shutil.copytree(source, job / "image" / source.name)
    done = run(*LABELS, "--", "cp", "-r", f"image/{source.name}", "prof")
    assert done.returncode == 0
    assert source.name in done.stderr
