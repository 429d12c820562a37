"""What waits in a spool comes in once, is tried a number of times, and is never lost."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from contextlib import chdir
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from tests.test_sidecar import beside, trace
from tracker.errors import StoreError
from tracker.hooks import spool
from tracker.intake import spooled, take_spooled, waiting
from tracker.limits.touch import LateError
from tracker.regressions import judgement
from tracker.regressions.track import waiting_runs
from tracker.store import Store, queries

MINUTE = 60 * 10**9
DAY = 24 * 60 * MINUTE


def add(folder: Path, profile: Path, **entry) -> Path:
    return Path(spool.add(str(folder), {"profile": str(profile), **entry}, now_ns=entry.pop("now_ns", 1)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool" / "node7" / "default"


def labelled(folder: Path, seed: int = 0, **said) -> Path:
    profile = trace(folder, f"run{seed}.pt.trace.json", seed=seed)
    beside(profile, version="v1", workload="w", **said)
    return profile


def test_a_profile_comes_in_and_its_entry_goes(store: Store, tmp_path: Path, folder: Path):
    profile = labelled(tmp_path)
    add(folder, profile)
    (done,) = take_spooled(store, tmp_path / "spool")
    assert (done.profile, done.run_ids, done.error, done.attempts) == (str(profile), (1,), None, 1)
    assert waiting(folder) == []
    assert take_spooled(store, folder) == []


def test_the_same_profile_twice_is_one_run(store: Store, tmp_path: Path, folder: Path):
    profile = labelled(tmp_path)
    for _ in range(2):
        add(folder, profile)
    assert [done.run_ids for done in take_spooled(store, folder)] == [(1,), (1,)]
    assert len(queries.runs(store).frame) == 1


def test_what_an_entry_says_goes_before_the_sidecar_and_that_before_what_holds_otherwise(store, tmp_path, folder):
    profile = labelled(tmp_path)
    otherwise = {"workload": "other", "note": "a note", "facts": {"os": "L"}}
    add(folder, profile, said={"version": "v2", "configuration": {"batch": "8"}}, otherwise=otherwise)
    (done,) = take_spooled(store, folder)
    (run,) = queries.runs(store).frame.to_dict("records")
    assert done.error is None
    assert [run[name] for name in ("version", "workload", "configuration", "note")] == ["v2", "w", "batch=8", "a note"]
    facts = queries.facts(store, [1]).frame
    assert dict(zip(facts["key"], facts["value"], strict=True))["os"] == "L"


def test_an_entry_that_fails_says_why_and_the_next_one_comes_in(store: Store, tmp_path: Path, folder: Path):
    add(folder, tmp_path / "no such file")
    add(folder, labelled(tmp_path))
    failed, came = take_spooled(store, folder)
    assert failed.error is not None
    assert failed.error.endswith("no such file: no such file or folder; check the path")
    assert (failed.attempts, failed.given_up, came.run_ids) == (1, False, (1,))
    (left,) = waiting(folder)
    assert (left.entry, left.attempts, left.why) == (failed.entry, 1, failed.error)


def test_entries_of_one_moment_come_in_as_they_were_queued(folder: Path):
    queued = [add(folder, Path(f"/p{number}")) for number in range(12)]  # 9 and 10 among them, or 99 and 100
    assert list(map(Path, spool.entries(str(folder)))) == queued


def test_after_twenty_attempts_an_entry_lies_in_failed_with_its_error(store: Store, tmp_path: Path, folder: Path):
    entry = add(folder, tmp_path / "no such file")
    given_up = [take_spooled(store, folder, now_ns=day * DAY)[0].given_up for day in range(spooled.ATTEMPTS)]
    assert given_up == [False] * 19 + [True]
    assert take_spooled(store, folder) == []
    (left,) = waiting(tmp_path)
    assert (left.entry, left.given_up, left.attempts) == (folder / "failed" / entry.name, True, 20)
    assert "no such file or folder" in left.why
    assert "no such file or folder" in left.entry.with_name(f"{entry.name}.txt").read_text()


def test_a_profile_that_ended_the_process_each_time_is_given_up(store: Store, tmp_path: Path, folder: Path):
    add(folder, labelled(tmp_path), attempts=spooled.ATTEMPTS)  # an attempt is counted before it is made
    (done,) = take_spooled(store, folder)
    assert (done.given_up, done.error) == (True, "reading it ended tracker 20 times")


def failing(monkeypatch, error: BaseException, *names: str) -> None:
    """Reading profiles of these names, or all, fails."""
    real = spooled.ingest_of_job

    def read(store, paths, **more):
        if not names or paths[0].name in names:
            raise error
        return real(store, paths, **more)

    monkeypatch.setattr(spooled, "ingest_of_job", read)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("oh"), "tracker itself failed on this: ZeroDivisionError: oh; please report it"),
        (MemoryError(), "out of memory"),
    ],
)
def test_a_fault_of_tracker_in_one_profile_keeps_no_other_out(store, tmp_path, folder, monkeypatch, error, said):
    add(folder, labelled(tmp_path, 1))
    add(folder, labelled(tmp_path, 2), now_ns=2)
    failing(monkeypatch, error, "run1.pt.trace.json")
    failed, came = take_spooled(store, folder)
    assert (failed.error, failed.attempts, came.run_ids) == (said, 1, (1,))
    assert [left.why for left in waiting(folder)] == [said]


def test_a_signal_in_the_middle_counts_against_no_entry(store, tmp_path, folder, monkeypatch):
    entry = add(folder, labelled(tmp_path))
    failing(monkeypatch, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        take_spooled(store, folder)
    assert json.loads(entry.read_text())["attempts"] == 0


def test_a_connection_that_is_lost_is_an_error_of_the_database(store, tmp_path, folder, monkeypatch):
    entry = add(folder, labelled(tmp_path))
    failing(monkeypatch, OperationalError("SELECT 1", {}, Exception("server closed the connection")))
    with pytest.raises(StoreError, match="the connection was lost"):
        take_spooled(store, folder)
    assert json.loads(entry.read_text())["attempts"] == 0


def test_what_came_in_together_is_judged_once(store, tmp_path, folder, monkeypatch):
    for number in range(3):
        add(folder, labelled(tmp_path, number))
    calls, update = [], judgement.update

    def counting(store, lines):
        calls.append(list(lines))
        return update(store, lines)

    monkeypatch.setattr(judgement, "update", counting)
    take_spooled(store, folder)
    assert len(calls) == 1
    add(folder, labelled(tmp_path, 3))
    assert take_spooled(store, folder, judge=False)[0].run_ids == (4,)
    assert len(calls) == 1
    add(folder, labelled(tmp_path, 3))
    assert take_spooled(store, folder)[0].results[0].already
    assert len(calls) == 2, "who brought it may have ended before it was judged, as here"


def test_who_asks_can_stop_between_two_entries(store, tmp_path, folder):
    for number in range(3):
        add(folder, labelled(tmp_path, number), now_ns=number)
    begun: list[str] = []

    def begins(profile: str) -> bool:
        begun.append(Path(profile).name)
        return len(begun) < 3

    assert len(take_spooled(store, folder, begins=begins)) == 2
    assert begun == [f"run{number}.pt.trace.json" for number in range(3)]
    assert len(waiting(folder)) == 1


def test_what_was_given_up_is_kept_for_a_while_and_tried_again_when_somebody_says_so(store, tmp_path, folder):
    entry = add(folder, tmp_path / "no such file", attempts=spooled.ATTEMPTS)
    take_spooled(store, folder)
    failed = folder / "failed" / entry.name
    (left,) = waiting(folder)
    assert left.kept_until_ns == failed.stat().st_mtime_ns + 90 * DAY
    (done,) = take_spooled(store, folder, again=True)
    assert (done.entry, done.attempts, done.given_up) == (entry, 1, False)
    assert [*failed.parent.iterdir()] == []
    take_spooled(store, folder)  # a minute has not passed
    assert json.loads(entry.read_text())["attempts"] == 1
    assert take_spooled(store, folder, again=True)[0].attempts == 2


def test_what_was_given_up_long_ago_is_forgotten(store, tmp_path, folder):
    for number in range(2):
        add(folder, tmp_path / f"no such file {number}", attempts=spooled.ATTEMPTS)
    take_spooled(store, folder)
    old, new = sorted((folder / "failed").glob("*.entry.json"))
    os.utime(old, ns=(0, time.time_ns() - 90 * DAY - MINUTE))
    take_spooled(store, folder)
    assert sorted((folder / "failed").iterdir()) == [new, new.with_name(f"{new.name}.txt")]


def test_a_profile_whose_end_never_comes_is_taken_after_a_day(store, tmp_path, folder):
    add(folder, labelled(tmp_path), wait_for=str(tmp_path / "never"))
    assert take_spooled(store, folder, now_ns=DAY) == []
    (done,) = take_spooled(store, folder, now_ns=DAY + 2)
    assert done.run_ids == (1,)


def test_what_another_user_may_read_is_left_alone_and_told_of(store, tmp_path, folder, monkeypatch):
    profile = labelled(tmp_path)
    entry = add(folder, profile)
    access = os.access
    monkeypatch.setattr(os, "access", lambda place, mode, **_: place != str(profile) and access(place, mode))
    assert take_spooled(store, folder) == []
    (left,) = waiting(folder)
    assert (left.entry, left.attempts, left.is_barred) == (entry, 0, True)
    assert left.why == f"user {os.getuid()} may not read it"


def test_an_entry_that_cannot_be_read_is_not_given_up(store, tmp_path, folder, monkeypatch):
    entry = add(folder, labelled(tmp_path))

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(spool, "content", refuse)
    assert take_spooled(store, folder) == []
    (left,) = waiting(folder)
    assert (left.entry, left.why, left.is_barred) == (entry, "cannot be read (Permission denied)", True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_root_reads_nothing_for_another_user(memory_store, tmp_path, folder):
    entry = add(folder, labelled(tmp_path))
    os.chown(entry, 65534, 65534)
    assert take_spooled(memory_store, folder) == []
    (left,) = waiting(folder)
    assert (left.profile, left.is_barred) == ("", True)
    assert left.why == "cannot be read (root takes no entry of user 65534: take it as that user)"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize(("owner", "taken"), [(65533, 1), (65534, 0)])
def test_for_another_user_only_what_is_theirs_is_read(memory_store, owner, taken):
    watcher, user = 65534, 65533
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        profile, queue = labelled(place), place / "spool"
        entry = add(queue, profile)
        for path in (place, queue, *place.rglob("*")):
            path.chmod(0o777 if path.is_dir() else 0o644)
        os.chown(entry, user, user)
        os.chown(profile, owner, owner)
        os.seteuid(watcher)
        try:
            left = [one.why for one in waiting(queue)]
            assert len(take_spooled(memory_store, queue)) == taken
        finally:
            os.seteuid(0)
    assert left == ([""] if taken else [f"user {user} queued it and does not own it"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("target", ["/nowhere", "/"])
def test_a_link_in_the_folder_of_another_user_is_not_theirs(target):
    with tempfile.TemporaryDirectory() as name:
        folder, queue = Path(name, "profile"), Path(name, "spool")
        folder.mkdir()
        (folder / "link").symlink_to(target)
        entry = add(queue, folder)
        for path in (Path(name), folder, queue):
            path.chmod(0o777)
        entry.chmod(0o644)
        os.chown(folder, 65533, 65533)
        os.chown(entry, 65533, 65533)
        os.seteuid(65534)
        try:
            assert [one.why for one in waiting(queue)] == ["user 65533 queued it and does not own it"]
        finally:
            os.seteuid(0)


@pytest.mark.parametrize("attempts", [-1, 10**12])
def test_an_entry_of_impossible_attempts_keeps_no_other_waiting(memory_store, tmp_path, folder, attempts):
    profile = labelled(tmp_path)
    add(folder, profile, attempts=attempts)
    add(folder, profile)
    done = take_spooled(memory_store, folder)
    assert sorted((one.given_up, one.run_ids) for one in done) == [(False, (1,)), (True, ())]


def test_the_end_of_a_profile_queued_years_ahead_is_not_waited_for(memory_store, tmp_path, folder):
    add(folder, labelled(tmp_path), wait_for=str(tmp_path / "never"), queued_at_ns=10**18 * 8)
    assert [one.run_ids for one in take_spooled(memory_store, folder)] == [(1,)]


def test_those_that_were_tried_least_come_first(store: Store, tmp_path: Path, folder: Path):
    add(folder, tmp_path / "often", attempts=3)
    add(folder, tmp_path / "once", attempts=1, now_ns=2)
    add(folder, tmp_path / "new", now_ns=3)
    assert [Path(done.profile).name for done in take_spooled(store, folder)] == ["new", "once", "often"]


def test_a_database_that_fails_counts_against_no_entry(store: Store, tmp_path: Path, folder: Path, monkeypatch):
    entry = add(folder, labelled(tmp_path))
    before = json.loads(entry.read_text())

    def fails(*arguments, **options):
        raise StoreError("the database is locked")

    monkeypatch.setattr(spooled, "ingest_of_job", fails)
    with pytest.raises(StoreError):
        take_spooled(store, folder)
    assert json.loads(entry.read_text()) == {**before, "tried_at_ns": 0, "error": ""}


def test_a_watch_waits_longer_after_each_attempt(store: Store, tmp_path: Path, folder: Path):
    add(folder, tmp_path / "no such file")
    tried = [minute for minute in range(20) if take_spooled(store, folder, now_ns=minute * MINUTE)]
    assert tried == [0, 1, 3, 7, 15]


def test_what_lies_on_another_machine_is_left_alone(store: Store, tmp_path: Path, folder: Path):
    entry = add(folder, tmp_path / "scratch of node9", host="node9")
    shared = add(folder, labelled(tmp_path), host="node9")
    (done,) = take_spooled(store, folder)
    assert (done.entry, done.error) == (shared, None)
    (left,) = waiting(folder)
    assert (left.entry, left.attempts, left.why) == (entry, 0, "lies on node9")


def test_what_is_still_being_analysed_is_left_alone(store: Store, tmp_path: Path, folder: Path):
    done = tmp_path / "analyse.done"
    add(folder, labelled(tmp_path), wait_for=str(done), now_ns=time.time_ns())
    assert take_spooled(store, folder) == []
    assert [left.why for left in waiting(folder)] == [f"waits for {done}"]
    done.write_text("")
    assert len(take_spooled(store, folder)) == 1


def test_run_waits_for_ranks_that_its_job_queued(store: Store, tmp_path: Path, folder: Path):
    """Rank 1 of job 41 is still being analysed while rank 0 comes in, the first run of its track."""
    world = {"world_size": 8, "facts": {"job_id": "41"}}
    analysed = tmp_path / "analyse.done"
    add(folder, labelled(tmp_path, 0, rank=0, **world))
    add(folder, labelled(tmp_path, 1, rank=1, **world), wait_for=str(analysed), now_ns=time.time_ns())
    take_spooled(store, folder)
    assert [run.ranks_words for run in waiting_runs(store)] == ["1 of 2 ranks"]
    analysed.write_text("")
    take_spooled(store, folder)
    assert waiting_runs(store) == []
    assert queries.runs(store).frame["ranks"].tolist() == [2]


def test_cycles_of_one_rank_are_no_ranks_to_wait_for(store: Store, tmp_path: Path, folder: Path):
    """Rank 0 of job 41 alone hands over two cycles, of which the second is still being analysed."""
    world = {"rank": 0, "world_size": 8, "facts": {"job_id": "41"}}
    add(folder, labelled(tmp_path, 0, **world))
    add(folder, labelled(tmp_path, 1, **world), wait_for=str(tmp_path / "never"), now_ns=time.time_ns())
    take_spooled(store, folder)
    assert waiting_runs(store) == []


def test_jobs_of_one_spool_do_not_wait_for_each_other(store: Store, tmp_path: Path, folder: Path):
    for job in ("41", "42"):
        add(folder, labelled(tmp_path, int(job), rank=0, world_size=8, facts={"job_id": job}))
    take_spooled(store, folder)
    assert waiting_runs(store) == []


def test_another_process_that_takes_is_not_disturbed(store: Store, tmp_path: Path, folder: Path):
    add(folder, labelled(tmp_path))
    with spool.locked(str(folder), spool.TAKING):
        assert take_spooled(store, folder) == []
    assert len(take_spooled(store, folder)) == 1


@pytest.mark.parametrize("text", ["", "[]", '{"profile": 3}', '{"profile": "p", "said": {"version": "a\\nb"}}'])
def test_a_file_that_is_no_entry_is_given_up_at_once(store: Store, tmp_path: Path, folder: Path, text: str):
    entry = add(folder, tmp_path)
    entry.write_text(text)
    (done,) = take_spooled(store, folder)
    assert done.given_up
    assert (folder / "failed" / entry.name).read_text() == text
    assert [left.given_up for left in waiting(folder)] == [True]


def put_link(path: Path) -> None:
    target = path.with_name("elsewhere.json")
    target.write_text('{"profile": "/gone"}')
    path.symlink_to(target)


def put_socket(path: Path) -> None:
    with chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)  # the name of a socket may have 107 bytes


NO_FILES = {"pipe": os.mkfifo, "link": put_link, "socket": put_socket}


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("put", NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_is_given_up_and_keeps_no_entry_waiting(memory_store, tmp_path, folder, put):
    """Whoever may write into the spool put it there: opened as a file, a pipe would be waited at for ever."""
    good = add(folder, labelled(tmp_path), now_ns=2)
    bad = folder / f"0-1-0{spool.SUFFIX}"
    put(bad)
    assert [one.entry for one in waiting(folder)] == [bad, good]
    given_up, taken = take_spooled(memory_store, folder)
    problem = f"{bad}: is no entry of a spool: a link, a pipe or a device, no file"
    assert (given_up.given_up, given_up.error.partition(";")[0]) == (True, problem)
    assert taken.run_ids == (1,)
    assert [one.entry for one in waiting(folder)] == [folder / "failed" / bad.name]
    assert [one.entry for one in take_spooled(memory_store, folder, again=True)] == []


def test_only_its_owner_can_read_a_spool(tmp_path: Path, folder: Path):
    entry = add(folder, tmp_path)
    assert (entry.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)


def test_an_entry_whose_profile_never_answers_is_tried_again_and_the_next_one_comes_in(
    store: Store, tmp_path: Path, folder: Path, monkeypatch
):
    stuck = tmp_path / "stuck"
    add(folder, stuck)
    add(folder, labelled(tmp_path))
    really = os.stat

    def look(path, **how):
        if path == str(stuck):
            raise LateError(path, 60)  # what the process that looks at files is killed for
        return really(path, **how)

    monkeypatch.setattr(os, "stat", look)
    done = {one.profile: one for one in take_spooled(store, folder)}
    assert done[str(stuck)].error == f"{stuck}: to look at it took longer than 60 s; see whether its disk answers"
    assert (done[str(stuck)].attempts, len(done)) == (1, 2)
    (left,) = waiting(folder)
    assert (left.attempts, left.why) == (1, done[str(stuck)].error)


def test_a_profile_of_a_name_that_no_system_takes_is_no_fault_of_ours(store: Store, folder: Path):
    add(folder, Path("a" * 90_000))
    (done,) = take_spooled(store, folder)
    assert done.error is not None
    assert done.error.endswith("cannot be read (File name too long); check the path")
    assert len(done.error) < 1000
