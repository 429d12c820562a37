"""Whether a build should fail: what was judged, what of it is news, and the exit code that says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from tracker.errors import EXIT_FINDINGS, EXIT_OK, EXIT_TOO_LITTLE_DATA
from tracker.results.words import shown_name
from tracker.units import counted, format_bytes, format_diff, format_ns

FAIL_ON: Final = ("new", "any")
"""The words of `--fail-on`."""

Outcome = Literal["failed", "suspect", "known", "unsure", "passed"]
"""What becomes of something that was judged: it fails the gate, more runs decide, it is no news, the runs cannot tell,
or it is as it should be."""

Key = tuple[str, str, str, str, str]
"""Kind, metric, name, input shapes and part of a series; those of a whole run have a metric alone."""

BY_THEMSELVES: Final = ("duration_ns", "e2e_ns", "samples_per_second", "peak_allocated_bytes")
"""Metrics of a whole run that fail `new`, however the operators add up."""

NET_SHARE: Final = 0.01
"""Net loss of the operators, as a part of the step, from which on they fail `new`."""

_NAMED: Final = 3
_STEP: Final = ("duration_ns", "e2e_ns")


class GateResult(Struct, frozen=True):
    """An exit code, and what gave it: step, peak memory, net of the operators, suspect, or runs; "" for 0. `net`:
    change of the step by the operators that the version changed, as a share of it; `peak`: change of peak memory, 0.1
    for 10 % more.
    """

    code: int
    cause: str
    net: float
    peak: float


class GatedRow(Struct, frozen=True):
    """One thing that was judged. `section`: a word of SECTIONS, or `finding`; `detail`: what else tells it from others
    of its name; `baseline`, `candidate` in `unit` (ns, bytes, count, ratio, per_second); `diff`: the judged one;
    `remark`: the reason of its verdict, or of its outcome. `calls_diff`: of its calls; None where they are not known.
    """

    section: str
    name: str
    detail: str
    verdict: str
    outcome: Outcome
    unit: str
    baseline: float | None
    candidate: float | None
    diff: float | None
    q: float | None
    remark: str
    key: Key
    calls_diff: float | None = None

    @property
    def delta(self) -> float:
        """Candidate - baseline; a side without it counts as 0."""
        return (self.candidate or 0.0) - (self.baseline or 0.0)

    @property
    def rank(self) -> int:
        """What a reader must see first: 0 the step, 1 what its time consists of, 2 the rest."""
        kind, metric = self.key[:2]
        if kind == "run":
            return 0 if metric in ("duration_ns", "e2e_ns") else 2
        return 1 if kind in ("op", "op_name", "kernel", "communication") else 2

    @property
    def words(self) -> str:
        """Its name and change: `aten::mul +14.67 ms`."""
        shown = {"ns": format_ns, "bytes": format_bytes}.get(self.unit)
        change = format_diff(self.diff) if shown is None else shown(self.delta)
        what = {"memory": "memory of ", "module": "module ", "api": "host API "}.get(self.section, "")
        name = shown_name(self.key[0], self.name)
        return f"{what}{name} {change if change.startswith(('-', '+')) else f'+{change}'}"


class Gate(Struct, frozen=True):
    """How a result passes. `word`: of FAIL_ON; `code`: the exit code; `because`: why, in words; `rows`: all that was
    judged, in the order of the result.
    """

    word: str
    code: int
    because: str
    rows: tuple[GatedRow, ...] = ()

    def of(self, *outcomes: Outcome) -> list[GatedRow]:
        """The rows with these outcomes: the step first, then operators, kernels and collectives, then all others, the
        largest first; a name once, all of it where it is there with all its shapes.
        """
        ranked = sorted(
            (row for row in self.rows if row.outcome in outcomes),
            key=lambda row: (row.rank, -abs(row.delta), row.detail != "", row.name),
        )
        found: dict[tuple[str, str], GatedRow] = {}
        for row in ranked:
            found.setdefault((row.section, row.name), row)
        return list(found.values())


def without_small_losses(
    rows: Sequence[GatedRow], net_share: float, kinds: Sequence[str], limit: float = NET_SHARE
) -> list[GatedRow]:
    """What fails `new`: nothing of the time of operators where it makes less than `limit` of the step net of what
    other operators gained. `net_share`: that net loss; `kinds`: of series that say how long operators take.
    """
    if net_share >= limit:
        return list(rows)
    why = f"operators net {format_diff(net_share)} of the step: {limit * 100:g} % fails"
    return [
        replace(row, outcome="passed", remark=why)
        if row.outcome == "failed" and row.key[0] in kinds and row.unit == "ns"
        else row
        for row in rows
    ]


def decided(word: str, rows: Iterable[GatedRow], *, nothing: str) -> Gate:
    """The gate of what was judged. `nothing`: why nothing can be told where no row passes; "": then all is well.

    A suspicion that the next runs decide is too little data; under `new` only one of the step itself.
    """
    gate = Gate(word, EXIT_OK, "", tuple(rows))
    failed, suspects, passed = gate.of("failed"), gate.of("suspect"), gate.of("passed", "known")
    known = len(gate.of("known"))
    beside = f"; {counted(known, 'regression')} known from before" if known else ""
    if failed:
        what = "regression or suspicion" if word == "suspect" else "regression"
        return Gate(word, EXIT_FINDINGS, f"{_listed(failed, what)}{beside}", gate.rows)
    blocking = [row for row in suspects if word != "new" or (row.key[0] == "run" and row.key[1] in _STEP)]
    waiting = f"{_listed(suspects, 'suspicion')}: the next runs confirm or clear them" if suspects else ""
    if blocking:
        return Gate(word, EXIT_TOO_LITTLE_DATA, f"{waiting}{beside}", gate.rows)
    if nothing and not passed:
        return Gate(word, EXIT_TOO_LITTLE_DATA, nothing, gate.rows)
    beside += f"; {waiting}" if waiting else ""
    return Gate(word, EXIT_OK, f"nothing fails that could be judged{beside}", gate.rows)


def _listed(rows: Sequence[GatedRow], what: str) -> str:
    """How many there are, and the first ones."""
    named = ", ".join(row.words for row in rows[:_NAMED])
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    plural = {"regression or suspicion": "regressions or suspicions", "suspicion": "suspicions"}.get(what, f"{what}s")
    return f"{len(rows)} {what if len(rows) == 1 else plural}: {named}{more}"
