"""A remedy is for the vendor, the framework and the kind of work that the advice is about, or it is not given."""

from __future__ import annotations

import pytest

from tests.advice.made import CPU, MI300X, MS, NPU, V100, advise, kernel, only, op, rules
from tracker.advice.platform import Platform
from tracker.advice.rules import RULES, communication, fusion, host, input, kernels, pipeline
from tracker.advice.traits import TRAITS
from tracker.profile import Device

BUSY = {"compute": 60, "idle": 0}
PLACES = (
    "",
    "tf32",
    "bf16",
    "fp16",
    "dp all_reduce",
    "tp all_gather",
    "ep all_to_all",
    "pp send",
    "default broadcast",
    "mm",
    "matmulv3",
    "convolution_backward",
    "flash_attention",
)


@pytest.mark.parametrize(("vendor", "framework", "wrong"), [
    ("ascend", "mindspore", ("torch", "cuda", "nccl", "paddle", "pin_memory")),
    ("ascend", "torch", ("cuda", "nccl", "hip", "paddle", "mindspore", "torch.compile")),
    ("nvidia", "paddle", ("torch", "mindspore")),
    ("amd", "torch", ("torch_npu", "torch.npu", "cublas", "paddle")),
    ("cpu", "torch", ("cuda", "torch_npu", "torch.npu", "nccl")),
])  # fmt: skip
def test_no_remedy_is_for_another_vendor_or_framework(vendor, framework, wrong):
    texts = {
        text for rule in RULES for place in PLACES for text in rule.remedies_on(Platform(vendor, framework), place)
    }
    assert {text for text in texts for word in wrong if word in text.lower()} == set()


def test_a_slow_operator_gets_the_remedy_of_its_kind():
    (slow,) = [rule for rule in RULES if rule.id == "K16"]
    assert slow.remedies_on(Platform("amd"), "addmm") == ("PYTORCH_TUNABLEOP_ENABLED=1, hipBLASLt",)
    assert slow.remedies_on(Platform("amd"), "convolution_backward") == ("torch.backends.cudnn.benchmark=True",)
    assert slow.remedies_on(Platform("nvidia"), "_flash_attention_forward") == (
        "another backend with torch.nn.attention.sdpa_kernel",
    )


def test_a_device_without_tf32_gets_no_remedy_of_tf32(memory_store):
    conv = kernel(op("aten::cudnn_convolution", (32, 64, 56, 56), types="float"), 40, category="convolution_forward")
    found = advise(memory_store, times=BUSY, kernels=[conv], device=V100)
    assert only(found, "K2").remedies == ("torch.autocast with float16: this device has no fast bfloat16",)
    trained = advise(memory_store, times=BUSY, kernels=[conv], device=V100, ops=[("ConvolutionBackward0", MS)])
    assert only(trained, "K2").remedies == (
        "torch.autocast with float16 and a GradScaler: this device has no fast bfloat16",
    )


def test_exposed_communication_gets_the_remedy_of_its_role(memory_store):
    call = ("all_reduce", 40 * MS, {"bytes": 64_000_000, "exposed_wait_ns": 0, "group_role": "tp"})
    found = advise(memory_store, times={"compute": 60, "exposed_communication": 40}, communication=[call])
    assert only(found, "N1").title == "exposed all_reduce of tp"
    assert [text[:17] for text in only(found, "N1").remedies] == ["sequence parallel"]


def test_an_unknown_device_gets_what_holds_for_every_gpu(memory_store):
    idle = {"times": {"compute": 5, "idle": 60}, "kernels": [kernel("aten::add", 5, calls=1000)],
            "ops": [("aten::add", 5 * MS, {"calls": 1000})],
            "idle": [("host: operator", "aten::add", 60 * MS)]}  # fmt: skip
    found = advise(memory_store, **idle, device=Device("", "unknown"))
    assert only(found, "H1").remedies[0].startswith("torch.compile(mode='reduce-overhead')")
    npu = advise(memory_store, **idle, device=NPU)
    assert "TASK_QUEUE_ENABLE=2" in only(npu, "H1").remedies[0]


def test_each_condition_of_a_remedy_is_one_that_may_hold():
    """A word that no run and no claim can have would hide a remedy for ever."""
    known = {*TRAITS, *fusion.MARKS, *host.MARKS, *input.MARKS, *kernels.MARKS, *communication.MARKS, *pipeline.MARKS}
    asked = {word for rule in RULES for remedy in rule.remedies for word in (*remedy.needs, *remedy.unless)}
    assert asked - known == set()


def test_one_long_operator_of_the_host_is_not_compiled(memory_store):
    """60 ms in one call of aten::index: it computes on the host, and no graph makes it faster."""
    made = {"times": {"compute": 5, "idle": 60}, "kernels": [kernel("aten::add", 5)], "ops": [("aten::index", 60 * MS)]}
    found = advise(memory_store, **made, idle=[("host: operator", "aten::index", 60 * MS)])
    assert [text[:26] for text in only(found, "H1").remedies] == ["the operator that is named"]


def test_what_is_compiled_already_is_not_compiled_again(memory_store):
    idle = [("host: operator", "aten::add", 20 * MS), ("between kernels", "", 20 * MS)]
    made = {"times": {"compute": 60, "idle": 40}, "idle": idle, "ops": [("aten::add", MS, {"calls": 1000})]}
    graphs = {"api": [("cudaGraphLaunch", MS)]}
    plain, compiled, launched = (
        advise(memory_store, **made, kernels=[kernel("aten::add", 5, name=name, calls=1000)], **more)
        for name, more in (("add_kernel", {}), ("triton_poi_fused_add", {}), ("triton_poi_fused_add", graphs))
    )
    assert only(plain, "H1").remedies[0].startswith("torch.compile(mode='reduce-overhead')")
    assert only(compiled, "H1").remedies[0].startswith("mode='reduce-overhead' for what")
    assert only(launched, "H1").remedies[0] == "what no graph launches yet: into one"
    for rule in ("H8", "H10"):
        assert not any("torch.compile" in text for text in only(compiled, rule).remedies)


@pytest.mark.parametrize(
    ("format", "word"),
    [
        ("torch_profiler", "ProfilerActivity.CPU"),
        ("nsys_sqlite", "nsys profile"),
        ("cann", "msprof"),
        ("paddle_trace", "ProfilerTarget.CPU"),
        ("ascend_text", "trace_view.json"),
    ],
)
def test_how_to_record_is_said_for_the_format_of_the_run(memory_store, format, word):
    device = NPU if format in ("cann", "ascend_text") else MI300X
    found = advise(memory_store, times={"compute": 60, "idle": 40}, formats=[format], device=device)
    texts = only(found, "H11").remedies
    assert any(word in text for text in texts)
    others = {"ProfilerActivity", "ProfilerTarget", "nsys", "msprof"}
    others -= {
        word.partition(".")[0],
        word.partition(" ")[0],
        *(["ProfilerActivity"] if format == "ascend_text" else []),
    }
    assert not [text for text in texts for other in others if other in text]


@pytest.mark.parametrize(
    ("part", "word"), [("data_loading", "its loader"), ("compute", "less work"), ("idle", "its host")]
)
def test_late_rank_gets_the_remedy_of_its_cause(memory_store, part, word):
    """Rank 0 waits 30 ms for rank 1, which takes 30 ms longer in one part."""
    wait = ("all_reduce", 30 * MS, {"exposed_ns": 30 * MS, "exposed_wait_ns": 30 * MS, "group_role": "dp"})
    none = ("all_reduce", 0, {"exposed_ns": 0, "exposed_wait_ns": 0, "group_role": "dp"})
    even = {"compute": 40, "idle": 10, "data_loading": 0, "exposed_communication": 30}
    times_of = {0: even, 1: {**even, "exposed_communication": 0, part: even[part] + 30}}
    found = advise(memory_store, ranks=2, times_of=times_of, communication_of={0: [wait], 1: [none]})
    texts = only(found, "N2").remedies
    assert only(found, "N2").title == "rank 1 comes late, and the other one waits for it"
    assert [word in text for text in texts] == [True]
    assert "find who is late" not in " ".join(texts)


def test_matmuls_of_an_unknown_device_are_a_hint_with_all_of_their_time(memory_store):
    own = kernel(op("aten::mm", (4096, 4096), (4096, 4096), types="float"), 40, name="ampere_sgemm", category="matmul")
    found = advise(memory_store, times=BUSY, kernels=[own], device=Device("NVIDIA", "NVIDIA X9000"))
    item = only(found, "K2")
    assert (item.gain_ns, item.confidence) == (40 * MS, "hint")
    assert "where the device has them" in item.remedies[0]


@pytest.mark.parametrize("device", [CPU, MI300X])
def test_gates_are_no_activations(memory_store, device):
    """An LSTM multiplies sigmoids and tanh; x * sigmoid(x) in a module of its own is an activation."""
    timeline = {"timeline": "host"} if device is CPU else {}

    def of(names, module):
        rows = [op(f"aten::{name}", (64, 512), types="float", module=module) for name in names]
        parts = (
            {"ops": [(row.pop("name"), 5 * MS, row) for row in rows]}
            if device is CPU else {"kernels": [kernel(row, 5, name=str(at)) for at, row in enumerate(rows)]}
        )  # fmt: skip
        return "K6" in rules(advise(memory_store, times={**BUSY, **timeline}, device=device, **parts))

    assert not of(("sigmoid", "tanh", "mul", "add"), "")
    assert not of(("sigmoid", "mul", "add"), "")  # nothing says what is multiplied
    assert not of(("sigmoid", "mul", "sub", "div"), "Net_0/Gate_0")
    assert of(("sigmoid", "mul"), "Net_0/Swish_0")
    assert of(("tanh", "pow", "mul", "add"), "")


AFFINITY = {
    ("K4", "ascend", "torch"): "torch_npu.npu_fusion_attention",
    ("K4", "ascend", "mindspore"): "mindspore.ops.flash_attention_score",
    ("K4", "nvidia", "paddle"): "paddle.nn.functional.flash_attention",
    ("K5", "ascend", "torch"): "torch_npu.npu_rms_norm, or torch.nn.functional.layer_norm",
    ("K5", "ascend", "mindspore"): "mindspore.ops.rms_norm",
    ("K5", "nvidia", "torch"): "torch.nn.functional.rms_norm or layer_norm",
    ("K8", "ascend", "torch"): "torch_npu.npu_rotary_mul",
    ("K8", "nvidia", "paddle"): "paddle.incubate.nn.functional.fused_rotary_position_embedding",
    ("K9", "ascend", "torch"): ("torch_npu.optim.NpuFusedAdamW, NpuFusedSGD; they refuse zero_grad(set_to_none=True)"),
    ("K9", "amd", "torch"): "fused=True, else foreach=True, in the optimizer",
}


@pytest.mark.parametrize(("rule", "vendor", "framework"), AFFINITY)
def test_written_out_work_gets_the_counterpart_of_its_device(rule, vendor, framework):
    (named,) = [one for one in RULES if one.id == rule]
    assert named.remedies_on(Platform(vendor, framework), "")[0] == AFFINITY[rule, vendor, framework]


@pytest.mark.parametrize(
    ("device", "names", "expected"),
    [
        (MI300X, ("tanh", "pow", "mul"), "torch.nn.functional.gelu(x, approximate='tanh')"),
        (MI300X, ("erf", "mul"), "torch.nn.functional.gelu(x)"),
        (MI300X, ("sigmoid", "mul"), "torch.nn.functional.silu(x)"),
        (NPU, ("tanh", "pow", "mul"), "torch_npu.npu_gelu(x, approximate='tanh')"),
        (NPU, ("erf", "mul"), "torch_npu.npu_gelu(x)"),
        (NPU, ("sigmoid", "mul"), "torch_npu.npu_swiglu where a gate follows, else torch.nn.functional.silu(x)"),
    ],
)
def test_activation_gets_the_function_of_its_curve(memory_store, device, names, expected):
    rows = [op(f"aten::{name}", (64, 512), module="Net_0/Swish_0") for name in names]
    parts = [kernel(row, 5, name=row["name"]) for row in rows]
    assert only(advise(memory_store, times=BUSY, device=device, kernels=parts), "K6").remedies == (expected,)


@pytest.mark.parametrize(("device", "word"), [(MI300X, "torch.compile"), (NPU, "torch_npu.npu_fast_gelu(x)")])
def test_sigmoid_with_two_products_is_no_silu(memory_store, device, word):
    """x * sigmoid(1.702 * x), as in CLIP: SiLU in its place would be another model."""
    rows = [op(f"aten::{name}", (64, 512), module="Net_0/QuickGELU_0") for name in ("sigmoid", "mul")]
    parts = [kernel(row, 5, name=row["name"], calls=calls) for row, calls in zip(rows, (12, 24), strict=True)]
    (remedy,) = only(advise(memory_store, times=BUSY, device=device, kernels=parts), "K6").remedies
    assert remedy.startswith(word)
    assert "silu" not in remedy


def test_loss_of_a_framework_without_a_rule_keeps_all_of_its_logits():
    """Training needs the logits of each position: only where there is no backward pass the last one is enough."""
    (loss,) = [rule for rule in RULES if rule.id == "K7"]
    (trained,) = loss.remedies_on(Platform("ascend", "mindspore", traits=("backward",)), "")
    (run,) = loss.remedies_on(Platform("ascend", "mindspore"), "")
    assert trained.startswith("the cross entropy of the framework")
    assert run.startswith("logits of the last position alone")
