"""The functions that change a database do what their commands do."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tracker
from tests.factories import save
from tests.regressions import made
from tracker.errors import SourceError, UsageError
from tracker.regressions.judgement import tracks_of, update

SAMPLES = Path(tracker.__file__).parent / "samples"


@pytest.fixture
def store(memory_store):
    """op07 is slower in v2: a finding of the op, and one of its shapes below it."""
    made.runs(memory_store, "v1", count=5)
    made.runs(memory_store, "v2", {"op07": 1.5}, start=5)
    update(memory_store, tracks_of(memory_store))
    return memory_store


def state_of(store, number):
    return tracker.explain(number, store=store).finding.state


def test_marks_change_the_state_of_findings(store):
    number = int(tracker.findings(store=store).findings["finding_id"][0])
    done = tracker.ack(number, reason="ticket 7", by="ann", store=store)
    assert number in done and state_of(store, number) == "acknowledged"
    assert tracker.mute([number], until="3d", reason="later", store=store) == done
    assert state_of(store, number) == "muted"
    assert tracker.unmute(str(number), reason="now", store=store) == done
    assert tracker.mute(number, until=datetime.now(UTC) + timedelta(days=1), reason="x", store=store) == done
    assert tracker.mute(number, until="future:v9", reason="x", store=store) == done
    tracker.expect("I-1", reason="meant so", store=store)
    assert state_of(store, number) == "expected"
    tracker.invalid("I-1", reason="noise", store=store)
    assert state_of(store, number) == "invalid"
    events = tracker.explain(number, store=store).events
    assert "ann" in events["who"].tolist()


def test_operators_are_muted_by_pattern_until_unmuted(store):
    number = tracker.mute_operators("op*", until="3d", reason="rewritten", workload="gpt", store=store)
    assert tracker.unmute(f"silence:{number}", reason="done", store=store) == []
    with pytest.raises(UsageError, match="no silence"):
        tracker.unmute(f"silence:{number}", reason="done", store=store)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda store: tracker.ack(999, reason="r", store=store), "finding 999"),
        (lambda store: tracker.ack(1, reason=" ", store=store), "reason"),
        (lambda store: tracker.mute(1, until="2020-01-01", reason="r", store=store), "must be in the future"),
        (lambda store: tracker.mute(1, until="9999999w", reason="r", store=store), "too late"),
        (lambda store: tracker.mute(1, until="version:v9", reason="r", store=store), "newest: v1, v2"),
        (lambda store: tracker.mute_operators("*", until="version:v1", reason="r", store=store), "ends at a time"),
        (lambda store: tracker.edit_runs(1, store=store), "nothing to change"),
        (lambda store: tracker.edit_runs("x", version="v2", store=store), "'x' is not a run number"),
        (lambda store: tracker.exclude_runs(1, reason="a\nb", store=store), "control characters"),
        (lambda store: tracker.tag_runs([1, 99], {"a": "b"}, store=store), "99"),
        (lambda store: tracker.order_versions("v1", after="v2", before="v2", store=store), "--after and --before"),
        (lambda store: tracker.pin_version("v9", store=store), "no version 'v9'"),
        (lambda store: tracker.prune(older_than="soon", store=store), "--older-than"),
    ],
)
def test_what_cannot_be_done_is_an_error_and_changes_nothing(store, call, problem):
    before = tracker.runs(store=store, state="all"), tracker.findings(store=store).findings
    with pytest.raises(UsageError, match=problem):
        call(store)
    after = tracker.runs(store=store, state="all"), tracker.findings(store=store).findings
    assert all(one.equals(other) for one, other in zip(before, after, strict=True))


def test_runs_are_edited_tagged_excluded_restored_and_deleted(store):
    def run(number):
        rows = tracker.runs(store=store, state="all")
        return rows[rows["run_id"] == number].iloc[0]

    assert tracker.edit_runs(["run:1", 2], version="v0", note="moved", store=store) == [1, 2]
    assert (run(1)["version"], run(2)["note"]) == ("v0", "moved")
    tracker.edit_runs(1, configuration={"batch": 8}, device="NVIDIA H200", store=store)
    assert (run(1)["configuration"], run(1)["device"]) == ("batch=8", "H200")
    tracker.tag_runs(1, {"image": "a"}, store=store)
    assert run(1)["tags"] == "image=a"
    tracker.untag_runs(1, "image", store=store)
    tracker.exclude_runs(1, reason="noisy", store=store)
    assert (run(1)["state"], run(1)["state_reason"]) == ("excluded", "noisy")
    tracker.restore_runs(1, store=store)
    tracker.delete_runs(1, reason="wrong", store=store)
    assert run(1)["state"] == "deleted"
    assert tracker.delete_runs([1, 2], reason="wrong", purge=True, store=store) == [1, 2]
    assert not {1, 2} & set(tracker.runs(store=store, state="all")["run_id"])


def test_versions_are_ordered_and_pinned(store):
    assert tracker.order_versions("v2", before="v1", store=store) == ["v2", "v1"]
    assert tracker.findings(store=store, direction="regression").findings.empty, "v2 comes first now"
    assert tracker.order_versions(["v1", "v2"], store=store) == ["v1", "v2"]
    assert tracker.pin_version("v1", store=store) == "v1"
    assert tracker.versions(store=store)["pinned"].tolist() == [True, False]
    assert tracker.unpin_version("v1", store=store) == "v1"


def test_prune_deletes_details_of_old_runs(memory_store):
    for version, age in (("v1", 10**9), ("v2", 1)):
        save(memory_store, version, started_at_ns=time.time_ns() - age * 10**9)
    arguments = {"older_than": "1d", "keep_versions": 1, "store": memory_store}
    (run,) = tracker.prune(dry_run=True, **arguments)
    assert (run.version, [one.run_id for one in tracker.prune(**arguments)]) == ("v1", [run.run_id])
    assert tracker.prune(**arguments) == []


def test_pack_writes_a_file_that_an_ingest_reads(tmp_path, memory_store):
    profile, target = SAMPLES / "v01" / "run1.pt.trace.json.gz", tmp_path / "run.trk"
    made = tracker.pack(profile, target, version="v1", workload="gpt", tags={"image": "a"})
    assert (made.content, made.ranks, made.unsaid) == (target.read_bytes(), (), ())
    stored = tracker.ingest(target, store=memory_store)
    assert stored[["version", "workload"]].to_numpy().tolist() == [["v1", "gpt"]]
    with pytest.raises(SourceError, match="exists already"):
        tracker.pack(profile, target)
    assert tracker.pack(profile, target, force=True).unsaid == ("version", "workload")
    assert tracker.pack(profile).content == target.read_bytes()


def test_notifications_are_made_and_sent(store, tmp_path, monkeypatch):
    settings = tmp_path / "tracker.toml"
    settings.write_text('[[alerts.channels]]\nname = "a"\nurl_env = "NOWHERE"\n[[alerts.rules]]\nchannels = ["a"]\n')
    monkeypatch.setenv("TRACKER_CONFIG", str(settings))
    count, delivered = tracker.send_notifications(store=store)
    assert (count, delivered.sent) == (1, 0), "it waits for what else belongs to the incident"
    assert tracker.send_notifications(store=store)[0] == 0


def test_the_default_database_is_changed_where_none_is_given(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKER_DB", str(tmp_path / "own.db"))
    with pytest.raises(tracker.TrackerError, match="no database"):
        tracker.tag_runs(1, {"a": "b"})
    assert not (tmp_path / "own.db").exists()
    with tracker.open_store() as store:
        made.runs(store, "v1", count=1)
    assert tracker.tag_runs(1, {"a": "b"}) == [1]
    assert tracker.runs()["tags"].tolist() == ["a=b"]
