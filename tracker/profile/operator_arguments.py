"""With which arguments an operator was called: its tensors and attributes, as one text and in parts."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from msgspec import Struct

OPERATOR_ARGUMENTS: Final = "operator_arguments"
"""`source` of the rows of the table `counter` that hold arguments: `name` is the type of the operator, `attribute` the
text of OperatorArguments, and `calls` the number of processes that called it with these.
"""
_BETWEEN: Final = "|"
_SHAPE: Final = re.compile(r"\[(-?\d+(?:,-?\d+)*)\]")


class OperatorArguments(Struct, frozen=True):
    """The arguments of an operator: `inputs` and `outputs` such as `x1 float16 ND [32,64]; x2 float16 ND [64,64]`, with
    ` = (4,8)` behind a tensor whose values the operator depends on; `attributes` such as `transpose_x1=false`.
    """

    inputs: str = ""
    outputs: str = ""
    attributes: str = ""

    def text(self) -> str:
        """Return one text for all parts, of which `arguments_of` makes them again."""
        parts = (self.inputs, self.outputs, self.attributes)
        return f" {_BETWEEN} ".join(part.replace(_BETWEEN, "/") for part in parts)

    def words(self, parts: Collection[str] = ("inputs", "outputs", "attributes")) -> str:
        """Return these parts as a reader sees them: `x float16 ND [8] -> y float16 ND [8], axis=0`."""
        tensors = [getattr(self, part) or "none" for part in ("inputs", "outputs") if part in parts]
        attributes = [self.attributes] if "attributes" in parts and self.attributes else []
        return ", ".join([" -> ".join(tensors)] * bool(tensors) + attributes) or "none"


def arguments_of(text: str) -> OperatorArguments:
    """Return the parts of what `OperatorArguments.text` made."""
    return OperatorArguments(*(part.strip() for part in text.split(_BETWEEN)))


def dimensions_in(text: str) -> tuple[str, ...]:
    """Return the shapes in the inputs of an operator, or in those of a kernel, without scalars and tensors that are not
    there: a profiler states these in one place and leaves them out in another. -1 is a side that no file states.

    >>> dimensions_in("x1 float16 ND [32,64]; axes int64 ND [2] = (4,8)"), dimensions_in("[[32,64],[],[2]]")
    (('32,64', '2'), ('32,64', '2'))
    """
    return tuple(_SHAPE.findall(text))
