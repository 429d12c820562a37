"""Texts of ops as codes: each distinct spelling in a file is understood once."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracker.profile import I32, Strings
from tracker.readers.torch_profiler import collectives
from tracker.readers.torch_profiler.convolutions import is_convolution
from tracker.readers.torch_profiler.schema import Args, plain

MARKER: Final = re.compile(r"ProfilerStep#(\d{1,18})")
# exports before 2022 write annotations as "Operator"; these are the ones that torch itself makes
_OLD_ANNOTATION: Final = re.compile(r"(?:Optimizer\.(?:step|zero_grad)|enumerate\(DataLoader\))#|(?:nccl|gloo|mpi):")


class Texts:
    """Codes of the texts of ops: each distinct spelling in the file is understood once."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._shapes: dict[bytes, int] = {b"": 0}
        self._types: dict[bytes, int] = {b"": 0}

    def shapes(self, args: Sequence[Args]) -> list[int]:
        """`Input Dims` without blanks, `[[8,96],[96]]`; text stays as it is."""
        known, new = self._shapes, self.shape
        raws = [bytes(a.dims) or bytes(a.old_dims) for a in args]
        return [known[raw] if raw in known else new(raw) for raw in raws]

    def types(self, args: Sequence[Args]) -> list[int]:
        """`Input type`, one word per input, joined by commas: `float,,Scalar`; text stays as it is."""
        known, new = self._types, self.type_list
        raws = [bytes(a.types) for a in args]
        return [known[raw] if raw in known else new(raw) for raw in raws]

    def stacks(self, args: Sequence[Args]) -> list[int]:
        """`Call stack`, as the profiler joined it."""
        return self._codes([a.call_stack for a in args], str)

    def modules(self, args: Sequence[Args]) -> list[int]:
        """`Module Hierarchy` as a path: its parts, joined with `/`."""
        return self._codes([a.module for a in args], module_path)

    def _codes(self, values: Sequence[Any], text: Callable[[str], str]) -> list[int]:
        if values.count(None) == len(values):  # as in most traces
            return [0] * len(values)
        return self._strings.codes([text(value) if isinstance(value, str) else "" for value in values])

    def shape(self, raw: bytes) -> int:
        """What `shapes` gives for the text of one `Input Dims`."""
        text = (plain(raw) or "") if raw[:1] == b'"' else raw.translate(None, b" \t\r\n").decode()
        self._shapes[raw] = self._strings.code(text)
        return self._shapes[raw]

    def type_list(self, raw: bytes) -> int:
        """What `types` gives for the text of one `Input type`."""
        value = plain(raw)
        text = ",".join(map(str, value)) if isinstance(value, list) else value if isinstance(value, str) else ""
        self._types[raw] = self._strings.code(text)
        return self._types[raw]


def module_path(module: str) -> str:
    """A `Module Hierarchy`, `net.conv`, as a path: `net/conv`."""
    return "/".join(part for part in module.split(".") if part)


class OpNames:
    """What the names of ops say, by their code: each distinct name is looked at once."""

    MARKER, COLLECTIVE, ANNOTATION, CONVOLUTION = 1, 2, 4, 8

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._says = np.zeros(0, dtype=np.uint8)

    def say(self, codes: I32) -> NDArray[np.uint8]:
        """MARKER: of a step; COLLECTIVE: may carry one; ANNOTATION: torch made it, whatever its category;
        CONVOLUTION: its concrete inputs say its FLOPs.
        """
        known = len(self._says)
        if known < len(self._strings):
            new = [self._of(text) for text in self._strings.texts[known:]]
            self._says = np.concatenate([self._says, np.array(new, dtype=np.uint8)])
        return self._says[codes]

    def _of(self, text: str) -> int:
        return (
            self.MARKER * (MARKER.fullmatch(text) is not None)
            + self.COLLECTIVE * collectives.is_collective(text)
            + self.ANNOTATION * (_OLD_ANNOTATION.match(text) is not None)
            + self.CONVOLUTION * is_convolution(text)
        )
