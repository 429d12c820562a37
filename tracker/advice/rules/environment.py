"""Settings of the environment. A variable alone costs no time: most need the symptom that they cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from tracker.advice.rule import AdviceRule, Claim, Number, Remedy
from tracker.advice.rules.host import ALLOCATOR

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence

Find = Callable[["Evidence"], Iterator[Claim]]
_BLOCKING: Final = (
    "CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL",
    "AMD_SERIALIZE_COPY",
)  # fmt: skip
_PATHS: Final = (
    "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE", "NCCL_ALGO", "NCCL_PROTO", "HCCL_ALGO"
)  # fmt: skip
_ALLOCATORS: Final = (
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF"
)  # fmt: skip
_DETERMINISTIC: Final = ("FLAGS_cudnn_deterministic", "HCCL_DETERMINISTIC", "CUBLAS_WORKSPACE_CONFIG")
_VERBOSE: Final = {
    "TORCH_DISTRIBUTED_DEBUG": ("DETAIL",), "NCCL_DEBUG": ("INFO", "TRACE"),
    "ASCEND_GLOBAL_LOG_LEVEL": ("0", "1", "2"), "ASCEND_SLOG_PRINT_TO_STDOUT": ("1",),
}  # fmt: skip
_OFF: Final = ("", "0", "false", "False")
_ON: Final = ("1", "true", "True", "TRUE", "on")


def _claim(name: str, value: str) -> Claim:
    return Claim(resource="none", place=name, variable=name, numbers=(Number(name, value, "text"),),
                 title=f"{name} is {value}" if value == "not set" else f"{name}={value}")  # fmt: skip


def _set(is_wrong: Mapping[str, Callable[[str], bool]], *symptoms: str) -> Find:
    """A claim of each variable that has a wrong value, where one of the symptoms shows, or none is needed."""

    def find(evidence: Evidence) -> Iterator[Claim]:
        for name, test in is_wrong.items() if not symptoms or evidence.fired & {*symptoms} else ():
            if name in evidence.facts and test(evidence.facts[name]):
                yield _claim(name, evidence.facts[name])

    return find


def _unset(name: str, is_good: Callable[[str], bool], *symptoms: str) -> Find:
    """A claim where a variable has no good value, and a symptom shows. Only where the environment was recorded: what a
    profile does not say may be set.
    """

    def find(evidence: Evidence) -> Iterator[Claim]:
        value = evidence.facts.get(name, "")
        if any(map(str.isupper, evidence.facts)) and not is_good(value) and evidence.fired & {*symptoms}:
            yield _claim(name, value or "not set")

    return find


def _allocator(evidence: Evidence) -> Iterator[Claim]:
    stated = {name: evidence.facts[name] for name in _ALLOCATORS if name in evidence.facts}
    name = next(iter(stated), _ALLOCATORS[evidence.vendor == "ascend"])
    yield from _unset(name, lambda value: "expandable_segments:True" in value, "H7", "M3")(evidence)


def _connections(evidence: Evidence) -> Iterator[Claim]:
    if {"tp", "cp"} & evidence.roles:
        yield from _set({"CUDA_DEVICE_MAX_CONNECTIONS": lambda value: value != "1"}, "N1")(evidence)


def _threads(evidence: Evidence) -> Iterator[Claim]:
    symptoms = ("I1", "H1") if evidence.is_device else ()
    yield from _set({"OMP_NUM_THREADS": "1".__eq__}, *symptoms)(evidence)


def _is_on(value: str) -> bool:
    return value not in _OFF


RULES: Final = (
    AdviceRule(
        id="V3", title="launches block", fires="CUDA_LAUNCH_BLOCKING or its like is 1, or AMD_SERIALIZE_* is above 0",
        bound="none", confidence="certain", remedies=(Remedy("unset it: it is for debugging"),),
        sources=("CUDA, HIP and CANN documentation",), in_run=_set(dict.fromkeys(_BLOCKING, _is_on)),
    ),
    AdviceRule(
        id="V4", title="TASK_QUEUE_ENABLE is not 2", fires="on an NPU, where the host launches too slowly (H1)",
        bound="none", confidence="likely",
        remedies=(Remedy("TASK_QUEUE_ENABLE=2; it may raise peak memory", ("torch", "ascend")),),
        sources=("Ascend Extension for PyTorch, environment variables",),
        in_run=_unset("TASK_QUEUE_ENABLE", "2".__eq__, "H1"),
    ),
    AdviceRule(
        id="V5", title="CPU_AFFINITY_CONF is not set",
        fires="on an NPU, where the host launches too slowly or data is late (H1, I1)",
        bound="none", confidence="likely",
        remedies=(Remedy("CPU_AFFINITY_CONF=1, or 2 for fine-grained binding", ("torch", "ascend")),),
        sources=("Ascend Extension for PyTorch, environment variables",),
        in_run=_unset("CPU_AFFINITY_CONF", lambda value: value not in _OFF, "H1", "I1"),
    ),
    AdviceRule(
        id="V6", title="small caches of compiled operators",
        fires="on an NPU, where operators are compiled in the steps (H6)", bound="none", confidence="likely",
        remedies=(Remedy("ACLNN_CACHE_LIMIT=100000, HOST_CACHE_CAPACITY=20", ("torch", "ascend")),),
        sources=("msprof-analyze",),
        in_run=_unset("ACLNN_CACHE_LIMIT", lambda value: value.isdecimal() and int(value) >= 10_000, "H6"),
    ),
    AdviceRule(
        id="V7", title="the allocator uses no expandable segments",
        fires="with allocation in the steps or unused memory (H7, M3)", bound="none", confidence="likely",
        remedies=ALLOCATOR, sources=("torch: CUDA semantics", "Ascend Extension for PyTorch"), in_run=_allocator,
    ),
    AdviceRule(
        id="V8", title="tf32 is off", fires="NVIDIA_TF32_OVERRIDE=0 with matmuls in 32 bits (K2)", bound="none",
        confidence="certain", remedies=(Remedy("unset NVIDIA_TF32_OVERRIDE", ("nvidia",)),),
        sources=("NVIDIA: TF32 in cuBLAS and cuDNN",), in_run=_set({"NVIDIA_TF32_OVERRIDE": "0".__eq__}, "K2"),
    ),
    AdviceRule(
        id="V9", title="paths of the collectives are switched off",
        fires="NCCL_P2P_DISABLE, NCCL_SHM_DISABLE or NCCL_IB_DISABLE is 1, or an algorithm is forced, with exposed "
            "communication (N1)",
        bound="none", confidence="likely", remedies=(Remedy("unset it and measure again"),),
        sources=("NCCL documentation, environment variables", "msprof-analyze"),
        in_run=_set(dict.fromkeys(_PATHS, _is_on), "N1"),
    ),
    AdviceRule(
        id="V10", title="many connections to the device with tensor parallelism",
        fires="CUDA_DEVICE_MAX_CONNECTIONS is not 1 on NVIDIA with exposed communication of tp or cp (N1)",
        bound="none", confidence="likely",
        remedies=(Remedy("CUDA_DEVICE_MAX_CONNECTIONS=1 with Megatron-LM before Blackwell", ("nvidia",)),),
        sources=("Megatron-LM, arguments",), in_run=_connections,
    ),
    AdviceRule(
        id="V11", title="one thread for all operators of the CPU",
        fires="OMP_NUM_THREADS=1, torchrun's default, on a CPU, or where data is late or launches are slow (I1, H1)",
        bound="none", confidence="likely", remedies=(Remedy("OMP_NUM_THREADS = cores by ranks of the machine"),),
        sources=("torchrun documentation",), in_run=_threads,
    ),
    AdviceRule(
        id="V12", title="verbose logging", fires="a debug level of the communication or the NPU's log is on",
        bound="none", confidence="hint", remedies=(Remedy("off while measuring"),),
        sources=("torch, Ascend documentation",),
        in_run=_set({name: values.__contains__ for name, values in _VERBOSE.items()}),
    ),
    AdviceRule(
        id="V13", title="deterministic mode", fires="deterministic kernels or collectives with slow operators (K16)",
        bound="none", confidence="hint", remedies=(Remedy("it costs speed: keep it if it is meant"),),
        sources=("Paddle, cuBLAS, HCCL documentation",), in_run=_set(dict.fromkeys(_DETERMINISTIC, _is_on), "K16"),
    ),
    AdviceRule(
        id="V14", title="tuning is off",
        fires="FLAGS_use_autotune, TORCH_BLAS_PREFER_HIPBLASLT or PYTORCH_TUNABLEOP_ENABLED is 0 with slow operators "
            "(K16)",
        bound="none", confidence="likely", remedies=(Remedy("on; tune once, keep the result"),),
        sources=("Paddle guide to performance", "ROCm: model acceleration"),
        in_run=_set(dict.fromkeys(
            ("FLAGS_use_autotune", "TORCH_BLAS_PREFER_HIPBLASLT", "PYTORCH_TUNABLEOP_ENABLED"),
            lambda value: value not in _ON,
        ), "K16"),
    ),
)  # fmt: skip
