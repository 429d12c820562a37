"""What an ingest means: the last lines of `tracker ingest`, and the commands that it proposes.

Runs of one workload and device have a sentence. Those of several have a line each, the worst first.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tracker.cli.output import next_lines
from tracker.cli.versions import diff_of
from tracker.profile.branches import branch_of
from tracker.reports.commands import command
from tracker.units import counted, format_diff, level_words, step_word

if TYPE_CHECKING:
    from tracker.intake import IngestResult
    from tracker.regressions.track import TrackNames, TrackRuns
    from tracker.results.findings import ListedFinding
    from tracker.store import Store
    from tracker.store.findings import StoredFinding
    from tracker.store.tracks import TrackKey

_MOST_CONFIGURATIONS: Final = 3
"""Sentences on configurations of one workload; more are counted."""
_MOST_LINES: Final = 10
"""Lines on workloads and devices; more are counted."""
_KINDS: Final = ("slower", "with new findings", "suspect", "not judged", "without a version before", "faster")
"""What a track can come out as, the worst first, in the words of a count; behind them what changed nothing."""
_CONFIRMS: Final = "tracker ingest --again --input-format training_log"
_QUIET: Final = {"UNCHANGED": "unchanged", "BELOW_LIMIT": "too small to matter", "NOT_CONFIRMED": "as before"}
"""Verdicts of a step that need no line where there are others, in the words of a count."""


class TrackChange(Struct, frozen=True):
    """What an ingest means for the step of a track. `names`: of the track; `version`: the newest that came in; `kind`:
    of `_KINDS` or `_QUIET`; `who`: the version with its runs, and `what`: the rest of the sentence; `size`: of the
    change, a ratio.
    """

    key: TrackKey
    names: TrackNames
    version: str
    kind: str
    who: str
    what: str
    size: float = 0.0

    @property
    def sentence(self) -> str:
        """The change as a sentence."""
        return f"{self.who}{self.what}"

    @property
    def place(self) -> tuple[str, str]:
        """Its workload and device."""
        return self.names.workload, self.names.device


class Standing(Struct, frozen=True):
    """What a database says before an ingest: the findings of regressions that have recovered, and the runs that wait
    for ranks.
    """

    recovered: frozenset[int] = frozenset()
    waiting: frozenset[int] = frozenset()


def standing(store: Store) -> Standing:
    """Return what an ingest may change."""
    from tracker.regressions.track import waiting_runs
    from tracker.store import queries

    rows = queries.findings(store)
    recovered = [row.finding_id for row in rows if row.base_state == "recovered"]
    return Standing(frozenset(recovered), frozenset(run.run_id for run in waiting_runs(store)))


def meaning(store: Store, results: Sequence[IngestResult], before: Standing | None = None) -> str:
    """Return the last lines: how the step of each track changed, new and recovered findings, and the next commands.

    `before`: what the database said before the ingest; None: nothing.
    """
    with store.reading():
        return _meaning_now(store, results, before or Standing())


def _meaning_now(store: Store, results: Sequence[IngestResult], standing_before: Standing) -> str:
    before = standing_before.recovered
    changed = [result for result in results if result.created or result.joined or result.renewed]
    counts = {
        "{} new.": sum(result.created for result in results),
        "Ranks added to {}.": sum(result.joined for result in results),
        "{} with another cycle now.": sum(result.renewed for result in results),
        "Details of {} restored.": sum(result.restored for result in results),
        "{} already stored, unchanged.": sum(result.already for result in results),
    }
    parts = [
        text.format(counted(count, "run")) for text, count in counts.items() if count and len(changed) < len(results)
    ]
    changes = _step_changes(store, changed) if changed else []
    waiting = _lines_on_waiting_runs(store, changed, standing_before)
    if len({one.place for one in changes}) > 1:
        lines, proposed = _lines_of_places(store, changes, changed, before)
        above = [" ".join(parts)] if parts else []
        last = proposed or [f"tracker show run:{results[-1].run_id}"]
        return "\n".join([*above, *lines, *waiting]) + next_lines(*last)
    sentences = _sentences_of_configurations(changes)
    parts += ["\n".join(sentences)] if sentences else []
    found, next_command = _findings(store, changed, before)
    if next_command is None and (changes or not waiting):
        next_command = _next(store, results)
    next_command = next_command or f"tracker show run:{results[-1].run_id}"
    text = " ".join([*parts, *found])
    return "\n".join(filter(None, [text, *waiting])) + next_lines(next_command)


def _lines_on_waiting_runs(store: Store, results: Sequence[IngestResult], before: Standing) -> list[str]:
    """Return a line on each run that waits for ranks: of these, or of those that were whole before their ingest, since
    a rank that comes late shows that a run should have more. The first are written out.
    """
    from tracker.regressions.track import waiting_runs

    added = {result.run_id for result in results}
    lines = []
    for run in waiting_runs(store):
        if run.run_id in added or run.run_id not in before.waiting:
            lines.append(run.sentence)
    more = len(lines) - _MOST_LINES
    return lines[:_MOST_LINES] + ([f"{counted(more, 'more run')} with fewer ranks than expected."] if more > 0 else [])


def _step_changes(store: Store, results: Sequence[IngestResult]) -> list[TrackChange]:
    """Return what these runs mean for the step of each track: of its newest version among them."""
    from tracker.regressions import judgement
    from tracker.regressions.track import named_tracks, read_tracks

    added = {result.run_id for result in results}
    names = named_tracks(store, branches=True)
    tracks = read_tracks(store, {key: names[key] for key in judgement.tracks_of(store, sorted(added)) if key in names})
    places = Counter((track.names.workload, track.names.device) for track in tracks)
    judged_keys = {track.key for track in tracks}
    ran_before = {of_track.workload for key, of_track in names.items() if key not in judged_keys}
    changes = []
    for track in tracks:
        versions = [run.version_id for run in track.runs if run.run_id in added]
        if versions:
            is_one_of_several = places[track.names.workload, track.names.device] > 1
            where = track.names.configuration if is_one_of_several else ""
            newest = max(versions, key=track.order.index)
            changes.append(_step_change(store, track, newest, where, has_others=track.names.workload in ran_before))
    return changes


def _step_change(store: Store, track: TrackRuns, version: int, where: str, *, has_others: bool) -> TrackChange:
    """Return what a version of a track means for its step: `v08 (3 runs) is 23.8 % slower than v01.`

    `where`: the configuration, where it says which track of the workload this is.
    `has_others`: whether the workload ran before with another configuration or device.
    """
    from tracker.regressions.track import find_other_version, lost_records
    from tracker.regressions.usual_runs import list_awaited_runs
    from tracker.reports.cells import deciding_runs
    from tracker.results.verdicts import GLOSSES, SO_FAR, words_of_rounding

    label, runs = track.labels[version], len(track.runs_of(version))
    awaited = list_awaited_runs(
        track.runs, look_back=track.thresholds.look_back, settle_ns=store.runs_settle_ns, now_ns=time.time_ns()
    ).get(version)
    of_runs = f"{runs} of the usual {awaited.usual} runs {SO_FAR}" if awaited else counted(runs, "run")
    words = ", ".join(filter(None, (of_runs, where)))
    row = track.judged.get(version)
    against = {int(number) for number in (row.base_runs if row else "").split()}
    level = level_words([run.version for run in track.runs if run.run_id in against])
    base = level or track.before(version)
    verdict = (row and row.step_verdict) or "not judged"
    limits = track.thresholds
    needed = deciding_runs(label, max(0, limits.least_new - runs), max(0, limits.least_base - len(against)))
    first, last = (row.step_before_ns, row.step_after_ns) if row else (None, None)

    def made(kind: str, what: str, size: float = 0.0) -> TrackChange:
        return TrackChange(track.key, track.names, label, kind, f"{label} ({words})", what, size)

    if base is None:
        here = " with this configuration and device" if has_others else ""
        return made("without a version before", f" is the first version of {track.names.workload}{here}.")
    if not (first and last):
        with store.connect() as connection:
            other = find_other_version(connection, track, version)
        if other is not None:
            inputs = other.inputs.words
            return made("not judged", f" did other work than {other.than}: {inputs}. Its step is not compared.")
        guessed = _guessed_times(store, track, version)
        if guessed:
            # no further run makes a guess sure
            why = f"{guessed} are a guess, which {_CONFIRMS} confirms"
            return made("not judged", f" is not compared with {base}: {why}.")
        why = f"too few runs{needed and '; '}{needed}"
        if not needed and lost_records(store, track.runs_of(version)):
            why = "records of its runs are lost or cannot be"
        return made("not judged", f" is not compared with {base} yet: {why}.")
    size = last / first - 1
    step_kind = row.step_kind if row else ""
    of_kind = f" in {step_word(step_kind)}s" if step_kind else ""
    if verdict in ("REGRESSED", "IMPROVED"):
        kind = "slower" if verdict == "REGRESSED" else "faster"
        direction = "slower" if size > 0 else "faster"
        percent = f"{abs(size):.1%}".replace("%", " %")
        cause = _maybe_cause(store, track, version)
        or_host = f", or on {cause}" if cause else ""
        return made(kind, f" is {percent} {direction} than {base}{of_kind}{or_host}.", size)
    why = f": {needed}" if needed else f" ({GLOSSES[verdict]})" if verdict in GLOSSES else ""
    if verdict == "INCONCLUSIVE" and not needed:
        rounding = _rounding_of_step(store, track, version, against)
        why = f" ({words_of_rounding(rounding)})" if rounding else why
    kind = "suspect" if verdict == "SUSPECT" else _QUIET.get(verdict, "not judged")
    return made(kind, f": {step_word(step_kind)} {format_diff(size)} against {base}, {verdict}{why}.", size)


def _rounding_of_step(store: Store, track: TrackRuns, version: int, against: Collection[int]) -> float:
    """Return how far the step of a version may be from what its source printed, as a part of it; 0 where that is not
    why its step has no verdict. `against`: the runs that it was judged against.
    """
    from tracker.regressions.rounding import find_rounding
    from tracker.regressions.track import recorded_runs
    from tracker.results.verdicts import ROUNDING_REASON
    from tracker.schema.series import STEP_KEY
    from tracker.store import findings as stored_findings

    before = [run for run in track.runs if run.run_id in against]
    with store.connect() as connection:
        verdicts = stored_findings.read_verdicts(connection, track.key, version, kind=STEP_KEY.kind)
        of_step = [row for row in verdicts if (row.metric, row.name) == (STEP_KEY.metric, STEP_KEY.name)]
        if not any(row.reason == ROUNDING_REASON for row in of_step):
            return 0.0
        sides = (recorded_runs(connection, runs) for runs in (before, track.runs_of(version)))
        return find_rounding(STEP_KEY, *sides)


def _guessed_times(store: Store, track: TrackRuns, version: int) -> str:
    """Return whose times are a guess, those of a version or of the runs before it; "" for none."""
    from tracker.regressions.track import have_guessed_times

    if have_guessed_times(store, track.runs_of(version)):
        return "its times"
    before = track.runs_before(version)[-track.thresholds.look_back :]
    return "the times before" if have_guessed_times(store, before) else ""


def _maybe_cause(store: Store, track: TrackRuns, version: int) -> str:
    """Return what may be the cause of a change of a version beside its code, such as another host; "" for nothing."""
    from tracker.results.verdicts import MAYBE_CAUSES
    from tracker.store import findings as stored_findings

    with store.connect() as connection:
        rows = stored_findings.read_findings(connection, track.key)
    causes = [MAYBE_CAUSES[row.how] for row in rows if row.how in MAYBE_CAUSES and row.first_version_id == version]
    return causes[0] if causes else ""


def _sentences_of_configurations(changes: Sequence[TrackChange]) -> list[str]:
    """Return the sentences on the configurations of one workload and device, of which the first are written out."""
    sentences = []
    for one in changes:
        # a first version is that of all configurations
        who = one.version if one.kind == "without a version before" and len(changes) > 1 else one.who
        sentences.append(f"{who}{one.what}")
    sentences = list(dict.fromkeys(sentences))
    more = len(sentences) - _MOST_CONFIGURATIONS
    return sentences[:_MOST_CONFIGURATIONS] + ([f"{counted(more, 'more configuration')}."] if more > 0 else [])


def _lines_of_places(
    store: Store, changes: Sequence[TrackChange], changed: Sequence[IngestResult], before: Collection[int]
) -> tuple[list[str], list[str]]:
    """Return a line per track of several workloads or devices, the worst first, and the commands that lead to it."""
    found = _findings_of_tracks(store, [one.key for one in changes], changed, before)
    urgent = {one.key: _kind_with_findings(one, found) for one in changes}
    ordered = sorted(changes, key=lambda one: (_place_of_kind(urgent[one.key]), -abs(one.size)))
    loud = [one for one in ordered if urgent[one.key] in _KINDS]
    shown = loud[:_MOST_LINES] or ordered[:1]
    rest = ordered[len(shown) :]
    if len(rest) == 1:
        # to count one takes as many words as to say it
        shown, rest = ordered, []
    devices = Counter(workload for workload, _ in {one.place for one in changes})
    lines = []
    for one in shown:
        workload, device = one.place
        who = f"{workload} on {device}" if devices[workload] > 1 else workload
        is_first = one.kind == "without a version before"
        sentence = f"{one.who} is its first version." if is_first else one.sentence
        lines.append(" ".join([f"{who}: {sentence}", *found[one.key].sentences]))
    if rest:
        kinds = Counter(urgent[one.key] for one in rest)
        words = [kind if len(kinds) == 1 else f"{count:,} {kind}" for kind, count in kinds.items()]
        lines.append(f"{len(rest):,} more: {', '.join(words)}.")
    return lines, _commands_of_places(store, ordered, found, changed)


def _place_of_kind(kind: str) -> int:
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS)


class _TrackFindings(Struct):
    """The findings of a track that an ingest decided: the new ones, and how many recovered."""

    new: list[ListedFinding]
    recovered: int = 0

    @property
    def sentences(self) -> list[str]:
        found = [f"{counted(len(self.new), 'new finding')}."] if self.new else []
        return found + ([f"{counted(self.recovered, 'finding')} recovered."] if self.recovered else [])


def _kind_with_findings(one: TrackChange, found: Mapping[TrackKey, _TrackFindings]) -> str:
    """Return the kind of a change: a step as before can have an operator that became slower."""
    return "with new findings" if found[one.key].new and one.kind != "slower" else one.kind


def _findings_of_tracks(
    store: Store, track_keys: Sequence[TrackKey], changed: Sequence[IngestResult], before: Collection[int]
) -> dict[TrackKey, _TrackFindings]:
    """Return the findings of each track that these runs decided, as `_findings` counts them for one."""
    from tracker.store import queries

    found = {key: _TrackFindings([]) for key in track_keys}
    rows = {row.finding_id: row for row in queries.findings(store)}
    is_decided = _decided_by(changed)
    workloads = [row.workload for row in rows.values() if row.direction == "regression" and is_decided(row)]
    for workload in dict.fromkeys(workloads):
        _, listed = _listed(store, {workload}, only_new=True)
        new = [row for row in listed if row.is_new and is_decided(row)]
        by_track: dict[TrackKey, list[ListedFinding]] = {}
        for row in new:
            if row.finding_id is not None:
                by_track.setdefault(rows[row.finding_id].track_key, []).append(row)
        for key, own in by_track.items():
            if key in found and any(row.direction == "regression" for row in own):
                found[key].new = own
    for stored in rows.values():
        is_over = stored.base_state == "recovered" and stored.finding_id not in before
        if is_over and stored.track_key in found:
            found[stored.track_key].recovered += 1
    return found


def _commands_of_places(
    store: Store, ordered: Sequence[TrackChange], found: Mapping[TrackKey, _TrackFindings],
    changed: Sequence[IngestResult],
) -> list[str]:  # fmt: skip
    """Return what leads to the worst track: its findings, else its diff; and to all of them."""
    with_new = [one for one in ordered if found[one.key].new]
    if with_new:
        worst = with_new[0]
        workload = worst.names.workload
        own = [row for one in with_new if one.names.workload == workload for row in found[one.key].new]
        versions = {row.version for row in own}
        here = len(versions) == 1 and versions <= {result.version for result in changed}
        which = ("--version", *versions) if here else ("--new",)
        # those of a branch are listed only where it is named
        others = [one for one in with_new if one.names.workload != workload and not branch_of(one.names.workload)]
        commands = [command("tracker", "findings", *which, "--workload", workload)]
        return commands + (["tracker findings --new"] if others else [])
    over = list(dict.fromkeys(one.names.workload for one in ordered if found[one.key].recovered))
    workload_of_all = ("--workload", over[0]) if len(over) == 1 else ()
    if over:
        return [command("tracker", "findings", "--state", "recovered", *workload_of_all)]
    for workload in dict.fromkeys(one.names.workload for one in ordered):
        proposed = _next(store, [result for result in changed if result.workload == workload])
        if proposed:
            return [proposed, "tracker board"]
    return []


def _decided_by(results: Sequence[IngestResult]) -> Callable[[ListedFinding | StoredFinding], bool]:
    """Return whether a finding was decided by the runs of `results`."""
    added = {str(result.run_id) for result in results}

    def is_decided(row: ListedFinding | StoredFinding) -> bool:
        return not added.isdisjoint(row.candidate_runs.split())

    return is_decided


def _findings(store: Store, changed: Sequence[IngestResult], before: Collection[int]) -> tuple[list[str], str | None]:
    """How many findings these runs decided, and how many have recovered since; and the command that lists as many: of
    new regressions, else of what recovered.
    """
    from tracker.store import queries

    rows, is_decided = queries.findings(store), _decided_by(changed)
    decided = [row for row in rows if row.direction == "regression" and is_decided(row)]
    over = {row.finding_id: row for row in rows if row.base_state == "recovered" and row.finding_id not in before}
    sentences, proposed = [], None
    if decided:
        where, listed = _listed(store, {row.workload for row in decided}, only_new=True)
        new = [row for row in listed if row.is_new and is_decided(row)]
        if any(row.direction == "regression" for row in new):
            sentences.append(f"{counted(len(new), 'new finding')}.")
            versions = {row.version for row in new}
            here = len(versions) == 1 and where and versions <= {result.version for result in changed}
            proposed = command("tracker", "findings", *(("--version", *versions) if here else ("--new",)), *where)
    if over:
        where, listed = _listed(store, {row.workload for row in over.values()}, states=("recovered",))
        own = [row for row in listed if row.finding_id in over]
        in_all = f" ({len(listed)} in all)" if len(listed) > len(own) else ""
        if own:
            sentences.append(f"{counted(len(own), 'finding')} recovered{in_all}.")
            proposed = proposed or command("tracker", "findings", "--state", "recovered", *where)
    return sentences, proposed


def _listed(store: Store, workloads: Collection[str], **chosen: Any) -> tuple[list[str], Sequence[ListedFinding]]:
    """`--workload`, where there is one of `workloads`, and what `tracker findings` lists with that and `chosen`."""
    from tracker.regressions.inbox import findings
    from tracker.results import FindingsOptions

    workload = next(iter(workloads)) if len(workloads) == 1 else None
    listed = findings(store, options=FindingsOptions(workload=workload, **chosen)).rows.findings
    return ["--workload", workload] if workload else [], listed


def _next(store: Store, results: Sequence[IngestResult]) -> str | None:
    """The log of training logs, else a diff of the newest version that came in; None where nothing can be compared."""
    workloads = {result.workload for result in results}
    logs = all(result.formats == ("training_log",) for result in results)
    if logs and len({result.version for result in results}) > 1 and len(workloads) == 1:
        return command("tracker", "log", "--workload", workloads.pop())
    if not results or all(result.already for result in results):
        return None
    last = results[-1].workload
    return diff_of(store, last, among={result.version for result in results if result.workload == last})
