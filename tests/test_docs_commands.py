"""Every command of README.md and docs/ runs: a page's in their order, on a copy of the database that the README leaves.

They are the lines of indented blocks, those of text blocks that call a program, and what the prose has with more than
the name of a command. Console blocks are run by scripts/write_docs.py, the jobs of CI systems and the epilog of Slurm
by tests/hooks/test_ci_examples.py.
"""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.hooks.jobs import copied, environ
from tests.notify.server import serving
from tests.test_docs import COMMANDS, FENCE, PAGES, ROOT, blocks_of, script, text_of

WRITE_DOCS = script("write_docs")
ENDLESS = re.compile(r"tracker (page|watch$)")
NAMED_ONLY = {"CHANGELOG.md", "docs/python.md", "docs/contributing.md", "docs/design.md", *WRITE_DOCS.pages()}
"""Pages that name commands and do not call them, or only scripts of a clone."""
RUN_ELSEWHERE = {"docs/team.md"}
"""Pages whose commands are one path: tests/test_team.py."""
BEFORE = {
    "docs/ab.md": "python -m tests.two_builds",
    "docs/compare.md": "python -m tests.two_builds",
    "docs/cluster.md": "tracker ingest tests/data/cluster --version v1 --workload cluster",
    "docs/ci.md": "tracker ingest b.json --version v4 --workload gpt",
    "docs/every-morning.md": "tracker versions pin v01",
    "docs/statistics.md": "tracker versions pin v01",
}
"""What a page takes for granted: two builds, a run of four ranks, a pinned version."""
STANDS_FOR = {
    r"\bRUN\b": "run:6", r"\bVERSION\b": "run:1 run:2 run:3 run:4 run:5 run:6", r"\b(ID|12)\b": "4", r"\bN\b": "3",
    r"v1\.9\.1\b": "v08", r"v1\.9\b": "v01", r"\bv1 v2\b": "v01 v08", r"\b([IE])-3\b": r"\1-1", r"run:(41|57)": "run:7",
    r"\bPROFILE\b": "a.json", r"\bPATH\b": "profiles/gpt/v5/damaged.json", r"\bREPOSITORY\b": ".",
    r"/var/lib/node_exporter/": "", r"--socket FILE\b": "--socket page.socket", r" /token$": " token",
    r"tracker page(?! --socket)( --listen \S+)?": "tracker page --listen 127.0.0.1:0",
    r"\bpostgresql://tracker@db.example/tracker": "$POSTGRES", r"\btcp://head:8786": "$DASK",
    r"\bold\.log\b": "tests/data/training_log/A100_LOG/toy_bs8_fp32_DP_N1C1_log/20230808_69edec3bb7",
    r"\b(?:new|train)\.log\b": "tests/data/training_log/A100_LOG/toy_bs8_fp32_DP_N1C1_log/20230908_0123456789",
}  # fmt: skip
"""What there is in place of what a page names, by pattern."""
PROFILES = {
    "old.pt.trace.json": "v01", "new.pt.trace.json": "v08", "a.json": "v01", "b.json": "v08", "run1.json.gz": "v08",
    "profiles/gpt/v5/run1.json.gz": "v08", "archive/run1.json.gz": "v01", "trained.json": "v01",
    "prof_of_fix/run1.json.gz": "v08",
}  # fmt: skip
"""Profiles that pages name, and of which version they are."""
PROGRAMS = {
    "docker": 'while [ "$1" != IMAGE ]; do shift; done; shift; exec "$@"',
    "jq": "exec python -m json.tool",
    "nsys": "exit 0",
    "pip": "exit 0",
    "python": f'exec {shlex.quote(sys.executable)} "$@"',
    "ssh": '[ "$1" != -L ] || shift 2; shift; exec sh -c "$*"',
}
"""What stands for programs that a page calls."""


def commands_of(page: Path) -> list[str]:
    """The commands on a page, each once."""
    text = FENCE.sub(lambda found: found[2] if found[1] in ("text", "ini") else "", text_of(page))
    commands, before, is_block = [], "", False
    for line in text.replace("\\\n", "").splitlines():
        is_block = line.startswith("    ") and (is_block or not before)
        called = re.match(r"(?:\$ |ExecStart=\S*/)?((?:tracker|docker|ssh) .*)", line)
        spans = re.findall(r"`(tracker [^`]+)`", line)
        if is_block or called:
            commands.append((called[1] if called else line).split("  #")[0].strip())
        else:
            commands += [span for span in spans if tuple(span.split()) not in COMMANDS]
        before = line
    return [command for command in dict.fromkeys(commands) if not command.startswith("sh scripts/")]


CALLING = {name: lines for page in PAGES
           if (name := page.relative_to(ROOT).as_posix()) not in NAMED_ONLY | RUN_ELSEWHERE
           and (lines := commands_of(page))}  # fmt: skip
SHOWN = {f"tracker ab {line}": text for page in PAGES for block in blocks_of(page, "text")
         for line, text in re.findall(r"\A\$ tracker ab (.*)\n((?:.|\n)*)", block)}  # fmt: skip
"""What a page shows of what `tracker ab` prints: from its begin on."""
OF_ONE_RUN = r"seed \d+|, [\w.-]+(?=, median of)"
"""What differs between two experiments on two machines."""
ENGLISH = [name for name in CALLING if "/zh/" not in name]


@pytest.fixture
def machine(tmp_path, copied_tracker):
    """A folder of training code with the profiles that pages name, its variables, and other programs on its PATH."""
    folder, programs = tmp_path / "code", Path(copied(tmp_path, copied_tracker).strip("'")).parent
    for number, (name, version) in enumerate(PROFILES.items(), start=1):  # none is in the database already
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        sample = ROOT / "tracker" / "samples" / version / "run1.pt.trace.json.gz"
        # of another start: a copy would be the same capture
        base = b'"baseTimeNanoseconds": 179085'
        text = gzip.decompress(sample.read_bytes()).replace(base + b"7026", base + b"%04d" % (1000 + number))
        (folder / name).write_bytes(text if name.endswith(".json") else gzip.compress(text, 1))
    (folder / "train.py").write_text("import os\nos.makedirs('prof')\nos.rename('trained.json', 'prof/run1.json')\n")
    (folder / "token").write_text("0123456789abcdef" * 2)
    (folder / "token").chmod(0o600)
    for name in ("tracker", "tests"):
        (folder / name).symlink_to(ROOT / name)
    for name, lines in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{lines}\n")
        (programs / name).chmod(0o755)
    author = "-c user.name=a -c user.email=a@b"
    commits = (f"git {author} commit -qm {tag} --allow-empty && git tag {tag}" for tag in ("v01", "v08", "v5"))
    subprocess.run(["sh", "-ec", "\n".join(["git init -q", *commits])], cwd=folder, check=True)
    settings = [block for page in ("every-morning", "ci") for block in blocks_of(ROOT / "docs" / f"{page}.md", "toml")]
    watched = f'[[watch.folders]]\npath = "{folder}/profiles"\nlayout = "{{workload}}/{{version}}/*"'
    text = "\n".join([*settings, watched, '[watch]\nsettled = "1s"'])
    (tmp_path / "tracker.toml").write_text(text)
    variables = environ(
        tmp_path, PATH=f"{programs}:/usr/bin:/bin", PYTHONPATH=str(ROOT), PYTHONSAFEPATH="1", TRACKER_DB="tracker.db",
        TRACKER_CONFIG=str(tmp_path / "tracker.toml"), SHELL="/bin/bash",
    )  # fmt: skip
    del variables["TRACKER_VERSION"], variables["TRACKER_WORKLOAD"]
    with ExitStack() as stack:
        shutil.copy(stack.enter_context(WRITE_DOCS.start_database()), folder / "tracker.db")
        variables["TRACKER_SLACK_URL"] = f"json://{stack.enter_context(serving()).host}/"
        yield SimpleNamespace(folder=folder, variables=variables, stack=stack)


def ran(machine, line):
    """What is wrong with a command, if something is."""
    if line.startswith("export "):
        name, _, value = line.removeprefix("export ").partition("=")
        machine.variables[name] = machine.variables.get(value.removeprefix("$"), value)
        return ""
    is_endless, printed = ENDLESS.search(line), ""
    stays_the_parent = f"{line}\nexit $?"  # --install-completion asks which shell called it
    with subprocess.Popen(
        ["bash", "-c", stays_the_parent], cwd=machine.folder, env=machine.variables, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        if is_endless:
            printed = process.stdout.readline()
            os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does
        try:
            printed += process.communicate(timeout=30)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    if line in SHOWN and not re.sub(OF_ONE_RUN, "", printed).startswith(re.sub(OF_ONE_RUN, "", SHOWN[line])):
        return f"$ {line} prints something else than the page shows\n{printed}"
    if is_endless:
        allowed = (0, 130)
    elif "--fail-on" in line:
        allowed = (0, 1, 3, 4)
    else:
        # the candidate is slower
        allowed = (0, 1) if line.startswith("tracker ab") else (0,)
    return "" if process.returncode in allowed else f"$ {line}: exit {process.returncode}\n{printed}"


@pytest.mark.parametrize("name", ENGLISH)
def test_every_command_of_a_page_runs(machine, name, request):
    lines = "\n".join(CALLING[name])
    for pattern, words in STANDS_FOR.items():
        lines = re.sub(pattern, words, lines, flags=re.MULTILINE)
    if "$POSTGRES" in lines:
        machine.variables["POSTGRES"] = request.getfixturevalue("postgres_server").empty_database()
    if "$DASK" in lines:
        from tests.cli.test_dask import running

        machine.variables["DASK"] = machine.stack.enter_context(running(machine.folder, workers=1))
    lines = [BEFORE.get(name, ":"), *lines.splitlines()]
    assert [wrong for line in lines if (wrong := ran(machine, line))] == []


def test_translations_have_no_commands_of_their_own():
    for name in CALLING.keys() - ENGLISH:
        original = name.replace("docs/zh/README", "README").replace("/zh", "")
        assert set(CALLING[name]) <= set(CALLING[original]), name
