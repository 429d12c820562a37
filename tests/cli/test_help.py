"""The help: every command and option is explained, in groups, on two screens, and starts fast."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tracker import __version__, readers, reports
from tracker.cli import program, report_options
from tracker.cli.commands import COMMANDS, SUBCOMMANDS, WITHOUT_DATABASE
from tracker.cli.diff import DiffBy
from tracker.readers.torch_profiler import native
from tracker.results import MATRIX_ROWS, SECTIONS, TREES
from tracker.results.options import split

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def walk(command, path=("tracker",)):
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "commands") else ():
        yield from walk(command.commands[name], (*path, name))


WALKED = list(walk(program()))
OPTIONS = [
    (path, parameter)
    for path, command in WALKED
    for parameter in command.params
    if parameter.param_type_name == "option" and "completion" not in parameter.name
]


@pytest.mark.parametrize("path", [path for path, _ in WALKED], ids=" ".join)
def test_every_command_has_help_with_an_example(tracker, path):
    done = tracker(*path[1:], "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: tracker")
    assert "Example:" in done.out or path == ("tracker",)
    assert dict(WALKED)[path].help.split("\n\n")[0].endswith((".", ":")), "a sentence comes first"
    assert path == ("tracker",) or f"## {' '.join(path)}\n" in PAGE.read_text(), "run scripts/write_docs.py"


@pytest.mark.parametrize("found", OPTIONS, ids=lambda found: f"{' '.join(found[0])} {found[1].opts[0]}")
def test_every_option_has_help_and_a_default(found):
    path, option = found
    assert option.help, f"{' '.join(path)} {option.opts}: no help"
    is_flag = option.help and getattr(option, "is_flag", False)
    with_words = {"--module", "--op", "--kind", "--group", "--top", "--retry"}
    says_default = re.search(r"\b[Dd]efault: |instead of a key", option.help) or option.opts[0] in with_words
    assert option.required or is_flag or says_default, f"{' '.join(path)} {option.opts}: no default"


def test_commands_come_in_groups(tracker):
    out = tracker("--help").out
    titles = [line.rstrip(":") for line in out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options", "Start", "Follow versions", "Find causes", "Automate", "Manage"]
    names = [path[1] for path, _ in WALKED if len(path) == 2]
    assert names == [name for group in COMMANDS.values() for name in group]
    below = {name: tuple(path[2] for path, _ in WALKED if len(path) == 3 and path[1] == name) for name in names}
    assert {name: found for name, found in below.items() if found} == SUBCOMMANDS


def test_help_of_diff_fits_two_screens_in_groups(tracker, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    lines = tracker("diff", "--help").out.splitlines()
    assert len(lines) <= 96 and max(map(len, lines)) <= 100
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Arguments:", "Sides:", "Rows:", "Output:", "Reading files:", "Other:"]


def test_commands_without_a_database_are_listed():
    takes = {" ".join(path[1:]) for path, command in WALKED for each in command.params if "--db" in each.opts}
    every = {" ".join(path[1:]) for path, _ in WALKED if len(path) > 1}
    assert every - takes == set(WITHOUT_DATABASE)


def test_words_of_options_are_those_of_the_rooms(tracker):
    assert tuple(sorted(report_options.FORMATS)) == reports.NAMES
    assert {*split("by", DiffBy).option.words} == {*TREES, *MATRIX_ROWS}
    assert ", ".join(SECTIONS) in " ".join(tracker("diff", "--help").out.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("diff a b --by m", ["module"]),
        ("diff a b --only overall,op", ["overall,operator"]),
        ("findings --state taken", ["taken-back"]),
        ("history --kind op", ["op_name", "op"]),
        ("runs --format c", ["csv"]),
        ("versions o", ["order"]),
    ],
)
def test_shells_complete_options_and_words(copied_tracker, words, offered):
    environment = {
        **os.environ, "_TRACKER_COMPLETE": "complete_bash", "COMP_WORDS": f"tracker {words}",
        "COMP_CWORD": str(len(words.split())),
    }  # fmt: skip
    done = subprocess.run(copied_tracker, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == offered, done.stderr


def test_unknown_input_format_lists_the_known_ones(tracker, trace):
    done = tracker("diff", trace["v01"], trace["v08"], "--input-format", "nonsense")
    assert done.code == 2 and all(name in done.err for name in readers.NAMES)


def test_version_says_how_traces_are_decoded(tracker, monkeypatch):
    for is_built, how in ((True, "compiled"), (False, "not compiled, so slower")):
        monkeypatch.setattr(native, "is_built", lambda is_built=is_built: is_built)
        assert tracker("--version").out == f"tracker {__version__}; decoder of PyTorch traces: {how}\n"


@pytest.mark.newest  # before 8.2 click shows the help on stdout where there is no word
def test_without_arguments_the_help_is_shown_and_no_option_is_made(tracker):
    assert tracker("-h").out.strip() == tracker("--help").out.strip() == tracker().err.strip()
    assert {len(command.params) for command in program(["--help"]).commands.values()} == {0}


def test_help_starts_fast():
    """Hardly slower than to import typer, the least processor time of five tries each: seconds would measure the
    machine. With NumPy it would take 1.7 times as long and more.
    """

    def seconds(*words):
        # os.times counts in hundredths of a second
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    pairs = [(seconds("-m", "tracker", "--help"), seconds("-c", "import typer")) for _ in range(5)]
    ours, typer = map(min, zip(*pairs, strict=True))
    assert ours < 1.5 * typer + 0.02


def loaded_by(code):
    done = subprocess.run([sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"], check=True,
                          capture_output=True, text=True)  # fmt: skip
    return set(done.stdout.split())


@pytest.mark.newest  # before 0.26 typer imports rich for every help
def test_help_loads_nothing_heavy():
    loaded = {name.partition(".")[0] for name in loaded_by("import tracker.cli")}
    assert not {"pandas", "numpy", "sqlalchemy", "sqlmodel", "alembic", "openpyxl", "rich", "msgspec"} & loaded
    of_a_command = {name.partition(".")[0] for name in loaded_by("from tracker.cli import program; program(['diff'])")}
    assert not {"pandas", "numpy", "sqlalchemy", "openpyxl", "rich", "pydantic"} & of_a_command


def test_a_diff_of_stored_runs_loads_no_reader():
    """They are for files, and take a twentieth of a second."""
    loaded = loaded_by("import tracker.compare, tracker.reports.views.diff, tracker.reports.text")
    assert not [name for name in loaded if name.startswith(("tracker.readers", "tracker.timeline", "tracker.doctor"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", [path[1] for path, _ in WALKED if len(path) == 2])
def test_a_command_made_alone_equals_that_among_all(name):
    def made(of):
        return [
            (path, command.help, [(option.name, option.opts, option.default, option.help) for option in command.params])
            for path, command in walk(of.commands[name], (name,))
        ]

    alone = program([name, "--rank", "0"])
    assert list(alone.commands) == [name]
    assert made(alone) == made(program())
