"""Whether findings fail a build."""

from __future__ import annotations

from typing import Final

from tracker.errors import EXIT_FINDINGS, EXIT_OK, EXIT_TOO_LITTLE_DATA
from tracker.regressions.lifecycle import ALIKE, OF_HOSTS
from tracker.results import CONFIRMED_STATES, Findings
from tracker.results.findings import ListedFinding, TrackStanding
from tracker.results.options import check_words
from tracker.results.verdicts import FAIL_ON, Gate, GatedRow, Outcome
from tracker.schema.series import RUN, STEP_SERIES, SeriesKey
from tracker.units import format_diff

WHY: Final = {
    "": "",
    "step": "the step got slower",
    "mean step": "the mean step got slower: some of the steps, which the step, their median, does not show",
    "peak memory": "peak memory rose by {peak}",
    "net of the operators": "the operators found got slower by {net} of the step",
    "suspect": "the step may be slower: one more run of the version decides",
    "main line": "the step may be slower: the main line may be as slow itself where the branch left it, and one more "
    "run of it decides",
    "machine": "all operators became slower together and stay so; nothing that was recorded names a cause: measure the "
    "version before again",
    "alike": "all operators became slower by one factor: a slower machine or the code, which so few cannot tell; "
    "measure the version before again",
    "host": "the step got slower, or another host is slower: fewer than two runs before are of the same host; two "
    "runs of one side on the host of the other decide",
    "throttled": "the step got slower, or its machine was throttled: in all of its runs, and not in those before; a "
    "run that is not throttled decides",
    "runs": "the step has no verdict: too few runs before or in it",
    "guess": "the step has no verdict: its times are a guess, which tracker ingest --again --input-format training_log "
    "confirms",
    "incomplete": "the step has no verdict: it rests on records that were lost or cannot be",
    "other work": "the step has no verdict: the inputs have another size, which is other work",
    "slow host": "{host}",
}
"""What gave an exit code -> why, in words."""


def gate_of_findings(found: Findings, word: str = "new") -> Gate:
    """Return whether the newest version of any track fails, whatever findings were asked for.

    Exit codes: 1 where the step or the mean step of one got slower, its peak memory rose by `gate_peak`, or (no finding
    of the step) the net of the operators is at least `gate_net`; else 4 where the step of one is a suspect, has no
    verdict, became slower with the machine for good, with all of a few operators alike, on another host, or throttled;
    else 0. `any` counts what began with older versions and is open, too.
    """
    check_words("gate", (word,), FAIL_ON)
    lines = found.rows.lines
    codes = {line.gate(word)[0] for line in lines} or {EXIT_TOO_LITTLE_DATA}
    code = next(one for one in (EXIT_FINDINGS, EXIT_TOO_LITTLE_DATA, EXIT_OK) if one in codes)
    reasons = []
    for line in lines:
        line_code, cause = line.gate(word)
        if line_code == code and cause:
            name = f"{line.workload} " if len(lines) > 1 else ""
            reasons.append(f"{name}{line.version}: {reason_of(line, word)}")
    because = "; ".join(reasons) or ("there are no runs" if not lines else "nothing fails")
    standings = {line.place: line for line in lines}
    rows = []
    for row in found.rows.findings:
        rows.append(_gate_row(row, word, standings.get((row.workload, row.configuration, row.device))))
    return Gate(word, code, because, tuple(rows))


def reason_of(line: TrackStanding, word: str) -> str:
    """Say what gave the exit code of a track, in words; "" for 0."""
    peak, net = (format_diff(change or 0.0) for change in (line.peak, line.net))
    return WHY[line.gate(word)[1]].format(peak=peak, net=net, host=line.slow_host)


def _gate_row(row: ListedFinding, word: str, line: TrackStanding | None) -> GatedRow:
    """Return a finding as the gate `word` lists it. `line`: where its track stands."""
    outcome, remark = _outcome(row, word, line)
    incident = f", I-{row.incident_id}" if row.incident_id is not None else ""
    number = f"finding {row.finding_id}{incident}: " if row.finding_id is not None else ""
    key = SeriesKey(row.kind, row.metric, row.name, row.input_shapes, row.part, row.step_kind)
    if row.kind == RUN:
        # numbers of a whole run have a metric alone, as in a diff
        key = SeriesKey(RUN, row.metric, "")
    detail = ", ".join(filter(None, (row.input_shapes, row.part, row.step_kind)))
    return GatedRow(
        "finding", row.name, detail, row.verdict or "", outcome, row.unit, row.baseline_value, row.candidate_value,
        row.ratio, row.q, f"{number}{remark}", key,
    )  # fmt: skip


def _outcome(row: ListedFinding, word: str, line: TrackStanding | None) -> tuple[Outcome, str]:
    """Return what becomes of a finding at the gate `word`, and why."""
    code, cause = (None, "") if line is None else line.gate(word)
    remark = f"{row.state}, since {row.version}"
    if row.direction != "regression":
        return "passed", f"better since {row.version}"
    if row.state == "suspect":
        return "suspect", f"suspected since {row.version}"
    if row.state not in CONFIRMED_STATES:
        return "passed", remark
    if word == "new" and not row.is_new:
        return "known", remark
    if row.change in (ALIKE, *OF_HOSTS):
        return "unsure", remark
    is_step = row.kind == "run" and row.name in (*STEP_SERIES, "compute")
    is_peak = row.kind == "run" and row.unit == "bytes"
    fails = code == EXIT_FINDINGS and (
        (cause == "step" and not is_peak) or (cause == "peak memory" and is_peak)
        or (cause == "mean step" and row.name == cause)
        or (cause == "net of the operators" and row.unit == "ns" and not is_step)
    )  # fmt: skip
    return ("failed" if fails else "passed"), remark
