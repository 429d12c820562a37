"""The single calls of an operator, a kernel, a collective or an idle place of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct

from tracker.columns import Columns
from tracker.results.options import CallsOptions
from tracker.results.screens import Result, Rows, columns_of_rows
from tracker.units import counted, format_ns, time_unit

__all__ = ["CallList"]

NOUNS: Final = {"operator": "call", "kernel": "call", "collective": "call", "idle": "gap"}


class ListedCall(Struct, frozen=True, kw_only=True):
    """A call. A table has the columns that its kind of calls has.

    - rank; step: None: it began outside of the steps that are shown, and launched work in them
    - name: of a kernel its own one; of idle time the place
    - input_shapes: of an operator or a kernel
    - start_ns, end_ns: from the start of the capture; the database alone has no end of a collective
    - duration_ns: from start to end; of a collective of several kernels, and of idle time, the sum of its parts
    - host_total_ns, host_self_ns: of an operator; without a total inside of a call of the same row, which counts it
    - device_total_ns, device_self_ns: of an operator, what it launched; with and without the operators inside
    - stream, thread: where it ran; of idle time the thread that the device waited for
    - task_id: its number on the stream, of an NPU; correlation: by which its launch is found
    - op: that launched a kernel; cause: of idle time
    - group_role: of a collective
    - peer: the rank at the other end of a send or receive
    - module, phase: of an operator
    - bytes: of a copy or a collective
    - trace_ns: its start on the clock of the trace, as a viewer of the trace shows it
    """

    rank: int
    step: int | None
    name: str | None
    input_shapes: str | None = None
    start_ns: int
    end_ns: int | None
    duration_ns: int
    host_total_ns: int | None = None
    host_self_ns: int | None = None
    device_total_ns: int | None = None
    device_self_ns: int | None = None
    stream: int | None = None
    thread: str | None = None
    task_id: int | None = None
    correlation: int | None = None
    op: str | None = None
    cause: str | None = None
    group_role: str | None = None
    peer: int | None = None
    module: str | None = None
    phase: str | None = None
    bytes: int | None = None
    trace_ns: int | None = None


class HistogramRow(Struct, frozen=True):
    """How many calls took so long.

    - from_ns, to_ns: at least, less than; the last row has the longest call as well; equal where all took the same
    - calls: how many; share: of all
    """

    from_ns: float
    to_ns: float
    calls: int
    share: float


class StoredCalls(Struct, frozen=True):
    """What the rows of the run say of all calls of this name, or nothing of it.

    - calls, total_ns: all together; of an operator the total on the device, without one on the host
    - minimum_ns, mean_ns, maximum_ns: of a call
    """

    calls: int | None
    total_ns: int | None
    minimum_ns: int | None
    mean_ns: float | None
    maximum_ns: int | None


class CallSpread(Struct, frozen=True):
    """How the calls differ that are listed.

    - calls, total_ns: how many have a time, and what these add up to
    - minimum_ns, lower_quartile_ns, median_ns, upper_quartile_ns, maximum_ns, mean_ns: of a call
    """

    calls: int
    total_ns: int
    minimum_ns: float
    lower_quartile_ns: float
    median_ns: float
    upper_quartile_ns: float
    maximum_ns: float
    mean_ns: float


class CallTables(Struct, frozen=True, kw_only=True):
    """The rows of each table of `CallList`."""

    calls: tuple[ListedCall, ...] = ()
    histogram: tuple[HistogramRow, ...] = ()


class CallList(Result, frozen=True, eq=False):
    """The single calls of one name in a run, the slowest first.

    `run`: as of `tracker show`. `kind`: operator, kernel, collective or idle; `name`: of what the calls are;
    `measure`: the column of the calls that they are ordered by, of which `spread` has the quartiles. `stored`: what the
    rows of the run say, which the calls add up to. `calls_table`: of `ListedCall`; `histogram`: of `HistogramRow`.
    `missing`: why the calls cannot be listed, "" where they are: then `stored` is all that is known. `traced_ranks`:
    the ranks of which a step can be cut out of the trace. `notes`: what limits the list.
    """

    word: ClassVar[str] = "calls"
    printed_by: ClassVar[str] = "tracker show RUN --calls NAME"
    json_fields: ClassVar[tuple[str, ...]] = (
        "headline", "run", "kind", "name", "measure", "stored", "spread", "missing", "notes",
    )  # fmt: skip

    run: Mapping[str, Any]
    kind: str
    name: str
    measure: str
    stored: StoredCalls
    options: CallsOptions
    calls_table: Columns
    histogram: tuple[HistogramRow, ...] = ()
    spread: CallSpread | None = None
    missing: str = ""
    traced_ranks: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """How many calls there are, how long they take together, and how long one takes."""
        noun, stored = NOUNS[self.kind], self.stored
        if self.spread is None:
            calls = "no call" if not stored.calls else counted(stored.calls, noun)
            total = "" if stored.total_ns is None else f", {format_ns(stored.total_ns)} together"
            return f"{self.name}: {calls}{total}"
        spread = self.spread
        unit = time_unit(spread.median_ns, spread.maximum_ns)
        each = f"median {format_ns(spread.median_ns, unit)}, longest {format_ns(spread.maximum_ns, unit)}"
        return f"{self.name}: {counted(spread.calls, noun)}, {format_ns(spread.total_ns)} together; {each}"

    @property
    def tables(self) -> Mapping[str, Columns]:
        """The calls, and how many took how long."""
        histogram = columns_of_rows(CallTables(histogram=self.histogram))["histogram"]
        return {"calls": self.calls_table, "histogram": histogram}

    def chosen_tables(self, only: Sequence[str] = (), limit: int | None = None) -> dict[str, Rows]:
        """Return the slowest calls and the histogram of all."""
        return {"calls": self.calls_table.head(limit), "histogram": self.tables["histogram"]}
