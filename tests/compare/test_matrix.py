"""Three or more sides beside each other, with numbers that a reader checks in the head."""

from __future__ import annotations

import pytest

from tests.factories import EPOCH_NS, save
from tests.regressions.made import runs
from tracker.compare import matrix
from tracker.errors import UsageError
from tracker.results import MATRIX_COLUMNS, DiffOptions


def of(result, name, column="value"):
    (number,) = (row["row"] for row in result.tables["rows"].records() if row["name"] == name)
    return [cell[column] for cell in result.tables["cells"].records() if cell["row"] == number]


@pytest.fixture
def three(store):
    """mm 100, 100, 130; gelu goes after v1, tanh comes with v3."""
    for number, ops in enumerate(
        ([("mm", 100), ("gelu", 8)], [("mm", 100)], [("mm", 130), ("tanh", 20)]),
    ):
        kernels = [("gemm", 100 + 30 * (number == 2))]
        save(store, f"v{number + 1}", ops=ops, kernels=kernels, step_ns=1000 + 50 * (number == 2),
             started_at_ns=EPOCH_NS + number * 10**13)  # fmt: skip
    return store


def test_each_side_has_a_column_with_its_difference_from_the_first(three):
    result = matrix(three, ["v1", "v2", "v3"])
    assert {name: tuple(getattr(result, name).columns) for name in MATRIX_COLUMNS} == MATRIX_COLUMNS
    assert [side.label for side in result.sides] == ["v1", "v2", "v3"]
    assert of(result, "mm") == [100, 100, 130]
    assert of(result, "mm", "diff") == [0, 0, pytest.approx(0.3)]
    assert of(result, "mm", "previous_diff") == [None, 0, pytest.approx(0.3)]
    assert of(result, "Step time") == [1000, 1000, 1050]


def test_a_side_without_a_row_says_nothing_and_counts_as_0_in_the_order(three):
    result = matrix(three, ["v1", "v2", "v3"])
    assert (of(result, "gelu"), of(result, "tanh")) == ([8, None, None], [None, None, 20])
    ops = result.rows[result.rows["section"] == "op"]
    assert ops[["name", "movement"]].values.tolist() == [["mm", 30], ["tanh", 20], ["gelu", 8]]
    assert result.rows["section"].iloc[0] == "overall"


def test_what_regressed_is_marked_at_the_side_with_which_it_came(store):
    runs(store, "v1")
    runs(store, "v2", start=3)
    runs(store, "v3", {"op07": 1.2}, start=6)
    runs(store, "v4", {"op07": 1.2}, start=9)
    result = matrix(store, ["v1", "v2", "v3", "v4"])
    assert of(result, "op07", "verdict") == [None, "UNCHANGED", "REGRESSED", "UNCHANGED"]
    judged = {sentence.partition(".")[0] for sentence in result.judged}
    assert judged == {"Judged for this comparison alone: 3 runs against 3"}


@pytest.mark.parametrize(("by", "name"), [("kernel", "gemm"), ("communication", "all_reduce"), ("module", "A_0")])
def test_the_rows_may_be_kernels_collectives_or_modules(store, by, name):
    for number in range(3):
        save(store, f"v{number}", ops=[("mm", 10 + number, {"module": "A_0"})], kernels=[("gemm", 10 + number)],
             communication=[("all_reduce", 10 + number, {"group_role": "dp"})],
             started_at_ns=EPOCH_NS + number * 10**13)  # fmt: skip
    assert of(matrix(store, ["v0", "v1", "v2"], by=by), name) == [10, 11, 12]


def test_filters_are_those_of_a_diff(three):
    named = matrix(three, ["v1", "v2", "v3"], options=DiffOptions(op="*mm"))
    assert named.rows.loc[named.rows["section"] == "op", "name"].tolist() == ["mm"]
    large = matrix(three, ["v1", "v2", "v3"], options=DiffOptions(minimum_ns=15))
    assert large.rows.loc[large.rows["section"] == "op", "name"].tolist() == ["mm", "tanh"]
    assert "Step time" in set(large.rows["name"])


@pytest.mark.parametrize(
    ("options", "word"), [({"max_kernels": 3}, "--max-kernels"), ({"candidate_steps": (1,)}, "--candidate-step")]
)
def test_options_for_two_sides_are_refused(three, options, word):
    with pytest.raises(UsageError, match=f"^{word} compares two sides, and there are more"):
        matrix(three, ["v1", "v2", "v3"], options=DiffOptions(**options))
    with pytest.raises(UsageError, match="choose from op, kernel, communication, module"):
        matrix(three, ["v1", "v2", "v3"], by="phase")
