"""Operators that read their inputs once and write a result of their shape, whatever the profiler calls them."""

from __future__ import annotations

from typing import Final

ELEMENTWISE: Final = frozenset((
    "add", "sub", "rsub", "mul", "div", "realdiv", "pow", "square", "neg", "exp", "log", "tanh", "sigmoid", "erf",
    "sqrt", "rsqrt", "reciprocal", "abs", "gelu", "silu", "relu", "where", "select", "masked_fill", "maskedfill",
    "copy", "cast", "clone", "dropout", "native_dropout", "sin", "cos", "addcmul", "addcdiv", "lerp", "axpy", "axpyv2",
    "muls", "adds", "tanh_backward", "pow_backward", "threshold_backward", "sigmoid_backward", "gelu_backward",
    "silu_backward", "clamp", "maximum", "minimum", "eq", "ne", "gt", "lt", "le", "ge", "bitwise_and", "logical_not",
    "fill", "zero", "tensormove",
))  # fmt: skip
"""Their names as `name_plainly` gives them."""


def name_plainly(op: str, op_shapes: str, kernel: str) -> str:
    """Return the name of an operator without its namespace, or of a kernel whose operator has no shapes or is not
    known: the name by which work is recognised.

    `kernel`: its type, or its name where the profiler states no type.

    >>> name_plainly("aten::add_", "[[2,3]]", "elementwise_kernel"), name_plainly("(no op)", "", "RealDiv")
    ('add', 'realdiv')
    """
    is_known = bool(op_shapes) and not op.startswith("(")
    return (op if is_known else kernel).rpartition("::")[2].lower().rstrip("_")
