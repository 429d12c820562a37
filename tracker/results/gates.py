"""Whether a build should fail: what was judged, what of it is news, and the exit code that says so."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from tracker.units import format_bytes, format_diff, format_ns

FAIL_ON: Final = ("new", "any")
"""The words of `--fail-on`."""

Outcome = Literal["failed", "suspect", "known", "unsure", "passed"]
"""What becomes of something that was judged: it fails the gate, more runs decide, it is no news, the runs cannot tell,
or it is as it should be."""

Key = tuple[str, str, str, str, str]
"""Kind, metric, name, input shapes and part of a series; those of a whole run have a metric alone."""


class GateResult(Struct, frozen=True):
    """An exit code, and what gave it: step, peak memory, net of the operators, suspect, runs, or slow host; "" for 0.
    `net`: change of the step by the operators that the version changed, as a share of it; `peak`: change of peak
    memory, 0.1 for 10 % more; `host`: the slow host that took part, in words.
    """

    code: int
    cause: str
    net: float
    peak: float
    host: str = ""


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
        name = self.name
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
