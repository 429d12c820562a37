"""The epilog and the CI jobs under scripts/ci do what they say, as far as that shows without Slurm and a CI server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.hooks.jobs import ROOT, calls, command, environ, real_tracker, until
from tests.test_sidecar import beside, trace
from tracker.hooks import spool
from tracker.store import open_store, queries

yaml = pytest.importorskip("yaml")
CI = ROOT / "scripts" / "ci"
SAMPLE = ROOT / "tracker" / "samples" / "v01" / "run1.pt.trace.json.gz"


def github() -> tuple[list[str], list[str], dict]:
    """The lines of the job, those that run whatever happened, and its variables."""
    # `on` is a boolean in YAML 1.1
    (job,) = yaml.safe_load((CI / "github.yml").read_text())["jobs"].values()
    lines = [step for step in job["steps"] if "run" in step]
    always = [step["run"] for step in lines if step.get("if") == "always()"]
    assert job["steps"][0]["with"]["fetch-depth"] == 0
    return [step["run"] for step in lines if "if" not in step], always, job["env"]


def gitlab() -> tuple[list[str], list[str], dict]:
    (job,) = yaml.safe_load((CI / "gitlab.yml").read_text()).values()
    assert job["variables"]["GIT_DEPTH"] == "0"
    return job["script"], job["after_script"], job["variables"]


@pytest.fixture
def checkout(tmp_path):
    """What a runner checks out: a job that leaves a bundled sample as its profile; `tracker` and `python` on PATH."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text(
        f"import shutil; import os; os.mkdir('prof'); shutil.copy({str(SAMPLE)!r}, 'prof')"
    )
    for line in ("init -q", "add .", "commit -q -m a", "tag v5 -m a"):
        author = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(folder), *author, *line.split()], check=True)
    program = Path(real_tracker(tmp_path).strip("'"))
    (program.parent / "python").symlink_to(sys.executable)
    variables = environ(tmp_path, PATH=f"{program.parent}:/usr/bin:/bin")
    del variables["TRACKER_VERSION"], variables["TRACKER_WORKLOAD"]
    return folder, variables


@pytest.mark.parametrize("job", [github, gitlab])
def test_a_ci_job_keeps_the_profile_of_a_push_as_the_version_that_git_describes(checkout, tmp_path, job):
    folder, variables = checkout
    lines, always, _ = job()
    queued = beside(trace(tmp_path / "earlier"), version="v4", workload="small_gpt")
    profile = str(queued).removesuffix(".tracker.json")
    spool.add(spool.folder(variables), {"profile": profile}, now_ns=1)
    for line in [*lines, *always]:
        done = subprocess.run(
            ["sh", "-e", "-c", line], cwd=folder, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    with open_store(str(tmp_path / "jobs.db"), create=False) as store:
        assert list(queries.versions(store, "small_gpt")["version"]) == ["v5", "v4"]


@pytest.mark.parametrize("job", [github, gitlab])
def test_a_ci_job_keeps_its_spool_out_of_the_checkout(job):
    _, _, variables = job()
    assert variables["TRACKER_SPOOL"].startswith(("${{ github.workspace }}/../", "/"))


def epilog(folder: Path, tracker: str, **variables: str) -> int:
    """The epilog as slurmd runs it: when it has ended, what is left of its process group is killed.

    Its `su` stays the same user; as the real one it lets nothing of the environment through but what a login sets.
    """
    (folder / "bin").mkdir()
    su = folder / "bin" / "su"
    login = f'exec env -i HOME="{folder}/home" PATH=/usr/bin:/bin TRACKER_DB=/of/the/login.db /bin/sh "$@"'
    su.write_text(f'#!/bin/sh\necho "$@" > "{folder}/su"\n[ "$1 $2 $3" = "- somebody -s" ] && shift 4 && {login}\n')
    su.chmod(0o755)
    script = CI / "slurm_epilog.sh"
    subprocess.run(["sh", "-n", str(script)], check=True)
    environment = environ(folder, TRACKER=tracker, **variables) | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    process = subprocess.Popen([str(script)], env=environment, start_new_session=True)
    code = process.wait(timeout=5)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return code


def test_the_epilog_delivers_what_the_job_queued_although_slurm_kills_what_it_leaves(tmp_path):
    profile = trace(tmp_path / "prof")
    beside(profile, version="v1", workload="toy")
    spool.add(spool.folder(environ(tmp_path)), {"profile": str(profile)}, now_ns=1)
    assert epilog(tmp_path, real_tracker(tmp_path).strip("'"), SLURM_JOB_USER="somebody") == 0
    until(lambda: (tmp_path / "spool").exists() and not spool.entries(spool.folder(environ(tmp_path))))
    assert calls(tmp_path) == ["ingest --spooled"]


def test_the_epilog_names_database_and_spool_but_not_where_everybody_can_read_them(tmp_path):
    url = "postgresql://me:it's secret@db/x"
    tracker = command(tmp_path, f'env > "{tmp_path}/seen"; : > "{tmp_path}/done"').strip("'")
    given = {"TRACKER_DB": url, "TRACKER_CONFIG": "/etc/tracker.toml", "SLURM_JOB_USER": "somebody"}
    assert epilog(tmp_path, tracker, **given) == 0
    until((tmp_path / "done").exists)
    seen = (tmp_path / "seen").read_text().splitlines()
    assert {line for line in seen if line.startswith("TRACKER_")} == {
        f"TRACKER_DB={url}", "TRACKER_CONFIG=/etc/tracker.toml", f"TRACKER_SPOOL={tmp_path}/spool",
    }  # fmt: skip
    assert (tmp_path / "su").read_text() == "- somebody -s /bin/sh\n"


@pytest.mark.parametrize("variables", [{}, {"SLURM_JOB_USER": "somebody"}])
def test_the_epilog_neither_fails_nor_waits(tmp_path, variables):
    hangs = command(tmp_path, "exec sleep 10").strip("'")
    assert epilog(tmp_path, hangs, **variables) == 0  # the timeout of five seconds is not reached
