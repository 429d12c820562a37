"""Every collective call of a rank, and the groups it is in."""

from __future__ import annotations

from tests.timeline.made_events import Made, records
from tracker.profile import MISSING, ProcessGroups
from tracker.timeline import build

HCOM = "hcom_allReduce__501_{}_1"
OF_PAIR = {"group_role": "dp", "group_size": 2, "group_ranks": "0,2"}


def calls(rows, *columns):
    return records(rows.collective_calls, *columns)


def test_calls_stand_in_order_of_their_start_which_counts_from_the_first_event():
    made = Made()
    made.kernel("Add1", 100, 110, type="Add")
    made.hcom(HCOM.format(1), 300, 340, bytes=8, source_index=1, **OF_PAIR)
    made.hcom(HCOM.format(0), 200, 220, bytes=8, source_index=0, **OF_PAIR)
    rows = made.built()
    assert calls(rows, "start_ns", "elapse_ns", "bytes", "source_index") == [(100, 20, 8, 0), (200, 40, 8, 1)]
    assert calls(rows, "communication", "group", "step", "peer") == [(0, 0, 0, -1), (0, 0, 0, -1)]


def test_calls_count_from_the_start_of_the_capture_where_that_has_a_date():
    """Python frames reach back 30 ns before the first op, and the file calls that the start: 1000 by its clock."""
    made = Made()
    made.hcom(HCOM.format(0), 60, 80, **OF_PAIR)
    capture = made.capture(0, 2)
    dated = type(capture)(0, 2, "host", capture.device, 0, 1000, 1100, (), events=made.events(), clock_zero_ns=970)
    assert calls(build(dated).rows, "start_ns", "elapse_ns") == [(30, 20)]


def test_the_exposed_part_of_a_call_is_what_no_compute_hides():
    made = Made()
    made.kernel("Add1", 0, 30, type="Add")
    made.kernel("Add2", 70, 80, type="Add")
    made.hcom(HCOM.format(0), 20, 100, **OF_PAIR)
    made.hcom(HCOM.format(1), 120, 130, **OF_PAIR)
    assert calls(made.built(), "elapse_ns", "exposed_ns") == [(80, 60), (10, 10)]


def test_groups_of_one_role_and_members_are_one_whatever_their_names():
    made = Made()
    made.hcom(HCOM.format(0), 0, 10, group="group_name_5", **OF_PAIR)
    made.hcom(HCOM.format(1), 20, 30, group="group_name_9", **OF_PAIR)
    made.hcom(HCOM.format(2), 40, 50, group_role="tp", group_size=2, group_ranks="0,1")
    rows = made.built()
    assert records(rows.groups, "role", "size", "ranks") == [("dp", 2, "0,2"), ("tp", 2, "0,1")]
    assert calls(rows, "group") == [(0,), (0,), (1,)]


def test_groups_without_members_differ_in_kinds_by_their_names_in_order_of_use():
    made = Made()
    unknown = {"group_role": "", "group_size": MISSING}
    made.hcom(HCOM.format(0), 40, 50, group="b", **unknown)
    made.hcom(HCOM.format(1), 0, 10, group="a", **unknown)
    made.hcom(HCOM.format(2), 20, 30, group="", **unknown)
    rows = made.built()
    assert records(rows.groups, "role", "size", "ranks") == [("", MISSING, ""), ("", MISSING, "")]
    assert calls(rows, "start_ns", "group") == [(0, 0), (20, -1), (40, 1)]


def test_a_group_that_no_call_names_is_one_of_the_rank_all_the_same():
    made = Made()
    made.hcom(HCOM.format(0), 0, 10, group_role="", group_size=MISSING)
    row = {"role": "pp", "size": 2, "ranks": "0,2"}
    made.rows[ProcessGroups].append(row)
    rows = made.built()
    assert records(rows.groups, "role", "size", "ranks") == [("pp", 2, "0,2")]
    assert calls(rows, "group") == [(-1,)]
