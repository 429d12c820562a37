"""From ready profiles to runs; one that cannot be read keeps no other one out."""

from __future__ import annotations

import errno
import json
import os
import re

import pytest

from tests.test_intake import write_trace
from tests.watch.world import DAY, HOUR, MINUTE, SETTLED, World
from tracker import intake
from tracker.config import Watch
from tracker.errors import SourceError, StoreError, TrackerError, UsageError
from tracker.hooks import spool
from tracker.intake import spooled
from tracker.intake.spooled import ATTEMPTS
from tracker.regressions import judgement
from tracker.store import inbox, queries, watchers
from tracker.watch import retry, rounds, status, take
from tracker.watch.take import in_order


def test_profiles_become_runs_under_the_labels_of_their_folders(world):
    world.profile("gpt/v1/a.json")
    world.profile("gpt/v2/run/rank0.json", rank=0)
    world.profile("gpt/v2/run/rank1.json", rank=1)
    assert world.settle() == {"gpt/v1/a.json": "ingested", "gpt/v2/run": "ingested"}
    assert world.runs() == [("gpt", "v1"), ("gpt", "v2")]
    entry = world.entries()["gpt/v2/run"]
    assert (entry.run_ids, entry.workload, entry.version, entry.arrived_ns) == ("2", "gpt", "v2", world.now_ns)
    assert world.lines("ingested") == [
        "gpt/v1/a.json: run:1 new, v1 of gpt",
        "gpt/v2/run: run:2 new, v2 of gpt",
    ]


def test_packs_become_runs_under_what_they_were_packed_with_and_else_their_folders(world, tmp_path):
    for name, said in (("a", {"version": "v1.1"}), ("b", {})):
        made = intake.pack([write_trace(tmp_path / f"{name}.json", kernel_us=ord(name))], asked=intake.Sidecar(**said))
        (world.root / "gpt" / "v1").mkdir(parents=True, exist_ok=True)
        (world.root / "gpt" / "v1" / f"{name}.trk").write_bytes(made.content)
    assert world.settle() == {"gpt/v1/a.trk": "ingested", "gpt/v1/b.trk": "ingested"}
    assert sorted(world.runs()) == [("gpt", "v1"), ("gpt", "v1.1")]


def test_what_settings_and_layout_say_goes_with_the_run(store, tmp_path):
    world = World(
        store,
        tmp_path / "profiles",
        layout="{version}-b{config.batch}/*",
        workload="gpt",
        config={"gpus": "8"},
        tags={"queue": "night"},
        device="NVIDIA H200",  # the trace knows better
        expect_ranks=2,
    )
    world.profile("v1-b32/a.json", rank=0)
    world.settle()
    run = queries.runs(store).frame.iloc[0]
    assert (run["workload"], run["version"], run["device"], run["ranks_expected"]) == ("gpt", "v1", "H100", 2)
    assert set(run["configuration"].split()) == {"batch=32", "gpus=8", "world_size=2"}
    assert "night" in run["tags"]


def test_what_a_profile_says_of_itself_goes_before_its_folders(store, tmp_path):
    world = World(store, tmp_path / "profiles", config={"batch": "32"})
    path = world.profile("gpt/v1/a.json")
    path.with_name("a.json.tracker.json").write_text('{"version": "v1-rc2", "configuration": {"batch": "64"}}')
    assert world.settle() == {"gpt/v1/a.json": "ingested"}
    run = queries.runs(store).frame.iloc[0]
    assert (run["workload"], run["version"], run["configuration"]) == ("gpt", "v1-rc2", "batch=64")
    assert world.entries()["gpt/v1/a.json"].version == "v1-rc2"


def test_what_jobs_queued_is_taken_too_and_what_cannot_be_read_is_told_of(world, tmp_path):
    place = tmp_path / "spool"
    for name in ("good", "bad"):
        path = write_trace(tmp_path / f"{name}.json") if name == "good" else tmp_path / "gone.json"
        spool.add(str(place), {"profile": str(path), "said": {"workload": "gpt", "version": "v9"}}, now_ns=world.now_ns)
    world.work.spools = lambda: [place]
    world.round()
    assert world.runs() == [("gpt", "v9")]
    assert world.lines("ingested") == [f"{tmp_path}/good.json: run:1 new, v9 of gpt"]
    (put_off,) = world.lines("put off")
    assert put_off.startswith(f"{tmp_path}/gone.json: no such file or folder; check the path (attempt 1, ")
    for _ in range(ATTEMPTS + 1):
        world.after(DAY).round()
    (message,) = world.told.messages
    assert (message.event, message.title) == ("quarantined", "a profile that a job queued cannot be read")
    (left,) = status(world.store, now_ns=world.now_ns, spools=[place]).spooled
    assert (left.profile, left.is_given_up, left.attempts) == (f"{tmp_path}/gone.json", True, ATTEMPTS)


def test_a_bad_profile_is_quarantined_with_its_error_stays_as_it_is_and_stops_nobody(world):
    bad = world.broken("gpt/v1/a.json")
    before = (bad.read_bytes(), bad.stat().st_mtime_ns, sorted(path.name for path in bad.parent.iterdir()))
    world.profile("gpt/v1/b.json")
    assert world.settle() == {"gpt/v1/a.json": "quarantined", "gpt/v1/b.json": "ingested"}
    assert (bad.read_bytes(), bad.stat().st_mtime_ns, sorted(p.name for p in bad.parent.iterdir() if p != bad)) == (
        before[0],
        before[1],
        ["b.json"],
    )
    (said,) = world.lines("quarantined")
    assert said.startswith("gpt/v1/a.json: ")
    assert said.count("a.json") == 1
    assert world.after(DAY).round()["gpt/v1/a.json"] == "quarantined"
    assert len(world.lines("quarantined")) == 1  # it is not read again and again


def test_what_no_reader_knows_says_what_to_write_into_the_settings(world):
    world.broken("gpt/v1/a.pt.trace.json").write_text('{"traceEvents": [')
    world.settle()
    assert 'format = "NAME" in [[watch.folders]]' in world.entries()["gpt/v1/a.pt.trace.json"].reason


def test_a_quarantined_profile_is_tried_again_when_its_files_change(world):
    world.broken("gpt/v1/a.json")
    world.settle()
    world.profile("gpt/v1/a.json")
    assert world.look() == {"gpt/v1/a.json": "waiting"}
    assert world.after(SETTLED).round() == {"gpt/v1/a.json": "ingested"}
    assert world.entries()["gpt/v1/a.json"].reason == ""


def test_a_quarantined_profile_is_tried_again_when_somebody_says_so(world):
    for name in ("gpt/v1/a.json", "gpt/v2/b.json", "bert/v1/c.json"):
        world.broken(name)
    world.settle()
    assert retry(world.store, str(world.root / "gpt/v1"), now_ns=world.now_ns) == [str(world.root / "gpt/v1/a.json")]
    assert sorted(world.states().values()) == ["quarantined", "quarantined", "ready"]
    assert len(retry(world.store, "all", now_ns=world.now_ns)) == 2
    with pytest.raises(UsageError, match="nothing is quarantined; tracker status lists what is"):
        retry(world.store, "all", now_ns=world.now_ns)
    assert set(world.round().values()) == {"quarantined"}
    with pytest.raises(UsageError, match="gpt/v3: nothing there is quarantined"):
        retry(world.store, str(world.root / "gpt/v3"), now_ns=world.now_ns)
    with pytest.raises(UsageError, match="~nobody-here: nothing there is quarantined"):
        retry(world.store, "~nobody-here", now_ns=world.now_ns)


def test_ranks_that_come_later_join_their_run(world):
    world.profile("gpt/v1/run/rank0.json", rank=0)
    world.settle()
    world.profile("gpt/v1/run/rank1.json", rank=1)
    assert world.look() == {"gpt/v1/run": "waiting"}
    assert world.after(SETTLED).round() == {"gpt/v1/run": "ingested"}
    assert world.runs() == [("gpt", "v1")]
    assert queries.runs(world.store).frame["ranks"].tolist() == [2]
    assert world.lines("ingested")[-1] == "gpt/v1/run: run:1 ranks added, v1 of gpt"


def test_a_profile_without_labels_says_what_is_missing(store, tmp_path):
    world = World(store, tmp_path / "profiles", layout="*")
    world.profile("a.json")
    assert world.settle() == {"a.json": "quarantined"}
    assert "a.json states no workload" in world.entries()["a.json"].reason


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.ESTALE, errno.ENOMEM])
def test_what_is_not_the_profiles_fault_is_tried_again_after_a_pause(world, monkeypatch, number):
    world.profile("gpt/v1/a.json")
    real = intake.ingest

    def refuse(*_, **__):
        raise SourceError("a.json", "", "cannot be read") from OSError(number, os.strerror(number))

    monkeypatch.setattr(intake, "ingest", refuse)
    assert world.settle() == {"gpt/v1/a.json": "ready"}
    entry = world.entries()["gpt/v1/a.json"]
    assert (entry.attempts, entry.next_try_ns) == (1, world.now_ns + MINUTE)
    assert world.lines("put off") == ["gpt/v1/a.json: a.json: cannot be read"]
    world.after(MINUTE).round()
    assert world.entries()["gpt/v1/a.json"].next_try_ns == world.now_ns + 5 * MINUTE
    monkeypatch.setattr(intake, "ingest", real)
    assert world.after(5 * MINUTE - 1).round() == {"gpt/v1/a.json": "ready"}
    assert world.after(1).round() == {"gpt/v1/a.json": "ingested"}
    assert world.entries()["gpt/v1/a.json"].attempts == 0
    assert world.told.messages == []


def test_a_profile_that_may_not_be_read_is_quarantined_and_read_once_it_may(local, monkeypatch):
    path = local.profile("gpt/v1/a.json")
    real_open, real_access = intake.ingest, os.access

    def refuse(*_, **__):
        raise SourceError(path, "", "cannot be read (Permission denied)") from PermissionError(13, "Permission denied")

    monkeypatch.setattr(intake, "ingest", refuse)
    monkeypatch.setattr(os, "access", lambda place, mode, **_: False)
    assert local.settle() == {"gpt/v1/a.json": "quarantined"}
    monkeypatch.setattr(intake, "ingest", real_open)
    monkeypatch.setattr(os, "access", real_access)
    local.look()
    assert local.after(SETTLED).round() == {"gpt/v1/a.json": "ingested"}


def test_a_fault_of_tracker_itself_is_shown_whole_and_stops_nobody(world, monkeypatch):
    world.profile("gpt/v1/a.json")
    world.profile("gpt/v1/b.json")
    real = intake.ingest

    def fail(store, paths, **more):
        if paths[0].name == "a.json":
            raise ZeroDivisionError("oh")
        return real(store, paths, **more)

    monkeypatch.setattr(intake, "ingest", fail)
    assert world.settle() == {"gpt/v1/a.json": "quarantined", "gpt/v1/b.json": "ingested"}
    assert world.entries()["gpt/v1/a.json"].reason == (
        "tracker itself failed on this: ZeroDivisionError: oh; please report it"
    )
    (traceback,) = world.lines("failed")
    assert "in fail" in traceback


def test_what_another_watcher_reads_is_left_alone_until_its_lease_ends(world, store):
    world.profile("gpt/v1/a.json")
    world.look()
    world.after(SETTLED).look()
    (entry,) = world.entries().values()
    assert inbox.start(store, entry, "node1:2:b", now_ns=world.now_ns)
    assert world.after(watchers.LEASE_LIFETIME_NS - 1).round() == {"gpt/v1/a.json": "working"}
    assert world.runs() == []
    assert world.after(1).round() == {"gpt/v1/a.json": "ingested"}
    # the other one was only slow: what it says now changes nothing
    inbox.finish(store, entry, "node1:2:b", inbox.End("quarantined", "oh"), now_ns=world.now_ns)
    assert world.states() == {"gpt/v1/a.json": "ingested"}


def test_a_profile_that_changes_under_the_reader_is_read_again(world, monkeypatch):
    world.profile("gpt/v1/run/rank0.json", rank=0)
    real = intake.ingest

    def grow(store, paths, **more):
        done = real(store, paths, **more)
        if not (world.root / "gpt/v1/run/rank1.json").exists():
            world.profile("gpt/v1/run/rank1.json", rank=1)
        return done

    monkeypatch.setattr(intake, "ingest", grow)
    assert world.settle() == {"gpt/v1/run": "ingested"}
    assert world.look() == {"gpt/v1/run": "waiting"}
    assert world.entries()["gpt/v1/run"].run_ids == "1"
    world.after(SETTLED).round()
    assert queries.runs(world.store).frame["ranks"].tolist() == [2]


def test_a_profile_that_changed_since_the_look_waits(world):
    path = world.profile("gpt/v1/a.json")
    world.look()
    world.after(SETTLED).look()
    path.write_text(path.read_text() + " ")
    take.take(world.work)
    assert (world.states(), world.runs()) == ({"gpt/v1/a.json": "waiting"}, [])


def test_runs_whose_judgement_was_cut_off_are_judged_by_whoever_comes_next(world, store, monkeypatch):
    world.profile("gpt/v1/a.json")
    world.profile("gpt/v2/b.json")
    real = judgement.update

    def die(*_):
        raise StoreError("gone")

    monkeypatch.setattr(judgement, "update", die)
    with pytest.raises(TrackerError, match="of the round 2 jobs failed: judge, nightly"):
        world.settle()
    monkeypatch.setattr(judgement, "update", real)
    assert len(queries.runs(store).frame) == 2
    after = World(store, world.root, owner="node1:2:b")
    after.round()
    assert after.lines("judged") == ["2 versions"]
    assert real(store, judgement.tracks_of(store)) == 0


def test_a_line_is_judged_once_for_all_that_came(world, monkeypatch):
    world.round()
    lines = []
    real = judgement.update
    monkeypatch.setattr(judgement, "update", lambda store, these: lines.append(list(these)) or real(store, these))
    for name in ("gpt/v1/a.json", "gpt/v1/b.json", "gpt/v2/c.json", "bert/v1/d.json"):
        world.profile(name)
    world.settle()
    assert [len(these) for these in lines] == [2]
    assert world.lines("judged") == ["3 versions"]
    world.after(MINUTE).round()
    assert [len(these) for these in lines] == [2, 0]


def entry(path: str, written_s: int, workload: str = "gpt") -> inbox.Entry:
    values = dict.fromkeys(inbox.Entry.__struct_fields__)
    return inbox.Entry(
        **{**values, "path": path, "written_ns": written_s * 10**9, "workload": workload, "folder_id": 1}
    )


@pytest.mark.parametrize(
    ("known", "order"),
    [
        # nightly profiles go by their time, whatever they are called
        ([("zeta", 0), ("alpha", 86_400), ("beta", 2 * 86_400)], ["zeta", "alpha", "beta"]),
        # what was copied at once goes by its name, and v10 comes behind v9
        ([("v10/a", 0), ("v9/a", 3), ("v1/b", 60), ("v1/a", 61)], ["v1/a", "v1/b", "v9/a", "v10/a"]),
    ],
)
def test_profiles_come_in_the_order_of_their_versions(known, order):
    entries = [entry(path, written) for path, written in known]
    assert [one.path for one in in_order(entries)] == order


def test_workloads_do_not_mix_their_orders():
    known = [entry("a/v2", 500, "a"), entry("a/v1", 501, "a"), entry("b/v1", 0, "b"), entry("b/v0", 86_400, "b")]
    assert [one.path for one in in_order(known)] == ["b/v1", "b/v0", "a/v1", "a/v2"]


def test_no_profile_is_begun_after_the_time_of_a_job(world):
    for name in ("a", "b", "c"):
        world.profile(f"gpt/v1/{name}.json")
    world.look()
    world.after(SETTLED).look()
    clock = iter(range(world.now_ns, world.now_ns + 1000))
    world.work.now = lambda: next(clock)
    take.take(world.work, until_ns=world.now_ns + 3)
    assert len(world.runs()) == 1


def test_a_run_that_was_relabelled_is_not_taken_back_by_its_folder(world, store):
    from tracker.store import runs

    world.profile("gpt/v1/run/rank0.json", rank=0)
    world.settle()
    runs.edit_all(store, [1], version="v1-fixed")
    world.profile("gpt/v1/run/rank1.json", rank=1)
    world.look()
    assert world.after(SETTLED).round() == {"gpt/v1/run": "quarantined"}
    assert "tracker runs edit 1 --version v1" in world.entries()["gpt/v1/run"].reason
    assert json.dumps(world.runs()) == '[["gpt", "v1-fixed"]]'


def test_a_next_try_that_lies_years_ahead_is_due_now(world, monkeypatch):
    world.profile("gpt/v1/a.json")
    world.look()
    world.after(SETTLED).look()
    real = intake.ingest

    def refuse(*_, **__):
        world.now_ns += 1000 * DAY
        raise SourceError("a.json", "", "cannot be read") from OSError(errno.EIO, "")

    monkeypatch.setattr(intake, "ingest", refuse)
    rounds.ingest(world.work)
    assert world.states() == {"gpt/v1/a.json": "ready"}
    monkeypatch.setattr(intake, "ingest", real)
    world.now_ns -= 1000 * DAY
    rounds.ingest(world.work)
    assert world.states() == {"gpt/v1/a.json": "ingested"}


def test_a_profile_that_takes_too_long_is_given_up_and_the_next_one_comes_in(local, monkeypatch):
    local.profile("gpt/v1/a.json")
    local.profile("gpt/v2/b.json")
    real, limits = intake.ingest, iter([50_000_000, HOUR])

    def hang(store, paths, **options):
        if paths[0].name == "a.json":
            re.search("(a*)*b", "a" * 100)  # for ever, within one call of C
        return real(store, paths, **options)

    monkeypatch.setattr(intake, "ingest", hang)
    monkeypatch.setattr(Watch, "limit_ns", property(lambda _: next(limits)))
    assert local.settle() == {"gpt/v1/a.json": "quarantined", "gpt/v2/b.json": "ingested"}
    (said,) = local.lines("quarantined")
    assert said == (
        "gpt/v1/a.json: reading it took longer than 30m; raise watch.limit in the settings, or ingest it alone"
    )


def test_a_queued_profile_that_takes_too_long_is_put_off(local, tmp_path, monkeypatch):
    place = tmp_path / "spool"
    spool.add(str(place), {"profile": str(local.profile("a.json"))}, now_ns=1)
    local.work.spools = lambda: [place]
    monkeypatch.setattr(spooled, "ingest_of_job", lambda *_, **__: re.search("(a*)*b", "a" * 100))
    monkeypatch.setattr(Watch, "limit_ns", 50_000_000)
    rounds.ingest(local.work)
    (said,) = local.lines("put off")
    assert "reading it took longer than 30m" in said
