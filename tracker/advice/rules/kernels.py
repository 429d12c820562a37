"""Kernels that take longer than the device needs for their work: types, sizes, formats, copies, tuning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from tracker.advice.roofline import flops, is_elementwise, is_matmul
from tracker.advice.rule import AdviceRule, Claim, Number, Remedy
from tracker.advice.shapes import Shape, kind_of, tensors_text

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence, WorkPiece

_SHARE: Final = 0.05
_CALL: Final = 0.01
_CAST: Final = 0.02
_SLOW: Final = 0.6
_FORMATS: Final = (
    "nchwtonhwc",
    "nhwctonchw",
    "batched_transpose",
    "transdata",
    "transpose",
    "trans_data",
    "contiguous",
)
_CASTS: Final = ("cast", "copy", "_to_copy", "to")
_CONVOLUTION: Final = "convolution"
_DOUBLE: Final = ("mm", "addmm", "bmm", "baddbmm", "native_layer_norm", "native_layer_norm_backward",
                  "native_batch_norm",
                  "sum", "mean", "_softmax", "_log_softmax", "var_mean", "norm", "linalg_vector_norm")  # fmt: skip
_MULTIPLE: Final = {"half": 8, "tf32": 4, "byte": 16}
"""Kind of number -> what sides of a matmul should be multiples of."""
_NPU_BYTES: Final = 512
_AI_CPU_NS: Final = 20_000


def _claim(
    pieces: list[WorkPiece], cells: dict[int, float], *numbers: Number, place: str = "", title: str = ""
) -> Claim:
    longest = max(pieces, key=lambda piece: piece.ns)
    named = not longest.op.startswith("(")
    return Claim(
        resource="work", rank=longest.rank, cells=cells, place=place, title=title,
        op=longest.op if named else "", module=longest.module, kernel=longest.name, numbers=numbers,
    )  # fmt: skip


def _pieces(evidence: Evidence, rank: int, taken: frozenset[int]) -> list[WorkPiece]:
    return [piece for piece in evidence.pieces if piece.rank == rank and piece.at not in taken and piece.calls]


def _time(pieces: list[WorkPiece]) -> float:
    return sum(piece.ns for piece in pieces)


def _double(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for rank in evidence.studied:
        own = [
            piece for piece in _pieces(evidence, rank, taken)
            if piece.plain_op in _DOUBLE
            # a scalar of 64 bits beside a tensor of 32 is how Python hands numbers over
            and any(shape and kind_of(kind) == "fp64" for shape, kind in zip(piece.shapes, piece.types, strict=False))
        ]  # fmt: skip
        if own:
            names = ", ".join(sorted({piece.plain_op for piece in own}))
            yield _claim(own, {piece.at: piece.ns / 2 for piece in own}, Number("in 64 bits", names, "text"),
                         Number("their time", _time(own)))  # fmt: skip


def _single(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    device = evidence.device
    if device is None or not device.fp32 or not evidence.is_device:
        return
    faster = device.tf32 or device.half
    word = "tf32" if device.tf32 else "16 bits"
    for rank in evidence.studied:
        own = [
            piece for piece in _pieces(evidence, rank, taken)
            if piece.number_kind == "fp32" and (is_matmul(piece) or piece.kind.startswith(_CONVOLUTION))
        ]  # fmt: skip
        if faster and _time(own) >= _SHARE * evidence.step_ns > 0:
            left = 1 - device.fp32 / faster
            yield _claim(own, {piece.at: piece.ns * left for piece in own}, Number("in 32 bits", _time(own)),
                         Number("peak with 32 bits", device.fp32, "tflops_per_s"),
                         Number(f"peak with {word}", faster, "tflops_per_s"))  # fmt: skip


def _sizes(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for rank in evidence.studied:
        rates: list[tuple[WorkPiece, float, bool]] = []
        for piece in _pieces(evidence, rank, taken):
            count = flops(piece) if is_matmul(piece) else None
            if count and piece.ns:
                rates.append((piece, count * piece.calls / piece.ns / 1e3, _is_odd(piece, evidence.vendor)))
        best: dict[str, float] = {}
        for piece, rate, is_odd in rates:
            if not is_odd:
                best[piece.number_kind] = max(best.get(piece.number_kind, 0.0), rate)
        slower = [
            (piece, max(rate / best[piece.number_kind], evidence.roofline.floor_share(piece)))
            for piece, rate, is_odd in rates if is_odd and rate < best.get(piece.number_kind, 0.0)
        ]  # fmt: skip
        slower = [(piece, share) for piece, share in slower if share < 1]
        own = [piece for piece, _ in slower]
        if own:
            longest = max(slower, key=lambda pair: pair[0].ns)
            yield _claim(own, {piece.at: piece.ns * (1 - share) for piece, share in slower},
                         Number("odd sizes", tensors_text(longest[0].text), "text"), Number("their time", _time(own)),
                         Number("of the best rate of even sizes", longest[1], "share"))  # fmt: skip


def _is_odd(piece: WorkPiece, vendor: str) -> bool:
    """Whether a side of a matmul fits the matrix units badly."""
    if not is_matmul(piece):
        return False
    if "align1" in piece.name or "align2" in piece.name:
        return True
    sides = [side for shape in piece.shapes if len(shape) >= 2 for side in shape[-2:]]
    if vendor == "ascend":
        # of formats in blocks the shapes are those of the blocks
        inner = [shape[-1] * piece.element_bytes for shape in piece.shapes if len(shape) >= 2]
        return "NZ" not in piece.formats and any(size % _NPU_BYTES for size in inner)
    multiple = _MULTIPLE.get(piece.number_kind)
    return multiple is not None and any(side > 1 and side % multiple for side in sides)


def _optimizer(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    if not evidence.is_device:
        return
    for rank in evidence.studied:
        own = [
            piece for piece in _pieces(evidence, rank, taken) if piece.phase == "optimizer" and is_elementwise(piece)
        ]
        every = [piece for piece in evidence.pieces if piece.rank == rank and piece.phase == "optimizer"]
        fused = any(word in f"{piece.name} {piece.op}".lower() for piece in every
                    for word in ("multi_tensor", "fused", "foreach", "applyadam"))  # fmt: skip
        calls = sum(piece.calls for piece in own)
        if calls >= 50 and not fused:
            cells = {piece.at: piece.ns - piece.calls * (evidence.roofline.floor_ns(piece) or 0.0) for piece in own}
            yield _claim(
                own, cells, Number("kernels of the optimizer", calls, "count"), Number("their time", _time(own))
            )


def _formats(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    if not evidence.is_device:
        return
    for rank in evidence.studied:
        groups: dict[str, list[WorkPiece]] = {}
        for piece in _pieces(evidence, rank, taken):
            name = f"{piece.name}".lower()
            word = next((word for word in _FORMATS if word in name), "")
            if word and not is_matmul_kernel(name):
                groups.setdefault("transpose" if "transpose" in word else word, []).append(piece)
        for word, own in groups.items():
            if _time(own) >= _CALL * evidence.step_ns > 0:
                name = max(own, key=lambda piece: piece.ns).name.partition("<")[0].rpartition("::")[2][:60]
                yield _claim(own, {piece.at: piece.ns for piece in own},
                             Number("calls", sum(piece.calls for piece in own), "count"),
                             Number("their time", _time(own)),
                             place=word, title=f"changes of memory format: {name}")  # fmt: skip


def is_matmul_kernel(name: str) -> bool:
    """Whether a kernel that has a word of a format change in its name multiplies matrices."""
    return "gemm" in name or "matmul" in name or "conv" in name


def _casts(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    if not evidence.is_device:
        return
    for rank in evidence.studied:
        groups: dict[tuple[str, Shape], list[WorkPiece]] = {}
        for piece in _pieces(evidence, rank, taken):
            kinds = {kind_of(kind) for shape, kind in zip(piece.shapes, piece.types, strict=False) if shape} - {""}
            changes = piece.plain_op == "cast" or (piece.plain_op in _CASTS and len(kinds) > 1)
            if changes and piece.largest:
                groups.setdefault((piece.module, piece.largest), []).append(piece)
        own: list[WorkPiece] = []
        cells: dict[int, float] = {}
        for pieces in groups.values():
            calls = sum(piece.calls for piece in pieces)
            if calls >= 2:
                once = evidence.roofline.floor_ns(pieces[0]) or 0.0
                left = max(0.0, 1 - once / _time(pieces)) if _time(pieces) else 0.0
                own += pieces
                cells |= {piece.at: piece.ns * left for piece in pieces}
        if _time(own) >= _CAST * evidence.step_ns > 0:
            yield _claim(own, cells, Number("casts", sum(piece.calls for piece in own), "count"),
                         Number("their time", _time(own)))  # fmt: skip


def _ai_cpu(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for rank in evidence.studied:
        own = [
            piece for piece in _pieces(evidence, rank, taken)
            if (piece.core == "AI_CPU" or piece.kind == "ai_cpu") and piece.ns >= _AI_CPU_NS * piece.calls
        ]  # fmt: skip
        if own:
            names = ", ".join(sorted({piece.name for piece in own})[:3])
            yield _claim(own, {piece.at: piece.ns for piece in own}, Number("kernels on AI CPU", names, "text"),
                         Number("their time", _time(own)))  # fmt: skip


def _slow(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    by_key: dict[tuple[int, str, str], list[WorkPiece]] = {}
    for piece in evidence.pieces:
        if piece.at not in taken:
            by_key.setdefault((piece.rank, piece.plain_op, piece.text), []).append(piece)
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in evidence.roofline.rows:
        efficiency = row["efficiency"]
        if efficiency is None or efficiency >= _SLOW:
            continue
        if row["total_ns"] >= _CALL * evidence.step_ns > 0 and row["ceiling"] == "spec":
            groups.setdefault((row["rank"], row["name"]), []).append(row)
    for (rank, name), rows in groups.items():
        own = [piece for row in rows for piece in by_key.get((rank, name, str(row["input_shapes"])), [])]
        if not own:
            continue
        worst = min(rows, key=lambda row: row["efficiency"])
        cells = {
            piece.at: piece.ns * (1 - row["efficiency"])
            for row in rows for piece in by_key.get((rank, name, str(row["input_shapes"])), [])
        }  # fmt: skip
        yield _claim(own, cells, Number("efficiency", worst["efficiency"], "share"),
                     Number("rate", worst["tflops_per_s"], "tflops_per_s"),
                     Number("shapes", tensors_text(worst["input_shapes"]), "text"), Number("their time", _time(own)),
                     place=name, title=f"{name} far below what the device can do")  # fmt: skip


def _zero_grad(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    if not evidence.is_device:
        return
    for rank in evidence.studied:
        own = [piece for piece in _pieces(evidence, rank, taken) if piece.phase == "clear_grad"]
        if _time(own) >= _CALL * evidence.step_ns > 0:
            yield _claim(own, {piece.at: piece.ns for piece in own},
                         Number("kernels that clear gradients", sum(piece.calls for piece in own), "count"),
                         Number("their time", _time(own)))  # fmt: skip


RULES: Final = (
    AdviceRule(
        id="K21", title="gradients are set to zero", fires="kernels under Optimizer.zero_grad take 1 % of the step",
        bound="exposed", confidence="certain", takes=True,
        remedies=(
            Remedy("zero_grad(set_to_none=True)", ("torch",)), Remedy("clear_grad(set_to_zero=False)", ("paddle",)),
        ),
        sources=("PyTorch profiler, pattern GradNotSetToNone",), find=_zero_grad,
    ),
    AdviceRule(
        id="K1", title="work in 64-bit numbers",
        fires="a matmul, normalisation or reduction has a tensor (no scalar) of 64-bit floating point numbers",
        bound="precision", confidence="certain",
        remedies=(Remedy("float32 or less: look for .double(), float64 constants and NumPy arrays"),),
        sources=("tests of this project: nightly_gpt v05, v06",), find=_double,
    ),
    AdviceRule(
        id="K2", title="matmuls and convolutions in 32-bit numbers",
        fires="they take 5 % of the step, and the device is faster with smaller numbers",
        bound="precision", confidence="certain",
        remedies=(
            Remedy("torch.set_float32_matmul_precision('high')", ("nvidia",)),
            Remedy("torch.autocast with bfloat16 (float16 on a V100)", ("torch",)),
            Remedy("torch_npu.npu.matmul.allow_hf32 = True", ("ascend",)),
            Remedy("paddle.amp.auto_cast", ("paddle",)),
            Remedy("amp_level='O2'", ("mindspore",)),
        ),
        sources=("PyTorch profiler, pattern FP32MatMul", "torch_tb_profiler, tensor cores"), find=_single,
    ),
    AdviceRule(
        id="K3", title="sizes of matmuls that fit the matrix units badly",
        fires="a side is no multiple of 8 (16 bits), 4 (tf32) or 16 (8 bits), or the kernel's name says align1 or "
            "align2; on an "
        "NPU rows are no multiple of 512 bytes",
        bound="roofline", confidence="likely",
        remedies=(Remedy("pad the vocabulary, the hidden size or the batch to such a multiple"),),
        sources=("PyTorch profiler, pattern MatMulDimInFP16", "NVIDIA: matrix multiplication", "msprof-analyze"),
        find=_sizes,
    ),
    AdviceRule(
        id="K9", title="the optimizer works parameter by parameter",
        fires="50 elementwise kernels or more of the optimizer in a step, and no fused or foreach kernel; on devices "
            "alone",
        bound="roofline", confidence="certain", takes=True,
        remedies=(
            Remedy("fused=True, else foreach=True, in the optimizer", ("torch",)),
            Remedy("torch_npu.optim.NpuFusedAdamW", ("ascend",)),
            Remedy("use_multi_tensor=True", ("paddle",)),
        ),
        sources=("PyTorch profiler, pattern OptimizerSingleTensor",), find=_optimizer,
    ),
    AdviceRule(
        id="K11", title="changes of memory format", fires="kernels that only change the layout of tensors take 1 % "
            "of the step",
        bound="exposed", confidence="certain", takes=True,
        remedies=(
            Remedy("memory_format=torch.channels_last on model and input", ("nvidia", "amd")),
            Remedy("before ROCm 7 also PYTORCH_MIOPEN_SUGGEST_NHWC=1", ("amd",)),
            Remedy("torch.npu.config.allow_internal_format = False, or no views before matmuls", ("ascend",)),
        ),
        sources=("msprof-analyze", "cuDNN: tensor layouts"), find=_formats,
    ),
    AdviceRule(
        id="K12", title="casts back and forth",
        fires="casts of one tensor's shape twice or more in a step and module, of 2 % of the step together",
        bound="roofline", confidence="likely", takes=True,
        remedies=(Remedy("keep one type through the module; 32-bit weights in the optimizer alone; the cache of "
            "autocast"),),
        sources=("TraceLens",), find=_casts,
    ),
    AdviceRule(
        id="K13", title="kernels on the AI CPU", fires="kernels of 20 us or more run on the AI CPU of an NPU",
        bound="exposed", confidence="certain", takes=True,
        remedies=(Remedy("types that AI cores take (int32, float32), or an operator of the vendor (dropout)"),),
        sources=("msprof-analyze, AI CPU",), find=_ai_cpu,
    ),
    AdviceRule(
        id="K16", title="an operator far below what the device can do",
        fires="a matmul, convolution or attention of 1 % of the step reaches less than 60 % of the roofline",
        bound="roofline", confidence="likely",
        remedies=(
            Remedy("convolutions: torch.backends.cudnn.benchmark=True", ("nvidia", "amd")),
            Remedy("matmuls: torch.backends.cuda.preferred_blas_library('cublaslt')", ("nvidia",)),
            Remedy("matmuls: PYTORCH_TUNABLEOP_ENABLED=1, hipBLASLt", ("amd",)),
            Remedy("attention: another backend with torch.nn.attention.sdpa_kernel", ("nvidia", "amd")),
            Remedy("FLAGS_use_autotune=1", ("paddle",)),
            Remedy("tuning with AOE", ("ascend",)),
        ),
        sources=("TraceLens, roofline bins",), find=_slow,
    ),
)  # fmt: skip
