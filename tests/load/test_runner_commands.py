"""No name acts on a runner of CI: GitHub's takes `::` at the start of a line, and `##[` anywhere, for commands."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.conftest import tracker  # noqa: F401 the fixture
from tests.readers import traces
from tracker.reports.text import wrapped
from tracker.units import printable

NAMES = ("::error::x", " ::add-mask::x", "##[error]x", "word ::error::x ##[group]y", "\u3000::stop-commands::x")
ACTS = re.compile(r"^\s*::|##\[", re.MULTILINE)
COMMANDS = (
    "board", "runs", "versions", "findings", "status", "log", "show latest", "show latest --details",
    "show run:1 --calls X", "history step", "history X", "diff A B", "diff A B --details", "diff A B --by op",
    "diff A B --fail-on new", "advise latest", "cluster latest", "explain 1", "calibrate A", "doctor FOLDER",
    "doctor --stored", "show X", "ingest FOLDER --version X --workload X", "ingest X", "diff X X", "runs --search X",
    "runs tag 1 --tag a=X", "runs edit 1 --note X", "ack X", "note 1 --reason X", "versions pin X", "thresholds",
    "thresholds set min_ratio=10% --op X --reason X", "pack FOLDER/bad.json -o FOLDER/x.pack", "db check",
    "notify --list", "watch --once", "X", "show --X", "matrix A B", "cut latest -o X",
)  # fmt: skip


def fill(tracker, folder, db):  # noqa: F811
    """Two versions of three runs each, every name being an op, a module, a kernel, a file, a note or a workload."""
    for version, factor in zip(NAMES[:2], (1, 2), strict=True):
        for run in range(3):
            events = []
            for number, name in enumerate(NAMES):
                at = 1000 * number
                events += [
                    traces.op(f"nn.Module: {name}", at, 900, cat="python_function"),
                    traces.op(name, at + 10, 500),
                    traces.launch(number + 1, at + 20),
                    traces.kernel(name, at + 100, 100 * factor + run, number + 1),
                ]
            path = folder / f"{factor}-{run}"
            path.mkdir(parents=True)
            path = traces.write(path, events, name=f"{NAMES[0]}{run}.pt.trace.json")
            words = ("--version", version, "--workload", NAMES[2], "--note", NAMES[3], "--db", db)
            assert tracker("ingest", path, *words).code == 0
    (folder / f"{NAMES[2]}.pt.trace.json").write_text('{"traceEvents": [')
    (folder / "bad.json").write_text("[")


@pytest.fixture
def filled(tracker, tmp_path):  # noqa: F811
    fill(tracker, tmp_path / NAMES[0], tmp_path / "x.db")
    return tmp_path / "x.db"


def test_no_command_prints_a_command_of_a_runner(tracker, filled, tmp_path, monkeypatch):  # noqa: F811
    places = {"A": NAMES[0], "B": NAMES[1], "FOLDER": str(tmp_path / NAMES[0])}
    acting = []
    for line in COMMANDS:
        for name in NAMES if "X" in line else NAMES[:1]:
            for width in ("60", "120"):
                monkeypatch.setenv("COLUMNS", width)
                words = [
                    places.get(word, word).replace("X", name).replace("FOLDER", places["FOLDER"])
                    for word in line.split()
                ]
                done = tracker(*words, "--db", filled)
                acting += [(line, text) for text in (done.out + "\n" + done.err).split("\n") if ACTS.search(text)]
    assert acting == []


@pytest.mark.parametrize("form", ["text", "markdown", "csv", "json", "html", "junit", "prometheus"])
@pytest.mark.parametrize("command", ["diff A B", "show latest", "history step", "board", "findings", "runs"])
def test_no_format_but_that_of_github_has_one(tracker, filled, form, command):  # noqa: F811
    words = [{"A": NAMES[0], "B": NAMES[1]}.get(word, word) for word in command.split()]
    done = tracker(*words, "--format", form, "--db", filled)
    assert not [line for line in done.out.split("\n") if ACTS.search(line)]


def test_json_has_the_names_as_they_are(tracker, filled):  # noqa: F811
    shown = tracker("show", "latest", "--format", "json", "--db", filled).out
    assert {row["name"] for row in json.loads(shown)["ops"]} >= set(NAMES)


def test_a_cell_of_csv_has_a_quote_before_a_command(tracker, filled):  # noqa: F811
    out = tracker("versions", "--format", "csv", "--db", filled).out
    assert f"'{NAMES[0]}" in out


def test_annotations_are_commands_of_tracker_alone(tracker, filled):  # noqa: F811
    done = tracker("diff", NAMES[0], NAMES[1], "--format", "github", "--fail-on", "new", "--db", filled)
    lines = done.out.splitlines()
    assert lines
    assert all(re.match("::(error|warning|notice) title=[^:,]*::", line) for line in lines)
    assert "##[" not in done.out


def test_a_long_name_is_not_cut_into_a_command():
    cut = [
        line
        for length in range(40)
        for name in (f"{'x' * length}::error::x", f"{'x' * length}:::::x", f"a word {'x' * length} ::y")
        for line in wrapped(printable(name), 20)
    ]
    assert [line for line in cut if ACTS.search(line)] == []
    assert max(map(len, cut)) == 20
