"""Why something of a capture will stay empty in the database: one table of rules, from settings and contents.

A rule says what, how to see that it is not there, and its causes; the first cause that holds gives the reason and, by
family of profilers, what to do to have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

from tracker.doctor.findings import Lack
from tracker.doctor.view import View
from tracker.profile import CPU, UNKNOWN_DEVICE, remedies

Test = Callable[[View], bool]


class Cause(Struct, frozen=True):
    """`remedies`: format or family -> what to do; the key "" is for all others."""

    when: Test
    why: str
    remedies: Mapping[str, str] = field(default_factory=dict)


class Rule(Struct, frozen=True):
    """`tables`: those of the database that it speaks for."""

    what: str
    lacks: Test
    causes: tuple[Cause, ...]
    tables: tuple[str, ...] = ()


def lacks_of(view: View) -> tuple[Lack, ...]:
    """What stays empty of this capture, in the order of RULES."""
    if view.setting("profiler") == "off" and not view.has_ops and not view.on_device:
        why = "measured without a profiler: it holds step times and throughput"
        first = Lack("everything below a step (ops, kernels, communication, memory)", why, "profile a few steps too")
        return (first, *_found(view, [rule for rule in RULES if not rule.tables]))
    return tuple(_found(view, RULES))


def _found(view: View, rules: list[Rule] | tuple[Rule, ...]) -> list[Lack]:
    found = []
    for rule in rules:
        if rule.lacks(view):
            cause = next(cause for cause in rule.causes if cause.when(view))
            keys = (view.format, view.family, "")
            remedy = next((cause.remedies[key] for key in keys if key in cause.remedies), "")
            found.append(Lack(rule.what, cause.why, remedy))
    return found


def _always(_: View) -> bool:
    return True


def _no(table: str) -> Test:
    return lambda view: not view.has_rows(table)


def _off(setting: str) -> Test:
    return lambda view: view.is_off(setting)


def _family(*names: str) -> Test:
    return lambda view: view.family in names


def _no_text(column: str) -> Test:
    return lambda view: view.has_ops and not view.says(column)


def _on(setting: str) -> Test:
    return lambda view: view.is_on(setting)


def _one_process(view: View) -> bool:
    """Whether the profile says so: PyTorch's does where a job has several."""
    is_told = view.capture.world_size is not None or view.family == "torch"
    return is_told and (view.capture.world_size or 1) == 1 and not view.capture.rank


def _only_sums_of_communication(view: View) -> bool:
    kernels = view.rows.tables.get("kernel", {})
    return bool(view.rows.overall.communication_ns) or "communication" in kernels.get("category", ())


def _measured_metrics(view: View) -> bool:
    return view.setting("aic_metrics") != "" and not _level_is_low(view)


def _level_is_none(view: View) -> bool:
    return view.setting("profiler_level").endswith("none")


def _level_is_low(view: View) -> bool:
    return view.setting("profiler_level") in ("level0", "level_none")


def _launched(view: View) -> bool:
    """Whether the host called for kernels that the profile does not have."""
    api = view.rows.tables.get("api", {})
    return any("launch" in str(name).lower() for name in api.get("name", ()))


def _lacks_table(view: View) -> bool:
    """Whether the text of a summary tells of a device, so that the table was rather not printed, or left out."""
    return view.setting("profiler") == "summary" and view.capture.device.model != CPU.model


_KEPT: Final = "copy {} of ASCEND_PROFILER_OUTPUT with the other files"
_NO_TABLE: Final = "the text holds no table of them"
_TABLES: Final = {
    "paddle": "keep all tables that Profiler.summary() prints",
    "nsys": "keep all tables that nsys stats prints, and trace CUDA: nsys profile --trace=cuda,nvtx",
}
_NO_SUCH: Final = "profiles of this format do not have it"
_UNNAMED: Final = "the profile sums up its communication and names no collectives"

RULES: Final = (
    Rule(
        "steps",
        lambda view: not view.has_markers,
        (
            Cause(
                lambda view: not view.rows.steps,
                "the file ends before any step is surely whole",
                {"": "export the trace again"},
            ),
            Cause(
                _always,
                "there are no step markers: the whole capture counts as one step",
                {
                    "torch": "call profiler.step() after every iteration",
                    "ascend": "call profiler.step() after every iteration",
                    "paddle": "call profiler.step(num_samples=...) after every iteration",
                    "nsys": "mark every iteration with an NVTX range",
                    "cann": "profile through torch_npu.profiler and call profiler.step() after every iteration",
                },
            ),
        ),
        ("step",),
    ),
    Rule(
        "ops",
        lambda view: not view.has_ops,
        (
            Cause(_lacks_table, _NO_TABLE, _TABLES),
            Cause(
                lambda view: view.format == "ascend_text" and "cpu" in view.setting("activities"),
                "CPU was among the activities, but trace_view.json, which tells of operators, is not there or has none",
                {"": _KEPT.format("trace_view.json")},
            ),
            Cause(
                _always,
                "the profile holds no operators of the framework",
                {
                    "torch": "profile with ProfilerActivity.CPU among the activities",
                    "ascend": "profile with ProfilerActivity.CPU among the activities",
                    "paddle": "profile with targets=[ProfilerTarget.CPU, ProfilerTarget.GPU]",
                    "nsys": "nsys profile --trace=cuda,nvtx, with NVTX ranges around the operators",
                    "cann": "profile through torch_npu.profiler, which knows the operators of the framework",
                },
            ),
        ),
        ("op", "op_tree", "op_key", "call_stack"),
    ),
    Rule(
        "kernels",
        _no("kernel"),
        (
            Cause(_level_is_none, "profiler_level is Level_none", remedies.LEVEL),
            Cause(_lacks_table, _NO_TABLE, _TABLES),
            Cause(
                _launched,
                "kernels were launched, but the profiler recorded nothing on the device",
                {
                    "": "let only one profiler run at a time, and give it access to the device's counters",
                },
            ),
            Cause(_always, "nothing ran on a device (CPU only)", remedies.ACTIVITIES),
        ),
        ("kernel", "kernel_key"),
    ),
    Rule(
        "communication",
        _no("communication"),
        (
            Cause(_only_sums_of_communication, _UNNAMED),
            Cause(_one_process, "one process: nothing to exchange"),
            Cause(_always, "no collective lies in the capture", {"": "capture at least one whole training step"}),
        ),
        ("communication", "process_group"),
    ),
    Rule(
        "communication tasks and links",
        lambda view: not view.has_rows("communication_task") and not view.has_rows("communication_link"),
        (
            Cause(lambda view: _only_sums_of_communication(view) and not view.has_rows("communication"), _UNNAMED),
            Cause(_no("communication"), "there is no communication"),
            Cause(_level_is_low, "profiler_level is too low", remedies.LEVEL),
            Cause(_family("ascend", "cann"), "the profile holds no details of its collectives", remedies.LEVEL),
            Cause(_always, _NO_SUCH),
        ),
        ("communication_task", "communication_link", "communication_wait"),
    ),
    Rule(
        "memory",
        _no("memory"),
        (
            Cause(_off("profile_memory"), "profile_memory was off", remedies.MEMORY),
            Cause(
                _on("profile_memory"),
                "profile_memory was on, but the profile holds no allocations",
                {"ascend_text": _KEPT.format("operator_memory.csv")},
            ),
            Cause(_family("cann"), _NO_SUCH),
            Cause(_always, "the profile holds no allocations", remedies.MEMORY),
        ),
        ("memory", "memory_allocator", "memory_peak", "memory_block"),
    ),
    Rule(
        "memory over time",
        _no("memory_curve"),
        (
            Cause(_off("profile_memory"), "profile_memory was off", remedies.MEMORY),
            Cause(
                _on("profile_memory"),
                "profile_memory was on, but the profile holds no course of memory",
                {"ascend_text": _KEPT.format("memory_record.csv")},
            ),
            Cause(_always, "the profile holds no course of memory", remedies.MEMORY),
        ),
        ("memory_curve",),
    ),
    Rule(
        "host API calls",
        _no("api"),
        (
            Cause(_lacks_table, _NO_TABLE),
            Cause(lambda view: not view.on_device, "nothing ran on a device (CPU only)"),
            Cause(_level_is_none, "profiler_level is Level_none", remedies.LEVEL),
            Cause(_always, "the profile holds no calls of the device runtime"),
        ),
        ("api",),
    ),
    Rule(
        "idle time by cause, and the queue of launches",
        lambda view: not view.has_rows("idle") and not view.has_rows("queue"),
        (
            Cause(lambda view: not view.on_device, "nothing ran on a device (CPU only)"),
            Cause(
                lambda view: not view.has_rows("api"),
                "the profile holds no calls that launched the work of the device",
                remedies.ACTIVITIES,
            ),
            Cause(_always, "the profile sums up the work of the device, and has no times of it"),
        ),
        ("idle", "queue"),
    ),
    Rule(
        "kernel metrics",
        _no("kernel_metric"),
        (
            Cause(
                lambda view: view.setting("aic_metrics").endswith("none"),
                "aic_metrics was off",
                {"ascend": "profile with profiler_level=Level1 and aic_metrics=AiCMetrics.PipeUtilization"},
            ),
            Cause(
                _measured_metrics,
                "aic_metrics was on, but the profile holds no AI Core metrics",
                {"ascend_text": _KEPT.format("kernel_details.csv")},
            ),
            Cause(
                _family("ascend", "cann"),
                "the profile holds no AI Core metrics",
                {
                    "ascend": "profile with profiler_level=Level1 and aic_metrics=AiCMetrics.PipeUtilization",
                    "cann": "msprof --aic-metrics=PipeUtilization",
                },
            ),
            Cause(_family("torch"), "no kernel states its occupancy; only those of CUDA do"),
            Cause(_always, _NO_SUCH),
        ),
        ("kernel_metric",),
    ),
    Rule(
        "counters",
        _no("counter"),
        (
            Cause(
                _family("ascend", "cann", "nsys"),
                "the profile holds no other tables or measurements",
                {"ascend_text": _KEPT.format("every table")},
            ),
            Cause(_always, _NO_SUCH),
        ),
        ("counter",),
    ),
    Rule(
        "input shapes of ops",
        _no_text("input_shapes"),
        (
            Cause(_off("record_shapes"), "record_shapes was off", remedies.SHAPES),
            Cause(_on("record_shapes"), "record_shapes was on, but the profile holds no shapes"),
            Cause(_always, "the profile holds no shapes", remedies.SHAPES),
        ),
    ),
    Rule(
        "call stacks of ops",
        _no_text("call_stack"),
        (
            Cause(_off("with_stack"), "with_stack was off", remedies.STACKS),
            Cause(_on("with_stack"), "with_stack was on, but the profile holds no Python stacks"),
            Cause(_always, "the profile holds no Python stacks", remedies.STACKS),
        ),
    ),
    Rule(
        "modules of ops",
        _no_text("module"),
        (
            Cause(_off("with_stack"), "with_stack was off", {"": "profile with with_stack=True, with_modules=True"}),
            Cause(
                lambda view: view.is_on("with_stack") and view.is_on("with_modules"),
                "with_stack and with_modules were on, but the profile names no modules",
            ),
            Cause(
                _always,
                "the profile names no modules",
                {
                    "torch": "profile with with_stack=True, with_modules=True",
                    "ascend": "profile with with_stack=True, with_modules=True",
                    "nsys": "mark the modules with NVTX ranges",
                },
            ),
        ),
    ),
    Rule(
        "device name",
        lambda view: view.capture.device.model == UNKNOWN_DEVICE.model,
        (
            Cause(
                _always,
                "the profile does not name the hardware; unknown matches only itself",
                {"": "ingest with --device MODEL"},
            ),
        ),
    ),
    Rule(
        "start time",
        lambda view: view.capture.started_at_ns is None,
        (Cause(_always, "the profile's clock does not say the date"),),
    ),
)
"""In the order in which a user reads them; rules without tables speak for columns."""
