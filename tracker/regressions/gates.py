"""Whether findings fail a build."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tracker.errors import EXIT_FINDINGS, EXIT_OK, EXIT_TOO_LITTLE_DATA
from tracker.regressions.lifecycle import ALIKE, OF_HOSTS
from tracker.results import CONFIRMED_STATES, Findings
from tracker.results.options import check_words
from tracker.results.verdicts import FAIL_ON, Gate, GatedRow, Outcome
from tracker.schema.series import RUN, SeriesKey
from tracker.units import format_diff

Row = Mapping[str, Any]

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
    rows, lines = (found.tables[name].records() for name in ("findings", "lines"))
    codes = {line[f"gate_{word}"] for line in lines} or {EXIT_TOO_LITTLE_DATA}
    code = next(one for one in (EXIT_FINDINGS, EXIT_TOO_LITTLE_DATA, EXIT_OK) if one in codes)
    reasons = [
        f"{line['workload'] + ' ' if len(lines) > 1 else ''}{line['version']}: {reason_of(line, word)}"
        for line in lines
        if line[f"gate_{word}"] == code and line[f"gate_{word}_cause"]
    ]
    because = "; ".join(reasons) or ("there are no runs" if not lines else "nothing fails")
    failing = {tuple(line[name] for name in ("workload", "configuration", "device")): line for line in lines}
    return Gate(word, code, because, tuple(_row(row, word, failing) for row in rows))


def reason_of(line: Row, word: str) -> str:
    """Say what gave the exit code of a track, a row of FINDINGS_COLUMNS["lines"], in words; "" for 0."""
    peak, net = (format_diff(line[name] or 0.0) for name in ("peak", "net"))
    return WHY[line[f"gate_{word}_cause"]].format(peak=peak, net=net, host=line["slow_host"])


def _row(row: Row, word: str, lines: Mapping[tuple[Any, ...], Row]) -> GatedRow:
    line = lines.get(tuple(row[name] for name in ("workload", "configuration", "device")), {})
    outcome, remark = _outcome(row, word, line)
    incident = f", I-{row['incident_id']}" if row["incident_id"] is not None else ""
    number = f"finding {row['finding_id']}{incident}: " if row["finding_id"] is not None else ""
    key = SeriesKey(row["kind"], row["metric"], row["name"], row["input_shapes"], row["part"], row["step_kind"])
    if row["kind"] == RUN:
        # numbers of a whole run have a metric alone, as in a diff
        key = SeriesKey(RUN, row["metric"], "")
    detail = ", ".join(filter(None, (row["input_shapes"], row["part"], row["step_kind"])))
    return GatedRow(
        "finding", row["name"], detail, row["verdict"] or "", outcome, row["unit"], row["baseline_value"],
        row["candidate_value"], row["ratio"], row["q"], f"{number}{remark}", key,
    )  # fmt: skip


def _outcome(row: Row, word: str, line: Row) -> tuple[Outcome, str]:
    """Return what becomes of a finding at the gate `word`, and why."""
    cause, said = line.get(f"gate_{word}_cause", ""), f"{row['state']}, since {row['version']}"
    if row["direction"] != "regression":
        return "passed", f"better since {row['version']}"
    if row["state"] == "suspect":
        return "suspect", f"suspected since {row['version']}"
    if row["state"] not in CONFIRMED_STATES:
        return "passed", said
    if word == "new" and not row["is_new"]:
        return "known", said
    if row["change"] in (ALIKE, *OF_HOSTS):
        return "unsure", said
    is_step = row["kind"] == "run" and row["name"] in ("step", "e2e", "compute")
    is_peak = row["kind"] == "run" and row["unit"] == "bytes"
    fails = line.get(f"gate_{word}") == EXIT_FINDINGS and (
        (cause == "step" and not is_peak) or (cause == "peak memory" and is_peak)
        or (cause == "mean step" and row["name"] == cause)
        or (cause == "net of the operators" and row["unit"] == "ns" and not is_step)
    )  # fmt: skip
    return ("failed" if fails else "passed"), said
