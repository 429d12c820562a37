"""Settings of the environment. A variable alone costs no time: most need the symptom that they cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from tracker.advice.rule import AdviceRule, Claim, Number, Remedy

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence

_BLOCKING: Final = ("CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING")
_SERIAL: Final = ("AMD_SERIALIZE_KERNEL", "AMD_SERIALIZE_COPY")
_DISABLED: Final = ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE")
_FORCED: Final = ("NCCL_ALGO", "NCCL_PROTO", "HCCL_ALGO")
_ALLOCATORS: Final = (
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NPU_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
)
_DETERMINISTIC: Final = ("FLAGS_cudnn_deterministic", "HCCL_DETERMINISTIC", "CUBLAS_WORKSPACE_CONFIG")
_VERBOSE: Final = {"TORCH_DISTRIBUTED_DEBUG": ("DETAIL",), "NCCL_DEBUG": ("INFO", "TRACE"),
                   "ASCEND_GLOBAL_LOG_LEVEL": ("0", "1", "2"), "ASCEND_SLOG_PRINT_TO_STDOUT": ("1",)}  # fmt: skip
_ON: Final = ("1", "true", "True", "TRUE", "on")


def _has(evidence: Evidence, *ids: str) -> bool:
    """Whether one of these rules fired."""
    return bool(evidence.fired & {*ids})


def _set(
    names: tuple[str, ...], is_wrong: Callable[[str], bool], *symptoms: str, always: bool = False
) -> Callable[[Evidence, frozenset[int]], Iterator[Claim]]:
    """Claims of the variables that are set to a wrong value, where a symptom shows."""

    def find(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
        wrong = [name for name in names if name in evidence.facts and is_wrong(evidence.facts[name])]
        if wrong and (not symptoms or _has(evidence, *symptoms)):
            for name in wrong:
                value = evidence.facts[name]
                yield Claim(resource="none", place=name, variable=name, is_always_shown=always or bool(symptoms),
                            numbers=(Number(name, value, "text"),), title=f"{name}={value}")  # fmt: skip

    return find


def _unset(
    name: str, good: tuple[str, ...], vendor: str, *symptoms: str
) -> Callable[[Evidence, frozenset[int]], Iterator[Claim]]:
    """A claim where a variable has none of the good values on a vendor's devices, and a symptom shows. Only where the
    environment was recorded: what a profile does not say may be set.
    """

    def find(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
        value = evidence.facts.get(name)
        recorded = value is not None or any(key.isupper() for key in evidence.facts)
        if evidence.vendor == vendor and recorded and value not in good and _has(evidence, *symptoms):
            yield Claim(resource="none", place=name, variable=name, is_always_shown=True,
                        numbers=(Number(name, value or "not set", "text"),),
                        title=f"{name} is {value or 'not set'}")  # fmt: skip

    return find


def _allocator(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    stated = {name: evidence.facts[name] for name in _ALLOCATORS if name in evidence.facts}
    if any("expandable_segments:True" in value for value in stated.values()) or not any(
        map(str.isupper, evidence.facts)
    ):
        return
    if evidence.vendor != "cpu" and _has(evidence, "H7", "M3"):
        name = next(iter(stated), _ALLOCATORS[1] if evidence.vendor == "ascend" else _ALLOCATORS[0])
        yield Claim(resource="none", place=name, variable=name, is_always_shown=True,
                    numbers=(Number(name, stated.get(name, "not set"), "text"),))  # fmt: skip


def _connections(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    value = evidence.facts.get("CUDA_DEVICE_MAX_CONNECTIONS")
    if (
        evidence.vendor == "nvidia"
        and value not in (None, "1")
        and {"tp", "cp"} & {*evidence.roles}
        and _has(evidence, "N1")
    ):
        yield Claim(resource="none", place="CUDA_DEVICE_MAX_CONNECTIONS", variable="CUDA_DEVICE_MAX_CONNECTIONS",
                    is_always_shown=True, numbers=(Number("connections", value or "", "text"),))  # fmt: skip


def _threads(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    value = evidence.facts.get("OMP_NUM_THREADS")
    if value == "1" and (not evidence.is_device or _has(evidence, "I1", "H1")):
        yield Claim(resource="none", place="OMP_NUM_THREADS", variable="OMP_NUM_THREADS", is_always_shown=True,
                    numbers=(Number("OMP_NUM_THREADS", value, "text"),))  # fmt: skip


def _verbose(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for name, values in _VERBOSE.items():
        yield from _set((name,), values.__contains__)(evidence, taken)


RULES: Final = (
    AdviceRule(
        id="V3", title="launches block", fires="CUDA_LAUNCH_BLOCKING or its like is 1, or AMD_SERIALIZE_* is above 0",
        bound="none", confidence="certain", remedies=(Remedy("unset it: it is for debugging"),),
        sources=("CUDA, HIP and CANN documentation",),
        find=_set((*_BLOCKING, *_SERIAL), lambda value: value not in ("", "0"), always=True),
    ),
    AdviceRule(
        id="V4", title="TASK_QUEUE_ENABLE is not 2", fires="on an NPU, where the host launches too slowly (H1)",
        bound="none", confidence="likely",
        remedies=(Remedy("TASK_QUEUE_ENABLE=2; it may raise peak memory", ("ascend",)),),
        sources=("Ascend Extension for PyTorch, environment variables",),
        find=_unset("TASK_QUEUE_ENABLE", ("2",), "ascend", "H1"),
    ),
    AdviceRule(
        id="V5", title="CPU_AFFINITY_CONF is not set", fires="on an NPU, where the host launches too slowly or data "
            "is late (H1, I1)",
        bound="none", confidence="likely",
        remedies=(Remedy("CPU_AFFINITY_CONF=1, or 2 for fine-grained binding", ("ascend",)),),
        sources=("Ascend Extension for PyTorch, environment variables",),
        find=_unset("CPU_AFFINITY_CONF", ("1", "2"), "ascend", "H1", "I1"),
    ),
    AdviceRule(
        id="V6", title="small caches of compiled operators", fires="on an NPU, where operators are compiled in the "
            "steps (H6)",
        bound="none", confidence="likely",
        remedies=(Remedy("ACLNN_CACHE_LIMIT=100000, HOST_CACHE_CAPACITY=20", ("ascend",)),),
        sources=("msprof-analyze",), find=_unset("ACLNN_CACHE_LIMIT", ("100000",), "ascend", "H6"),
    ),
    AdviceRule(
        id="V7", title="the allocator uses no expandable segments", fires="with allocation in the steps or unused "
            "memory (H7, M3)",
        bound="none", confidence="likely",
        remedies=(
            Remedy("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", ("nvidia", "amd")),
            Remedy("PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, without max_split_size_mb", ("ascend",)),
        ),
        sources=("torch: CUDA semantics", "Ascend Extension for PyTorch"), find=_allocator,
    ),
    AdviceRule(
        id="V8", title="tf32 is off", fires="NVIDIA_TF32_OVERRIDE=0 with matmuls in 32 bits (K2)", bound="none",
        confidence="certain", remedies=(Remedy("unset NVIDIA_TF32_OVERRIDE", ("nvidia",)),),
        sources=("NVIDIA: TF32 in cuBLAS and cuDNN",),
        find=_set(("NVIDIA_TF32_OVERRIDE",), lambda value: value == "0", "K2"),
    ),
    AdviceRule(
        id="V9", title="paths of the collectives are switched off",
        fires="NCCL_P2P_DISABLE, NCCL_SHM_DISABLE or NCCL_IB_DISABLE is 1, or an algorithm is forced, with exposed "
            "communication (N1)",
        bound="none", confidence="likely", remedies=(Remedy("unset it and measure again"),),
        sources=("NCCL documentation, environment variables", "msprof-analyze"),
        find=_set((*_DISABLED, *_FORCED), lambda value: value not in ("", "0"), "N1"),
    ),
    AdviceRule(
        id="V10", title="many connections to the device with tensor parallelism",
        fires="CUDA_DEVICE_MAX_CONNECTIONS is not 1 on NVIDIA with exposed communication of tp or cp (N1)",
        bound="none",
        confidence="likely",
        remedies=(Remedy("CUDA_DEVICE_MAX_CONNECTIONS=1 with Megatron-LM before Blackwell", ("nvidia",)),),
        sources=("Megatron-LM, arguments",), find=_connections,
    ),
    AdviceRule(
        id="V11", title="one thread for all operators of the CPU",
        fires="OMP_NUM_THREADS=1, torchrun's default, on a CPU, or where data is late or launches are slow (I1, H1)",
        bound="none", confidence="likely", remedies=(Remedy("OMP_NUM_THREADS = cores by ranks of the machine"),),
        sources=("torchrun documentation",), find=_threads,
    ),
    AdviceRule(
        id="V12", title="verbose logging", fires="a debug level of the communication or the NPU's log is on",
        bound="none", confidence="hint", remedies=(Remedy("off while measuring"),), sources=("torch, Ascend "
            "documentation",),
        find=_verbose,
    ),
    AdviceRule(
        id="V13", title="deterministic mode", fires="deterministic kernels or collectives with slow operators (K16)",
        bound="none", confidence="hint", remedies=(Remedy("it costs speed: keep it if it is meant"),),
        sources=("Paddle, cuBLAS, HCCL documentation",),
        find=_set(_DETERMINISTIC, lambda value: value not in ("", "0", "false", "False"), "K16"),
    ),
    AdviceRule(
        id="V14", title="tuning is off", fires="FLAGS_use_autotune, TORCH_BLAS_PREFER_HIPBLASLT or "
            "PYTORCH_TUNABLEOP_ENABLED is 0 "
        "with slow operators (K16)",
        bound="none", confidence="likely", remedies=(Remedy("on; tune once, keep the result"),),
        sources=("Paddle guide to performance", "ROCm: model acceleration"),
        find=_set(("FLAGS_use_autotune", "TORCH_BLAS_PREFER_HIPBLASLT", "PYTORCH_TUNABLEOP_ENABLED"),
                  lambda value: value not in _ON, "K16"),
    ),
)  # fmt: skip
