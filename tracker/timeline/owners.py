"""Which op owns an allocation: the one that a user would name, with the helper that made the call beside it.

PyTorch allocates through helpers (`aten::empty`; on an NPU `empty_tensor`, or the launch of a kernel): most bytes of
a capture lie in them, and they say nothing. The owner is the outermost op around the allocation below the user's code,
as PyTorch's `key_averages()` counts `memory_usage` up to it, the allocator the innermost one, to which it counts
`self_memory_usage`:

- ops are names with a namespace (`aten::linear`, `npu::npu_rms_norm`, `c10d::allreduce_`); user annotations, step
  markers, Python frames, `Optimizer.step#...` and `DistributedDataParallel.forward` are the user's code;
- the autograd engine is the user's code as well: under `autograd::engine::evaluate_function: MmBackward0` >
  `MmBackward0` > `aten::mm` the owner is `aten::mm`;
- where the outermost op is itself a helper, or there is none, the innermost function around it that has a name of its
  own (`FlashAttnFunc`, `GeluBackward0`); else the helper: someone called `torch.empty`;
- in a capture without namespaces (Paddle, ranges of NVTX) the outermost op that is no annotation;
- a source that names the op (`Name` of operator_memory.csv) is right, and the op of that name around the allocation is
  the owner. Where it names a helper or a task of CANN (`cann::...`), the innermost op around it that is no helper: so
  the source names ops itself.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.profile import I64
from tracker.table import list_codes
from tracker.timeline.joined import Joined
from tracker.timeline.nesting import NONE
from tracker.timeline.tree import Tree

_HELPERS: Final = frozenset(
    {
        "aten::empty", "aten::empty_strided", "aten::empty_like", "aten::empty_permuted", "aten::empty_quantized",
        "aten::new_empty", "aten::new_empty_strided", "aten::resize_", "aten::resize_as_", "aten::set_",
        "aten::_empty_affine_quantized", "empty_tensor", "format_contiguous", "format_contiguousV2",
    }
)  # fmt: skip
_AUTOGRAD: Final = re.compile(r"autograd::engine::|torch::autograd::|\w*Backward\d*$")
_FUNCTION: Final = re.compile(r"\w+$|torch::autograd::\w+$")
_OF_CANN: Final = "cann::"


class Owners(Struct, frozen=True):
    """Of each allocation that is asked for: `op_key`, that of its owner; `op`, the row of the owner, -1 where only its
    name is known; `allocator`, the code of the name of the innermost op, 0 where no op is known around it.
    """

    op_key: I64
    op: I64
    allocator: I64


class _Kinds(Struct, frozen=True):
    """Per op what its name says of it, as in the docstring of this module. `is_function`: a name of its own."""

    is_op: NDArray[np.bool_]
    is_helper: NDArray[np.bool_]
    is_autograd: NDArray[np.bool_]
    is_function: NDArray[np.bool_]
    is_annotation: NDArray[np.bool_]
    has_namespaces: bool


class _Around(Struct, frozen=True):
    """Per op the row of one around it, or of itself, -1 for none: `outermost` op below the user's code, `innermost` op
    that is no helper, `function`: innermost one with a name of its own, `top`: outermost one that is no annotation.
    """

    outermost: I64
    innermost: I64
    function: I64
    top: I64


def owners_of(joined: Joined, rows: I64) -> Owners:
    """The owners of these rows of `joined.events.allocations`."""
    allocations, ops = joined.events.allocations, joined.events.ops
    inner = joined.tree.innermost(allocations.thread[rows], allocations.time_ns[rows])
    known = inner[inner >= 0]
    kinds = _kinds(joined)
    around = _around(joined.tree, kinds)
    owner = np.full(len(rows), NONE, dtype=np.int64)
    owner[inner >= 0] = _by_nesting(around, kinds)[known]
    key = np.full(len(rows), joined.keys.no_op, dtype=np.int64)
    allocator = np.zeros(len(rows), dtype=np.int64)
    allocator[inner >= 0] = ops.name[known]
    said = joined.events.extras.allocation_op
    if len(said):
        named = np.full(len(rows), NONE, dtype=np.int64)
        named[inner >= 0] = np.where(around.innermost >= 0, around.innermost, around.function)[known]
        owner, by_name = _as_said(joined, said[rows].astype(np.int64), inner, owner, named)
        key[by_name] = joined.keys.of_allocation[rows[by_name]]
    key[owner >= 0] = joined.keys.of_op[owner[owner >= 0]]
    return Owners(key, owner, allocator)


def _kinds(joined: Joined) -> _Kinds:
    ops, texts = joined.events.ops, joined.events.strings.texts
    is_op, is_helper, is_autograd, is_function = (np.zeros(len(texts), dtype=bool) for _ in range(4))
    for code in list_codes(ops.name):
        name = texts[code]
        is_helper[code] = name in _HELPERS
        is_autograd[code] = _AUTOGRAD.match(name) is not None
        is_op[code] = "::" in name and not is_autograd[code] and not name.startswith(_OF_CANN)
        is_function[code] = not is_helper[code] and (is_op[code] or _FUNCTION.match(name) is not None)
    annotation, name_of = ops.is_annotation == 1, ops.name
    own = ~annotation
    has_namespaces = any("::" in texts[code] for code in list_codes(ops.name))
    return _Kinds(
        is_op[name_of] & own,
        is_helper[name_of],
        is_autograd[name_of] & own,
        is_function[name_of] & own,
        annotation,
        has_namespaces,
    )


def _around(tree: Tree, kinds: _Kinds) -> _Around:
    row = np.arange(len(tree))
    plain = np.where(kinds.is_op & ~kinds.is_helper, row, NONE)
    stop = len(tree)  # no row: what lies beyond is the user's code
    innermost = tree.passed_down(np.where(kinds.is_autograd, stop, plain), unset=NONE)
    return _Around(
        outermost=tree.outermost(kinds.is_op, beyond=kinds.is_autograd),
        innermost=np.where(innermost == stop, NONE, innermost),
        function=tree.passed_down(np.where(kinds.is_function, row, NONE), unset=NONE),
        top=tree.outermost(~kinds.is_annotation, beyond=np.zeros(len(tree), dtype=bool)),
    )


def _by_nesting(around: _Around, kinds: _Kinds) -> I64:
    """The owner of what each op allocates itself."""
    row = np.arange(len(around.top))
    if not kinds.has_namespaces:
        return np.where(around.top >= 0, around.top, row)
    found = around.outermost.copy()
    bare = (found < 0) | kinds.is_helper[found]
    found[bare] = np.where(around.function >= 0, around.function, found)[bare]
    return np.where(found >= 0, found, row)


def _as_said(joined: Joined, said: I64, inner: I64, owner: I64, named: I64) -> tuple[I64, NDArray[np.bool_]]:
    """The owners where the source names ops, and of which allocations only that name is known.

    `inner`, `owner`, `named`: the innermost op, the owner by nesting, the innermost op that is no helper.
    """
    texts, name = joined.events.strings.texts, joined.events.ops.name
    tells_nothing = np.zeros(len(texts), dtype=bool)
    for code in list_codes(said):
        tells_nothing[code] = not texts[code] or texts[code] in _HELPERS or texts[code].startswith(_OF_CANN)
    unsaid = tells_nothing[said]
    found = np.where(unsaid, np.where(named >= 0, named, owner), NONE)
    at = np.flatnonzero(~unsaid & (inner >= 0))
    row = inner[at]
    while len(at):
        same = name[row] == said[at]
        found[at[same]] = row[same]
        row = joined.tree.parent[row].astype(np.int64)
        at, row = at[row >= 0], row[row >= 0]
    return found, (found < 0) & (said > 0)
