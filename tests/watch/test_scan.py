"""When a profile is complete: it stood still for long enough, and its profiler is done with it."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.watch.world import DAY, MINUTE, SECOND, SETTLED, World
from tracker import readers
from tracker.config import Folder, Watch
from tracker.errors import StoreError
from tracker.limits.touch import LateError
from tracker.watch import rounds, scan, status, this_host
from tracker.watch.content import BELIEVED_AGE_NS

DATA = Path(__file__).parents[1] / "data"
ASCEND = next((DATA / "ascend_text").glob("worker-1_*"))
CAPTURE = ASCEND.name


@pytest.mark.parametrize(
    ("waited", "state"),
    [(0, "waiting"), (SETTLED - 1, "waiting"), (SETTLED, "ready"), (DAY, "ready")],
)
def test_a_profile_is_ready_once_it_stood_still_for_long_enough(world, waited, state):
    world.profile("gpt/v1/a.json")
    world.look()
    assert world.after(waited).look() == {"gpt/v1/a.json": state}


def test_a_profile_that_grows_between_looks_is_not_taken(world):
    path = world.profile("gpt/v1/a.json")
    world.look()
    for _ in range(5):
        with path.open("a") as file:
            file.write(" ")
        assert world.after(SETTLED - SECOND).round() == {"gpt/v1/a.json": "waiting"}
    assert world.after(SETTLED).round() == {"gpt/v1/a.json": "ingested"}


def test_a_rank_that_is_still_written_holds_back_the_others(world):
    world.profile("gpt/v1/run/rank0.json", rank=0)
    part = world.root / "gpt/v1/run/rank1.json.part"
    part.write_text("{")
    world.look()
    part.write_text('{"traceEvents": [')
    assert world.after(SETTLED).look() == {"gpt/v1/run": "waiting"}
    # whoever wrote it died: what is there is taken, without the part
    assert world.after(SETTLED).round() == {"gpt/v1/run": "ingested"}
    assert world.runs() == [("gpt", "v1")]


def test_what_was_written_long_ago_needs_no_second_look(world):
    world.profile("gpt/v1/a.json")
    world.now_ns = time.time_ns() + BELIEVED_AGE_NS + MINUTE
    assert world.look() == {"gpt/v1/a.json": "ready"}


def test_a_time_in_the_future_or_one_that_was_set_makes_nothing_older(world):
    for name, mtime in (("past.json", 1), ("future.json", 4_000_000_000)):
        os.utime(world.profile(f"gpt/v1/{name}"), (mtime, mtime))
    world.now_ns = time.time_ns()
    assert set(world.look().values()) == {"waiting"}
    assert set(world.after(SETTLED).look().values()) == {"ready"}


def test_a_clock_that_goes_back_costs_a_wait_and_no_more(world):
    world.profile("gpt/v1/a.json")
    world.look()
    assert world.after(-DAY).look() == {"gpt/v1/a.json": "waiting"}
    assert world.after(SETTLED).look() == {"gpt/v1/a.json": "ready"}


def test_a_restart_goes_on_waiting_where_it_was(world, store):
    world.profile("gpt/v1/a.json")
    world.look()
    after = World(store, world.root, owner="node1:2:b")
    after.now_ns = world.now_ns
    assert after.after(SETTLED).round() == {"gpt/v1/a.json": "ingested"}


def test_machines_do_not_mix_up_what_lies_under_the_same_path(world, store, tmp_path):
    world.profile("gpt/v1/a.json")
    world.look()
    other = World(store, world.root, host="node2", owner="node2:1:b")
    other.look()
    assert sorted(entry.host for entry in rounds.inbox.entries(store)) == ["node1", "node2"]


def test_a_shared_folder_is_the_same_for_all_machines(store, tmp_path):
    one = World(store, tmp_path / "profiles", shared=True)
    other = World(store, tmp_path / "profiles", host="node2", owner="node2:1:b", shared=True)
    one.profile("gpt/v1/a.json")
    one.look()
    assert other.after(SETTLED).round() == {"gpt/v1/a.json": "ingested"}
    assert one.after(SETTLED).round() == {"gpt/v1/a.json": "ingested"}
    assert len(one.runs()) == 1


def test_a_watcher_does_not_look_where_another_one_just_did(store, tmp_path):
    one = World(store, tmp_path / "profiles")
    other = World(store, tmp_path / "profiles", owner="node1:2:b")
    rounds.scan(one.work)
    one.profile("gpt/v1/a.json")
    rounds.scan(other.after(29 * SECOND).work)
    assert other.states() == {}
    rounds.scan(other.after(2 * SECOND).work)
    assert other.states() == {"gpt/v1/a.json": "waiting"}


def test_what_is_no_profile_is_passed_over_and_what_failed_to_be_one_is_not(world):
    for name, content in {
        "notes.md": "see wiki",
        "config.json": "{}",
        "_SUCCESS": "",
        "stdout.log": "",
        "empty.json": "",
        "x.pt.trace.json": "{broken",
        "logs/out.txt": "hello",
    }.items():
        path = world.root / "gpt/v1" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    states = {Path(path).name: state for path, state in world.settle().items()}
    assert {name for name, state in states.items() if state == "passed"} == {
        "notes.md", "config.json", "_SUCCESS", "stdout.log", "logs",
    }  # fmt: skip
    assert {name for name, state in states.items() if state == "quarantined"} == {"empty.json", "x.pt.trace.json"}
    assert world.entries()["gpt/v1/logs"].reason == "no profile in this folder"


def test_what_is_gone_is_forgotten_unless_it_became_runs(world):
    world.profile("gpt/v1/a.json")
    world.broken("gpt/v1/b.json")
    world.settle()
    shutil.rmtree(world.root / "gpt")
    assert world.look() == {}
    (left,) = rounds.inbox.entries(world.store)
    assert (left.state, left.gone_ns) == ("ingested", world.now_ns)
    world.profile("gpt/v1/a.json")
    world.look()
    assert world.after(SETTLED).round() == {"gpt/v1/a.json": "ingested"}
    assert world.runs() == [("gpt", "v1")]


def test_a_folder_that_cannot_be_reached_for_a_while_loses_nothing(world):
    world.profile("gpt/v1/a.json")
    world.broken("gpt/v1/b.json")
    before = world.settle()
    away = world.root.rename(world.root.with_name("unmounted"))
    assert world.round() == before
    problem = f"{world.root}: cannot be looked into (No such file or directory)"
    assert [folder.error for folder in rounds.watchers.folders(world.store)] == [problem]
    world.after(MINUTE).round()
    away.rename(world.root)
    assert world.after(MINUTE).round() == before
    assert [folder.error for folder in rounds.watchers.folders(world.store)] == [""]
    assert world.lines("folder") == [problem, f"{world.root}: all of it can be looked at again"]  # each said once


def ascend(world, name=CAPTURE, *, parsed=True, done=False) -> Path:
    path = world.root / "gpt/v1" / name
    shutil.copytree(ASCEND, path)
    raw = path / "FRAMEWORK"
    raw.mkdir()
    (raw / "torch.op_range").write_text("raw")
    if not parsed:
        shutil.rmtree(path / "ASCEND_PROFILER_OUTPUT")
    if done:
        (path / "ASCEND_PROFILER_OUTPUT" / "analyse.done").touch()
    return path


def test_a_capture_that_is_not_parsed_waits_and_says_how_to_parse_it(world):
    path = ascend(world, parsed=False)
    assert world.settle() == {f"gpt/v1/{CAPTURE}": "waiting"}
    reason = world.entries()[f"gpt/v1/{CAPTURE}"].reason
    assert reason.startswith(f'{CAPTURE} is not parsed yet; parse it: python -c "from torch_npu')
    shutil.copytree(ASCEND / "ASCEND_PROFILER_OUTPUT", path / "ASCEND_PROFILER_OUTPUT")
    world.look()
    assert world.after(SETTLED).round() == {f"gpt/v1/{CAPTURE}": "ingested"}


def test_a_capture_that_is_never_parsed_is_quarantined_after_a_day(world):
    ascend(world, parsed=False)
    world.settle()
    assert world.after(DAY - SETTLED - 1).round() == {f"gpt/v1/{CAPTURE}": "waiting"}
    assert world.after(1).round() == {f"gpt/v1/{CAPTURE}": "quarantined"}
    assert "the capture was never parsed" in world.entries()[f"gpt/v1/{CAPTURE}"].reason


def test_where_one_capture_has_the_mark_of_a_parser_the_others_wait_for_it(world):
    """Parsing takes minutes in which no file changes; analyse.done is written last."""
    ascend(world, "node_1_20250101000000000_ascend_pt", done=True)
    late = ascend(world, "node_2_20250101000000000_ascend_pt")
    states = world.settle()
    assert sorted(states.values()) == ["ingested", "waiting"]
    reason = "node_2_20250101000000000_ascend_pt has no analyse.done yet, which the captures beside it have"
    assert world.entries()[f"gpt/v1/{late.name}"].reason == reason
    (late / "ASCEND_PROFILER_OUTPUT" / "analyse.done").touch()
    world.look()
    assert world.after(SETTLED).states()[f"gpt/v1/{late.name}"] == "waiting"
    world.round()
    assert world.states()[f"gpt/v1/{late.name}"] != "waiting"


def test_captures_of_parsers_that_leave_no_mark_wait_for_none(world):
    ascend(world)
    assert world.settle() == {f"gpt/v1/{CAPTURE}": "ingested"}


def test_a_folder_that_may_not_be_entered_keeps_no_other_profile_out(local, monkeypatch):
    local.profile("gpt/v1/a.json")
    local.profile("gpt/v2/b.json")
    local.settle()
    stat, shut = os.stat, str(local.root / "gpt/v1")

    def refuse(place, **more):
        if not isinstance(place, int) and str(place).startswith(shut):
            raise PermissionError(13, "Permission denied")
        return stat(place, **more)

    local.profile("gpt/v3/c.json")
    monkeypatch.setattr(os, "stat", refuse)
    local.settle()
    monkeypatch.undo()
    assert local.states() == dict.fromkeys(("gpt/v1/a.json", "gpt/v2/b.json", "gpt/v3/c.json"), "ingested")
    assert local.lines("folder") == ["gpt/v1: cannot be looked into (Permission denied)"]


def test_a_profile_with_a_folder_that_nobody_may_look_into_waits_until_it_is_whole(local, monkeypatch):
    really, shut = os.scandir, local.root / "gpt/v1/run/rank1"
    local.profile("gpt/v1/run/rank0/a.json")
    local.profile("gpt/v1/run/rank1/b.json")

    def refuse(place="."):
        if Path(place) == shut:
            raise PermissionError(13, "Permission denied", str(place))
        return really(place)

    monkeypatch.setattr(os, "scandir", refuse)
    assert local.settle() == {}
    assert local.lines("folder") == ["gpt/v1/run/rank1: cannot be looked into (Permission denied)"]
    monkeypatch.undo()
    assert local.settle() == {"gpt/v1/run": "ingested"}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(2, "No such file or directory"), "cannot be looked into (No such file or directory)"),
        (ZeroDivisionError("oh"), "tracker itself failed on this: ZeroDivisionError: oh; please report it"),
    ],
)
def test_a_profile_that_cannot_be_looked_at_keeps_no_other_one_out(local, monkeypatch, error, said):
    for name in "ab":
        local.profile(f"gpt/v1/{name}.json")
    survey = readers.survey

    def fail(path, *more):
        if path.name == "a.json":
            raise error
        return survey(path, *more)

    monkeypatch.setattr(readers, "survey", fail)
    assert local.settle() == {"gpt/v1/a.json": "waiting", "gpt/v1/b.json": "ingested"}
    assert local.lines("folder") == [f"gpt/v1/a.json: {said}"]
    monkeypatch.undo()
    assert local.settle()["gpt/v1/a.json"] == "ingested"


def test_a_folder_that_fails_keeps_no_other_one_from_being_looked_at(world, tmp_path, monkeypatch):
    world.profile("gpt/v1/a.json")
    bad, worse = tmp_path / "bad", tmp_path / "worse"
    folders = (Folder(path=str(bad)), Folder(path=str(worse)), world.folder)
    world.work.settings = replace(world.work.settings, watch=Watch(folders=folders))
    look = scan.listing

    def fail(folder, root, left_out):
        if root != world.root:
            raise ZeroDivisionError(root.name)
        return look(folder, root, left_out)

    monkeypatch.setattr(scan, "listing", fail)
    with pytest.raises(ZeroDivisionError, match="bad"):
        rounds.scan(world.work)
    assert world.states() == {"gpt/v1/a.json": "waiting"}
    (said,) = world.lines("failed")  # of the first one whoever called says it
    assert said.endswith("ZeroDivisionError: worse")


def test_a_database_that_is_away_is_not_asked_once_per_folder(world, monkeypatch):
    tried = []

    def away(folder, root, left_out):
        tried.append(root)
        raise StoreError("it is away")

    monkeypatch.setattr(scan, "listing", away)
    world.work.settings = replace(world.work.settings, watch=Watch(folders=(world.folder, Folder(path="/other"))))
    with pytest.raises(StoreError):
        rounds.scan(world.work)
    assert tried == [world.root]


def test_what_fits_no_layout_is_named_by_the_watcher_and_its_status(world, tmp_path):
    world = World(world.store, tmp_path / "own", host=this_host())
    world.profile("gpt/v1/a.json")
    (world.root / "README.md").write_text("text")
    (world.root / "gpt" / "stray.json").write_text("{}")
    world.look()
    world.look()
    said = [event.text for event in world.said if event.what == "passed over"]
    assert said == [f"2 paths outside the layout: {world.root / 'README.md'}, {world.root / 'gpt' / 'stray.json'}"]
    (folder,) = status(world.store, now_ns=world.now_ns).folders
    whys = [(Path(path).name, why) for path, why in folder.not_taken]
    assert whys == [("README.md", "fits no part of the layout"), ("stray.json", "fits no part of the layout")]


def test_a_path_that_never_answers_hides_nothing_else_and_is_waited_for_once_in_a_while(world, monkeypatch):
    world.profile("gpt/v1/a.json")
    world.profile("stuck/v1/a.json")
    stuck = world.root / "stuck"
    waited = []
    really = os.listdir

    def list_names(path):
        if Path(path) == stuck:
            waited.append(path)
            raise LateError(path, 60)  # what the process that looks at files is killed for
        return really(path)

    monkeypatch.setattr(os, "listdir", list_names)
    assert world.look() == {"gpt/v1/a.json": "waiting"}
    (folder,) = status(world.store, now_ns=world.now_ns).folders
    assert "stuck: to look at it took longer than 60 s" in folder.error
    assert world.after(SETTLED).look() == {"gpt/v1/a.json": "ready"}
    assert len(waited) == 1
    monkeypatch.undo()
    assert world.after(15 * MINUTE).look() == {"gpt/v1/a.json": "ready", "stuck/v1/a.json": "waiting"}
