"""What rules look at: the numbers of one run per step, with the pieces of work of the slowest rank of each stage.

Ranks of a stage do the same work, so the pieces of one of them stand for all; times of steps, communication and memory
are of all ranks. Where the program marks ranges and no steps, the step is the range in which the device works longest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracker.advice.devices import Peaks, device_of
from tracker.advice.roofline import Roofline
from tracker.advice.shapes import Shape, first_number, largest_of, shapes_of
from tracker.detect.stages import TIMES, Stage, stages_of
from tracker.profile import NOT_LISTED, NOT_LISTED_COLLECTIVES
from tracker.store import queries
from tracker.store.samples.statistic import over_ranks

if TYPE_CHECKING:
    from tracker.columns import Columns
    from tracker.store import Store

Row = dict[str, Any]
_TIMES: Final = (
    "duration_ns", "e2e_ns", "compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns", "data_loading_ns",
    "data_loading_idle_ns", "peak_allocated_bytes", "peak_reserved_bytes",
)  # fmt: skip
_MICROBATCHES: Final = ("microbatches", "num_microbatches", "num_micro_batches", "micro_batches")
_NO_WORK: Final = ("communication", "memset", NOT_LISTED, NOT_LISTED_COLLECTIVES)
_VENDORS: Final = (("nvidia", "nvidia"), ("amd", "amd"), ("huawei", "ascend"))
_FRAMEWORKS: Final = (("paddle", "paddle"), ("mindspore", "mindspore"), ("torch", "torch"), ("ascend", "torch"))


class WorkPiece:
    """A kernel of a rank with the operator that launched it, or an operator of a host timeline; times per step.

    `at`: its number; `kind`: the category of a kernel, "op" for an operator; `shapes`, `types`: of the inputs, those
    that the kernel itself states first; `op_shapes`: those of the operator; `formats`: of an NPU; `plain_op`: the
    operator without its namespace, or the type of a kernel without one: `mm`, `softmax`, `realdiv`.
    """

    __slots__ = (
        "at", "bytes", "calls", "core", "formats", "kind", "module", "name", "ns", "op", "op_shapes", "op_text",
        "phase", "plain_op", "rank", "shapes", "text", "types",
    )  # fmt: skip

    at: int
    rank: int
    kind: str
    name: str
    op: str
    core: str
    formats: str
    module: str
    phase: str
    text: str
    op_text: str
    plain_op: str
    calls: float
    ns: float
    bytes: float
    shapes: tuple[Shape, ...]
    op_shapes: tuple[Shape, ...]
    types: tuple[str, ...]

    def __init__(self, at: int, row: Mapping[str, Any], steps: float, is_device: bool) -> None:
        self.at, self.rank, self.module, self.phase = at, int(row["rank"]), row["module"], row["phase"]
        self.op_text = row["op_input_shapes"] if is_device else row["input_shapes"]
        self.calls = row["calls"] / steps
        if is_device:
            self.kind, self.op, self.core = row["category"], row["op"], row["core_type"]
            self.name = row["type"] or row["canonical_name"] or row["name"]
            self.ns, self.bytes = row["total_ns"] / steps, row["bytes"] / steps
            self.text = row["input_shapes"] or row["op_input_shapes"]
            self.op_shapes = shapes_of(self.op_text)
            types = row["input_types"] or row["op_input_types"]
            self.formats = row["input_formats"]
        else:
            self.kind, self.op, self.core, self.name = "op", row["name"], "", row["name"]
            self.ns, self.bytes = row["host_self_ns"] / steps, 0.0
            self.text, types, self.formats = row["input_shapes"], row["input_types"], ""
            self.op_shapes = shapes_of(self.op_text)
        self.shapes = shapes_of(self.text)
        # of the operator, or of a kernel that none launched its own type: `mm`, `softmax`, `realdiv`
        plain = self.name if self.op.startswith("(") or not self.op_shapes else self.op
        self.plain_op = plain.rpartition("::")[2].lower().rstrip("_")
        self.types = tuple(types.split(","))

    @property
    def largest(self) -> Shape:
        """Its largest input."""
        return largest_of(self.text)

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of its first tensor; 4 where it is not known."""
        return first_number(self.text, self.types)[1]

    @property
    def number_kind(self) -> str:
        """half, byte, fp32, fp64 of its first tensor, tf32 where the kernel's name says so, or ""."""
        found = first_number(self.text, self.types)[0]
        if found not in ("fp32", ""):
            return found
        name = self.name.lower()
        if "tf32" in name or "s1688" in name:
            return "tf32"
        return "fp32" if found or "sgemm" in name or "<float" in name else ""


class Evidence:
    """The numbers of a run that rules ask for. Times are ns per step: means over the steps of a rank for what adds up,
    `step_ns` the number of the step as all commands print it. `microbatches`: None where nothing states them. `fired`:
    the rules that found something, which those of the environment need.
    """

    def __init__(self, store: Store, run_id: int, microbatches: int | None = None) -> None:
        self._store, self.run_id = store, run_id
        self.run: Row = queries.runs_by_id.columns(store, [run_id]).records()[0]
        self.facts = {
            str(key): str(value)
            for _, key, value in queries.facts.columns(store, [run_id]).rows("kind", "key", "value")
        }
        self.device: Peaks | None = device_of(str(self.run["device"]), self.facts)
        self.captures: list[Row] = queries.captures.columns(store, [run_id]).records()
        self.is_device = {row["timeline"] for row in self.captures} == {"device"}
        self.vendor = next((ours for name, ours in _VENDORS if name in str(self.run["vendor"]).lower()), "cpu")
        named = f"{self.run['format']} {' '.join(self.facts)}".lower()
        self.framework = next((ours for name, ours in _FRAMEWORKS if name in named), "")
        steps = queries.steps.columns(store, [run_id])
        self.steps: list[Row] = steps.records()
        self.stages: list[Stage] = stages_of([(row["rank"], row["stage"]) for row in self.captures], steps.rows(*TIMES))
        stated = (self.facts[key] for key in _MICROBATCHES if self.facts.get(key, "").isdecimal())
        self.microbatches = microbatches or next((int(value) for value in stated if int(value) > 0), None)
        self.ranks: dict[int, Row] = self._ranks()
        self.fired: set[str] = set()
        self.has_markers = any(row["step"] != 0 for row in self.steps) or len(self.steps) != len(self.captures)

    def _ranks(self) -> dict[int, Row]:
        found: dict[int, Row] = {}
        for capture in self.captures:
            own = [row for row in self.steps if row["rank"] == capture["rank"]]
            count = sum(row["steps"] for row in own)
            row: Row = {"stage": capture["stage"], "host": capture["host"], "steps": count}
            for name in _TIMES:
                known = [(one[name], one["steps"]) for one in own if one[name] is not None]
                row[name] = sum(value * of for value, of in known) / sum(of for _, of in known) if known else None
            lasting = [one["duration_ns"] or one["e2e_ns"] for one in own if one["duration_ns"] or one["e2e_ns"]]
            row["step_ns"] = float(np.median(lasting)) if lasting else None
            found[capture["rank"]] = row
        return found

    @cached_property
    def roofline(self) -> Roofline:
        """What the device can do, and how near the work of the run comes to it."""
        return Roofline(self)

    @cached_property
    def step_ns(self) -> float:
        """The step of the run; of a program that marks ranges alone its main range; 0.0 where nothing is known."""
        if self.main_range:
            own = [row for row in self._ops if row["module"] == self.main_range]
            return float(max(max(row["host_total_ns"], row["device_total_ns"]) for row in own))
        known = [(row["step_ns"], row["stage"]) for row in self.ranks.values() if row["step_ns"]]
        if not known:
            return 0.0
        values, stages = zip(*known, strict=True)
        of = np.array([-1 if stage is None else stage for stage in stages], dtype=np.int64)
        return float(over_ranks(np.array([values], dtype=np.float64), of)[0])

    @cached_property
    def studied(self) -> tuple[int, ...]:
        """The slowest rank of each stage of which there are pieces, by its time without exposed communication."""
        recorded = queries.filled_tables.columns(self._store, [self.run_id])
        with_rows = {
            rank for rank, kernels, ops in recorded.rows("rank", "has_kernels", "has_ops")
            if (kernels if self.is_device else ops)
        }  # fmt: skip
        found: dict[int | None, tuple[float, int]] = {}
        for rank, row in self.ranks.items():
            own = max(row["duration_ns"] or 0.0, row["e2e_ns"] or 0.0) - (row["exposed_communication_ns"] or 0.0)
            compute = row["compute_ns"] or 0.0
            # a rank that recorded its collectives alone has kernels, and no work
            if rank in with_rows and (not self.is_device or compute):
                found[row["stage"]] = max(found.get(row["stage"], (-1.0, 0)), (own, -rank))
        return tuple(sorted(-rank for _, rank in found.values()))

    @cached_property
    def pieces(self) -> list[WorkPiece]:
        """The work of the studied ranks in the steps, copies included, collectives not."""
        if not self.studied:
            return []
        rows = self._kernels if self.is_device else self._ops
        chosen = [row for row in rows if self._is_inside(row["module"])]
        return [
            WorkPiece(at, row, self.ranks[row["rank"]]["steps"] or 1, self.is_device) for at, row in enumerate(chosen)
        ]

    @cached_property
    def counted(self) -> list[WorkPiece]:
        """The work by its calls, as FLOPs are counted: operators with the time of the kernels that they launch, for one
        call may launch several; kernels where nothing says which operator launched them.
        """
        if not self.is_device:
            return self.pieces
        asked = queries.rank_ops.columns(self._store, [self.run_id], ranks=self.studied, launching=True)
        launched = [row for row in asked.records() if row["input_shapes"] and self._is_inside(row["module"])]
        found = []
        kinds: dict[tuple[int, str, str], WorkPiece] = {}
        for piece in self.pieces:
            if piece.op_shapes:
                key = (piece.rank, piece.op, piece.op_text)
                kinds[key] = max(kinds.get(key, piece), piece, key=lambda one: one.ns)
            else:
                found.append(piece)
        for row in launched:
            kernel = kinds.get((row["rank"], row["name"], row["input_shapes"]))
            if kernel is not None:
                piece = WorkPiece(kernel.at, row, self.ranks[row["rank"]]["steps"] or 1, is_device=False)
                piece.ns = row["device_self_ns"] / (self.ranks[row["rank"]]["steps"] or 1)
                piece.name, piece.kind = kernel.name, kernel.kind
                found.append(piece)
        return found

    @cached_property
    def _kernels(self) -> list[Row]:
        found = queries.rank_kernels.columns(self._store, [self.run_id], ranks=self.studied)
        return [row for row in found.records() if row["category"] not in _NO_WORK]

    @cached_property
    def _ops(self) -> list[Row]:
        return queries.rank_ops.columns(self._store, [self.run_id], ranks=self.studied).records()

    @property
    def ops(self) -> list[Row]:
        """The operators of the studied ranks in all steps, as `queries.rank_ops` has them."""
        return [row for row in self._ops if self._is_inside(row["module"])]

    @cached_property
    def main_range(self) -> str:
        """The outermost range of a program without steps in which the device computes longest; "" where there are
        steps, or it marks none.
        """
        if self.has_markers or self.run["format"] != "nsys_sqlite" or not self.studied:
            return ""
        device: dict[str, int] = {}
        for row in self._kernels:
            outer = row["module"].partition("/")[0]
            if outer and row["category"] != "copy":
                device[outer] = device.get(outer, 0) + row["total_ns"]
        return max(device, key=lambda name: (device[name], name)) if len(device) > 1 else ""

    def _is_inside(self, module: str) -> bool:
        return not self.main_range or module == self.main_range or module.startswith(f"{self.main_range}/")

    @cached_property
    def api(self) -> list[Row]:
        """Calls of the device's runtime of the studied ranks, one row per rank and function: inside the steps, or of
        the whole capture where a summary does not say in which step and there is one.
        """
        if not self.studied or self.main_range:
            return []
        found = self._answer(queries.api, by=("rank",), in_steps=True, ranks=self.studied)
        if not len(found) and all(self.ranks[rank]["steps"] == 1 for rank in self.studied):
            found = self._answer(queries.api, by=("rank",), ranks=self.studied)
        return found.records()

    @cached_property
    def api_by_step(self) -> list[Row]:
        """The same with a row per step."""
        if not self.studied or self.main_range:
            return []
        return self._answer(queries.api, by=("rank", "step"), in_steps=True, ranks=self.studied).records()

    @cached_property
    def roles(self) -> dict[str, dict[int, Row]]:
        """Communication per step by the role of its groups and by rank: calls, bytes, total_ns, exposed_ns, wait_ns
        (in what is exposed), longest_ns; None for what is not known.
        """
        found: dict[str, dict[int, Row]] = {}
        for row in self.communication:
            steps = self.ranks[row["rank"]]["steps"] or 1
            own = found.setdefault(row["group_role"] or "unknown", {}).setdefault(
                row["rank"], dict.fromkeys(("calls", "bytes", "total_ns", "exposed_ns", "wait_ns", "longest_ns"), 0.0)
            )
            wait = row["exposed_wait_ns"]
            for name, value in (
                ("calls", row["calls"]), ("bytes", row["bytes"]), ("total_ns", row["total_ns"]),
                ("exposed_ns", row["exposed_ns"]), ("wait_ns", wait),
            ):  # fmt: skip
                own[name] = None if value is None or own[name] is None else own[name] + value / steps
            own["longest_ns"] = max(own["longest_ns"], row["max_ns"] or 0)
        return found

    @cached_property
    def communication(self) -> list[Row]:
        """The collectives of all ranks inside the steps, over all steps, as `queries.communication` has them."""
        return self._answer(queries.communication, by=("rank",), in_steps=True).records()

    @cached_property
    def links(self) -> list[Row]:
        """What was moved over links, over all of the capture, all links together, by packet size where it is known."""
        return self._answer(queries.communication_links, by=("rank",)).records()

    @cached_property
    def kept_bytes(self) -> dict[int, dict[int, int]]:
        """Of each rank and step the bytes that were allocated in it and not freed in the capture; nothing where the
        profile does not say.
        """
        found: dict[int, dict[int, int]] = {}
        for row in self._answer(queries.memory, by=("rank", "step"), in_steps=True).records():
            if row["unreleased_bytes"] is not None:
                own = found.setdefault(row["rank"], {})
                own[row["step"]] = own.get(row["step"], 0) + row["unreleased_bytes"]
        return found

    def _answer(self, question: Callable[..., Any], **chosen: Any) -> Columns:
        found: Columns = question.columns(self._store, [self.run_id], **chosen)  # type: ignore[attr-defined]
        return found

    def stage_of(self, rank: int) -> int | None:
        """The pipeline stage of a rank, None for none."""
        stage: int | None = self.ranks[rank]["stage"]
        return stage

    @cached_property
    def idle_ns(self) -> dict[int, float]:
        """Of each studied rank the time per step in which the device does nothing, data loading aside; on a host
        nothing idles that is known.
        """
        if not self.is_device or self.main_range:
            return {}
        found = {}
        for rank in self.studied:
            row = self.ranks[rank]
            if row["idle_ns"] is not None:
                found[rank] = max(0.0, row["idle_ns"] - (row["data_loading_idle_ns"] or 0.0))
        return found
