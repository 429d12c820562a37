"""Device work that no operator launched, as a CUDA graph launches it: what changed are its kernels."""

from __future__ import annotations

import pytest

from tests.factories import EPOCH_NS, save
from tracker.compare import diff
from tracker.profile import NO_OP, UNLINKED_OP


def graph(store, version, kernels, *, ops=(), stand_in=NO_OP, own_ns=None, count=1, kernel_of=""):
    """Runs of three steps of a graph with kernels (name, ns a step[, calls, category]) beside operators."""
    rows = []
    for name, ns, *more in kernels:
        calls, category = (*more, *(20, "matmul")[len(more) :])
        rows.append((name, ns, {"op": stand_in, "calls": calls, "category": category}))
    rows += [(kernel_of or f"kernel of {name}", ns, {"op": name}) for name, ns in ops]
    graph_ns = sum(row[1] for row in rows if row[2]["op"] == stand_in) if own_ns is None else own_ns
    step_ns = graph_ns + sum(ns for _, ns in ops)
    first = 10 * (version == "v2")
    for number in range(first, first + count):
        save(
            store, version, ops=[*ops, (stand_in, graph_ns)], kernels=rows, steps=3, step_ns=step_ns, e2e_ns=step_ns,
            started_at_ns=EPOCH_NS + number * 10**12,
        )  # fmt: skip


def causes(found):
    """Return each cause in words, and by how much it changed."""
    return [(row.name, row.why, row.delta_ns) for row in found.explanation.contributions]


@pytest.mark.parametrize("stand_in", [NO_OP, UNLINKED_OP])
def test_kernel_of_a_graph_replaced_is_one_cause(memory_store, stand_in):
    attention = ("attention", 600_000, 20, "attention")
    graph(memory_store, "v1", [attention, ("cute::gemm<sm100>", 1_000_000)], stand_in=stand_in)
    graph(memory_store, "v2", [attention, ("cute::gemm<sm120>", 1_240_000)], stand_in=stand_in)
    found = diff(memory_store, "v1", "v2")
    assert causes(found) == [("cute::gemm<sm100> -> cute::gemm<sm120>", "replaced", 240_000)]
    (cause,) = found.explanation.contributions
    assert (cause.baseline_ns, cause.candidate_ns, cause.share) == (1_000_000, 1_240_000, 1.0)


def test_kernels_of_a_graph_have_the_words_of_operators(memory_store):
    """The step is 300 ns longer: slower +200, more calls +100, new +40, gone -40."""
    before = [("slow", 1000), ("often", 100, 10), ("gone", 40, 1, "reduction")]
    after = [("slow", 1200), ("often", 200, 20), ("new", 40, 7, "elementwise")]
    graph(memory_store, "v1", before)
    graph(memory_store, "v2", after)
    found = diff(memory_store, "v1", "v2")
    assert causes(found) == [
        ("slow", "slower per call", 200),
        ("often", "more calls", 100),
        ("gone", "gone", -40),
        ("new", "new", 40),
    ]
    assert found.explanation.delta_ns == 300


def test_kernels_of_a_graph_stand_beside_operators(memory_store):
    graph(memory_store, "v1", [("attention", 500)], ops=[("aten::mm", 400)])
    graph(memory_store, "v2", [("attention", 530)], ops=[("aten::mm", 490)])
    assert causes(diff(memory_store, "v1", "v2")) == [
        ("aten::mm", "slower per call", 90),
        ("attention", "slower per call", 30),
    ]


def test_kernels_of_other_work_do_not_replace_each_other(memory_store):
    graph(memory_store, "v1", [("gemm", 1000), ("norm", 300, 20, "normalization")])
    graph(memory_store, "v2", [("gemm", 1000), ("cast", 200, 20, "elementwise")])
    assert causes(diff(memory_store, "v1", "v2")) == [("norm", "gone", -300), ("cast", "new", 200)]


def test_graph_kernel_with_another_namespace_is_renamed(memory_store):
    graph(memory_store, "v1", [("attention", 900), ("v1::gemm_fp8", 1000)])
    graph(memory_store, "v2", [("attention", 990), ("v2::gemm_fp8", 1010)])
    assert [(why, delta) for _, why, delta in causes(diff(memory_store, "v1", "v2"))] == [
        ("slower per call", 90),
        ("renamed", 10),
    ]


def test_kernel_that_an_operator_launches_is_not_gone(memory_store):
    """The 100 ns of gemm outside of operators are those of mm in v2: nothing new, nothing gone."""
    graph(memory_store, "v1", [("gemm", 100), ("norm", 80, 20, "normalization")], ops=[("aten::mm", 400)])
    graph(memory_store, "v2", [("norm", 90, 20, "normalization")], ops=[("aten::mm", 500)], kernel_of="gemm")
    assert causes(diff(memory_store, "v1", "v2")) == [
        ("aten::mm", "slower per call", 100),
        ("gemm", "outside of operators", -100),
        ("norm", "slower per call", 10),
    ]


def test_kernels_of_operators_counted_again_are_no_causes(memory_store):
    """A summary lists the kernel of mm once more, as unlinked; outside of operators there are 50 ns, then 80."""
    for version, mm_ns, ns in (("v1", 900, 50), ("v2", 1000, 80)):
        kernels = [("gemm", mm_ns), ("fill", ns)]
        graph(memory_store, version, kernels, ops=[("aten::mm", mm_ns)], own_ns=ns, stand_in=UNLINKED_OP)
    found = causes(diff(memory_store, "v1", "v2"))
    assert ("aten::mm", "slower per call", 100) in found
    assert (UNLINKED_OP, "slower per call", 30) in found


def test_headline_names_a_graph_kernel_that_regressed(memory_store):
    """Of 100 ms a step, the kernel takes 1 ms, then 1.5: no slower step, but a slower kernel."""
    for version, ns in (("v1", 1_000_000), ("v2", 1_500_000)):
        graph(memory_store, version, [("gemm", 99_000_000), ("norm", ns, 20, "normalization")], count=3)
    found = diff(memory_store, "v1", "v2")
    assert found.headline.endswith("; 1 kernel REGRESSED: norm +50.0 %")
    assert found.explanation.contributions[0].verdict == "REGRESSED"
    assert found.judgement.counts == ()
