"""Operators that all moved by one factor: one finding, of the step."""

from __future__ import annotations

import pytest

from tests.detect.test_judge import STEP, judged, op

STEADY = [1.0, 1.002, 0.998]
NAMES = ("mm", "bmm", "add", "gelu")


def runs(time, *factors):
    """Three runs of about this time, and two that take it by each factor."""
    return [time * run for run in STEADY] + [time * factor for factor in factors]


def judge_operators(factors, *, idle=0.0, names=NAMES):
    """Verdicts and reasons by name of operators of 100 ns, with the step that they make up beside `idle` ns more."""
    rows = {op(name): runs(100.0, factor * 1.001, factor * 0.999) for name, factor in zip(names, factors, strict=True)}
    sums = [sum(column) for column in zip(*rows.values(), strict=True)]
    waits = [0.0, 0.0, 0.0, idle, idle]
    step = [compute + wait for compute, wait in zip(sums, waits, strict=True)]
    names_of_ops = {("op_name", "host_self_ns", name): row for (_, _, name), row in rows.items()}
    verdicts, reasons, _ = judged({**rows, **names_of_ops, STEP: step}, 2)
    words = [f"{verdict} {reason}" for verdict, reason in zip(verdicts, reasons, strict=True)]
    return dict(zip(["step", *names], [words[-1], *words], strict=False))


@pytest.mark.parametrize(("factor", "verdict"), [(1.09, "REGRESSED"), (0.92, "IMPROVED")])
def test_one_factor_leaves_one_finding(factor, verdict):
    found = judge_operators([factor] * 4)
    assert found == {"step": f"{verdict} ALIKE", **dict.fromkeys(NAMES, "DRIFT ALIKE")}


@pytest.mark.parametrize(
    "factors",
    [(1.09, 1.09, 1.09, 1.3), (1.09, 1.09, 1.09, 1.0), (1.09, 1.09, 1.09, 0.9), (1.09, 1.09, 1.15, 1.15)],
)  # fmt: skip
def test_another_factor_is_the_change_of_an_operator(factors):
    found = judge_operators(factors)
    assert found["mm"] == "REGRESSED NONE"
    assert not any("ALIKE" in words for words in found.values())


def test_two_operators_alike_are_a_coincidence():
    found = judge_operators([1.09, 1.09], names=("mm", "bmm"))
    assert found == {"step": "REGRESSED NONE", "mm": "REGRESSED NONE", "bmm": "REGRESSED NONE"}


def test_step_that_something_else_made_slower_keeps_all_findings():
    # 36 of 136 ns are the operators'
    found = judge_operators([1.09] * 4, idle=100.0)
    assert found["step"] == "REGRESSED NONE"
    assert found["mm"] == "REGRESSED NONE"


def test_shapes_of_one_operator_are_not_several_operators():
    rows = {("op", "host_self_ns", "mm", f"[{size}]"): runs(100.0, 1.09, 1.09) for size in range(4)}
    rows = {(kind, metric, f"{name}{shape}"): row for (kind, metric, name, shape), row in rows.items()}
    whole = [sum(column) for column in zip(*rows.values(), strict=True)]
    verdicts, _, _ = judged({**rows, ("op_name", "host_self_ns", "mm"): whole, STEP: whole}, 2)
    assert verdicts == ["REGRESSED"] * 6
