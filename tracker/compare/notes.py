"""What makes a comparison doubtful, in sentences for the reader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracker.compare import coverage
from tracker.compare.collectives import notes_of_difference, notes_of_groups, roles_by_size
from tracker.compare.coverage import note_on_older_steps
from tracker.compare.overall import note_on_outside_work, note_on_slow_steps, note_on_steps_without_time
from tracker.compare.overall_rows import group_splits, is_split
from tracker.compare.references import short_labels
from tracker.compare.sections import pairing_of
from tracker.profile import NO_STEP
from tracker.results import BOTH, REPEATED_COUNTERS
from tracker.store import queries
from tracker.units import format_numbers, steps_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tracker.compare.collectives import Pairing
    from tracker.compare.operators import Operators
    from tracker.compare.side import LoadedSide
    from tracker.results import DiffOptions

_TABLES: Final = {
    coverage.OPS: "operators",
    coverage.KERNELS: "kernels",
    coverage.COLLECTIVES: "collectives",
    coverage.MEMORY: "memory of operators",
    coverage.API: "host API calls",
}
_DETAIL: Final = ("profiler_level", "record_shapes")
"""Settings of a profiler that decide which rows there are, and by what they are told apart."""


def notes(baseline: LoadedSide, candidate: LoadedSide, operators: Operators, options: DiffOptions) -> tuple[str, ...]:
    """Return sentences: runs of a side that are no repeats, mixed hardware, other workloads, idle entries of the op
    map.
    """
    sides = (baseline, candidate)
    found = _by_side(sides, _of_runs)
    found += [*_other_rules(baseline, candidate), *_by_side(sides, _unknown), *_not_compared(baseline, candidate)]
    found += [*_not_split(baseline, candidate), *_paired_groups(baseline, candidate)]
    splits = [group_splits(*one) for one in zip(sides, roles_by_size(baseline, candidate), strict=True)]
    found += [*notes_of_difference(*splits), *notes_of_groups(sides)]
    found += _paired_collectives(pairing_of(baseline, candidate, options))
    found += [*_idle_entries(baseline, candidate, operators, options), *left_out(sides), *warnings(sides)]
    return (
        *_by_side(sides, note_on_older_steps),
        *found,
        *_by_side(sides, note_on_outside_work),
        *_by_side(sides, note_on_steps_without_time),
        *_by_side(sides, note_on_slow_steps),
    )


def _by_side(sides: Sequence[LoadedSide], sentences: Callable[[LoadedSide], Iterable[str]]) -> list[str]:
    """Return sentences about a side behind its name, once for both where they are the same."""
    whose: dict[str, list[str]] = {}
    names = short_labels([side.side.label for side in sides])
    for name, side in zip(names, sides, strict=True):
        for sentence in sentences(side):
            whose.setdefault(sentence, []).append(name)
    return [f"{' and '.join(dict.fromkeys(labels))}: {sentence}" for sentence, labels in whose.items()]


def _of_runs(side: LoadedSide) -> Iterator[str]:
    """Yield what makes the runs of a side no repeats of one job."""
    for column, words in (("device", "devices"), ("configuration", "configurations")):
        values = [value for value in dict.fromkeys(side.runs.listed(column)) if value is not None]
        if len(values) > 1:
            yield f"several {words} ({', '.join(values)}): one number for them means little."
    yield from _mixed_detail(side)


def _mixed_detail(side: LoadedSide) -> Iterator[str]:
    """That captures of a side were recorded in more and in less detail: what only some of them can tell apart."""
    known = [queries.settings_of(text) for text in dict.fromkeys(side.captures.listed("settings"))]
    for setting in _DETAIL:
        values = sorted({settings.get(setting, "not stated") for settings in known})
        if len(values) > 1:
            yield (
                f"captures with {setting} {' and '.join(values)}: a row that only some of them can have counts as 0 in "
                "the others."
            )


def _other_rules(baseline: LoadedSide, candidate: LoadedSide) -> list[str]:
    """That the names of runs were made by different rules, where both sides say by which."""
    rules = [sorted({*side.runs.listed("rules_version")} - {None}) for side in (baseline, candidate)]
    if not all(rules) or len({*rules[0], *rules[1]}) == 1:
        return []
    words = " and ".join(format_numbers(numbers) for numbers in rules)
    return [f"The names and categories of the two sides were made by rules {words}: ingest the older runs again."]


def _unknown(side: LoadedSide) -> Iterator[str]:
    """Yield which ranks do not report where their time goes; one sentence where no profiler ran, for then no
    rank does.
    """
    known = [queries.settings_of(text) for text in set(side.captures.listed("settings"))]
    if all(settings.get("profiler") == "off" for settings in known):
        yield (
            "measured without a profiler, so that it is not known where a step spends its time: a profile of each side "
            "says it."
        )
        return
    for run_id, ranks in coverage.ranks_without(
        side.captures, coverage.ranks_that_report(side, coverage.TIMES)
    ).items():
        of_run = f" of run:{run_id}" if len(side.run_ids) > 1 else ""
        is_all = len(ranks) == (side.captures.integers("run_id") == run_id).sum()
        rest = "" if is_all else "; each number is of the ranks that report it"
        yield f"rank {format_numbers(ranks)}{of_run} does not report all times{rest}."


def _not_compared(baseline: LoadedSide, candidate: LoadedSide) -> list[str]:
    """Return which tables one side has and no rank of the other: their rows were neither added nor removed."""
    found = []
    for side, other in ((baseline, candidate), (candidate, baseline)):
        lacking = [
            words
            for table, words in _TABLES.items()
            if coverage.reports_table(other, table) and not coverage.reports_table(side, table)
        ]
        if lacking:
            found.append(f"Not compared, for the source of {side.side.label} does not have them: {', '.join(lacking)}.")
    return found


def _paired_groups(baseline: LoadedSide, candidate: LoadedSide) -> list[str]:
    """Return which process groups were paired by their size alone."""
    sides = (baseline, candidate)
    return [
        f"The group of {size} ranks whose role {side.side.label} does not know is paired with {role} by its size."
        for side, roles in zip(sides, roles_by_size(*sides), strict=True)
        for size, role in sorted(roles.items())
    ]


def _paired_collectives(pairing: Pairing) -> list[str]:
    """Return which collectives were summed up to a coarser key, so that both sides have them."""
    payload, group = pairing.dropped
    found = []
    for kinds, words in ((payload, "size and type"), (group, "process group")):
        if kinds:
            found.append(f"Collectives paired without their {words}, which the sides do not share: {', '.join(kinds)}.")
    return found


def _not_split(baseline: LoadedSide, candidate: LoadedSide) -> list[str]:
    """Return which side on an NPU does not part cube and vector work, while the other one does."""
    split = [is_split(side) for side in (baseline, candidate)]
    if sorted(map(str, split)) == ["None", "True"]:
        label = (baseline if split[0] is None else candidate).side.label
        return [f"Cube and vector work of {label} is what the names of its operators and kernels say."]
    if split not in ([True, False], [False, True]):
        return []
    label = (baseline if split[1] else candidate).side.label
    return [
        f"Kernel time of {label} is not split into cube and vector work: its chip has one kind of core or the profiler "
        "does not name them, and how long their cube works (mac_time) was not measured of all kernels."
    ]


def warnings(sides: Sequence[LoadedSide]) -> tuple[str, ...]:
    """Return what the readers of paths warned of; with several sides, of which."""
    if len(sides) == 1:
        return tuple(dict.fromkeys(sides[0].warnings))
    return tuple(_by_side(sides, lambda side: side.warnings))


def left_out(sides: Sequence[LoadedSide]) -> tuple[str, ...]:
    """Return sentences about a choice of steps: which, and what of the captures belongs to no step and is not there."""
    if all(side.chosen_steps is None for side in sides):
        return ()
    words = [steps_words(side.chosen_steps) for side in sides]
    whose = [f"{words[0]} of the baseline", f"{words[1]} of the candidate"] if len(words) > 1 else words
    found = [f"Chosen: {' and '.join(whose)}."]
    parts = [side for side in sides if side.is_part]
    lacking = []
    if any(len(side.query_kernel_metrics()) for side in parts):
        lacking.append("kernel metrics")
    without = set()
    for side in parts:
        counted = queries.counters(side.store, side.run_ids, ranks=side.ranks, steps=(NO_STEP,))
        without.update(set(counted.listed("source")) - set(REPEATED_COUNTERS))
    if without:
        lacking.append(f"counters of {', '.join(sorted(without))}")
    if lacking:
        found.append(f"Left out, for the profiler does not say in which step they are: {'; '.join(lacking)}.")
    return tuple(found)


def _idle_entries(baseline: LoadedSide, candidate: LoadedSide, operators: Operators, options: DiffOptions) -> list[str]:
    """Return the entries of the op map that pair nothing."""
    if not options.op_map:
        return []
    known = {
        "baseline": set(operators.baseline_rows.listed("baseline_name")),
        "candidate": set(operators.candidate_rows.listed("name")),
    }
    lacking = [(old, "baseline", baseline) for old in options.op_map if old not in known["baseline"]]
    lacking += [(new, "candidate", candidate) for new in options.op_map.values() if new not in known["candidate"]]
    idle = [f"The op map names {name!r}, which {side.side.label} does not have." for name, _, side in lacking]
    return [*idle, *_never_of_one_shape(operators, options, {name for name, _, _ in lacking})]


def _never_of_one_shape(operators: Operators, options: DiffOptions, lacking: set[str]) -> list[str]:
    """Return which ops of the op map, there on both sides, are paired by no shape."""
    ops = operators.everything
    pairs = ops.taken((ops["status"] == BOTH) & ops.known("baseline_name")).rows("baseline_name", "name")
    found = {(old, new) for names, new in pairs for old in names.split(" | ")}
    alone = [
        f"{old} -> {new}" for old, new in options.op_map.items() if (old, new) not in found and not {old, new} & lacking
    ]
    if not alone or options.match == "name":
        return []
    return [f"The input shapes of {', '.join(alone)} (op map) never agree: --match name pairs them."]
