"""Where in the program pieces of work come from, by the call stacks of their operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tracker.profile.code_lines import user_frames
from tracker.schema.column_names import CALL_STACK, INPUT_SHAPES, MODULE, NAME, PHASE, RANK

if TYPE_CHECKING:
    from tracker.advice.pieces import WorkPiece
    from tracker.columns import Columns

Frames = tuple[str, ...]
_LINES: Final = 3


class CodePlaces:
    """The call stacks of the operators of the studied ranks.

    `ops`: rank, name, input_shapes, module, phase and call_stack of each operator that has one.
    """

    def __init__(self, ops: Columns) -> None:
        self._frames: dict[tuple[object, ...], Frames] = {}
        for *key, stack in ops.rows(RANK, NAME, INPUT_SHAPES, MODULE, PHASE, CALL_STACK):
            self._frames.setdefault(tuple(key), user_frames(stack))

    @property
    def has_stacks(self) -> bool:
        """Whether the call stack of any operator was recorded."""
        return bool(self._frames)

    def find_lines(self, pieces: Sequence[WorkPiece], *, in_common: bool) -> tuple[str, ...]:
        """Return the frames of the program that call `pieces`, at most three, those of most time first; () where no
        stack names one.

        `in_common`: the pieces are one computation, so that the innermost frame that all of them have comes first, and
        the frames in it only where it calls none of them itself. A gradient is computed where the backward pass is
        called; beside forward work it does not count.
        """
        ns_of_frames: dict[Frames, float] = {}
        forward = [piece for piece in pieces if piece.phase != "backward" and self._frames_of(piece)]
        for piece in forward or pieces:
            if frames := self._frames_of(piece):
                ns_of_frames[frames] = ns_of_frames.get(frames, 0.0) + piece.ns
        ns_of_lines: dict[str, float] = {}
        for frames, ns in ns_of_frames.items():
            ns_of_lines[frames[0]] = ns_of_lines.get(frames[0], 0.0) + ns
        lines = sorted(ns_of_lines, key=lambda line: (-ns_of_lines[line], line))
        common = _find_common(sorted(ns_of_frames)) if in_common else ""
        if common in lines:
            lines = [common]
        elif common:
            lines.insert(0, common)
        return tuple(lines[:_LINES])

    def _frames_of(self, piece: WorkPiece) -> Frames:
        return self._frames.get((piece.rank, piece.op, piece.op_text, piece.module, piece.phase), ())


def _find_common(stacks: Sequence[Frames]) -> str:
    """Return the innermost frame that all of `stacks` have, "" of none.

    >>> _find_common([("net.py(9): sin", "net.py(4): gelu", "main.py(1): run"), ("net.py(4): gelu", "main.py(1): run")])
    'net.py(4): gelu'
    """
    if not stacks:
        return ""
    shared = set(stacks[0]).intersection(*stacks[1:])
    return next((frame for frame in stacks[0] if frame in shared), "")
