"""The one table that says what kind of work a kernel does: by the launching op, then by its type, then by its name.

Rules are tried in order; the first that matches decides; patterns are searched in lower case. A direction (forward,
backward) comes from the text that decided, or from the phase where that text is the kernel's name.
"""

from __future__ import annotations

import re
from typing import Final

from tracker.timeline.names import canonical_name

CATEGORIES: Final = (
    "matmul",
    "convolution_forward",
    "convolution_backward",
    "flash_attention_forward",
    "flash_attention_backward",
    "page_attention",
    "vector",
    "vector_trans",
    "tensor_move",
    "mc2",
    "ai_cpu",
    "other",
    "communication",
    "copy",
    "memset",
)
"""Every category a row of `kernel` can have; `other` is compute that no rule could name.

NPUs alone have `vector_trans` (changes of format, type or layout), `mc2` (a matmul fused with its collective) and
`ai_cpu` (kernels on the control processor that no op names).
"""

_MATMUL, _CONVOLUTION, _FLASH, _PAGE, _VECTOR, _TRANS, _MOVE, _MC2, _AI_CPU, _OTHER = (
    "matmul",
    "convolution",
    "flash_attention",
    "page_attention",
    "vector",
    "vector_trans",
    "tensor_move",
    "mc2",
    "ai_cpu",
    "other",
)
_DIRECTED: Final = frozenset((_CONVOLUTION, _FLASH))
# stridedB: cudnn's kernels for the gradients of a convolution; wrw: MIOpen's word for the gradient of the weights;
# backprop: CANN's word for both
_BACKWARD: Final = re.compile(r"backward|backprop|bwd|(?<!wino)grad|wrw|stridedb")

_OP_RULES: Final = tuple(
    (re.compile(pattern), category)
    for pattern, category in (
        (
            r"mm_(?:all_?reduce|reduce_?scatter)|all_?gather_(?:base_)?mm|alltoall\w{0,99}mm(?:_|$)"
            r"|mm_\w{0,99}alltoall",
            _MC2,
        ),
        (r"paged?_?attention|paged_attn", _PAGE),
        (
            r"flash_?attention|flash_?attn|flash2attn|fusion_attention|efficient_attention|fused_attention"
            r"|fused_infer_attention|cudnn_attention|xformers|ring_attention|flex_attention|attn_fwd|attn_bwd",
            _FLASH,
        ),
        (r"convolution|conv[123]d|conv_transpose|conv_depthwise|conv_tbc|convtranspose|slow_conv", _CONVOLUTION),
        (
            r"(?:^|::|_)(?:addmm|addbmm|baddbmm|bmm|mm|matmul|linear|einsum|mv|addmv|dot|vdot|tensordot)(?:_|$|\.)",
            _MATMUL,
        ),
        (r"(?:mm|matmul|linear)backward\d*$|(?<!fb)gemm|(?:^|::|_)bmmv2", _MATMUL),
    )
)
"""Op names. An op that matches none hands the question to the op around it, unless it is an operator of its own."""

_OWN_WORK: Final = re.compile(
    r"^(?:aten|prims|torchvision|fbgemm|quantized|npu|atb|_c10d_functional)::|^torch::distributed::"
)
"""An operator that no rule names does work of its own kind: the ops around it say nothing about its kernels."""

_KERNEL_RULES: Final = tuple(
    (re.compile(pattern), category)
    for pattern, category in (
        (r"^triton_(?:poi|red|per|for|foreach|unk)_", _VECTOR),
        (r"^triton_(?:tem|spl)_.*(?:attention|flex)", _FLASH),
        (r"^triton_(?:tem|spl)_.*conv", _CONVOLUTION),
        (r"^triton_(?:tem|spl)_.*(?:mm|linear|matmul)", _MATMUL),
        (r"paged?_?attention|paged_attn", _PAGE),
        (
            r"flash|fmha|fusion_?attention|attn_(?:fwd|bwd|forward|backward)|attention_(?:fwd|bwd|kernel)"
            r"|fused_?inferattention|sdpa",
            _FLASH,
        ),
        # what cudnn and MIOpen have beside convolutions and matrix products
        (r"cudnn::(?:bn_|softmax|pooling|reduce|ops::)|miopen.{0,99}(?:batch_?norm|bn|softmax|pooling)", _VECTOR),
        (
            r"conv[123]d|convolv|convolution|_conv_|^conv|scudnn|hcudnn|(?<!\d)dgrad|wgrad|fprop|winograd|igemm_(?:fwd|bwd|wrw)"
            r"|im2d2col|im2col|col2im|nchwtonhwc|nhwctonchw|miopenconv|miopensp3|naive_conv|cask_cudnn"
            r"|cudnn::(?:cnn|detail)::|subtensorop|batched_transpose_\d+x\d+_|bwd_weight",
            _CONVOLUTION,
        ),
        (
            r"(?<!fb)gemm|gemv|^cijk_|cutlass|nvjet|cublas|xmma|splitk_?reduce|matmul|(?:^|_)b?mm(?:_|$)|wmma|^ck::|ck_tile"
            r"|_zn2ck|(?:^|::)dot_kernel|reduce_1block_kernel|epilogue::impl|rocblas|hipblas",
            _MATMUL,
        ),
        (r"tensormove|tensor_move|sdma|memcpy", _MOVE),
        (
            r"elementwise|reduce|reduction|norm|softmax|log_?sum|cub::|thrust::|rocprim|hipcub|embedding|multi_tensor"
            r"|triton_|scatter|gather|dropout|transpose|permute|upsample|batch_norm|pool|radixsort|linearize_index"
            r"|gammabeta|rowwisemoments",
            _VECTOR,
        ),
    )
)
"""Canonical kernel names: NVIDIA (cutlass, nvjet, cudnn, xmma), AMD (Cijk_, ck, MIOpen), Triton and Ascend."""

_TYPE_RULES: Final = tuple(
    (re.compile(pattern), category)
    for pattern, category in (
        (r"allgather\w{0,99}matmul|matmul\w{0,99}(?:reducescatter|allreduce|alltoall)|alltoall\w{0,99}matmul", _MC2),
        (r"pagedattention", _PAGE),
        (r"flashattention|inferattention|selfattention|unpad\w{0,99}attention", _FLASH),
        (r"^tensormove|sdma", _MOVE),
        (r"conv[123]d|convolution|deconv|depthwiseconv|^conv(?!ert)", _CONVOLUTION),
        (r"matmul|gemm", _MATMUL),
        (r"transdata|transpose|^cast", _TRANS),
        (r"topk", _VECTOR),
    )
)
"""Kernel types of CANN: `MatMulV2`, `Conv2DBackpropFilter`, `TransData`; one that matches none is judged by words."""

_VECTOR_CORES: Final = frozenset(("AI_VECTOR_CORE", "MIX_AIV"))

_VECTOR_WORDS: Final = frozenset(
    [
        "abs",
        "adam",
        "adamw",
        "add",
        "addcdiv",
        "addcmul",
        "arange",
        "argmax",
        "argmin",
        "axpy",
        "bernoulli",
        "broadcast",
        "cast",
        "cat",
        "clamp",
        "compare",
        "concat",
        "copy",
        "cos",
        "criterion",
        "cross",
        "cumsum",
        "dequantize",
        "distribution",
        "div",
        "entropy",
        "equal",
        "erf",
        "exp",
        "expand",
        "fill",
        "flip",
        "foreach",
        "gather",
        "gelu",
        "greater",
        "gt",
        "histogram",
        "index",
        "interp",
        "jagged",
        "kthvalue",
        "lamb",
        "lengths",
        "lerp",
        "less",
        "linspace",
        "log",
        "logical",
        "loss",
        "lt",
        "mask",
        "masked",
        "max",
        "mean",
        "min",
        "mul",
        "neg",
        "nll",
        "nonzero",
        "offsets",
        "ones",
        "optimizer",
        "pad",
        "permute",
        "philox",
        "pow",
        "quantize",
        "rand",
        "random",
        "range",
        "reciprocal",
        "relu",
        "repeat",
        "rng",
        "roll",
        "rope",
        "rotary",
        "rsqrt",
        "scan",
        "select",
        "sgd",
        "sigmoid",
        "silu",
        "sin",
        "slice",
        "sort",
        "split",
        "sqrt",
        "square",
        "stack",
        "std",
        "strided",
        "sub",
        "sum",
        "swiglu",
        "swish",
        "tanh",
        "tile",
        "topk",
        "tril",
        "triu",
        "unique",
        "unrolled",
        "var",
        "vectorized",
        "where",
        "zero",
        "zeros",
    ]
)
"""Words of a kernel's name that make it vector work; whole words, so that `add` does not find `address`."""

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def category_of_op(name: str, phase: str = "") -> str | None:
    """What the op's name says about the kernels it launches.

    A category; or "" where the op does work of its own that its name does not decide; or None where the op around it
    may say more (annotations, autograd nodes, wrappers).

    >>> category_of_op("aten::addmm"), category_of_op("aten::convolution_backward"), category_of_op("aten::add_")
    ('matmul', 'convolution_backward', '')
    """
    text = name.lower()
    for pattern, category in _OP_RULES:
        if pattern.search(text):
            return _directed(category, text, phase if "autograd" in text else "")
    return "" if _OWN_WORK.search(text) else None


def category_of_type(kernel_type: str, core_type: str = "", phase: str = "") -> str | None:
    """What type and core type of an NPU kernel say, or None where they leave it to the name.

    >>> category_of_type("Conv2DBackpropInput"), category_of_type("Cast"), category_of_type("Cast", "AI_CPU")
    ('convolution_backward', 'vector_trans', 'ai_cpu')
    """
    if core_type == "AI_CPU":
        return _AI_CPU
    text = kernel_type.lower()
    for pattern, category in _TYPE_RULES:
        if pattern.search(text):
            return _directed(category, text, phase)
    if text == "memset" or core_type in _VECTOR_CORES or _has_vector_word(kernel_type):
        return _VECTOR
    return None


def type_of_name(name: str) -> str:
    """The type of an NPU kernel that states none, from its canonical name: CANN writes it behind the last `_`.

    >>> type_of_name("aclnnMm_MatMulCommon_MatMulV2"), type_of_name("Conv2D"), type_of_name("atomic_memset")
    ('MatMulV2', 'Conv2D', 'memset')
    """
    return name.rpartition("_")[2]


def category_of_kernel(name: str, phase: str = "", *, launched_by_operator: bool = False) -> str:
    """What the kernel's own name says; an unknown kernel of a known operator is vector work, any other is `other`.

    >>> [category_of_kernel(name) for name in ("ampere_sgemm_128x64_nn", "triton_poi_fused_add_0", "f")]
    ['matmul', 'vector', 'other']
    """
    plain = canonical_name(name)
    text = plain.lower()
    for pattern, category in _KERNEL_RULES:
        if pattern.search(text):
            return _directed(category, text, phase)
    return _VECTOR if launched_by_operator or _has_vector_word(plain) else _OTHER


def _has_vector_word(name: str) -> bool:
    return any(word.lower() in _VECTOR_WORDS for word in _WORD.findall(name))


def _directed(category: str, text: str, phase: str) -> str:
    if category not in _DIRECTED:
        return category
    backward = phase == "backward" or _BACKWARD.search(text) is not None
    return f"{category}_{'backward' if backward else 'forward'}"
