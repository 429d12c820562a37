"""Arguments of operators that torch_npu's profiler has CANN write with record_op_args=True, beside the capture.

`X_ascend_pt_op_args/4100_debug/MatMulV2_float16_ND_32_64_0.json`: one file for each operator and arguments that the
process 4100 called by aclnn. The folder `4100_debug` has all operators; `4100` and `4100_opcompile` have those that
AOE tunes and that its compiler builds, and are read where there is no `4100_debug`. The form is that of CANN's
op_info_serialize.cpp and tiling_context_to_json.cpp.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from tracker.errors import SourceError
from tracker.profile import OperatorArguments, Source
from tracker.readers._ascend.json_files import read_object
from tracker.readers._ascend.shapes import data_type
from tracker.readers._source import ReadOptions

_CAPTURE: Final = re.compile(r".*_ascend_pt")
_BESIDE: Final = "_op_args"
_PROCESS: Final = re.compile(r"(?P<process>\d{1,9})(?P<what>|_debug|_opcompile)")
_EVERY_OPERATOR: Final = "_debug"
_ABOVE: Final = 2
"""The folder of a capture is what is read, or so many folders above it."""
_MOST_VALUES: Final = 32
_NO_TENSOR: Final = "none"
_NO_VALUES: Final = "NULL"
"""What stands for the values of a tensor that was empty."""


class _Tensor(Struct, frozen=True):
    """A tensor of an operator. const_data: its values, where the operator depends on them and they are known."""

    name: str | None = ""
    dtype: str = ""
    format: str = ""
    shape: list[int] = []
    const_data: Any = None


class _Attribute(Struct, frozen=True):
    """An attribute of an operator. value: text, a number, or a list of numbers."""

    name: str = ""
    value: Any = None


Tensors = list[_Tensor | list[_Tensor | None] | None]
"""Of each input or output: its tensor, those of a list of tensors, or None for one that is left out."""


class _Operator(Struct, frozen=True):
    """An operator and its arguments, as a file has them."""

    op_type: str
    inputs: Tensors = []
    outputs: Tensors = []
    attrs: list[_Attribute] = []
    impl_mode: str | int = ""
    deterministic: str | bool | int = ""


class RecordedArguments(Struct, frozen=True):
    """With which arguments an operator of a type was called."""

    operator: str
    arguments: OperatorArguments


def read_arguments(root: Path, options: ReadOptions) -> tuple[list[RecordedArguments], list[Source]]:
    """Return the arguments that were recorded beside the capture `root`, each once a process, and the files that hold
    them; nothing where none were. A SourceError names a file that is not of this form.
    """
    found: dict[tuple[str, RecordedArguments], None] = {}
    sources = []
    for folder, process in _folders_beside(root):
        for path in sorted(path for path in folder.glob("*.json") if path.is_file()):
            recorded, source = _read(path, options)
            found[process, recorded] = None
            sources.append(source)
    return [recorded for _, recorded in found], sources


def _folders_beside(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folders to read, each with the number of its process."""
    here = root.resolve()
    above = [here, *list(here.parents)[:_ABOVE]]
    capture = next((folder for folder in above if _CAPTURE.fullmatch(folder.name)), None)
    beside = capture and capture.with_name(capture.name + _BESIDE)
    if beside is None or not beside.is_dir():
        return
    named = [(folder, _PROCESS.fullmatch(folder.name)) for folder in sorted(beside.iterdir()) if folder.is_dir()]
    of_processes = [(folder, match["process"], match["what"]) for folder, match in named if match]
    whole = {process for _, process, what in of_processes if what == _EVERY_OPERATOR}
    for folder, process, what in of_processes:
        if what == _EVERY_OPERATOR or process not in whole:
            yield folder, process


def _read(path: Path, options: ReadOptions) -> tuple[RecordedArguments, Source]:
    remedy = f"remove {path.parent.parent.name}, or record it again"
    content, source = read_object(path, options, remedy)
    try:
        operator = msgspec.convert(content, _Operator)
    except msgspec.ValidationError as error:
        problem = f"no arguments of an operator as CANN writes them: {error}"
        raise SourceError(path, "", problem, remedy=remedy) from error
    attributes = [f"{attribute.name}={_value_text(attribute.value)}" for attribute in operator.attrs]
    modes = {"impl_mode": operator.impl_mode, "deterministic": operator.deterministic}
    attributes += [f"{name}={_value_text(value)}" for name, value in modes.items() if value != ""]
    arguments = OperatorArguments(
        inputs=_tensors_text(operator.inputs),
        outputs=_tensors_text(operator.outputs),
        attributes=", ".join(attributes),
    )
    return RecordedArguments(operator.op_type, arguments), source


def _tensors_text(tensors: Tensors) -> str:
    texts = []
    for tensor in tensors:
        if isinstance(tensor, list):
            texts += [_tensor_text(one, f".{place}") for place, one in enumerate(tensor)]
        else:
            texts.append(_tensor_text(tensor))
    return "; ".join(texts)


def _tensor_text(tensor: _Tensor | None, place: str = "") -> str:
    if tensor is None:
        return _NO_TENSOR
    shape = ",".join(map(str, tensor.shape))
    words = [f"{tensor.name}{place}" if tensor.name else "", data_type(tensor.dtype)[0], tensor.format, f"[{shape}]"]
    text = " ".join(filter(None, words))
    has_values = tensor.const_data not in (None, _NO_VALUES)
    return f"{text} = {_value_text(tensor.const_data)}" if has_values else text


def _value_text(value: Any) -> str:
    """Return a value as text, and of a long list its first values, `(1,1,... 4,096 values, 5f2a09c4)`: the digest at
    its end is of all of them, so that two lists that begin alike differ.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, list):
        return str(value)
    shown = ",".join(map(_value_text, value[:_MOST_VALUES]))
    if len(value) <= _MOST_VALUES:
        return f"({shown})"
    digest = hashlib.blake2b(msgspec.json.encode(value), digest_size=4).hexdigest()
    return f"({shown},... {len(value):,} values, {digest})"
