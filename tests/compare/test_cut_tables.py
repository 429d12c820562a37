"""A source that lists only the head of its tables: what the other side has beside it was neither added nor removed."""

from __future__ import annotations

import pytest

from tests.readers.test_nsys_stats import KERNELS
from tracker.compare import diff

GEMM = "     60.0              600          3     200.0     200.0       100       300          0.0  gemm\n"
SOFTMAX = "     20.0              200          1     200.0     200.0       200       200          0.0  softmax\n"
GELU = "     20.0              200          1     200.0     200.0       200       200          0.0  gelu\n"
TANH = "     20.0              200          1     200.0     200.0       200       200          0.0  tanh\n"


@pytest.fixture
def statuses(tmp_path):
    """Kernel -> status of the diff of two texts, and the notes on what is cut."""

    def compared(baseline, candidate):
        paths = []
        for name, rows in (("old.txt", baseline), ("new.txt", candidate)):
            paths.append(tmp_path / name)
            paths[-1].write_text(KERNELS + "".join(rows))
        found = diff(None, *map(str, paths))
        kernels = found.tables["kernels"]
        notes = [note for note in found.notes if "lists only a part" in note]
        return dict(kernels.rows("name", "status")), notes, found

    return compared


def test_what_a_cut_baseline_does_not_list_was_not_added(statuses):
    """The baseline shows gemm and softmax, 80 %; the candidate gemm and gelu, and all there is: softmax is gone."""
    found, notes, compared = statuses((GEMM, SOFTMAX), (GEMM.replace("60.0", "75.0"), GELU.replace("20.0", "25.0")))
    assert found == {"gemm": "both", "gelu": "UNMATCHED", "softmax": "REMOVED", "(not listed)": "UNMATCHED"}
    (note,) = notes
    assert note.startswith("The source of") and "lists only a part of its kernels: what only" in note
    assert note.endswith("has is UNMATCHED, not ADDED.")
    sums = {row["metric"]: row for row in compared.tables["overall"].frame.to_dict("records")}
    assert (sums["kernel_total_ns"]["baseline_value"], sums["kernel_total_ns"]["candidate_value"]) == (1000, 800)


def test_what_a_cut_candidate_does_not_list_was_not_removed(statuses):
    found, notes, _ = statuses((GEMM, SOFTMAX, GELU), (GEMM, TANH))
    assert found == {
        "gemm": "both", "softmax": "UNMATCHED", "gelu": "UNMATCHED", "tanh": "ADDED", "(not listed)": "UNMATCHED",
    }  # fmt: skip
    assert notes[0].endswith("has is UNMATCHED, not REMOVED.")


def test_whole_tables_have_added_and_removed_kernels(statuses):
    found, notes, _ = statuses((GEMM, SOFTMAX, GELU), (GEMM, SOFTMAX, TANH))
    assert (found["gelu"], found["tanh"], notes) == ("REMOVED", "ADDED", [])


def test_both_cut_sides_share_what_both_list(statuses):
    """The part that neither lists is compared as one row."""
    found, notes, _ = statuses((GEMM, SOFTMAX), (GEMM, GELU))
    assert found == {"gemm": "both", "softmax": "UNMATCHED", "gelu": "UNMATCHED", "(not listed)": "both"}
    assert len(notes) == 2
