"""The document of findings: an inbox, one table per incident, the worst first, then suspects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tracker.profile.branches import main_of
from tracker.reports.cells import (
    KINDS,
    ColumnsOf,
    blank,
    budget_words,
    form,
    glosses,
    part_of,
    readable,
    share,
    signed,
    times,
    waiting_words,
)
from tracker.reports.commands import command, option_words
from tracker.reports.document import NAME, SENTENCE, Block, Column, Document, Lines, Look, Table, Target, few, group
from tracker.reports.rows import table_of
from tracker.reports.text import shorten
from tracker.reports.view import View
from tracker.results import OPEN_STATES, REPLACED_BY, STATES, Findings, ToldFinding, ToldIncident
from tracker.results.coverage import LEAST_SEEN
from tracker.results.findings import ChangedFact, ListedFinding, ListedIncident, TrackStanding
from tracker.results.replaced_names import replaced_name
from tracker.results.verdicts import (
    ALIKE_CAUSE,
    MAYBE_CAUSES,
    SO_FAR,
    VERDICT_OF_DIRECTION,
    remark_on_few,
    word_of_step,
)
from tracker.schema.series import STEP_SERIES
from tracker.units import MISSING_TEXT, counted, format_diff, format_moment, format_ns, step_word, time_unit

if TYPE_CHECKING:
    from tracker.results.screens import Rows

CHANGES: Final = {("regression", "presence"): "ADDED", ("improvement", "presence"): "REMOVED"}
MACHINE: Final = "machine"
"""How a finding came about that is the machine's, not the version's."""
_WAITS: Final = ("idle time", "exposed communication")
"""Whole-run numbers that are time in a step and in no operator."""
_ALIKE: Final = 0.01
_MOVED: Final = 0.02
"""Part of the step from which on people notice its change."""
_NOT_SURE: Final = ("INCONCLUSIVE", "SUSPECT", "TOO_FEW_RUNS")
"""Verdicts of a step that may have changed."""
_CURRENT: Final = 0.02
"""By how much the change of a finding must differ from what it was at first to be shown beside it."""
_NAME: Final = 100
"""Characters of a name: those of kernels have thousands."""
_SCREEN_ROWS: Final = 24
_SCREEN_INCIDENTS: Final = 3
"""Findings and incidents of a first screen."""


def document(found: Findings, look: Look) -> Document:
    """Return a table per incident with what adds up to its change of the step, then suspects.

    The title names the track, if all are of one.
    """
    incidents, rows = found.rows.incidents, found.rows.findings
    suspects = [row for row in rows if row.incident_id is None]
    new = [row for row in incidents if row.is_new and row.direction == "regression"]
    own = [row for row in rows if new and row.incident_id == new[0].incident_id]
    verdict = _word(new[0], own) if new and not _narrowed(found) else ""
    where, confirmed = _tracks(found), [row for row in rows if row.incident_id is not None]
    news = sum(bool(row.is_new) for row in confirmed)
    counts = [counted(len(incidents), "incident"), f"{counted(len(confirmed), 'finding')} ({news:,} new)"]
    counts += [f"{counted(len(suspects), 'suspect')}, decided by the next runs"] if suspects else []
    lines = found.rows.lines
    # what was judged is known of the newest version of each track alone
    counted_lines = [line for line in lines if found.options.version in (None, line.version)]
    judged = sum(line.judged_series or 0 for line in counted_lines)
    expected = sum(line.expected_series or 0 for line in counted_lines)
    counts += [f"judged {judged:,} of {expected:,} series"] if expected else []
    hidden = f"; {found.hidden:,} more below these: --all" if found.hidden else ""
    if not rows:
        named = option_words(found.options, "workload", "device")
        over = found.options.states == STATES
        following = [command("tracker", *(["history", *named] if over else ["findings", *named, "--state", "all"]))]
    elif not incidents:
        following = [command("tracker", "history", str(rows[0].series_id)), *to_decide(suspects)]
    else:
        first = next((row.finding_id for row in rows if row.finding_id is not None), None)
        following = [command("tracker", "explain", str(first))]
        following += to_settle(f"I-{incidents[0].incident_id}", rows)
        following += to_decide(suspects)
    waiting = [(where_of(line), waiting_words(line)) for line in lines]
    several = len(where) > 1
    low = [line for line in counted_lines if (line.judged_series or 0) < LEAST_SEEN * (line.expected_series or 0)]
    waiting += [(where_of(line), line.coverage) for line in low]
    remarks = [f"{of}: {words}." if several else f"{words[:1].upper()}{words[1:]}." for of, words in waiting if words]
    return Document(
        title=f"{f'{where[0]}: ' if len(where) == 1 else ''}{', '.join(counts)}{hidden}",
        headline=_headline(found, incidents, rows, suspects),
        verdict=verdict,
        tone="worse" if verdict else "",
        remarks=(
            *budget_words(found.budgets, _SCREEN_INCIDENTS),
            *found.missing[:_SCREEN_INCIDENTS],
            *found.partial[:_SCREEN_INCIDENTS],
            *remarks[:_SCREEN_INCIDENTS],
            *_more(len(remarks) - _SCREEN_INCIDENTS),
        ),
        blocks=tuple(_blocks(found, look, incidents, rows, suspects)),
        notes=few((*found.notes, *_terms(incidents)), look),
        next_commands=tuple(following),
    )


def _terms(incidents: Sequence[ListedIncident]) -> tuple[str, ...]:
    """Return what the words mean that stand beside incidents and are no verdicts."""
    return (f"{glosses([SO_FAR])}.",) if any(row.so_far for row in incidents) else ()


def _more(count: int) -> tuple[str, ...]:
    """Say how many remarks on tracks are not shown."""
    if count <= 0:
        return ()
    return (f"{counted(count, 'more remark')} on what waits for runs or was not judged: tracker board.",)


def to_settle(name: str, rows: Sequence[ListedFinding]) -> list[str]:
    """Return the commands that settle an incident or a finding, where one of `rows` is open."""
    is_open = any(row.state in ("new", "persisting") for row in rows)
    return [f'tracker {word} {name} --reason "..."' for word in ("ack", "expect")] if is_open else []


def to_decide(rows: Sequence[ListedFinding]) -> list[str]:
    """Return the command line that decides whether the step is slower, for the first of `rows` that it can decide: an
    open regression, or a suspect, whose commits are known. What trains is for the reader to fill in.
    """
    for row in rows:
        is_asked = row.direction == "regression" and row.state in ("suspect", "new", "persisting")
        if not is_asked or not row.has_commits or row.decided_by:
            continue
        sides = ["--finding", str(row.finding_id)] if row.finding_id is not None else _name_sides(row)
        return [f"{command('tracker', 'ab', *sides)} -- COMMAND"]
    return []


def _name_sides(row: ListedFinding) -> list[str]:
    """Return the sides of a suspect, which has no number."""
    return [str(row.good_version), row.version, "--workload", main_of(row.workload)]


def where_of(row: TrackStanding | ListedIncident | ListedFinding) -> str:
    """Return the track of a row, in words."""
    return ", ".join(filter(None, (row.workload, row.device, row.configuration)))


def _tracks(found: Findings) -> list[str]:
    rows: list[TrackStanding | ListedIncident | ListedFinding] = [
        *found.rows.lines,
        *found.rows.incidents,
        *found.rows.findings,
    ]
    return list(dict.fromkeys(where_of(row) for row in rows))


def _narrowed(found: Findings) -> bool:
    return found.options.states is not None or found.options.kind is not None


def _headline(
    found: Findings,
    incidents: Sequence[ListedIncident],
    rows: Sequence[ListedFinding],
    suspects: Sequence[ListedFinding],
) -> str:
    """Say what matters most."""
    new = [row for row in incidents if row.is_new and row.direction == "regression"]
    if new:
        own = [row for row in rows if row.incident_id == new[0].incident_id]
        others = f", and {counted(len(new) - 1, 'more new incident')}" if len(new) > 1 else ""
        of = f"{new[0].workload} " if len(_tracks(found)) > 1 else ""
        so_far = f", {new[0].so_far}" if new[0].so_far else ""
        what = headline(new[0], own, whole=not _narrowed(found), beside=f"{so_far}{others}")
        return f"New in {of}{new[0].version}: {what}"
    if suspects:
        what = "Nothing new is confirmed" if found.options.only_new else "No new confirmed regression"
        return f"{what}; {counted(len(suspects), 'suspect')}, decided by the next runs"
    if found.options.only_new:
        return "No new regression; tracker findings lists what is open"
    if incidents and not any(row.open for row in incidents):
        began = f"began in {found.options.version} and " if found.options.version else ""
        return f"No open regression; what is listed {began}is over"
    if any(row.direction == "regression" for row in incidents):
        if found.options.version:
            return f"No new regression; what is listed began in {found.options.version}"
        return "No new regression; what is listed began earlier"
    if incidents:
        slower = sum(row.direction == "regression" for row in rows)
        parts = f"; {slower} of {counted(len(rows), 'finding')} {'is' if slower == 1 else 'are'} one" if slower else ""
        return f"No incident is a regression{parts}"
    chosen = found.options
    filters = command(*option_words(chosen, "version", "kind", "direction"))
    states = ("open",) if chosen.states in (None, OPEN_STATES) and chosen.version is None else chosen.states or STATES
    kind = f" {' or '.join(states)}" if states != STATES else ""
    return f"No{kind} finding{f' with {filters}' if filters else ''}"


def headline(incident: ListedIncident, own: Sequence[ListedFinding], *, whole: bool = True, beside: str = "") -> str:
    """Say what an incident is, in a line. `own`: its findings, all that are not under others or, unless `whole`, some.

    The step goes first where it moved, whatever its verdict, for that is what people notice; what made most of that
    stands at the end. `beside`: what stands before it.
    """
    sentence = _what_happened(incident, own, whole=whole)
    is_of_step = any(row.kind == "run" and row.name in STEP_SERIES for row in own)
    why = f"; {incident.leading_cause}" if incident.leading_cause and is_of_step else ""
    return f"{sentence}{beside}{why}"


def _what_happened(incident: ListedIncident, own: Sequence[ListedFinding], *, whole: bool) -> str:
    """Say what changed the most: the step, or the largest finding."""
    before, after, delta = incident.baseline_step_ns, incident.candidate_step_ns, incident.step_delta_ns
    named = [row for row in own if row.kind != "run" and row.under is None]
    first = ""
    if named:
        text = form(named[0].unit, [named[0].delta])
        change = f" {signed(text(named[0].delta), named[0].delta)}"
        more = f" and {counted(len(named) - 1, 'more finding')}" if len(named) > 1 else ""
        first = f"{name_of(named[0])}{change} ({diff_text(named[0])}){more}"
    rates = [row for row in own if row.kind == "run" and row.name == "throughput"]
    if not first and rates and len(rates) == len(own):
        # the time of the step is no finding, such as one that its source rounds more than the throughput
        first = f"{series_of(rates[0])} ({diff_text(rates[0])})"
    if delta is None or not before:
        return first or counted(incident.findings, "finding")
    step = f"{times(before, after)} per step"
    percent = format_diff(delta / before)
    word = step_word(incident.step_kind)
    # as a diff says it: what is not sure of the step is not said as if it were
    verb = "may be" if incident.step_verdict in _NOT_SURE else "is"
    moved = f"the {word} {verb} {percent.lstrip('+-')} {'slower' if delta > 0 else 'faster'}, {step}"
    if any(row.kind == "run" and row.name in STEP_SERIES for row in own) or not first:
        mean = next((row for row in own if row.kind == "run" and row.name == "mean step"), None)
        if mean is not None and not any(row.kind == "run" and row.name == "step" for row in own):
            # some steps are slower, which the median of all does not show
            word = "slower" if mean.direction == "regression" else "faster"
            step = f"{times(mean.baseline_value, mean.candidate_value)} per step"
            return f"the mean step is {format_diff(abs(mean.ratio or 0.0)).lstrip('+')} {word}, {step}"
        return moved
    agrees = (delta > 0) == (incident.direction == "regression")
    if whole and agrees and abs(delta) >= _MOVED * before:
        return f"{moved} (no finding itself); {first}"
    return f"{first}; the step itself is no finding ({percent})" if whole else first


def name_of(row: ListedFinding) -> str:
    """Return the name of a finding; what replaced what, in short."""
    return _shorten_name(row.name)


def _shorten_name(name: str) -> str:
    return shorten(replaced_name(name) if REPLACED_BY in name else readable(name), _NAME)


def series_of(row: ListedFinding) -> str:
    """Return the series of a finding in words."""
    return series_words(row.name, row.kind, row.input_shapes, part_of(row.kind, row.part, row.step_kind))


def series_words(name: str, kind: str, input_shapes: str, part: str) -> str:
    """Return the name of a series with what tells it from others of that name: its shapes and part, or its kind."""
    detail = ", ".join(filter(None, (input_shapes, part)))
    of_kind = detail or (f"({KINDS[kind]})" if kind not in ("run", "op_name") else "")
    return f"{_shorten_name(name)} {of_kind}".strip()


def verdict_of(row: ListedFinding) -> str:
    """Return the verdict of a finding in a word."""
    if row.change == MACHINE:
        return "DRIFT"
    came_or_went = CHANGES.get((row.direction, row.change))
    return came_or_went or word_of_step(VERDICT_OF_DIRECTION[row.direction], row.change)


def diff_text(row: ListedFinding | ToldFinding) -> str:
    """Return the change of a finding, or that it came or went."""
    return CHANGES.get((row.direction, row.change)) or format_diff(row.ratio)


def state_text(row: ListedFinding) -> str:
    """Return the state of a finding: until when it is muted, or since when it is over."""
    if row.state == "muted":
        end = row.until_version or (format_moment(row.until_ns)[:10] if row.until_ns else "")
        return f"muted until {end}" if end else "muted"
    return f"{row.state} in {row.ended_version}" if row.ended_version else row.state


def explanation(incident: ListedIncident | ToldIncident, own: Sequence[ListedFinding] = ()) -> str:
    """Say how the change of the step adds up, in a sentence; parts that are nothing, or not known, are left out.

    `own`: the findings beside the sentence.
    """
    before, after, delta = incident.baseline_step_ns, incident.candidate_step_ns, incident.step_delta_ns
    if before is None or after is None or delta is None:
        return ""
    unit = time_unit(before, after, delta)
    parts = [f"{words} {signed(format_ns(change, unit), change)}" for words, change in parts_of_step(incident, own)]
    change = f"{signed(format_ns(delta, unit), delta)}, {format_diff(delta / before)}"
    is_made_of = f" = {', '.join(parts)}" if parts else ""
    text = f"Step {times(before, after, delta)} ({change}){is_made_of}."
    return " ".join(filter(None, (text, remark_on_alike(incident))))


def remark_on_alike(incident: ListedIncident | ToldIncident) -> str:
    """Say where to look first if all operators changed by one factor; "" for another incident."""
    if ALIKE_CAUSE not in incident.causes:
        return ""
    return f"Clock or power before code. {remark_on_few(is_worse=(incident.step_delta_ns or 0.0) > 0)}"


def parts_of_step(
    incident: ListedIncident | ToldIncident, own: Sequence[ListedFinding] = ()
) -> list[tuple[str, float]]:
    """Return the parts that add up to the change of the step, in words and in ns, without those that are nothing or not
    known. `own`: findings whose parts are named, idle time and exposed communication.
    """
    is_alike = ALIKE_CAUSE in incident.causes
    changes = (
        ("operators found", incident.operators_ns),
        ("new operators or shapes", incident.new_ns),
        ("gone operators or shapes", incident.gone_ns),
        ("machine-wide drift", incident.machine_ns),
        # too little for a finding, or too noisy
        (ALIKE_CAUSE if is_alike else "other operators", incident.other_operators_ns),
        ("rows of other runs", incident.earlier_ns),
        # the remainder, which is idle time, communication, and the host between operators
        ("time outside operators", incident.beside_ns),
    )
    parts = [(words, change) for words, change in changes if change]
    waits = [row for row in own if row.kind == "run" and row.name in _WAITS]
    if waits and incident.beside_ns:
        rest = incident.beside_ns - sum(row.delta for row in waits)
        parts[-1:] = [*((row.name, row.delta) for row in waits), ("other time outside operators", rest)]
    return parts


def _blocks(
    found: Findings,
    look: Look,
    incidents: Sequence[ListedIncident],
    rows: Sequence[ListedFinding],
    suspects: Sequence[ListedFinding],
) -> Iterator[Block]:
    environment = found.rows.environment
    lines = {where_of(line): line for line in found.rows.lines}
    several = len(_tracks(found)) > 1
    each = max(2, _SCREEN_ROWS // max(1, len(incidents) + bool(suspects)) - 4)
    limit = look.rows(None if found.options.every else 10 if look.details else min(10, each))
    for place, incident in enumerate(incidents):
        own = [row for row in rows if row.incident_id == incident.incident_id]
        good = incident.good_version
        since = f" (good until {good})" if good and good != incident.version else ""
        new = "NEW, " if incident.is_new else ""
        where = f", {where_of(incident)}" if several else ""
        made = rows_of(own, look, limit)
        changed = changed_with([row for row in environment if row.incident_id == incident.incident_id])
        line = lines.get(where_of(incident))
        lead = [explanation(incident, own), *changed]
        waits = waiting_words(line) if line and line.version == incident.version else ""
        so_far = incident.so_far
        decided = next((row.decided_by for row in own if row.decided_by), "")
        lead += [f"{words[:1].upper()}{words[1:]}." for words in (decided, waits, so_far) if words]
        what = f"{new}{_word(incident, own)} in {incident.version}{since}"
        is_first = place < _SCREEN_INCIDENTS or look.limit == 0
        yield replace(
            made,
            title=f"I-{incident.incident_id}: {what}, {incident.severity}{where}",
            lead=" ".join(filter(None, lead)),
            is_first=is_first,
        )
    tracks: dict[str, list[ListedFinding]] = {}
    for row in suspects:
        tracks.setdefault(where_of(row), []).append(row)
    room = 1 + max(0, _SCREEN_INCIDENTS - len(incidents))
    for place, (where, own) in enumerate(tracks.items()):
        of = f" of {where}" if len(tracks) > 1 else ""
        made = rows_of(own, look, limit, suspects=True)
        is_single = all(len(row.candidate_runs.split()) <= 1 for row in own)
        so_far = own[0].so_far.removeprefix(f"{SO_FAR}: ")
        why = "in one run so far" if is_single else "the main line may be as slow itself"
        why = f"in {so_far} so far" if is_single and so_far else why
        decided = next((row.decided_by for row in own if row.decided_by), "")
        yield replace(
            made,
            title=f"Suspects{of}: {why}",
            lead=f"{decided[:1].upper()}{decided[1:]}." if decided else "",
            is_first=place < room or look.limit == 0,
        )
    hidden = {"more incident": len(incidents) - _SCREEN_INCIDENTS, "more track": len(tracks) - room}
    words = [counted(count, noun) for noun, count in hidden.items() if count > 0]
    if words and not look.details and look.limit != 0:
        yield Lines("", (f"{' and '.join(words)}: --details",))


def changed_with(environment: Sequence[ChangedFact], most: int | None = None) -> tuple[str, ...]:
    """Say what else changed: `most` of it, None for all; none where nothing did."""
    changed = [f"{row.key} {row.before or MISSING_TEXT} -> {row.after or MISSING_TEXT}" for row in environment]
    hidden = 0 if most is None else len(changed) - most
    more = [f"{hidden} more: --details"] if hidden > 0 else []
    return (f"Changed with it: {'; '.join([*changed[:most], *more])}.",) if changed else ()


def _word(incident: ListedIncident, own: Sequence[ListedFinding]) -> str:
    """Name an incident in a word: ADDED or REMOVED where it is nothing else, and costs too little to matter; renamed
    where it is names alone.
    """
    if own and all(row.change == MACHINE for row in own):
        return verdict_of(own[0])
    if own and all(row.state == "renamed" for row in own):
        return "renamed"
    of_host = [row for row in own if row.change in MAYBE_CAUSES]
    if of_host:
        return verdict_of(of_host[0])
    words = {CHANGES.get((row.direction, row.change), "") for row in own}
    word = words.pop() if len(words) == 1 and incident.severity == "info" else ""
    return word or VERDICT_OF_DIRECTION[incident.direction]


def rows_of(
    rows: Sequence[ListedFinding],
    look: Look,
    limit: int | None,
    *,
    suspects: bool = False,
    below: Mapping[int | None, str] | None = None,
) -> Table:
    """Return a line per finding, the step first, then by their part in its change. `below`: what stands under findings,
    by their number.
    """
    words_below = below or {}
    ranked = sorted(_once(rows), key=lambda row: (row.kind != "run", -abs(row.share_of_change or 0.0)))
    shown = ranked if limit is None else ranked[:limit]
    has_states = suspects or any(state_text(row) != "new" for row in shown)

    def state(row: ListedFinding) -> str:
        return row.version if suspects else state_text(row)

    def numbers(row: ListedFinding) -> list[str]:
        ends = [row.baseline_value, row.candidate_value]
        text = form(row.unit, [*ends, row.delta])
        return [*(map(text, ends) if look.details else ()), signed(text(row.delta), row.delta)]

    def now(row: ListedFinding) -> str:
        # of what is half back, or got worse since
        ratio = row.current_ratio
        is_other = ratio is not None and row.ratio is not None and abs(ratio - row.ratio) >= _CURRENT
        return format_diff(ratio) if is_other and not row.is_new else ""

    def of_change(row: ListedFinding) -> str:
        return "" if row.share_of_change is None else share(row.share_of_change)

    ends = [Column("before", drop=2), Column("after", drop=2)] if look.details else []
    finding = ColumnsOf(ListedFinding)
    columns = [
        finding.number("id", lambda row: blank(row.finding_id)),
        finding.text("finding", series_of, **NAME),
        group([*ends, Column("change")], numbers),
        finding.number("change %", diff_text),
    ]
    if any(map(now, shown)):
        columns.append(finding.number("now", now))
    if suspects:
        columns.append(finding.text("direction", lambda row: readable(row.direction)))
    else:
        columns.append(finding.number("of change", of_change, drop=1))
    if has_states:
        columns.append(finding.text("since" if suspects else "state", state))
    columns.append(finding.text("cause", lambda row: row.cause, **SENTENCE))
    return table_of(
        "", columns, shown, more=len(ranked) - len(shown), links=_link,
        below=lambda row: words_below.get(row.finding_id, ""),
        tone=lambda row: "worse" if row.direction == "regression" else "better",
        checks=lambda row: blank(row.finding_id), is_stacked=True,
    )  # fmt: skip


def _link(row: ListedFinding) -> Target:
    """Return the finding, or the series of a suspect, which is none yet."""
    if row.finding_id is None:
        return Target("history", (("KEY", str(row.series_id)),))
    return Target("finding", (("ID", str(row.finding_id)),))


def _once(rows: Sequence[ListedFinding]) -> list[ListedFinding]:
    """Return the rows with one for all that are the step under another name: its mean, and E2E where all of it is
    captured.
    """
    wholes = {row.name: row for row in rows if row.kind == "run"}
    step = wholes.get("step")
    if step is None:
        return list(rows)
    alike = []
    for name in ("mean step", "e2e"):
        other = wholes.get(name)
        if other is not None and _is_alike(other, step):
            alike.append(other)
    named = replace(step, name=", ".join(["step", *(row.name for row in alike)]))
    return [named if row is step else row for row in rows if row not in alike]


def _is_alike(other: ListedFinding, step: ListedFinding) -> bool:
    """Return whether two findings of whole runs have about the same numbers on both sides."""
    ends = (
        (other.baseline_value or 0.0, step.baseline_value or 1.0),
        (other.candidate_value or 0.0, step.candidate_value or 1.0),
    )
    return all(abs(value / of_step - 1) < _ALIKE for value, of_step in ends)


def list_csv(found: Findings, look: Look) -> dict[str, Rows]:
    """Return the findings, without the incidents that they belong to."""
    return {"findings": found.tables["findings"]}


VIEW = View(document, csv=list_csv)
