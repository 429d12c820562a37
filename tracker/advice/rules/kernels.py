"""Kernels that take longer than the device needs for their work: types, sizes, formats, copies, tuning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tracker.advice.roofline import factors, flops, is_matmul
from tracker.advice.rule import AdviceRule, Claim, Number, Remedy, share_of
from tracker.advice.traits import BACKWARD, CONVOLUTIONS, OPTIMIZER
from tracker.profile.shapes import Shape, kind_of, tensors_text

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence
    from tracker.advice.pieces import WorkPiece
    from tracker.results.advice import EfficiencyRow

Pieces = Sequence["WorkPiece"]
_SLOW: Final = 0.6
_FORMATS: Final = (
    "nchwtonhwc", "nhwctonchw", "batched_transpose", "transdata", "transpose", "trans_data", "contiguous"
)  # fmt: skip
_CASTS: Final = ("cast", "copy", "_to_copy", "to")
_DOUBLE: Final = (
    "mm", "addmm", "bmm", "baddbmm", "native_layer_norm", "native_layer_norm_backward", "native_batch_norm", "sum",
    "mean", "_softmax", "_log_softmax", "var_mean", "norm", "linalg_vector_norm",
)  # fmt: skip
_MULTIPLE: Final = {"half": 8, "tf32": 4, "byte": 16}
"""Kind of number -> what sides of a matmul should be multiples of."""
_NPU_BYTES: Final = 512
_SIDE: Final = 64
"""A matmul with a shorter side is bound by memory or by its launch, whatever its sizes."""
_LARGER: Final = 2
"""Times the FLOPs of a call up to which another one is alike: larger matmuls reach higher rates."""
UNKNOWN_PEAKS: Final = "unknown peaks"
"""Mark of a claim: the device is not in the table of devices."""
MARKS: Final = (UNKNOWN_PEAKS,)
"""Marks of the claims of this family."""
_AI_CPU_NS: Final = 20_000


def _time(pieces: Pieces) -> float:
    return sum(piece.ns for piece in pieces)


def _double(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    own = [
        piece for piece in pieces if piece.plain_op in _DOUBLE
        # a scalar of 64 bits beside a tensor of 32 is how Python hands numbers over
        and any(shape and kind_of(kind) == "fp64" for shape, kind in zip(piece.shapes, piece.types, strict=False))
    ]  # fmt: skip
    if own:
        names = ", ".join(sorted({piece.plain_op for piece in own}))
        # matrix units of many devices take no numbers of 64 bits: such a matmul may win nearly all of its time
        cells = {piece.at: piece.ns if evidence.is_device and is_matmul(piece) else piece.ns / 2 for piece in own}
        yield Claim(cells=cells, numbers=(Number("in 64 bits", names, "text"),))


def _single(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    device = evidence.device
    own = [
        piece for piece in pieces
        if piece.number_kind == "fp32" and (is_matmul(piece) or piece.kind.startswith("convolution"))
    ]  # fmt: skip
    if device is None:
        # whether the device is faster with smaller numbers is not known: the bound is all of their time
        if own:
            number = Number("peak rates", "not known, the device is not in the table of devices", "text")
            yield Claim(cells=share_of(own), numbers=(number,), confidence="hint", marks=(UNKNOWN_PEAKS,))
        return
    faster = device.tf32 or device.half
    if not device.fp32 or not faster or not own:
        return
    word = "tf32" if device.tf32 else "fp16" if device.is_without_bf16 else "bf16"
    left, size = 1 - device.fp32 / faster, 1.0 if device.tf32 else 0.5
    above = {piece.at: piece.ns - size * evidence.roofline.floor_ns(piece) for piece in own}
    yield Claim(
        cells={piece.at: min(left * piece.ns, above[piece.at]) for piece in own}, place=word,
        numbers=(Number("peak with 32 bits", device.fp32, "tflops_per_s"),
                 Number(f"peak with {word}", faster, "tflops_per_s")),
    )  # fmt: skip


def _sizes(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    even: list[tuple[str, float, float]] = []
    odd: list[tuple[WorkPiece, float, float]] = []
    for piece in pieces:
        count = flops(piece) if is_matmul(piece) else None
        if count and piece.ns:
            rate = count * piece.calls / piece.ns / 1e3
            if not _is_odd(piece, evidence.vendor):
                even.append((piece.number_kind, count, rate))
            elif min(min(shape[-2:]) for shape in piece.shapes if len(shape) >= 2) >= _SIDE:
                odd.append((piece, count, rate))
    cells: dict[int, float] = {}
    longest, share = None, 0.0
    for piece, count, rate in odd:
        best = max((of for kind, size, of in even if kind == piece.number_kind and size <= _LARGER * count), default=0)
        left = max(rate / best, evidence.roofline.floor_ns(piece) / piece.ns) if best else 1.0
        if left < 1:
            cells[piece.at] = piece.ns * (1 - left)
            if longest is None or piece.ns > longest.ns:
                longest, share = piece, left
    if longest is not None:
        yield Claim(cells=cells, numbers=(
            Number("odd sizes", tensors_text(longest.text), "text"),
            Number("its rate by the best of even sizes", share, "share"),
        ))  # fmt: skip


def _is_odd(piece: WorkPiece, vendor: str) -> bool:
    """Whether the rows of a matmul fit the matrix units badly; how many rows there are does not matter."""
    rows = [shape[-1] for shape in factors(piece) or piece.shapes if len(shape) >= 2]
    if vendor == "ascend":
        # of formats in blocks the shapes are those of the blocks
        return "NZ" not in piece.formats and any(size * piece.element_bytes % _NPU_BYTES for size in rows)
    multiple = _MULTIPLE.get(piece.number_kind, 1)
    return "align1" in piece.name or "align2" in piece.name or any(size % multiple for size in rows)


def _formats(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    groups: dict[str, list[WorkPiece]] = defaultdict(list)
    for piece in pieces:
        name = piece.name.lower()
        word = next((word for word in _FORMATS if word in name), "")
        # a kernel that multiplies matrices may have such a word in its name, too
        if word and not any(part in name for part in ("gemm", "matmul", "conv")):
            groups["transpose" if "transpose" in word else word].append(piece)
    for word, own in groups.items():
        if own:
            longest = max(own, key=lambda piece: piece.ns).name.partition("<")[0]
            name = longest.rpartition("::")[2].rpartition("/")[2]
            yield Claim(cells=share_of(own), place=word, title=f"changes of memory format: {name}")


def _casts(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    groups: dict[tuple[str, Shape], list[WorkPiece]] = defaultdict(list)
    for piece in pieces:
        kinds = {kind_of(kind) for shape, kind in zip(piece.shapes, piece.types, strict=False) if shape} - {""}
        is_cast = piece.plain_op == "cast" or (piece.plain_op in _CASTS and len(kinds) > 1)
        if piece.module and piece.largest and is_cast:
            groups[piece.module, piece.largest].append(piece)
    groups = {key: own for key, own in groups.items() if sum(piece.calls for piece in own) >= 2}
    cells: dict[int, float] = {}
    for own in groups.values():
        once = evidence.roofline.floor_ns(own[0]) / own[0].calls
        cells |= share_of(own, max(0.0, 1 - once / _time(own)) if _time(own) else 0.0)
    if cells:
        yield Claim(cells=cells)


def _ai_cpu(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    own = [
        piece for piece in pieces if "ai_cpu" in (piece.core.lower(), piece.kind) and
        piece.ns >= _AI_CPU_NS * piece.calls
    ]  # fmt: skip
    if own:
        names = ", ".join(sorted({piece.name.rpartition("/")[2] for piece in own})[:3])
        yield Claim(cells=share_of(own), numbers=(Number("kernels", names, "text"),))


def _slow(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    of_shapes: dict[tuple[str, str], list[WorkPiece]] = defaultdict(list)
    for piece in pieces:
        of_shapes[piece.plain_op, piece.text].append(piece)
    cells: dict[str, dict[int, float]] = defaultdict(dict)
    worst: dict[str, EfficiencyRow] = {}
    for row in evidence.roofline.rows:
        own = of_shapes.get((row.name, row.input_shapes), [])
        efficiency = row.efficiency or _SLOW
        is_slow = row.ceiling == "spec" and efficiency < _SLOW
        if row.rank == rank and own and is_slow and row.flops:
            cells[row.name] |= share_of(own, 1 - efficiency)
            worst[row.name] = min(worst.get(row.name, row), row, key=lambda one: one.efficiency or _SLOW)
    for name, row in worst.items():
        yield Claim(
            cells=cells[name], place=name, title=f"{name} far below what the device can do",
            numbers=(Number("lowest efficiency", row.efficiency or 0.0, "share"),
                     Number("rate", row.tflops_per_s or 0.0, "tflops_per_s"),
                     Number("shapes", tensors_text(row.input_shapes), "text")),
        )  # fmt: skip


def _zero_grad(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    own = [piece for piece in pieces if piece.phase == "clear_grad"]
    if own:
        yield Claim(cells=share_of(own))


RULES: Final = (
    AdviceRule(
        id="K21", title="gradients are set to zero", fires="kernels run under Optimizer.zero_grad",
        bound="exposed", confidence="certain", takes=True, on_devices=True,
        remedies=(
            Remedy("zero_grad(set_to_none=True)", ("torch", "nvidia", "amd", "cpu")),
            Remedy("zero_grad(set_to_none=True), unless the optimizer is one of torch_npu.optim, which refuses it",
                   ("torch", "ascend")),
            Remedy("clear_grad(set_to_zero=False)", ("paddle",)),
            Remedy("give gradients back instead of setting them to zero", is_last=True),
        ),
        sources=("PyTorch profiler, pattern GradNotSetToNone",), in_rank=_zero_grad,
    ),
    AdviceRule(
        id="K1", title="work in 64-bit numbers",
        fires="a matmul, normalisation or reduction has a tensor (no scalar) of 64-bit floating point numbers",
        bound="precision", confidence="certain",
        remedies=(Remedy("float32 or less: look for .double(), float64 constants and NumPy arrays"),),
        sources=("tests of this project: nightly_gpt v05, v06",), in_rank=_double,
    ),
    AdviceRule(
        id="K2", title="matmuls and convolutions in 32-bit numbers",
        fires="there are such, and the device is faster with smaller numbers; of a device that is not in the table of "
            "devices a hint, with all of their time as the bound",
        bound="precision", confidence="certain", on_devices=True,
        remedies=(
            Remedy("torch.set_float32_matmul_precision('high')", ("torch", "nvidia", "tf32"), since=(1, 12)),
            Remedy("torch.backends.cuda.matmul.allow_tf32 = True", ("torch", "nvidia", "tf32"), until=(1, 12)),
            Remedy("torch.backends.cudnn.allow_tf32 = True, for convolutions", ("torch", "nvidia", "tf32"),
                   needs=(CONVOLUTIONS,)),
            Remedy("torch.autocast with bfloat16", ("torch", "tf32", "bf16")),
            Remedy("torch.autocast with float16 and a GradScaler: this device has no fast bfloat16",
                   ("torch", "nvidia", "fp16"), needs=(BACKWARD,)),
            Remedy("torch.autocast with float16: this device has no fast bfloat16", ("torch", "nvidia", "fp16"),
                   unless=(BACKWARD,)),
            Remedy("torch.autocast with bfloat16, or tf32 (torch.set_float32_matmul_precision('high')), where the "
                   "device has them", ("torch", "nvidia", "amd"), needs=(UNKNOWN_PEAKS,)),
            Remedy("torch.autocast with bfloat16 or float16", ("torch", "ascend"), needs=(UNKNOWN_PEAKS,)),
            Remedy("torch_npu.npu.matmul.allow_hf32 = True", ("torch", "ascend")),
            Remedy("paddle.amp.auto_cast", ("paddle",)),
            Remedy("amp_level='O2'", ("mindspore",)),
            Remedy("numbers of 16 bits, or tf32, for matmuls and convolutions", is_last=True),
        ),
        sources=("PyTorch profiler, pattern FP32MatMul", "torch_tb_profiler, tensor cores"), in_rank=_single,
    ),
    AdviceRule(
        id="K3", title="sizes of matmuls that fit the matrix units badly",
        fires="rows of a matmul with sides of 64 or more are no multiple of 8 (16 bits), 4 (tf32) or 16 (8 bits), or "
            "the kernel's name says align1 or align2; on an NPU rows are no multiple of 512 bytes; and it is slower "
            "than one of even sizes that is at most twice as large",
        bound="roofline", confidence="likely",
        remedies=(Remedy("pad the vocabulary, the hidden size or the batch to such a multiple"),),
        sources=("PyTorch profiler, pattern MatMulDimInFP16", "NVIDIA: matrix multiplication", "msprof-analyze"),
        in_rank=_sizes,
    ),
    AdviceRule(
        id="K11", title="changes of memory format",
        fires="kernels only change the layout of tensors",
        bound="exposed", confidence="certain", takes=True, on_devices=True,
        remedies=(
            Remedy("memory_format=torch.channels_last on model and input", ("torch", "nvidia", "amd"),
                   needs=(CONVOLUTIONS,)),
            Remedy("before ROCm 7 also PYTORCH_MIOPEN_SUGGEST_NHWC=1", ("torch", "amd"), needs=(CONVOLUTIONS,)),
            Remedy("torch.npu.config.allow_internal_format = False, or no views before matmuls", ("torch", "ascend")),
            Remedy("data_format='NHWC'", ("paddle",), needs=(CONVOLUTIONS,)),
            Remedy("fewer views and transposes before matmuls and convolutions", is_last=True),
        ),
        sources=("msprof-analyze", "cuDNN: tensor layouts"), in_rank=_formats,
    ),
    AdviceRule(
        id="K12", title="casts back and forth",
        fires="casts of one tensor's shape twice or more in a step and module",
        bound="roofline", confidence="likely", takes=True, on_devices=True,
        remedies=(
            Remedy("keep one type through the module"),
            Remedy("32-bit weights in the optimizer alone", needs=(OPTIMIZER,)),
            Remedy("the cache of autocast", ("torch",), needs=(BACKWARD,)),
        ),
        sources=("TraceLens",), in_rank=_casts,
    ),
    AdviceRule(
        id="K13", title="kernels on the AI CPU", fires="kernels of 20 us or more run on the AI CPU of an NPU",
        bound="exposed", confidence="certain", takes=True, on_devices=True,
        remedies=(Remedy("types that AI cores take (int32, float32), or an operator of the vendor (dropout)"),),
        sources=("msprof-analyze, AI CPU",), in_rank=_ai_cpu,
    ),
    AdviceRule(
        id="K16", title="an operator far below what the device can do",
        fires="a matmul, convolution or attention reaches less than 60 % of the roofline",
        bound="roofline", confidence="likely", on_devices=True,
        remedies=(
            Remedy("torch.backends.cudnn.benchmark=True", ("torch", "nvidia", "amd", "conv")),
            Remedy("torch.backends.cuda.preferred_blas_library('cublaslt')", ("torch", "nvidia", "mm"),
                   since=(2, 3)),
            Remedy("PYTORCH_TUNABLEOP_ENABLED=1, hipBLASLt", ("torch", "amd", "mm"), since=(2, 3)),
            Remedy("another backend with torch.nn.attention.sdpa_kernel", ("torch", "nvidia", "amd", "attention"),
                   since=(2, 3)),
            Remedy("another backend with torch.backends.cuda.sdp_kernel", ("torch", "nvidia", "amd", "attention"),
                   until=(2, 3)),
            Remedy("FLAGS_use_autotune=1", ("paddle",)),
            Remedy("tuning with AOE", ("ascend",)),
            Remedy("another library or another algorithm for this operator and these shapes", is_last=True),
        ),
        sources=("TraceLens, roofline bins",), in_rank=_slow,
    ),
)  # fmt: skip
