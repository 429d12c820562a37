"""How a version came out by a budget of the settings, and the gate of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from tracker.config import Budget
from tracker.errors import EXIT_FINDINGS, EXIT_OK, EXIT_TOO_LITTLE_DATA, UsageError
from tracker.results.verdicts import BUDGET, Gate

BudgetVerdict = Literal["met", "not met", "not judged"]


class JudgedBudget(Struct, frozen=True, kw_only=True):
    """A budget, and the usual run of a version. `series`, `limit`: what the settings say, such as step, at most 120 ms;
    `value`: the median of the `runs` that count, None where none does; `value_words`: that in the unit of the limit;
    `reason`: why it is not judged. `name`: of the series in a history; `limit_value`: the limit, in `unit` (ns, bytes,
    ratio or per_second) as `value` is.
    """

    workload: str
    configuration: str
    device: str
    version: str
    series: str
    limit: str
    verdict: BudgetVerdict
    value: float | None = None
    value_words: str = ""
    runs: int = 0
    reason: str = ""
    name: str = ""
    limit_value: float | None = None
    unit: str = ""

    @property
    def words(self) -> str:
        """What came out, without where.

        >>> where = {"workload": "gpt", "configuration": "", "device": "H100", "version": "v8", "series": "step"}
        >>> slow = JudgedBudget(**where, limit="at most 120 ms", verdict="not met", value_words="123 ms", runs=3)
        >>> slow.words
        'step of v8 is 123 ms (median of 3 runs), at most 120 ms is wanted'
        >>> JudgedBudget(**where, limit="at most 120 ms", verdict="not judged", reason="it has 1 run").words
        'step of v8: it has 1 run; at most 120 ms is wanted'
        """
        if self.verdict == "not judged":
            return f"{self.series} of {self.version}: {self.reason}; {self.limit} is wanted"
        median = f"{self.value_words} (median of {self.runs} runs)"
        return f"{self.series} of {self.version} is {median}, {self.limit} is wanted"

    @property
    def sentence(self) -> str:
        """The whole of it."""
        where = ", ".join(filter(None, (self.workload, self.configuration, self.device)))
        return f"Budget {self.verdict}: {where}: {self.words}."


def not_met_first(judged: Sequence[JudgedBudget]) -> list[JudgedBudget]:
    """Return the budgets that are not met, then those that are not judged, then the others."""
    order = ("not met", "not judged", "met")
    return sorted(judged, key=lambda one: order.index(one.verdict))


def gate_of_budgets(judged: Sequence[JudgedBudget], budgets: Sequence[Budget]) -> Gate:
    """Return exit code 1 where a budget is not met, else 4 where one is not judged, else 0. `budgets`: those of the
    settings; UsageError where there are none.
    """
    if not budgets:
        remedy = 'write [[budgets]] with series = "step" and at_most = "120 ms", or others, in the settings'
        raise UsageError(f"--fail-on {BUDGET} needs a budget", remedy=remedy)
    verdicts = {one.verdict for one in judged}
    code = EXIT_OK
    if "not judged" in verdicts:
        code = EXIT_TOO_LITTLE_DATA
    if "not met" in verdicts:
        code = EXIT_FINDINGS
    failing = [one.sentence.rstrip(".") for one in not_met_first(judged) if one.verdict != "met"]
    if not judged:
        return Gate(BUDGET, code, "no budget is for what was asked")
    return Gate(BUDGET, code, "; ".join(failing) or f"{len(judged)} of {len(judged)} budgets met")
