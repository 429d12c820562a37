"""A folder that a group writes into: what one member puts there harms no file of another's."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.hooks.jobs import environ, until
from tracker.hooks import places, spool
from tracker.intake import spooled, take_spooled, waiting

SECRET = "token = 's3cret'\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The spool of this user in a shared root."""
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool").chmod(0o3770)
    path = Path(places.folder(environ(tmp_path)))
    spool.make(str(path))
    return path


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A file that its owner alone may read and write."""
    path = tmp_path / "settings.toml"
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


def is_untouched(path: Path) -> bool:
    return path.read_text() == SECRET and path.stat().st_mode & 0o777 == 0o600


def queued(place: Path) -> Path:
    return Path(spool.add(str(place), {"profile": "/gone"}, now_ns=1))


def test_an_entry_is_rewritten_whatever_lies_where_its_draft_could(place, private):
    entry = queued(place)
    (place / f".{entry.name}.{os.getpid()}").symlink_to(private)
    spooled._rewrite(entry, {"attempts": 1})
    assert is_untouched(private)
    assert not entry.is_symlink()
    assert json.loads(entry.read_text())["attempts"] == 1


def test_not_even_a_name_that_was_guessed_is_written_through(place, private, monkeypatch):
    entry = queued(place)
    monkeypatch.setattr(spool.os, "urandom", bytes)
    guessed = place / f".{'00' * 8}"
    guessed.symlink_to(private)
    with pytest.raises(FileExistsError):
        spooled._rewrite(entry, {"attempts": 1})
    assert is_untouched(private)
    assert guessed.is_symlink(), "what another one made is not taken away either"
    assert json.loads(entry.read_text())["attempts"] == 0


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
@pytest.mark.parametrize("name", [spool.TAKING, spool.DELIVERING])
def test_a_link_in_the_place_of_a_lock_is_no_lock(place, private, link, name):
    getattr(place / name, link)(private)
    with pytest.raises(OSError), spool.locked(str(place), name):
        raise AssertionError("locked")
    assert is_untouched(private)


def test_entries_that_wait_behind_such_a_lock_are_told_of(store, tmp_path, place, private):
    entry = queued(place)
    (place / spool.TAKING).symlink_to(private)
    assert take_spooled(store, tmp_path / "spool", now_ns=2) == []
    assert [one.entry for one in waiting(place)] == [entry]
    assert places.shut(environ(tmp_path)) == [(str(place), "holds a .taking that is no file of its own: remove that")]


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_the_log_of_the_deliverer_is_written_through_no_link(tmp_path, place, private, link):
    getattr(place / "deliverer.log", link)(private)
    with pytest.raises(OSError):
        spool.start(str(place), environ(tmp_path, TRACKER_COMMAND="no-such-tracker"))
    assert is_untouched(private)


def test_a_pipe_in_the_place_of_the_log_holds_up_no_job(tmp_path, place):
    os.mkfifo(place / "deliverer.log")
    with pytest.raises(OSError):
        spool.start(str(place), environ(tmp_path, TRACKER_COMMAND="no-such-tracker"))


def test_the_log_is_for_the_group_to_read(tmp_path, place):
    before = os.umask(0o077)
    try:
        spool.start(str(place), environ(tmp_path, TRACKER_COMMAND="no-such-tracker"))
    finally:
        os.umask(before)
    log = place / "deliverer.log"
    until(lambda: log.exists() and not spool.entries(str(place)))
    assert log.stat().st_mode & 0o777 == 0o660


def test_why_an_entry_was_given_up_is_written_through_no_link(store, tmp_path, place, private):
    entry = queued(place)
    spool.replace(str(entry), {"profile": "/gone", "attempts": 20})
    spool.make(str(place / "failed"))
    reason = place / "failed" / f"{entry.name}.txt"
    reason.symlink_to(private)
    (done,) = take_spooled(store, tmp_path / "spool", now_ns=2 * 24 * 3600 * 10**9)
    assert done.given_up
    assert is_untouched(private)
    assert reason.read_text() == "reading it ended tracker 20 times\n"


def test_a_folder_that_was_swapped_for_a_link_is_not_opened_to_the_group(place, tmp_path, monkeypatch):
    """Between the moment in which it is made and that in which its group is let in."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    mkdir = os.mkdir

    def swapped(path, mode):
        mkdir(path, mode)
        os.rmdir(path)
        os.symlink(home, path)

    monkeypatch.setattr(spool.os, "mkdir", swapped)
    with pytest.raises(OSError):
        spool.make(str(place / "failed"))
    assert home.stat().st_mode & 0o7777 == 0o700
