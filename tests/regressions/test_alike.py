"""What becomes of a version in which all operators of a small model take longer by one factor."""

from __future__ import annotations

import pytest

from tests.regressions.tracks import STEP, found_in, track_of

NAMES = ("mm", "bmm", "add", "gelu")


def of_four(*factors, runs=3, mm=()):
    """Findings of a step of four operators of 100 each, all times `factors`; `mm`: further factors of one of them."""
    rows = {("op", "host_self_ns", name, "", "", ""): [100.0 * factor for factor in factors] for name in NAMES}
    names = {("op_name", *key[1:]): list(row) for key, row in rows.items()}
    for at, factor in enumerate(mm):
        rows["op", "host_self_ns", "mm", "", "", ""][at] *= factor
        names["op_name", "host_self_ns", "mm", "", "", ""][at] *= factor
    step = [sum(column) for column in zip(*rows.values(), strict=True)]
    found = found_in(track_of({**rows, **names, STEP: step}, runs))
    return [(["mm", "bmm", "add", "gelu", *NAMES, "step"][one[0]], *one[1:]) for one in found]


def test_all_operators_alike_are_one_finding():
    assert of_four(1, 1, 1.12, 1.12, 1.12) == [("step", 1, "alike", 3, 3, "open", 0)]


def test_operators_that_are_back_leave_no_finding():
    assert of_four(1, 1, 1.12, 1.12, 1, 1) == [("step", 1, "alike", 3, 3, "recovered", 5)]


@pytest.mark.parametrize("runs", [2, 3])
def test_one_slow_version_comes_and_goes(runs):
    assert of_four(1, 1, 1, 1.12, 1, 1, 1, runs=runs) == [("step", 1, "alike", 4, 4, "recovered", 5)]


def test_operator_is_judged_by_its_level_after_a_return():
    # mm alone takes 1.5 times as long from v6 on, in the first version after the return
    found = of_four(1, 1, 1, 1.12, 1, 1, 1, mm=[1, 1, 1, 1, 1, 1.5, 1.5], runs=2)
    assert [one for one in found if one[0] == "mm"] == [("mm", 1, "level", 6, 6, "open", 0)] * 2


def test_operator_is_judged_by_the_new_level_while_all_are_slow():
    found = of_four(1, 1, 1.12, 1.12, 1.12, mm=[1, 1, 1, 1, 1.5])
    assert ("mm", 1, "level", 5, 5, "open", 0) in found
    assert not any(name in ("bmm", "add", "gelu") for name, *_ in found)


def test_single_runs_need_three():
    factors = [1.0] * 8 + [1.12] * 3
    assert of_four(*factors[:10], runs=1) == []
    assert of_four(*factors, 1.12, runs=1) == [("step", 1, "alike", 9, 11, "open", 0)]


def test_faster_machine_is_one_finding():
    assert of_four(1, 1, 0.88, 0.88, 0.88) == [("step", -1, "alike", 3, 3, "accepted", 4)]
