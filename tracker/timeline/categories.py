"""The one table that says what kind of work a kernel does: by the op that launched it, then by its own name.

Rules are tried in order; the first that matches decides. Patterns are searched in lower case. A direction (forward,
backward) comes from the text that decided, or from the phase where that text is the kernel's name.
"""

from __future__ import annotations

import re
from typing import Final

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
_DIRECTED = {_CONVOLUTION, _FLASH}
_BACKWARD = re.compile(
    r"backward|bwd|back\b|dgrad|wgrad|wrw|grad_|_grad|strided?b_|splitk_?(?:small|medium|large)_nn", re.ASCII
)

_OP_RULES: Final = tuple(
    (re.compile(pattern), category)
    for pattern, category in (
        (r"paged?_?attention|paged_attn", _PAGE),
        (
            r"flash_?att|flash_attn|flash2attn|flashattn|fusion_attention|efficient_attention|fused_attention"
            r"|cudnn_attention|xformers|ring_attention|flex_attention|attentionforward|attn_fwd|attn_bwd",
            _FLASH,
        ),
        (
            r"conv(?:olution)?(?:_?(?:transpose)?[123]d)?(?:_|$|backward)|::conv|convolution|slow_conv|^conv[123]?d?\b",
            _CONVOLUTION,
        ),
        (
            r"(?:^|::|_)(?:addmm|addbmm|baddbmm|bmm|mm|matmul|linear|einsum|mv|addmv|dot|vdot|outer_matmul|scaled_mm"
            r"|grouped_mm|int_mm|mixed_mm|tensordot|chain_matmul|linalg_multi_dot)(?:_|\d|$|\.)",
            _MATMUL,
        ),
        (r"(?:mm|matmul|linear|bmm)backward\d*$|gemm", _MATMUL),
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
            r"|fused_?inferattention|aiter.*attn|sdpa|flashattention",
            _FLASH,
        ),
        # cudnn's batch norm, softmax and pooling kernels live beside its convolutions
        (
            r"(?:cudnn|miopen)\w*(?:::\w+)*::?(?:bn_|softmax|pooling|op_tensor|reduce|ops::)|miopenbatchnorm|bnfwd|bnbwd",
            _VECTOR,
        ),
        (
            r"conv2d|conv3d|conv1d|convolv|convolution|_conv_|scudnn|hcudnn|dgrad|wgrad|fprop|winograd|igemm_(?:fwd|bwd|wrw)"
            r"|im2d2col|im2col|col2im|nchwtonhwc|nhwctonchw|miopensp|miopenconv|gridwise_.*conv|naive_conv|cask_cudnn"
            r"|cudnn::(?:cnn|detail)::|subtensorop|batched_transpose_\d+x\d+|_zn2ck.*conv|conv_fwd|conv_bwd|bwd_weight"
            r"|sm\d+_xmma_(?:fprop|dgrad|wgrad)|conv_depthwise|^conv",
            _CONVOLUTION,
        ),
        (
            r"gemm|gemv|^cijk_|cutlass|nvjet|cublas|xmma|splitkreduce|splitk_reduce|matmul|_mm_|wmma|hgemm|tensile"
            r"|^ck::|_zn2ck|ck_tile|dot_kernel|reduce_1block_kernel|bmm|mma_kernel|batchmatmul|rocblas|hipblas",
            _MATMUL,
        ),
        (r"tensormove|tensor_move|sdma|transdata|memcpy", _MOVE),
        (
            r"elementwise|reduce|norm|softmax|copy|cub::|thrust::|rocprim|hipcub|triton|index|scatter|gather|embedding|cat"
            r"|fill|pool|dropout|sort|scan|topk|nll|loss|criterion|multi_tensor|foreach|adam|sgd|lamb|rng|distribution"
            r"|random|philox|transpose|permute|pad|upsample|interp|tril|triu|arange|range|where|mask|clamp|relu|gelu"
            r"|silu|swish|tanh|sigmoid|exp|add|sub|mul|div|pow|sqrt|cast|quantize|hfp8|fp8|convert|at::native|fbgemm|apex"
            r"|rope|rotary|bounds_check|histogram|unique|nonzero|compact|cross_entropy|optimizer|lengths|offsets|jagged"
            r"|vectorized|unrolled|scalepackedtensor|op_tensor|transformtensor|roll|flip|linspace|radix|merge|concat|split"
            r"|slice|stack|select|repeat|expand|tile_|broadcast|zeros|ones|to_dense|representation|segment|compute_cuda",
            _VECTOR,
        ),
    )
)
"""Kernel names, NVIDIA (cutlass, nvjet, cudnn, xmma), AMD (Cijk_, ck, MIOpen), Triton and Ascend."""


def category_of_op(name: str, phase: str = "") -> str | None:
    """What the op's name says about the kernels it launches.

    A category; or "" where the op does work of its own that its name does not decide; or None where the op around it may
    say more (annotations, autograd nodes, wrappers).

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

    >>> category_of_kernel("ampere_sgemm_128x64_nn"), category_of_kernel("triton_poi_fused_add_0"), category_of_kernel("f")
    ('matmul', 'vector', 'other')
    """
    text = name.lower()
    for pattern, category in _KERNEL_RULES:
        if pattern.search(text):
            return _directed(category, text, phase)
    return _VECTOR if launched_by_operator else _OTHER


def _directed(category: str, text: str, phase: str) -> str:
    if category not in _DIRECTED:
        return category
    backward = phase == "backward" or _BACKWARD.search(text) is not None
    return f"{category}_{'backward' if backward else 'forward'}"
