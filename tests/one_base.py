"""What holds for the diff of every version of a series with its level: its numbers are those of its verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pandas as pd
import pytest

import tracker
from tracker.compare import diffs
from tracker.results import ADDED, REMOVED
from tracker.results.diff import OTHER_SHAPES
from tracker.results.findings import CONFIRMED_STATES, ENDED_STATES
from tracker.schema.series import RUN_SERIES_OF

LEAST_REST_NS = 1_000_000
"""What medians do not add up by: a tenth of the change, or this."""


def check_diffs(store, versions: Sequence[str]) -> int:
    """Check the diff of each version but the first against its level; return how many findings had their number."""
    findings = tracker.findings(store=store, states=(*CONFIRMED_STATES, *ENDED_STATES), every=True).findings
    checked = 0
    for before, version in pairwise(versions):
        (of_level,), (of_sides,) = diffs(store, [version]), diffs(store, [before, version])
        check_sums(of_level.explanation)
        check_numbers_of_causes(of_level)
        assert one_sided(of_level.ops) == one_sided(of_sides.ops), f"{version}: what came and went since {before}"
        for _, finding in findings[findings.version == version].iterrows():
            for ends in ends_of(of_level, finding):
                told = [finding.baseline_value, finding.candidate_value]
                assert known(ends) == pytest.approx(known(told), rel=1e-9), f"{version}: {finding['name']}"
                checked += 1
    return checked


def check_sums(found) -> None:
    """Check that the causes add up to the change, and how large the rest is."""
    assert sum(row.delta_ns for row in found.contributions) == pytest.approx(found.delta_ns, abs=1.0)
    rest = sum(row.delta_ns for row in found.contributions if row.kind == "rest")
    assert abs(rest) <= max(LEAST_REST_NS, abs(found.delta_ns) / 10)


def check_numbers_of_causes(diff) -> None:
    """Check that what a sentence about a cause says, "slower: 41.76 -> 43.23 ms", stands in a row of a table, too."""
    for row in diff.explanation.contributions:
        of_tables = []
        if row.kind == "part":
            of_tables = diff.overall[diff.overall.metric == row.metric][["baseline_value", "candidate_value"]]
        elif row.kind == "operator" and row.input_shapes != OTHER_SHAPES:
            of_name = [[one.baseline_ns, one.candidate_ns] for one in diff.explanation.rollup if one.name == row.name]
            of_shapes = diff.ops[diff.ops.name == row.name][["baseline_ns", "candidate_ns"]]
            of_tables = pd.concat([of_shapes, pd.DataFrame(of_name, columns=of_shapes.columns)])
        if len(of_tables):
            told = known([row.baseline_ns, row.candidate_ns])
            assert any(known(ends) == pytest.approx(told) for ends in of_tables.to_numpy().tolist()), row


def one_sided(ops: pd.DataFrame) -> tuple[set[str], set[str]]:
    """Return the names of operators that came, and those that went, with all their shapes."""
    statuses = ops.groupby("name").status.agg(set)
    return tuple({name for name, found in statuses.items() if found == {word}} for word in (ADDED, REMOVED))


def known(values: Sequence[float | None]) -> list[float]:
    """Return numbers with 0 for one that is not there."""
    return [0.0 if pd.isna(value) else float(value) for value in values]


def ends_of(diff, finding) -> Iterator[list[float | None]]:
    """Yield what a diff prints of the same fact, where it has a row of it: before and after."""
    if finding.kind == "run" and finding["name"] in RUN_SERIES_OF:
        # what says the same as the step is no row of its own
        numbers = diff.overall[diff.overall.metric == RUN_SERIES_OF[finding["name"]].number]
        yield from ([row.baseline_value, row.candidate_value] for _, row in numbers.iterrows())
    if finding.kind == "op":
        ops = diff.ops[(diff.ops.name == finding["name"]) & (diff.ops.input_shapes == finding.input_shapes)]
        yield from ([row.baseline_ns, row.candidate_ns] for _, row in ops.iterrows())
    if finding.kind == "op_name":
        named = [row for row in diff.explanation.rollup if row.name == finding["name"]]
        yield from ([row.baseline_ns, row.candidate_ns] for row in named)
