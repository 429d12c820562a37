"""A remedy is for the vendor, the framework and the kind of work that the advice is about, or it is not given."""

from __future__ import annotations

import pytest

from tests.advice.made import CPU, MI300X, MS, NPU, V100, advise, kernel, only, op, rules
from tracker.advice.rule import Platform
from tracker.advice.rules import RULES
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
    assert only(found, "K2").remedies == (
        "torch.autocast with float16 and a GradScaler: this device has no fast bfloat16",
    )


def test_exposed_communication_gets_the_remedy_of_its_role(memory_store):
    call = ("all_reduce", 40 * MS, {"bytes": 64_000_000, "exposed_wait_ns": 0, "group_role": "tp"})
    found = advise(memory_store, times={"compute": 60, "exposed_communication": 40}, communication=[call])
    assert only(found, "N1").title == "exposed all_reduce of tp"
    assert [text[:17] for text in only(found, "N1").remedies] == ["sequence parallel"]


def test_an_unknown_device_gets_what_holds_for_every_gpu(memory_store):
    idle = {"times": {"compute": 5, "idle": 60}, "kernels": [kernel("aten::add", 5, calls=1000)],
            "idle": [("host: operator", "aten::add", 60 * MS)]}  # fmt: skip
    found = advise(memory_store, **idle, device=Device("", "unknown"))
    assert only(found, "H1").remedies[0].startswith("torch.compile(mode='reduce-overhead')")
    npu = advise(memory_store, **idle, device=NPU)
    assert "TASK_QUEUE_ENABLE=2" in only(npu, "H1").remedies[0]


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
