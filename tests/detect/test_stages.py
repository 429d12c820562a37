"""Whether work moves between the ranks of a stage, told by their calls in each step."""

from __future__ import annotations

import pytest

from tracker.detect.stages import moves_work, stages_of

STAGE = stages_of(
    [(rank, None) for rank in (0, 1)],
    [(rank, step, 10, 10, 0, 10, 0, None) for rank in (0, 1) for step in range(3)],
)[0]


def calls(*sizes: tuple[int, int], number: int = 1, shaped: bool = True):
    """A hundred equal calls of both ranks in each step, and one multiplication of these sizes."""
    for step, of_ranks in enumerate(sizes):
        for rank, size in enumerate(of_ranks):
            yield rank, step, "add", "[[8]]" if shaped else "", 100
            yield rank, step, "mm", f"[[{size}]]" if shaped else "", number


@pytest.mark.parametrize(
    ("rows", "moves"),
    [
        (calls((16, 16), (32, 32), (16, 16)), False),
        (calls((16, 32), (32, 16), (16, 32), number=2), True),
        (calls((16, 32), (16, 16), (16, 16), number=2), False),
        (calls((16, 16), (16, 16), (16, 16), shaped=False), None),
        ([], None),
    ],
    ids=["equal shapes", "other shapes", "one step alone", "no shapes", "no calls"],
)
def test_work_moves_where_calls_of_a_step_differ(rows, moves):
    assert moves_work(STAGE, rows) is moves


def test_calls_that_one_rank_alone_makes_move_work_without_shapes():
    rows = [*calls((1, 1), (1, 1), (1, 1), shaped=False), *((0, step, "mm", "", 5) for step in range(3))]
    assert moves_work(STAGE, rows) is True


def test_lone_rank_whose_calls_vary_moves_no_work():
    """Rank 2 of three spins: 5, 50 and 20 calls more; the others make the same in each step."""
    stage = stages_of(
        [(rank, None) for rank in range(3)],
        [(rank, step, 10, 10, 0, 10, 0, None) for rank in range(3) for step in range(3)],
    )[0]
    rows = [(rank, step, "add", "[[8]]", 100) for rank in range(3) for step in range(3)]
    rows += [(2, step, "relu", "[[8]]", count) for step, count in enumerate((5, 50, 20))]
    assert moves_work(stage, rows) is False
