"""The order of versions is what was said, not how labels sort."""

from __future__ import annotations

import pytest

from tests.factories import save
from tracker.errors import UsageError
from tracker.store import queries
from tracker.store.order import order_versions


@pytest.fixture
def four(store):
    for label in ("v1", "v2", "v10", "v9"):
        save(store, label)
    return store


def test_versions_are_put_beside_another_one(four):
    assert order_versions(four, ["v9"], before="v10") == ["v1", "v2", "v9", "v10"]
    assert order_versions(four, ["v10", "v1"], after="v2") == ["v2", "v10", "v1", "v9"]
    found = queries.versions(four)
    assert (found["version"].tolist(), found["ordinal"].tolist()) == (["v2", "v10", "v1", "v9"], [1, 2, 3, 4])


def test_a_whole_order_is_taken_as_it_is_and_a_new_version_comes_last(four):
    order_versions(four, ["v9", "v10", "v2", "v1"])
    save(four, "v0")
    assert queries.versions(four)["version"].tolist() == ["v9", "v10", "v2", "v1", "v0"]


@pytest.mark.parametrize(
    ("labels", "beside", "problem"),
    [
        (["v1", "v2"], {}, "the order lacks v10, v9"),
        (["v1", "v1"], {}, "named twice"),
        (["v1"], {"after": "v1"}, "beside itself"),
        (["v3"], {"after": "v1"}, "there is no version 'v3'"),
        (["v1"], {"before": "v3"}, "there is no version 'v3'"),
        ([], {}, "no version is named"),
    ],
)
def test_a_wrong_order_changes_nothing(four, labels, beside, problem):
    with pytest.raises(UsageError, match=problem):
        order_versions(four, labels, **beside)
    assert queries.versions(four)["version"].tolist() == ["v1", "v2", "v10", "v9"]


def test_versions_of_several_workloads_are_no_order(four):
    save(four, "b1", "bert")
    with pytest.raises(UsageError, match="several workloads: bert, gpt"):
        order_versions(four, ["b1"], after="v1")
    save(four, "v1", "bert")
    assert order_versions(four, ["v1"], workload="bert", before="b1") == ["v1", "b1"]
