"""What each page shows: the result of its command, from a database that is open for reading."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracker import reports
from tracker.compare import references
from tracker.compare.commits import choose_pair, list_commits, pair_of
from tracker.errors import UsageError
from tracker.page import links, runs
from tracker.page.links import NotFoundError, number, side, texts_of, without_rows
from tracker.profile.branches import branch_of, main_of
from tracker.profile.experiments import experiment_of_branch
from tracker.reports import addresses
from tracker.reports.cells import ColumnsOf
from tracker.reports.cells import number as format_number
from tracker.reports.document import WORDS, Column, Document, Look, Target
from tracker.reports.rows import rows_of, table_of
from tracker.reports.views.explained import describe_event
from tracker.results import NOBODY, BoardOptions, CallsOptions, ExplainedFinding, ExplainedIncident, ShowOptions
from tracker.results.findings import WORDS_OF_MARKS, FindingEvent, ListedFinding
from tracker.results.listed import ListedRun, RunFact
from tracker.store import Store, queries, read_one_state
from tracker.units import counted, format_numbers

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.config import Settings
    from tracker.results import Diff


_DISK_S: Final = 0.5
"""How long the disk of a trace may take to say whether the file is there."""
_SIDES: Final = "versions, branches, runs (run:41), latest, or pinned"
"""What a side of a page may be: all of `references.SIDES` but paths."""
_MOST_BESIDE: Final = 20
"""Incidents that a page leads to beside its own answer."""
_MOST_PAIRS: Final = 50
"""Versions beside the one before that a diff without sides offers."""


class Inquiry(Struct, frozen=True):
    """What a page is asked. `about`: the number or name in its address; `sides`: those of its query."""

    page: str
    about: str
    sides: tuple[str, ...]
    options: Any


class ComparedVersions(Struct, frozen=True):
    """Two versions of a page. `workload`: of `version`; `good_workload`: of `good_version`, None for the same workload
    or its main line.
    """

    workload: str
    good_version: str | None
    version: str
    good_workload: str | None = None


class Answer(Struct, frozen=True):
    """What a page shows: results, or where there is none a document of its own. `names`: the arguments of the command
    line; `acts_on`: what its actions are about, such as `I-3` or `run:41`; `state`: of the run; `beside`: words and
    what they lead to; `trace`: the file that a step can be cut from, and `has_trace`: it is there; `versions`:
    those between which the commits may be linked; `leads_to`: where the page that is meant is; `swap`: the same with
    its sides swapped.
    """

    results: tuple[Any, ...]
    names: tuple[str, ...] = ()
    acts_on: str = ""
    state: str = ""
    beside: tuple[tuple[str, Target], ...] = ()
    versions: ComparedVersions | None = None
    trace: Path | None = None
    has_trace: bool = False
    swap: Target | None = None
    document: Document | None = None
    leads_to: str = ""
    rows: Columns | None = None

    def makes(self) -> list[Callable[[Look], Document]]:
        """What makes the documents."""
        if (document := self.document) is not None:
            return [lambda _: document]
        return [partial(reports.view_of(one.word).document, one) for one in self.results]

    def written(self, format: str) -> str | bytes:
        """The same as a file."""
        if self.rows is not None:
            return runs.written(self.rows, self.document, format)
        if not self.results:
            raise NotFoundError("there is nothing to write yet", remedy="name sides: ?side=v1&side=v2")
        pages = [reports.render(one, format, details=True, tell=lambda _: None) for one in self.results]
        return pages[0] if len(pages) == 1 else reports.joined([str(page) for page in pages], format)


def answer(store: Store, asked: Inquiry, settings: Settings) -> Answer:
    """What `asked` shows; UsageError for what cannot be, NotFoundError for an address that names nothing."""
    if asked.page == "status":
        return _status(store, settings)
    if asked.page == "board":
        return _board(store, asked, settings)
    if hasattr(asked.options, "max_bytes"):
        asked = replace(asked, options=replace(asked.options, max_bytes=settings.max_bytes, loaders=settings.loaders))
    made: Answer = _ANSWERS[asked.page](store, asked)
    return made


def commits_address(store: Store, found: Answer, template: str | None) -> str:
    """Return the address of the commits between two versions; "" where they have none, or no `template` was set."""
    versions = found.versions
    if not template or versions is None:
        return ""
    pair = pair_of(
        list_commits(store), versions.workload, versions.good_version, versions.version, versions.good_workload
    )
    return "" if pair is None else addresses.commits_address(template, *pair)


def describe_newest_mark(found: Answer) -> str:
    """Return what users did last with an incident or a finding, in a line; "" for nothing, and for other pages.

    The page that an action leads to says by it what was done.
    """
    (first, *_), name = found.results or (None,), found.acts_on
    explained = first.explained if isinstance(first, ExplainedIncident) else (first,)
    if not all(isinstance(one, ExplainedFinding) for one in explained):
        return ""
    marks: dict[tuple[int, FindingEvent], list[int]] = {}
    for one in explained:
        for event in one.rows.events:
            if event.when_ns is not None and event.who != NOBODY:
                marks.setdefault((event.when_ns, event), []).append(one.finding.finding_id or 0)
    if not marks:
        return ""
    when_and_event = max(marks, key=lambda mark: mark[0])
    numbers, newest = marks[when_and_event], when_and_event[1]
    of = name if len(numbers) == len(explained) else f"{format_numbers(sorted(numbers))} of {name}"
    action, _, more = newest.state.partition(" ")
    if action not in WORDS_OF_MARKS:
        # undo of a mark
        of += ":"
    done = " ".join(filter(None, (WORDS_OF_MARKS.get(action, action), more)))
    return f"{of if of.startswith('I-') else f'Finding {of}'} {describe_event(replace(newest, state=done))}"


def choose_workload(asked: Inquiry, title: str, workloads: Sequence[str]) -> Document:
    """Return the document of a question that fits several workloads: the same question of each, as a link."""
    chosen = [*(("side", name) for name in asked.sides), *texts_of(asked.options)]
    made = table_of(
        "", (Column("workload", str, **WORDS),), workloads,
        is_first=True, links=lambda workload: Target(asked.page, (*chosen, ("--workload", workload))),
    )  # fmt: skip
    return Document(title=title, headline=f"Choose one of {counted(len(workloads), 'workload')}", blocks=(made,))


def _board(store: Store, asked: Inquiry, settings: Settings) -> Answer:
    from tracker.regressions.board import board

    chosen = asked.options
    # those of the command, without the part of the list that is shown
    options = BoardOptions(**{name: getattr(chosen, name) for name in BoardOptions.__struct_fields__})
    found = board(store, options=options, owners=settings.alerts.owners)
    return Answer((replace(found, page=chosen.page),))


def _findings(store: Store, asked: Inquiry) -> Answer:
    from tracker import compare
    from tracker.regressions.inbox import findings

    chosen = asked.options
    with store.reading():
        if chosen.version is not None:
            chosen = replace(chosen, version=compare.label_of(store, chosen.version, chosen.workload))
        found = findings(store, options=chosen)
        confirmed = [row for row in found.rows.findings if row.incident_id is not None]
        notes = compare.notes_on_commits(store, confirmed)
    incidents = [f"I-{incident.incident_id}" for incident in found.rows.incidents]
    beside = tuple((name, Target("incident", (("ID", name),))) for name in incidents[:_MOST_BESIDE])
    return Answer((replace(found, notes=(*found.notes, *notes)),), beside=beside)


def _explained(store: Store, asked: Inquiry) -> Answer:
    """A finding, or all of an incident, as `tracker explain` does."""
    from tracker import compare
    from tracker.regressions.explain import explain, findings_of

    name = number(asked.about.removeprefix("I-") if asked.page == "incident" else asked.about, asked.page)
    with store.reading():
        try:
            numbers = findings_of(store, name) if asked.page == "incident" else [name]
            found = [explain(store, one) for one in numbers]
        except UsageError as error:
            raise NotFoundError(error.problem, remedy=error.remedy) from error
        rows = [one.finding for one in found]
        notes = compare.notes_on_commits(store, rows, with_missing=True)
        pair = choose_pair(list_commits(store), rows)
    found = [replace(one, notes=(*one.notes, *notes)) for one in found]
    first = found[0].finding
    beside = _beside(first, is_finding=asked.page == "finding")
    if any(row.decided_by for row in rows):
        beside = (*beside, ("experiments", Target("experiments", ())))
    good_version = first.good_version if pair is None else pair.good_version
    versions = ComparedVersions(first.workload, good_version, first.version)
    if asked.page == "incident":
        return Answer((ExplainedIncident(tuple(found), notes),), (f"I-{name}",), f"I-{name}", "", beside, versions)
    return Answer((found[0],), (str(name),), str(name), "", beside, versions)


def _beside(finding: ListedFinding, *, is_finding: bool) -> tuple[tuple[str, Target], ...]:
    """What else there is on a finding: its history, the versions beside each other, the runs of its version."""
    workload, version, good = ("--workload", finding.workload), finding.version, finding.good_version
    found = [("history", Target("history", (("KEY", str(finding.series_id)),)))]
    if is_finding and finding.incident_id is not None:
        incident = f"I-{finding.incident_id}"
        found.append((incident, Target("incident", (("ID", incident),))))
    if good and good != version:
        found.append((f"{good} beside {version}", Target("diff", (("side", good), ("side", version), workload))))
    return (*found, (f"runs of {version}", Target("runs", (("--version", version), workload))))


def _diff(store: Store, asked: Inquiry) -> Answer:
    from tracker import compare

    chosen = asked.options
    if not asked.sides:
        return Answer((), document=_choices(store, chosen.workload))
    names = [side(store, name, chosen.workload) for name in asked.sides]
    if len(names) < 3:
        found = tuple(compare.diffs(store, names, options=chosen))
        return Answer(found, asked.sides, versions=_versions_of(found), swap=_swapped(asked, found))
    rows = next(iter(chosen.by), "op")
    return Answer((compare.matrix(store, names, by=rows, options=without_rows(chosen)),), asked.sides)


def _versions_of(found: Sequence[Diff]) -> ComparedVersions | None:
    """Return the versions that all of these diffs compare, None where these are several, or of two workloads."""
    baseline, candidate = found[0].baseline, found[0].candidate
    labels = {(one.baseline.version, one.candidate.version) for one in found}
    if len(labels) > 1 or main_of(baseline.workload) != main_of(candidate.workload):
        return None
    return ComparedVersions(candidate.workload, baseline.version, candidate.version, baseline.workload)


def _swapped(asked: Inquiry, found: Sequence[Diff]) -> Target | None:
    """Return the link to the same diff with its sides swapped, and with the steps that were chosen of each."""
    if len(asked.sides) == 2:
        baseline, candidate = asked.sides
    elif len(found) == 1:
        baseline, candidate = found[0].baseline.label, asked.sides[0]
    else:
        return None  # on each device and configuration the baseline is another one
    chosen = asked.options
    chosen = replace(chosen, baseline_steps=chosen.candidate_steps, candidate_steps=chosen.baseline_steps)
    query = (("side", candidate), ("side", baseline), *texts_of(chosen))
    return Target("diff", query)


@read_one_state
def sort_oldest_first(store: Store, sides: Sequence[str]) -> list[str]:
    """Return sides in the order of the versions of their workload, main line before branches, and within a version by
    start and number; those of several workloads by start and number.

    Where one of them names what is not there they stay in their order: the diff says what is wrong.
    """
    try:
        runs_of_sides = {name: references.resolve(store, name)[0] for name in sides}
    except UsageError:
        return list(sides)
    numbers = sorted({run_id for run_ids in runs_of_sides.values() for run_id in run_ids})
    known = {row.run_id: row for row in rows_of(ListedRun, queries.runs_by_id(store, numbers))}
    workloads = {row.workload for row in known.values()}
    places = {name: queries.order_of_versions(store, name) for name in workloads}
    has_order = len(set(map(main_of, workloads))) == 1
    has_starts = all(row.started_at_ns is not None for row in known.values())

    def place_of(side: str) -> tuple[int, ...]:
        first = known[runs_of_sides[side][0]]
        workload = first.workload
        # versions of several workloads have no common order
        # the versions of an experiment have no order
        order = (int(bool(branch_of(workload))), places[workload].get(first.version, 0)) if has_order else ()
        return (*order, (first.started_at_ns or 0) if has_starts else 0, first.run_id)

    return sorted(sides, key=place_of)


def _choices(store: Store, workload: str | None) -> Document:
    """Return the document of a diff without sides: the newest versions, each beside the one before it."""
    headline = f"Choose two to five sides: {_SIDES}"
    before: dict[str, str] = {}
    rows = []
    for name, version, count in queries.versions(store).rows("workload", "version", "runs"):
        # a version whose runs are all excluded has nothing to compare
        if not count or workload not in (None, name):
            continue
        if name in before:
            rows.append(_VersionBesideLast(name, version, before[name], count))
        before[name] = version
    newest = rows[::-1][:_MOST_PAIRS]
    of_row = ColumnsOf(_VersionBesideLast)
    columns = (
        of_row.text("version", lambda row: row.version, link=_pair, **WORDS),
        of_row.text("the one before", lambda row: row.before),
        of_row.text("workload", lambda row: row.workload),
        of_row.number("runs", lambda row: format_number(row.runs)),
    )
    made = table_of("The newest versions, each beside the one before", columns, newest, is_first=True)
    return Document(title="Diff", headline=headline, blocks=(made,) if newest else ())


class _VersionBesideLast(Struct, frozen=True):
    """A version of a workload, and the one before it."""

    workload: str
    version: str
    before: str
    runs: int


def _pair(row: _VersionBesideLast) -> Target:
    return Target("diff", (("side", row.before), ("side", row.version), ("--workload", row.workload)))


def _history(store: Store, asked: Inquiry) -> Answer:
    from tracker.regressions.history import history

    chosen = asked.options
    if chosen.key is None and chosen.top is None and chosen.module is None:
        # a page without a key is that of the step; of another kind it is a list
        is_step = chosen.kind in (None, "run")
        chosen = replace(chosen, key="step" if is_step else "*")
    return Answer((history(store, options=chosen),))


def _run(store: Store, asked: Inquiry) -> Answer:
    from tracker import compare
    from tracker.advice.stored import of_run_today

    run_id = known_run(store, asked.about)
    shown = compare.show(store, f"run:{run_id}", options=asked.options)
    if not asked.options.with_advice:
        # a page says what was stored after the ingest; a file has the efficiency of each operator, too
        shown = replace(shown, advice=compare.choose_advice(of_run_today(store, run_id)))
    workload, version = ("--workload", str(shown.run["workload"])), str(shown.run["version"])
    beside: tuple[tuple[str, Target], ...] = (
        ("its ranks", Target("cluster", (("RUN", str(run_id)),))),
        ("advice", Target("run_advice", (("RUN", str(run_id)),))),
        (f"runs of {version}", Target("runs", (("--version", version), workload))),
        ("history of the step", Target("history", (("KEY", "step"), workload))),
    )
    trace = _trace_of_step(store, run_id, asked.options)
    name, state = f"run:{run_id}", str(shown.run.get("state") or "")
    has_trace = trace is not None and _is_there(trace)
    experiment = experiment_of_branch(branch_of(str(shown.run["workload"])))
    if experiment:
        beside = ((experiment, Target("experiment", (("ID", experiment),))), *beside[:2])
    return Answer((shown,), (name,), name, state, beside, trace=trace, has_trace=has_trace)


def _calls(store: Store, asked: Inquiry) -> Answer:
    from tracker import compare

    run_id = known_run(store, asked.about)
    if not asked.options.calls:
        # a form of the page asks for it
        document = Document(title="Calls", headline="Name an operator, a kernel, a collective or a place of idle time")
        return Answer((), document=document)
    name = f"run:{run_id}"
    found = compare.list_calls(store, name, options=asked.options)
    beside = ((name, Target("run", (("RUN", str(run_id)),))),)
    trace = _trace_of_step(store, run_id, asked.options)
    has_trace = trace is not None and _is_there(trace)
    return Answer((found,), (name,), beside=beside, trace=trace, has_trace=has_trace)


def _trace_of_step(store: Store, run_id: int, options: ShowOptions | CallsOptions) -> Path | None:
    """Return the trace with the step that a page of a run shows, else with its slowest one; None where none has it."""
    from tracker.intake import find_trace

    step = options.steps[0] if len(options.steps) == 1 else None
    rank = options.ranks[0] if options.ranks else None
    try:
        _, _, trace = find_trace(store, run_id, step=step, rank=rank)
    except UsageError:
        return None
    return trace.path


def _is_there(path: Path) -> bool:
    """Return whether a file is there; False where its disk does not answer at once, or that may not be looked at."""
    answers: SimpleQueue[bool] = SimpleQueue()

    def look() -> None:
        try:
            answers.put(path.is_file())
        except OSError:  # a folder without permission
            answers.put(False)

    # a call to a disk that is gone never comes back: no page may wait for it
    Thread(target=look, daemon=True).start()
    try:
        return answers.get(timeout=_DISK_S)
    except Empty:
        return False


def _cluster(store: Store, asked: Inquiry) -> Answer:
    from tracker.ranks import cluster

    names = (*asked.sides, f"run:{known_run(store, asked.about)}")
    found = cluster(store, *(side(store, name, None) for name in names), options=asked.options)
    return Answer((found,), names, beside=((names[-1], Target("run", (("RUN", names[-1].removeprefix("run:")),))),))


def _advised(store: Store, asked: Inquiry) -> Answer:
    """The advice on a run, or on what the query names, since a baseline if it names two."""
    from tracker.compare.advised import advise

    chosen = asked.options
    names: tuple[str, ...] = asked.sides
    if asked.page == "run_advice":
        names = (f"run:{known_run(store, asked.about)}",)
        beside = ((names[0], Target("run", (("RUN", asked.about),))),)
    elif not names:
        headline = f"Choose a side, or a baseline and a side: {_SIDES}"
        return Answer((), document=Document(title="Advice", headline=headline))
    else:
        sides = tuple(("side", name) for name in names)
        workload = (("--workload", chosen.workload),) if chosen.workload else ()
        beside = ((" beside ".join(names), Target("diff", (*sides, *workload))),)
    *baseline, last = (side(store, name, chosen.workload) for name in names)
    return Answer((advise(store, last, *baseline, options=chosen),), names, beside=beside)


def _experiment(store: Store, asked: Inquiry) -> Answer:
    from tracker.experiment import conducting

    name = asked.about
    try:
        found = conducting.show(store, number(name.upper().removeprefix("E-"), "experiment"))
    except UsageError as error:
        raise NotFoundError(error.problem, remedy=error.remedy) from error
    beside = (("all experiments", Target("experiments", ())),)
    return Answer((found,), (found.experiment.name,), beside=beside)


def _experiments(store: Store, asked: Inquiry) -> Answer:
    from tracker.experiment.results import list_experiments
    from tracker.page.experiments import write_document

    return Answer((), document=write_document(list_experiments(store)))


def known_run(store: Store, about: str) -> int:
    """The run in an address; NotFoundError for what is none."""
    run_id = number(about.removeprefix("run:"), "run")
    try:
        queries.require_run(store, run_id)
    except UsageError as error:
        raise NotFoundError(error.problem, remedy=error.remedy) from error
    return run_id


def _log(store: Store, asked: Inquiry) -> Answer:
    from tracker import compare

    chosen = asked.options
    if chosen.baseline is not None:
        chosen = replace(chosen, baseline=compare.label_of(store, chosen.baseline, chosen.workload))
    return Answer((compare.log(store, options=chosen),))


def _search(store: Store, asked: Inquiry) -> Answer:
    from tracker.page.search import find_rows, order_hits, write_document

    text = asked.options.q or ""
    found = find_rows(store, text)
    # the findings of an operator are named as it is
    exact = [hit for hit in order_hits(text, found) if hit.is_exact and hit.kind != "finding"]
    if len(exact) == 1:
        # there is nothing to choose
        return Answer((), leads_to=links.address_of(exact[0].target))
    return Answer((), document=write_document(text, found))


def _status(store: Store, settings: Settings) -> Answer:
    from tracker import watch
    from tracker.config import spools

    places, shut = spools.spools_of(settings), spools.shut_spools_of(settings)
    found = watch.status(store, now_ns=time.time_ns(), spools=places, shut=shut, alerts=settings.alerts)
    return Answer((found,))


@read_one_state
def _runs(store: Store, asked: Inquiry) -> Answer:
    chosen = asked.options
    queries.check_filters(store, workload=chosen.workload, device=chosen.device, version=chosen.version)
    found = queries.runs(
        store, version=chosen.version, workload=chosen.workload, device=chosen.device, tag=chosen.tag,
        search=chosen.search, state=chosen.state, limit=chosen.limit + 1,
    )  # fmt: skip
    rows = found.head(chosen.limit)
    facts = queries.facts(store, rows.listed("run_id"))
    has_more = len(found) > chosen.limit
    document = runs.document(rows_of(ListedRun, rows), rows_of(RunFact, facts), chosen, has_more=has_more)
    return Answer((), document=document, rows=rows)


_ANSWERS: Final[Mapping[str, Callable[[Store, Inquiry], Answer]]] = {
    "findings": _findings, "incident": _explained, "finding": _explained, "diff": _diff,
    "history": _history, "run": _run, "calls": _calls, "cluster": _cluster, "log": _log, "runs": _runs,
    "run_advice": _advised, "advice": _advised, "search": _search, "experiments": _experiments,
    "experiment": _experiment,
}  # fmt: skip
