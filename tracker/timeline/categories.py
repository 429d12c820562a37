"""The one table that says what kind of work a kernel does: by the op that launched it, then by its own name.

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
    "tensor_move",
    "other",
    "communication",
    "copy",
    "memset",
)
"""Every category a row of `kernel` can have; `other` is compute that no rule could name."""

_MATMUL, _CONVOLUTION, _FLASH, _PAGE, _VECTOR, _MOVE, _OTHER = (
    "matmul",
    "convolution",
    "flash_attention",
    "page_attention",
    "vector",
    "tensor_move",
    "other",
)
_DIRECTED: Final = frozenset((_CONVOLUTION, _FLASH))
# stridedB: cudnn's kernels for the gradients of a convolution; wrw: MIOpen's word for the gradient of the weights
_BACKWARD: Final = re.compile(r"backward|bwd|(?<!wino)grad|wrw|stridedb")

_OP_RULES: Final = tuple(
    (re.compile(pattern), category)
    for pattern, category in (
        (r"paged?_?attention|paged_attn", _PAGE),
        (
            r"flash_?attention|flash_?attn|flash2attn|fusion_attention|efficient_attention|fused_attention"
            r"|cudnn_attention|xformers|ring_attention|flex_attention|attn_fwd|attn_bwd",
            _FLASH,
        ),
        (r"convolution|conv[123]d|conv_transpose|conv_depthwise|conv_tbc|convtranspose|slow_conv", _CONVOLUTION),
        (
            r"(?:^|::|_)(?:addmm|addbmm|baddbmm|bmm|mm|matmul|linear|einsum|mv|addmv|dot|vdot|tensordot)(?:_|$|\.)",
            _MATMUL,
        ),
        (r"(?:mm|matmul|linear)backward\d*$|(?<!fb)gemm", _MATMUL),
    )
)
"""Op names. An op that matches none hands the question to the op around it, unless it is an operator of its own."""

_OWN_WORK: Final = re.compile(r"^(?:aten|prims|torchvision|fbgemm|quantized|_c10d_functional)::|^torch::distributed::")
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
        (r"cudnn::(?:bn_|softmax|pooling|reduce|ops::)|miopen.*(?:batch_?norm|bn|softmax|pooling)", _VECTOR),
        (
            r"conv[123]d|convolv|convolution|_conv_|^conv|scudnn|hcudnn|dgrad|wgrad|fprop|winograd|igemm_(?:fwd|bwd|wrw)"
            r"|im2d2col|im2col|col2im|nchwtonhwc|nhwctonchw|miopenconv|miopensp3|naive_conv|cask_cudnn"
            r"|cudnn::(?:cnn|detail)::|subtensorop|batched_transpose_\d+x\d+_|bwd_weight",
            _CONVOLUTION,
        ),
        (
            r"(?<!fb)gemm|gemv|^cijk_|cutlass|nvjet|cublas|xmma|splitk_?reduce|matmul|(?:^|_)b?mm(?:_|$)|wmma|^ck::|ck_tile"
            r"|_zn2ck|(?:^|::)dot_kernel|reduce_1block_kernel|epilogue::impl|rocblas|hipblas",
            _MATMUL,
        ),
        (r"tensormove|tensor_move|sdma|transdata|memcpy", _MOVE),
        (
            r"elementwise|reduce|reduction|norm|softmax|log_?sum|cub::|thrust::|rocprim|hipcub|embedding|multi_tensor"
            r"|triton_|scatter|gather|dropout|transpose|permute|upsample|batch_norm|pool|radixsort|linearize_index"
            r"|gammabeta|rowwisemoments",
            _VECTOR,
        ),
    )
)
"""Canonical kernel names: NVIDIA (cutlass, nvjet, cudnn, xmma), AMD (Cijk_, ck, MIOpen), Triton and Ascend."""

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
        "bernoulli",
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
        "gelu",
        "gather",
        "greater",
        "gt",
        "histogram",
        "index",
        "interp",
        "jagged",
        "kthvalue",
        "lamb",
        "less",
        "lengths",
        "lerp",
        "linspace",
        "log",
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
        "stack",
        "std",
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
    is_vector = launched_by_operator or any(word.lower() in _VECTOR_WORDS for word in _WORD.findall(plain))
    return _VECTOR if is_vector else _OTHER


def _directed(category: str, text: str, phase: str) -> str:
    if category not in _DIRECTED:
        return category
    backward = phase == "backward" or _BACKWARD.search(text) is not None
    return f"{category}_{'backward' if backward else 'forward'}"
