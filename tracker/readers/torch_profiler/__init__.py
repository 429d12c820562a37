"""PyTorch profiler (Kineto) traces: `*.pt.trace.json`, plain or gzip, as exported from 2020 to today.

Of NVIDIA, AMD and CPU runs. A trace is an object with `traceEvents`, or in the earliest exports the bare list of
events. One capture per host process and device.

A process that runs no operator and launches nothing is no rank: its calls are host calls of the first process, its
counters are left out. Ranks that were merged into one trace are captures of their own where their processes are called
`[TP00] 4100`. Memory belongs to the device that the allocator names. Of other makers than NVIDIA, AMD and Intel the
vendor is `unknown`; `<vendor>_runtime` and `<vendor>_driver` are host calls. Without ProfilerStep, annotations of
engines (`execute_...`, `step[...]`, `iteration 3`, `batch 3`) are the steps, where they repeat and do not overlap.
Numbers of steps that stand there twice are counted on. An event whose text is broken is mended or left out, and
counted.

Kernels of CUDA state `est. achieved occupancy %`, `blocks per SM` and `warps per SM` of their launch: they are kernel
metrics. Those of other back ends state none.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.readers._source import ReadOptions, first_character, read_head
from tracker.readers._trace import profile_of_trace
from tracker.readers._trace_event import KINETO_HEADER

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["TITLE", "read", "sniff"]

TITLE: Final = "PyTorch profiler (Kineto) trace, .json or .json.gz"
NAME: Final = "torch_profiler"
NAMED: Final = re.compile(r".*\.pt\.trace\.json(?:\.gz)?")
TRACES: Final = re.compile(".*")
_SNIFF_BYTES: Final = 1 << 18

_FOREIGN: Final = re.compile(
    rb'"(?:ExtraInfo|span_inde?x)"|"ProfileStep#?\d*|\((?:Python|C\+\+)\)"'  # Paddle
    rb'|"(?:Ascend Hardware|CANN|Overlap Analysis)"|"async_npu"'  # Ascend trace_view.json, CANN msprof
    rb'|"common_config"\s*:'  # Ascend profiler_info.json
)
_TEXT_TIME: Final = re.compile(rb'"ts"\s*:\s*"[0-9]')
_OWN_EVENT: Final = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|python_function|user_annotation|gpu_user_annotation|cpu_instant_event|kernel|gpu_mem(?:cpy|set)'
    rb'|cuda_(?:runtime|driver)|xpu_runtime|mtia_\w+|privateuse1_\w+|Operator|Kernel|Runtime|Memcpy|Memset)"'
    rb'|"(?:Iteration Start: )?PyTorch Profiler'
)


def sniff(path: Path, head: bytes) -> bool:
    """True for a Kineto trace, told by its first events or top-level keys; in 256 KiB where `head` cannot tell."""
    if path.is_dir() or first_character(head) not in (b"{", b"["):
        return False
    known = _is_kineto(head)
    return _is_kineto(read_head(path, _SNIFF_BYTES)) is True if known is None else known


def _is_kineto(head: bytes) -> bool | None:
    """None where `head` says neither yes nor no."""
    if _FOREIGN.search(head):
        return False
    if first_character(head) == b"{" and KINETO_HEADER.search(head):
        return True
    # without Kineto's header, times that are text are those of Ascend's trace_view.json, a bare list or in an object
    return True if _OWN_EVENT.search(head) and not _TEXT_TIME.search(head) else None


def read(path: Path, options: ReadOptions | None = None) -> Profile:
    """The trace at `path`; a SourceError names the byte where it is no trace, damaged, or impossible."""
    from tracker.readers.torch_profiler.reading import captures_of

    return profile_of_trace(NAME, path, options, captures_of)
