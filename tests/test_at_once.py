"""Ranks that are read at once are the run that one process reads."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import time

import numpy as np
import pytest

from tests.packs import everything
from tests.test_intake import write_trace
from tracker.errors import SourceError
from tracker.intake import IngestOptions, at_once, ingest, pieces
from tracker.limits import processes as own_processes
from tracker.profile.packed_tables import PackedTables
from tracker.store import open_store

ALONE = IngestOptions(one_process=True)


@pytest.fixture
def ranks(tmp_path, monkeypatch):
    """Five ranks of a run, and processes even for so little."""
    monkeypatch.setattr(at_once, "MIN_BYTES", 0)
    monkeypatch.setattr(at_once, "processors", lambda: 2)
    return [write_trace(tmp_path / f"rank{rank}.pt.trace.json", rank=rank) for rank in range(5)]


@pytest.fixture
def started(monkeypatch):
    """The processes that read."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(module, **how):
        processes.append(start_process(module, **how))
        return processes[-1]

    start_process = at_once.start_process
    monkeypatch.setattr(at_once, "start_process", start)
    return processes


def has_ended(process):
    """Whether it ended in the next seconds; it may still have to be waited for."""
    end = time.monotonic() + 5
    how = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while process.returncode is None and os.waitid(os.P_PID, process.pid, how) is None:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def stored(folder, name, paths, options):
    with open_store(str(folder / name)) as store:
        results = ingest(store, paths, version="v1", workload="w", options=options)
        return [result.ranks for result in results], everything(store)


def test_five_ranks_read_by_two_processes_are_the_run_that_one_reads(tmp_path, ranks, started):
    assert stored(tmp_path, "two.db", ranks, IngestOptions()) == stored(tmp_path, "one.db", ranks, ALONE)
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


def test_rows_of_several_profiles_wait_packed_and_are_the_same(ranks):
    """A profile alone is not packed: nothing waits for others."""
    (alone,) = at_once.read_all(ranks[:1], ALONE).pieces
    first, *_ = at_once.read_all(ranks, ALONE).pieces
    tables, waiting = alone.capture.rows.tables, first.capture.rows.tables
    assert (type(tables), type(waiting)) == (dict, PackedTables)
    assert [*waiting] == [*tables]
    for name, table in tables.items():
        assert {column: list(values) for column, values in waiting[name].items()} == {
            column: list(values) for column, values in table.items()
        }


def test_packed_tables_take_a_twentieth_of_their_room():
    """A thousand calls of one operator: 16,000 bytes of numbers and names, of which 999 repeat the first."""
    table = {"name": ["aten::mm"] * 1_000, "ns": np.full(1_000, 7, dtype=np.int64)}
    packed = PackedTables({"op": table})
    assert len(pickle.dumps(packed)) < 16_000 / 20
    assert ("op" in packed, "kernel" in packed, len(packed)) == (True, False, 1)


def test_the_first_profile_that_cannot_be_read_is_told_as_by_one_process(tmp_path, ranks, started):
    ranks[3].write_text('{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X"]}')
    said = []
    for options in (IngestOptions(), ALONE):
        with pytest.raises(SourceError) as failed:
            at_once.read_all(ranks, options)
        said.append(str(failed.value))
    assert said[0] == said[1]
    assert said[0].startswith(str(ranks[3]))
    assert all(process.returncode is not None for process in started)


def test_what_a_process_dies_over_is_read_here(tmp_path, ranks, monkeypatch):
    start_process = at_once.start_process

    def start(module, **how):
        process = start_process(module, **how)
        os.kill(process.pid, signal.SIGKILL)
        return process

    monkeypatch.setattr(at_once, "start_process", start)
    assert stored(tmp_path, "dead.db", ranks, IngestOptions()) == stored(tmp_path, "one.db", ranks, ALONE)


def test_processes_that_have_read_are_all_ended_before_any_is_waited_for(ranks, monkeypatch):
    """Each takes a while to give its memory back, and what it read waits to be written."""
    did = []
    kill, wait = subprocess.Popen.kill, subprocess.Popen.wait
    monkeypatch.setattr(subprocess.Popen, "kill", lambda process: did.append("kill") or kill(process))
    monkeypatch.setattr(subprocess.Popen, "wait", lambda process, *how: did.append("wait") or wait(process, *how))
    at_once.read_all(ranks, IngestOptions())
    assert did == ["kill", "kill", "wait", "wait"]


def test_what_was_read_ahead_is_written_before_its_processes_are_waited_for(ranks, started, monkeypatch):
    """They are ended at once, and give their memory back while the database is written."""
    did = []
    with at_once.ahead(ranks, IngestOptions()):
        kinds = {type(process) for process in started}
        for kind in kinds:
            kill, wait = kind.kill, kind.wait
            monkeypatch.setattr(kind, "kill", lambda process, kill=kill: did.append("kill") or kill(process))
            monkeypatch.setattr(kind, "wait", lambda process, wait=wait: did.append("wait") or wait(process))
        at_once.read_all(ranks, IngestOptions())
        did.append("write")
    assert did == ["kill", "kill", "write", "wait", "wait"]


def test_another_process_reads_on_for_one_that_died(tmp_path, ranks, started, monkeypatch):
    """One that is dead has no answer at once; it would get the next profile, and the next, and all were read here."""
    here = []

    def read_pieces(item, options):
        here.append(item.path.name)
        return pieces.read_pieces(item, options)

    monkeypatch.setattr(at_once, "read_pieces", read_pieces)
    ask = at_once._ask

    def ask_and_die(process, job, hear):
        if job[0].path.name == "rank1.pt.trace.json":
            os.kill(process.pid, signal.SIGKILL)
        return ask(process, job, hear)

    monkeypatch.setattr(at_once, "_ask", ask_and_die)
    assert stored(tmp_path, "dead.db", ranks, IngestOptions()) == stored(tmp_path, "one.db", ranks, ALONE)
    assert here[:1] == ["rank1.pt.trace.json"]
    assert len(here) == 1 + len(ranks), "the other five were read by the one process that reads alone"
    assert len(started) == 3
    assert all(process.returncode is not None for process in started)


def test_where_no_process_can_be_started_one_reads_all(tmp_path, ranks, monkeypatch):
    def start(module, **how):
        raise OSError("no more processes")

    monkeypatch.setattr(at_once, "start_process", start)
    assert len(at_once.read_all(ranks, IngestOptions()).pieces) == 5


def test_progress_is_told_per_profile(tmp_path, ranks):
    told = []
    at_once.read_all(ranks, IngestOptions(on_progress=lambda *said: told.append(said)))
    last = {name: (done, total) for name, done, total in told}  # on a busy machine one may be told of in between
    assert list(last) == [f"{number} of 5: {path.name}" for number, path in enumerate(ranks, 1)]
    assert all(done == total > 0 for done, total in last.values())


def test_how_far_a_copy_is_is_told_where_somebody_waits_for_it(tmp_path, ranks, started, forked, monkeypatch):
    monkeypatch.setattr(at_once, "TOLD_EVERY_S", 0)
    told = []
    with at_once.ahead(ranks[:1], IngestOptions()):
        at_once.read_all(ranks[:1], IngestOptions(on_progress=lambda *said: told.append(said)))
    size = ranks[0].stat().st_size
    assert told[-1] == (ranks[0].name, size, size)
    ear = at_once._Ear(lambda *said: told.append(said))
    mine, other = at_once.readers.find(ranks[0]) + at_once.readers.find(ranks[1])
    ear.waits_for = mine
    told.clear()
    ear.hear(other, 1, 5)
    ear.hear(mine, 2, 5)
    assert told == [(ranks[0].name, 2, 5)]


def test_a_copy_that_nobody_listens_to_ends_when_it_next_says_how_far_it_is(monkeypatch):
    said = []
    monkeypatch.setattr(at_once, "_say", said.append)
    report = at_once._telling()
    report("a", 1, 9)
    monkeypatch.setattr(at_once, "TOLD_EVERY_S", 0)
    report("a", 2, 9)
    assert said == [(2, 9)]

    def nobody(what):
        raise BrokenPipeError

    monkeypatch.setattr(at_once, "_say", nobody)
    with pytest.raises(BrokenPipeError):
        report("a", 3, 9)


def test_small_profiles_and_a_single_one_are_read_here(tmp_path, ranks, started, monkeypatch):
    monkeypatch.setattr(at_once, "MIN_BYTES", 1 << 20)
    at_once.read_all(ranks, IngestOptions())
    monkeypatch.setattr(at_once, "MIN_BYTES", 0)
    at_once.read_all(ranks[:1], IngestOptions())
    at_once.read_all(ranks, ALONE)
    assert started == []


def test_ranks_begun_ahead_are_read_once_and_are_the_same_run(tmp_path, ranks, started):
    with at_once.ahead(ranks, IngestOptions()):
        assert len(started) == 2
        ahead = stored(tmp_path, "ahead.db", ranks, IngestOptions(on_progress=lambda *_: None))
        assert len(started) == 2
        assert all(map(has_ended, started))  # not only when the command ends
    assert ahead == stored(tmp_path, "one.db", ranks, ALONE)
    assert all(process.returncode is not None for process in started)


@pytest.fixture
def forked(monkeypatch):
    """Other tests may have left threads of libraries; these copies need none."""
    monkeypatch.setattr(at_once, "can_fork", lambda: True)
    monkeypatch.setattr(own_processes, "can_fork", lambda: True)


def test_a_single_profile_is_begun_in_a_copy(tmp_path, ranks, started, forked):
    with at_once.ahead(ranks[:1], IngestOptions()):
        assert [type(process) for process in started] == [own_processes._Forked]
        ahead = stored(tmp_path, "ahead.db", ranks[:1], IngestOptions())
        assert len(started) == 1
    assert ahead == stored(tmp_path, "one.db", ranks[:1], ALONE)


def test_where_the_copy_dies_the_profile_is_read_here(tmp_path, ranks, started, forked):
    with at_once.ahead(ranks[:1], IngestOptions()):
        os.kill(started[0].pid, signal.SIGKILL)
        ahead = stored(tmp_path, "ahead.db", ranks[:1], IngestOptions())
    assert ahead == stored(tmp_path, "one.db", ranks[:1], ALONE)


@pytest.mark.parametrize(
    "why", [("can_fork", lambda: False), ("processors", lambda: 1), ("MAX_BYTES_AHEAD", 100)], ids=lambda why: why[0]
)
def test_a_single_profile_is_read_here_where_a_copy_would_not_help(ranks, started, monkeypatch, why):
    monkeypatch.setattr(at_once, "can_fork", lambda: True)
    monkeypatch.setattr(at_once, *why)
    with at_once.ahead(ranks[:1], IngestOptions()):
        pass
    with at_once.ahead(ranks[:1], ALONE):
        pass
    assert started == []


def test_what_was_begun_under_other_options_is_read_anew(tmp_path, ranks, started):
    with at_once.ahead(ranks, IngestOptions(device="cpu")):
        device = at_once.read_all(ranks, IngestOptions()).pieces[0].capture.device
        assert len(started) == 4
        assert all(map(has_ended, started))
    assert device.model == at_once.read_all(ranks, ALONE).pieces[0].capture.device.model


def test_what_was_begun_and_is_not_asked_for_is_given_up(ranks, started):
    with at_once.ahead(ranks, IngestOptions()):
        pass
    assert all(process.returncode is not None for process in started)
    assert at_once._AHEAD == {}
