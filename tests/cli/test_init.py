"""`tracker init`: a settings file that is read afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from tests.cli.support import WORKLOAD
from tracker.config.entries import read


@pytest.fixture
def answers(monkeypatch):
    """Sets the answers of a user at a terminal; "" takes the default. `asked` has the questions."""
    asked = []

    def given(*texts):
        left = list(texts)

        def prompt(question, default="", **_):
            asked.append(question)
            return left.pop(0) or default

        monkeypatch.setattr(typer, "prompt", prompt)
        monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
        return asked

    return given


def test_yes_writes_a_file_of_comments_and_asks_nothing(tracker, tmp_path):
    done = tracker("init", "--yes")
    path = tmp_path / "xdg_config_home" / "tracker" / "tracker.toml"
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{path} written.\nNext:\n  tracker ingest PATH --version VERSION --workload WORKLOAD\n"
    lines = path.read_text().splitlines()
    assert all(line.startswith("#") or not line for line in lines)
    uncommented = [line[2:] for line in lines if line.startswith("# ") and (" = " in line or line[2:].startswith("["))]
    path.write_text("\n".join(uncommented))
    assert read(path).workload == "resnet50", "the examples in it are valid"


def test_answers_become_entries_and_later_defaults(tracker, db, tmp_path, answers, monkeypatch):
    asked = answers(str(db), "nightly", str(tmp_path / "profiles"), "MY_CHANNEL")
    file = tmp_path / "own.toml"
    done = tracker("init", file)
    assert done.out.startswith(f"{file} written. It is used with TRACKER_CONFIG={file}.")
    assert len(asked) == 4, "with one workload in the database, nothing asks for it"
    entries = read(file)
    assert (entries.database, entries.workload, entries.version) == (str(db), WORKLOAD, "nightly")
    assert [folder.path for folder in entries.watch.folders] == [str(tmp_path / "profiles")]
    assert [channel.url_env for channel in entries.alerts.channels] == ["MY_CHANNEL"]
    monkeypatch.setenv("TRACKER_CONFIG", str(file))
    assert tracker("history").code == 0


def test_at_most_five_questions_are_asked(tracker, tmp_path, answers):
    asked = answers(str(tmp_path / "new.db"), "gpt", "git", "", "")
    assert tracker("init", tmp_path / "own.toml").code == 0
    assert len(asked) == 5
    assert (read(tmp_path / "own.toml").version, read(tmp_path / "own.toml").alerts.channels) == ("git", ())


def test_an_address_is_not_taken_as_a_channel(tracker, tmp_path, answers):
    answers("", "", "", "", "slack://secret/a")
    done = tracker("init", tmp_path / "own.toml")
    assert (done.code, done.err.count("\n"), "secret/a" in done.err) == (2, 1, False)
    assert not (tmp_path / "own.toml").exists()


@pytest.mark.parametrize("name", ["there.toml", "link.toml", "folder", "gone/own.toml", "x" * 300, "a\0b"])
def test_what_cannot_be_written_is_one_line(tracker, tmp_path, name):
    (tmp_path / "there.toml").write_text("workload = 'mine'\n")
    (tmp_path / "link.toml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    before = sorted(path.name for path in tmp_path.iterdir())
    done = tracker("init", "--yes", f"{tmp_path}/{name}")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert (tmp_path / "there.toml").read_text() == "workload = 'mine'\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_script_must_say_yes(copied_tracker, tmp_path):
    words = [*copied_tracker, "init", tmp_path / "own.toml"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2, "tracker: tracker init asks questions, and stdin is not a terminal; add --yes\n"
    )  # fmt: skip


def test_a_named_file_that_is_missing_is_written(tracker, tmp_path, monkeypatch):
    """The error about a missing settings file proposes `tracker init`, which has to work then."""
    path = tmp_path / "folder" / "new.toml"
    monkeypatch.setenv("TRACKER_CONFIG", str(path))
    assert tracker("runs").err.endswith("correct TRACKER_CONFIG, or create the file with tracker init\n")
    done = tracker("init", "--yes")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{path} written.\nNext:")
    assert tracker("runs", "--db", tmp_path / "no.db").err.count("new.toml") == 0


def test_a_missing_file_keeps_no_question_back(tracker, db, tmp_path, answers, monkeypatch):
    """The database that is answered is looked into for its workload, though no settings name it."""
    monkeypatch.setenv("TRACKER_CONFIG", str(tmp_path / "new.toml"))
    asked = answers(str(db), "", "", "")
    assert tracker("init").code == 0
    assert (len(asked), read(tmp_path / "new.toml").workload) == (4, WORKLOAD)


def test_another_file_is_written_while_the_named_one_is_wrong(tracker, tmp_path, monkeypatch):
    (tmp_path / "wrong.toml").write_text("nonsense = 3\n")
    monkeypatch.setenv("TRACKER_CONFIG", str(tmp_path / "wrong.toml"))
    done = tracker("init", "--yes")
    assert (done.code, done.err.count("exists already; edit it, or give another file")) == (2, 1)
    assert tracker("init", "--yes", tmp_path / "right.toml").code == 0
    assert read(tmp_path / "right.toml").database is None


def test_only_a_missing_file_is_proposed_to_be_created(tracker, tmp_path, monkeypatch):
    """`tracker init` would refuse to write over a folder."""
    monkeypatch.setenv("TRACKER_CONFIG", str(tmp_path))
    assert tracker("runs").err == (
        f"tracker: {tmp_path}: the settings file cannot be read (Not a file); correct TRACKER_CONFIG, or make that "
        "file readable\n"
    )


@pytest.mark.parametrize("name", ["missing.toml", "wrong.toml"])
def test_what_reads_no_settings_works_without_them(tracker, tmp_path, monkeypatch, name):
    """The demo brings a database of its own; help and version are of the program."""
    (tmp_path / "wrong.toml").write_text("nonsense = 3\n")
    monkeypatch.setenv("TRACKER_CONFIG", str(tmp_path / name))
    for words in (["--version"], ["--help"], ["init", "--help"], ["ingest", "--help"]):
        assert tracker(*words).code == 0, words
    done = tracker("demo", "--keep", tmp_path / "demo.db")
    assert (done.code, "v01" in done.out) == (0, True), done.err
    assert tracker("runs", "--db", tmp_path / "demo.db").code == 2
