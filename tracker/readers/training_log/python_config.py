"""A configuration that is printed as a program, as MMEngine and mmcv do: which part of it a line belongs to.

test_dataloader = dict(
    batch_size=1,
model = dict(
    backbone=dict(
        num_layers=12),
    decode_head=dict(num_layers=2))
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct, field

_PART: Final = re.compile(rb"([A-Za-z]\w*) = ")
_OF_OTHERS: Final = re.compile(rb"(?:val|valid|test|eval|tta)(?:_|$)")
_OPENS: Final = re.compile(rb"(\w+)=\w*[(\[{]")
_BACKBONE: Final = (b"model", b"backbone")


class ProgramParts(Struct):
    """A collector of the lines of such a program, which knows the part that the next line stands in."""

    part: bytes = b""
    _open: list[bytes] = field(default_factory=list)
    """The names in front of the brackets that are open, the outermost first."""

    def take(self, line: bytes) -> None:
        """Look at the next line."""
        if line[:1] not in (b" ", b"\t", b")", b"]", b"}", b""):
            match = _PART.match(line)
            self.part = match[1] if match is not None else b""
            self._open = []
            if match is None:
                return
        if not self.part:
            return
        name = self.part
        opened = {match.end() - 1: match[1] for match in _OPENS.finditer(line)}
        for at in range(len(line)):
            letter = line[at : at + 1]
            if letter in b"([{":
                self._open.append(opened.get(at, name if not self._open else b""))
            elif letter in b")]}" and self._open:
                self._open.pop()

    @property
    def is_of_others(self) -> bool:
        """Whether the part is of a validation or a test."""
        return _OF_OTHERS.match(self.part) is not None

    @property
    def is_inside_model(self) -> bool:
        """Whether the lines behind the last one are of a part of the model other than its backbone as a whole."""
        return self.part == b"model" and bool(self._open) and tuple(self._open) not in ((b"model",), _BACKBONE)
