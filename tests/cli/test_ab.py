"""`tracker ab`: two builds by turns, from the command line to the decision, on a job that prints made times."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.repositories import MadeRepository
from tracker.experiment.places import hold_devices
from tracker.store import experiments, open_store
from tracker.store.experiments import StoredExperiment

JOB = """\
# prints the times of 10 steps; the argument is the number of the run, which moves them by 0, 1 or 2 of 10,000
base=$(cat base)
echo "run $1"
for step in 1 2 3 4 5 6 7 8 9 10; do
  echo "iter $step: loss 2.0, time $((base + $1 % 3)).00ms"
done
"""
DAMAGED = '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1.0, "dur": 2.0'
"""A trace that was cut off."""
RUN = ("--", "sh", "job.sh", "{run}")
LABELS = ("--workload", "gpt", "--seed", "7")


@pytest.fixture
def repository(tmp_path, monkeypatch) -> MadeRepository:
    """Two commits of a job: the second takes 11 s a step, the first 10."""
    made = MadeRepository(tmp_path / "job")
    (made.folder / "job.sh").write_text(JOB)
    for number, base in enumerate((10_000, 11_000)):
        (made.folder / "base").write_text(str(base))
        made.git("add", "-A")
        made.commit(f"base {number}")
    monkeypatch.chdir(made.folder)
    for name, value in (("TRACKER_CACHE", "cache"), ("TRACKER_DB", "ab.db")):
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.delenv("TRACKER_WORKLOAD", raising=False)
    return made


@pytest.fixture
def ab(tracker, repository):
    """Calls `tracker ab`; the database is that of TRACKER_DB, as for all other commands."""
    database = os.environ["TRACKER_DB"]

    def call(*words):
        os.environ["TRACKER_DB"] = database
        return tracker("ab", *words)

    os.environ["TRACKER_DB"] = database
    return call


def rewrite(repository: MadeRepository, job: str) -> None:
    """Give both sides another job."""
    (repository.folder / "job.sh").write_text(job)
    repository.git("add", "-A")
    repository.commit("another job")
    (repository.folder / "base").write_text("12000")
    repository.git("add", "-A")
    repository.commit("a slower one")


def state_of(folder: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_slower_candidate_is_decided_outside_of_history(ab, tracker, repository, tmp_path):
    before = state_of(repository.folder)
    done = ab("HEAD~1", "HEAD", *LABELS, *RUN)
    assert done.code == 1
    assert "Candidate is 10.0 % slower, between 9.4 and 10.6 % (8 runs)" in done.out and "SLOWER" in done.out
    assert "decided: slower" in done.err and "iter 10: loss 2.0" in done.err
    # the repository is as it was, .git too, and the clones are gone
    assert state_of(repository.folder) == before
    assert not list((tmp_path / "cache" / "experiments").glob("E-1*/*/job"))

    assert "no active runs" in tracker("runs").out
    assert "no runs yet" in tracker("board").out
    assert "no versions" in tracker("versions").out
    assert "there are no runs yet" in tracker("findings").err
    listed = tracker("experiments").out
    assert "E-1         gpt       HEAD~1    HEAD       decided  10.0 % slower" in listed
    assert tracker("runs", "--experiment", "E-1").out.count("excluded: a run of experiment E-1") == 10
    assert "candidate is 10.0 % slower than baseline" in tracker("diff", "E-1:baseline", "E-1:candidate").out
    refused = tracker("runs", "restore", "3")
    assert refused.code == 2 and "is of experiment E-1, which no history has" in refused.err

    shown = json.loads(tracker("experiments", "show", "E-1", "--format", "json").out)
    assert shown["experiment"]["outcome"] == "slower" and len(shown["pairs"]) == 4
    assert shown["pairs"][0]["change_ratio"] == pytest.approx(0.1, abs=0.005)
    assert shown["diff"]["baseline"]["runs"] == 4

    assert "deleted, with 10 runs" in tracker("experiments", "delete", "E-1").out
    assert "no experiments yet" in tracker("experiments").out
    assert tracker("runs", "--state", "all").out.startswith("no runs")


def test_the_order_of_the_sides_follows_the_seed(ab, tracker):
    orders = []
    for _ in range(2):
        ab("HEAD~1", "HEAD", *LABELS, *RUN)
        runs = json.loads(tracker("runs", "--experiment", f"E-{len(orders) + 1}", "--format", "json").out)["runs"]
        orders.append([row["version"] for row in runs])
    assert orders[0] == orders[1] and orders[0][:2] != orders[0][2:4]


def test_a_variable_that_changes_nothing_makes_no_difference(ab):
    done = ab("HEAD", "HEAD", "--env-candidate", "OMP_NUM_THREADS=2", *LABELS, *RUN)
    assert done.code == 0 and "No difference of 5 % or more" in done.out and "NO DIFFERENCE" in done.out
    assert "Whether each side ran its own code is not known" in done.out
    assert "The sides differ in OMP_NUM_THREADS." in done.out
    same = ab("HEAD", "HEAD", *LABELS, *RUN)
    assert same.code == 2 and "both sides are the same tree" in same.err


def test_a_silent_command_is_measured_by_its_wall_time(ab):
    done = ab("HEAD~1", "HEAD", *LABELS, "--most", "4", "--", "true")
    assert done.code == 4 and "Measured is the wall time of the command" in done.out
    assert "nothing is decided before 8 runs" in done.err and "Not decided after 4 runs" in done.out


def test_what_is_run_is_stored_nowhere(ab, tmp_path):
    done = ab("HEAD~1", "HEAD", *LABELS, "--env-baseline", "TOKEN=hunter2", "--setup", "echo swordfish", "--most", "4",
              "--", "sh", "job.sh", "{run}", "--key=opensesame")  # fmt: skip
    assert done.code == 4
    content = b"".join(path.read_bytes() for path in tmp_path.glob("ab.db*"))
    assert b"gpt @ experiment E-1" in content
    assert not any(secret in content for secret in (b"hunter2", b"swordfish", b"opensesame", b"job.sh"))


def test_an_option_that_is_no_variable_is_not_printed(ab):
    done = ab("HEAD~1", "HEAD", *LABELS, "--env-baseline", "hunter2", *RUN)
    assert done.code == 2 and "--env-baseline is not NAME=VALUE" in done.err and "hunter2" not in done.err


def test_two_folders_run_where_they_are(ab, repository, tmp_path):
    for name, base in (("x", 10_000), ("y", 11_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.sh").write_text(JOB)
        (tmp_path / name / "base").write_text(str(base))
    done = ab(tmp_path / "x", tmp_path / "y", *LABELS, *RUN)
    assert done.code == 1 and "Candidate is 10.0 % slower" in done.out


def test_a_command_that_fails_names_side_and_log(ab, tracker, repository, tmp_path):
    rewrite(repository, "test -e ../../../../broken && exit 3\n" + JOB)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "broken").touch()
    failed = ab("HEAD~1", "HEAD", *LABELS, *RUN)
    assert failed.code == 2
    (line,) = [one for one in failed.err.splitlines() if one.startswith("tracker: run ")]
    assert "run 1 of the baseline ended with exit code 3" in line and "run-1-baseline.err" in line
    assert "failed" in tracker("experiments").out

    (tmp_path / "cache" / "broken").unlink()
    done = ab("--resume", "E-1", *RUN)
    assert done.code == 1 and "Candidate is 9.1 % slower" in done.out
    again = ab("--resume", "E-1", *RUN)
    assert again.code == 2 and "E-1 is decided" in again.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--run-time", "1s", "--", "sleep", "60"), "run 1 of the baseline was ended after 1"),
        (("--profiles", "prof", "--", "true"), "run 1 of the baseline wrote no profile in "),
        (("--", "no-such-program"), "no-such-program cannot be started in "),
        (("--profiles", "p", "--", "sh", "-c", f"mkdir -p p; echo '{DAMAGED}' > p/a.pt.trace.json"), "a.pt.trace.json"),
        ((), "tracker ab needs two sides, and a command behind --"),
        (("--within", "0", "--", "true"), "--within '0' is no change"),
        (("--link", "../outside", "--", "true"), "--link ../outside"),
        (("--setup", "exit 4", "--", "true"), "--setup of baseline ended with exit code 4"),
    ],
)
def test_bad_input_ends_with_one_line(ab, words, problem):
    done = ab("HEAD~1", "HEAD", *LABELS, *words)
    lines = [line for line in done.err.splitlines() if line.startswith("tracker: ")]
    assert done.code == 2 and len(lines) == 1 and problem in lines[0] and "Traceback" not in done.err


def test_unknown_sides_and_experiments_are_named(ab, tracker):
    assert "neither a revision" in ab("nowhere", "HEAD", *LABELS, *RUN).err
    assert "there is no experiment E-9" in ab("--resume", "E-9", *RUN).err
    assert "there are no runs yet" in ab("--finding", "12", *RUN).err
    assert "a command behind --, and no sides" in ab("--finding", "12", "HEAD", *RUN).err
    assert "two sides, and a command behind --" in ab("HEAD", *RUN).err
    assert "there is no experiment E-9" in tracker("experiments", "show", "E-9").err
    assert "names no experiment" in tracker("experiments", "delete", "nine").err


def test_a_dry_run_only_says_what_would_be_run(ab, tmp_path):
    done = ab("HEAD~1", "HEAD", "--dry-run", "--env-candidate", "TOKEN=hunter2", "--within", "3%", *RUN)
    assert done.code == 0 and "sh job.sh" in done.out and "within 3 %, at most 80 runs" in done.out
    assert "hunter2" not in done.out and not (tmp_path / "ab.db").exists()


def ingest_night(tracker, repository: MadeRepository, version: str, revision: str, times_ms: Sequence[int]) -> None:
    """Store a run of a version for each of these steps, as nights leave them."""
    for place, time_ms in enumerate(times_ms):
        log = repository.folder.parent / f"{version}-{place}.log"
        lines = "".join(f"iter {step}: loss 2.0, time {time_ms}.00ms\n" for step in range(1, 11))
        log.write_text(f"{version} {place}\n{lines}")
        commit = repository.git("rev-parse", revision)
        done = tracker("ingest", log, "--version", version, "--workload", "gpt", "--commit", commit)
        assert done.code == 0, done.err


def test_a_finding_is_decided_by_its_commits_and_says_so(ab, tracker, repository):
    ingest_night(tracker, repository, "v1", "HEAD~1", [10_000, 10_002, 9_999, 10_001])
    ingest_night(tracker, repository, "v2", "HEAD", [11_000, 11_003, 10_999])
    explained = tracker("explain", "1").out
    assert "tracker ab --finding 1 -- COMMAND" in explained and "ecided by" not in explained
    done = ab("--finding", "1", "--seed", "7", *RUN)
    assert done.code == 1 and "Candidate is 10.0 % slower" in done.out
    # with the history of the main line two pairs are enough
    assert "warmed up; about 4 runs to expect" in done.err and "(4 runs)" in done.out
    explained = tracker("explain", "1").out
    # the finding is of the mean step, the experiment of the step
    assert "Decided by E-1: the step is 10.0 % slower" in explained and "4 runs." in explained
    assert "tracker ab" not in explained
    assert "Decided by E-1" in tracker("findings").out
    # the history is what it was before
    assert tracker("runs", "--format", "csv").out.count("\n") == 8


def test_a_suspect_proposes_its_two_versions(ab, tracker, repository):
    ingest_night(tracker, repository, "v1", "HEAD~1", [10_000, 10_002, 9_999, 10_001])
    ingest_night(tracker, repository, "v2", "HEAD", [11_000])
    assert "tracker ab v1 v2 --workload gpt -- COMMAND" in tracker("findings").out
    done = ab("v1", "v2", "--workload", "gpt", "--seed", "7", *RUN)
    assert done.code == 1
    found = tracker("findings").out
    assert "Decided by E-1: 10.0 % slower" in found and "tracker ab" not in found


def start_ab(copied_tracker, *words: str) -> subprocess.Popen:
    return subprocess.Popen(
        [*copied_tracker, "ab", *words],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_run(cache: Path, number: int) -> None:
    """Wait until a run of an experiment has printed something."""
    ends_at = time.monotonic() + 60
    while not any(path.stat().st_size for path in cache.rglob(f"run-{number}-*.out")):
        assert time.monotonic() < ends_at
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_with_what_is_known(ab, tracker, repository, copied_tracker, tmp_path, number):
    # the fifth run, of the second pair, waits to be interrupted
    rewrite(repository, JOB + 'test "$1" = 5 && sleep 60\ntrue\n')
    running = start_ab(copied_tracker, "HEAD~1", "HEAD", *LABELS, *RUN)
    wait_for_run(tmp_path / "cache", 5)
    running.send_signal(number)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 4 and "Not decided after 2 runs: candidate is 9.1 % slower" in out
    assert "tracker ab --resume E-1 -- COMMAND" in err
    assert ab("--resume", "E-1", *RUN).code == 1


def test_an_experiment_goes_on_with_its_own_command(ab, tracker):
    assert ab("HEAD~1", "HEAD", *LABELS, "--most", "4", *RUN).code == 4
    other = ab("--resume", "E-1", "--", "sh", "job.sh", "5")
    assert other.code == 2 and "was started with another command" in other.err
    os.environ["CUDA_VISIBLE_DEVICES"] = "3"
    try:
        assert "E-1 runs on devices (all)" in ab("--resume", "E-1", *RUN).err
    finally:
        del os.environ["CUDA_VISIBLE_DEVICES"]
    assert ab("--resume", "E-1", *RUN).code == 1


def test_a_deleted_run_takes_its_pair_along(ab, tracker):
    ab("HEAD~1", "HEAD", *LABELS, "--most", "6", *RUN)
    assert tracker("runs", "delete", "5", "--reason", "odd").code == 0
    done = ab("--resume", "E-1", "--most", "12", *RUN)
    assert done.code == 1 and "(8 runs)" in done.out
    shown = json.loads(tracker("experiments", "show", "E-1", "--format", "json").out)
    assert [pair["pair"] for pair in shown["pairs"]] == [1, 3, 4, 5]
    assert tracker("runs", "delete", "3", "--reason", "odd").code == 0
    assert "The headline rests on 8 runs, the tables on 6 runs" in tracker("experiments", "show", "E-1").out


def test_a_run_of_an_experiment_stays_where_it_is(ab, tracker, repository, tmp_path):
    ab("HEAD~1", "HEAD", *LABELS, "--most", "4", *RUN)
    refused = tracker("runs", "edit", "3", "--workload", "gpt")
    assert refused.code == 2 and "run 3 is of experiment E-1, which no history has" in refused.err
    log = next((tmp_path / "cache").rglob("run-3-*.log"))
    refused = tracker("ingest", log, "--version", "v9", "--workload", "gpt")
    assert refused.code == 2 and "tracker experiments delete E-1" in refused.err
    # a job that stores its profile itself
    own = repository.folder / "job.log"
    own.write_text("".join(f"iter {step}: loss 2.0, time 9000.00ms\n" for step in range(1, 11)))
    refused = tracker("ingest", own, "--version", "v9", "--workload", "gpt @ experiment E-1")
    assert refused.code == 2 and "is of experiment E-1, whose runs tracker ab stores" in refused.err


def test_what_a_command_leaves_running_ends_with_it(ab, repository, tmp_path):
    rewrite(repository, f"{JOB}(sleep 30; touch {tmp_path}/late) &\n")
    began = time.monotonic()
    assert ab("HEAD~1", "HEAD", *LABELS, "--most", "4", *RUN).code == 4
    assert time.monotonic() - began < 10 and not (tmp_path / "late").exists()


def test_a_side_that_ran_other_code_is_always_refused(ab, repository, tmp_path):
    # a job whose hook says that it imported the package of the checkout, on both sides
    package = repository.folder / "mypkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    loaded = json.dumps({"mypkg": [str(package / "__init__.py")]})
    rewrite(repository, f"test -n \"$TRACKER_MODULES\" && echo '{loaded}' > $TRACKER_MODULES.host.1\n{JOB}")
    for words in (("HEAD~1", "HEAD", *LABELS), ("--resume", "E-1"), ("--resume", "E-1")):
        done = ab(*words, *RUN)
        assert done.code == 2 and "baseline ran mypkg of another folder" in done.err


def test_a_killed_experiment_loses_the_running_pair(ab, repository, copied_tracker, tmp_path):
    rewrite(repository, JOB + 'test "$1" = 6 && sleep 5\ntrue\n')
    running = start_ab(copied_tracker, "HEAD~1", "HEAD", *LABELS, *RUN)
    wait_for_run(tmp_path / "cache", 6)
    running.kill()
    running.communicate(timeout=60)
    with open_store(str(tmp_path / "ab.db")) as store:
        assert [run.pair for run in experiments.list_runs(store, 1)] == [0, 0, 1, 1, 2]
    # what it left running has the devices until it ends
    done = ab("--resume", "E-1", *RUN)
    assert done.code == 1 and "Candidate is 9.1 % slower" in done.out and "waiting for E-1, or what" in done.err
    with open_store(str(tmp_path / "ab.db")) as store:
        pairs = [run.pair for run in experiments.list_runs(store, 1)]
    assert pairs == [0, 0, 1, 1, None, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize("phase", ["setup", "warm-up"])
def test_an_experiment_killed_before_its_pairs_goes_on(ab, repository, copied_tracker, tmp_path, phase):
    rewrite(repository, JOB + 'test "$1" = 1 && sleep 1\ntrue\n')
    words = ("--setup", "echo building; sleep 1; touch built") if phase == "setup" else ()
    running = start_ab(copied_tracker, "HEAD~1", "HEAD", *LABELS, *words, *RUN)
    pattern = "setup-baseline.log" if phase == "setup" else "run-1-*.out"
    ends_at = time.monotonic() + 60
    while not any(path.stat().st_size for path in (tmp_path / "cache").rglob(pattern)):
        assert time.monotonic() < ends_at
        time.sleep(0.02)
    running.kill()
    running.communicate(timeout=60)
    assert "broken off" in ab_list(copied_tracker)
    done = ab("--resume", "E-1", *words, *RUN)
    assert done.code == 1 and "Candidate is 9.1 % slower" in done.out
    # a setup that was broken off is done again
    assert (phase == "setup") == ("setup of baseline" in done.err)


def ab_list(copied_tracker) -> str:
    command = [*copied_tracker, "experiments"]
    return subprocess.run(command, env=os.environ, capture_output=True, text=True, check=True, timeout=60).stdout


def test_an_undecided_experiment_says_how_to_go_on(ab, tracker):
    ab("HEAD~1", "HEAD", *LABELS, "--most", "4", *RUN)
    shown = tracker("experiments", "show", "E-1").out
    assert "Not decided after 4 runs" in shown and "tracker ab --resume E-1 -- COMMAND" in shown
    page = Path(os.environ["HOME"]).parent / "ab.html"
    assert tracker("experiments", "show", "E-1", "-o", page).code == 0 and "Not decided" in page.read_text()


def test_the_function_of_the_package_decides_alike(repository):
    import tracker

    told: list[str] = []
    with tracker.open_store(os.environ["TRACKER_DB"]) as store:
        found = tracker.ab(
            "HEAD~1", "HEAD", ["sh", "job.sh", "{run}"], store=store, workload="gpt", seed=7, tell=told.append
        )
        assert found.headline == f"E-1: {found.experiment.change.sentence}" and found.experiment.outcome == "slower"
        assert found.diff is not None and len(found.rows.pairs) == 4 and told[-1].endswith("decided: slower")
        assert tracker.experiments(store=store)["outcome"].tolist() == ["slower"]


def test_a_pair_on_an_uneven_machine_is_repeated(ab, repository):
    throttled = '{"schema": 1, "facts": {"device_throttled": "power"}}'
    rewrite(
        repository,
        # only the fourth run, of the first pair, is held down
        f"mkdir -p prof\n({JOB}) > prof/train.log\nrm -f prof/train.log.tracker.json\n"
        f"test \"$1\" = 4 && echo '{throttled}' > prof/train.log.tracker.json\ntrue\n",
    )
    done = ab("HEAD~1", "HEAD", *LABELS, "--profiles", "prof", *RUN)
    assert done.code == 1 and "pair 1 is repeated: the machine slowed down one side" in done.err
    assert "held by power" in done.err


def test_experiments_on_the_same_devices_wait(repository):
    def experiment(number: int, devices: str) -> StoredExperiment:
        return StoredExperiment(
            experiment_id=number, baseline="a", candidate="b", seed=1, limit_ratio=0.05, devices=devices
        )

    told: list[str] = []
    with hold_devices(experiment(1, "0,1"), told.append), hold_devices(experiment(2, "2"), told.append):
        assert told == []

        def hold_third() -> None:
            with hold_devices(experiment(3, "1,3"), told.append):
                told.append("has them")

        third = threading.Thread(target=hold_third)
        third.start()
        while not told:
            time.sleep(0.01)
        assert told == ["waiting for E-1, or what its command left running, for the devices"]
    third.join(10)
    assert told[-1] == "has them"


SPIN = """\
import sys, time, random
random.seed(int(sys.argv[1]) * 7919)
for step in range(1, 13):
    end = time.perf_counter() + {base} * random.gauss(1.0, 0.01)
    begin = time.perf_counter()
    while time.perf_counter() < end:
        pass
    print(f"iter {{step}}: loss 2.0, time {{(time.perf_counter() - begin) * 1000:.4f}}ms", flush=True)
"""


@pytest.mark.slow
def test_a_spin_of_6_per_cent_is_found_and_none_is_not(ab, repository):
    for base in (0.01, 0.0106):
        (repository.folder / "spin.py").write_text(SPIN.format(base=base))
        repository.git("add", "-A")
        repository.commit(f"spin {base}")
    run = ("--", sys.executable, "spin.py", "{run}")
    slower = ab("HEAD~1", "HEAD", "--within", "5%", *LABELS, *run)
    assert slower.code == 1 and ("Candidate is 6." in slower.out or "Candidate is 5." in slower.out)
    equal = ab("HEAD", "HEAD", "--env-candidate", "UNUSED=1", "--within", "5%", *LABELS, *run)
    assert equal.code == 0 and "No difference of 5 % or more" in equal.out


def test_experiments_go_with_a_copy_of_the_database(ab, tracker, tmp_path):
    ab("HEAD~1", "HEAD", *LABELS, *RUN)
    copied = tmp_path / "copied.db"
    assert tracker("db", "copy", os.environ.get("TRACKER_DB", tmp_path / "ab.db"), copied).code == 0
    assert "10.0 % slower" in tracker("experiments", "--db", copied).out
    with sqlite3.connect(copied) as connection:
        count = connection.execute("SELECT COUNT(*) FROM run WHERE experiment_id = 1").fetchone()
    connection.close()
    assert count == (10,)
