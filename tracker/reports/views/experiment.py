"""The document of an experiment: what its pairs decided, above the diff of their runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import asdict, replace

from tracker.reports.cells import ColumnsOf, form, readable
from tracker.reports.commands import command
from tracker.reports.document import NAME, Document, Look, Table, Target
from tracker.reports.rows import plain, table_of
from tracker.reports.view import View, choose_tables
from tracker.reports.views import diff as diff_view
from tracker.results.experiments import Experiment, ExperimentOperator, ExperimentPair
from tracker.units import counted, format_diff, format_ns

_TONES: Final = {"slower": "worse", "faster": "better"}
_COMMIT: Final = 8
"""Characters of a commit in a title."""
_OPERATORS: Final = 10
"""Operators of a first screen."""
_WORDS: Final = {"slower": "SLOWER", "faster": "FASTER", "no difference": "NO DIFFERENCE"}


def document(found: Experiment, look: Look) -> Document:
    """Return the decision above the diff of the runs; the operators that were decided follow its causes, the pairs are
    last.
    """
    one = found.experiment
    change = one.change
    sides = f"{_name_side(one.baseline, one.baseline_commit)} -> {_name_side(one.candidate, one.candidate_commit)}"
    rests_on = f"median of {counted(len(found.rows.pairs), 'pair')}" if found.rows.pairs else ""
    devices = f"devices {one.devices}" if one.devices else ""
    limit = f"limit {100 * one.limit_ratio:g} %" if one.limit_ratio else ""
    where = ", ".join(filter(None, (one.workload, one.host, devices, rests_on, limit)))
    own = Document(
        title=f"{one.name}: {sides}{f'; {where}' if where else ''}; seed {one.seed}",
        headline=f"{change.sentence[:1].upper()}{change.sentence[1:]}",
        verdict=_WORDS.get(change.outcome) or one.state.upper(),
        tone=_TONES.get(change.outcome, ""),
        remarks=tuple(_list_remarks(found)),
        next_commands=tuple(_list_next(found)),
    )
    operators, pairs = _operators(found, look), _pairs(found)
    if found.diff is None:
        return replace(own, blocks=(pairs,) if pairs.rows else ())
    of_diff = diff_view.document(found.diff, look)
    first = [block for block in of_diff.blocks if block.is_first]
    others = [block for block in of_diff.blocks if not block.is_first]
    return replace(
        own,
        blocks=(*first, *([operators] if operators.rows else []), *others, pairs),
        notes=of_diff.notes,
        tabs=of_diff.tabs,
    )


def _name_side(text: str, commit: str | None) -> str:
    """Return what a user named, and the commit that it was then."""
    name = readable(text)
    return name if commit is None or commit.startswith(text) else f"{name} ({commit[:_COMMIT]})"


def _list_remarks(found: Experiment) -> Iterator[str]:
    if found.bounded:
        pairs = counted(len(found.rows.pairs), "pair")
        yield f"{found.bounded} of {pairs} counted as less than they differ, for no single pair may decide."
    yield from found.remarks


def _list_next(found: Experiment) -> Iterator[str]:
    one = found.experiment
    if found.diff is not None:
        yield command("tracker", "runs", "--experiment", one.name)
    if one.state != "decided":
        yield f"{command('tracker', 'ab', '--resume', one.name)} -- COMMAND"


def _operators(found: Experiment, look: Look) -> Table:
    """Return the operators whose change the pairs decided; empty where there is none."""
    rows = found.rows.decided_operators
    text = form("ns", [value for row in rows for value in (row.baseline_ns, row.candidate_ns)])
    of_row = ColumnsOf(ExperimentOperator)
    columns = [
        of_row.text("operator", lambda row: readable(row.name), **NAME),
        of_row.number("baseline", lambda row: text(row.baseline_ns)),
        of_row.number("candidate", lambda row: text(row.candidate_ns)),
        of_row.number("change % without drift", lambda row: format_diff(row.change_ratio)),
        of_row.text("verdict", lambda row: row.verdict),
    ]
    note = "drift: what all operators share in a run; at most 5 of 100 such operators did not change"
    return table_of(
        "Operators that the pairs decided", columns, rows, look.rows(_OPERATORS), is_first=True,
        note=note if rows else "",
        tone=lambda row: _TONES[row.verdict],
    )  # fmt: skip


def _pairs(found: Experiment) -> Table:
    """Return the pairs in order, with both runs of each."""
    of_row = ColumnsOf(ExperimentPair)
    columns = [
        of_row.number("pair", lambda row: str(row.pair)),
        of_row.number("baseline run", lambda row: f"run:{row.baseline_run}"),
        of_row.number("step", lambda row: format_ns(row.baseline_ns)),
        of_row.number("candidate run", lambda row: f"run:{row.candidate_run}"),
        of_row.number("step", lambda row: format_ns(row.candidate_ns)),
        of_row.number("change %", lambda row: format_diff(row.change_ratio)),
        of_row.text("slowed down", _describe_machines),
    ]
    return table_of(
        "Pairs", columns, found.rows.pairs,
        links=lambda row: Target("run", (("RUN", str(row.candidate_run)),)),
    )  # fmt: skip


def _describe_machines(pair: ExperimentPair) -> str:
    """Return what the machine did to the runs of a pair, by side; "" for nothing known."""
    own = {"baseline": pair.baseline_machine, "candidate": pair.candidate_machine}
    return "; ".join(f"{side}: {words}" for side, words in own.items() if words)


def list_json(found: Experiment, look: Look) -> Mapping[str, Any]:
    """Return the experiment with its answer, its tables, and the diff as `tracker diff` has it."""
    fields = {name: plain(getattr(found, name)) for name in Experiment.json_fields}
    own = {name: [asdict(row) for row in getattr(found.rows, name)] for name in found.rows.__struct_fields__}
    return {**fields, **plain(own), "diff": None if found.diff is None else diff_view.list_json(found.diff, look)}


VIEW = View(document, json=list_json, csv=choose_tables)
