"""The kernels of a side as a diff looks at them: under canonical names, launched by ops under the candidate's names."""

from __future__ import annotations

from collections.abc import Mapping

from tracker.lazy import pd


def canonical(frame: pd.DataFrame, op_map: Mapping[str, str] | None = None) -> pd.DataFrame:
    """`frame` with the canonical name as `name`, `total_ns` as `ns`, and `op` under the name that `op_map` gives it."""
    found = frame.drop(columns="name").rename(columns={"canonical_name": "name", "total_ns": "ns"})
    if op_map:
        found["op"] = [op_map.get(op, op) for op in found["op"]]
    return found
