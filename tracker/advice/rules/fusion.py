"""Work that is written out in several kernels and exists as one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tracker.advice.roofline import flops, is_elementwise, is_matmul, is_vector
from tracker.advice.rule import AdviceRule, Claim, Number, Remedy, share_of
from tracker.advice.traits import BACKWARD, COMPILED
from tracker.profile.shapes import Shape, elements

if TYPE_CHECKING:
    from tracker.advice.evidence import Evidence
    from tracker.advice.pieces import WorkPiece

Pieces = Sequence["WorkPiece"]
_SCORES: Final = 64
"""Queries and keys from which on a written-out attention is worth a fused one."""
_VOCABULARY: Final = 16_000
_OPTIMIZER: Final = 50
_OPTIMIZER_PASSES: Final = 3
_FUSED_OPTIMIZERS: Final = ("multi_tensor", "fused", "foreach", "applyadam")
_LISTED: Final = 3
_INSTANCE: Final = re.compile(r"_\d+$")
_ATTENTION_OPS: Final = ("attention", "flash", "sdpa")
_SOFTMAX: Final = ("_softmax", "softmax", "softmaxv2", "_softmax_backward_data", "softmaxgrad")
_FUSED_NORM: Final = ("layer_norm", "rms_norm", "layernorm", "rmsnorm", "group_norm", "batch_norm", "instance_norm")
_FUSED_CURVES: Final = ("gelu", "silu", "gelu_backward", "silu_backward", "swiglu", "gelugrad", "swish")
_CURVES: Final = {
    "tanh": ("pow", "pow_backward", "mul", "add", "div", "tanh", "tanh_backward"),
    "erf": ("erf", "mul", "add", "div"),
    "sigmoid": ("sigmoid", "sigmoid_backward", "mul"),
}
"""Curve of an activation -> the operators that it is written out with."""
QUICK_GELU: Final = "x * sigmoid(1.702 x)"
"""Mark of a claim: the sigmoid is of a multiple of what it is multiplied with, as in CLIP."""
MARKS: Final = (*_CURVES, QUICK_GELU)
"""Marks of the claims of this family: what the activation is written out with."""


def _claim(
    evidence: Evidence, pieces: Pieces, floor_ns: float, memory: tuple[float, str] | None = None, **more: Any
) -> Iterator[Claim]:
    """A claim on all of `pieces` but the time that one kernel in their place takes at least, if any is left. Of a host
    nothing is known of that time: tensors may stay in its caches.
    """
    floor_ns = floor_ns if evidence.is_device else 0.0
    whole = sum(piece.ns for piece in pieces)
    if whole <= floor_ns:
        return
    rate, source = memory or evidence.roofline.bandwidth or (0.0, "")
    ceiling = (
        Number("as one kernel, at least", floor_ns), Number(f"bandwidth ({source})", rate, "gb_per_s"),
    ) if floor_ns else ()  # fmt: skip
    numbers = (_names(pieces), *more.pop("numbers", ()), *ceiling)
    yield Claim(cells=share_of(pieces, 1 - floor_ns / whole), numbers=numbers, **more)


def _names(pieces: Pieces) -> Number:
    by_op: dict[str, float] = defaultdict(float)
    for piece in pieces:
        if not piece.plain_op.endswith("backward0"):
            by_op[piece.plain_op] += piece.ns
    return Number("written out as", ", ".join(sorted(by_op, key=by_op.__getitem__, reverse=True)[:8]), "text")


@lru_cache(10_000)
def _class_of(module: str) -> str:
    """The class of a module from its path: `Norm` of `GPT_0/Block_0/Norm_1`."""
    return _INSTANCE.sub("", module.rpartition("/")[2])


def _attention(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    if any(word in f"{piece.op} {piece.name}".lower() for piece in pieces for word in _ATTENTION_OPS
           if "softmax" not in piece.plain_op):  # fmt: skip
        return
    scores = {
        shape[-2:] for piece in pieces if piece.plain_op in _SOFTMAX
        for shape in piece.shapes if len(shape) >= 3 and min(shape[-2:]) >= _SCORES
    }  # fmt: skip
    own, heads = [], []
    for piece in pieces:
        tensors = [shape for shape in piece.shapes if len(shape) >= 3]
        is_product = is_matmul(piece) and len(tensors) > 1
        has_scores = any(shape[-2:] in scores for shape in tensors)
        if has_scores or (is_product and (tensors[0][-2], tensors[1][-1]) in scores):
            own.append(piece)
            heads += [piece] if is_product else []
    if not scores or not heads:
        return
    roofline = evidence.roofline
    peak = roofline.peaks.get(heads[0].number_kind)
    count = sum((flops(piece) or 0.0) * piece.calls for piece in heads)
    moved = sum(
        roofline.pass_ns(elements(shape) * piece.element_bytes, piece.calls)
        for piece in heads for shape in piece.shapes if shape[-2:] not in scores
    )  # fmt: skip
    yield from _claim(evidence, own, max(count / (peak[0] * 1e3) if peak else 0.0, moved))


def _norm(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    modules: dict[str, list[WorkPiece]] = defaultdict(list)
    for piece in pieces:
        if "norm" in _class_of(piece.module).lower():
            modules[piece.module].append(piece)
    own: list[WorkPiece] = []
    floor = 0.0
    for found in modules.values():
        if len(found) < 4 or any(word in piece.plain_op for piece in found for word in _FUSED_NORM):
            continue
        tensor = max((piece.largest for piece in found), key=elements)
        passes = 2 + 3 * any(piece.phase == "backward" for piece in found)
        size = min(piece.element_bytes for piece in found if piece.largest == tensor)
        own += found
        floor += evidence.roofline.pass_ns(passes * elements(tensor) * size, min(piece.calls for piece in found))
    if own:
        name = _class_of(own[0].module)
        count = Number("modules", float(len({piece.module for piece in own})), "count")
        yield from _claim(evidence, own, floor, place=name, title=f"{name} written out", numbers=[count])


def _activation(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    groups: dict[tuple[str, Shape], list[WorkPiece]] = defaultdict(list)
    for piece in pieces:
        if len(piece.largest) >= 2 and (is_elementwise(piece) or piece.plain_op in _FUSED_CURVES):
            groups[piece.module, piece.largest].append(piece)
    own: list[WorkPiece] = []
    kinds: set[str] = set()
    marks: set[str] = set()
    floor = 0.0
    for (module, shape), found in groups.items():
        names = {piece.plain_op for piece in found}
        curves = names & _CURVES.keys()
        # a gate, as in an LSTM, bends and multiplies, too: tanh and sigmoid together, or sigmoid among other work
        is_gate = len(curves) != 1 or (curves == {"sigmoid"} and (not module or names - {*_CURVES["sigmoid"], "add"}))
        if is_gate or "mul" not in names or names & {*_FUSED_CURVES}:
            continue
        (curve,) = curves
        parts = [piece for piece in found if piece.plain_op in _CURVES[curve]]
        bent = [piece for piece in parts if piece.plain_op == curve]
        passes = 2 + 3 * any(name.endswith("_backward") for name in names)
        size = passes * elements(shape) * bent[0].element_bytes
        floor += evidence.roofline.pass_ns(size, max(piece.calls for piece in bent))
        own += parts
        kinds |= {curve, *names & {"pow"}}
        marks.add(QUICK_GELU if _is_quick_gelu(parts) else curve)
    if own:
        # on a host autograd spends time of its own around the gradient of an operator
        around = tuple(f"{name}backward0" for name in (*kinds, "mul"))
        own += [piece for piece in pieces if piece.kind == "op" and piece.plain_op.rpartition(" ")[2] in around]
        title = f"activation written out with {', '.join(sorted(kinds))}"
        yield from _claim(evidence, own, floor, title=title, marks=tuple(sorted(marks)))


def _is_quick_gelu(parts: Pieces) -> bool:
    """Return whether the forward work of an activation has two multiplications for each sigmoid."""
    calls = {"sigmoid": 0.0, "mul": 0.0}
    for piece in parts:
        if piece.plain_op in calls and piece.phase != "backward":
            calls[piece.plain_op] += piece.calls
    is_forward_known = all(piece.phase or not piece.plain_op.endswith("_backward") for piece in parts)
    return is_forward_known and calls["sigmoid"] > 0 and calls["mul"] == 2 * calls["sigmoid"]


def _vocabulary(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    sizes = {
        side for piece in pieces if is_matmul(piece)
        for shape in (*piece.shapes, *piece.op_shapes) if len(shape) >= 2 for side in shape[-2:]
    }  # fmt: skip
    groups: dict[int, list[WorkPiece]] = defaultdict(list)
    for piece in pieces:
        last = piece.largest[-1] if len(piece.largest) >= 2 else 0
        if last >= _VOCABULARY and last in sizes and is_vector(piece):
            groups[last].append(piece)
    for last, own in groups.items():
        if len({piece.plain_op for piece in own}) < 3:
            continue
        logits = max(own, key=lambda piece: piece.ns).largest
        memory = evidence.roofline.bandwidth
        if memory is None or memory[1] != "spec":
            # tensors of this size move no faster than the fastest of these pieces that reads one and writes one
            rates = [
                2 * elements(piece.largest) * piece.element_bytes * piece.calls / piece.ns
                for piece in own if is_elementwise(piece) and piece.ns and piece.plain_op not in ("cast", "copy")
            ]  # fmt: skip
            memory = (max(rates), "measured") if rates else None
        yield from _claim(
            evidence, own, 4 * 2 * elements(logits) / memory[0] if memory else 0.0, memory, place=str(last),
            title=f"{_word_of(evidence)} over the vocabulary of {last:,} written out",
            numbers=[Number("logits", f"[{','.join(map(str, logits))}]", "text")],
        )  # fmt: skip


def _word_of(evidence: Evidence) -> str:
    """Return what is computed over a vocabulary: without a backward pass no loss that is proven."""
    return "loss" if BACKWARD in evidence.platform.traits else "work"


def _rotary(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    halves = {piece.largest for piece in pieces if piece.plain_op == "neg" and len(piece.largest) >= 3}
    whole = {
        (*shape[:-1], 2 * shape[-1]) for piece in pieces if piece.plain_op in ("cat", "concatd", "concatv2d")
        for shape in piece.shapes if shape in halves
    }  # fmt: skip
    own = [
        piece for piece in pieces
        if (piece.plain_op in ("mul", "add", "cat") and piece.largest in whole | halves)
        or (piece.plain_op == "neg" and piece.largest in halves)
    ]  # fmt: skip
    if whole:
        adds = [piece for piece in own if piece.plain_op == "add"] or own[:1]
        passes = (
            evidence.roofline.pass_ns(2 * elements(piece.largest) * piece.element_bytes, piece.calls) for piece in adds
        )
        yield from _claim(evidence, own, sum(passes))


def _optimizer(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    every = [piece for piece in pieces if piece.phase == "optimizer"]
    own = [piece for piece in every if is_elementwise(piece)]
    is_fused = any(word in f"{piece.name} {piece.op}".lower() for piece in every for word in _FUSED_OPTIMIZERS)
    if sum(piece.calls for piece in own) < _OPTIMIZER or is_fused:
        return
    of_shapes: dict[Shape, list[WorkPiece]] = defaultdict(list)
    for piece in own:
        of_shapes[piece.largest].append(piece)
    floor = 0.0
    for shape, found in of_shapes.items():
        # any optimizer reads parameter and gradient, and writes the parameter, once
        size = _OPTIMIZER_PASSES * elements(shape) * min(piece.element_bytes for piece in found)
        floor += evidence.roofline.pass_ns(size, min(piece.calls for piece in found))
    yield from _claim(evidence, own, floor)


def _sequences(evidence: Evidence, rank: int, pieces: Pieces) -> Iterator[Claim]:
    if not evidence.knows_sequences:
        yield from _chains(pieces)
        return
    of_sequences: dict[str, list[WorkPiece]] = defaultdict(list)
    for piece in pieces:
        if piece.sequence:
            of_sequences[piece.sequence].append(piece)
    left = {piece.at for piece in pieces}
    explained = {(piece.plain_op, piece.largest) for piece in evidence.work[rank] if piece.at not in left}
    of_classes: dict[str, list[str]] = defaultdict(list)
    for sequence, own in of_sequences.items():
        longest = max(own, key=lambda piece: piece.ns)
        others = set(sequence.split(", ")) - {piece.plain_op for piece in own}
        # of a sequence that another rule explains in part, what is left need not be three kernels
        if not any((name, longest.largest) in explained for name in others):
            of_classes[_class_of(longest.module)].append(sequence)
    for name, sequences in of_classes.items():
        saved_ns = {
            sequence: sum(min(piece.sequence_saved_ns, piece.ns) for piece in of_sequences[sequence])
            for sequence in sequences
        }
        if any(saved_ns.values()):
            most = sorted(saved_ns, key=lambda sequence: (-saved_ns[sequence], sequence))[:_LISTED]
            of_class = [piece for sequence in sequences for piece in of_sequences[sequence]]
            yield Claim(
                cells={piece.at: piece.sequence_saved_ns for piece in of_class},
                numbers=tuple(
                    Number(f"one directly behind another: {sequence}", saved_ns[sequence]) for sequence in most
                ),
                place=name,
                title=f"elementwise operators of {name} one by one" if name else "",
            )


def _chains(pieces: Pieces) -> Iterator[Claim]:
    """Yield what elementwise kernels of one shape in one module could save, where their order is not known."""
    groups: dict[tuple[str, Shape, str], list[WorkPiece]] = defaultdict(list)
    for piece in pieces:
        if piece.module and is_elementwise(piece) and len(piece.largest) >= 2:
            groups[piece.module, piece.largest, piece.phase].append(piece)
    classes: dict[str, list[list[WorkPiece]]] = defaultdict(list)
    for own in groups.values():
        if len(own) >= 3:
            classes[_class_of(own[0].module)].append(own)
    for name, chains in classes.items():
        pieces = [piece for own in chains for piece in own]
        longest = {max(own, key=lambda piece: piece.ns).at for own in chains}
        yield Claim(
            cells={piece.at: 0.0 if piece.at in longest else piece.ns for piece in pieces}, numbers=(_names(pieces),),
            place=name, title=f"elementwise operators of {name} one by one",
        )  # fmt: skip


_AFFINITY: Final = "msprof-analyze, affinity APIs"
RULES: Final = (
    AdviceRule(
        id="K4", title="attention written out",
        fires="matmuls and a softmax over scores of 64 x 64 or more, and no fused attention",
        bound="roofline", confidence="likely", takes=True, is_computation=True,
        remedies=(
            Remedy("torch.nn.functional.scaled_dot_product_attention", ("torch", "nvidia", "amd", "cpu"), since=(2, 0)),
            Remedy("torch 2.0 or newer: torch.nn.functional.scaled_dot_product_attention",
                   ("torch", "nvidia", "amd", "cpu"), until=(2, 0)),
            Remedy("the AOTriton or CK backend of scaled_dot_product_attention", ("torch", "amd"), since=(2, 5)),
            Remedy("torch_npu.npu_fusion_attention", ("torch", "ascend")),
            Remedy("paddle.nn.functional.flash_attention", ("paddle",)),
            Remedy("mindspore.ops.flash_attention_score", ("mindspore", "ascend")),
            Remedy("a fused attention of the framework", is_last=True),
        ),
        sources=("TraceLens", _AFFINITY), in_rank=_attention,
    ),
    AdviceRule(
        id="K5", title="normalisation written out",
        fires="a module called *Norm with four elementwise kernels or reductions and no fused one",
        bound="roofline", confidence="likely", takes=True, is_computation=True,
        remedies=(
            Remedy("torch.nn.functional.rms_norm or layer_norm", ("torch", "nvidia", "amd", "cpu"), since=(2, 4)),
            Remedy("torch.compile on the module", ("torch", "nvidia", "amd", "cpu"), since=(2, 0), unless=(COMPILED,)),
            Remedy("torch.nn.functional.layer_norm, or a fused norm such as Apex's",
                   ("torch", "nvidia", "amd", "cpu"), until=(2, 4)),
            Remedy("torch_npu.npu_rms_norm, or torch.nn.functional.layer_norm", ("torch", "ascend")),
            Remedy("mindspore.ops.rms_norm", ("mindspore", "ascend")),
            Remedy("paddle.nn.LayerNorm, or paddle.incubate.nn.functional.fused_rms_norm", ("paddle",)),
            Remedy("the normalisation of the framework that is one kernel", is_last=True),
        ),
        sources=("the RMSNorm of Hugging Face models", _AFFINITY), in_rank=_norm,
    ),
    AdviceRule(
        id="K6", title="activation written out",
        fires="tanh or erf with mul over tensors of one shape, or sigmoid with mul and nothing else in one module, and "
            "no gelu or silu of that shape; tanh and sigmoid together are a gate",
        bound="roofline", confidence="likely", takes=True, is_computation=True,
        remedies=(
            Remedy("torch.nn.functional.gelu(x, approximate='tanh')", ("torch", "nvidia", "amd", "cpu"),
                   since=(1, 12), needs=("tanh",)),
            Remedy("torch.nn.functional.gelu(x)", ("torch", "nvidia", "amd", "cpu"), until=(1, 12), needs=("tanh",)),
            Remedy("torch.nn.functional.gelu(x)", ("torch", "nvidia", "amd", "cpu"), needs=("erf",)),
            Remedy("torch.nn.functional.silu(x)", ("torch", "nvidia", "amd", "cpu"), needs=("sigmoid",)),
            Remedy("torch.compile on the activation: no function of PyTorch is x * sigmoid(1.702 x)",
                   ("torch", "nvidia", "amd", "cpu"), since=(2, 0), needs=(QUICK_GELU,), unless=(COMPILED,)),
            Remedy("torch_npu.npu_gelu(x, approximate='tanh')", ("torch", "ascend"), needs=("tanh",)),
            Remedy("torch_npu.npu_gelu(x)", ("torch", "ascend"), needs=("erf",)),
            Remedy("torch_npu.npu_swiglu where a gate follows, else torch.nn.functional.silu(x)", ("torch", "ascend"),
                   needs=("sigmoid",)),
            Remedy("torch_npu.npu_fast_gelu(x), which is x * sigmoid(1.702 x)", ("torch", "ascend"),
                   needs=(QUICK_GELU,)),
            Remedy("paddle.nn.functional.gelu(x, approximate=True)", ("paddle",), needs=("tanh",)),
            Remedy("paddle.nn.functional.gelu(x)", ("paddle",), needs=("erf",)),
            Remedy("paddle.nn.functional.silu(x)", ("paddle",), needs=("sigmoid",)),
            Remedy("mindspore.ops.gelu(x, approximate='tanh')", ("mindspore",), needs=("tanh",)),
            Remedy("mindspore.ops.gelu(x, approximate='none')", ("mindspore",), needs=("erf",)),
            Remedy("mindspore.ops.silu(x)", ("mindspore",), needs=("sigmoid",)),
            Remedy("the activation of the framework that is one kernel", is_last=True),
        ),
        sources=(_AFFINITY,), in_rank=_activation,
    ),
    AdviceRule(
        id="K7", title="loss over the vocabulary written out",
        fires="three elementwise kernels or reductions whose last dimension is 16,000 or more and a side of a matmul",
        bound="roofline", confidence="likely", takes=True, is_computation=True,
        remedies=(
            Remedy("cross_entropy instead of log_softmax written out; logits in 16 bits", ("torch",),
                   needs=(BACKWARD,)),
            Remedy("a fused or chunked linear cross entropy, such as Liger's", ("torch", "nvidia", "amd"),
                   needs=(BACKWARD,)),
            Remedy("torch_npu.npu_cross_entropy_loss, logits in bf16", ("torch", "ascend"), needs=(BACKWARD,)),
            Remedy("paddle.nn.functional.softmax_with_cross_entropy; logits in 16 bits", ("paddle",),
                   needs=(BACKWARD,)),
            Remedy("the cross entropy of the framework that is one kernel, or chunks of the logits; logits in 16 bits",
                   needs=(BACKWARD,), is_last=True),
            Remedy("logits of the last position alone, in 16 bits; one kernel for all that is done to them",
                   unless=(BACKWARD,), is_last=True),
        ),
        sources=("Liger kernel: fused linear cross entropy",), in_rank=_vocabulary,
    ),
    AdviceRule(
        id="K8", title="rotary embedding written out",
        fires="neg of half a tensor, cat with the other half, and mul and add of the whole",
        bound="roofline", confidence="likely", takes=True, is_computation=True,
        remedies=(
            Remedy("a fused rotary embedding, such as Liger's or that of Transformer Engine",
                   ("torch", "nvidia", "amd")),
            Remedy("torch_npu.npu_rotary_mul", ("torch", "ascend")),
            Remedy("torch.compile on the attention module", ("torch", "nvidia", "amd", "cpu"), since=(2, 0),
                   unless=(COMPILED,)),
            Remedy("paddle.incubate.nn.functional.fused_rotary_position_embedding", ("paddle",)),
            Remedy("a fused rotary embedding", is_last=True),
        ),
        sources=(_AFFINITY,), in_rank=_rotary,
    ),
    AdviceRule(
        id="K9", title="the optimizer works parameter by parameter",
        fires="50 elementwise kernels or more of the optimizer in a step, and no fused or foreach kernel; on devices "
            "alone",
        bound="roofline", confidence="certain", takes=True, on_devices=True, is_computation=True,
        remedies=(
            Remedy("fused=True, else foreach=True, in the optimizer", ("torch", "nvidia", "amd"), since=(2, 0)),
            Remedy("an optimizer of torch.optim._multi_tensor, or of Apex", ("torch", "nvidia", "amd"), until=(2, 0)),
            Remedy("torch_npu.optim.NpuFusedAdamW, NpuFusedSGD; they refuse zero_grad(set_to_none=True)",
                   ("torch", "ascend")),
            Remedy("use_multi_tensor=True", ("paddle",)),
            Remedy("one kernel for all parameters: a fused optimizer", is_last=True),
        ),
        sources=("PyTorch profiler, pattern OptimizerSingleTensor", _AFFINITY), in_rank=_optimizer,
    ),
    AdviceRule(
        id="K10", title="elementwise operators one by one",
        fires="three elementwise kernels or more of one shape, one directly behind another on a stream, none of which "
            "another rule explains; where their order is not known, three of one shape in one module",
        bound="sequence", confidence="likely", takes=True, is_computation=True,
        remedies=(
            Remedy("torch.compile on the module", ("torch", "nvidia", "amd", "cpu"), since=(2, 0), unless=(COMPILED,)),
            Remedy("a Triton kernel for what torch.compile leaves out", ("torch", "nvidia", "amd"), since=(2, 0),
                   needs=(COMPILED,)),
            Remedy("torch.jit.script on the module", ("torch", "nvidia", "amd", "cpu"), until=(2, 0)),
            Remedy("CINN: FLAGS_use_cinn=1", ("paddle",)),
            Remedy("the fused API of torch_npu for such a sequence; graph mode with torchair", ("torch", "ascend")),
            Remedy("graph mode, with enable_graph_kernel=True", ("mindspore", "ascend")),
            Remedy("one kernel for the chain", is_last=True),
        ),
        sources=("torch: TorchInductor",), in_rank=_sequences,
    ),
)  # fmt: skip
