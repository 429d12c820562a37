"""Whether findings fail a build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tracker.detectors.baseline import ENOUGH
from tracker.detectors.life import NOTIFIED
from tracker.errors import EXIT_TOO_LITTLE_DATA
from tracker.judgement.families import RUN
from tracker.judgement.netting import with_net
from tracker.lazy import pd
from tracker.results import Findings
from tracker.results.gates import FAIL_ON, NET_SHARE, Gate, GatedRow, Key, Outcome, decided, without_small_losses
from tracker.results.options import check_words
from tracker.units import format_diff

Row = Mapping[str, Any]

_LEAVES: Final = ("op_name", "op", "kernel")
_OF_TIME: Final = (*_LEAVES, "module", "api", "phase")
"""Kinds of series that say how long operators take: what is netted, and what fails with it."""
_QUIET: Final = {"muted": "muted", "recovering": "it recovers"}
"""Open states that fail nothing: a user said not now, or the newest runs are good again."""


def gate_of_findings(found: Findings, word: str = "any", *, net_loss: float = NET_SHARE) -> Gate:
    """Whether what was found fails, of the findings that were asked for.

    `any`: every regression that is confirmed, open and bad: new, persisting, acknowledged or reopened; `new`: those of
    them that the newest version of their line began, of operators where these lose `net_loss` of the step net of what
    others gained; `suspect`: those of `any`, and suspicions that something is worse.

    Exit codes: 0; 1 something fails; 4 a suspicion that `any` leaves to the next runs (`new`: of the step), or no line
    has the 4 runs from which on one can be judged by those before it.
    """
    check_words("gate", (word,), FAIL_ON)
    rows = _netted(found)
    gated = [_row(row, word) for row in rows]
    if word == "new":
        gated = without_small_losses(gated, _net_share(rows, gated), _OF_TIME, net_loss)
    gate = decided(word, gated, nothing="")
    thin = len(found.lines) == 0 or bool((found.lines["runs"] <= ENOUGH).all())
    if gate.code == 0 and thin:
        return Gate(word, EXIT_TOO_LITTLE_DATA, f"a run is judged by {ENOUGH} or more runs before it", gate.rows)
    return gate


def _netted(found: Findings) -> list[Row]:
    """The findings, those of a replacement as one."""
    rows, whole = (
        frame.astype(object).where(frame.notna(), None).to_dict("records")
        for frame in (found.findings, found.replacements)
    )
    nets = {row["finding_id"]: row for row in whole}
    return [
        with_net(row, nets[row["finding_id"]]) if row["finding_id"] in nets else row
        for row in rows
        if row["replacement"] in (None, row["finding_id"]) or row["replacement"] not in {*nets}
    ]


def _net_share(rows: Sequence[Row], gated: Sequence[GatedRow]) -> float:
    """The largest net loss of operators in a line, as a part of the step: of the findings that fail, and of what the
    same version gained.
    """
    lines: dict[tuple[Any, ...], list[tuple[Row, GatedRow]]] = {}
    for row, one in zip(rows, gated, strict=True):
        lines.setdefault(tuple(row[name] for name in ("workload", "configuration", "device")), []).append((row, one))
    shares = []
    for own in lines.values():
        kind = next(
            (kind for kind in _LEAVES for row, one in own if row["kind"] == kind and one.outcome == "failed"), ""
        )
        versions = {row["version"] for row, one in own if row["kind"] == kind and one.outcome == "failed"}
        counted = [
            row["contribution"] or 0.0
            for row, one in own
            if row["kind"] == kind
            and (one.outcome == "failed" or (row["direction"] != "regression" and row["version"] in versions))
        ]
        shares.append(sum(counted))
    return max(shares, default=0.0)


def _row(row: Row, word: str) -> GatedRow:
    outcome, remark = _outcome(row, word)
    incident = f", incident {row['incident_id']}" if row["incident_id"] is not None else ""
    detail = ", ".join(filter(None, (row["input_shapes"], row["part"])))
    verdict = {"suspect": "SUSPECT"}.get(row["state"]) or row["verdict"] or ""
    ratio = None if row["ratio"] is None or pd.isna(row["ratio"]) else float(row["ratio"])
    if row["change"] == "calls" and ratio is not None:  # no DIFF of the times beside which it stands
        remark, ratio = f"calls {format_diff(ratio)}, {remark}", None
    return GatedRow(
        "finding", row["name"], detail, verdict, outcome, row["unit"], row["baseline_value"], row["candidate_value"],
        ratio, row["q"], f"finding {row['finding_id']}{incident}: {remark}",
        key_of_finding(row),
    )  # fmt: skip


def key_of_finding(row: Row) -> Key:
    """The series of a finding, a row of sql/findings.sql."""
    if row["kind"] == RUN:
        return (RUN, row["metric"], "", "", "")
    return (row["kind"], row["metric"], row["name"], row["input_shapes"], row["part"])


def _outcome(row: Row, word: str) -> tuple[Outcome, str]:
    """Under `word`, and why."""
    state, since = row["state"], f"since {row['version']}"
    if row["direction"] != "regression":
        return "passed", f"better {since}"
    if state == "suspect":
        return ("failed" if word == "suspect" else "suspect"), f"suspected {since}"
    if state not in NOTIFIED:
        return "passed", f"{_QUIET.get(state, state)}, {since}"
    if word == "new" and not row["is_new"]:
        return "known", f"{state}, {since}"
    return "failed", f"{state}, {since}"
