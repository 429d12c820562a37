"""Edits of runs and versions."""

from __future__ import annotations

import pytest

from tests.conftest import count_rows
from tests.factories import capture, record, same_table, save
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.store import queries, save_run
from tracker.store import runs as edits


def test_a_relabelled_run_is_found_under_its_new_names(store):
    save(store, "v1", of_run={"configuration": {"batch": "32"}})
    edits.relabel(store, 1, version="v2", workload="bert", device=Device("AMD", "MI300X"))
    same_table(
        queries.runs(store),
        "workload version vendor device configuration\n bert v2 AMD MI300X batch=32",
    )
    assert queries.versions(store)["version"].tolist() == ["v2"], "a label without runs is forgotten"
    edits.relabel(store, 1, configuration={"batch": "64"})
    same_table(queries.facts(store, [1]), "kind key value\n configuration batch 64")
    assert count_rows(store)["configuration"] == 1


def test_relabelling_leaves_what_others_use(store):
    save(store, "v1", runs=2)
    edits.relabel(store, 1, version="v2")
    same_table(queries.versions(store), "version ordinal runs\n v1 1 1\n v2 2 1")


def test_a_pinned_version_survives_without_runs(store):
    save(store)
    edits.pin(store, "v1")
    edits.purge(store, 1)
    assert queries.pinned(store) == ("v1", "gpt")


def test_a_note_is_replaced_and_removed(store):
    save(store, of_run={"note": "first"})
    edits.set_note(store, 1, "second")
    assert queries.runs(store)["note"].tolist() == ["second"]
    edits.set_note(store, 1, "")
    assert queries.runs(store)["note"].isna().tolist() == [True]


def test_tags_are_set_replaced_and_removed(store):
    save(store)
    edits.tag(store, 1, "image", "a")
    edits.tag(store, 1, "image", "b")
    edits.tag(store, 1, "night")
    assert queries.runs(store)["tags"].tolist() == ["image=b, night"]
    edits.untag(store, 1, "image")
    assert queries.runs(store)["tags"].tolist() == ["night"]
    with pytest.raises(UsageError, match="run 1 has no tag 'image'"):
        edits.untag(store, 1, "image")


def test_an_excluded_run_is_out_of_every_comparison_until_restored(store):
    save(store, runs=2)
    edits.exclude(store, 2, "another job on the node")
    assert queries.runs(store)["run_id"].tolist() == [1]
    assert queries.run_ids_of_version(store, "v1") == (1,)
    assert queries.latest(store) == 1
    assert queries.runs_by_id(store, [2])["state_reason"].tolist() == ["another job on the node"]
    edits.restore(store, 2)
    assert queries.run_ids_of_version(store, "v1") == (1, 2)
    assert queries.runs_by_id(store, [2])["state_reason"].tolist() == [""]


def test_a_deleted_run_is_hidden_and_comes_back(store):
    save(store)
    edits.delete(store, 1, "wrong machine")
    assert queries.runs(store).empty
    for edit in (edits.exclude, edits.set_note, edits.tag):
        with pytest.raises(UsageError, match="run 1 was deleted; to take it back: tracker runs restore 1"):
            edit(store, 1, "x")
    edits.restore(store, 1)
    assert queries.runs(store)["run_id"].tolist() == [1]


def test_a_purged_run_is_gone_and_its_files_may_come_again(store):
    many = {"communication": [("all_reduce", 1, {"tasks": [("t", 1)], "links": [("SDMA", 1)]})]}
    many |= {"memory": [("aten::mm", 1)], "counters": [("l2_cache", "k", "Hit Rate", 1.0)]}
    many |= {"kernels": [("k", 1, {"metrics": {"aic_mac_ratio": 0.5}})]}
    many |= {"api": [("f", 1)], "curve": [("cpu", 0, 1)], "digest": b"a" * 16}
    of_run = {"tags": {"a": "b"}, "facts": {"c": "d"}, "configuration": {"e": "f"}}
    save(store, of_run=of_run, **many)
    edits.purge(store, 1)
    assert set(count_rows(store)) == {"device", "op_key", "kernel_key", "process_group"}
    again = save_run(store, record(), [capture(digest=b"a" * 16)], formats=["torch_profiler"])
    assert again.created
    assert again.run_id == 2, "a number never means another run"


def test_purging_one_run_leaves_the_others(store):
    save(store, runs=2, ranks=2)
    before = count_rows(store)
    edits.purge(store, 1)
    after = count_rows(store)
    assert {name: before[name] / after[name] for name in ("run", "capture", "source", "op", "kernel", "step")} == (
        dict.fromkeys(("run", "capture", "source", "op", "kernel", "step"), 2)
    )


def test_one_version_of_a_workload_is_pinned_at_a_time(store):
    save(store, "v1")
    save(store, "v2")
    edits.pin(store, "v1")
    edits.pin(store, "v2")
    assert queries.pinned(store) == ("v2", "gpt")
    edits.unpin(store, "v2")
    with pytest.raises(UsageError, match="no version is pinned"):
        queries.pinned(store)


def test_pinning_needs_one_version(store):
    with pytest.raises(UsageError, match="there is no version 'v1'"):
        edits.pin(store, "v1")
    save(store, "v1", "gpt")
    save(store, "v1", "bert")
    with pytest.raises(UsageError, match="several workloads: bert, gpt; choose one with --workload"):
        edits.pin(store, "v1")
    edits.pin(store, "v1", workload="bert")


@pytest.mark.parametrize(
    "edit",
    [
        lambda store: edits.relabel(store, 7, version="v2"),
        lambda store: edits.set_note(store, 7, "x"),
        lambda store: edits.tag(store, 7, "x"),
        lambda store: edits.untag(store, 7, "x"),
        lambda store: edits.exclude(store, 7, "x"),
        lambda store: edits.restore(store, 7),
        lambda store: edits.delete(store, 7, "x"),
        lambda store: edits.purge(store, 7),
    ],
    ids=["relabel", "set_note", "tag", "untag", "exclude", "restore", "delete", "purge"],
)
def test_an_unknown_run_is_an_error(store, edit):
    with pytest.raises(UsageError, match="there is no run 7; tracker runs lists them"):
        edit(store)


def test_a_reason_is_needed(store):
    save(store)
    for edit in (edits.exclude, edits.delete):
        with pytest.raises(UsageError, match="the reason is empty"):
            edit(store, 1, " ")
