"""The pieces of work of a rank: its kernels with the operators that launched them, or the operators of its host."""

from __future__ import annotations

from msgspec import Struct

from tracker.advice.rows import KernelRow, OpRow
from tracker.profile.elementwise import name_plainly
from tracker.profile.shapes import Shape, first_number, largest_of, shapes_of


class WorkPiece(Struct):
    """A kernel of a rank with the operator that launched it, or an operator of a host timeline; times per step.

    `at`: its number; `kind`: the category of a kernel, "op" for an operator; `text`, `types`: shapes and types of its
    inputs, those that the kernel itself states first; `op_text`: those of the operator; `formats`: of an NPU. From
    these: `shapes`, `op_shapes`; `largest`: its largest input; `element_bytes`: of its first tensor, 4 where that is
    not known; `is_named`: whether the operator is known; `plain_op`: that without its namespace, or the type of a
    kernel without one: `mm`, `softmax`, `realdiv`; `sequence_saved_ns`: what of it one kernel in place of its sequences
    of elementwise kernels would save, `sequence`: the names of such a sequence; `stated_flops`: of a call, where the
    source says more than shapes.
    """

    at: int
    rank: int
    kind: str
    name: str
    op: str
    module: str
    phase: str
    text: str
    op_text: str
    types: tuple[str, ...]
    calls: float
    ns: float
    bytes: float = 0.0
    core: str = ""
    formats: str = ""
    shapes: tuple[Shape, ...] = ()
    op_shapes: tuple[Shape, ...] = ()
    largest: Shape = ()
    element_bytes: int = 4
    is_named: bool = True
    plain_op: str = ""
    sequence_saved_ns: float = 0.0
    sequence: str = ""
    stated_flops: float | None = None

    def __post_init__(self) -> None:
        self.shapes, self.op_shapes, self.largest = shapes_of(self.text), shapes_of(self.op_text), largest_of(self.text)
        self.element_bytes = first_number(self.text, self.types)[1]
        self.is_named = not self.op.startswith("(")
        self.plain_op = name_plainly(self.op, self.op_text if self.op_shapes else "", self.name)

    @property
    def number_kind(self) -> str:
        """half, byte, fp32, fp64 of its first tensor, tf32 where the kernel's name says so, or ""."""
        found = first_number(self.text, self.types)[0]
        if found not in ("fp32", ""):
            return found
        name = self.name.lower()
        if "tf32" in name or "s1688" in name:
            return "tf32"
        return "fp32" if found or "sgemm" in name or "<float" in name else ""


def piece_of_kernel(at: int, row: KernelRow) -> WorkPiece:
    """Return the piece of a kernel."""
    return WorkPiece(
        at=at,
        rank=row.rank,
        kind=row.category,
        name=row.type or row.canonical_name or row.name,
        op=row.op,
        module=row.module,
        phase=row.phase,
        text=row.input_shapes or row.op_input_shapes,
        op_text=row.op_input_shapes,
        types=tuple((row.input_types or row.op_input_types).split(",")),
        calls=row.calls,
        ns=row.total_ns,
        bytes=row.bytes,
        core=row.core_type,
        formats=row.input_formats,
        sequence_saved_ns=row.sequence_saved_ns,
        sequence=row.sequence,
    )


def piece_of_op(at: int, row: OpRow, ns: float, stated_flops: float | None = None) -> WorkPiece:
    """Return the piece of an operator. `ns`: its time, on the host or on the device."""
    return WorkPiece(
        at=at,
        rank=row.rank,
        kind="op",
        name=row.name,
        op=row.name,
        module=row.module,
        phase=row.phase,
        text=row.input_shapes,
        op_text=row.input_shapes,
        types=tuple(row.input_types.split(",")),
        calls=row.calls,
        ns=ns,
        stated_flops=stated_flops,
    )
