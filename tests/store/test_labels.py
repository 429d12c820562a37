"""What a run may be filed under."""

from __future__ import annotations

import pytest

from tests.conftest import count_rows
from tests.factories import save
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.store import queries
from tracker.store import runs as edits


@pytest.mark.parametrize("label", ["", "  ", "x" * 401])
def test_a_label_must_be_one(store, label):
    with pytest.raises(UsageError, match=r"the version (is empty|has 401 characters)"):
        save(store, label)


@pytest.mark.parametrize("label", ["latest", "latest~2", "pinned", "run:41", "run:41:rank3"])
def test_a_version_that_means_something_else_in_a_comparison_is_refused(store, label):
    message = f"the version {label!r} could never be named: tracker takes it for a run or the pinned version"
    with pytest.raises(UsageError, match=message):
        save(store, label)
    assert count_rows(store) == {}
    save(store)
    with pytest.raises(UsageError, match=message):
        edits.edit_all(store, [1], version=label)
    assert queries.versions(store).frame["version"].tolist() == ["v1"]


@pytest.mark.parametrize("label", ["latest-2024", "latest~", "pinned2", "run:", "run:41.json", "41", "Latest"])
def test_a_version_that_only_looks_like_it_is_one(store, label):
    save(store, label)
    assert queries.run_ids_of_version(store, label) == (1,)


def test_a_refused_version_of_an_older_database_can_be_edited_away(store):
    from sqlalchemy import text

    save(store)
    with store.begin() as connection:
        connection.execute(text("UPDATE version SET label = 'latest'"))
    edits.edit_all(store, [1], configuration={"batch": "1"}, note="kept")
    with pytest.raises(UsageError, match="'latest' could never be named"):
        edits.edit_all(store, [1], workload="bert")
    edits.edit_all(store, [1], version="v2")
    assert queries.versions(store).frame["version"].tolist() == ["v2"]


def test_one_version_is_one_commit(store):
    save(store, of_run={"commit": None})
    save(store, of_run={"commit": "abc"})
    assert queries.versions(store).frame["commit"].tolist() == ["abc"]
    with pytest.raises(UsageError, match="version 'v1' is commit abc, not def"):
        save(store, of_run={"commit": "def"})


def test_a_commit_is_made_storable_like_every_label(store):
    for _ in range(2):
        save(store, of_run={"commit": "a\0b\ud800"})
    assert queries.versions(store).frame["commit"].tolist() == ["a\\x00b\\ud800"]
    save(store, "v2", of_run={"commit": ""})
    save(store, "v2", of_run={"commit": "abc"})
    assert queries.versions(store).frame["commit"].tolist()[1] == "abc", "an empty commit is none"


def test_a_version_takes_its_commit_along_into_another_workload(store):
    save(store, runs=2, of_run={"commit": "abc"})
    edits.edit_all(store, [1], workload="bert")
    assert queries.versions(store).frame[["workload", "commit"]].values.tolist() == [["bert", "abc"], ["gpt", "abc"]]
    edits.edit_all(store, [1], version="v2")
    assert queries.versions(store, "bert").frame["commit"].isna().all(), "another version may be another commit"


def test_a_version_that_is_another_commit_there_does_not_take_the_run(store):
    save(store, of_run={"commit": "abc"})
    save(store, workload="bert", of_run={"commit": "def"})
    with pytest.raises(UsageError, match="version 'v1' is commit def, not abc; give another --version"):
        edits.edit_all(store, [1], workload="bert")


def test_a_device_in_other_capitals_is_the_device_that_is_known(store):
    for device in (Device("Huawei", "Ascend910B"), Device("Huawei", "ascend910b"), Device("Huawei", "Ascend910A")):
        save(store, device=device)
    found = queries.runs(store).frame.sort_values("run_id")["device"].tolist()
    assert found == ["Ascend910B", "Ascend910B", "Ascend910A"]
