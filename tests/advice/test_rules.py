"""Each rule on a run where it fires, with a number that can be checked in the head, and on one where it must not."""

from __future__ import annotations

import pytest

from tests.advice.made import CPU, MI300X, MS, NPU, V100, advise, gain_ms, kernel, only, op, rules

BUSY = {"compute": 60, "idle": 0}
NORM = "GPT_0/Block_0/RMSNorm_0"


def test_a_device_that_idles_in_data_loading_waits_for_data(memory_store):
    found = advise(memory_store, times={"data_loading": 30, "data_loading_idle": 20, "compute": 70, "idle": 20})
    assert gain_ms(found, "I1") == 20  # the device works in the other 10
    assert "num_workers" in only(found, "I1").remedies[0]


def test_data_loading_beside_a_busy_device_costs_nothing(memory_store):
    assert rules(advise(memory_store, times={"data_loading": 30, "data_loading_idle": 0, "compute": 99})) == []
    little = advise(memory_store, times={"data_loading": 30, "data_loading_idle": 0.5, "compute": 99})
    assert not only(little, "I1").is_shown


def test_time_without_an_operator_on_a_host_is_a_gap(memory_store):
    times = {"timeline": "host", "compute": 70, "idle": 30, "data_loading": 4}
    found = advise(memory_store, times=times, device=CPU, ops=[("aten::mm", 35 * MS)])
    assert gain_ms(found, "I3") == 26
    usual = advise(memory_store, times={**times, "idle": 8}, device=CPU, ops=[("aten::mm", MS)])
    assert (gain_ms(usual, "I3"), only(usual, "I3").is_shown) == (4, False)


def test_pageable_copies_win_what_nothing_hides(memory_store):
    copy = kernel("aten::copy_", 5, name="Memcpy HtoD (Pageable -> Device)", category="copy", bytes=50_000_000)
    found = advise(memory_store, times={**BUSY, "exposed_copy": 3}, kernels=[copy], steps=2)
    assert gain_ms(found, "I4") == 3
    assert [number.words for number in only(found, "I4").numbers][-1] == "rate 10.0 GB/s"
    pinned = kernel("aten::copy_", 5, name="Memcpy HtoD (Pinned -> Device)", category="copy")
    assert "I4" not in rules(advise(memory_store, times={**BUSY, "exposed_copy": 3}, kernels=[pinned], steps=2))
    # where nothing marks the steps, the copies are those of the set-up
    assert "I4" not in rules(advise(memory_store, times={**BUSY, "exposed_copy": 3}, kernels=[copy]))


WAITS = [("host: operator", "aten::add", 40 * MS), ("launch latency", "", 8 * MS), ("data loading", "next", 12 * MS)]


def test_operators_on_a_host_that_is_late_win_what_the_device_waits_for_them(memory_store):
    """60 ms of idle time: 40 in aten::add and 8 of launch latency are the host's, 12 are of the loader."""
    launches = [("cudaLaunchKernel", 10 * MS, {"calls": 1000})]  # 10 us each
    made = [kernel("aten::add", 5, calls=1000)]  # 5 us each
    found = advise(memory_store, times={"compute": 5, "idle": 60}, kernels=made, api=launches, idle=WAITS)
    assert gain_ms(found, "H1") == 48
    words = [number.words for number in only(found, "H1").numbers]
    assert words[:2] == ["idle 48.00 ms", "in aten::add 40.00 ms"]
    little = advise(
        memory_store, times={"compute": 90, "idle": 1}, kernels=made, idle=[("host: operator", "a", MS // 2)]
    )
    assert (gain_ms(little, "H1"), only(little, "H1").is_shown) == (0.5, False)


@pytest.mark.parametrize(
    ("cause", "place", "rule", "words"),
    [
        ("host: no operator", "train.py(44): log", "H3", "in train.py(44): log 30.00 ms"),
        ("garbage collection", "Python GC", "H4", "in Python GC 30.00 ms"),
        ("compile", "cuModuleLoadData", "H5", "in cuModuleLoadData 30.00 ms"),
        ("dependency", "gather<float>", "H9", "before gather<float> 30.00 ms"),
        ("between kernels", "", "H10", "idle 30.00 ms"),
    ],
)
def test_each_cause_of_idle_time_is_advice_of_its_own(memory_store, cause, place, rule, words):
    made = {"times": {"compute": 60, "idle": 30}, "kernels": [kernel("aten::add", 60)]}
    found = advise(memory_store, **made, idle=[(cause, place, 30 * MS)])
    assert gain_ms(found, rule) == 30
    assert only(found, rule).numbers[-1].words == words
    assert only(advise(memory_store, **made, idle=[(cause, place, MS)]), rule).severity == "medium"
    assert not only(advise(memory_store, **made, idle=[(cause, place, MS // 2)]), rule).is_shown


def test_idle_time_of_which_nobody_says_why_is_advice_without_a_cause(memory_store):
    made = {"times": {"compute": 60, "idle": 30}, "kernels": [kernel("aten::add", 60)]}
    found = advise(memory_store, **made, idle=[("unknown", "", 26 * MS), ("compile", "", 4 * MS)])
    assert [(item.rule, gain_ms(found, item.rule)) for item in found.items] == [("H11", 26), ("H5", 4)]
    assert rules(advise(memory_store, **made)) == ["H11"]  # as a table of kernels alone has it


def test_what_a_profiler_states_of_its_device_is_idle_time(memory_store):
    """Paddle's summary: of a step of 100 ms the device works 59.7, and 59.9 of the CPU time are of no phase."""
    parts = {"Dataloader": 4.0, "Forward": 30.0, "Backward": 4.1, "Optimization": 2.0}
    stated = [("device_summary", "GPU0", "Utilization (%)", 59.7), ("device_summary", "CPU(Process)", "x", 77.0)]
    stated += [("overview_summary", name, "CPU time per step (ms)", ms) for name, ms in parts.items()]
    found = advise(memory_store, times={"idle": None, "compute": 59.7, "data_loading": 4}, counters=stated)
    assert gain_ms(found, "H11") == 36.3  # 40.3 less the 4 of the loader
    assert [number.words for number in only(found, "H11").numbers] == [
        "idle without a cause 36.30 ms", "idle by the profiler's own number, data loading included 40.30 ms",
        "CPU time of no phase (Others) 59.9 %",
    ]  # fmt: skip


def test_a_timer_beside_the_trace_measures_by_its_own_step(memory_store):
    timer = [("timer_log", "reader_cost", "ms", 13.84), ("timer_log", "batch_cost", "ms", 43.97)]
    times = {"timeline": "host", "data_loading": 13.84, "compute": 90}
    found = advise(memory_store, times=times, device=CPU, ops=[("matmul", MS)], counters=timer)
    assert round(only(found, "I1").gain_share, 3) == 0.315
    assert "of the step by the timer 43.97 ms" in [number.words for number in only(found, "I1").numbers]


def test_what_follows_a_wait_is_said_to_stand_behind_it(memory_store):
    """Of 10 ms without an operator 6 are behind a wait: that is named where all of it is behind one."""
    after = ("host: no operator", "preprocess (video.py:129)", 10 * MS, {"behind_wait_ns": 6 * MS})
    made = {"times": {"compute": 80, "idle": 12}, "kernels": [kernel("aten::add", 80)]}
    wait = ("synchronisation", "aten::item", MS, {"behind_wait_ns": 6 * MS})
    found = advise(memory_store, **made, idle=[after, wait])
    assert [number.words for number in only(found, "H3").numbers] == [
        "idle 10.00 ms", "in preprocess (video.py:129) 10.00 ms",
        "behind aten::item, which let the queue run dry: 6.00 ms",
    ]  # fmt: skip
    assert only(found, "H2").numbers[-1].words == "more stands behind these waits, as work of the host: 6.00 ms"
    waits = [("synchronisation", name, MS, {"behind_wait_ns": 3 * MS}) for name in ("aten::item", "aten::nonzero")]
    found = advise(memory_store, **made, idle=[after, *waits])
    assert only(found, "H3").numbers[-1].words == (
        "behind calls that wait for the device, which let the queue run dry: 6.00 ms"
    )


def test_waiting_for_the_device_wins_what_it_idles_meanwhile(memory_store):
    made = {"times": {"compute": 80, "idle": 12}, "kernels": [kernel("aten::add", 80)], "steps": 2}
    found = advise(memory_store, **made, idle=[("synchronisation", "aten::item", 8 * MS), WAITS[1]])
    assert gain_ms(found, "H2") == 8
    assert only(found, "H2").numbers[1].words == "in aten::item 8.00 ms"


def test_synchronising_again_and_again_costs_at_most_what_the_device_idles(memory_store):
    calls = [("cudaStreamSynchronize", 30 * MS, {"calls": 50})]
    found = advise(
        memory_store, times={"compute": 80, "idle": 8}, kernels=[kernel("aten::add", 80)], api=calls, steps=2
    )
    assert gain_ms(found, "H2") == 8
    once = [("cudaStreamSynchronize", 30 * MS, {"calls": 1})]
    assert "H2" not in rules(
        advise(memory_store, times={"compute": 80, "idle": 8}, kernels=[kernel("a", 80)], api=once)
    )


def test_compilation_in_the_only_step_is_a_hint(memory_store):
    calls = [("aclopCompileAndExecute", 9 * MS, {"calls": 20, "level": "acl"})]
    made = {"times": {"compute": 80, "idle": 12}, "kernels": [kernel("aten::add", 80)], "api": calls, "device": NPU}
    assert only(advise(memory_store, **made), "H6").confidence == "hint"
    found = advise(memory_store, **made, steps=3)
    assert (only(found, "H6").confidence, gain_ms(found, "H6")) == ("certain", 9)


def test_allocation_counts_after_the_second_step(memory_store):
    made = {"times": {"compute": 80, "idle": 12}, "kernels": [kernel("aten::add", 80)],
            "api": [("cudaMalloc", 4 * MS)]}  # fmt: skip
    assert gain_ms(advise(memory_store, steps=4, **made), "H7") == 4
    assert "H7" not in rules(advise(memory_store, steps=2, **made))


def test_attention_written_out_is_recognised_by_its_scores(memory_store):
    scores = (8, 512, 512)
    parts = [
        kernel(op("aten::bmm", (8, 512, 64), (8, 64, 512)), 10, category="matmul"),
        kernel(op("aten::_softmax", scores), 20),
        kernel(op("aten::bmm", scores, (8, 512, 64)), 10, category="matmul"),
        kernel(op("aten::mm", (4096, 64), (64, 64)), 5, category="matmul"),
    ]
    found = advise(memory_store, times=BUSY, kernels=parts)
    # all but the floor of one kernel: 0.54 GFLOP at 989 TFLOP/s are 0.5 us; the other matmul is no part of it
    assert only(found, "K4").gain_ns == pytest.approx(40 * MS - 543, abs=1)
    flash = kernel(op("aten::_flash_attention_forward", (8, 512, 1, 64), (8, 512, 1, 64)), 5, name="flash_fwd")
    assert "K4" not in rules(advise(memory_store, times=BUSY, kernels=[*parts, flash]))


def test_a_norm_written_out_keeps_the_floor_of_one_kernel(memory_store):
    shape = (67, 50, 1000)  # 6.7 MB of 16 bits: 2 us at 3,350 GB/s
    parts = [kernel(op(f"aten::{name}", shape, module=NORM), 2, name=name) for name in ("pow", "mean", "rsqrt", "mul")]
    found = advise(memory_store, times=BUSY, kernels=parts)
    assert only(found, "K5").title == "RMSNorm written out"
    assert only(found, "K5").gain_ns == pytest.approx(8 * MS - 4_000, abs=10)  # two passes
    fused = kernel(op("aten::native_layer_norm", shape, module=NORM), 2)
    assert "K5" not in rules(advise(memory_store, times=BUSY, kernels=[*parts, fused]))


def test_an_activation_written_out_on_a_host_may_win_all_of_it(memory_store):
    shape = (8, 96, 768)
    ops = [
        (name, 1 * MS, op(name, shape, types="float") | {"calls": 3})
        for name in ("aten::tanh", "aten::mul", "aten::pow")
    ]
    for _, _, row in ops:
        row.pop("name")
    found = advise(memory_store, times={"timeline": "host", "compute": 90}, device=CPU, ops=ops)
    assert gain_ms(found, "K6") == 6  # the factory has two ns on the host for one on the device
    assert only(found, "K6").title == "activation written out with pow, tanh"
    assert "K6" not in rules(advise(memory_store, times={"timeline": "host"}, device=CPU, ops=ops[1:]))


def test_a_loss_over_the_vocabulary_is_recognised_by_its_last_dimension(memory_store):
    logits = (4096, 50_000)
    head = kernel(op("aten::mm", (4096, 64), (64, 50_000)), 1, category="matmul")
    parts = [kernel(op(f"aten::{name}", logits, types="float"), 5, name=name) for name in ("exp", "sub", "div")]
    found = advise(memory_store, times=BUSY, kernels=[head, *parts])
    # 4 x 0.4096 GB at 3,350 GB/s are 0.49 ms
    assert gain_ms(found, "K7") == 14.51
    assert only(found, "K7").place == "50000"
    assert "K7" not in rules(advise(memory_store, times=BUSY, kernels=parts))  # no matmul has such a side


def test_a_rotary_embedding_is_recognised_by_its_halves(memory_store):
    half, whole = (2, 16, 512, 32), (2, 16, 512, 64)
    parts = [
        kernel(op("aten::neg", half), 2), kernel(op("aten::cat", half, half), 4),
        kernel(op("aten::mul", whole, (1, 1, 512, 64)), 4), kernel(op("aten::add", whole, whole), 2),
    ]  # fmt: skip
    # two passes over 2 MiB of 16 bits at 3,350 GB/s
    assert only(advise(memory_store, times=BUSY, kernels=parts), "K8").gain_ns == pytest.approx(12 * MS - 1252, abs=1)
    assert "K8" not in rules(advise(memory_store, times=BUSY, kernels=parts[1:]))


def test_elementwise_operators_of_a_module_keep_the_longest(memory_store):
    parts = [kernel(op(f"aten::{name}", (64, 64), module="GPT_0/Mlp_0"), ms, name=name)
             for name, ms in (("add", 3), ("mul", 2), ("div", 1))]  # fmt: skip
    assert gain_ms(advise(memory_store, times=BUSY, kernels=parts), "K10") == 3
    assert "K10" not in rules(advise(memory_store, times=BUSY, kernels=parts[:2]))


def test_tensors_of_64_bits_count_and_scalars_do_not(memory_store):
    tensor = op("aten::native_layer_norm", (8, 96, 192), types="double")
    scalar = {**op("aten::native_layer_norm", (8, 96, 192), ()), "input_types": "float,double"}
    assert gain_ms(advise(memory_store, times=BUSY, kernels=[kernel(tensor, 4)]), "K1") == 2
    assert rules(advise(memory_store, times=BUSY, kernels=[kernel(scalar, 4)])) == []


def test_32_bit_matmuls_win_by_the_quotient_of_the_peaks(memory_store):
    conv = kernel(op("aten::cudnn_convolution", (32, 64, 56, 56), types="float"), 40, category="convolution_forward")
    found = advise(memory_store, times=BUSY, kernels=[conv], device=V100)
    assert gain_ms(found, "K2") == 34.98  # 40 x (1 - 15.7 / 125)
    halves = kernel(op("aten::cudnn_convolution", (32, 64, 56, 56)), 40, category="convolution_forward")
    assert "K2" not in rules(advise(memory_store, times=BUSY, kernels=[halves], device=V100))


def test_odd_sizes_are_measured_by_the_best_even_one(memory_store):
    even = kernel(op("aten::mm", (4096, 4096), (4096, 4096)), 1, category="matmul")
    odd = kernel(op("aten::mm", (4096, 4095), (4095, 4096)), 4, category="matmul", name="other")
    found = advise(memory_store, times=BUSY, kernels=[even, odd])
    assert gain_ms(found, "K3") == 3.0
    assert "K3" not in rules(advise(memory_store, times=BUSY, kernels=[even]))


def test_an_optimizer_of_many_kernels_and_no_fused_one(memory_store):
    step = op("aten::add_", (1000,), phase="optimizer")
    found = advise(memory_store, times=BUSY, kernels=[kernel(step, 6, calls=300)])
    assert 5.9 < gain_ms(found, "K9") <= 6
    fused = kernel({**step, "name": "aten::_fused_adamw_"}, 2, name="multi_tensor_apply_kernel")
    assert "K9" not in rules(advise(memory_store, times=BUSY, kernels=[kernel(step, 6, calls=300), fused]))


def test_a_fused_optimizer_moves_each_parameter_once(memory_store):
    """Three kernels go over 67 million numbers of 32 bits for each of 20 parameters, in 30 ms together. A
    fused kernel has at least three passes, which take 240 us at 3,350 GB/s.
    """
    shape = (67_000_000,)
    names = ("aten::add_", "aten::mul_", "aten::addcdiv_")
    steps = [kernel(op(name, shape, types="float", phase="optimizer"), 10, name=name, calls=20) for name in names]
    found = advise(memory_store, times=BUSY, kernels=steps)
    # 20 parameters: 30 ms less 20 x 240 us
    assert gain_ms(found, "K9") == 25.2
    assert "as one kernel, at least 4.80 ms" in [number.words for number in only(found, "K9").numbers]


def test_changes_of_format_can_go_whole(memory_store):
    moved = kernel("aten::convolution", 4, name="batched_transpose_32x32_half", category="convolution_forward")
    found = advise(memory_store, times=BUSY, kernels=[moved], device=MI300X)
    assert (gain_ms(found, "K11"), only(found, "K11").place) == (4, "transpose")
    matmul = kernel("aten::convolution", 4, name="transpose_gemm", category="matmul")
    assert "K11" not in rules(advise(memory_store, times=BUSY, kernels=[matmul], device=MI300X))


def test_odd_sizes_are_compared_with_matmuls_of_their_own_size(memory_store):
    odd = kernel(op("aten::mm", (4096, 4095), (4095, 4096)), 4, category="matmul", name="other")
    larger = kernel(op("aten::mm", (8192, 8192), (8192, 8192)), 4, category="matmul")
    assert "K3" not in rules(advise(memory_store, times=BUSY, kernels=[larger, odd]))
    even = kernel(op("aten::mm", (4096, 4096), (4096, 4096)), 1, category="matmul")
    thin = kernel(op("aten::mm", (20, 327_680), (327_680, 606)), 4, category="matmul")
    tokens = kernel(op("aten::mm", (5185, 4096), (4096, 4096)), 4, category="matmul")  # how many rows does not matter
    assert "K3" not in rules(advise(memory_store, times=BUSY, kernels=[even, thin, tokens]))


def test_casts_of_one_tensor_keep_the_time_of_one(memory_store):
    cast = {**op("aten::copy_", (3350, 1000), (3350, 1000), module="GPT_0"), "input_types": "c10::BFloat16,float"}
    found = advise(memory_store, times=BUSY, kernels=[kernel(cast, 4, calls=4)])
    assert only(found, "K12").gain_ns == pytest.approx(4 * MS - 6_000, abs=10)  # 20.1 MB at 3,350 GB/s are 6 us
    assert "K12" not in rules(advise(memory_store, times=BUSY, kernels=[kernel(cast, 4)]))


def test_kernels_on_the_ai_cpu_can_go_whole(memory_store):
    own = kernel("npu::dropout", 3, name="DropOutGenMask", core_type="AI_CPU")
    assert gain_ms(advise(memory_store, times=BUSY, kernels=[own], device=NPU), "K13") == 3
    short = kernel("npu::dropout", 3, name="DropOutGenMask", core_type="AI_CPU", calls=1000)
    assert "K13" not in rules(advise(memory_store, times=BUSY, kernels=[short], device=NPU))


def test_a_matmul_into_a_given_tensor_counts_as_any_other(memory_store):
    product = op("aten::mm", (4300, 10_000), (10_000, 11_500), (4300, 11_500))  # mm.out
    ops = [("aten::mm", 4 * MS, {key: value for key, value in product.items() if key != "name"})]
    found = advise(memory_store, times=BUSY, ops=ops, kernels=[kernel(product, 4, category="matmul")])
    assert [round(row.flops / 1e12, 3) for row in found.efficiency] == [0.989]


def test_a_matmul_far_below_the_roofline_wins_the_rest(memory_store):
    product = op("aten::mm", (4300, 10_000), (10_000, 11_500))  # 0.989 TFLOP: 1 ms at 989 TFLOP/s
    ops = [("aten::mm", 4 * MS, {key: value for key, value in product.items() if key != "name"})]
    found = advise(memory_store, times=BUSY, ops=ops, kernels=[kernel(product, 4, category="matmul")])
    assert gain_ms(found, "K16") == 3
    assert found.use["hfu"] == pytest.approx(0.01)  # 1 ms of 100
    ops = [("aten::mm", int(1.5 * MS), ops[0][2])]
    assert "K16" not in rules(advise(memory_store, times=BUSY, ops=ops, kernels=[kernel(product, 1.5)]))


def test_setting_gradients_to_zero_can_go_whole(memory_store):
    fill = op("aten::zero_", (1000,), phase="clear_grad")
    assert gain_ms(advise(memory_store, times=BUSY, kernels=[kernel(fill, 2)]), "K21") == 2
    assert "K21" not in rules(advise(memory_store, times=BUSY, kernels=[kernel({**fill, "phase": "backward"}, 2)]))


def test_exposed_communication_wins_what_is_no_waiting(memory_store):
    call = ("all_reduce", 40 * MS, {"bytes": 64_000_000, "exposed_wait_ns": 10 * MS})
    found = advise(memory_store, times={"compute": 60, "exposed_communication": 40}, communication=[call])
    assert (gain_ms(found, "N1"), only(found, "N1").role) == (30, "dp")
    late = ("all_reduce", 40 * MS, {"bytes": 64_000_000, "exposed_wait_ns": 30 * MS})
    found = advise(memory_store, times={"compute": 60, "exposed_communication": 40}, communication=[late])
    assert rules(found) == ["N2", "N1"]  # it is mostly waiting, for which the network is not to blame
    assert (gain_ms(found, "N2"), gain_ms(found, "N1")) == (30, 10)


def test_small_transfers_count_by_bytes(memory_store):
    times = {"compute": 60, "exposed_communication": 8}
    large, small = (("all_reduce", 4 * MS, {"bytes": size, "size_class_bytes": size, "exposed_wait_ns": 0})
                    for size in (1 << 26, 1 << 25))  # fmt: skip
    assert "N3" not in rules(advise(memory_store, times=times, communication=[large, small]))
    eight = {"bytes": 64_000_000, "calls": 8, "size_class_bytes": 1 << 23, "exposed_wait_ns": 0}
    tiny = ("all_reduce", 4 * MS, eight)
    # 64 MB are four calls of 16: of eight four could go, with half of the time; N1 has the rest
    found = advise(memory_store, times=times, communication=[tiny])
    assert (gain_ms(found, "N3"), gain_ms(found, "N1")) == (2, 2)
    # four calls overlap with the backward pass, and what no bucket holds
    alone = ("all_reduce", 4 * MS, {**eight, "bytes": 8_000_000, "calls": 4})
    sent = ("send", 4 * MS, {**eight, "group_role": "pp"})
    for calls in ([alone], [sent]):
        assert "N3" not in rules(advise(memory_store, times=times, communication=calls))


def test_one_call_per_parameter_is_a_matter_of_buckets(memory_store):
    """404 calls of 100 kB: four would do, so that nearly all of the time is of their number."""
    calls = {"bytes": 40_400_000, "calls": 404, "size_class_bytes": 1 << 17, "exposed_wait_ns": 0}
    times = {"compute": 60, "exposed_communication": 40}
    found = advise(memory_store, times=times, communication=[("all_reduce", 40 * MS, calls)])
    assert rules(found) == ["N3", "N1"]
    assert (found.items[0].title, gain_ms(found, "N3")) == ("404 small calls of all_reduce a step of dp", 39.6)
    assert [number.words for number in only(found, "N1").numbers][-1] == "already claimed by N3 39.60 ms"
    assert found.together_ns == 40 * MS


def test_waiting_is_no_part_of_what_small_calls_leave(memory_store):
    """Of 40 ms 20 are waiting; of 8 calls 4 are needed, so that N3 and N1 have 10 ms each."""
    calls = {"bytes": 64_000_000, "calls": 8, "size_class_bytes": 1 << 23, "exposed_wait_ns": 20 * MS}
    times = {"compute": 60, "exposed_communication": 40}
    found = advise(memory_store, times=times, communication=[("all_reduce", 40 * MS, calls)])
    assert {rule: gain_ms(found, rule) for rule in rules(found)} == {"N2": 20, "N3": 10, "N1": 10}
    assert found.together_ns == 40 * MS


def test_the_remedy_is_for_the_kind_of_collective(memory_store):
    exchanged = {"bytes": 400_000_000, "exposed_wait_ns": 0, "group_role": ""}
    calls = [("all_to_all", 20 * MS, exchanged), ("all_reduce", 12 * MS, exchanged)]
    made = {"times": {"compute": 60, "exposed_communication": 32}, "communication": calls}
    found = advise(memory_store, **made, ops=[("MulBackward0", MS)])
    assert [item.title for item in found.items] == ["exposed all_to_all", "exposed all_reduce"]
    first, second = (item.remedies[0] for item in found.items)
    assert (first[:18], second[:29]) == ("overlap all_to_all", "overlap with the backward pas")
    # without a backward pass there are no gradients
    assert advise(memory_store, **made).items[1].remedies[0].startswith("issue it earlier")


def test_tiny_collectives_over_all_ranks(memory_store):
    call = ("all_reduce", 3 * MS, {"bytes": 4, "group_role": "default"})
    times = {"compute": 60, "exposed_communication": 3}
    assert gain_ms(advise(memory_store, times=times, communication=[call]), "N6") == 3
    assert "N6" not in rules(advise(memory_store, times=times, communication=[("all_reduce", 3 * MS, {"bytes": 4})]))


def test_gloo_with_a_device(memory_store):
    made = {"times": {"compute": 60, "exposed_communication": 8}, "communication": [("all_reduce", 8 * MS)]}
    facts = {"facts": {"distributed_backend": "gloo"}}
    assert gain_ms(advise(memory_store, **made, of_run=facts), "N9") == 8
    assert "N9" not in rules(advise(memory_store, **made))


def test_uneven_stages_and_the_bubble_by_the_microbatches(memory_store):
    from tests.ranks.made import job
    from tracker.advice.judging import of_run

    run = int(job(memory_store, {0: [80.0], 1: [100.0]}, {0: {"stage": 0}, 1: {"stage": 1}})[4:])
    found = of_run(memory_store, run, 4)
    # taus 20 and 25: 45 + 3 x 25 = 120; even stages 22.5: 45 + 3 x 22.5 = 112.5
    assert gain_ms(found, "P2") == 7.5
    # 16 microbatches take 45 + 15 x 25 = 420 for four times the work: 105
    assert gain_ms(found, "P3") == 15
    # without them the longest stage takes 10 more than the mean of 90, whatever their number is
    unknown = of_run(memory_store, run)
    assert gain_ms(unknown, "P2") == 10
    assert "P3" not in rules(unknown)


def test_a_slow_rank_costs_what_the_step_would_save(memory_store):
    from tests.ranks.made import job
    from tracker.advice.judging import of_run

    run = int(job(memory_store, {0: [50.0] * 6, 1: [50.0] * 6, 2: [50.0] * 6, 3: [70.0] * 6})[4:])
    found = of_run(memory_store, run)
    assert (gain_ms(found, "P1"), only(found, "P1").place) == (20, "rank 3")
    even = int(job(memory_store, {rank: [50.0, 51.0] * 3 for rank in range(4)})[4:])
    assert "P1" not in rules(of_run(memory_store, even))


def test_memory_that_a_middle_step_keeps_is_a_leak(memory_store):
    steps = [{"peak_allocated_bytes": size} for size in (1000, 1020, 1040, 1060)]
    found = advise(memory_store, times=BUSY, of_step=steps, steps=4, kernels=[kernel("aten::add", 60)])
    assert only(found, "M4").gain_ns is None
    flat = [{"peak_allocated_bytes": 1000}] * 4  # what one step keeps, another one frees
    assert "M4" not in rules(advise(memory_store, times=BUSY, of_step=flat, steps=4, kernels=[kernel("a", 60)]))


@pytest.mark.parametrize(("name", "value", "rule"), [
    ("CUDA_LAUNCH_BLOCKING", "1", "V3"), ("OMP_NUM_THREADS", "1", None), ("NCCL_DEBUG", "INFO", "V12"),
    ("NVIDIA_TF32_OVERRIDE", "0", None), ("NCCL_P2P_DISABLE", "1", None),
])  # fmt: skip
def test_a_variable_alone_is_no_advice_but_where_it_always_costs(memory_store, name, value, rule):
    found = advise(memory_store, times=BUSY, kernels=[kernel("aten::add", 60)], of_run={"facts": {name: value}})
    assert rules(found) == ([rule] if rule else [])


def test_a_variable_with_its_symptom_is_named(memory_store):
    call = ("all_reduce", 40 * MS, {"bytes": 64_000_000, "exposed_wait_ns": 0})
    found = advise(memory_store, times={"compute": 60, "exposed_communication": 40}, communication=[call],
                   of_run={"facts": {"NCCL_P2P_DISABLE": "1"}})  # fmt: skip
    assert only(found, "V9").title == "NCCL_P2P_DISABLE=1"


def test_connections_matter_to_tensor_parallelism(memory_store):
    made = {
        "times": {"compute": 60, "exposed_communication": 40},
        "of_run": {"facts": {"CUDA_DEVICE_MAX_CONNECTIONS": "8"}},
    }
    tensor, data = (
        ("all_reduce", 40 * MS, {"bytes": 1 << 26, "group_role": role, "exposed_wait_ns": 0}) for role in ("tp", "dp")
    )
    assert "V10" in rules(advise(memory_store, **made, communication=[tensor]))
    assert "V10" not in rules(advise(memory_store, **made, communication=[data]))


def test_no_device_rule_fires_on_a_host(memory_store):
    ops = [(name, 5 * MS, {"input_shapes": "[[64,64]]", "input_types": "float", "phase": "optimizer", "calls": 100})
           for name in ("aten::add_", "aten::copy_", "aten::zero_")]  # fmt: skip
    found = advise(memory_store, times={"timeline": "host", "compute": 95}, device=CPU, ops=ops)
    assert rules(found) == []
    assert found.missing == (
        "Rules for devices: the run is a timeline of the host; profile on a machine with a device, with "
        "ProfilerActivity.CUDA among the activities.",
    )  # fmt: skip


def test_shorter_kernels_win_nothing_while_the_host_is_late(memory_store):
    """The device waits for the host in 30 of 100 ms; a matmul of 4 ms could take one."""
    product = op("aten::mm", (4300, 10_000), (10_000, 11_500))
    ops = [("aten::mm", 4 * MS, {key: value for key, value in product.items() if key != "name"})]
    made = {"ops": ops, "kernels": [kernel(product, 4, category="matmul")]}
    found = advise(memory_store, times={"compute": 60, "idle": 30}, idle=[("host: operator", "a", 30 * MS)], **made)
    assert found.notes == (
        "the device waits for the host in 30.0 % of the step: there, kernels that take less time (K16) only let it "
        "idle longer",
    )
    assert (
        advise(memory_store, times={"compute": 96, "idle": 4}, idle=[("host: operator", "a", 4 * MS)], **made).notes
        == ()
    )


def test_an_empty_queue_to_the_device_is_a_matter_of_data(memory_store):
    """MindSpore states that the queue is empty in 80 % of the time; the device idles for 30 of 100 ms."""
    empty = [("minddata_pipeline_summary", "(to the device)", "queue_empty_freq_pct", 80.0)]
    made = {"times": {"compute": 60, "idle": 30}, "kernels": [kernel("aten::add", 60)], "device": NPU}
    found = advise(memory_store, **made, counters=empty)
    assert (gain_ms(found, "I1"), rules(found)) == (30, ["I1"])  # and no idle time without a cause is left
    assert only(found, "I1").numbers[0].words == "the queue to the device is empty 80.0 %"


def test_payloads_of_an_npu_should_be_multiples_of_512_bytes(memory_store):
    made = {"times": {"compute": 60, "exposed_communication": 8}, "device": NPU}
    odd, even = (("all_reduce", 8 * MS, {"bytes": size, "calls": 2}) for size in (2_000_002, 2_048_000))
    found = advise(memory_store, **made, communication=[odd])
    assert only(found, "N4").numbers[0].words == "payload: 2,000,002 bytes in 2 calls of all steps"
    assert not only(found, "N4").is_shown
    assert "N4" not in rules(advise(memory_store, **made, communication=[even]))
