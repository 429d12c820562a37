"""A run's samples in one row: it says what the rows of the run say, after all that can be done to a run."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from sqlalchemy import text

from tests.factories import capture, record, save
from tracker.profile import Device
from tracker.store import runs, save_run
from tracker.store import tracks as stored_tracks
from tracker.store.samples import SampleArray, arrays_of
from tracker.store.samples.rows import array_of_rows, pack_samples, unpack_samples
from tracker.store.tracks import read_chosen_runs, tabulate_runs

JUDGED = ("value", "calls", "by_quartile", "by_median")


def stored(connection, run_id):
    """The array of a run as the table holds it, None without."""
    found = connection.execute(text("SELECT numbers FROM sample_array WHERE run_id = :id"), {"id": run_id}).scalar()
    return None if found is None else unpack_samples(bytes(found))


def same(one, other):
    for name in ("series_ids", "values", "calls", "by_calls"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def assert_up_to_date(store, run_ids):
    with store.connect() as connection:
        for run_id in run_ids:
            same(stored(connection, run_id), array_of_rows(connection, run_id))


def array_of(series_ids, values, calls, by_calls):
    return SampleArray(
        np.array(series_ids, dtype=np.int64), *(np.array(own, float) for own in (values, calls, by_calls))
    )


UNKNOWN = [[np.nan, np.nan], [np.nan, np.nan]]


@pytest.mark.parametrize(
    "array",
    [
        array_of([3, 4, 900], [1.5, 0.1, 2**53 + 2], [1.0, np.nan, 0.25], [[1.0, np.nan, 2.5], [1.2, np.nan, 3.0]]),
        array_of([5, 7], [0.5, 10.0], [2.0, 3.0], UNKNOWN),
        array_of([], [], [], [[], []]),
    ],
)
def test_an_array_packs_to_bytes_and_back(array):
    same(unpack_samples(pack_samples(array)), array)


def test_the_format_of_the_bytes_is_the_one_that_databases_hold():
    array = array_of([5, 7], [0.5, 10.0], [2.0, 3.0], [[0.4, 9.0], [0.5, 9.5]])
    numbers = (5, 2, 0.5, 10.0, 2.0, 3.0, 0.4, 9.0, 0.5, 9.5)
    assert zlib.decompress(pack_samples(array)) == b"\x02" + struct.pack("<2q8d", *numbers)


def test_calls_that_are_not_known_one_by_one_take_no_room():
    array = array_of([5, 7], [0.5, 10.0], [2.0, 3.0], UNKNOWN)
    assert zlib.decompress(pack_samples(array)) == struct.pack("<2q4d", 5, 2, 0.5, 10.0, 2.0, 3.0)


def test_percentiles_over_steps_of_an_earlier_program_are_passed_over():
    packed = zlib.compress(b"\x01" + struct.pack("<2q6d", 5, 2, 0.5, 10.0, 2.0, 3.0, 0.4, 9.0))
    same(unpack_samples(packed), array_of([5, 7], [0.5, 10.0], [2.0, 3.0], UNKNOWN))


def test_damaged_bytes_are_told():
    array = array_of([5, 7], [0.5, 10.0], [2.0, 3.0], [[0.4, 9.0], [0.5, 9.5]])
    plain = bytes(7 * 8)  # seven numbers fill no table of three, four or five columns
    broken = [zlib.compress(mark + plain) for mark in (b"", b"\x01", b"\x02", b"\x03", b"ab")]
    for damaged in (b"", b"none", pack_samples(array)[:-3], *broken):
        with pytest.raises(ValueError, match=r"these bytes are no samples|differ in number"):
            unpack_samples(damaged)


def test_a_saved_run_has_the_array_of_its_rows(store):
    (run_id,) = save(store, ops=[("mm", 100), ("relu", 10)], kernels=[("gemm", 90)])
    assert_up_to_date(store, [run_id])
    with store.connect() as connection:
        assert len(stored(connection, run_id).series_ids) > 4


def test_a_late_rank_and_another_label_are_followed(store):
    one, two = (capture(rank, world_size=2, ops=[("mm", 10 * (rank + 1))]) for rank in range(2))
    run_id = save_run(store, record(), [one], formats=["torch_profiler"]).run_id
    assert save_run(store, record(), [two], formats=["torch_profiler"]).run_id == run_id
    assert_up_to_date(store, [run_id])
    runs.edit_all(store, [run_id], workload="other", device=Device("AMD", "MI300X"))
    assert_up_to_date(store, [run_id])


def test_a_purged_run_leaves_no_array(store):
    save(store, runs=2)
    runs.delete_all(store, [1], "wrong", purge=True)
    with store.connect() as connection:
        assert stored(connection, 1) is None
        assert stored(connection, 2) is not None
        assert len(arrays_of(connection, [1])[1].series_ids) == 0


def test_a_run_that_an_older_program_wrote_is_read_from_its_rows(store):
    save(store, runs=2, ops=[("mm", 100), ("relu", 10)])
    with store.connect() as connection:
        before = tabulate_runs(read_chosen_runs(connection, [1, 2]))
    with store.begin() as connection:
        connection.execute(text("DELETE FROM sample_array WHERE run_id = 2"))
    with store.connect() as connection:
        after = tabulate_runs(read_chosen_runs(connection, [1, 2]))
    assert before[0] == after[0]
    for one, other in zip(before[1:], after[1:], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("run_ids", [[1], [2, 1], [1, 3, 2]])
def test_values_of_runs_are_those_of_the_table_sample(store, run_ids):
    for factor in (1, 2, 3):
        save(store, f"v{factor}", ops=[("mm", 100 * factor), *([("relu", 10)] if factor != 2 else [])])
    with store.connect() as connection:
        (line,) = stored_tracks.list_tracks(connection)
        series = stored_tracks.read_series(connection, line)
        values, calls, by_calls = stored_tracks.read_values(connection, run_ids, series)
        rows = connection.execute(text(f"SELECT run_id, series_id, {', '.join(JUDGED)} FROM sample")).all()
    slow = {(row.run_id, row.series_id): np.array([getattr(row, name) for name in JUDGED], float) for row in rows}
    for column, run_id in enumerate(run_ids):
        for place, series_id in enumerate(series.ids.tolist()):
            expected = slow.get((run_id, series_id), np.full(4, np.nan))
            found = [table[place, column] for table in (values, calls, *by_calls)]
            np.testing.assert_array_equal(found, expected)
