"""The order of versions is what was said, not how labels sort."""

from __future__ import annotations

import pytest

from tests.factories import save
from tracker.errors import UsageError
from tracker.store import queries
from tracker.store import tracks as stored_tracks
from tracker.store.versions import order_versions


@pytest.fixture
def four(store):
    for label in ("v1", "v2", "v10", "v9"):
        save(store, label)
    return store


def test_versions_are_put_beside_another_one(four):
    assert order_versions(four, ["v9"], before="v10") == ["v1", "v2", "v9", "v10"]
    assert order_versions(four, ["v10", "v1"], after="v2") == ["v2", "v10", "v1", "v9"]
    found = queries.versions(four).frame
    assert (found["version"].tolist(), found["ordinal"].tolist()) == (["v2", "v10", "v1", "v9"], [1, 2, 3, 4])


def test_a_whole_order_is_taken_as_it_is_and_a_new_version_comes_last(four):
    order_versions(four, ["v9", "v10", "v2", "v1"])
    save(four, "v0")
    assert queries.versions(four).frame["version"].tolist() == ["v9", "v10", "v2", "v1", "v0"]


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
    assert queries.versions(four).frame["version"].tolist() == ["v1", "v2", "v10", "v9"]


def test_versions_of_several_workloads_are_no_order(four):
    save(four, "b1", "bert")
    with pytest.raises(UsageError, match="several workloads: bert, gpt"):
        order_versions(four, ["b1"], after="v1")
    save(four, "v1", "bert")
    assert order_versions(four, ["v1"], workload="bert", before="b1") == ["v1", "b1"]


def in_order(store):
    """The runs of the only line, version by version: number and start."""
    with store.connect() as connection:
        (line,) = stored_tracks.list_tracks(connection)
        return [(run.version, run.run_id, run.started_at_ns) for run in stored_tracks.list_track_runs(connection, line)]


def test_runs_of_a_version_follow_each_other_as_they_started_where_all_have_a_clock(store):
    """v2 came in backwards."""
    for version, start in (("v1", 100), ("v2", 300), ("v2", 200)):
        save(store, version, started_at_ns=start)
    assert in_order(store) == [("v1", 1, 100), ("v2", 3, 200), ("v2", 2, 300)]


def test_where_one_run_has_no_clock_those_of_its_version_follow_each_other_as_they_came(store):
    """Of v1 nobody knows when the third ran, so that only the order in which all came holds for all; v2 has clocks."""
    for version, start in (("v1", 200), ("v1", 100), ("v1", None), ("v2", 400), ("v2", 300)):
        save(store, version, started_at_ns=start, ended_at_ns=start and start + 10)
    order = [("v1", 1, 200), ("v1", 2, 100), ("v1", 3, None), ("v2", 5, 300), ("v2", 4, 400)]
    assert in_order(store) == order
    with store.connect() as connection:
        (line,) = stored_tracks.list_tracks(connection)
        series = [int(number) for number in stored_tracks.read_series(connection, line).ids]
        runs = stored_tracks.list_track_runs(connection, line)
    found = queries.series_runs(store, series[:1], runs)
    assert found.listed("run_id") == [number for _, number, _ in order]
