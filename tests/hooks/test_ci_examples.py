"""The epilog and the CI jobs under scripts/ci do what they say, as far as that shows without Slurm and a CI server."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.conftest import slow
from tests.hooks.jobs import ROOT, calls, command, copied, environ, real_tracker, until
from tests.test_sidecar import beside, trace
from tracker.hooks import places, spool
from tracker.intake import ingest
from tracker.store import open_store, queries

yaml = pytest.importorskip("yaml")
CI = ROOT / "scripts" / "ci"
SAMPLES = ROOT / "tracker" / "samples"
PAYLOAD = {
    "github.workspace": "/builds/code", "github.token": "a token", "github.event.number": "41",
    "github.workflow": "profile", "github.event.repository.default_branch": "main",
    "github.event.number && format('pull/{0}', github.event.number) || ''": "pull/41",
    "github.base_ref": "main", "runner.temp": "/builds/temporary",
}  # fmt: skip
BOT, MARK = "github-actions[bot]", "<!-- tracker: profile -->"
GH = f"""#!{sys.executable}
import json, os, pathlib, re, sys
place = pathlib.Path({{place!r}})
with (place / "posted").open("a") as posted:
    print("gh", *sys.argv[1:], file=posted)
if "--jq" in sys.argv and (place / "comments").exists():
    said = sys.argv[-1]
    who, variable = re.search('login == "(.*?)"', said)[1], re.search('startswith[(]env.([A-Z]+)[)]', said)[1]
    for one in json.loads((place / "comments").read_text()):
        if one["user"]["login"] == who and one["body"].startswith(os.environ[variable]):
            print(one["id"])
"""
"""Writes down what it is given, and knows the one question that the job asks of it."""


@dataclass
class Step:
    """Lines that a CI system runs in one shell, and its variables beside those of the job."""

    lines: str
    shell: tuple[str, ...]
    variables: dict[str, str]
    always: bool


def github(name: str = "profile", kept_file: str = "gate.xml") -> tuple[list[Step], dict]:
    """The steps of a job, and its variables."""
    # `on` is a boolean in YAML 1.1
    job = yaml.safe_load((CI / "github.yml").read_text())["jobs"][name]
    assert job["steps"][0]["with"]["fetch-depth"] == 0
    (kept,) = [step for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
    assert (kept["with"]["path"], kept["if"]) == (kept_file, "always()")
    variables = filled({name: value for name, value in job["env"].items() if "secrets." not in value})
    branch = {name: text for name, text in variables.items() if name == "TRACKER_BRANCH"}
    steps = [
        Step(text, ("bash", "-e"), branch | filled(step.get("env", {})), "always()" in step.get("if", ""))
        for step in job["steps"]
        for text in filled({"run": step["run"]} if "run" in step else {}).values()
    ]
    return steps, variables


def filled(variables: dict[str, str]) -> dict[str, str]:
    """Variables with what GitHub puts in for the expressions in them."""
    return {
        name: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: PAYLOAD[found[1]], value) for name, value in variables.items()
    }


def gitlab(name: str = "profile", kept_file: str = "gate.xml") -> tuple[list[Step], dict]:
    job = yaml.safe_load((CI / "gitlab.yml").read_text())[name]
    assert job["variables"]["GIT_DEPTH"] == "0"
    kept = job["artifacts"]
    assert kept["when"] == "always" and kept_file in [*kept["paths"], *kept.get("reports", {}).values()]
    assert job["allow_failure"]["exit_codes"] == 4
    shell = ("bash", "-eo", "pipefail")
    steps = [Step("\n".join(job["script"]), shell, {}, False)]
    return [*steps, Step("\n".join(job["after_script"]), shell, {}, True)], job["variables"]


class Checkout:
    """What a runner checks out: a job that leaves one bundled sample of `label` after the other as its profile. It is a
    push to a pull request from the branch fix, which left main at v4; HEAD is detached.

    `tracker`, `python`, and `gh` and `curl` that write down what they are given, are on PATH.
    """

    def __init__(self, place: Path, tracker: list[str], label: str = "v01") -> None:
        self.place, self.folder = place, place / "code"
        self.folder.mkdir()
        (self.folder / "train.py").write_text(
            "import gzip, os, shutil\nos.makedirs('prof', exist_ok=True)\nat = len(os.listdir('prof')) + 1\n"
            "label, push = os.environ['LABEL'], int(os.environ['PUSH'])\n"
            f"with gzip.open(f'{SAMPLES}/{{label}}/run{{at}}.pt.trace.json.gz') as file:\n"
            "    text = file.read().replace(b'Nanoseconds\": 179', b'Nanoseconds\": 18%d' % push)\n"
            "with gzip.open(f'prof/run{at}.pt.trace.json.gz', 'w', 1) as file:\n    file.write(text)\n"
        )
        for line in (
            "init -q", "checkout -q -b main", "commit -q --allow-empty -m main", "tag v4 -m main", "checkout -q -b fix",
            "add .", "commit -q -m a", "tag v5 -m a", f"init -q --bare {place}/origin",
            f"remote add origin {place}/origin", "push -q origin main", "fetch -q origin", "checkout -q --detach",
        ):  # fmt: skip
            author = ("-c", "user.name=a", "-c", "user.email=a@b")
            subprocess.run(["git", "-C", str(self.folder), *author, *line.split()], check=True)
        program = Path(copied(place, tracker).strip("'"))
        (program.parent / "python").symlink_to(sys.executable)
        curl = f'#!/bin/sh\necho curl "$@" >> "{place}/posted"\n'
        for name, script in (("gh", GH.format(place=str(place))), ("curl", curl)):
            (program.parent / name).write_text(script)
            (program.parent / name).chmod(0o755)
        self.variables = environ(place, PATH=f"{program.parent}:/usr/bin:/bin", GITHUB_STEP_SUMMARY=f"{place}/summary")
        self.variables |= {
            "CI_API_V4_URL": "https://gitlab/api/v4", "CI_PROJECT_ID": "7", "CI_MERGE_REQUEST_IID": "41",
            "TRACKER_GITLAB_TOKEN": "a token", "GITHUB_REPOSITORY": "team/model", "GITHUB_HEAD_REF": "fix",
            "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "fix", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_DEFAULT_BRANCH": "main", "LABEL": label, "PUSH": "2",
        }  # fmt: skip
        del self.variables["TRACKER_VERSION"], self.variables["TRACKER_WORKLOAD"]

    def push(self, label: str, tag: str) -> None:
        """Push again: the job leaves samples of `label` now, and the commit is called `tag`."""
        self.variables |= {"LABEL": label, "PUSH": str(int(self.variables["PUSH"]) + 1)}
        for path in (self.folder / "prof").iterdir():
            path.unlink()
        for line in (f"commit -q --allow-empty -m {tag}", f"tag {tag} -m {tag}"):
            author = ("-c", "user.name=a", "-c", "user.email=a@b")
            subprocess.run(["git", "-C", str(self.folder), *author, *line.split()], check=True)

    def store(self):
        return open_store(str(self.place / "jobs.db"))

    def run(self, steps: list[Step]) -> tuple[int, str]:
        """The exit code of the job, which is that of the first step that fails, and what it printed."""
        code, printed = 0, ""
        for step in steps:
            if code and not step.always:
                continue
            done = subprocess.run(
                [*step.shell, "-c", step.lines], cwd=self.folder, env=self.variables | step.variables,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert "not found" not in done.stderr
            assert not (step.always and done.returncode), done.stderr
            code, printed = code or done.returncode, printed + done.stdout
        return code, printed


def again(folder: Path) -> list[Path]:
    """The samples of v01 as if they had been measured before: the same numbers, at another time."""
    folder.mkdir()
    made = []
    for path in sorted((SAMPLES / "v01").iterdir()):
        made.append(folder / path.name)
        text = gzip.decompress(path.read_bytes()).replace(b'Nanoseconds": 179', b'Nanoseconds": 178')
        made[-1].write_bytes(gzip.compress(text))
    return made


JOBS = pytest.mark.parametrize("job", [github, slow(gitlab)])


@pytest.mark.slow
@JOBS
def test_a_ci_job_keeps_the_profiles_of_a_push_as_the_version_that_git_describes(tmp_path, copied_tracker, job):
    checkout = Checkout(tmp_path, copied_tracker)
    queued = beside(trace(tmp_path / "earlier"), version="v4", workload="small_gpt")
    profile = str(queued).removesuffix(".tracker.json")
    spool.add(places.folder(checkout.variables), {"profile": profile}, now_ns=1)
    code, _ = checkout.run(job()[0])
    assert code == {github: 0, gitlab: 4}[job]  # nothing to judge it by; GitLab is told that 4 is no failure
    with checkout.store() as store:
        found = queries.versions_with_branches(store, "small_gpt").rows("version", "branch")
        assert sorted(found) == [("v4", ""), ("v5", {github: "pull/41", gitlab: "merge/41"}[job])]
        assert len(queries.runs(store).frame) == 4


@pytest.mark.parametrize(
    ("job", "now", "ends"), [(github, "v08", 1), slow((github, "v01", 0)), slow((gitlab, "v08", 1))]
)
def test_the_gate_ends_the_job_and_says_why_where_people_look(tmp_path, copied_tracker, job, now, ends):
    """v08 writes its GELU out by hand, which takes longer than it did in v01."""
    checkout = Checkout(tmp_path, copied_tracker, now)
    with checkout.store() as store:
        ingest(store, again(tmp_path / "before"), version="v4", workload="small_gpt")
    code, printed = checkout.run(job()[0])
    assert code == ends
    comment = (checkout.folder / "comment.md").read_text()
    gate = ElementTree.parse(checkout.folder / "gate.xml").getroot()
    assert (comment.count("REGRESSED") > 0, bool(gate.findall(".//failure"))) == (ends == 1, ends == 1)
    posted = (tmp_path / "posted").read_text()
    if job is github:
        assert posted.splitlines()[1:] == ["gh pr comment 41 --body-file marked.md"]
        assert (checkout.folder / "marked.md").read_text() == f"<!-- tracker: profile -->\n{comment}"
        assert (tmp_path / "summary").read_text() == comment
        assert ("::error " in printed) == (ends == 1)
    else:
        assert posted == (
            "curl --fail --silent --show-error --header PRIVATE-TOKEN: a token --data-urlencode body@comment.md "
            "https://gitlab/api/v4/projects/7/merge_requests/41/notes\n"
        )


@pytest.mark.slow
@JOBS
def test_each_push_of_a_slow_pull_request_fails_until_one_is_mended(tmp_path, copied_tracker, job):
    """v4 of main is as fast as v01: what fix wrote by hand makes v5 and v6 as slow as v08, and v7 is without it."""
    checkout = Checkout(tmp_path, copied_tracker, "v08")
    with checkout.store() as store:
        ingest(store, again(tmp_path / "before"), version="v4", workload="small_gpt")
    codes = [checkout.run(job()[0])[0]]
    for label, tag in (("v08", "v6"), ("v01", "v7")):
        checkout.push(label, tag)
        codes.append(checkout.run(job()[0])[0])
    assert codes == [1, 1, 0]
    with checkout.store() as store:
        found = queries.versions_with_branches(store, "small_gpt").rows("version", "branch")
        branch = {github: "pull/41", gitlab: "merge/41"}[job]
        assert list(found) == [("v4", ""), ("v5", branch), ("v6", branch), ("v7", branch)]


@pytest.mark.slow
def test_a_further_push_changes_the_comment_of_the_one_before_and_no_other(tmp_path, copied_tracker):
    checkout = Checkout(tmp_path, copied_tracker)
    with checkout.store() as store:
        ingest(store, again(tmp_path / "before"), version="v4", workload="small_gpt")
    comments = [("someone", f"{MARK}\nmine", 3), (BOT, "coverage", 4), (BOT, f"{MARK}\nold", 5), (BOT, "lint", 6)]
    said = [{"user": {"login": who}, "body": body, "id": number} for who, body, number in comments]
    (tmp_path / "comments").write_text(json.dumps(said))
    assert checkout.run(github()[0])[0] == 0
    asked, changed = (tmp_path / "posted").read_text().splitlines()
    assert asked.startswith("gh api --paginate repos/team/model/issues/41/comments --jq ")
    assert changed == ("gh api --silent --method PATCH repos/team/model/issues/comments/5 --field body=@marked.md")


@pytest.mark.slow
def test_a_job_that_cannot_judge_fails_with_2(tmp_path, copied_tracker):
    checkout = Checkout(tmp_path, copied_tracker)
    checkout.variables["TRACKER_DB"] = str(tmp_path / "no folder" / "jobs.db")
    steps = [step for step in github()[0] if not step.always]
    assert checkout.run(steps)[0] == 2


@JOBS
def test_a_ci_job_keeps_its_spool_out_of_the_checkout(job):
    _, variables = job()
    assert variables["TRACKER_SPOOL"].startswith(("/builds/code/../", "/var/"))


BUILD = """\
import os
os.makedirs("prof", exist_ok=True)
run = 1 + len(os.listdir("prof"))
with open(f"prof/{run}.log", "w") as log:
    print("run", run, file=log)
    for step in range(1, 11):
        print(f"iter {step}: loss 2.0, time {STEP_MS + run % 3}.00ms", file=log)
"""
"""A job with made times: its runs differ by 1 or 2 of 10,000."""


class Builds(Checkout):
    """A checkout of a pull request whose job takes `step_ms` a step, and that of main, where it left, 10 s. Since then
    main became much slower.
    """

    def __init__(self, place: Path, tracker: list[str], step_ms: int) -> None:
        super().__init__(place, tracker)
        self.git("checkout -q main")
        self.commit(10_000)
        self.git("checkout -q -b slower")
        self.commit(step_ms)
        self.git("checkout -q main")
        self.commit(15_000)
        for words in ("push -q origin main", "fetch -q origin", "checkout -q --detach slower", "branch -D main"):
            self.git(words)
        self.variables["TRACKER_CACHE"] = str(place / "cache")

    def git(self, words: str) -> None:
        author = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", str(self.folder), *author, *words.split()], check=True)

    def commit(self, step_ms: int) -> None:
        (self.folder / "train.py").write_text(f"STEP_MS = {step_ms}\n{BUILD}")
        self.git("add train.py")
        self.git("commit -q -m build")

    def play(self, job) -> tuple[int, str]:
        """Run the job `ab`, with its cache in the folder of the test."""
        steps, _ = job("ab", "ab.html")
        for step in steps:
            step.variables.pop("TRACKER_CACHE", None)
        return self.run(steps)


@pytest.mark.parametrize(
    ("job", "step_ms", "ends"), [(github, 11_000, 1), slow((github, 10_004, 0)), slow((gitlab, 11_000, 1))]
)
def test_the_ab_of_a_pull_request_fails_where_it_is_slower(tmp_path, copied_tracker, job, step_ms, ends):
    builds = Builds(tmp_path, copied_tracker, step_ms)
    code, printed = builds.play(job)
    assert code == ends
    says = "Candidate is 10.0 % slower" if ends else "No difference of 5 % or more"
    comment = (builds.folder / "comment.md").read_text()
    assert says in printed
    assert comment.startswith(f"### {says}")
    assert says in (builds.folder / "ab.html").read_text()
    assert not list((tmp_path / "cache").glob("experiments/E-*/*/*/.git"))
    posted = (tmp_path / "posted").read_text()
    if job is github:
        assert posted.splitlines()[1:] == ["gh pr comment 41 --body-file marked.md"]
        assert (builds.folder / "marked.md").read_text() == f"<!-- tracker: profile ab -->\n{comment}"
        assert (tmp_path / "summary").read_text() == comment
    else:
        assert "--data-urlencode body@comment.md" in posted
    with builds.store() as store:
        assert not queries.runs(store).frame.to_dict("records")


@pytest.mark.parametrize(("job", "ends"), [(github, 0), (gitlab, 4)])
def test_an_ab_that_decides_nothing_is_seen_and_fails_no_job(tmp_path, copied_tracker, job, ends):
    builds = Builds(tmp_path, copied_tracker, 11_000)
    undecided = "echo 'E-3: v4 -> v5; small_gpt, host; seed 7'; exit 4"
    Path(copied(tmp_path, copied_tracker).strip("'")).write_text(
        f'#!/bin/sh\ncase "$1" in ab) {undecided};; *) echo "### Not decided by $3";; esac\n'
    )
    code, printed = builds.play(job)
    # GitLab is told that 4 is no failure
    assert code == ends
    assert (builds.folder / "comment.md").read_text() == "### Not decided by E-3\n"
    assert (tmp_path / "posted").exists()
    assert ("::warning title=tracker ab::Not decided" in printed) == (job is github)


def test_an_ab_that_cannot_run_fails_with_2_and_comments_nothing(tmp_path, copied_tracker):
    builds = Builds(tmp_path, copied_tracker, 11_000)
    builds.variables["TRACKER_DB"] = str(tmp_path / "no folder" / "jobs.db")
    assert builds.play(github)[0] == 2
    assert not (tmp_path / "posted").exists()


def test_both_jobs_comment_in_the_same_way():
    profile, ab = (job["steps"] for job in yaml.safe_load((CI / "github.yml").read_text())["jobs"].values())
    (first,), (second,) = ([step["run"] for step in own if step.get("name") == "comment"] for own in (profile, ab))
    assert first == second


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
    spool.add(places.folder(environ(tmp_path)), {"profile": str(profile)}, now_ns=1)
    assert epilog(tmp_path, real_tracker(tmp_path).strip("'"), SLURM_JOB_USER="somebody") == 0
    until(lambda: (tmp_path / "spool").exists() and not spool.entries(places.folder(environ(tmp_path))))
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
