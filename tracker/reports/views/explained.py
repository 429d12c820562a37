"""The document of one finding: every test that decided, its runs, and its events; of an incident a line per finding
with the tests that decided, all of each as details.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from tracker.reports import cells
from tracker.reports.cells import KINDS, col, form, number, of, readable, signed, sparkline
from tracker.reports.commands import command
from tracker.reports.document import (
    NAME,
    SENTENCE,
    UNDER,
    Block,
    Column,
    Courses,
    Document,
    Lines,
    Look,
    Table,
    Target,
    Trend,
    few,
    group,
)
from tracker.reports.json import SCHEMA
from tracker.reports.rows import Row, plain, records, table_of
from tracker.reports.text import shorten
from tracker.reports.view import View, choose_tables, list_fields_and_tables
from tracker.reports.views import findings
from tracker.results import NOBODY, REPLACED_BY, Advice, ExplainedFinding, ExplainedIncident
from tracker.units import counted, format_diff, format_moment, format_numbers

if TYPE_CHECKING:
    from tracker.results.screens import Rows

_RUNS: Final = 2
_SHAPES: Final = 60
_CAUSE: Final = 300
"""Characters of a headline and of a remark."""
_LINES: Final = 2
"""Events and changes of the environment on a first screen."""
_FINDINGS: Final = 8
_STEP: Final = ("step", "e2e")
_COURSES: Final = 6
"""Series of an incident on one chart: the step and five others."""
_LEGEND: Final = 48
"""Characters of the name of a series below a chart."""


def document(found: ExplainedFinding | ExplainedIncident, look: Look) -> Document:
    """Of a finding the tests, the runs that they rest on, what users and versions did to it, and what else changed; of
    an incident a line per finding that no other one covers, the step first.
    """
    return _of_incident(found, look) if isinstance(found, ExplainedIncident) else _of_finding(found, look)


def _of_finding(found: ExplainedFinding, look: Look) -> Document:
    row: Row = plain(dict(found.finding))
    name = " ".join(
        filter(None, (findings.name_of(row), shorten(row["input_shapes"] or "", _SHAPES), cells.part_of(row)))
    )
    kind = "" if REPLACED_BY in row["name"] else f" ({KINDS[row['kind']]})"
    text = form(row["unit"], [row["baseline_value"], row["candidate_value"]])
    good = row["good_version"]
    since = f", good until {good}" if good and good != row["version"] else ""
    incident = f", I-{row['incident_id']}" if row["incident_id"] is not None else ""
    state = f"{findings.state_text(row)}{incident}{since}; series {row['series_id']}"
    before, after = text(row["baseline_value"]), text(row["candidate_value"])
    blocks = tuple(one for one in _blocks(found, row, look) if isinstance(one, Lines) or one.rows)
    is_cut = any("--details" in str(one) or not one.is_first or getattr(one, "more", 0) for one in blocks)
    remarks = [f"Cause: {shorten(row['cause'], _CAUSE)}."] if row["cause"] else []
    calls, each = row["by_calls"], row["by_time_per_call"]
    if calls is not None and each is not None:
        form_of = form("ns", [calls, each])
        by_calls, by_each = signed(form_of(calls), calls), signed(form_of(each), each)
        count = cells.calls(row["baseline_calls"], row["candidate_calls"])
        more = "fewer" if (row["candidate_calls"] or 0) < (row["baseline_calls"] or 0) else "more"
        each_word = "faster" if each < 0 else "slower"
        remarks.append(f"Calls {count}: {by_calls} from {more} calls, {by_each} from {each_word} calls.")
    following = [command("tracker", "history", str(row["series_id"]))]
    following += findings.to_settle(str(row["finding_id"]), [row])
    if is_cut and not look.details:
        following.append(command("tracker", "explain", str(row["finding_id"]), "--details"))
    # a peak is one of the whole run, a rate is of time
    per_step = " per step" if row["kind"] != "run" or row["unit"] == "ns" else ""
    return Document(
        title=f"Finding {row['finding_id']}: {findings.where_of(row)}; {state}",
        headline=f"{name}{kind} in {row['version']}: {before} -> {after}{per_step} ({findings.diff_text(row)})",
        verdict=findings.verdict_of(row),
        tone="worse" if row["direction"] == "regression" else "better",
        remarks=tuple(remarks),
        blocks=blocks,
        notes=few(found.notes, look),
        next_commands=tuple(following),
    )


def _blocks(found: ExplainedFinding, row: Row, look: Look) -> Iterator[Block]:
    passes = {True: "passes", False: "FAILS"}
    columns = [Column("", lambda test: passes.get(test["passes"], ""), left=True), Column("", _sentence, **SENTENCE)]
    tests = records(found.tables["tests"])
    yield table_of("Tests", columns, tests, is_first=True, tone=lambda test: "worse" * (test["passes"] is False))
    yield _runs(found, row, look)
    events = [_event(one) for one in records(found.tables["events"])]
    if (left_out := 0 if look.details else len(events) - 1 - _LINES) > 0:
        events[1:-_LINES] = [f"{left_out} more: --details"]
    yield Lines("Events", tuple(events), is_wrapped=True)
    if found.advice:
        yield what_to_do(found.advice, row)

    def ends(fact: Row) -> list[str]:
        both = [fact["before"], fact["after"]]
        return [*map(form("bytes" if fact["what"] == "bytes" else "count", both), both)]

    columns = [Column("what", lambda fact: f"{fact['what']} of {readable(fact['name'])}", **NAME)]
    columns += [col("of", "input_shapes", str, **UNDER), group(map(Column, ("before", "after")), ends)]
    yield table_of(
        f"Changed for certain in {row['version']} (counts and sizes, which need no test)",
        columns,
        records(found.tables["facts"]),
    )
    changed = findings.changed_with(records(found.tables["environment"]), None if look.details else _LINES)
    yield Lines("", changed, is_wrapped=True)


def _event(one: Row) -> str:
    """Return an event of a finding in a line: what happened, who did it, when and why."""
    when = f" on {format_moment(one['when_ns'])} UTC" if one["when_ns"] else ""
    # what tracker judged is nobody's word
    by = f"by {one['who']}" if one["who"] != NOBODY else ""
    what = " ".join(filter(None, (one["version"], one["state"], by)))
    return ": ".join(filter(None, (f"{what}{when}", one["reason"])))


def _marks(explained: Sequence[ExplainedFinding]) -> Lines:
    """Return what users said of the findings of an incident, each act once, in the order of time."""
    acts: dict[tuple[int, str], set[int]] = {}
    for found in explained:
        for one in records(found.tables["events"]):
            if one["who"] != NOBODY:
                numbers = acts.setdefault((one["when_ns"], _event(one)), set())
                numbers.add(plain(dict(found.finding))["finding_id"])
    lines = []
    for (_, words), numbers in sorted(acts.items()):
        of = "all findings" if len(numbers) == len(explained) else f"of {format_numbers(sorted(numbers))}"
        lines.append(f"{words} ({of})")
    return Lines("Marks and notes", tuple(lines), is_wrapped=True)


def what_to_do(advice: Iterable[Advice], finding: Row) -> Lines:
    """What could undo the regression `finding`, each piece once."""
    sides = [("side", str(finding[name])) for name in ("good_version", "version") if finding[name]]
    link = Target("advice", (*sides, ("--workload", str(finding["workload"]))))
    return Lines("What to do", tuple(dict.fromkeys(item.sentence for item in advice)), is_wrapped=True, link=link)


def _sentence(test: Row) -> str:
    """What a test measured, and its limit."""
    set_by = f" ({test['limit_from']})" if test["limit_from"] not in (None, "default") else ""
    value, limit = (_value(test["test"], test[name]) for name in ("value", "limit"))
    bound = "at most" if test["test"] == "q" else "at least"
    return f"{test['meaning']}{f': {value}' if value else ''}{f', {bound} {limit}' if limit else ''}{set_by}"


def _in_short(tests: Sequence[Row]) -> str:
    """The tests that have a limit, in one line."""
    found = []
    for test in tests:
        value, limit = (_value(test["test"], test[name]) for name in ("value", "limit"))
        found += [f"{test['test']} {value} ({limit}{'' if test['passes'] else ', fails'})"] if value and limit else []
    return ", ".join(found)


def _value(test: str, value: float | None) -> str:
    if value is None:
        return ""
    if test.startswith("runs"):
        return number(value)
    return f"{value:.3g}" if test == "q" else f"{value * 100:.2f} %"


def _runs(found: ExplainedFinding, finding: Row, look: Look) -> Table:
    """The runs from old to new; of a first screen the newest of the baseline, and those that showed the change."""
    rows = records(found.tables["runs"])
    text = form(finding["unit"], [row["value"] for row in rows])
    sides = [[row for row in rows if row["side"] == side] for side in ("baseline", "candidate")]
    part = rows if look.details else [*sides[0][-_RUNS:], *sides[1][:_RUNS]]
    columns = [
        Column("run", of("run_id", str)), col("version"), col("part", "side"),
        Column("value", lambda run: text(run["value"])), col("calls", drop=2),
    ]  # fmt: skip
    if finding["unit"] == "ns" and finding["kind"] != "run":
        # what all operators share is removed from the changes of operators alone
        columns.append(col("machine-wide drift", "shared_factor", drop=1))
    columns.append(col("change %", "change"))
    tone = "worse" if finding.get("direction") == "regression" else "better"
    points = tuple(
        (f"run {row['run_id']}", row["value"], (), "", tone if row["side"] == "candidate" else "") for row in part
    )
    chart = Trend(finding["unit"], points) if len(points) > 1 else None
    return table_of(
        "Runs", columns, part, more=len(rows) - len(part), is_first=True, chart=chart,
        lead=sparkline([row["value"] for row in rows]), tone=lambda run: "strong" * (run["side"] == "candidate"),
        links=lambda run: Target("run", (("RUN", str(run["run_id"])),)),
    )  # fmt: skip


def _of_incident(incident: ExplainedIncident, look: Look) -> Document:
    explained = incident.explained
    rows = [plain(dict(found.finding)) for found in explained]
    if not look.has_drawings:
        # a browser has the tests of each finding folded below
        for row, found in zip(rows, explained, strict=True):
            row["below"] = _in_short(records(found.tables["tests"]))
    first, number = rows[0], incident.incident_id
    whole = _of_finding(explained[0], look)
    following = [command("tracker", "explain", str(first["finding_id"]))]
    following += [] if look.details else [command("tracker", "explain", f"I-{number}", "--details")]
    following += findings.to_settle(f"I-{number}", rows)
    made = findings.rows_of(rows, replace(look, details=True), None if look.details else look.rows(_FINDINGS))
    note = "" if look.has_drawings else "(in brackets the limit of a test)"
    chart = _courses(explained)
    lead = "Change of the step, and of what changed it most, against their baselines" if look.has_drawings else ""
    blocks: list[Block] = [replace(made, note=note, is_first=True, chart=chart, lead=lead if chart else "")]
    advice = [item for found in explained for item in found.advice]
    blocks += [what_to_do(advice, first)] if advice else []
    marks = _marks(explained)
    blocks += [marks] if marks.lines else []
    shared: list[Block] = []
    for found in explained:
        own = _of_finding(found, look)
        blocks.append(Lines(own.title, (own.headline, *own.remarks), is_first=False, is_wrapped=True))
        for block in own.blocks:
            if block.title in ("Tests", "Runs", "Events"):
                blocks.append(replace(block, is_first=False))
            elif block.title != "What to do" and block not in shared:
                shared.append(block)
    return Document(
        title=f"I-{number}: {findings.where_of(first)}; {counted(len(rows), 'finding')} in {first['version']}",
        headline=_what_happened(first) or whole.headline,
        verdict=whole.verdict,
        tone=whole.tone,
        blocks=(*blocks, *(replace(block, is_first=False) for block in shared)),
        notes=few([note for found in explained for note in found.notes], look),
        next_commands=tuple(following),
    )


def _what_happened(first: Row) -> str:
    """Return what an incident did to the step, in a sentence; "" where the step is not among its findings."""
    if first["kind"] != "run" or first["name"] not in _STEP or not first["ratio"]:
        return ""
    word = "slower" if first["ratio"] > 0 else "faster"
    size = format_diff(abs(first["ratio"])).lstrip("+")
    times = cells.times(first["baseline_value"], first["candidate_value"])
    return f"{first['version']}: the step is {size} {word}, {times} per step"


def _courses(explained: Sequence[ExplainedFinding]) -> Courses | None:
    """Return how the step and the series that changed it most went over the versions, each against its baseline."""
    chosen = [
        found for found in explained if found.finding["unit"] == "ns" and found.finding["baseline_value"] is not None
    ]
    chosen.sort(key=lambda found: (found.finding["name"] not in _STEP, -abs(_delta(found))))
    if not chosen:
        return None
    versions = list(dict.fromkeys(run["version"] for run in records(chosen[0].tables["runs"])))
    series = [_course(found, versions) for found in chosen[:_COURSES]]
    return Courses(tuple(versions), tuple(series), str(explained[0].finding["version"]))


def _course(found: ExplainedFinding, versions: Sequence[str]) -> tuple[str, tuple[float | None, ...]]:
    """Return the words of a finding, and the change of its series per version against the runs of its baseline."""
    runs = [run for run in records(found.tables["runs"]) if run["value"] is not None]
    values: dict[str, list[float]] = {}
    for run in runs:
        values.setdefault(run["version"], []).append(run["value"])
    baseline = _mean_of_runs([run["value"] for run in runs if run["side"] == "baseline"])
    means = {version: _mean_of_runs(of_version) for version, of_version in values.items()}
    changes = tuple(means[version] - baseline if version in means else None for version in versions)
    row = plain(dict(found.finding))
    name = shorten(findings.series_words(row), _LEGEND)
    if REPLACED_BY in row["name"]:
        # its runs are those of one operator, and its change is that of all
        return f"largest operator of {name}", changes
    return f"{name} {cells.change(row['delta'])}", changes


def _mean_of_runs(values: Sequence[float]) -> float:
    """Return the value of a version or baseline as the verdicts have it: the geometric mean of its runs above 0."""
    above = [value for value in values if value > 0]
    return geometric_mean(above) if above else 0.0


def _delta(found: ExplainedFinding) -> float:
    delta = found.finding["delta"]
    return float(delta) if isinstance(delta, int | float) else 0.0


def list_json(found: ExplainedFinding | ExplainedIncident, look: Look) -> dict[str, Any]:
    """Return one finding with its tests, runs, events and facts, and what else changed; of an incident all findings."""
    if not isinstance(found, ExplainedIncident):
        return list_fields_and_tables(found, look)
    explained = [{"schema": SCHEMA, **list_fields_and_tables(one, look)} for one in found.explained]
    return {"incident_id": found.incident_id, "explained": explained}


def list_sheets(found: ExplainedFinding | ExplainedIncident, look: Look) -> dict[str, Rows]:
    """Return the tables; of one finding, first the finding itself."""
    if isinstance(found, ExplainedIncident):
        return choose_tables(found, look)
    return {"finding": [plain(dict(found.finding))], **choose_tables(found, look)}


VIEW = View(document, json=list_json, sheets=list_sheets)
