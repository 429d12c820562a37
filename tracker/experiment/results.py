"""What an experiment says: its decision in words, its pairs, the operators it decided, and the diff of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracker import compare
from tracker.columns import F64, Columns, objects
from tracker.detect.statistics import median
from tracker.errors import UsageError
from tracker.experiment.decide import PAIRS_WITHOUT_HISTORY, Decision, decide, expected_pairs_left
from tracker.experiment.decide_operators import decide_operators
from tracker.experiment.measuring import WALL, Measured, MeasuredPair, list_groups_of_history, list_pairs, log_ratios_of
from tracker.experiment.places import folder_of, is_running
from tracker.hooks import environment
from tracker.profile.branches import main_of
from tracker.profile.experiments import BASELINE, CANDIDATE, SIDES
from tracker.results import Diff, DiffOptions
from tracker.results.experiments import (
    Experiment,
    ExperimentChange,
    ExperimentOperator,
    ExperimentPair,
    ExperimentRows,
    ListedExperiment,
)
from tracker.results.machine_state import marks_of_machine
from tracker.results.recording import are_guesses
from tracker.schema.column_names import KEY, METRIC, SETTINGS
from tracker.store import Store, queries
from tracker.store import experiments as stored
from tracker.store import tracks as stored_tracks
from tracker.store.experiments import StoredExperiment
from tracker.table import is_among
from tracker.units import counted, format_diff

_ALIKE: Final = 0.005
"""Changes that differ by less are the same on a screen."""
_KEYS_OF_COMMIT: Final = ("commit", "git_commit", "git_dirty")
_BROKEN_OFF: Final = "broken off"
"""The state of an experiment that was running, and that no process runs any more."""
_VERDICTS: Final = {"slower": "REGRESSED", "faster": "IMPROVED", "no difference": "UNCHANGED", "": "INCONCLUSIVE"}
"""Answer of an experiment -> the verdict of its step."""
_OPERATOR: Final = "op_name"
"""The kind of series that is an operator with all its shapes."""


class KnownOfRuns(Struct, frozen=True):
    """What is stored of the runs of an experiment: `measure`: how their steps are measured, None before the warm-up;
    `is_own_code`: each side is known to have run its own code; `variables`: names of what else differs between them;
    `is_by_command`: their command lines differ.
    """

    measure: Measured | None
    is_own_code: bool
    variables: tuple[str, ...] = ()
    is_by_command: bool = False


def describe(decision: Decision) -> str:
    """Return what is known after a pair, in a line."""
    change = ExperimentChange(
        decision.word, decision.change, decision.low, decision.high, decision.limit, 2 * decision.pairs
    )
    end = f"decided: {decision.word}" if decision.word else "not decided yet"
    return f"candidate is {change.words}; {counted(2 * decision.pairs, 'run')}, {end}"


def list_experiments(store: Store) -> list[ListedExperiment]:
    """Return all experiments, the newest first."""
    return [_listed(store, one) for one in reversed(stored.read_experiments(store))]


def _listed(store: Store, experiment: StoredExperiment) -> ListedExperiment:
    runs = stored.list_runs(store, experiment.experiment_id)
    values = {name: getattr(experiment, name) for name in ListedExperiment.__struct_fields__ if name != "workload"}
    is_here = experiment.host == environment.host()
    if experiment.state == stored.RUNNING and is_here and not is_running(experiment):
        values["state"] = _BROKEN_OFF
    return ListedExperiment(workload=main_of(runs[0].workload) if runs else "", **values)


def result_of(store: Store, experiment: StoredExperiment, known: KnownOfRuns) -> Experiment:
    """Return an experiment as it stands, with the diff of its runs."""
    listed = _listed(store, experiment)
    pairs = [] if known.measure is None else list_pairs(store, experiment.experiment_id, known.measure)
    remarks = _list_remarks(store, experiment, known, pairs)
    if not pairs or known.measure is None:
        return Experiment(listed, ExperimentRows(), remarks=tuple(remarks))
    decision = decide(log_ratios_of(pairs), limit=experiment.limit_ratio, noise_sd=experiment.noise_sd)
    rows = ExperimentRows(
        pairs=tuple(_list_pairs(store, pairs)),
        decided_operators=tuple(_list_operators(store, pairs, known.measure)),
    )
    undecided = [] if experiment.outcome else _explain_undecided(decision)
    remarks = [*undecided, *_remark_on_machine(rows.pairs), *remarks]
    diff = _compare(store, experiment, known.measure, rows.decided_operators)
    if isinstance(diff, str):
        remarks.append(f"Its runs have no diff: {diff}.")
        return Experiment(listed, rows, bounded=decision.bounded, remarks=tuple(remarks))
    remarks += _remark_on_means(decision, diff)
    return Experiment(listed, rows, bounded=decision.bounded, remarks=tuple(remarks), diff=diff)


def _explain_undecided(decision: Decision) -> list[str]:
    """Return why the pairs do not decide, and what would; nothing for a decision."""
    if decision.word:
        return []
    if decision.noise_sd is None:
        more = counted(2 * (PAIRS_WITHOUT_HISTORY - decision.pairs), "more run")
        return [f"No run before says how noisy the step is: nothing is decided before {more}."]
    noise = f"pairs differ by {100 * decision.noise_sd:.1f} % (standard deviation)"
    left = 2 * expected_pairs_left(decision)
    if not left:
        return [f"Too noisy for a decision: {noise}."]
    return [f"Too noisy so far: {noise}; about {counted(left, 'more run')} to expect."]


def _remark_on_means(decision: Decision, diff: Diff) -> list[str]:
    """Return that the tables have another number than the headline, where they do."""
    before, after = diff.explanation.baseline_ns, diff.explanation.candidate_ns
    if not before or not after or abs(after / before - 1 - decision.change) < _ALIKE:
        return []
    change = format_diff(after / before - 1)
    return [f"The headline is the median of the pairs; the tables are means of each side, whatever pair: {change}."]


def _list_pairs(store: Store, pairs: Sequence[MeasuredPair]) -> list[ExperimentPair]:
    run_ids = [run_id for pair in pairs for run_id in (pair.baseline_run, pair.candidate_run)]
    with store.connect() as connection:
        machines = stored_tracks.read_machines(connection, run_ids)
    words = {run_id: ", ".join(marks_of_machine(machines.get(run_id, {}))) for run_id in run_ids}
    found = []
    for pair in pairs:
        row = ExperimentPair(
            pair=pair.pair,
            baseline_run=pair.baseline_run,
            candidate_run=pair.candidate_run,
            baseline_ns=pair.baseline_ns,
            candidate_ns=pair.candidate_ns,
            change_ratio=pair.candidate_ns / pair.baseline_ns - 1,
            baseline_machine=words[pair.baseline_run],
            candidate_machine=words[pair.candidate_run],
        )
        found.append(row)
    return found


def _list_operators(store: Store, pairs: Sequence[MeasuredPair], measure: Measured) -> list[ExperimentOperator]:
    """Return the operators whose change the pairs decided, the largest in ns first."""
    sides = [pair.baseline_run for pair in pairs], [pair.candidate_run for pair in pairs]
    history = list_groups_of_history(store, pairs[0].baseline_run)
    groups = [*sides, *history]
    with store.connect() as connection:
        runs = stored_tracks.read_chosen_runs(connection, [run_id for group in groups for run_id in group])
    runs = [run.of_kind(measure.step_kind) for run in runs]
    keys, values, _, _ = stored_tracks.tabulate_runs(runs)
    rows = [row for row, key in enumerate(keys) if key.kind == _OPERATOR]
    if not rows:
        return []
    # what takes no time has no logarithm, and says nothing of its change
    times: F64 = np.where(values[rows] > 0, values[rows], np.nan)
    ends = np.cumsum([len(group) for group in groups])
    baseline_ns, candidate_ns, *earlier_ns = np.split(times, ends[:-1], axis=1)
    step_ns = np.array([(pair.baseline_ns + pair.candidate_ns) / 2 for pair in pairs])
    found = []
    logs_of_history = [np.log(group_ns) for group_ns in earlier_ns]
    for one in decide_operators(np.log(baseline_ns), np.log(candidate_ns), step_ns, logs_of_history):
        if not one.is_found:
            continue
        before_ns, after_ns = (float(median(side[[one.row]], axis=1)[0]) for side in (baseline_ns, candidate_ns))
        row = ExperimentOperator(keys[rows[one.row]].name, before_ns, after_ns, one.change, one.log_e, one.verdict)
        found.append(row)
    found.sort(key=lambda row: (-abs(row.candidate_ns - row.baseline_ns), row.name))
    return found


def _compare(
    store: Store, experiment: StoredExperiment, measure: Measured, operators: Sequence[ExperimentOperator]
) -> Diff | str:
    """Return the diff of the runs of the pairs, with no other verdicts than what the pairs decided; where their details
    cannot be compared, why.
    """
    options = DiffOptions(step_kind=measure.step_kind or None)
    try:
        found = compare.diff(store, *(f"{experiment.name}:{side}" for side in SIDES), options=options)
    except UsageError as error:
        return str(error)
    tables = {name: _without_verdicts(rows) for name, rows in found.tables.items()}
    # what all operators share is the machine in a history, and here it is the build: both sides ran on one machine
    verdict, overall = _VERDICTS[experiment.outcome], tables["overall"]
    is_step = is_among(overall[METRIC], [found.explanation.total_metric])
    tables["overall"] = overall.having(verdict=objects([verdict if one else None for one in is_step.tolist()]))
    # that the commits differ is what is asked
    changed = tables["environment"]
    tables["environment"] = changed.taken(~is_among(changed[KEY], _KEYS_OF_COMMIT))
    verdict_of = {row.name: _VERDICTS[row.verdict] for row in operators}
    explanation = found.explanation
    own = replace(
        explanation,
        verdict=verdict,
        contributions=tuple(replace(row, verdict=verdict_of.get(row.name)) for row in explanation.contributions),
        causes=tuple(replace(row, verdict=verdict_of.get(row.name), q=None) for row in explanation.causes),
        findings=(),
        remarks=(),
    )
    kinds = tuple(replace(kind, verdict=None, reason=None) for kind in found.step_kinds)
    return replace(found, tables=tables, step_kinds=kinds, judgement=None, explanation=own)


def _without_verdicts(rows: Columns) -> Columns:
    """Return a table without what the judgement of versions says of its rows."""
    words = dict.fromkeys(("verdict", "reason"), objects([None] * len(rows)))
    numbers = dict.fromkeys(("q", "judged_diff", "detectable"), np.full(len(rows), np.nan))
    return rows.having(**{name: nothing for name, nothing in (words | numbers).items() if name in rows})


def _list_remarks(
    store: Store, experiment: StoredExperiment, known: KnownOfRuns, pairs: Sequence[MeasuredPair]
) -> list[str]:
    """Return what limits the answer of an experiment, whatever its pairs are."""
    remarks = []
    if experiment.state == stored.FAILED and experiment.host == environment.host():
        remarks.append(f"It failed; its logs are in {folder_of(experiment)}.")
    if known.variables:
        remarks.append(f"The sides differ in {', '.join(known.variables)}.")
    if known.is_by_command:
        remarks.append("The sides differ in their command lines.")
    if pairs and 2 * len(pairs) != experiment.counted_runs:
        # runs were deleted since, or it was broken off right behind a pair
        of_tables, of_headline = counted(2 * len(pairs), "run"), experiment.counted_runs
        remarks.append(f"The headline rests on {of_headline} runs, the tables on {of_tables}.")
    if experiment.measured_by == WALL:
        remarks.append("Measured is the wall time of the command, with its start and its end.")
    if pairs and are_guesses(queries.captures(store, [pairs[0].baseline_run]).listed(SETTINGS)):
        remarks.append("Which numbers of what it prints are times is a guess: --input-format training_log confirms it.")
    if pairs and experiment.outcome not in ("slower", "faster") and not known.is_own_code:
        remarks.append(
            "Whether each side ran its own code is not known: no hook said which modules were imported "
            "(docs/record.md)."
        )
    return remarks


def _remark_on_machine(pairs: Sequence[ExperimentPair]) -> list[str]:
    """Return whose machine was slowed down, in how many pairs, where that is known of one side alone."""
    counts = {
        BASELINE: sum(bool(pair.baseline_machine) > bool(pair.candidate_machine) for pair in pairs),
        CANDIDATE: sum(bool(pair.candidate_machine) > bool(pair.baseline_machine) for pair in pairs),
    }
    every = counted(len(pairs), "pair")
    return [
        f"The machine slowed down the {name} alone in {count} of {every}." for name, count in counts.items() if count
    ]
