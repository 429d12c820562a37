"""Files of other tools that are known and not read: what they are, how they are told, and what to give instead.

Nothing of them is loaded: a pickle runs code, so that only the words in it are looked for.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from tracker.errors import SourceError
from tracker.readers._source import BOM, GZIP_MAGIC, open_source, read_head

_HEAD_BYTES: Final = 1 << 16
_END_BYTES: Final = 4096


class Refused(Struct, frozen=True):
    """A kind of file that is not read. `title`: what it is; `instead`: what to give in place of it.

    `name`: a pattern that the whole name of each such file fits, in small letters. `begins`: how the content begins.
    `holds`: what stands in its first 64 KiB or its last 4, each of them.
    """

    title: str
    instead: str
    name: re.Pattern[str] | None = None
    begins: re.Pattern[bytes] | None = None
    holds: tuple[re.Pattern[bytes], ...] = ()

    def fits(self, name: str, head: bytes, end: bytes) -> bool:
        """Whether a file is of this kind, by its name, its start and its end."""
        if self.name is not None and self.name.fullmatch(name) is None:
            return False
        if self.begins is not None and self.begins.match(head) is None:
            return False
        return all(pattern.search(head) or pattern.search(end) for pattern in self.holds)


def _name(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _bytes(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode(), re.MULTILINE)


_TRACE: Final = "give a trace of some steps (torch.profiler, export_chrome_trace)"
_REPORT: Final = (
    "give a report of Nsight Systems as SQLite (nsys profile, nsys export --type sqlite), or the log of the training"
)
_PICKLE: Final = re.compile(rb"\x80[\x02-\x05]")
_OBJECT: Final = _bytes(r"\s*\{")

REFUSED: Final = (
    Refused(
        "a table of nsys stats as CSV",
        "give the report as SQLite (nsys export --type sqlite), or the text of nsys stats (--format column)",
        holds=(
            _bytes(
                r'^"?(?:Time ?\(%\)"?,"?Total Time|Start \(\w+\)"?,"?Duration \(\w+\)"?,"?(?:CorrId|CorrID|Name)"?,'
                r'|Total \(\w+\)"?,"?Count"?,"?Avg \()'
            ),
        ),
    ),
    Refused(
        "a table of rocprof as CSV",
        f"{_TRACE}, which has the kernels of AMD devices too",
        holds=(
            _bytes(
                r'^(?:"?\w+"?,)*"?(?:Start_Timestamp"?,"?End_Timestamp|TotalDurationNs"?,"?AverageNs'
                r'|Counter_Name"?,"?Counter_Value|Logical_Node_Id"?,"?Agent_Type|BeginNs"?,"?EndNs)\b'
            ),
        ),
    ),
    Refused(
        "an execution trace (Chakra)",
        _TRACE,
        begins=_OBJECT,
        holds=(_bytes(r'"schema" ?: ?"[\w.-]*chakra|\[pytorch\|profiler\|execution_(?:trace|graph)\|'),),
    ),
    Refused("an execution trace (Chakra)", _TRACE, name=_name(r".*\.et")),
    Refused(
        "a flight recorder dump of collectives",
        _TRACE,
        begins=_PICKLE,
        holds=(_bytes("pg_config|pg_status|collective_seq_id|nccl_comm_state"),),
    ),
    Refused(
        "a flight recorder dump of collectives",
        _TRACE,
        begins=_OBJECT,
        holds=(_bytes('"entries" ?:'), _bytes('"(?:pg_config|pg_status|collective_seq_id|nccl_comm_state)" ?:')),
    ),
    Refused("a flight recorder dump of collectives", _TRACE, name=_name(r"(?:nccl|comm_lib)_trace_rank_\d+")),
    Refused(
        "a memory snapshot of PyTorch",
        f"{_TRACE} that was recorded with profile_memory=True",
        begins=_PICKLE,
        holds=(_bytes("segments|device_traces"), _bytes("allocated_size|total_size|device_traces|active_size")),
    ),
    Refused(
        "a memory timeline of torch.profiler",
        _TRACE,
        # rows of time, action, bytes and category; or a list of times, and one of sizes
        begins=_bytes(
            r"\s*\[\s*\[\s*(?:-1|\d{9,}(?:\.\d+)?)\s*,\s*(?:\d{9,}(?:\.\d+)?\s*[,\]]|[0-3]\s*,\s*\d+\s*,\s*\d{1,2}\s*\])"
        ),
        name=_name(r".*\.json(?:\.gz)?"),
    ),
    Refused(
        "a memory timeline of torch.profiler",
        _TRACE,
        holds=(_bytes("<title>GPU Memory Timeline HTML</title>"),),
    ),
    Refused(
        "a table of sums of torch.profiler (key_averages)",
        _TRACE,
        holds=(_bytes(r"^.*\bName +Self CPU (?:total )?%"), _bytes("# of Calls|Number of Calls")),
    ),
    Refused(
        "a trace of VizTracer",
        f"{_TRACE}, which has the work of the device too",
        begins=_bytes(r"\s*[{\[]"),
        holds=(_bytes(r'"viztracer_metadata" ?:|"cat" ?: ?"FEE"'),),
    ),
    Refused(
        "a trace of XLA (the profiler of JAX and TensorFlow)",
        _REPORT,
        begins=_OBJECT,
        holds=(_bytes('"traceEvents" ?:'), _bytes(r'"/(?:host:CPU|device:(?:GPU|TPU|CUSTOM)[:\w -]*)')),
    ),
    Refused(
        "a trace of XLA (the profiler of JAX and TensorFlow)",
        _REPORT,
        name=_name(r".*\.xplane\.pb"),
    ),
    Refused(
        "a profile of Proton (Triton)",
        _TRACE,
        begins=_bytes(r"\s*\[\s*\{"),
        holds=(_bytes(r'"frame" ?: ?\{'), _bytes(r'"metrics" ?: ?\{'), _bytes(r'"(?:time \(ns\)|device_type)"')),
    ),
    Refused("a profile of Proton (Triton)", _TRACE, name=_name(r".*\.hatchet")),
)


def refused_kind(path: Path) -> Refused | None:
    """Return the kind of a file of another tool that is not read; None for any other file."""
    try:
        head = read_head(path, _HEAD_BYTES).removeprefix(BOM)
        end = _end_of(path)
    except (OSError, SourceError):
        return None
    name = path.name.lower()
    return next((one for one in REFUSED if one.fits(name, head, end)), None)


def _end_of(path: Path) -> bytes:
    """Return the last bytes of a file; nothing of one that is compressed."""
    with open_source(path) as file:
        if file.read(len(GZIP_MAGIC)) == GZIP_MAGIC:
            return b""
        size = file.seek(0, 2)
        file.seek(max(0, size - _END_BYTES))
        return file.read(_END_BYTES)
