"""From a question to its answer: parameters in, exact columns out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from sqlalchemy import TextClause

from tracker.columns import Column, Columns, objects
from tracker.schema.levels import columns_of_kind
from tracker.store.bulk import LARGEST, fetch_portions, portions
from tracker.store.connect import Store
from tracker.store.sql import columns_of, statement

Question = Callable[..., Columns]
"""A function of `queries`: a store, mostly runs, and which part of them -> the answer."""

_NONE: Final = (-2,)
"""A list that no rank and no step is in (step -1 is what lies outside all markers); an empty one is no SQL."""
_TEXT_KINDS: Final = ("text", "optional_text", "call_stack", "word")
_TEXT: Final = {column.answer or column.name for _, column in columns_of_kind(*_TEXT_KINDS)} | {
    "baseline_runs", "candidate_runs", "canonical_name", "change", "channel", "commit_id", "configuration",
    "content", "core_type", "decided", "device", "digest", "direction", "event", "format", "group_role", "host",
    "input_shapes", "input_types", "judged_kind", "key", "last_error", "member_ranks", "module", "note", "op",
    "op_input_shapes", "part", "path", "paths", "pattern", "phase", "quality", "quality_reason", "reason",
    "settings", "severity", "split_by", "state", "step_kind", "state_reason", "step_markers", "step_way", "tags",
    "target", "throughput_unit", "throughput_way", "title", "trace_schema", "type", "until_version", "value",
    "vendor", "verdict", "version", "version_note", "what", "who", "workload",
}  # fmt: skip
"""Names of columns of texts: those of levels, and all others."""
_REAL: Final = frozenset(column.name for _, column in columns_of_kind("float")) | {
    "baseline_calls", "baseline_value", "by_median", "by_quartile", "calls_per_step", "candidate_calls",
    "candidate_value", "contribution", "detectable", "judged_change", "maximum", "minimum", "p10", "p90", "per_step",
    "q", "rank_spread", "raw_change", "run_e2e_ns", "run_peak_bytes", "run_step_ns", "sd", "share", "threshold",
    "value_after", "value_before",
}  # fmt: skip
"""Names of columns of real numbers: those of levels, and all others."""
_NUMBERS: Final = {"Int64": np.int64, "Float64": np.float64, "boolean": np.bool_}
_YES_NO: Final = frozenset({"intermittent", "pinned"})


def answer(store: Store, question: str | TextClause, parameters: Mapping[str, Any]) -> Columns:
    """Return the answer to `question` (a file of `store/sql`, or a statement that was made).

    No run at all has no rows: then the database is not asked.
    """
    sql = statement(question) if isinstance(question, str) else question
    if "run_ids" in parameters and not parameters["run_ids"]:
        columns = columns_of(sql)
        return build(columns, [()] * len(columns))
    with store.connect() as connection:
        result = connection.execute(sql, dict(parameters))
        names = list(result.keys())
        parts = [build(names, list(zip(*rows, strict=True))) for rows in fetch_portions(result)]
    if not parts:
        return build(names, [()] * len(names))
    return parts[0] if len(parts) == 1 else Columns.stacked(parts)


def rows(store: Store, question: str, **parameters: Any) -> list[Any]:
    """Return the answer to `question` row by row: for few rows columns cost more than they help."""
    with store.connect() as connection:
        return list(connection.execute(statement(question), parameters).all())


def answer_of_runs(store: Store, question: str | TextClause, run_ids: Iterable[int], **parameters: Any) -> Columns:
    """Return the answer to `question` about `run_ids`, however many; it must be ordered by run_id."""
    return answer_of(store, question, "run_ids", run_ids, **parameters)


def answer_of(
    store: Store, question: str | TextClause, of: str, numbers: Iterable[int], **parameters: Any
) -> Columns:  # fmt: skip
    """Return the answer to `question` about `numbers`, its parameter `of`, however many; it must be ordered by them."""
    parts = [answer(store, question, {**parameters, of: portion}) for portion in portions(whole(numbers))]
    return parts[0] if len(parts) == 1 else Columns.stacked(parts)


def whole(numbers: Iterable[int]) -> list[int]:
    """Return `numbers` as plain ints; SQLite would bind a NumPy integer as its bytes, and find nothing.

    Those that no row can have are left out, for neither database takes them.
    """
    return [int(number) for number in numbers if -LARGEST <= number <= LARGEST]


def build(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> Columns:
    """Return columns, each of the kind that its name has everywhere."""
    return Columns({name: _column(name, values) for name, values in zip(names, columns, strict=True)})


def dtype(name: str) -> str:
    """Return the dtype of a column called `name` in a frame.

    >>> dtype("total_ns"), dtype("name"), dtype("sum_squares_ns2")
    ('Int64', 'string', 'Float64')
    """
    if name in _TEXT:
        return "string"
    if name in _REAL:
        return "Float64"
    return "boolean" if name in _YES_NO else "Int64"


def _column(name: str, values: Sequence[Any]) -> Any:
    if name == "digest":
        values = [bytes(value).hex() for value in values]
    kind = dtype(name)
    return objects(values) if kind == "string" else Column.of(values, _NUMBERS[kind])


def ranks_parameters(ranks: Sequence[int] | None) -> dict[str, Any]:
    """Return the parameters that pick `ranks`; None picks all."""
    return {"all_ranks": int(ranks is None), "ranks": parameter_list(ranks)}


class OfKind(Struct, frozen=True):
    """The steps of one kind, whatever their numbers are in each rank."""

    step_kind: str


Steps = Sequence[int] | OfKind | None
"""Steps by their numbers, or by what they do; None: all."""


def steps_parameters(steps: Steps, in_steps: bool) -> dict[str, Any]:
    """Return the parameters that pick `steps`; None picks all, with `in_steps` those between markers."""
    numbers = None if isinstance(steps, OfKind) else steps
    return {
        "in_steps": int(in_steps),
        "all_steps": int(numbers is None),
        "steps": parameter_list(numbers),
        "step_kind": steps.step_kind if isinstance(steps, OfKind) else "",
    }


def parameter_list(numbers: Sequence[int] | None) -> Sequence[int]:
    """Return ranks or steps as a list for a statement; without any a list that no rank and no step is in."""
    return whole(numbers or ()) or _NONE
