"""Shapes and element types of the inputs of an operator or kernel, as profiles write them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, Final

import msgspec

Shape = tuple[int, ...]
_BITS: Final = (
    ("64", 8), ("double", 8), ("long", 8), ("bfloat16", 2), ("float16", 2), ("half", 2), ("float8", 1), ("int8", 1),
    ("bool", 1), ("byte", 1), ("char", 1), ("int16", 2), ("short", 2), ("32", 4), ("float", 4), ("int", 4),
)  # fmt: skip
"""Part of a type's name -> bytes of an element; the first that fits holds."""
_HALF: Final = ("bfloat16", "float16", "half")
_BYTE: Final = ("float8", "int8")


@lru_cache(20_000)
def shapes_of(text: str) -> tuple[Shape, ...]:
    """The shapes in `[[2, 3], [], [[4], [5]]]`, those of a list of tensors one after the other; a scalar is ()."""
    try:
        found = msgspec.json.decode(text) if text else []
    except msgspec.DecodeError:
        return ()
    return tuple(_flat(found)) if isinstance(found, list) else ()


def _flat(values: Sequence[Any]) -> list[Shape]:
    found: list[Shape] = []
    for value in values:
        if not isinstance(value, list):
            return []
        is_list = bool(value) and all(isinstance(part, list) for part in value)
        found += _flat(value) if is_list else [tuple(part for part in value if isinstance(part, int))]
    return found


def tensors_text(text: str) -> str:
    """The shapes of the tensors among them, scalars left out: `[2,3] [3,4]`."""
    return " ".join(f"[{','.join(map(str, shape))}]" for shape in shapes_of(text) if shape)


def elements(shape: Shape) -> int:
    """How many elements a tensor of this shape has; 0 for a scalar, which is no tensor."""
    return prod(shape) if shape else 0


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape of the result of an elementwise operator; of shapes that do not fit, the largest."""
    known = [shape for shape in shapes if shape]
    if not known:
        return ()
    depth = max(map(len, known))
    columns = zip(*((1,) * (depth - len(shape)) + shape for shape in known), strict=True)
    sizes = [{size for size in column if size != 1} for column in columns]
    if any(len(own) > 1 for own in sizes):
        return max(known, key=elements)
    return tuple(max(own, default=1) for own in sizes)


@lru_cache(1_000)
def bytes_of(type: str) -> int | None:
    """Bytes of an element of a type, as profilers name it; None where it is no number."""
    return next((size for part, size in _BITS if part in type.lower()), None)


@lru_cache(1_000)
def kind_of(type: str) -> str:
    """half, byte, fp32, fp64, or "" for what is no floating point number."""
    name = type.lower()
    if any(part in name for part in _HALF):
        return "half"
    if any(part in name for part in _BYTE):
        return "byte"
    if "double" in name or "float64" in name:
        return "fp64"
    return "fp32" if name in ("float", "float32") or "float32" in name else ""


@lru_cache(20_000)
def largest_of(text: str) -> Shape:
    """The largest of the shapes in a text; () of none."""
    return max(shapes_of(text), key=elements, default=())


@lru_cache(20_000)
def first_number(text: str, types: tuple[str, ...]) -> tuple[str, int]:
    """Kind of number of the first tensor that has one, or "", and bytes of an element of the first tensor, or 4."""
    tensors = [type for shape, type in zip(shapes_of(text), types, strict=False) if shape]
    return next(filter(None, map(kind_of, tensors)), ""), next(filter(None, map(bytes_of, tensors)), 4)
