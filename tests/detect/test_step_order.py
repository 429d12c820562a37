"""Which step of one rank is which of the others, where ranks count them otherwise."""

from __future__ import annotations

from tracker.detect.step_order import TimedStep, match_by_order


def steps(numbers: range, start_ns: int | None = None) -> list[TimedStep]:
    """Steps of 10 ns, one after the other from `start_ns` on."""
    if start_ns is None:
        return [TimedStep(number) for number in numbers]
    return [TimedStep(number, start_ns + 10 * at, start_ns + 10 * at + 10) for at, number in enumerate(numbers)]


def test_equal_numbers_need_no_match():
    assert match_by_order({0: steps(range(3), 0), 1: steps(range(3), 2)}) == {}


def test_rank_that_counts_from_one_is_matched_by_time():
    assert match_by_order({0: steps(range(3), 0), 1: steps(range(1, 4), 2)}) == {1: {1: 0, 2: 1, 3: 2}}


def test_rank_that_recorded_one_step_later_keeps_its_numbers():
    assert match_by_order({0: steps(range(3), 0), 1: steps(range(1, 4), 10)}) == {}


def test_ranks_without_a_clock_are_matched_where_no_number_is_the_same():
    assert match_by_order({0: steps(range(2)), 1: steps(range(5, 7))}) == {1: {5: 0, 6: 1}}
    assert match_by_order({0: steps(range(2)), 1: steps(range(1, 3))}) == {}


def test_ranks_with_other_counts_of_steps_keep_their_numbers():
    assert match_by_order({0: steps(range(2), 0), 1: steps(range(5, 8), 0)}) == {}
