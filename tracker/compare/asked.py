"""What several sides ask of one database is asked once, about the runs of all of them: every statement costs a server a
message and a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from tracker.columns import Columns
from tracker.store import queries

if TYPE_CHECKING:
    from tracker.store import Store

Named = tuple[tuple[int, ...], int | None]
"""The runs that a reference names, and the one rank."""


class Asked(Struct, frozen=True, eq=False):
    """Answers about `run_ids`, which are asked about together; about others each asks alone.
    `named`: what references name.
    """

    run_ids: frozenset[int] = frozenset()
    named: dict[str, Named] = field(default_factory=dict)
    answers: dict[Hashable, Columns] = field(default_factory=dict)

    def about(self, run_ids: Sequence[int], question: Hashable, ask: Callable[[Sequence[int]], Columns]) -> Columns:
        """The answer of `ask` about these runs, with a column run_id whose rows have an order whatever runs are
        among them. `question`: what tells it from other ones.
        """
        if not self.run_ids.issuperset(run_ids):
            return ask(run_ids)
        if question not in self.answers:
            self.answers[question] = ask(sorted(self.run_ids))
        return _of_runs(self.answers[question], run_ids)

    def pruned(self, store: Store, run_ids: Sequence[int]) -> set[int]:
        """Those of these runs that lost details."""

        def ask(asked: Sequence[int]) -> Columns:
            return Columns({"run_id": np.array(sorted(queries.pruned(store, asked)), dtype=np.int64)})

        return set(self.about(run_ids, "pruned", ask).listed("run_id"))


def _of_runs(table: Columns, run_ids: Sequence[int]) -> Columns:
    """The rows of these runs, in their order."""
    rows = np.flatnonzero(np.isin(table.integers("run_id"), list(run_ids)))
    if len(rows) == len(table):
        return table
    # most tables are by run, and what follows each other needs no copy
    follow = len(rows) > 0 and rows[-1] - rows[0] < len(rows)
    return table.taken(slice(rows[0], rows[-1] + 1) if follow else rows)
