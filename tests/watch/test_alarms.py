"""What is told of watching itself: once per gap, per bad profile and per dead watcher."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from msgspec.structs import replace

from tests.watch.world import ALERTS, DAY, HOUR, MINUTE, SETTLED, World
from tracker import notify
from tracker.config import Alerts
from tracker.intake import ingest
from tracker.notify import Alarm
from tracker.store import inbox, notifications, watchers
from tracker.watch import Event, Service, alarms, rounds
from tracker.watch.work import MOST_SAID


@pytest.fixture
def daily(store, tmp_path) -> World:
    """A folder in which a run is expected every day."""
    return World(store, tmp_path / "profiles", expect_every="1d")


def test_a_gap_is_told_of_once_and_the_next_gap_again(daily):
    daily.profile("gpt/v1/a.json")
    daily.settle()  # at SETTLED
    daily.after(DAY).round()
    assert daily.told.titles() == []
    for _ in range(3):
        daily.after(MINUTE).round()
    assert daily.told.titles() == ["no run of gpt for 24 h"]
    (alarm,) = daily.told.messages
    assert (alarm.event, alarm.workload) == ("missing_runs", "gpt")
    assert alarm.lines[0] == "the last one, run:1 of v1, came at 2023-11-14 22:15 UTC"
    assert alarm.lines[1] == f"One was expected in {daily.root} on node1 by 2023-11-15 22:15 UTC."
    daily.profile("gpt/v2/b.json")
    daily.settle()
    daily.after(DAY - MINUTE).round()
    assert len(daily.told.messages) == 1
    daily.after(2 * MINUTE).round()
    daily.after(DAY).round()
    assert daily.told.titles() == ["no run of gpt for 24 h"] * 2


def test_a_folder_that_never_had_a_run_is_told_of_from_the_first_look_on(daily):
    daily.round()
    daily.after(DAY).round()
    assert daily.told.messages == []
    daily.after(1).round()
    (alarm,) = daily.told.messages
    assert alarm.title == "no run for 24 h"
    assert alarm.lines[0] == "there never was one since the watch began at 2023-11-14 22:13 UTC"


def test_a_folder_that_is_not_there_has_no_runs_either(daily):
    daily.root.rmdir()
    daily.round()
    daily.after(DAY + 1).round()
    assert daily.told.titles() == ["no run for 24 h"]


def test_each_workload_of_a_layout_is_waited_for_by_itself(daily):
    daily.profile("bert/v1/a.json")
    daily.profile("gpt/v1/b.json")
    daily.settle()
    daily.after(DAY - MINUTE)
    daily.profile("gpt/v2/c.json")
    daily.settle()
    assert [alarm.workload for alarm in daily.told.messages] == ["bert"]


def test_a_workload_whose_folder_was_removed_is_waited_for_no_longer(daily):
    path = daily.profile("gpt/v1/a.json")
    daily.settle()
    for place in (path, path.parent, path.parent.parent):
        place.unlink() if place.is_file() else place.rmdir()
    daily.after(2 * DAY).round()
    assert [one.workload for one in daily.expected()] == [""]  # any; it waits from now on
    assert daily.told.messages == []


def test_the_workload_of_the_settings_is_waited_for_before_it_has_a_run(store, tmp_path):
    world = World(store, tmp_path / "profiles", layout="{version}/*", workload="gpt", expect_every="6h")
    world.round()
    world.after(6 * HOUR + 1).round()
    assert world.told.titles() == ["no run of gpt for 6 h"]


def test_a_profile_on_its_way_in_holds_the_alarm_back_but_not_for_ever(daily):
    daily.profile("gpt/v1/a.json")
    daily.settle()
    daily.after(DAY - MINUTE)
    stuck = daily.profile("gpt/v2/b.json")
    daily.look()
    daily.after(2 * MINUTE)
    stuck.write_text(stuck.read_text() + " ")
    daily.round()
    assert daily.told.messages == []
    daily.after(DAY)
    stuck.write_text(stuck.read_text() + " ")
    daily.round()
    assert daily.told.titles() == ["no run of gpt for 24 h"]


def test_runs_that_came_in_another_way_count_by_their_start(daily, tmp_path):
    daily.profile("gpt/v1/a.json")
    daily.settle()
    daily.after(DAY + HOUR - SETTLED)
    elsewhere = World(daily.store, tmp_path / "elsewhere")
    path = elsewhere.profile("by hand.json", start_us=(DAY // 1000))
    ingest(daily.store, [path], version="v2", workload="gpt")  # it started an hour ago
    daily.round()
    assert daily.told.messages == []
    daily.after(DAY).round()
    assert [alarm.lines[0] for alarm in daily.told.messages] == [
        "the last one, run:2 of v2, came at 2023-11-15 22:13 UTC"
    ]


def test_reading_an_old_profile_again_is_no_new_run(daily):
    path = daily.profile("gpt/v1/a.json")
    daily.settle()
    daily.after(DAY)
    path.touch()
    daily.settle()
    assert daily.states() == {"gpt/v1/a.json": "ingested"}
    assert daily.told.titles() == ["no run of gpt for 24 h"]


def test_without_an_interval_nothing_is_missed(world):
    world.round()
    world.after(365 * DAY).round()
    assert world.told.messages == []


def test_a_quarantine_is_told_of_once_per_state_of_its_files(world):
    path = world.broken("gpt/v1/a.json")
    world.settle()
    for _ in range(3):
        world.after(HOUR).round()
    (alarm,) = world.told.messages
    assert (alarm.event, alarm.workload, alarm.title) == (
        "quarantined",
        "gpt",
        f"1 profile in {world.root} cannot be read",
    )
    assert alarm.lines[0].startswith(f"{path}: ")
    path.write_text(path.read_text() + '"')
    world.settle()
    assert len(world.told.messages) == 2


def test_what_is_tried_again_and_still_bad_is_the_same_alarm(world):
    world.broken("gpt/v1/a.json")
    world.settle()
    inbox.retry(world.store, list(world.entries().values()), now_ns=world.now_ns)
    world.round()
    assert len(world.told.messages) == 1  # the outbox knows its key


def test_a_bad_day_is_one_message_per_workload_and_names_the_first(world):
    for number in range(12):
        world.broken(f"gpt/v1/{number:02}.json")
    world.broken("bert/v1/x.json")
    world.settle()
    assert sorted(alarm.workload for alarm in world.told.messages) == ["bert", "gpt"]
    (of_gpt,) = [alarm for alarm in world.told.messages if alarm.workload == "gpt"]
    assert of_gpt.title == f"12 profiles in {world.root} cannot be read"
    assert len(of_gpt.lines) == 12
    assert of_gpt.lines[10] == "and 2 more"
    assert "tracker watch --retry all" in of_gpt.lines[11]


def test_a_spool_that_nothing_can_be_taken_from_is_told_of_once(world, tmp_path):
    world.work.shut = lambda: [(tmp_path / "spool", "belongs to user 7, and entries cannot be taken from it")]
    for _ in range(2):
        world.round()
    (alarm,) = world.told.messages
    assert (alarm.event, alarm.title) == ("quarantined", "node1 cannot take what jobs queued")
    assert alarm.lines[0] == f"{tmp_path}/spool: belongs to user 7, and entries cannot be taken from it"
    assert world.lines("folder").count(alarm.lines[0]) == 1


def test_a_watcher_that_fell_silent_is_told_of_once(world, store):
    watchers.begin(store, "node2:7:x", "node2", 7, "1.0", every_ns=MINUTE, now_ns=world.now_ns)
    world.after(alarms.DEAD_AFTER_NS).round()
    assert world.told.messages == []
    for _ in range(3):
        world.after(MINUTE).round()
    (alarm,) = world.told.messages
    assert (alarm.event, alarm.title) == ("watcher", "the watcher on node2 is gone")
    assert "Process 7 was last heard of at 2023-11-14 22:13 UTC." in alarm.lines


def test_a_watcher_that_comes_back_lives_again_and_its_next_loss_is_told_too(world, store):
    watchers.begin(store, "node2:7:x", "node2", 7, "1.0", every_ns=MINUTE, now_ns=world.now_ns)
    world.after(alarms.DEAD_AFTER_NS + 1).round()
    assert watchers.beat(store, "node2:7:x", now_ns=world.now_ns)  # its machine had slept
    (known,) = watchers.watchers(store)
    assert (known.outcome, known.ended_ns, known.told, known.heartbeat_ns) == ("", None, False, world.now_ns)
    assert not watchers.beat(store, "node2:7:x", now_ns=world.now_ns)  # nothing new
    world.round()
    assert len(world.told.messages) == 1
    world.after(alarms.DEAD_AFTER_NS + 1).round()
    world.round()
    assert world.told.titles() == ["the watcher on node2 is gone"] * 2


def test_a_watcher_that_was_heard_of_meanwhile_is_neither_lost_nor_told_of(world, store):
    watchers.begin(store, "node2:7:x", "node2", 7, "1.0", every_ns=MINUTE, now_ns=world.now_ns)
    (seen,) = watchers.watchers(store)
    watchers.beat(store, "node2:7:x", now_ns=world.now_ns + 1)
    assert not watchers.end(store, "node2:7:x", "lost", now_ns=world.now_ns + 2, heartbeat_ns=seen.heartbeat_ns)
    assert not store.transact(lambda connection: watchers.tell(connection, seen))
    (known,) = watchers.watchers(store)
    assert (known.outcome, known.told) == ("", False)


def test_a_watcher_that_hangs_is_told_of_once_by_another_one(world, store):
    watchers.begin(store, "node2:7:x", "node2", 7, "1.0", every_ns=MINUTE, now_ns=world.now_ns)
    doing = ("reading /p/gpt/v1/a.json", world.now_ns)
    for minutes in (60, 1, 1):
        watchers.beat(store, "node2:7:x", now_ns=world.after(minutes * MINUTE).now_ns, job=doing)
        world.round()
    (alarm,) = world.told.messages
    assert (alarm.event, alarm.title) == ("watcher", "the watcher on node2 hangs")
    assert alarm.lines[0] == "Process 7 has been at one thing for 61 min: reading /p/gpt/v1/a.json"
    goes_on = ("judge", world.now_ns)
    watchers.beat(store, "node2:7:x", now_ns=world.after(HOUR).now_ns, job=goes_on)
    world.round()
    assert len(world.told.messages) == 1


def test_a_watcher_that_hangs_says_so_itself_and_lets_go_of_its_work(world, store):
    """There may be no other one. What it held another one may take; its heartbeat holds it no longer."""
    service = Service(world.work, lambda: world.work.settings, lambda settings: nullcontext(store), "1.0")
    watchers.begin(store, world.work.owner, "node1", 1, "1.0", every_ns=MINUTE, now_ns=world.now_ns)
    with world.work.at("tell"):
        assert watchers.take_lease(store, "tell", world.work.owner, now_ns=world.now_ns)
        for _ in range(60):
            service.beat(world.after(MINUTE).store)
        assert world.told.messages == []
        service.beat(world.after(MINUTE).store)  # it hangs, and holds the lease on telling for two minutes more
        assert world.told.messages == []
        for _ in range(3):
            service.beat(world.after(MINUTE).store)
    assert world.told.titles() == ["the watcher on node1 hangs"]
    assert world.lines("watcher") == ["node1 pid 1 hangs: tell"]
    service.beat(world.after(MINUTE).store)
    (known,) = watchers.watchers(store)
    assert (known.job, known.job_ns) == (None, None)


def test_watchers_that_said_good_bye_or_live_are_not_told_of(world, store):
    watchers.begin(store, "node2:7:x", "node2", 7, "1.0", every_ns=MINUTE, now_ns=world.now_ns)
    watchers.begin(store, "node3:8:x", "node3", 8, "1.0", every_ns=HOUR, now_ns=world.now_ns)
    watchers.end(store, "node2:7:x", "ended", now_ns=world.now_ns)
    world.after(5 * HOUR).round()  # node3 looks every hour: five rounds
    assert world.told.messages == []


def test_who_dies_before_remembering_tells_again_and_nobody_hears_it_twice(daily, monkeypatch):
    daily.broken("gpt/v1/a.json")
    daily.look()
    daily.after(SETTLED)

    def die(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(inbox, "tell", die)
    with pytest.raises(KeyboardInterrupt):
        daily.round()
    monkeypatch.undo()
    assert [entry.told for entry in daily.entries().values()] == [False]
    daily.round()
    assert [entry.told for entry in daily.entries().values()] == [True]
    daily.round()
    assert len(daily.told.messages) == 1
    assert [entry.told for entry in daily.entries().values()] == [True]


def die_before_remembering(daily, monkeypatch):
    """A round that ends where it would remember what it told."""
    daily.look()
    daily.after(SETTLED)

    def die(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(inbox, "tell", die)
        with pytest.raises(KeyboardInterrupt):
            daily.round()


def test_who_dies_before_remembering_tells_only_what_is_new_afterwards(daily, monkeypatch):
    first = daily.broken("gpt/v1/a.json")
    die_before_remembering(daily, monkeypatch)
    daily.round()
    second = daily.broken("gpt/v1/b.json")
    daily.settle()
    assert [message.lines[0].partition(": ")[0] for message in daily.told.messages] == [str(first), str(second)]


def test_who_dies_before_remembering_told_nobody_so_that_what_comes_then_is_the_same_message(daily, monkeypatch):
    paths = [daily.broken("gpt/v1/a.json")]
    die_before_remembering(daily, monkeypatch)
    paths.append(daily.broken("gpt/v1/b.json"))
    daily.look()
    rounds.ingest(daily.after(SETTLED).work)
    rounds.scan(daily.work, always=True)
    rounds.ingest(daily.work)
    rounds.tell(daily.work)
    (alarm,) = daily.told.messages
    assert alarm.title == f"2 profiles in {daily.root} cannot be read"
    assert [line.partition(": ")[0] for line in alarm.lines[:2]] == list(map(str, paths))


def test_two_that_tell_of_the_same_at_once_make_one_message(world):
    """A lease that ended too early lets two watchers in; the second one knew less when it looked."""
    world.broken("gpt/v1/a.json")
    world.broken("gpt/v1/b.json")
    world.look()
    rounds.ingest(world.after(SETTLED).work)
    rounds.scan(world.work, always=True)
    rounds.ingest(world.work)
    first, second = world.entries().values()
    store, now = world.store, world.now_ns

    def tell(*entries):
        alarm = Alarm("-".join(entry.path for entry in entries), "quarantined", "gpt", "bad profiles")
        return notify.alarm(store, ALERTS, alarm, now_ns=now, then=lambda connection: inbox.tell(connection, entries))

    assert [tell(first, second), tell(second)] == [1, 0]
    rounds.tell(world.work)
    assert world.told.titles() == ["bad profiles"]


@pytest.mark.parametrize("broken", ["_tell_of_shut", "_tell_of_quarantined", "tell_of_stuck"])
def test_an_alarm_that_fails_keeps_neither_others_nor_messages_from_going_out(daily, monkeypatch, broken):
    from tracker.errors import TrackerError

    def fail(work):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(alarms, broken, fail)
    daily.profile("gpt/v1/a.json")
    with pytest.raises(TrackerError, match="of the round 1 job failed: tell"):
        daily.settle()
    waiting = Alarm("1", "watcher", "", "that waited")
    notify.alarm(daily.store, ALERTS, waiting, now_ns=daily.now_ns)
    with pytest.raises(TrackerError, match="of the round 1 job failed: tell"):
        daily.after(DAY + 1).round()
    assert daily.told.titles() == ["that waited", "no run of gpt for 24 h"]
    assert daily.lines("failed")[0].startswith("tell: Traceback")


def test_what_was_said_of_a_thing_is_forgotten_when_many_others_were(daily):
    for number in range(3 * MOST_SAID):
        daily.work.say_once(f"folder {number}", Event("folder", "is not there"))
    assert len(daily.work.told) == MOST_SAID
    daily.work.say_once(f"folder {3 * MOST_SAID - 1}", Event("folder", "is not there"))
    assert len(daily.lines("folder")) == 3 * MOST_SAID, "the last ones are remembered"


def test_with_nobody_to_tell_everything_is_kept_until_there_is(daily):
    daily.work.settings = replace(daily.work.settings, alerts=Alerts())
    daily.broken("gpt/v1/a.json")
    daily.settle()
    daily.after(DAY).round()
    daily.after(DAY).round()
    assert daily.lines("missing") == [
        "no run of gpt for 24 h; there never was one since the watch began at 2023-11-14 22:13 UTC"
    ]
    daily.work.settings = replace(daily.work.settings, alerts=ALERTS)
    rounds.tell(daily.work)
    assert sorted(message.event for message in daily.told.messages) == ["missing_runs", "quarantined"]


def test_what_is_silenced_is_heard_when_the_silence_ends(daily):
    end = daily.now_ns + 2 * DAY
    silence = notifications.Silence(0, "*", "gpt", "*", "li", "moving", daily.now_ns, end)
    daily.store.transact(lambda connection: notifications.add_silence(connection, silence))
    daily.profile("gpt/v1/a.json")
    daily.settle()
    daily.after(DAY + 1).round()
    assert daily.told.messages == []
    daily.after(DAY).round()
    assert daily.told.titles() == ["no run of gpt for 24 h"]
