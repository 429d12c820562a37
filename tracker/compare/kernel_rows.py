"""The kernels of a side as a diff looks at them: under canonical names, launched by ops under the candidate's names."""

from __future__ import annotations

from collections.abc import Mapping

from tracker.columns import Columns, objects


def canonical(table: Columns, op_map: Mapping[str, str] | None = None) -> Columns:
    """`table` with the canonical name as `name`, `total_ns` as `ns`, and `op` under the name that `op_map` gives it."""
    found = table.without("name").renamed({"canonical_name": "name", "total_ns": "ns"})
    if not op_map:
        return found
    return found.having(op=objects([op_map.get(op, op) for op in found.texts("op").tolist()]))
