"""Three or more sides beside each other: each against the first one, and judged against the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec.structs import replace

from tracker.compare import operators, others, overall, verdicts
from tracker.compare import recorded as recordings
from tracker.compare.filters import check_named
from tracker.compare.notes import warnings
from tracker.compare.references import named
from tracker.compare.sides import load_all
from tracker.compare.tracks import check_one_track
from tracker.errors import UsageError
from tracker.lazy import pd
from tracker.results import MATRIX_COLUMNS, DiffOptions, Matrix, check_matrix
from tracker.units import format_bytes

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.compare.sides import Loaded
    from tracker.store import Store

_DEEPEST: Final = 1
"""Level of the overall rows that a matrix shows: the parts of a step, not the categories of kernels."""

_KEY: Final = ["section", "name", "input_shapes", "part"]
_PAIR: Final = ["before", "after", "previous_diff", "verdict", "q"]
Compare = Callable[["Loaded", "Loaded", DiffOptions], "Columns"]


def matrix(
    store: Store | None, references: Sequence[str], *, by: str = "op", options: DiffOptions | None = None
) -> Matrix:
    """The numbers of three or more sides; `store` and the sides as for `diff`, `by`: a word of MATRIX_ROWS.

    UsageError for fewer sides, and for options that compare two sides only.
    """
    options = options or DiffOptions()
    if len(references) < 3:
        raise UsageError(f"a matrix of {len(references)} sides", remedy="name three or more")
    check_matrix(options, by)
    whole = replace(options, minimum_ns=None)  # a row may be small in two neighbours and large in a third side
    with ExitStack() as stack:
        references, runs = named(store, references, options.workload, options.config)
        if store is not None:
            check_one_track(store, runs)
        sides = load_all(store, references, options, stack, runs=runs)
        found_of = [recordings.compared(*pair, whole)[0] for pair in pairwise(sides)]
        if any(found.by_name for found in found_of):
            whole = replace(whole, match="name")  # one key for all sides
        judged = [verdicts.judge(*pair, whole, found) for pair, found in zip(pairwise(sides), found_of, strict=True)]
        tables = [
            pd.concat([_of_overall(*pair, found), _of_rows(*pair, found, by, whole)], ignore_index=True)
            for pair, found in zip(pairwise(sides), judged, strict=True)
        ]
        rows, cells = _joined(tables, len(sides), options.minimum_ns)
        if options.op and not (rows["section"] != "overall").any():
            everything = [
                operators.compare(*pair, replace(whole, op=None, module=None)).ops for pair in pairwise(sides)
            ]
            names = (name for table in everything for name in table.listed("name"))
            check_named("operator", options.op, names, sides)
        metrics = {operators.own_time(side) for side in sides}
        return Matrix(
            sides=tuple(side.side for side in sides),
            metric=metrics.pop() if len(metrics) == 1 else "self_ns",
            by=by,
            rows=rows,
            cells=cells,
            judged=tuple(" ".join(found.judgement.sentences) for found in judged),
            options=options,
            notes=tuple(dict.fromkeys([*(note for found in found_of for note in found.notes()), *warnings(sides)])),
        )


def _of_overall(before: Loaded, after: Loaded, judged: verdicts.Judged) -> pd.DataFrame:
    frame = judged.into("overall", overall.compare(before, after)).frame
    frame = frame[frame["level"] <= _DEEPEST]
    names = {"title": "name", "metric": "part", "baseline_value": "before", "candidate_value": "after"}
    frame = frame.rename(columns={**names, "diff": "previous_diff"})
    return frame.assign(section="overall", input_shapes="")[[*_KEY, *_PAIR, "level", "unit"]]


def _of_rows(before: Loaded, after: Loaded, judged: verdicts.Judged, by: str, options: DiffOptions) -> pd.DataFrame:
    name, compare, part = _ROWS[by]
    frame = judged.into(name, compare(before, after, options)).frame
    texts = {
        "name": frame[{"communication": "kind", "module": "module"}.get(by, "name")],
        "input_shapes": frame.get("input_shapes", ""),
        "part": [part(row) for row in frame.to_dict("records")] if len(frame) else pd.Series([], dtype=object),
    }
    numbers = {
        "before": frame["baseline_ns"], "after": frame["candidate_ns"], "verdict": frame["verdict"], "q": frame["q"],
    }  # fmt: skip
    made = pd.DataFrame({"section": by, **texts, **numbers}, index=frame.index)
    grouped = made.groupby(_KEY, sort=False, dropna=False)
    # rows that differ in what a matrix does not show (types of cores, sizes of groups) add up, without a verdict
    summed = grouped[["before", "after"]].sum(min_count=1)
    single = grouped.size() == 1
    for column in ("verdict", "q"):
        summed[column] = grouped[column].first().where(single)
    summed["previous_diff"] = (summed["after"] / summed["before"].where(summed["before"] != 0) - 1).astype("float64")
    return summed.reset_index()[[*_KEY, *_PAIR]].assign(level=0, unit="ns")


def _ops(before: Loaded, after: Loaded, options: DiffOptions) -> Columns:
    return operators.compare(before, after, options).ops


def _kernels(before: Loaded, after: Loaded, options: DiffOptions) -> Columns:
    return others.kernels(before, after, options)[0]


def _collectives(before: Loaded, after: Loaded, options: DiffOptions) -> Columns:
    return others.communication(before, after, options)[0]


def _group(row: Mapping[Any, Any]) -> str:
    size = row["size_class_bytes"]
    known = not pd.isna(size) and size > 0
    return ", ".join(filter(None, (row["group_role"], row["data_type"], format_bytes(size) if known else "")))


_ROWS: Final[Mapping[str, tuple[str, Compare, Callable[[Mapping[Any, Any]], str]]]] = {
    "op": ("ops", _ops, lambda row: ""),
    "kernel": ("kernels", _kernels, lambda row: str(row["category"])),
    "communication": ("communication", _collectives, _group),
    "module": ("modules", others.modules, lambda row: str(row["phase"])),
}
"""Word of MATRIX_ROWS -> frame of a Diff, what makes it, and what tells its rows from others of their name."""


def _joined(tables: Sequence[pd.DataFrame], count: int, minimum_ns: int | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`Matrix.rows` and `Matrix.cells` from the tables of each pair of neighbours."""
    rows = pd.concat([table[[*_KEY, "level", "unit"]] for table in tables]).drop_duplicates(_KEY, ignore_index=True)
    index = pd.MultiIndex.from_frame(rows[_KEY])
    found = [table.set_index(_KEY).reindex(index) for table in tables]
    values = np.column_stack([found[0]["before"], *(pair["after"] for pair in found)]).astype(np.float64)
    there = ~np.isnan(values)
    filled = np.where(there, values, 0.0)
    rows["movement"] = filled.max(axis=1) - filled.min(axis=1)
    keep = there.any(axis=1) & ((filled != 0).any(axis=1))
    if minimum_ns is not None:
        keep &= (filled.max(axis=1) >= minimum_ns) | (rows["section"] == "overall").to_numpy()
    is_overall = (rows["section"] == "overall").to_numpy()
    # overall in reading order, the others by movement; what overall rows of later pairs add stands behind
    order = np.lexsort((np.arange(len(rows)), np.where(is_overall, 0.0, -rows["movement"].round(6)), ~is_overall))
    order = order[keep[order]]
    rows = rows.iloc[order].reset_index(drop=True)
    rows.insert(0, "row", np.arange(len(rows)))
    cells = pd.concat(
        [_cells(values[order], [pair.iloc[order] for pair in found], side) for side in range(count)], ignore_index=True
    )
    cells = cells.sort_values(["row", "side"], ignore_index=True)
    return rows[list(MATRIX_COLUMNS["rows"])], cells[list(MATRIX_COLUMNS["cells"])]


def _cells(values: np.ndarray, pairs: Sequence[pd.DataFrame], side: int) -> pd.DataFrame:
    first, own = values[:, 0], values[:, side]
    with np.errstate(invalid="ignore", divide="ignore"):
        diff = np.where(first != 0, own / first - 1, np.nan)
    made = pd.DataFrame({"row": np.arange(len(values)), "side": side, "value": own, "delta": own - first, "diff": diff})
    if side == 0:
        return made.assign(previous_diff=np.nan, verdict=None, q=np.nan)
    pair = pairs[side - 1]
    return made.assign(**{name: pair[name].to_numpy() for name in ("previous_diff", "verdict", "q")})
