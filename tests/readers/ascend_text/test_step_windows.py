"""Windows of dynamic profiling: their steps are those of the run, and several of one rank are one run."""

from __future__ import annotations

import shutil
from itertools import permutations
from pathlib import Path

import pytest

from tests.readers.ascend_texts import Written, write
from tests.readers.mindspore_windows import write_window
from tracker import readers
from tracker.errors import SourceError
from tracker.intake import IngestOptions, form_runs, ingest
from tracker.intake.at_once import read_all
from tracker.store import Store, queries

DATABASE = Path(__file__).parents[2] / "data" / "ascend_db" / "rank4_ascend_pt"


def read_window(folder: Path):
    """Return the profile of a window: its folder holds one capture."""
    (found,) = readers.find(folder)
    return readers.read(found)


def steps_on_device(folder: Path) -> list[int]:
    return sorted(set(read_window(folder).captures[0].events.device.step.tolist()))


def runs_of(*folders: Path) -> list[list[tuple[int | None, list[int]]]]:
    """Return of each run the rank and the steps of its captures."""
    pieces = read_all(list(folders), IngestOptions(one_process=True)).pieces
    return [[(one.capture.rank, steps_of(one.capture)) for one in run] for run in form_runs(pieces)]


def steps_of(capture) -> list[int]:
    return [row.step for row in capture.rows.steps]


def warnings_of(*folders: Path) -> list[str]:
    pieces = read_all(list(folders), IngestOptions(one_process=True)).pieces
    texts = [text for run in form_runs(pieces) for one in run for text in one.warnings]
    return [text for text in texts if "start" in text or "window" in text or "run" in text]


@pytest.mark.parametrize("inside", [(0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (7, 8, 9, 10)])
def test_steps_of_window_are_those_of_the_run(tmp_path, inside):
    folder = write_window(tmp_path, 2, 5, inside=inside)
    assert steps_on_device(folder) == [2, 3, 4, 5]
    assert not any("steps" in text and "start2_stop5" in text for text in read_window(folder).warnings)


def test_markers_of_a_trace_have_the_numbers_of_the_run(tmp_path):
    """Inside they are ProfilerStep#0 to #3."""
    folder = write(tmp_path / "rank0_start8_stop11", 0, Written(steps=4))
    events = readers.read(readers.Found(folder, "ascend_text")).captures[0].events
    assert events.markers.step.tolist() == [8, 9, 10, 11]
    assert sorted(set(events.device.step.tolist())) == [8, 9, 10, 11]


def test_database_in_a_window_has_the_numbers_of_the_run(tmp_path):
    """Its one step is the 3rd inside; in a folder of another name it stays that."""
    steps = {}
    for place in ("rank4_start20_stop20", "elsewhere"):
        folder = Path(shutil.copytree(DATABASE, tmp_path / place / DATABASE.name))
        steps[place] = readers.read(readers.Found(folder, "ascend_db")).captures[0].events.markers.step.tolist()
    assert steps == {"rank4_start20_stop20": [20], "elsewhere": [3]}


@pytest.mark.parametrize(
    ("inside", "steps", "said"),
    [
        ((1, 2), [2, 3], "rank0_start2_stop5 holds steps 2-3: 2 of the 4 that it is named after"),
        ((1, 2, 4), [2, 3, 5], "rank0_start2_stop5 holds steps 2-3, 5: 3 of the 4 that it is named after"),
        ((1, 2, 3, 4, 5), [2, 3, 4, 5, 6], "rank0_start2_stop5 holds steps 2-6: 5 of the 4 that it is named after"),
    ],
)
def test_window_that_holds_other_steps_says_so(tmp_path, inside, steps, said):
    folder = write_window(tmp_path, 2, 5, inside=inside)
    assert steps_on_device(folder) == steps
    assert said in read_window(folder).warnings


def test_window_without_step_numbers_is_one_step_and_says_which_it_holds(tmp_path):
    folder = write_window(tmp_path, 2, 5, inside=())
    assert any(text.startswith("no event names a step: steps 2-5 of the run") for text in read_window(folder).warnings)
    other = write_window(tmp_path, 8, 10, inside=())
    assert len(runs_of(folder, other)) == 1


def test_name_that_stops_before_it_starts_is_refused(tmp_path):
    folder = write_window(tmp_path, 5, 2, inside=(1, 2))
    with pytest.raises(SourceError, match="stops at step 2, before it starts at step 5"):
        read_window(folder)


def test_windows_of_one_rank_are_one_run_with_the_gap_said(tmp_path):
    windows = [write_window(tmp_path, 2, 5), write_window(tmp_path, 8, 10)]
    for order in permutations(windows):
        assert runs_of(*order) == [[(0, [2, 3, 4, 5])]]
    assert warnings_of(tmp_path) == [
        "2 folders are windows of one run of rank 0 (steps 2-5 and 8-10; steps 6-7 between them were not recorded), "
        "of which rank0_start2_stop5 counts (rank0_start8_stop10 left out)"
    ]


def test_windows_that_follow_each_other_have_no_gap(tmp_path):
    write_window(tmp_path, 2, 5)
    write_window(tmp_path, 6, 9)
    (note,) = warnings_of(tmp_path)
    assert "(steps 2-5 and 6-9), of which rank0_start6_stop9 counts" in note


def test_windows_of_several_ranks_are_one_run(tmp_path):
    for rank in (0, 1):
        write_window(tmp_path, 2, 5, rank=rank)
        write_window(tmp_path, 8, 10, rank=rank)
    assert runs_of(tmp_path) == [[(0, [2, 3, 4, 5]), (1, [2, 3, 4, 5])]]


def test_windows_of_another_process_are_another_run(tmp_path):
    write_window(tmp_path / "a", 2, 5)
    write_window(tmp_path / "a", 8, 10, process=5100)
    assert len(runs_of(tmp_path)) == 2


@pytest.mark.parametrize(("order", "counts"), [((2, 8), "one before counts"), ((8, 2), "takes the place")])
def test_window_that_comes_later_joins_its_run(memory_store: Store, tmp_path, order, counts):
    stops = {2: 5, 8: 10}
    notes = []
    for first in order:
        folder = write_window(tmp_path, first, stops[first])
        (result,) = ingest(memory_store, [folder], version="v1", workload="w")
        notes += result.warnings
    assert queries.steps(memory_store, [1]).listed("step") == [2, 3, 4, 5]
    assert len(queries.runs(memory_store)) == 1
    (note,) = [text for text in notes if "another window" in text]
    assert "(steps 2-5 and 8-10; steps 6-7 between them were not recorded)" in note
    assert counts in note
