"""Profiles of torch_npu and MindSpore in text form, one folder and one capture per rank.

`*_ascend_pt`, `*_ascend_ms`, `ASCEND_PROFILER_OUTPUT`, or one of the two main files alone. Kernels are those of
kernel_details.csv; the op that launched one is found by the async_npu arrow of trace_view.json that ends where the
kernel starts. When it was launched is the start of the HostToDevice arrow that ends there, on the thread of CANN: the
queue from which that thread takes its work is no launch. An operator that MindSpore calls
`Kernel::KernelLaunch::Default/network-Net/fc-Dense/MatMul-op12` is MatMul in the module Default/network-Net/fc-Dense.
The track `AI Core Freq` says at what clock kernels ran, where one was measured.

A folder `rankN_startA_stopB` of MindSpore's dynamic profiling holds steps A to B of rank N: they have these numbers,
whatever the profiler counts inside of it. Several such folders of one rank are windows of one run, of which the longest
counts, of equal ones the last; which steps between them were not recorded is said.

MindSpore's data pipeline has a table of its own (`--only input`): how long its operations take and what share of their
time each has, by dataset.csv; how full the queues behind them are, on the mean and over time, by the sizes in
minddata_pipeline_raw_*.csv and by minddata_pipeline_summary_*.csv, else the same as JSON.

Arguments of operators that the profiler recorded (record_op_args) in a folder `*_ascend_pt_op_args` beside the capture
belong to its run (`--only argument`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.errors import SourceError
from tracker.readers._ascend.done import still_parsed
from tracker.readers._pause import collector_paused
from tracker.readers._source import ReadOptions, first_character, may_be_events, read_head, suffix_of
from tracker.readers._trace_event import KINETO_HEADER
from tracker.readers.ascend_text import folders

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["TITLE", "read", "sniff", "unfinished"]

TITLE: Final = (
    "Ascend PyTorch or MindSpore profile as text (*_ascend_pt, *_ascend_ms, trace_view.json, kernel_details.csv)"
)
NAME: Final = "ascend_text"
NAMED: Final = re.compile(r"trace_view\.json(?:\.gz)?|kernel_details\.csv")
TRACES: Final = re.compile(r"(?!profiler_|communication|.*summary).*\.json(?:\.gz)?")
_SNIFF_BYTES: Final = 1 << 18
_TEXT_TIME: Final = re.compile(rb'"ts"\s*:\s*"\d{1,16}\.\d')
_NUMBER_TIME: Final = re.compile(rb'"ts"\s*:\s*\d')
# what CANN's own msprof_*.json has not: the events of the framework
_FRAMEWORK: Final = re.compile(rb'"cat"\s*:\s*"(?:cpu_op|python_function|enqueue|dequeue|async_npu)"')
_OWN: Final = re.compile(rb'"(?:Ascend Hardware|CANN|Overlap Analysis|async_npu)"')
# a table with Op Name is that of CANN
_HEADER: Final = re.compile(
    rb"(?![^\r\n]*\bOp ?Name\b)(?=[^\r\n]*\bName\b)(?=[^\r\n]*\bAccelerator Core\b)(?=[^\r\n]*\bDuration)",
    re.IGNORECASE,
)


def sniff(path: Path, head: bytes) -> bool:
    """True for a folder with a parsed or unparsed capture, a trace_view.json by its events, kernels by their header."""
    if path.is_dir():
        output = folders.output_of(path)
        return folders.is_unparsed(path) or (output is not None and folders.has_text(output))
    if suffix_of(path) == ".csv":
        return _HEADER.match(head) is not None
    # no other profiler writes framework events whose times are text; what is Ascend's own can stand behind all of them.
    # Programs that rewrite a trace of PyTorch may turn its times into text, but leave its header
    if not may_be_events(head) or (_NUMBER_TIME.search(head) and not _TEXT_TIME.search(head)):
        return False
    more = read_head(path, _SNIFF_BYTES)
    if first_character(more) == b"{" and KINETO_HEADER.search(more) and not _OWN.search(more):
        return False
    return _FRAMEWORK.search(more) is not None and _TEXT_TIME.search(more) is not None


def read(path: Path, options: ReadOptions | None = None) -> Profile:
    """The capture at `path`; a SourceError names the file and place where it cannot be read."""
    from tracker.readers.ascend_text.reading import profile_of

    if path.is_dir() and folders.is_unparsed(path):
        problem = "the capture was never parsed, it holds only raw data"
        raise SourceError(path, "", problem, remedy=_how_to_parse(path))
    with collector_paused():
        return profile_of(NAME, folders.layout_of(path), options or ReadOptions())


def unfinished(path: Path) -> str:
    """Why the profiler is not done with the capture at `path`; '' where it is, as far as can be seen."""
    if path.is_dir() and folders.is_unparsed(path):
        return f"{path.name} is not parsed yet; {_how_to_parse(path)}"
    return still_parsed(path)


def _how_to_parse(path: Path) -> str:
    package = "mindspore" if path.name.endswith("ms") else "torch_npu"
    return f'parse it: python -c "from {package}.profiler.profiler import analyse; analyse({str(path)!r})"'
