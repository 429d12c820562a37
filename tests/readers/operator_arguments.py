"""Files of record_op_args of torch_npu's profiler, as CANN writes them: one for each operator and its arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def tensor(name: str, *shape: int, dtype: str = "bfloat16", **more: Any) -> dict[str, Any]:
    """A tensor as tiling_context_to_json.cpp writes it."""
    place = {"name": name, "index": 0, "param_type": "required", "dtype": dtype, "shape": [*shape], "format": "ND"}
    return {**place, "origin_shape": [*shape], "origin_format": "ND", "value_depend": "const_data" in more, **more}


def operator(kind: str, inputs: list[Any], outputs: list[Any], **attributes: Any) -> dict[str, Any]:
    """An operator as op_info_serialize.cpp writes it, with `impl_mode` and `deterministic`."""
    listed = [
        {"name": name, "dtype": type(value).__name__, "index": index, "value": value}
        for index, (name, value) in enumerate(attributes.items())
    ]
    return {
        "op_type": kind, "tune_mode": "all", "inputs": inputs, "outputs": outputs, "attrs": listed,
        "impl_mode": "high_performance", "deterministic": "false",
    }  # fmt: skip


def write_arguments(capture: Path, operators: list[dict[str, Any]], *, what: str = "_debug") -> Path:
    """Write the arguments beside the folder of a capture, and return the folder of process 4100.

    what: `_debug` for the folder of all operators, `` for the one of those that AOE tunes.
    """
    folder = capture.with_name(f"{capture.name}_op_args") / f"4100{what}"
    folder.mkdir(parents=True)
    for number, one in enumerate(operators):
        (folder / f"{one['op_type']}_{number}.json").write_text(json.dumps(one, indent=2), encoding="utf-8")
    return folder
