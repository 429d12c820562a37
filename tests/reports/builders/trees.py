"""Trees of modules: of a run, and of a comparison."""

from __future__ import annotations

import pandas as pd

from tests.reports.builders.diffs import MS, diff
from tests.reports.builders.shown import shown
from tracker.results import TREE_COLUMNS, TREE_DIFF_COLUMNS, DiffOptions, ShowOptions

# level, kind, name, shapes, calls, time in ms: 100 ms, of which 0.6 are too small to show one by one
TREE = [
    (0, "module", "GPT_0", "", 2, 90.0),
    (1, "module", "Block_0", "", 2, 80.0),
    (2, "op", "aten::mm", "[[64, 512], [512, 512]]", 40, 79.5),
    (2, "op", "aten::add", "", 4, 0.3),
    (2, "op", "aten::mul", "", 4, 0.2),
    (1, "op", "aten::addmm", "[[64]]", 2, 10.0),
    (0, "module", "(no module)", "", None, 10.0),
    (1, "op", "aten::add_|x", "", 2, 10.0),
]


def _placed(columns):
    """`columns` of each row of TREE, with its number and that of the row above."""
    above, rows = {}, []
    for node, (level, kind, name, shapes, calls, ms) in enumerate(TREE):
        above[level] = node
        path = " > ".join(TREE[above[place]][2] for place in range(level + 1))
        identity = {"node": node, "parent": above.get(level - 1, -1) if level else -1, "level": level, "kind": kind}
        identity |= {"path": path, "name": name, "input_shapes": shapes}
        rows.append(identity | columns(kind, calls, ms))
    return rows


def shown_with_tree(**changes):
    """A run with the tree of its modules."""

    def columns(kind, calls, ms):
        own = 0 if kind == "module" else int(ms * MS)
        times = {"host_total_ns": int(ms * MS) // 2, "host_self_ns": own // 2, "device_total_ns": int(ms * MS)}
        shares = {"share": ms / 100, "step_share": ms / 200}
        return {"calls": calls, "op_calls": calls or 2, **times, "device_self_ns": own, **shares}

    tree = pd.DataFrame(_placed(columns), columns=list(TREE_COLUMNS)).convert_dtypes(dtype_backend="numpy_nullable")
    return shown(**({"tree": tree, "options": ShowOptions(by=("module",))} | changes))


def diff_with_tree(**changes):
    """Every module takes twice as long on the candidate, which was judged of ops; the last row is there alone."""

    def columns(kind, calls, ms):
        before = None if ms == 10.0 and kind == "op" and calls == 2 else ms * MS
        after = 2 * ms * MS
        sides = {"baseline_ns": before, "candidate_ns": after, "candidate_share": ms / 100, "baseline_share": ms / 100}
        judged = {"verdict": "REGRESSED", "q": 0.001, "judged_diff": 1.0} if kind == "op" and before else {}
        return {
            **sides, **judged, "status": "both" if before else "ADDED", "delta_ns": after - (before or 0),
            "diff": 1.0 if before else None, "baseline_calls": calls if before else None, "candidate_calls": calls,
        }  # fmt: skip

    columns_of = list(TREE_DIFF_COLUMNS)
    tree = pd.DataFrame(_placed(columns), columns=columns_of)
    return diff(**({"tree": tree, "options": DiffOptions(by=("module",))} | changes))
