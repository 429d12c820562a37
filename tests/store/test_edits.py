"""Edits of runs and versions."""

from __future__ import annotations

import pytest

from tests.conftest import count_rows
from tests.factories import capture, record, same_table, save
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.store import queries, save_run
from tracker.store import runs as edits
from tracker.store.versions import pin_version, unpin_version

EDITS = {
    "edit_all": lambda store, ids: edits.edit_all(store, ids, version="v2", note="new"),
    "tag_all": lambda store, ids: edits.tag_all(store, ids, {"x": "2"}),
    "untag_all": lambda store, ids: edits.untag_all(store, ids, ["x"]),
    "exclude_all": lambda store, ids: edits.exclude_all(store, ids, "noisy"),
    "restore_all": edits.restore_all,
    "delete_all": lambda store, ids: edits.delete_all(store, ids, "wrong"),
    "purge": lambda store, ids: edits.delete_all(store, ids, "wrong", purge=True),
}


def test_a_relabelled_run_is_found_under_its_new_names(store):
    save(store, "v1", of_run={"configuration": {"batch": "32"}})
    edits.edit_all(store, [1], version="v2", workload="bert", device=Device("AMD", "MI300X"))
    same_table(
        queries.runs(store).frame,
        "workload version vendor device configuration\n bert v2 AMD MI300X batch=32",
    )
    assert queries.versions(store).frame["version"].tolist() == ["v2"], "a label without runs is forgotten"
    edits.edit_all(store, [1], configuration={"batch": "64"})
    same_table(queries.facts(store, [1]).frame, "kind key value\n configuration batch 64")
    assert count_rows(store)["configuration"] == 1


def test_relabelling_leaves_what_others_use(store):
    save(store, "v1", runs=2)
    edits.edit_all(store, [1], version="v2")
    same_table(queries.versions(store).frame, "version ordinal runs\n v1 1 1\n v2 2 1")


def test_a_pinned_version_survives_without_runs(store):
    save(store)
    pin_version(store, "v1")
    edits.delete_all(store, [1], "wrong", purge=True)
    assert queries.pinned(store) == ("v1", "gpt")


def test_a_note_is_replaced_and_removed(store):
    save(store, of_run={"note": "first"})
    edits.edit_all(store, [1], note="second")
    assert queries.runs(store).frame["note"].tolist() == ["second"]
    edits.edit_all(store, [1], note="")
    assert queries.runs(store).frame["note"].isna().tolist() == [True]


def test_tags_are_set_replaced_and_removed(store):
    save(store)
    edits.tag_all(store, [1], {"image": "a"})
    edits.tag_all(store, [1], {"image": "b", "night": ""})
    assert queries.runs(store).frame["tags"].tolist() == ["image=b, night"]
    edits.untag_all(store, [1], ["image"])
    assert queries.runs(store).frame["tags"].tolist() == ["night"]
    with pytest.raises(UsageError, match="run 1 has no tag 'image'"):
        edits.untag_all(store, [1], ["image"])


def test_an_excluded_run_is_out_of_every_comparison_until_restored(store):
    save(store, runs=2)
    edits.exclude_all(store, [2], "another job on the node")
    assert queries.runs(store).frame["run_id"].tolist() == [1]
    assert queries.run_ids_of_version(store, "v1") == (1,)
    assert queries.latest(store) == 1
    assert queries.runs_by_id(store, [2]).frame["state_reason"].tolist() == ["another job on the node"]
    edits.restore_all(store, [2])
    assert queries.run_ids_of_version(store, "v1") == (1, 2)
    assert queries.runs_by_id(store, [2]).frame["state_reason"].tolist() == [""]


def test_a_deleted_run_is_hidden_and_comes_back(store):
    save(store)
    edits.delete_all(store, [1], "wrong machine")
    assert queries.runs(store).frame.empty
    for name in ("edit_all", "exclude_all", "tag_all", "untag_all"):
        with pytest.raises(UsageError, match="run 1 was deleted; to take it back: tracker runs restore 1"):
            EDITS[name](store, [1])
    edits.restore_all(store, [1])
    assert queries.runs(store).frame["run_id"].tolist() == [1]


def test_a_purged_run_is_gone_and_its_files_may_come_again(store):
    many = {"communication": [("all_reduce", 1, {"tasks": [("t", 1)], "links": [("SDMA", 1)]})]}
    many |= {"memory": [("aten::mm", 1)], "counters": [("l2_cache", "k", "Hit Rate", 1.0)]}
    many |= {"kernels": [("k", 1, {"metrics": {"aic_mac_ratio": 0.5}})]}
    many |= {"api": [("f", 1)], "curve": [("cpu", 0, 1)], "digest": b"a" * 16}
    of_run = {"tags": {"a": "b"}, "facts": {"c": "d"}, "configuration": {"e": "f"}}
    save(store, of_run=of_run, **many)
    edits.delete_all(store, [1], "wrong", purge=True)
    assert set(count_rows(store)) == {"device", "op_key", "detail_text", "kernel_key", "process_group", "recording"}
    again = save_run(store, record(), [capture(digest=b"a" * 16)], formats=["torch_profiler"])
    assert again.created
    assert again.run_id == 2, "a number never means another run"


def test_purging_one_run_leaves_the_others(store):
    save(store, runs=2, ranks=2)
    before = count_rows(store)
    edits.delete_all(store, [1], "wrong", purge=True)
    after = count_rows(store)
    assert {name: before[name] / after[name] for name in ("run", "capture", "source", "op", "kernel", "step")} == (
        dict.fromkeys(("run", "capture", "source", "op", "kernel", "step"), 2)
    )


@pytest.mark.parametrize(
    "forget",
    [
        lambda store, ids: edits.delete_all(store, ids, "wrong", purge=True),
        lambda store, _: edits.forget_branch(store, "gpt @ pr12"),
    ],
    ids=["purge", "forget"],
)
def test_branch_goes_that_has_runs_of_two_configurations(store, forget):
    """Both configurations are those of the main line, so that nothing holds the branch once its version is gone."""
    for batch in ("32", "64"):
        save(store, of_run={"configuration": {"batch": batch}})
    before = count_rows(store)
    branch = [
        save(store, "push", "gpt @ pr12", of_run={"configuration": {"batch": batch}})[0] for batch in ("32", "64")
    ]
    forget(store, branch)
    assert count_rows(store) == before


def test_one_version_of_a_workload_is_pinned_at_a_time(store):
    save(store, "v1")
    save(store, "v2")
    pin_version(store, "v1")
    pin_version(store, "v2")
    assert queries.pinned(store) == ("v2", "gpt")
    unpin_version(store, "v2")
    with pytest.raises(UsageError, match="no version is pinned"):
        queries.pinned(store)


def test_pinning_needs_one_version(store):
    with pytest.raises(UsageError, match="there is no version 'v1'"):
        pin_version(store, "v1")
    save(store, "v1", "gpt")
    save(store, "v1", "bert")
    with pytest.raises(UsageError, match="several workloads: bert, gpt; choose one with --workload"):
        pin_version(store, "v1")
    pin_version(store, "v1", workload="bert")


@pytest.mark.parametrize("unknown", [7, 2**63, 10**30])
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_unknown_run_is_an_error_and_nothing_changes(store, edit, unknown):
    save(store, of_run={"tags": {"x": "1"}})
    before = queries.runs(store, state="all").frame, count_rows(store)
    with pytest.raises(UsageError, match=f"there is no run {unknown}; tracker runs lists them"):
        edit(store, [1, unknown])
    after = queries.runs(store, state="all").frame, count_rows(store)
    assert before[0].equals(after[0])
    assert before[1] == after[1]


def test_several_runs_are_edited_at_once(store):
    save(store, runs=3)
    edits.edit_all(store, [3, 1, 3], version="v2", note="moved")
    edits.tag_all(store, [1, 3], {"image": "a", "night": ""})
    same_table(queries.versions(store).frame, "version ordinal runs\n v1 1 1\n v2 2 2")
    assert queries.runs(store).frame["note"].fillna("").tolist() == ["moved", "", "moved"]
    edits.untag_all(store, [1, 3, 3], ["image", "image"])
    assert queries.runs(store).frame["tags"].tolist() == ["night", "", "night"]
    edits.exclude_all(store, [1, 2], "noisy")
    edits.restore_all(store, [1, 2])
    edits.delete_all(store, [1, 1, 3], "wrong", purge=True)
    assert queries.runs(store, state="all").frame["run_id"].tolist() == [2]
    same_table(queries.versions(store).frame, "version runs\n v1 1")


def test_a_commit_of_a_version_is_added_and_never_replaced(store):
    save(store, "v1", runs=2)
    edits.edit_all(store, [1], commit="4af1c2d0")
    assert queries.versions(store).listed("commit") == ["4af1c2d0"]
    with pytest.raises(UsageError, match="version 'v1' is commit 4af1c2d0, not 83fb3812"):
        edits.edit_all(store, [2], commit="83fb3812", note="a note")
    assert queries.versions(store).listed("commit") == ["4af1c2d0"]


def test_an_edit_of_which_one_part_fails_changes_nothing(store):
    save(store, runs=2, of_run={"tags": {"x": "1"}})
    edits.untag_all(store, [2], ["x"])
    before = queries.runs(store).frame
    for edit in (
        lambda: edits.untag_all(store, [1, 2], ["x"]),
        lambda: edits.tag_all(store, [1], {"good": "", " ": ""}),
        lambda: edits.edit_all(store, [1], note="new", version=" "),
    ):
        with pytest.raises(UsageError):
            edit()
    assert before.equals(queries.runs(store).frame)


def test_a_reason_is_needed(store):
    save(store)
    for edit in (edits.exclude_all, edits.delete_all):
        with pytest.raises(UsageError, match=r"the reason .* says nothing"):
            edit(store, [1], " ")
