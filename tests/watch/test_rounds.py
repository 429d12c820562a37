"""Leases, what is forgotten, the work of a night, and a round over real profiles."""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Thread

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from tests.store.test_write_queue import until, waiting
from tests.watch.world import DAY, HOUR, MINUTE, SECOND, SETTLED, World
from tracker import intake, notify
from tracker.cli.start import samples
from tracker.config import Prune
from tracker.errors import NewerStoreError, StoreError, TrackerError
from tracker.regressions import judgement, track
from tracker.regressions.actions import Word, act
from tracker.regressions.inbox import found_rows
from tracker.store import inbox, open_store, queries, watchers
from tracker.watch import rounds


def test_a_lease_is_one_watchers_until_it_ends_or_is_given_back(store):
    def take(owner, now_ns, **more):
        return watchers.take_lease(store, "judge", owner, now_ns=now_ns, **more)

    end = watchers.LEASE_LIFETIME_NS
    assert [take("a", 0), take("b", 1), take("a", 2), take("b", end)] == [True, False, True, False]
    assert take("b", end + 2)  # a died
    watchers.release_lease(store, "judge", "a", done_ns=7)  # and comes back too late
    assert not take("a", end + 3)
    watchers.release_lease(store, "judge", "b", done_ns=end + 4)
    assert not take("a", end + 5, undone_since_ns=end + 3)
    assert take("a", end + 5, undone_since_ns=end + 4)


def test_a_lease_of_a_clock_that_was_years_ahead_holds_nothing(store):
    years = 1000 * 24 * 3600 * SECOND
    assert watchers.take_lease(store, "nightly", "a", now_ns=years)
    assert watchers.take_lease(store, "nightly", "b", now_ns=0)
    watchers.release_lease(store, "nightly", "b", done_ns=years)
    assert watchers.take_lease(store, "nightly", "b", now_ns=0, undone_since_ns=0)


def test_a_lease_that_is_renewed_does_not_end(store):
    watchers.begin(store, "a", "node1", 1, "1.0", every_ns=None, now_ns=0)
    assert watchers.take_lease(store, "judge", "a", now_ns=0)
    for second in range(60, 600, 60):
        watchers.beat(store, "a", now_ns=second * SECOND)
        assert not watchers.take_lease(store, "judge", "b", now_ns=second * SECOND + 1)
    watchers.end(store, "a", "ended", now_ns=600 * SECOND)
    assert watchers.take_lease(store, "judge", "b", now_ns=600 * SECOND)


def test_work_under_a_lease_that_fails_was_not_done(world):
    try:
        with world.work.lease("nightly") as ours:
            assert ours
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    with world.work.lease("nightly", undone_since_ns=world.now_ns) as ours:
        assert ours
    with world.work.lease("nightly", undone_since_ns=world.now_ns - 1) as ours:
        assert not ours


def two_with_news(store, tmp_path):
    """Two watchers of one folder with something to tell: a profile in it cannot be read."""
    one = World(store, tmp_path / "profiles")
    other = World(store, tmp_path / "profiles", owner="node1:2:b")
    one.broken("gpt/v1/a.json")
    one.look()
    rounds.ingest(one.after(SETTLED).work)
    rounds.scan(one.work)
    rounds.ingest(one.work)
    return one, other


def test_two_watchers_never_send_at_the_same_time(store, tmp_path, monkeypatch):
    one, other = two_with_news(store, tmp_path)
    deliver = notify.deliver

    def deliver_slowly(*given, **more):
        monkeypatch.setattr(notify, "deliver", deliver)
        rounds.tell(other.after(SETTLED).work)
        assert other.told.messages == []
        return deliver(*given, **more)

    monkeypatch.setattr(notify, "deliver", deliver_slowly)
    rounds.tell(one.work)
    rounds.tell(other.work)
    assert (len(one.told.messages), len(other.told.messages)) == (1, 0)


def test_a_watcher_that_loses_its_lease_while_it_waits_for_the_database_does_no_harm(store, tmp_path, monkeypatch):
    """The first one has to wait for so long before it can send that the other one takes over and sends."""
    one, other = two_with_news(store, tmp_path)
    deliver = notify.deliver

    def deliver_late(*given, **more):
        monkeypatch.setattr(notify, "deliver", deliver)
        rounds.tell(other.after(SETTLED + watchers.LEASE_LIFETIME_NS + 1).work)
        return deliver(*given, **more)

    monkeypatch.setattr(notify, "deliver", deliver_late)
    rounds.tell(one.work)
    assert (len(one.told.messages), len(other.told.messages)) == (0, 1)
    for world in (one, other):
        rounds.tell(world.after(HOUR).work)
    assert (len(one.told.messages), len(other.told.messages)) == (0, 1)


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs to see who waits")
def test_a_watcher_says_that_it_lives_before_those_who_asked_later_write(tmp_path):
    """A heartbeat that waits for a writer: the lease is renewed before the other watcher looks at it."""
    path = tmp_path / "tracker.db"
    with open_store(str(path)) as store, open_store(str(path)) as slow:
        watchers.begin(store, "a", "node1", 1, "1.0", every_ns=None, now_ns=0)
        assert watchers.take_lease(store, "judge", "a", now_ns=0)
        took = []
        beat = Thread(target=watchers.beat, args=[store, "a"], kwargs={"now_ns": 100 * SECOND})
        take = Thread(target=lambda: took.append(watchers.take_lease(store, "judge", "b", now_ns=130 * SECOND)))
        with slow.begin():
            for place, thread in enumerate((beat, take), start=1):
                thread.start()
                until(lambda place=place: waiting(path, "next") == place)
        for thread in (beat, take):
            thread.join()
    assert took == [False]


def test_a_job_that_fails_keeps_no_other_one_from_its_work(world, monkeypatch):
    world.profile("gpt/v1/a.json")
    world.broken("gpt/v1/b.json")
    world.look()

    def fail(*_):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(judgement, "update", fail)
    with pytest.raises(TrackerError, match="of the round 2 jobs failed: judge, nightly; what went wrong"):
        world.after(SETTLED).round()
    assert world.states() == {"gpt/v1/a.json": "ingested", "gpt/v1/b.json": "quarantined"}
    assert len(world.told.messages) == 1
    said = world.lines("failed")
    assert [line.splitlines()[0] for line in said] == [
        f"{name}: Traceback (most recent call last):" for name in ("judge", "nightly")
    ]
    assert said[0].endswith("ZeroDivisionError: oh")


def test_a_database_that_is_away_ends_a_round_at_its_second_job(world, monkeypatch):
    tried = []

    def away(name):
        def job(work):
            tried.append(name)
            raise StoreError("it is locked")

        return job

    monkeypatch.setattr(rounds, "ONCE", {name: away(name) for name in rounds.JOBS})
    with pytest.raises(TrackerError, match="of the round 2 jobs failed: scan, ingest"):
        world.round()
    assert tried == ["scan", "ingest"]
    assert world.lines("failed") == ["scan: it is locked", "ingest: it is locked"]


def test_a_round_of_an_older_program_ends_as_soon_as_the_database_is_upgraded(world, monkeypatch):
    """What is being read then does not come in, and nobody writes down that it failed."""
    world.profile("gpt/v1/a.json")
    world.look()
    read = intake.ingest

    def upgraded_meanwhile(*words, **more):
        with world.store.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '0099'"))
        return read(*words, **more)

    monkeypatch.setattr(intake, "ingest", upgraded_meanwhile)
    with pytest.raises(NewerStoreError, match="is at schema 0099, newer than this tracker"):
        world.after(SETTLED).round()
    assert (world.states(), world.runs()) == ({"gpt/v1/a.json": "working"}, [])
    assert world.lines("failed") == []


def test_what_is_gone_for_long_is_forgotten_and_what_is_there_never(world):
    world.profile("gpt/v1/a.json")
    gone = world.profile("gpt/v1/b.json")
    world.settle()
    gone.unlink()
    world.round()
    world.after(90 * DAY).round()
    assert len(inbox.entries(world.store)) == 2
    world.after(1).round()
    assert [entry.path for entry in inbox.entries(world.store)] == [str(world.root / "gpt/v1/a.json")]


def test_a_folder_that_nobody_watches_any_more_is_forgotten_with_its_profiles(world, store, tmp_path):
    world.profile("gpt/v1/a.json")
    world.settle()
    other = World(store, tmp_path / "other", owner="node1:2:b")
    other.after(91 * DAY).round()
    assert [folder.path for folder in watchers.folders(store)] == [str(other.root)]
    assert inbox.entries(store) == []


def test_watchers_are_forgotten_single_rounds_of_cron_sooner(world, store):
    for number, every_ns in enumerate((None, MINUTE)):
        watchers.begin(store, f"old:{number}", "node1", number, "1.0", every_ns=every_ns, now_ns=world.now_ns)
        watchers.end(store, f"old:{number}", "ended", now_ns=world.now_ns)
    world.after(DAY + 1).round()
    assert [one.owner for one in watchers.watchers(store)] == ["old:1"]
    world.after(90 * DAY).round()
    assert watchers.watchers(store) == []


def test_the_work_of_a_night_judges_what_is_out_of_date_once(world, monkeypatch):
    world.profile("gpt/v1/a.json")
    world.profile("gpt/v2/b.json")
    world.settle()
    monkeypatch.setattr(track, "RULE_VERSION", track.RULE_VERSION + 1)  # tracker was upgraded
    world.after(19 * HOUR).round()
    assert world.lines("judged") == ["2 versions"]  # when they came
    world.after(HOUR).round()
    assert world.lines("judged")[1:] == ["2 versions, out of date before"]
    world.after(20 * HOUR).round()
    assert len(world.lines("judged")) == 2


def test_round_judges_a_run_that_waited_for_ranks_long_enough(world):
    """The first run of a workload, of which two ranks are expected, and one comes."""
    profile = world.profile("gpt/v1/a.json")
    profile.with_name("a.json.tracker.json").write_text('{"expect_ranks": 2}')
    world.settle()
    assert [run.ranks_words for run in track.waiting_runs(world.store)] == ["1 of 2 ranks"]
    assert world.lines("judged") == []
    world.store.settled_ns = 0
    world.after(MINUTE).round()
    assert world.lines("judged") == ["1 version"]
    assert track.waiting_runs(world.store) == []


def test_the_work_of_a_night_prunes_as_the_settings_say(world):
    for number in range(3):
        world.profile(f"gpt/v{number}/a.json")
    world.settle()
    world.after(31 * DAY).round()
    assert world.lines("pruned") == []
    world.work.settings = replace(world.work.settings, prune=Prune(older_than="30d", keep_versions=1))
    world.after(DAY).round()
    (said,) = world.lines("pruned")
    assert said.endswith(" rows of details of 2 runs")
    assert queries.kernels(world.store, [1, 2, 3]).frame["run_id"].unique().tolist() == [3]
    world.after(DAY).round()
    assert len(world.lines("pruned")) == 1


def test_a_round_over_the_samples_finds_what_is_known_of_them_and_ends_a_mute(store, tmp_path):
    """v08 writes its GELU out by hand: aten::mul is slower. Three runs of each version confirm it."""
    bundled = samples()
    world = World(store, tmp_path / "profiles")
    for label, _ in bundled.versions:
        # written now: a watcher takes the oldest first
        shutil.copytree(bundled.folder / label, world.root / "small_gpt" / label, copy_function=shutil.copy)
    states = world.settle()
    assert set(states.values()) == {"ingested"}
    assert sorted(set(world.runs())) == [("small_gpt", "v01"), ("small_gpt", "v08")]
    assert world.runs() == sorted(world.runs())
    slower = [row for row in found_rows(store) if row.direction == "regression"]
    assert "aten::mul" in {row.name for row in slower}
    number = slower[0].finding_id
    now = world.now_ns
    act(store, Word("mute", "li", now, "known", until_ns=now + HOUR), finding_ids=[number])

    def state() -> str:
        rows = found_rows(store, now_ns=world.now_ns)
        return next(row.state for row in rows if row.finding_id == number)

    world.after(HOUR - MINUTE).round()
    assert state() == "muted"
    world.after(2 * MINUTE).round()
    assert state() != "muted"
    assert judgement.update(store, judgement.tracks_of(store)) == 0


def test_a_channel_that_fails_is_said_with_its_reason(world):
    world.work.send = lambda _channel, _message: "it answered 500"
    world.broken("gpt/v1/a.json")
    world.settle()
    assert world.lines("alerted") == ["messages: 1 failed, tried again later; ops: it answered 500"]
