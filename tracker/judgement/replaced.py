"""Replaced operators: what went, and what came in its place, is one change, judged by its net.

Some operators are called less and others more below one parent, and the calls fit: each call that went is a whole
number of calls that came, or the other way round. The parent is the nearest op above that both sides have and that is
no part of it, else the module; at the top level, where everything meets, both must have an input of one shape as well,
or, where shapes were not recorded, take about as long.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tracker.detectors import rule
from tracker.detectors.centre import Centre
from tracker.detectors.judging import Weights, judge_series
from tracker.detectors.rule import Limits
from tracker.judgement.judging import Values
from tracker.results import TOP_LEVEL

F64 = NDArray[np.float64]

_TOLERANCE: Final = 0.02
"""By how much calls may differ from a whole multiple: a capture may cut a step."""
_MOST_AT_TOP: Final = 16
"""Calls that one call at the top level can turn into: with more, an op of a few calls would fit anything."""
_UNJUDGED: Final = 0.25
"""How much longer what came may take where nobody knows how much both vary."""
_FIRST_SHAPE: Final = re.compile(r"\[(\d[\d, ]*)\]")
_SMALLEST: Final = 1e-3
"""Parts of the calls of an op that are no change."""

Node = tuple[int, int, int]


class Calls(Struct, frozen=True):
    """How often an op is called per step, on both sides."""

    before: float
    after: float

    @property
    def change(self) -> float:
        """So many calls more."""
        return self.after - self.before


class Context(Struct, frozen=True):
    """A calling context: its `node` of a run and rank, and the one above; the op that ran in it, and how often."""

    node: Node
    above: Node
    name: str
    input_shapes: str
    calls: float


class Contexts(Struct, frozen=True):
    """Where the ops of one side are called from. `modules`: op -> the module where it is mostly called, where known."""

    rows: Sequence[Context]
    modules: Mapping[str, str]

    @property
    def names(self) -> set[str]:
        """All ops that ran."""
        return {row.name for row in self.rows}

    def shapes(self) -> dict[str, set[str]]:
        """Op -> the shapes of its first input that has one, as far as they are known."""
        found: dict[str, set[str]] = {}
        for row in self.rows:
            found.setdefault(row.name, set()).update(_FIRST_SHAPE.findall(row.input_shapes)[:1])
        return found

    def parents(self, names: Collection[str], parts: Collection[str]) -> dict[str, dict[str, float]]:
        """Op -> parent -> part of its calls, 0 to 1; `parts`: ops that are no parents, but parts of a change."""
        above = {row.node: row for row in self.rows}
        outermost: dict[Node, Context] = {}  # of those seen: the one around it that parts alone lie between
        found: dict[str, dict[str, float]] = {}
        for row in self.rows:
            inner, parent = row, above.get(row.above)
            while parent is not None and parent.name in parts:
                inner = outermost.get(parent.node, parent)
                parent = above.get(inner.above)
            outermost[row.node] = inner
            if row.name in names:
                at = self.modules.get(inner.name, TOP_LEVEL) if parent is None else parent.name
                own = found.setdefault(row.name, {})
                own[at] = own.get(at, 0.0) + row.calls
        for own in found.values():
            total = sum(own.values())
            own.update({at: count / total if total else 0.0 for at, count in own.items()})
        return found


class Replacement(Struct, frozen=True):
    """Ops that are called less (`gone`), or no more, and more (`come`), or were not before, below `parent`.

    `is_sure`: False where nothing but as many calls speaks for it; then it holds where about the same time does too.
    """

    parent: str
    gone: tuple[str, ...]
    come: tuple[str, ...]
    is_sure: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """All ops that take part."""
        return (*self.gone, *self.come)


class Net(Struct, frozen=True):
    """What a replacement makes of the step, in ns per step: `before_ns`, what went took more than now; `after_ns`, what
    came takes more than before. The rest is said of both as one series; None where it cannot be judged.
    """

    before_ns: float
    after_ns: float
    ratio: float | None = None
    q: float | None = None
    contribution: float | None = None
    verdict: str | None = None

    @property
    def delta_ns(self) -> float:
        """What the step lost by it."""
        return self.after_ns - self.before_ns

    def holds(self, one: Replacement) -> bool:
        """Whether it is the net of a replacement at all."""
        return one.is_sure or abs(self.delta_ns) <= _UNJUDGED * max(self.before_ns, self.after_ns)

    @property
    def is_worse(self) -> bool:
        """Whether it counts as a loss: as judged; where too few runs can judge it, from a quarter more on."""
        if self.verdict in (None, rule.TOO_FEW_RUNS, rule.SUSPECT):
            return self.delta_ns > _UNJUDGED * self.before_ns
        return self.verdict == rule.REGRESSED


def replacements(before: Contexts, after: Contexts, changes: Mapping[str, Calls]) -> tuple[Replacement, ...]:
    """What replaced what, of the ops in `changes`; each takes part in one replacement, that of the parent where most of
    its change is.
    """
    gone, come = ({name for name, own in changes.items() if sign * own.change > 0} for sign in (-1.0, 1.0))
    if not gone or not come:
        return ()
    moved = gone | come
    one = before.parents(moved, gone | (before.names - after.names))
    other = after.parents(moved, come | (after.names - before.names))
    by_parent: dict[str, dict[str, float]] = {}
    for name in sorted(moved):
        changed = _by_parent(changes[name], one.get(name, {}), other.get(name, {}))
        if changed:
            parent = max(changed, key=lambda at: (abs(changed[at]), at))
            by_parent.setdefault(parent, {})[name] = changed[parent]
    shapes0, shapes1 = before.shapes(), after.shapes()
    shapes = {name: shapes0.get(name, set()) | shapes1.get(name, set()) for name in moved}
    found = [_fitting(parent, own, shapes) for parent, own in sorted(by_parent.items())]
    return tuple(one for one in found if one is not None)


def _by_parent(calls: Calls, before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Parent -> by how many calls below it an op changed, of the parents where it changed as it did on the whole."""
    changed = {
        parent: calls.after * after.get(parent, 0.0) - calls.before * before.get(parent, 0.0)
        for parent in before.keys() | after.keys()
    }
    least = _SMALLEST * max(calls.before, calls.after)
    return {parent: change for parent, change in changed.items() if change * calls.change > 0 and abs(change) > least}


def _fitting(parent: str, own: Mapping[str, float], shapes: Mapping[str, set[str]]) -> Replacement | None:
    """The ops below a parent whose calls fit those of one that changed the other way; None: there are none. `own`: by
    how many calls each changed.
    """

    def fit(name: str, other: str) -> bool:
        calls = sorted((abs(own[name]), abs(own[other])))
        if parent != TOP_LEVEL:
            return _is_multiple(*calls)
        if not shapes[name] and not shapes[other]:
            return calls[1] <= (1.0 + _TOLERANCE) * calls[0]
        return bool(shapes[name] & shapes[other]) and _is_multiple(*calls) and calls[1] < (_MOST_AT_TOP + 1) * calls[0]

    fitting = {
        name: change
        for name, change in own.items()
        if any(change * other_change < 0 and fit(name, other) for other, other_change in own.items())
    }
    if not fitting:
        return None
    gone, come = (tuple(name for name, change in fitting.items() if change * sign > 0) for sign in (-1.0, 1.0))
    return Replacement(parent, gone, come, is_sure=parent != TOP_LEVEL or any(shapes[name] for name in fitting))


def _is_multiple(few: float, many: float) -> bool:
    """Whether calls are a whole number of times as many.

    >>> _is_multiple(12, 36), _is_multiple(12, 30)
    (True, False)
    """
    times = many / few
    return abs(times - round(times)) <= _TOLERANCE * times


def net_of(
    one: Replacement,
    line: Values,
    baseline: Sequence[int],
    candidate: Sequence[int],
    *,
    metric: str,
    step: float,
    centre: Centre,
    limits: Limits,
) -> Net:
    """What a replacement makes of the step, judged as one series: per run the time of what went, or of what came, less
    what these ops take on the other side.

    `line`: the values of the runs `baseline` and `candidate`, columns of it; `metric`: the time of operators that is
    judged; `step`: the larger one of the two sides, nan for unknown; `centre`: what all operators share.
    """
    before, after = (
        sum((_further(line, name, one_side, other, metric) for name in names), np.zeros(len(one_side)))
        for names, one_side, other in ((one.gone, baseline, candidate), (one.come, candidate, baseline))
    )
    before_ns, after_ns = (float(side.mean()) if len(side) else 0.0 for side in (before, after))
    if not before_ns or not after_ns:
        return Net(before_ns, after_ns)
    x, y = (np.where(side > 0, side, np.nan)[np.newaxis] for side in (before, after))
    weights = Weights(step=None if np.isnan(step) or not step else step)
    judged = judge_series(x, y, weights, limits=limits, center=centre).columns
    ratio, q, contribution = (
        None if np.isnan(judged[name][0]) else float(judged[name][0]) for name in ("ratio", "q", "contribution")
    )
    return Net(before_ns, after_ns, ratio, q, contribution, str(judged["verdict"][0]) or None)


def _further(line: Values, name: str, columns: Sequence[int], other: Sequence[int], metric: str) -> F64:
    """Per run of `columns` how much longer an op takes than in the `other` runs on the mean, all shapes together; 0.0
    where it takes less.
    """
    for kind in ("op_name", "op"):
        rows = [
            row for family, own in line.by_family().items() if family[:2] == (kind, metric)
            for row in own.tolist() if line.names[row] == name
        ]  # fmt: skip
        if rows:
            here, there = (
                np.nan_to_num(line.values[np.ix_(rows, list(side))]).sum(axis=0) for side in (columns, other)
            )
            return np.asarray(np.maximum(here - there.mean(), 0.0))
    return np.zeros(len(columns))
