"""From what a user names to runs."""

from __future__ import annotations

import pytest

from tests.factories import save
from tracker.errors import UsageError
from tracker.profile import Device
from tracker.store import queries
from tracker.store import runs as edits
from tracker.store.versions import pin_version


def test_a_version_is_its_active_runs(store):
    save(store, runs=3)
    edits.exclude_all(store, [2], "noisy")
    assert queries.run_ids_of_version(store, "v1") == (1, 3)


def test_an_unknown_version_is_an_error_that_helps(store):
    save(store, "v1.0")
    with pytest.raises(UsageError) as error:
        queries.run_ids_of_version(store, "v1.1")
    assert str(error.value) == (
        "there is no version 'v1.1' of gpt; did you mean v1.0? newest: v1.0; tracker versions lists them"
    )


def test_a_version_whose_runs_do_not_count_says_so(store):
    save(store)
    edits.exclude_all(store, [1], "noisy")
    with pytest.raises(UsageError, match="version 'v1' has no active run; tracker runs --state all"):
        queries.run_ids_of_version(store, "v1")


def test_a_label_of_several_workloads_needs_one_of_them(store):
    save(store, workload="gpt")
    save(store, workload="bert")
    with pytest.raises(UsageError, match="several workloads: bert, gpt; choose one with --workload"):
        queries.run_ids_of_version(store, "v1")
    assert queries.run_ids_of_version(store, "v1", workload="bert") == (2,)


def test_a_device_can_be_named_in_part(store):
    for model in ("H100", "H100 SXM", "A100"):
        save(store, device=Device("NVIDIA", model))
    assert queries.run_ids_of_version(store, "v1", device="a1") == (3,)
    assert queries.run_ids_of_version(store, "v1", device="nvidia h100") == (1,)
    with pytest.raises(UsageError, match="'H10' means several devices: NVIDIA H100, NVIDIA H100 SXM"):
        queries.run_ids_of_version(store, "v1", device="H10")
    with pytest.raises(UsageError, match="no active run on a device like 'MI300X'"):
        queries.run_ids_of_version(store, "v1", device="MI300X")


def test_latest_is_the_run_that_came_in_last(store):
    save(store, runs=3)
    save(store, workload="bert")
    edits.exclude_all(store, [3], "noisy")
    assert queries.latest(store) == 4
    assert queries.latest(store, workload="gpt") == 2
    assert queries.latest(store, 1, workload="gpt") == 1
    with pytest.raises(UsageError, match="latest~7: there are not that many active runs"):
        queries.latest(store, 7)


def test_pinned_is_one_version_of_a_workload(store):
    with pytest.raises(UsageError, match="no version is pinned; there is none yet: tracker ingest PATH"):
        queries.pinned(store)
    save(store, workload="gpt")
    save(store, workload="bert")
    pin_version(store, "v1", workload="bert")
    assert queries.pinned(store) == ("v1", "bert")
    pin_version(store, "v1", workload="gpt")
    with pytest.raises(UsageError, match="several workloads have a pinned version: bert, gpt"):
        queries.pinned(store)
    assert queries.pinned(store, workload="gpt") == ("v1", "gpt")


def test_a_run_is_there_or_an_error(store):
    save(store, runs=2)
    edits.exclude_all(store, [1], "noisy")
    edits.delete_all(store, [2], "wrong")
    queries.require_run(store, 1)
    with pytest.raises(UsageError, match="run 2 was deleted; to take it back: tracker runs restore 2"):
        queries.require_run(store, 2)
    with pytest.raises(UsageError, match="there is no run 3; tracker runs lists them"):
        queries.require_run(store, 3)


def test_the_newest_version_of_a_line_has_active_runs(store):
    """v3 of the main line is excluded; v2 is a version of the main line and of the branch."""
    for version, workload in (("v1", "gpt"), ("v2", "gpt"), ("v3", "gpt"), ("v2", "gpt @ fix"), ("fix1", "gpt @ fix")):
        save(store, version, workload=workload)
    edits.exclude_all(store, [3], "noisy")
    assert queries.newest_version(store, "gpt") == ("v2", (2,))
    assert queries.newest_version(store, "gpt @ fix") == ("fix1", (5,))
    assert queries.newest_version(store, "gpt @ fix", "h100") == ("fix1", (5,))
    with pytest.raises(UsageError, match="gpt has no active run on a device like 'A100'"):
        queries.newest_version(store, "gpt", "A100")
    with pytest.raises(UsageError, match=r"there is no version or branch 'fix2'.*branches: fix .--branch NAME"):
        queries.run_ids_of_version(store, "fix2", "gpt")
