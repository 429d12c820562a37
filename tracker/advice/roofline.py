"""How near each operator comes to what its device can do: FLOPs, bytes, the floor of its time, HFU.

FLOPs of matmuls, convolutions and attention are counted as torch.utils.flop_counter and DeepSpeed count them: a
multiplication and an addition are two; causal attention counts whole. A floor is max(FLOPs / peak, bytes / bandwidth).
Where the device is not in the table, the fastest rate of the run itself is the ceiling (`measured`): no true bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from operator import add
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tracker.profile.elementwise import ELEMENTWISE
from tracker.profile.shapes import Shape, broadcast, bytes_of, elements
from tracker.results.advice import EfficiencyRow

if TYPE_CHECKING:
    from tracker.advice.devices import Peaks
    from tracker.advice.pieces import WorkPiece

_MATMULS: Final = ("mm", "addmm", "bmm", "baddbmm", "_scaled_mm", "_int_mm")
_ADDING: Final = ("addmm", "baddbmm")
_NPU_MATMULS: Final = ("matmul", "matmulv2", "matmulv3", "batchmatmul", "batchmatmulv2", "batchmatmulv3")
_ATTENTION: Final = (
    "_flash_attention_forward", "_efficient_attention_forward", "_cudnn_attention_forward", "flashattentionscore",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu",
)  # fmt: skip
_ATTENTION_BACKWARD: Final = (
    "_flash_attention_backward", "_efficient_attention_backward", "_cudnn_attention_backward",
    "flashattentionscoregrad", "_scaled_dot_product_flash_attention_backward",
    "_scaled_dot_product_efficient_attention_backward", "_scaled_dot_product_cudnn_attention_backward",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
)  # fmt: skip
_GRADIENTS: Final = ("cudnn_convolution_backward_input", "mkldnn_convolution_backward_input")
_CONVOLUTIONS: Final = (
    "convolution_overrideable", "_convolution", "convolution_backward", "mkldnn_convolution",
    "miopen_convolution", "miopen_depthwise_convolution", "miopen_convolution_transpose", "_conv_depthwise2d",
    "_slow_conv2d_forward", "cudnn_convolution", "cudnn_convolution_transpose",
)  # fmt: skip
WITH_FLOPS: Final = {
    *_MATMULS, *_NPU_MATMULS, *_ATTENTION, *_ATTENTION_BACKWARD, *_GRADIENTS, *_CONVOLUTIONS
}  # fmt: skip
_BACKWARD: Final = 2.5
"""Attention computes five matmuls backward and two forward."""
_REDUCTIONS: Final = frozenset((
    "sum", "mean", "amax", "amin", "max", "min", "norm", "reducesum", "reducemean", "reducemax", "reducemaxd",
    "reducesumd", "argmax", "argmaxv2", "argmin", "argmaxd", "argmaxwithvalue", "logsumexp", "var", "std", "var_mean",
    "_softmax", "softmax", "_log_softmax", "log_softmax", "_softmax_backward_data", "_log_softmax_backward_data",
    "softmaxv2", "logsoftmaxv2", "softmaxgrad", "logsoftmaxgrad", "nll_loss_forward", "nll_loss_backward", "all", "any",
))  # fmt: skip
_ROWWISE: Final = frozenset((
    "_softmax", "softmax", "_log_softmax", "log_softmax", "_softmax_backward_data", "_log_softmax_backward_data",
    "softmaxv2", "logsoftmaxv2", "softmaxgrad", "logsoftmaxgrad",
))  # fmt: skip
"""Reductions whose result is as large as their largest input."""
_NORMS: Final = frozenset((
    "native_layer_norm", "native_layer_norm_backward", "native_group_norm", "native_group_norm_backward",
    "native_batch_norm", "native_batch_norm_backward", "cudnn_batch_norm", "cudnn_batch_norm_backward",
    "miopen_batch_norm", "miopen_batch_norm_backward", "batch_norm_backward", "_fused_rms_norm",
    "_fused_rms_norm_backward", "layernorm", "layernormv3", "layernormv4", "layernormgrad", "layernormgradv3",
    "rmsnorm", "rmsnormgrad", "addrmsnorm", "addlayernorm", "groupnorm",
))  # fmt: skip
"""Fused normalisations: they read their inputs and write a result of the largest."""
_BLOCKS: Final = "FRACTAL_NZ"
_COUNTED: Final = ("matmul", "convolution", "flash_attention")
_MOST: Final = 0.95
_IMPOSSIBLE: Final = 1.1
"""Efficiency above which a ceiling or the shapes must be wrong: TraceLens leaves such rows out, too."""
_MODEL: Final = ("flops_per_step", "parameters", "tokens", "layers", "hidden_size", "sequence_length")
"""Keys of a configuration that say how much a model computes in a step of the whole job."""
_KINDS: Final = ("half", "byte", "tf32", "fp32")
_LONG_NS: Final = 20_000
_MUCH_BYTES: Final = 1 << 20
"""A call that is shorter, or moves less, says nothing of the memory's bandwidth."""


def is_elementwise(piece: WorkPiece) -> bool:
    """Whether a piece reads its inputs once and writes a result of their shape."""
    return piece.plain_op in ELEMENTWISE


def is_vector(piece: WorkPiece) -> bool:
    """Whether a piece is elementwise work or a reduction."""
    return piece.plain_op in ELEMENTWISE or piece.plain_op in _REDUCTIONS


def is_matmul(piece: WorkPiece) -> bool:
    """Whether a piece multiplies matrices."""
    return piece.plain_op in _MATMULS or piece.plain_op in _NPU_MATMULS or piece.kind == "matmul"


def factors(piece: WorkPiece) -> tuple[Shape, ...]:
    """The two tensors that a matmul multiplies; () where they are not known. `addmm` and `baddbmm` have what they add
    before them; `out=` is behind them.
    """
    tensors = [shape for shape in piece.shapes if shape]
    found = tuple(tensors[1:3] if piece.plain_op in _ADDING else tensors[:2])
    is_flat = piece.plain_op not in ("mm", "addmm") or all(len(shape) == 2 for shape in found)
    return found if len(found) == 2 and len(found[0]) == len(found[1]) >= 2 and is_flat else ()


def flops(piece: WorkPiece) -> float | None:
    """Floating point operations of one call; None for what is none of the counted kinds, or of shapes not known."""
    name = piece.plain_op
    if name not in WITH_FLOPS:
        return None
    if piece.stated_flops is not None:
        return piece.stated_flops
    tensors = [shape for shape in piece.shapes if shape]
    if name in _MATMULS:
        pair = factors(piece)
        return 2.0 * prod(pair[0]) * pair[1][-1] if pair else None
    if name in _NPU_MATMULS:
        return _npu_matmul(piece, tensors)
    if name in (*_ATTENTION, *_ATTENTION_BACKWARD):
        count = _attention(name, tensors)
        return count and count * (_BACKWARD if name in _ATTENTION_BACKWARD else 1.0)
    if name == "convolution_backward" and len(tensors) >= 3:  # the gradients of input and weight
        return 2 * _convolution(tensors[0], tensors[1], tensors[2])
    if name in _GRADIENTS and len(tensors) >= 2:
        return _convolution(tensors[0], tensors[0], tensors[1])
    return None


def _npu_matmul(piece: WorkPiece, tensors: Sequence[Shape]) -> float | None:
    """Of sides in blocks those of the blocks together, which are filled up to multiples of 16. Which sides are
    transposed is not stated, so the size that both share is the inner one, where only one is shared.
    """
    formats = piece.formats.replace(",", ";").split(";")
    pair = [_from_blocks(shape, formats[at] if at < len(formats) else "") for at, shape in enumerate(tensors[:2])]
    if len(pair) < 2 or len(pair[0]) != len(pair[1]):
        return None
    left, right = pair
    if len(left) > 2 and left[:-2] != right[:-2]:
        return None
    inner = {one for one in left[-2:] for other in right[-2:] if one == other}
    return 2.0 * prod(left) * prod(right[-2:]) / inner.pop() if len(inner) == 1 else None


def _from_blocks(shape: Shape, format: str) -> Shape:
    """The rows and columns of a matrix in the format of an NPU: [n1, m1, m0, n0] of m1 x m0 rows, n1 x n0 columns.

    >>> _from_blocks((64, 256, 16, 16), "FRACTAL_NZ"), _from_blocks((3, 5), "ND")
    ((4096, 1024), (3, 5))
    """
    if format.strip().upper() != _BLOCKS or len(shape) < 4:
        return shape
    *batch, columns, rows, height, width = shape
    return (*batch, rows * height, columns * width)


def _attention(name: str, tensors: Sequence[Shape]) -> float | None:
    """4 x batch x heads x queries x keys x size of a head. An NPU states the layout of its tensors nowhere: of two
    dimensions that may be the sequence the longer one is.
    """
    query, key = tensors[:2] if len(tensors) >= 2 else ((), ())
    if "backward" in name and len(tensors) >= 3:  # the gradient stands first
        query, key = tensors[1], tensors[2]
    if len(query) == len(key) == 3:  # heads x size of a head stand last
        return 4.0 * prod(query) * max(key[:2])
    if len(query) != 4 or len(key) != 4:
        return None
    if name.startswith("flashattentionscore"):
        return 4.0 * prod(query) * max(key[1:3])
    # batch, heads, queries, size of a head; or batch, queries, heads, size of a head
    return 4.0 * prod(query) * key[2 if "scaled_dot" in name or "cudnn" in name else 1]


def _convolution(gradient: Shape, image: Shape, weight: Shape) -> float:
    """One gradient of a convolution, by the places of its result; those of the image, which is smaller, where the
    convolution is a transposed one.
    """
    places = min(prod(gradient[2:]), prod(image[2:]))
    return 2.0 * gradient[0] * places * prod(weight)


def bytes_moved(piece: WorkPiece) -> float | None:
    """Bytes of the inputs and of the result of one call, each once; None where shapes or the kind say too little."""
    tensors = [shape for shape in piece.shapes if shape]
    if not tensors:
        return None
    size, name = piece.element_bytes, piece.plain_op
    inputs = _input_bytes(piece)
    if name in _MATMULS:
        pair = factors(piece)
        read = tensors[: 3 if name in _ADDING else 2]
        return float(size * sum(map(elements, (*read, (*pair[0][:-1], pair[1][-1]))))) if pair else None
    if name in _NPU_MATMULS:
        return inputs
    if name in (*_ATTENTION, *_ATTENTION_BACKWARD):
        heads = sum(map(elements, tensors[:3]))
        return float(size * (heads + elements(tensors[0])))
    if name in _CONVOLUTIONS and piece.stated_flops:
        return inputs + size * _result_of_convolution(piece, tensors)
    if name in ("copy", "cast", "clone", "tensormove"):
        # a copy into a given tensor states both, each with its type
        return inputs if len(tensors) > 1 else 2.0 * inputs
    if name in ("zero", "fill"):
        return inputs
    if name in ELEMENTWISE:
        return inputs + size * elements(broadcast(tensors))
    if name in _ROWWISE or name in _NORMS:
        return inputs + size * max(map(elements, tensors))
    return inputs if name in _REDUCTIONS else None


def _input_bytes(piece: WorkPiece) -> float:
    """Bytes of all inputs, each by its own type, by that of the first tensor where a type is not known."""
    moved = 0.0
    for at, shape in enumerate(piece.shapes):
        kind = piece.types[at] if at < len(piece.types) else ""
        moved += elements(shape) * (bytes_of(kind) or piece.element_bytes)
    return moved


def _result_of_convolution(piece: WorkPiece, tensors: Sequence[Shape]) -> float:
    """Elements that a convolution writes: of a gradient as many as image and weight have, else by its FLOPs."""
    if piece.plain_op == "convolution_backward":
        return float(sum(map(elements, tensors[1:3])))
    if "transpose" in piece.plain_op:
        return 0.0
    return (piece.stated_flops or 0.0) / (2 * prod(tensors[1][1:]))


class MeasuredWork(Struct, frozen=True, kw_only=True):
    """What a roofline is made of.

    `pieces`: the work of the studied ranks; `launching`: the operators of WITH_FLOPS that launched it, with its time;
    of a host timeline the same. `device`: what the table says of it, None for nothing. `facts`: of the run, by name.
    """

    pieces: Sequence[WorkPiece]
    launching: Sequence[WorkPiece]
    device: Peaks | None
    is_device: bool
    facts: Mapping[str, str]
    step_ns: float
    studied_ranks: int
    ranks: int


class Roofline:
    """What the device of a run can do, and how near its operators come to it."""

    def __init__(self, work: MeasuredWork) -> None:
        self._work = work

    @cached_property
    def bandwidth(self) -> tuple[float, str] | None:
        """GB/s of the memory: of the table of devices (`spec`), or the fastest of the run (`measured`)."""
        device = self._work.device
        if device is not None and device.memory_gb_per_s:
            return device.memory_gb_per_s, "spec"
        rates = [
            moved * piece.calls / piece.ns for piece in self._work.pieces
            if piece.ns >= _LONG_NS * piece.calls > 0 and is_elementwise(piece)
            and (moved := bytes_moved(piece)) and moved >= _MUCH_BYTES
        ]  # fmt: skip
        return (max(rates), "measured") if rates else None

    @cached_property
    def _counts(self) -> list[tuple[WorkPiece, float]]:
        # FLOPs are those of a call of an operator, which may launch several kernels
        return [(piece, count) for piece in self._work.launching if piece.ns and (count := flops(piece))]

    @cached_property
    def peaks(self) -> dict[str, tuple[float, str]]:
        """TFLOP/s of each kind of number: of the table (`spec`), else the fastest that any row reached (`measured`)."""
        found: dict[str, tuple[float, str]] = {}
        for piece, count in self._counts:
            kind, rate = piece.number_kind, count * piece.calls / piece.ns / 1e3
            found[kind] = max(found.get(kind, (0.0, "measured")), (rate, "measured"))
        device = self._work.device
        stated = {kind: device.tflops(kind) for kind in _KINDS} if device is not None else {}
        return found | {kind: (rate, "spec") for kind, rate in stated.items() if rate}

    def floor_ns(self, piece: WorkPiece) -> float:
        """The time that all calls of a piece take to move their bytes at least; 0.0 where it is not known."""
        return self.pass_ns(bytes_moved(piece) or 0.0, piece.calls)

    def pass_ns(self, moved: float, calls: float = 1.0) -> float:
        """The time to move so many bytes so often; 0.0 where the bandwidth is not known."""
        return calls * moved / self.bandwidth[0] if self.bandwidth else 0.0

    def above_floor(self, pieces: Sequence[WorkPiece]) -> dict[int, float]:
        """Number of each piece -> its time above what moving its bytes takes."""
        return {piece.at: piece.ns - self.floor_ns(piece) for piece in pieces}

    @cached_property
    def _moving(self) -> list[WorkPiece]:
        # elementwise work, reductions and normalisations move bytes: their FLOPs hold nothing up
        work = self._work
        # a copy may go over the bus, which is not the memory of the device
        pieces = [piece for piece in work.pieces if piece.ns and piece.kind != "copy"]
        return [piece for piece in pieces
                if work.is_device and (is_vector(piece) or piece.plain_op in _NORMS)
                and (bytes_moved(piece) or 0.0) >= _MUCH_BYTES]  # fmt: skip

    @cached_property
    def rows(self) -> list[EfficiencyRow]:
        """A row per operator, shapes and kind of number with FLOPs, and of a device per elementwise operator, reduction
        and normalisation that moves 1 MiB or more a call, of the studied ranks, per step, the longest first.
        """
        sums: dict[tuple[int, str, str, str], list[float]] = {}
        for piece, count in (*self._counts, *((piece, 0.0) for piece in self._moving)):
            own = sums.setdefault((piece.rank, piece.plain_op, piece.text, piece.number_kind), [0.0, 0.0, 0.0, 0.0])
            new = (piece.calls, piece.ns, count * piece.calls, (bytes_moved(piece) or 0.0) * piece.calls)
            own[:] = map(add, own, new)
        found = [self._row(key, *own) for key, own in sums.items()]
        found.sort(key=lambda row: (row.rank, -row.total_ns, row.name, row.input_shapes))
        return found

    def _row(
        self, key: tuple[int, str, str, str], calls: float, ns: float, count: float, moved: float
    ) -> EfficiencyRow:
        rank, name, text, kind = key
        memory = self.pass_ns(moved)
        peak, source = self.peaks.get(kind, (None, None))
        compute = count / (peak * 1e3) if peak else None
        if not count:
            compute, source = 0.0, self.bandwidth[1] if self.bandwidth else None
        floor = None if compute is None else max(compute, memory)
        bound = None
        if compute is not None:
            bound = "memory" if memory > compute else "compute"
        is_possible = floor is not None and 0 < floor <= _IMPOSSIBLE * ns
        return EfficiencyRow(
            rank=rank,
            name=name,
            input_shapes=text,
            number_kind=kind or None,
            calls=calls,
            total_ns=ns,
            flops=count or None,
            bytes=moved or None,
            tflops_per_s=count / ns / 1e3 if count else None,
            gb_per_s=moved / ns if moved else None,
            floor_ns=floor,
            bound=bound,
            efficiency=floor / ns if floor is not None and is_possible else None,
            ceiling=source,
        )

    @cached_property
    def use(self) -> dict[str, float | str | bool | None]:
        """HFU: FLOPs of the studied ranks by what their device could do in a step, with the peak of the kind of number
        that most of them ran in; None for what is not known. `is_partial`: FLOPs of much of the work are not known, for
        profiles do not state the result of a convolution.
        """
        work = self._work
        of_kind: dict[str, float] = {}
        rows = [row for row in self.rows if row.flops]
        for row in rows:
            of_kind[row.number_kind or ""] = of_kind.get(row.number_kind or "", 0.0) + (row.flops or 0.0)
        total, kind = sum(of_kind.values()), max(of_kind, key=of_kind.__getitem__, default="")
        peak, source = self.peaks.get(kind, (None, "")) if work.device is not None else (None, "")
        peak = peak if source == "spec" else None
        per_second = work.step_ns * 1e3
        rate = total / per_second / work.studied_ranks if total and per_second else None
        model, devices = self._of_model(), _number(work.facts.get("world_size")) or work.ranks
        known = sum(row.total_ns for row in rows)
        every = sum(piece.ns for piece in work.pieces if piece.kind.startswith(_COUNTED) or is_matmul(piece))
        return {
            "flops": total or None, "tflops_per_s": rate, "number_kind": kind or None, "peak_tflops": peak,
            "peak_source": work.device.source if peak and work.device is not None else None,
            "hfu": rate / peak if rate and peak else None,
            "mfu": model / (per_second * devices * peak) if model and peak and per_second else None,
            "is_partial": known < _MOST * every,
        }  # fmt: skip

    def _of_model(self) -> float | None:
        """FLOPs that the model needs for a step of the whole job, as the configuration states; FLOPs of recomputed
        activations do not count (PaLM, appendix B).
        """
        stated = {key: value for key in _MODEL if (value := _number(self._work.facts.get(key))) is not None}
        parameters, tokens = stated.get("parameters"), stated.get("tokens")
        if "flops_per_step" in stated or parameters is None or tokens is None:
            return stated.get("flops_per_step")
        sizes = [stated[key] for key in ("layers", "hidden_size", "sequence_length") if key in stated]
        attention = 12 * prod(sizes) if len(sizes) == 3 else 0.0
        return (6 * parameters + attention) * tokens


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
