"""Shapes, data types and formats as Ascend profilers spell them -> the spelling that PyTorch traces use.

`"32,3,224,224;64"` (with the quotes, as kernel_details.csv has it) and `32,3,224,224;\\r\\n64` (trace_view.json) both
become `[[32,3,224,224],[64]]`, so that rows of a GPU and an NPU can match.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_NOTHING: Final = frozenset(("", "N/A", "NULL", "None"))
_DIMS: Final = re.compile(r"-?\d+(?:\s*,\s*-?\d+)*")

# spelling without DT_ or ACL_ -> (name, bytes of one element); kernel_details, op_summary and HCCL each have their own
_DATA_TYPES: Final[Mapping[str, tuple[str, int]]] = {
    "FLOAT": ("float32", 4),
    "FLOAT32": ("float32", 4),
    "FP32": ("float32", 4),
    "FLOAT16": ("float16", 2),
    "FP16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "BFLOAT16": ("bfloat16", 2),
    "BFP16": ("bfloat16", 2),
    "DOUBLE": ("float64", 8),
    "FP64": ("float64", 8),
    "FLOAT64": ("float64", 8),
    "INT8": ("int8", 1),
    "INT16": ("int16", 2),
    "INT32": ("int32", 4),
    "INT64": ("int64", 8),
    "INT128": ("int128", 16),
    "UINT8": ("uint8", 1),
    "UINT16": ("uint16", 2),
    "UINT32": ("uint32", 4),
    "UINT64": ("uint64", 8),
    "BOOL": ("bool", 1),
    "COMPLEX64": ("complex64", 8),
    "COMPLEX128": ("complex128", 16),
    "HIF8": ("hifloat8", 1),
    "FP8E4M3": ("float8_e4m3fn", 1),
    "FP8E5M2": ("float8_e5m2", 1),
    "FLOAT8_E4M3FN": ("float8_e4m3fn", 1),
    "FLOAT8_E5M2": ("float8_e5m2", 1),
}


def shapes_text(raw: str | None) -> str:
    """`[[a,b],[c]]` from `"a,b;c"`, with or without quotes; '' where nothing is said; other text stays as it is.

    An empty entry is an input without dimensions, as in PyTorch traces: a scalar or no tensor.

    >>> shapes_text('"32,3,224,224;;64"'), shapes_text('""'), shapes_text("4;\\r\\n4;\\r\\n"), shapes_text("N/A")
    ('[[32,3,224,224],[],[64]]', '[[]]', '[[4],[4],[]]', '')
    """
    if raw is None:
        return ""
    text = raw.strip()
    if text in _NOTHING:
        return ""
    entries = _split(text.strip('"'))
    if not all(not entry or _DIMS.fullmatch(entry) for entry in entries):
        return text.strip('"')
    return "[" + ",".join(f"[{entry.replace(' ', '')}]" for entry in entries) + "]"


def op_shapes_text(raw: str | None) -> str:
    """`Input Dims` of a host op; there an empty text is one input without dimensions.

    >>> op_shapes_text(""), op_shapes_text("8,8;8,8"), op_shapes_text(None)
    ('[[]]', '[[8,8],[8,8]]', '')
    """
    return "[[]]" if raw is not None and not raw.strip() else shapes_text(raw)


def op_types_text(raw: str | None) -> str:
    """`Input type` of a host op, one word per input, joined by commas as in PyTorch traces, which leave None empty.

    >>> op_types_text("float;\\r\\nScalar;\\r\\nNone"), op_types_text(None)
    ('float,Scalar,', '')
    """
    if raw is None or not raw.strip():
        return ""
    return ",".join("" if word == "None" else word for word in _split(raw))


def types_text(raw: str | None) -> str:
    """Data types of a kernel's inputs, joined by commas; a word without a known name stays itself, in lower case.

    >>> types_text("DT_BF16;INT64;FLOAT"), types_text("N/A"), types_text("DT_UNDEFINED")
    ('bfloat16,int64,float32', '', 'undefined')
    """
    if raw is None or raw.strip() in _NOTHING:
        return ""
    return ",".join(data_type(word)[0] for word in _split(raw.strip().strip('"')))


def formats_text(raw: str | None) -> str:
    """Formats of a kernel's inputs, joined by commas, without the prefix `FORMAT_` of some versions.

    >>> formats_text("FORMAT_ND;NCHW"), formats_text("N/A")
    ('ND,NCHW', '')
    """
    if raw is None or raw.strip() in _NOTHING:
        return ""
    return ",".join(word.removeprefix("FORMAT_") for word in _split(raw.strip().strip('"')))


def data_type(word: str | None) -> tuple[str, int]:
    """Name and bytes of one element of a data type in any Ascend spelling; 0 bytes where they are not known.

    >>> data_type("FP32"), data_type("BFP16"), data_type("INVALID_TYPE"), data_type("RESERVED")
    (('float32', 4), ('bfloat16', 2), ('', 0), ('reserved', 0))
    """
    if word is None or word.strip() in _NOTHING or word.strip().upper() in ("INVALID_TYPE", "INVALID"):
        return "", 0
    plain = word.strip().upper().removeprefix("DT_").removeprefix("ACL_").removeprefix("HCCL_DATA_TYPE_")
    return _DATA_TYPES.get(plain, (plain.lower(), 0))


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(";")]
