"""The name of a replacement in short: what went, and what came."""

from __future__ import annotations

import re
from typing import Final

from tracker.results.diff import REPLACED_BY
from tracker.units import some_of

__all__: list[str] = []

_LONG: Final = 80
_MARKS_IN_NAMES: Final = "<:(_ "
AUTOGRAD_NODE: Final = re.compile(r"^autograd::|Backward\d+$")


def replaced_name(name: str) -> str:
    """Return what replaced what, in short: the largest of both sides, a namespace once, no nodes of autograd beside
    operators. Of two long names it is the part in which they differ.

    >>> replaced_name("aten::gelu, GeluBackward0 -> aten::mul, aten::pow, MulBackward0, aten::tanh, aten::add")
    'aten::gelu -> mul, pow, tanh and 1 more'
    >>> replaced_name("void cutlass::device_kernel<sm90, Tile<8, 8>> -> void cutlass::device_kernel<sm100, Tile<8, 4>>")
    '…<sm90, Tile<8, 8>> -> …<sm100, Tile<8, 4>>'
    """
    space = name.partition("::")[0] + "::"
    sides = [split_names(side) for side in name.split(REPLACED_BY)]
    if [len(names) for names in sides] == [1, 1] and len(name) > _LONG:
        (gone,), (come,) = sides
        differing = (at for at, (one, other) in enumerate(zip(gone, come, strict=False)) if one != other)
        shared = next(differing, 0)
        start = max(gone.rfind(mark, 0, shared) for mark in _MARKS_IN_NAMES)
        if start > 0:
            sides = [[f"…{gone[start:]}"], [f"…{come[start:]}"]]
    shown: list[str] = []
    for names in sides:
        main = [one for one in names if not AUTOGRAD_NODE.search(one)] or names
        # the namespace stands in front of the first name alone
        shown.append(some_of([one.removeprefix(space) if shown or at else one for at, one in enumerate(main)], ", "))
    return REPLACED_BY.join(shown)


def largest_that_came(name: str) -> str:
    """Return the name that changed most of those that came, no node of autograd where there is another one.

    >>> largest_that_came("aten::gelu, GeluBackward0 -> PowBackward0, aten::mul, aten::tanh")
    'aten::mul'
    """
    names = split_names(name.rpartition(REPLACED_BY)[2])
    return next((one for one in names if not AUTOGRAD_NODE.search(one)), names[0])


def split_names(text: str) -> list[str]:
    """Return the names of a list with commas in between; those in brackets are of the names of kernels.

    >>> split_names("gemm<Tile<8, 8>, half>, relu")
    ['gemm<Tile<8, 8>, half>', 'relu']
    """
    names, depth = [""], 0
    for part in text.split(", "):
        names[-1] += f", {part}" if depth else part
        depth = max(0, depth + sum(part.count(mark) for mark in "<([{") - sum(part.count(mark) for mark in ">)]}"))
        if not depth:
            names.append("")
    return [name for name in names if name]
