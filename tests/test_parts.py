"""Captures of one process that hold other work, as the rollout and the update of RL, are parts and never repeats."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest
from msgspec.structs import replace

from tests.factories import record
from tests.test_who_is_who import of_process, piece, warnings
from tracker.errors import SourceError, UsageError
from tracker.intake import Piece, form_runs
from tracker.intake.sidecar import Sidecar
from tracker.store import Store, save_run

ROLLOUT = ("paged_attention", "sample", "gemm")
UPDATE = ("flash_backward", "adam", "softmax_backward", "gemm")
"""One of three kernels of the rollout is in both."""


def capture_of(folder: str, kernels: Sequence[str], *, at: float, rank: int = 0, process: str = "41") -> Piece:
    one = piece(
        f"{folder}/node_{process}.{int(at)}.json",
        at=at,
        rank=rank,
        ordinal=rank,
        host="node",
        steps=(int(at),),
        kernels=[(name, 100) for name in kernels],
    )
    return of_process(one, process)


def parts(pieces: Sequence[Piece]) -> list[tuple[str, list[int]]]:
    """The part of each run, and its ranks."""
    runs = form_runs(pieces)
    return sorted(
        (run[0].capture.configuration.get("part", ""), [one.capture.rank or 0 for one in run]) for run in runs
    )


def test_roles_of_one_process_are_parts_with_the_names_of_their_folders():
    pieces = [capture_of("rollout", ROLLOUT, at=0), capture_of("update", UPDATE, at=5)]
    for order in permutations(pieces):
        assert parts(order) == [("rollout", [0]), ("update", [0])]
    assert warnings(pieces) == [
        "rollout, update are parts of process 41, which have few kernels in common: no repeats",
    ]


def test_each_part_is_a_run_of_all_its_ranks():
    pieces = [
        capture_of(folder, kernels, at=at, rank=rank, process=str(40 + rank))
        for folder, kernels, at in (("rollout", ROLLOUT, 0), ("update", UPDATE, 5))
        for rank in (0, 1)
    ]
    assert parts(pieces) == [("rollout", [0, 1]), ("update", [0, 1])]


def test_folder_of_a_step_below_that_of_a_part_does_not_name_it():
    pieces = [capture_of("rollout/step_9", ROLLOUT, at=0), capture_of("update/step_9", UPDATE, at=5)]
    assert parts(pieces) == [("rollout", [0]), ("update", [0])]


def test_parts_in_one_folder_are_refused_with_the_way_out():
    pieces = [capture_of("all", ROLLOUT, at=0), capture_of("all", UPDATE, at=5)]
    with pytest.raises(
        SourceError, match="have few kernels in common: they are parts of one job, and no repeats"
    ) as no:
        form_runs(pieces)
    assert "--config part=NAME" in no.value.remedy


@pytest.mark.parametrize(
    ("kernels", "at", "process"),
    [
        (ROLLOUT, 5, "41"),  # the same work again
        (ROLLOUT[:2], 5, "41"),  # a part of it
        (UPDATE, 5, "52"),  # another process
        (UPDATE, 700, "41"),  # a number that another process got later
        (UPDATE, 0.5, "41"),  # at the same time: two containers number their processes alike
        ((), 5, "41"),  # no kernel says anything
    ],
)
def test_other_captures_of_other_folders_are_no_parts(kernels: Sequence[str], at: float, process: str):
    pieces = [capture_of("a", ROLLOUT, at=0), capture_of("b", kernels, at=at, process=process)]
    assert {part for part, _ in parts(pieces)} == {""}


def test_part_that_the_user_named_stands():
    pieces = [capture_of("all", ROLLOUT, at=0), capture_of("all", UPDATE, at=5)]
    named = [
        replace(one, said=Sidecar(configuration={"part": name}))
        for one, name in zip(pieces, ("roll", "up"), strict=True)
    ]
    assert len(form_runs(named)) == 2


def test_part_that_comes_in_another_call_is_refused(memory_store: Store):
    rollout, update = capture_of("all", ROLLOUT, at=0).capture, capture_of("all", UPDATE, at=5).capture
    save_run(memory_store, record(), [rollout], formats=["torch_profiler"])
    with pytest.raises(
        UsageError, match=r"is of process 41 as node_41\.0\.json of run 1, captured within minutes"
    ) as no:
        save_run(memory_store, record(), [update], formats=["torch_profiler"])
    assert "--config part=NAME" in no.value.remedy
    named = save_run(memory_store, record(configuration={"part": "update"}), [update], formats=["torch_profiler"])
    assert (named.run_id, named.created) == (2, True)
