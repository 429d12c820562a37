import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from tracker import __version__, readers, reports
from tracker.cli import app, app_for
from tracker.cli._options import Format
from tracker.cli.diff import Baseline, Match, Tree
from tracker.cli.history import SeriesKind
from tracker.cli.log import Metric
from tracker.cli.show import By
from tracker.readers.torch_profiler import native
from tracker.results import BASELINES, GRAINS, LOG_METRICS, MATCHES, MATRIX_ROWS, SECTIONS, SERIES_KINDS, TREES

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def walk(command, path=("tracker",)):
    yield path, command
    if hasattr(command, "commands"):
        for name in command.list_commands(None):
            yield from walk(command.commands[name], (*path, name))


COMMANDS = list(walk(typer.main.get_command(app)))
OPTIONS = [
    (path, parameter)
    for path, command in COMMANDS
    for parameter in command.params
    if parameter.param_type_name == "option" and "completion" not in parameter.name and parameter.name != "help"
]


def ids(pair):
    return " ".join(pair[0])


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=" ".join)
def test_every_command_has_help(tracker, path):
    done = tracker(*path[1:], "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage:")


@pytest.mark.parametrize("found", COMMANDS, ids=ids)
def test_every_help_is_a_sentence_and_an_example(found):
    path, command = found
    first = command.help.split("\n\n")[0]
    assert first.endswith((".", ":")), f"{first!r} is no sentence"
    assert "Example:" in command.help or path == ("tracker",)


@pytest.mark.parametrize("found", OPTIONS, ids=lambda found: f"{' '.join(found[0])} {found[1].opts[0]}")
def test_every_option_says_what_it_means_and_its_default(found):
    path, option = found
    assert option.help, f"{' '.join(path)} {option.opts}: no help"
    is_needed = option.required
    shows_default = option.show_default and option.default is not None
    stops = option.name == "version" and path == ("tracker",)
    says_default = re.search(r"\b[Dd]efault: ", option.help) or "limit" in option.name
    assert is_needed or shows_default or says_default or stops, f"{' '.join(path)} {option.opts}: no default"


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS if len(path) > 1], ids=" ".join)
def test_every_command_is_in_the_docs(path):
    assert f"## {' '.join(path)}\n" in PAGE.read_text(encoding="utf-8"), "run scripts/write_docs.py"


def test_commands_come_in_the_order_of_the_work():
    names = [path[1] for path, _ in COMMANDS if len(path) == 2]
    assert names == [
        "demo",
        "doctor",
        "ingest",
        "pack",
        "run",
        "runs",
        "versions",
        "show",
        "diff",
        "history",
        "log",
        "findings",
        "explain",
        "ack",
        "expect",
        "mute",
        "unmute",
        "invalid",
        "calibrate",
        "thresholds",
        "notify",
        "watch",
        "status",
        "prune",
        "db",
    ]


def test_no_short_help_is_cut(tracker):
    for path, command in COMMANDS:
        if hasattr(command, "commands"):
            lines = tracker(*path[1:], "--help").out.split("Commands:")[1]
            assert "..." not in lines, path


def test_choices_are_those_of_the_rooms():
    assert tuple(sorted(Format)) == reports.NAMES
    assert sorted(Match) == sorted(MATCHES)
    assert sorted(By) == sorted((*GRAINS, *TREES))
    assert sorted(Tree) == sorted({*TREES, *MATRIX_ROWS})
    assert sorted(Baseline) == sorted(BASELINES)
    assert sorted(Metric) == sorted(LOG_METRICS)
    assert tuple(SeriesKind) == SERIES_KINDS


def test_help_names_all_sections(tracker):
    assert ", ".join(SECTIONS) in " ".join(tracker("diff", "--help").out.split())


def test_input_formats_are_listed_where_they_are_asked_for(tracker, trace):
    done = tracker("diff", trace["v01"], trace["v08"], "--input-format", "nonsense")
    assert done.code == 2
    assert all(name in done.err for name in readers.NAMES)


def test_version_says_how_traces_are_decoded(tracker, monkeypatch):
    for is_built, how in ((True, "compiled"), (False, "not compiled, so slower")):
        monkeypatch.setattr(native, "is_built", lambda is_built=is_built: is_built)
        assert tracker("--version").out == f"tracker {__version__}; decoder of PyTorch traces: {how}\n"


def test_without_arguments_the_help_is_shown(tracker):
    done = tracker()
    assert "Start here:" in done.out + done.err


def test_a_wrong_option_is_exit_2_and_said_on_stderr(tracker):
    done = tracker("diff", "a", "b", "--nonsense")
    assert (done.code, done.out) == (2, "")
    assert "--nonsense" in done.err


def test_completion_is_offered(tracker):
    assert "--install-completion" in tracker("--help").out


def test_help_starts_fast():
    """Hardly slower than to import typer, the least processor time of five tries each: seconds would measure the
    machine. With NumPy it would take 1.7 times as long and more.
    """

    def seconds(*words):
        before = os.times()
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    pairs = [(seconds("-m", "tracker", "--help"), seconds("-c", "import typer")) for _ in range(5)]
    ours, typer = map(min, zip(*pairs, strict=True))
    assert ours < 1.5 * typer


@pytest.mark.newest  # before 0.26 typer imports rich for every help
def test_help_loads_nothing_heavy():
    code = "import sys, tracker.cli; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"pandas", "numpy", "sqlalchemy", "sqlmodel", "alembic", "openpyxl", "rich", "msgspec"} & set(loaded)


def test_a_diff_of_stored_runs_loads_no_reader():
    """They are for files, and take a twentieth of a second."""
    code = "import sys, tracker.compare, tracker.reports.to_text; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not [name for name in loaded if name.startswith(("tracker.readers", "tracker.timeline", "tracker.doctor"))]


def test_help_makes_no_classes_of_results():
    """They take 10 ms, which the help can do without."""
    code = "import sys, tracker.cli; sys.exit('tracker.results' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", [path[1] for path, _ in COMMANDS if len(path) == 2])
def test_a_command_that_is_put_together_alone_is_the_same_as_among_all(name):
    def told(of):
        return [
            (path, command.help, [(option.name, option.opts, option.default, option.help) for option in command.params])
            for path, command in walk(typer.main.get_command(of).commands[name], (name,))
        ]

    alone = app_for([name, "--rank", "0"])
    assert list(typer.main.get_command(alone).commands) == [name]
    assert told(alone) == told(app)


def test_where_no_command_is_named_all_are_put_together():
    assert app_for([]) is app_for(["dif"]) is app


@pytest.mark.newest  # before 8.2 click shows the help on stdout where there is no word
@pytest.mark.parametrize("word", ["-h", "--help"])
def test_the_help_is_that_of_all_commands_though_it_puts_none_together(tracker, word):
    assert tracker(word).out.strip() == tracker().err.strip(), "without a word, the whole program shows its help"
    assert {len(command.params) for command in typer.main.get_command(app_for([word])).commands.values()} == {0}
