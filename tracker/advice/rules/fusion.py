"""Work that is written out in several kernels and exists as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tracker.advice.roofline import flops, is_elementwise, is_matmul, is_vector
from tracker.advice.rule import AdviceRule, Claim, Number, Remedy
from tracker.advice.shapes import Shape, elements

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence, WorkPiece

_SCORES: Final = 64
"""Queries and keys from which on a written-out attention is worth a fused one."""
_VOCABULARY: Final = 16_000
_INSTANCE: Final = re.compile(r"_\d+$")
_ATTENTION_OPS: Final = ("attention", "flash", "sdpa")
_SOFTMAX: Final = ("_softmax", "softmax", "softmaxv2", "_softmax_backward_data", "softmaxgrad")
_FUSED_NORM: Final = ("layer_norm", "rms_norm", "layernorm", "rmsnorm", "group_norm", "batch_norm", "instance_norm")
_CURVES: Final = ("tanh", "erf", "sigmoid", "pow", "tanh_backward", "pow_backward", "sigmoid_backward")
_BENT: Final = ("tanh", "erf", "sigmoid")
_FUSED_CURVES: Final = ("gelu", "silu", "gelu_backward", "silu_backward", "swiglu", "gelugrad", "swish")


def _claim(
    evidence: Evidence,
    pieces: Sequence[WorkPiece],
    floor: float | None,
    *,
    title: str = "",
    place: str = "",
    numbers: Iterable[Number] = (),
) -> Claim | None:
    """A claim on all of `pieces` but the time that one kernel in their place takes at least; None where none is left.
    Of a host nothing is known of that time: tensors may stay in its caches.
    """
    floor = floor if evidence.is_device else None
    whole = sum(piece.ns for piece in pieces)
    left = 1 - (floor or 0.0) / whole if whole else 0.0
    if left <= 0:
        return None
    by_op: dict[str, float] = {}
    for piece in (one for one in pieces if not one.plain_op.endswith("backward0")):
        by_op[piece.plain_op] = by_op.get(piece.plain_op, 0.0) + piece.ns
    parts = ", ".join(sorted(by_op, key=by_op.__getitem__, reverse=True)[:8])
    longest = max(pieces, key=lambda piece: piece.ns)
    memory = evidence.roofline.bandwidth
    ceiling = [Number(f"bandwidth ({memory[1]})", memory[0], "gb_per_s")] if memory and floor else []
    return Claim(
        resource="work", rank=longest.rank, cells={piece.at: piece.ns * left for piece in pieces},
        op=longest.op if not longest.op.startswith("(") else "", module=longest.module,
        kernel=longest.name, title=title, place=place,
        numbers=(
            Number("written out as", parts, "text"), Number("kernels", sum(piece.calls for piece in pieces), "count"),
            Number("their time", whole), *((Number("as one kernel, at least", floor),) if floor else ()), *numbers,
            *ceiling,
        ),
    )  # fmt: skip


def _of_rank(evidence: Evidence, taken: frozenset[int]) -> Iterator[list[WorkPiece]]:
    for rank in evidence.studied:
        yield [
            piece for piece in evidence.pieces if piece.rank == rank and piece.at not in taken and piece.kind != "copy"
        ]


def _attention(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for pieces in _of_rank(evidence, taken):
        if any(word in f"{piece.op} {piece.name}".lower() for piece in pieces for word in _ATTENTION_OPS
               if "softmax" not in piece.plain_op):  # fmt: skip
            continue
        scores = {
            shape[-2:] for piece in pieces if piece.plain_op in _SOFTMAX
            for shape in piece.shapes if len(shape) >= 3 and min(shape[-2:]) >= _SCORES
        }  # fmt: skip
        heads = [piece for piece in pieces if is_matmul(piece) and _makes_scores(piece, scores)]
        if not scores or not heads:
            continue
        own = [piece for piece in pieces if piece in heads or _has_scores(piece, scores)]
        peak = evidence.roofline.peaks.get(heads[0].number_kind)
        count = sum((flops(piece) or 0.0) * piece.calls for piece in heads)
        memory = evidence.roofline.bandwidth
        moved = sum(
            elements(shape) * piece.element_bytes * piece.calls for piece in heads for shape in piece.shapes
            if shape[-2:] not in scores
        )  # fmt: skip
        floor = max(count / (peak[0] * 1e3) if peak else 0.0, moved / memory[0] if memory else 0.0)
        found = _claim(evidence, own, floor)
        if found:
            yield found


def _makes_scores(piece: WorkPiece, scores: set[Shape]) -> bool:
    tensors = [shape for shape in piece.shapes if len(shape) >= 3]
    if len(tensors) < 2:
        return False
    return (tensors[0][-2], tensors[1][-1]) in scores or _has_scores(piece, scores)


def _has_scores(piece: WorkPiece, scores: set[Shape]) -> bool:
    return any(len(shape) >= 2 and shape[-2:] in scores for shape in piece.shapes)


def _norm(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for pieces in _of_rank(evidence, taken):
        modules: dict[str, list[WorkPiece]] = {}
        for piece in pieces:
            if "norm" in _class_of(piece.module).lower():
                modules.setdefault(piece.module, []).append(piece)
        own: list[WorkPiece] = []
        floor = 0.0
        for found in modules.values():
            names = {piece.plain_op for piece in found}
            if len(found) < 4 or any(word in name for name in names for word in _FUSED_NORM):
                continue
            tensor = max(found, key=lambda piece: elements(piece.largest))
            passes = 2 + 3 * any(piece.phase == "backward" for piece in found)
            size = min(piece.element_bytes for piece in found if piece.largest == tensor.largest)
            own += found
            memory = evidence.roofline.bandwidth
            calls = min(piece.calls for piece in found)
            floor += passes * elements(tensor.largest) * size * calls / memory[0] if memory else 0.0
        if own:
            name = _class_of(own[0].module)
            claim = _claim(
                evidence, own, floor, place=name, title=f"{name} written out",
                numbers=[Number("modules", float(len({piece.module for piece in own})), "count")],
            )  # fmt: skip
            if claim:
                yield claim


def _class_of(module: str) -> str:
    """The class of a module from its path: `Norm` of `GPT_0/Block_0/Norm_1`."""
    return _INSTANCE.sub("", module.rpartition("/")[2])


def _activation(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for pieces in _of_rank(evidence, taken):
        shapes: dict[Shape, list[WorkPiece]] = {}
        for piece in pieces:
            if (is_elementwise(piece) or piece.plain_op in _FUSED_CURVES) and len(piece.largest) >= 2:
                shapes.setdefault(piece.largest, []).append(piece)
        own: list[WorkPiece] = []
        floor, kinds, memory = 0.0, set(), evidence.roofline.bandwidth
        for shape, found in shapes.items():
            names = {piece.plain_op for piece in found}
            curves = [piece for piece in found if piece.plain_op in _CURVES]
            if not {*_BENT} & names or "mul" not in names or {*_FUSED_CURVES} & names:
                continue
            calls = max(piece.calls for piece in curves if piece.plain_op in _BENT)
            passes = 2 + 3 * any(name.endswith("_backward") for name in names & {*_CURVES})
            floor += passes * calls * elements(shape) * curves[0].element_bytes / memory[0] if memory else 0.0
            own += found
            kinds |= names & {*_BENT, "pow"}
        own += [piece for piece in pieces if own and _is_autograd(piece, {one.plain_op for one in own})]
        claim = (
            _claim(evidence, own, floor, title=f"activation written out with {', '.join(sorted(kinds))}")
            if own
            else None
        )
        if claim:
            yield claim


def _is_autograd(piece: WorkPiece, names: set[str]) -> bool:
    """Whether a piece is what autograd spends around the gradient of one of these operators, on a host."""
    name = piece.plain_op.rpartition(" ")[2]
    return (
        piece.kind == "op"
        and name.endswith("backward0")
        and name.removesuffix("backward0") in names & {*_BENT, "pow", "mul"}
    )


def _vocabulary(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for pieces in _of_rank(evidence, taken):
        sizes = {
            shape[side] for piece in pieces if is_matmul(piece)
            for shape in (*piece.shapes, *piece.op_shapes) if len(shape) >= 2 for side in (-1, -2)
        }  # fmt: skip
        groups: dict[int, list[WorkPiece]] = {}
        for piece in pieces:
            last = piece.largest[-1] if len(piece.largest) >= 2 else 0
            if last >= _VOCABULARY and last in sizes and is_vector(piece):
                groups.setdefault(last, []).append(piece)
        for last, own in groups.items():
            if len({piece.plain_op for piece in own}) < 3:
                continue
            logits = max(own, key=lambda piece: piece.ns).largest
            memory = bandwidth_of(own) if not _has_table(evidence) else evidence.roofline.bandwidth
            floor = 4 * 2 * elements(logits) / memory[0] if memory else None
            claim = _claim(
                evidence, own, floor, place=str(last),
                title=f"loss over the vocabulary of {last:,} written out",
                numbers=[Number("logits", _text(logits), "text")],
            )  # fmt: skip
            if claim:
                yield claim


def _has_table(evidence: Evidence) -> bool:
    return evidence.device is not None and bool(evidence.device.memory_gb_per_s)


def bandwidth_of(pieces: Sequence[WorkPiece]) -> tuple[float, str] | None:
    """GB/s of the fastest of these pieces that read one tensor and write one, measured."""
    rates = [
        2 * elements(piece.largest) * piece.element_bytes * piece.calls / piece.ns
        for piece in pieces if is_elementwise(piece) and piece.ns and piece.plain_op not in ("cast", "copy")
    ]  # fmt: skip
    return (max(rates), "measured") if rates else None


def _rotary(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for pieces in _of_rank(evidence, taken):
        halves = {piece.largest for piece in pieces if piece.plain_op == "neg" and len(piece.largest) >= 3}
        whole = {
            (*shape[:-1], 2 * shape[-1]) for piece in pieces if piece.plain_op in ("cat", "concatd", "concatv2d")
            for shape in piece.shapes if shape in halves
        }  # fmt: skip
        own = [
            piece for piece in pieces
            if (piece.plain_op in ("mul", "add", "cat") and (piece.largest in whole or piece.largest in halves))
            or (piece.plain_op == "neg" and piece.largest in halves)
        ]  # fmt: skip
        if not whole or not own:
            continue
        memory = evidence.roofline.bandwidth
        adds = [piece for piece in own if piece.plain_op == "add"] or own[:1]
        moved = sum(2 * elements(piece.largest) * piece.element_bytes * piece.calls for piece in adds)
        claim = _claim(evidence, own, moved / memory[0] if memory else None)
        if claim:
            yield claim


def _chains(evidence: Evidence, taken: frozenset[int]) -> Iterator[Claim]:
    for pieces in _of_rank(evidence, taken):
        groups: dict[tuple[str, Shape, str], list[WorkPiece]] = {}
        for piece in pieces:
            if piece.module and is_elementwise(piece) and len(piece.largest) >= 2:
                groups.setdefault((piece.module, piece.largest, piece.phase), []).append(piece)
        classes: dict[str, list[tuple[list[WorkPiece], WorkPiece]]] = {}
        for (module, _, _), own in groups.items():
            if len(own) >= 3:
                classes.setdefault(_class_of(module), []).append((own, max(own, key=lambda piece: piece.ns)))
        for name, found in classes.items():
            own = [piece for pieces, longest in found for piece in pieces]
            kept = sum(longest.ns for _, longest in found)
            claim = _claim(evidence, own, kept, place=name, title=f"elementwise operators of {name} one by one")
            if claim:
                yield claim


def _text(shape: Shape) -> str:
    return f"[{','.join(map(str, shape))}]"


_AFFINITY: Final = "msprof-analyze, affinity APIs"
RULES: Final = (
    AdviceRule(
        id="K4",
        title="attention written out",
        fires="matmuls and a softmax over scores of 64 x 64 or more, and no fused attention",
        bound="roofline",
        confidence="likely",
        takes=True,
        remedies=(
            Remedy("torch.nn.functional.scaled_dot_product_attention", ("torch",)),
            Remedy("the AOTriton or CK backend of scaled_dot_product_attention", ("amd",)),
            Remedy("torch_npu.npu_fusion_attention", ("ascend",)),
            Remedy("paddle.nn.functional.flash_attention", ("paddle",)),
            Remedy("ops.FlashAttentionScore", ("mindspore",)),
        ),
        sources=("TraceLens", _AFFINITY),
        find=_attention,
    ),
    AdviceRule(
        id="K5",
        title="normalisation written out",
        fires="a module called *Norm with four elementwise kernels or reductions and no fused one",
        bound="roofline",
        confidence="likely",
        takes=True,
        remedies=(
            Remedy("torch.nn.functional.rms_norm or layer_norm; torch.compile on the module", ("torch",)),
            Remedy("torch_npu.npu_rms_norm", ("ascend",)),
        ),
        sources=("the RMSNorm of Hugging Face models", _AFFINITY),
        find=_norm,
    ),
    AdviceRule(
        id="K6",
        title="activation written out",
        fires="tanh, erf or sigmoid with mul over tensors of one shape, and no gelu or silu of that shape",
        bound="roofline",
        confidence="likely",
        takes=True,
        remedies=(
            Remedy("torch.nn.functional.gelu(x, approximate='tanh'), silu", ("torch",)),
            Remedy("torch_npu.npu_gelu, npu_swiglu", ("ascend",)),
            Remedy("paddle.nn.functional.gelu(x, approximate=True)", ("paddle",)),
        ),
        sources=(_AFFINITY,),
        find=_activation,
    ),
    AdviceRule(
        id="K7",
        title="loss over the vocabulary written out",
        fires="three elementwise kernels or reductions whose last dimension is 16,000 or more and a side of a matmul",
        bound="roofline",
        confidence="likely",
        takes=True,
        remedies=(
            Remedy("cross_entropy instead of log_softmax written out; logits in 16 bits", ("torch",)),
            Remedy("a fused or chunked linear cross entropy, such as Liger's", ("nvidia", "amd")),
            Remedy("torch_npu.npu_cross_entropy_loss, logits in bf16", ("ascend",)),
        ),
        sources=("Liger kernel: fused linear cross entropy",),
        find=_vocabulary,
    ),
    AdviceRule(
        id="K8",
        title="rotary embedding written out",
        fires="neg of half a tensor, cat with the other half, and mul and add of the whole",
        bound="roofline",
        confidence="likely",
        takes=True,
        remedies=(
            Remedy("a fused rotary embedding, such as Liger's or that of Transformer Engine", ("nvidia", "amd")),
            Remedy("torch_npu.npu_rotary_mul", ("ascend",)),
            Remedy("torch.compile on the attention module", ("torch",)),
        ),
        sources=(_AFFINITY,),
        find=_rotary,
    ),
    AdviceRule(
        id="K10",
        title="elementwise operators one by one",
        fires="three elementwise kernels of one shape in one module, none of which another rule explains",
        bound="roofline",
        confidence="likely",
        takes=True,
        remedies=(
            Remedy("torch.compile on the module, or a Triton kernel", ("torch",)),
            Remedy("CINN: FLAGS_use_cinn=1", ("paddle",)),
            Remedy("the fused API of the vendor, or graph mode", ("ascend", "mindspore")),
        ),
        sources=("torch: TorchInductor",),
        find=_chains,
    ),
)  # fmt: skip
