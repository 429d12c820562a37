"""Watchers that die, are ended or lose their database in the middle of a profile: what that says of the profile."""

from __future__ import annotations

import errno
import os

import pytest

from tests.test_intake import write_trace
from tests.watch.world import MINUTE, SETTLED
from tracker import intake
from tracker.errors import StoreError, TrackerError
from tracker.hooks import spool
from tracker.store import inbox, watchers
from tracker.watch import Stopped, take
from tracker.watch.take import MAX_DEATHS


def test_what_nobody_hears_is_no_death_of_a_watcher(world):
    """A pipe that broke, a disk that is full: the profile is not to blame."""
    path = world.profile("gpt/v1/a.json")
    hear = world.work.say

    def say(event):
        if event.what in ("ingested", "unchanged"):
            raise BrokenPipeError(32, "Broken pipe")
        hear(event)

    world.look()
    world.after(SETTLED).work.say = say
    for number in range(4):
        with pytest.raises(TrackerError, match="of the round 1 job failed: ingest"):
            world.round()
        world.work.broken_off.clear()  # as in a watcher that was started anew
        assert world.entries()["gpt/v1/a.json"].deaths == 0, number
    world.work.say = hear
    assert world.round() == {str(path.relative_to(world.root)): "ingested"}
    assert world.runs() == [("gpt", "v1")]


def test_a_database_that_goes_when_a_profile_is_read_is_no_death_of_a_watcher(world, monkeypatch):
    """It fails at the last moment, round after round: what was read is not to blame."""
    world.profile("gpt/v1/a.json")
    world.look()
    world.after(SETTLED).look()

    def away(*_, **__):
        raise StoreError("it is away")

    with monkeypatch.context() as patch:
        patch.setattr(inbox, "finish", away)
        for _ in range(MAX_DEATHS + 1):
            with pytest.raises(StoreError):
                take.take(world.work)
    assert world.entries()["gpt/v1/a.json"].deaths == 0
    assert world.round() == {"gpt/v1/a.json": "ingested"}


def test_a_fault_beside_the_reading_of_a_profile_keeps_no_other_one_out(world, monkeypatch):
    for name in "ab":
        world.profile(f"gpt/v1/{name}.json")
    world.look()
    world.after(SETTLED).look()
    look = take.content_of

    def fail(path):
        if path.name == "a.json":
            raise ZeroDivisionError("oh")
        return look(path)

    monkeypatch.setattr(take, "content_of", fail)
    for _ in range(MAX_DEATHS + 1):
        with pytest.raises(ZeroDivisionError):
            take.take(world.work)
    assert world.states() == {"gpt/v1/a.json": "ready", "gpt/v1/b.json": "ingested"}


def test_what_jobs_queued_is_judged_although_nobody_hears_of_it(world, tmp_path):
    place = tmp_path / "spool"
    world.work.spools, world.work.to_judge = lambda: [place], set()
    for at in range(2):
        path = write_trace(tmp_path / f"{at}.json", kernel_us=100 + at)
        said = {"workload": "gpt", "version": f"v{at}"}
        spool.add(str(place), {"profile": str(path), "said": said}, now_ns=world.now_ns + at)

    def say(event):
        raise BrokenPipeError(32, "Broken pipe")

    world.work.say = say
    with pytest.raises(BrokenPipeError):
        take.take_spooled(world.work)
    assert world.work.to_judge == {1, 2}


def test_a_lost_database_ends_the_job_and_counts_against_no_profile(world, monkeypatch):
    world.profile("gpt/v1/a.json")
    world.look()
    world.after(SETTLED).look()
    real = intake.ingest

    def lose(*_, **__):
        raise StoreError("the server cannot be reached")

    monkeypatch.setattr(intake, "ingest", lose)
    for _ in range(MAX_DEATHS + 2):
        with pytest.raises(StoreError):
            take.take(world.work)
    entry = world.entries()["gpt/v1/a.json"]
    assert (entry.state, entry.attempts) == ("ready", 0)
    monkeypatch.setattr(intake, "ingest", real)
    assert world.round() == {"gpt/v1/a.json": "ingested"}


def test_a_profile_that_kills_its_watchers_is_quarantined(world, store):
    world.profile("gpt/v1/a.json")
    world.look()
    world.after(SETTLED).look()
    for number in range(MAX_DEATHS):
        (entry,) = world.entries().values()
        assert inbox.start(store, entry, f"node1:{number}:x", now_ns=world.now_ns)  # and then it died
        world.after(watchers.LEASE_LIFETIME_NS)
    assert world.round() == {"gpt/v1/a.json": "quarantined"}
    assert world.entries()["gpt/v1/a.json"].reason.startswith(
        "the watcher died while it read this, 3 times in a row; it may need more memory"
    )
    assert world.runs() == []


def test_what_was_put_off_often_is_not_blamed_for_the_first_death(world, store, monkeypatch):
    """Three times the disk was full; then one watcher was killed. That is one death and not four."""
    world.profile("gpt/v1/a.json")
    real = intake.ingest

    def refuse(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(intake, "ingest", refuse)
    world.settle()
    for minutes in (1, 5):
        world.after(minutes * MINUTE).round()
    (entry,) = world.entries().values()
    assert (entry.state, entry.attempts, entry.deaths) == ("ready", 3, 0)
    monkeypatch.setattr(intake, "ingest", real)
    world.after(15 * MINUTE)
    assert inbox.start(store, entry, "node1:2:x", now_ns=world.now_ns)  # and then it died
    assert world.after(watchers.LEASE_LIFETIME_NS).round() == {"gpt/v1/a.json": "ingested"}


def test_a_watcher_that_had_to_be_ended_did_not_die_of_what_it_read(world, store):
    world.profile("gpt/v1/a.json")
    world.look()
    world.after(SETTLED).look()
    for number in range(2 * MAX_DEATHS):
        (entry,) = world.entries().values()
        assert inbox.start(store, entry, f"node1:{number}:x", now_ns=world.now_ns)
        inbox.break_off(store, f"node1:{number}:x")
        inbox.break_off(store, "somebody else")
        world.after(watchers.LEASE_LIFETIME_NS)
    assert world.round() == {"gpt/v1/a.json": "ingested"}


def test_a_watcher_that_is_asked_to_end_puts_back_what_it_read(world, monkeypatch):
    world.profile("gpt/v1/a.json")
    world.look()
    world.after(SETTLED).look()

    def stop(*_, **__):
        raise Stopped

    monkeypatch.setattr(intake, "ingest", stop)
    with pytest.raises(Stopped):
        take.take(world.work)
    (entry,) = world.entries().values()
    assert (entry.state, entry.attempts) == ("ready", 0)
    assert inbox.start(world.store, entry, "node1:2:b", now_ns=world.now_ns)  # nobody has to wait
