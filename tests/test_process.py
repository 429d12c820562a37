"""Processes of our own: started anew or copied from this one, they look the same from outside."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from tracker.limits import processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is copied, and there is no /proc")


def main():
    """Says what it is told, and what else it holds; ends with an error when told so."""
    told = sys.stdin.buffer.read()
    if told == b"fail":
        raise ValueError(told)
    if told == b"sleep":
        time.sleep(60)
    held = len(os.listdir("/proc/self/fd")) - 1  # the list itself is one of them
    sys.stdout.write(f"{told.decode()} {held}")


@pytest.fixture(params=[False, True], ids=["anew", "copied"])
def start(request, monkeypatch):
    monkeypatch.setattr(processes, "can_fork", lambda: True)  # other tests may have left threads of libraries

    def begin(word: bytes) -> processes.Process:
        process = processes.start_process("tests.test_process", may_fork=request.param)
        assert isinstance(process, processes._Forked) is request.param
        process.stdin.write(word)
        process.stdin.close()
        return process

    return begin


def test_a_process_takes_and_gives_by_its_pipes_and_holds_no_others(start, tmp_path):
    with (tmp_path / "a database").open("w"):
        process = start(b"hello")
        assert process.stdout.read() == b"hello 3"
        assert process.wait() == 0
        process.stdout.close()


def test_one_that_fails_says_so_by_its_exit_code(start):
    process = start(b"fail")
    assert process.stdout.read() == b""
    assert process.wait() == 1
    process.stdout.close()


def test_one_that_is_killed_ends_at_once_and_may_be_killed_again(start):
    process = start(b"sleep")
    process.kill()
    assert process.wait() == -signal.SIGKILL
    process.kill()
    assert process.returncode == -signal.SIGKILL
    process.stdout.close()


def test_one_that_the_system_has_buried_already_has_ended(start):
    """Where SIGCHLD is ignored, nobody is told of the end of a process."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        process = start(b"hello")
        process.stdout.read()
        assert process.wait() == 0
        process.stdout.close()
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_beside_threads_nothing_is_copied(monkeypatch):
    monkeypatch.setattr(processes, "can_fork", lambda: False)
    process = processes.start_process("tests.test_process", may_fork=True)
    assert not isinstance(process, processes._Forked)
    process.kill()
    process.stdin.close()
    process.stdout.close()
    process.wait()


def test_without_a_list_of_threads_nothing_is_copied(monkeypatch):
    def no_such_place(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(processes.os, "listdir", no_such_place)
    assert processes.can_fork() is False


@pytest.mark.parametrize(
    ("files", "granted"),
    [
        ({"cpu.max": "200000 100000"}, 2),
        ({"cpu.max": "150000 100000"}, 2),  # one and a half
        ({"cpu.max": "max 100000"}, 0),
        ({"cpu/cpu.cfs_quota_us": "400000", "cpu/cpu.cfs_period_us": "100000"}, 4),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 0),
        ({"cpu.max": "much"}, 0),
        ({}, 0),
    ],
)
def test_processors_that_a_container_grants_are_rounded_up(tmp_path, files, granted):
    (tmp_path / "cpu").mkdir()
    for name, content in files.items():
        (tmp_path / name).write_text(f"{content}\n")
    assert processes.granted_processors(tmp_path) == granted


def test_a_container_may_grant_less_than_the_machine_has(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_CONTROL_GROUP", tmp_path)
    free = processes.processors()
    (tmp_path / "cpu.max").write_text("50000 100000")
    assert processes.processors() == 1 <= free
