"""The sentences of a comparison, but for its headline: what makes it doubtful, what was judged against what, and what
findings and users say of the candidate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracker.compare import coverage
from tracker.compare.collectives import notes_of_difference, notes_of_groups, roles_by_size
from tracker.compare.coverage import note_on_idle_rules, note_on_older_steps
from tracker.compare.overall import OddRun, note_on_outside_work, note_on_steps_without_time
from tracker.compare.overall_rows import group_splits, is_split
from tracker.compare.references import short_names
from tracker.compare.sections import pairing_of
from tracker.detect import words_of_limits
from tracker.profile import NO_STEP
from tracker.regressions.hosts import note_of
from tracker.regressions.sides import UserMark
from tracker.regressions.track import waiting_runs
from tracker.results import BOTH, REPEATED_COUNTERS
from tracker.results.recording import has_no_device_data
from tracker.schema.column_names import BASELINE_NAME, NAME, RULES_VERSION, RUN_ID, SETTINGS, SOURCE, STATUS
from tracker.schema.series import RUN
from tracker.store import queries
from tracker.units import counted, format_diff, format_numbers, some_of, steps_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

    from tracker.compare.collectives import Pairing
    from tracker.compare.operators import Operators
    from tracker.compare.side import LoadedSide
    from tracker.regressions.sides import InHistory, SideVerdicts
    from tracker.results import DiffOptions

_TABLES: Final = {
    coverage.OPS: "operators",
    coverage.KERNELS: "kernels",
    coverage.COLLECTIVES: "collectives",
    coverage.MEMORY: "memory of operators",
    coverage.API: "host API calls",
}
_MOST_CAPTURES: Final = 3
"""Incomplete captures of a side that are named."""
_MOST_MARKS: Final = 2
"""Marks of users that are named under a headline."""
_NO_REASON: Final = "acknowledged"
"""What stands for the reason of an ack that gives none."""
_DETAIL: Final = ("profiler_level", "record_shapes")
"""Settings of a profiler that decide which rows there are, and which columns make their keys."""


def notes_on_comparison(
    baseline: LoadedSide, candidate: LoadedSide, operators: Operators, options: DiffOptions
) -> tuple[str, ...]:
    """Return what makes a comparison doubtful: runs of a side that are no repeats, mixed hardware, other workloads,
    entries of the op map that pair nothing.
    """
    sides = (baseline, candidate)
    splits = [group_splits(*one) for one in zip(sides, roles_by_size(baseline, candidate), strict=True)]
    return (
        *notes_on_waiting_runs(sides),
        *_name_sides(sides, note_on_older_steps),
        *note_on_idle_rules(sides),
        *_name_sides(sides, _notes_on_mixed_runs),
        *_notes_on_naming_rules(baseline, candidate),
        *_name_sides(sides, _notes_on_missing_times),
        *_notes_on_missing_tables(baseline, candidate),
        *_notes_on_core_types(baseline, candidate),
        *_notes_on_paired_groups(baseline, candidate),
        *notes_of_difference(*splits),
        *notes_of_groups(sides),
        *_notes_on_paired_collectives(pairing_of(baseline, candidate, options)),
        *_notes_on_op_map(baseline, candidate, operators, options),
        *left_out(sides),
        *warnings(sides),
        *_name_sides(sides, note_on_outside_work),
        *_name_sides(sides, note_on_steps_without_time),
    )


def notes_on_waiting_runs(sides: Sequence[LoadedSide]) -> list[str]:
    """Return sentences on runs of the versions of these sides that are left out of them, since they wait for ranks."""
    notes: dict[str, None] = {}
    for side in sides:
        is_version = side.side.version and side.side.label.partition("@")[0] == side.side.version
        if not is_version and not side.side.names_branch:
            continue
        versions = {side.side.version}
        if side.side.names_branch:
            # newer ones of which all runs wait are passed over
            order = queries.order_of_versions(side.store, side.side.workload)
            versions = {version for version, place in order.items() if place >= order[side.side.version]}
        for run in waiting_runs(side.store, side.side.workload):
            if run.version in versions and run.run_id not in side.run_ids:
                notes[run.sentence] = None
    return [*notes]


def _name_sides(sides: Sequence[LoadedSide], sentences: Callable[[LoadedSide], Iterable[str]]) -> list[str]:
    """Return sentences about a side behind its name, once for both where they are the same."""
    names_of_sentence: dict[str, list[str]] = {}
    names = short_names([side.side for side in sides])
    for name, side in zip(names, sides, strict=True):
        for sentence in sentences(side):
            names_of_sentence.setdefault(sentence, []).append(name)
    return [f"{' and '.join(dict.fromkeys(names))}: {sentence}" for sentence, names in names_of_sentence.items()]


def _notes_on_mixed_runs(side: LoadedSide) -> Iterator[str]:
    """Yield what makes the runs of a side no repeats of one job."""
    for column, words in (("device", "devices"), ("configuration", "configurations")):
        values = [value for value in dict.fromkeys(side.runs.listed(column)) if value is not None]
        if len(values) > 1:
            yield f"several {words} ({', '.join(values)}): one number for them means little."
    yield from _notes_on_mixed_detail(side)


def _notes_on_mixed_detail(side: LoadedSide) -> Iterator[str]:
    """Yield which settings differ between captures of a side, so that only some of them tell rows apart."""
    settings_of_captures = [queries.settings_of(text) for text in dict.fromkeys(side.captures.listed(SETTINGS))]
    for setting in _DETAIL:
        values = sorted({settings.get(setting, "not stated") for settings in settings_of_captures})
        if len(values) > 1:
            yield (
                f"captures with {setting} {' and '.join(values)}: a row that only some of them can have counts as 0 in "
                "the others."
            )


def _notes_on_naming_rules(baseline: LoadedSide, candidate: LoadedSide) -> list[str]:
    """Return that the names of runs were made by different rules, where both sides say by which."""
    rules = [sorted({*side.runs.listed(RULES_VERSION)} - {None}) for side in (baseline, candidate)]
    if not all(rules) or len({*rules[0], *rules[1]}) == 1:
        return []
    words = " and ".join(format_numbers(numbers) for numbers in rules)
    return [f"The names and categories of the two sides were made by rules {words}: ingest the older runs again."]


def _notes_on_missing_times(side: LoadedSide) -> Iterator[str]:
    """Yield which ranks do not report where their time goes; one sentence where no profiler ran, for then no
    rank does.
    """
    settings_of_captures = [queries.settings_of(text) for text in set(side.captures.listed(SETTINGS))]
    if all(settings.get("profiler") == "off" for settings in settings_of_captures):
        yield (
            "measured without a profiler, so that it is not known where a step spends its time: a profile of each side "
            "says it."
        )
        return
    reporting = coverage.ranks_that_report(side, coverage.TIMES)
    for run_id, ranks in coverage.ranks_without(side.captures, reporting).items():
        of_run = f" of run:{run_id}" if len(side.run_ids) > 1 else ""
        is_all = len(ranks) == (side.captures.integers(RUN_ID) == run_id).sum()
        rest = "" if is_all else "; each number is of the ranks that report it"
        yield f"rank {format_numbers(ranks)}{of_run} does not report all times{rest}."


def _notes_on_missing_tables(baseline: LoadedSide, candidate: LoadedSide) -> list[str]:
    """Return which tables one side has and no rank of the other: their rows were neither added nor removed."""
    notes = []
    for side, other in ((baseline, candidate), (candidate, baseline)):
        missing = []
        for table, words in _TABLES.items():
            if coverage.reports_table(other, table) and not coverage.reports_table(side, table):
                missing.append(words)
        if missing:
            notes.append(f"Not compared, for the source of {side.side.label} does not have them: {', '.join(missing)}.")
    return notes


def _notes_on_paired_groups(baseline: LoadedSide, candidate: LoadedSide) -> list[str]:
    """Return which process groups were paired by their size alone."""
    sides = (baseline, candidate)
    return [
        f"The group of {size} ranks whose role {side.side.label} does not know is paired with {role} by its size."
        for side, roles in zip(sides, roles_by_size(*sides), strict=True)
        for size, role in sorted(roles.items())
    ]


def _notes_on_paired_collectives(pairing: Pairing) -> list[str]:
    """Return which collectives were summed up to a coarser key, so that both sides have them."""
    without_payload, without_group = pairing.dropped
    notes = []
    for kinds, words in ((without_payload, "size and type"), (without_group, "process group")):
        if kinds:
            notes.append(f"Collectives paired without their {words}, which the sides do not share: {', '.join(kinds)}.")
    return notes


def _notes_on_core_types(baseline: LoadedSide, candidate: LoadedSide) -> list[str]:
    """Return which side on an NPU does not part cube and vector work, while the other one does."""
    is_baseline_split, is_candidate_split = is_split(baseline), is_split(candidate)
    pair = {is_baseline_split, is_candidate_split}
    if pair == {None, True}:
        # the profiler of one side does not name the cores
        label = (baseline if is_baseline_split is None else candidate).side.label
        return [f"Cube and vector work of {label} is what the names of its operators and kernels say."]
    if pair != {False, True}:
        return []
    label = (baseline if is_candidate_split else candidate).side.label
    return [
        f"Kernel time of {label} is not split into cube and vector work: its chip has one kind of core or the profiler "
        "does not name them, and how long their cube works (mac_time) was not measured of all kernels."
    ]


def warnings(sides: Sequence[LoadedSide]) -> tuple[str, ...]:
    """Return what the readers of paths warned of; with several sides, of which."""
    if len(sides) == 1:
        return tuple(dict.fromkeys(sides[0].warnings))
    return tuple(_name_sides(sides, lambda side: side.warnings))


def left_out(sides: Sequence[LoadedSide]) -> tuple[str, ...]:
    """Return sentences about a choice of steps: which, and what of the captures belongs to no step and is not there."""
    if all(side.chosen_steps is None or side.step_kind for side in sides):
        return ()
    chosen = [steps_words(side.chosen_steps) for side in sides]
    if len(sides) > 1:
        chosen = [f"{chosen[0]} of the baseline", f"{chosen[1]} of the candidate"]
    sentences = [f"Chosen: {' and '.join(chosen)}."]
    parts = [side for side in sides if side.is_part]
    missing = []
    if any(len(side.query_kernel_metrics()) for side in parts):
        missing.append("kernel metrics")
    sources: set[str] = set()
    for side in parts:
        outside = queries.counters(side.store, side.run_ids, ranks=side.ranks, steps=(NO_STEP,))
        sources.update(outside.listed(SOURCE))
    sources -= set(REPEATED_COUNTERS)
    if sources:
        missing.append(f"counters of {', '.join(sorted(sources))}")
    if missing:
        sentences.append(f"Left out, for the profiler does not say in which step they are: {'; '.join(missing)}.")
    return tuple(sentences)


def _notes_on_op_map(
    baseline: LoadedSide, candidate: LoadedSide, operators: Operators, options: DiffOptions
) -> list[str]:
    """Return the entries of the op map that pair nothing."""
    if not options.op_map:
        return []
    baseline_names = set(operators.baseline_rows.listed(BASELINE_NAME))
    candidate_names = set(operators.candidate_rows.listed(NAME))
    unknown = [(name, baseline) for name in options.op_map if name not in baseline_names]
    unknown += [(name, candidate) for name in options.op_map.values() if name not in candidate_names]
    notes = [f"The op map names {name!r}, which {side.side.label} does not have." for name, side in unknown]
    return [*notes, *_notes_on_shapes_of_op_map(operators, options, {name for name, _ in unknown})]


def _notes_on_shapes_of_op_map(operators: Operators, options: DiffOptions, unknown_names: set[str]) -> list[str]:
    """Return which operators of the op map, there on both sides, are paired by no shape."""
    if options.match == "name":
        return []
    ops = operators.everything
    paired: set[tuple[str, str]] = set()
    mapped = ops.taken((ops[STATUS] == BOTH) & ops.known(BASELINE_NAME))
    for baseline_names, name in mapped.rows(BASELINE_NAME, NAME):
        # several operators of the baseline may be mapped to one
        paired.update((baseline_name, name) for baseline_name in baseline_names.split(" | "))
    unpaired = []
    for old, new in options.op_map.items():
        if (old, new) not in paired and not {old, new} & unknown_names:
            unpaired.append(f"{old} -> {new}")
    if not unpaired:
        return []
    return [f"The input shapes of {', '.join(unpaired)} (op map) never agree: --match name pairs them."]


def notes_on_incomplete_captures(sides: Sequence[LoadedSide]) -> tuple[str, ...]:
    """Return what the checks of captures (`timeline.checks`) found on each side, behind the name of the side."""
    labels = short_names([side.side for side in sides])
    said: dict[str, tuple[str, list[str]]] = {}
    for label, side in zip(labels, sides, strict=True):
        form_of_sentence = {sentence: form for form, sentence in side.partial.guesses.items()}
        for sentence in (*side.left_out, *side.partial.sentences):
            # of logs of one form a sentence is said once: the line that it names is an example
            key = form_of_sentence.get(sentence, f"{label}: {sentence}")
            said.setdefault(key, (sentence, []))[1].append(label)
    return tuple(f"{' and '.join(dict.fromkeys(own))}: {sentence}" for sentence, own in said.values())


def lacks_device_data(side: LoadedSide) -> bool:
    """Return whether some capture of a side is of a device of which its source has no event."""
    return any(has_no_device_data(text) for text in side.captures.listed(SETTINGS))


def sentences_of_judgement(
    verdicts: SideVerdicts,
    sides: tuple[LoadedSide, LoadedSide],
    counts: Mapping[str, int],
    options: DiffOptions,
    partial_tables: Set[str],
    *,
    why_step_is_not: str,
    other_work: str = "",
) -> tuple[str, ...]:
    """Return what was judged against what, what was removed from the verdicts, and which rows have none.

    `counts`: verdict -> how many operators have it; `partial_tables`: tables whose rows are not what was judged;
    `why_step_is_not`: why the step has no verdict, "" where it has; `other_work`: what of the inputs has another size.
    """
    sentences = [_sentence_on_runs(verdicts, *sides)]
    if counts:
        listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        key = "name" if options.match == "name" else "name and shapes"
        sentences.append(f"Operators by {key}: {listed}.")
    if why_step_is_not:
        sentences.append(f"The step and all that the host timed are not judged: {why_step_is_not}.")
    if other_work:
        sentences.append(f"Judged are operators with the same inputs alone; other work: {other_work}.")
    if verdicts.shift is None:
        sentences.append("Too few operators are in all runs to estimate machine-wide drift.")
    else:
        sentences.append(f"Machine-wide drift {format_diff(verdicts.shift)}, removed from the verdicts.")
    host = note_of(verdicts.host)
    if host:
        sentences.append(host)
    limits = words_of_limits(verdicts.rows)
    if limits:
        sentences.append(f"Judged by thresholds of your own: {limits}.")
    return (*sentences, *_sentences_on_partial_tables(partial_tables, options))


def _sentence_on_runs(verdicts: SideVerdicts, baseline: LoadedSide, candidate: LoadedSide) -> str:
    """Return which runs the verdicts rest on, and what so many runs can tell."""
    new_runs = candidate.side.runs
    if verdicts.base_runs is None:
        base_runs = baseline.side.runs
        words = f"Judged for this comparison alone: {counted(new_runs, 'run')} against {base_runs}"
    else:
        base_runs = len(verdicts.base_runs)
        against = f"{base_runs} of the level before"
        if base_runs:
            against += f" (run {format_numbers(sorted(verdicts.base_runs))})"
        words = f"Judged as in history and findings: {counted(new_runs, 'run')} against {against}"
    if base_runs < verdicts.limits.least_base:
        return f"{words}: {verdicts.limits.runs_needed(base_runs, new_runs)}."
    if new_runs < verdicts.limits.least_new:
        more_runs = verdicts.limits.least_new - new_runs
        return f"{words}: suspects only, {words_of_deciding_runs(more_runs, candidate.side.label)}."
    return f"{words}."


def words_of_deciding_runs(count: int, of: str) -> str:
    """Return how many more runs decide.

    >>> words_of_deciding_runs(1, "v2"), words_of_deciding_runs(2, "it")
    ('1 more run of v2 decides', '2 more runs of it decide')
    """
    verb = "decides" if count == 1 else "decide"
    return f"{counted(count, 'more run')} of {of} {verb}"


def _sentences_on_partial_tables(partial_tables: Set[str], options: DiffOptions) -> Iterator[str]:
    if "ops" in partial_tables:
        option = "--op-map"
        if options.module:
            option = "--module"
        elif options.max_kernels is not None:
            option = "--max-kernels"
        yield f"Operators are listed without verdicts: with {option} a row is not what was judged."
    if "kernels" in partial_tables:
        yield "Kernels are listed without verdicts: with --op a row is not what was judged."
    if "memory" in partial_tables and "memory" in options.only:
        option = "--match name" if options.match == "name" else "--op-map"
        yield f"Memory is listed without verdicts: with {option} a row is not what was judged."


def sentence_on_odd_run(odd: OddRun, label: str) -> str:
    """Name the run that the numbers of a side leave out.

    >>> sentence_on_odd_run(OddRun(9, 0.693, 3), "v3")
    'Run 9 of v3 stands alone, 69.3 % slower than its 3 others, and is left out.'
    """
    word = "slower" if odd.change > 0 else "faster"
    size = format_diff(abs(odd.change)).lstrip("+")
    return f"Run {odd.run_id} of {label} stands alone, {size} {word} than its {odd.others} others, and is left out."


def sentence_on_level(base_runs: Sequence[int], change: float) -> str:
    """Return what a stored verdict rests on, the level before; `change`: against that, a ratio."""
    return f"Judged against the level before (run {format_numbers(sorted(base_runs))}): {format_diff(change)}."


def sentences_on_history(history: InHistory | None, *, is_stored: bool) -> tuple[str, ...]:
    """Return how the candidate was judged when it came, and what it is back to.

    `is_stored`: the verdicts of the comparison are those of history, so that they need not be named again.
    """
    if history is None:
        return ()
    if history.is_older:
        return (f"{history.version} is the older side: name it first for what changed since.",)
    returned = (history.returned,) if history.returned else ()
    if is_stored:
        return returned
    version = f"{history.version} in its history"
    if not history.base_runs:
        return (f"{version}: nothing came before it that it could be judged against.",)
    if history.verdict is None or history.change is None:
        return (f"{version}: the step is not judged.",)
    level = f"the level before it (run {format_numbers(sorted(history.base_runs))})"
    return (f"{version}: {history.words}, {format_diff(history.change)} against {level}.", *returned)


def sentences_on_findings(verdicts: SideVerdicts | None) -> tuple[str, ...]:
    """Return what older findings say of the step of the candidate, and users of its findings."""
    if verdicts is None:
        return ()
    sentences = []
    still_of_name = {key.name: words for key, words in verdicts.still.items() if key.kind == RUN}
    for name, subject in (("step", "step"), ("e2e", "time of the whole capture")):
        if name in still_of_name:
            sentences.append(f"The {subject} is {still_of_name[name]}.")
            break
    marks = sorted(verdicts.marks, key=lambda mark: (-len(mark.names), mark.incident_id))
    sentences += [sentence_on_mark(mark) for mark in marks[:_MOST_MARKS]]
    if len(marks) > _MOST_MARKS:
        more = counted(len(marks) - _MOST_MARKS, "more word")
        sentences.append(f"{more} of users: tracker findings lists them.")
    return tuple(sentences)


def sentence_on_mark(mark: UserMark) -> str:
    """Return how a user marked findings.

    >>> mark = UserMark(3, "expect", "ann", "float64", ("mm", "add", "pow"), is_whole=False, leaves_step=True)
    >>> sentence_on_mark(mark)
    'ann accepted mm and 2 more of I-3 as intended: float64. The step still counts.'
    """
    what = f"I-{mark.incident_id}"
    if not mark.is_whole:
        what = f"{some_of(list(mark.names), most=1)} of {what}"
    action = {
        "ack": f"acknowledged {what}",
        "expect": f"accepted {what} as intended",
        "mute": f"muted {what}",
        "invalid": f"marked {what} as a false positive",
    }[mark.action]
    reason = "" if mark.reason == _NO_REASON else f": {mark.reason}"
    excuses = mark.action in ("expect", "invalid")
    counts = " The step still counts." if mark.leaves_step and excuses else ""
    return f"{mark.who} {action}{reason}.{counts}"
