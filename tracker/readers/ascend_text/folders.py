"""Which files of a folder are a capture in text form, and what each of them is for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from tracker.limits.files import beside
from tracker.readers._ascend.chips import info_files
from tracker.readers._ascend.files import CAPTURE_FOLDER, KERNELS, OUTPUT, TRACE
from tracker.readers._passed_over import RAW_FOLDER
from tracker.readers._source import suffix_of

GZIPPED: Final = ".gz"
"""What may stand behind the name of the trace."""

COMMUNICATION: Final = "communication.json"
MATRIX: Final = "communication_matrix.json"
ALLOCATIONS: Final = "operator_memory.csv"
MEMORY: Final = "memory_record.csv"
STEPS: Final = "step_trace_time.csv"
STATISTIC: Final = "op_statistic.csv"
_EVENTS: Final = (KERNELS, TRACE, COMMUNICATION, MATRIX, ALLOCATIONS, MEMORY)

COUNTED: Final = re.compile(
    r"(?:step_trace_time|op_statistic|api_statistic|operator_details|npu_module_mem|l2_cache|data_preprocess|dataset"
    r"|minddata_pipeline_raw_?\d*|minddata_pipeline_summary_?\d*|pcie|hccs|nic|roce|aicpu)\.csv"
)
"""Tables that become counters; api_statistic only where no trace has the calls themselves."""

SUMMARY_AS_JSON: Final = re.compile(r"minddata_pipeline_summary_?\d*\.json")

LEFT_OUT: Final[Mapping[str, str]] = {
    SUMMARY_AS_JSON.pattern: "the same numbers as minddata_pipeline_summary_*.csv",
    r"analysis\.db|communication_analyzer\.db": "the same numbers as communication*.json and step_trace_time.csv",
    r"ascend_(?:pytorch|mindspore)_profiler(?:_\d+)?\.db": "the same capture as a database",
    r"minddata_(?:aicpu|cpu_utilization|device_utilization)_?\d*\.(?:txt|json)": "input of minddata_pipeline_summary_*",
}
"""Files that are not read since another one says the same."""

_INFO: Final = re.compile(r"profiler_info(?:_\d+)?\.json")
_DATABASE: Final = re.compile(r"ascend_(?:pytorch|mindspore)_profiler(?:_\d+)?\.db")
_DYNAMIC: Final = re.compile(r"rank\d+_start\d+_stop\d+")  # of DynamicProfilerMonitor
_OF_MINDSPORE: Final = re.compile(r"dataset\.csv|minddata_pipeline_")


class Layout(Struct, frozen=True):
    """The files of one capture. `root`: the folder (or bare file) that was claimed; `files`: by name.

    `chips`: files that name the chip; `homes`: folders whose databases may name it.
    `unknown`: files beside them that this reader does not know.
    """

    root: Path
    files: Mapping[str, Path]
    info: Path | None = None
    metadata: Path | None = None
    chips: tuple[Path, ...] = ()
    counted: tuple[Path, ...] = ()
    unknown: tuple[str, ...] = ()
    names: tuple[str, ...] = field(default=())
    homes: tuple[Path, ...] = ()

    @property
    def is_mindspore(self) -> bool:
        """True for captures of MindSpore: by the names of their folders, or by tables that no other profiler writes."""
        named = any(name.lower().endswith("ascend_ms") or _DYNAMIC.fullmatch(name) for name in self.names)
        return named or any(_OF_MINDSPORE.match(path.name) for path in self.counted)


def output_of(folder: Path) -> Path | None:
    """The folder with the parsed files of the capture `folder`: itself or its ASCEND_PROFILER_OUTPUT; else None."""
    if folder.name == OUTPUT:
        return folder
    inside = folder / OUTPUT
    if inside.is_dir() and (CAPTURE_FOLDER.fullmatch(folder.name) or _infos(folder)):
        return inside
    held = [TRACE + GZIPPED, *_EVENTS]
    known = {name.removesuffix(GZIPPED) for name in held if (folder / name).is_file()}
    beside = (file.name for file in folder.iterdir()) if known else ()
    others = [name for name in beside if COUNTED.fullmatch(name) or _DATABASE.fullmatch(name)]
    return folder if {KERNELS, TRACE} & known and len(known) + len(others) > 1 else None


def has_text(output: Path) -> bool:
    """True where `output` holds a capture as text; a database beside it goes before unless kernels are there."""
    names = {_name_of(file) for file in output.iterdir()}
    if KERNELS in names:
        return True
    has_database = any(_DATABASE.fullmatch(name) for name in names)
    return not has_database and (bool(names & set(_EVENTS)) or any(COUNTED.fullmatch(name) for name in names))


def is_unparsed(folder: Path) -> bool:
    """True for the folder of a capture that only holds what the profiler collected, not what its parser makes of it."""
    if not CAPTURE_FOLDER.fullmatch(folder.name):
        return False
    output = folder / OUTPUT
    if output.is_dir() and any(output.iterdir()):
        return False
    if any(_DATABASE.fullmatch(file.name) for file in folder.iterdir()):
        return False
    raw = [file for file in folder.iterdir() if RAW_FOLDER.fullmatch(file.name) and file.is_dir()]
    return bool(raw) and not any((file / "mindstudio_profiler_output").is_dir() for file in raw)


def layout_of(path: Path) -> Layout:
    """The files of the capture at `path`, a folder or one bare file."""
    if path.is_file():
        name = KERNELS if suffix_of(path) == ".csv" else TRACE
        here = path.resolve().parent
        return Layout(path, {name: path}, names=(path.name, here.name), homes=(here,))
    output = output_of(path) or path
    # beside the output folder, or in it where someone kept only that
    homes = (path, output, output.resolve().parent if output.name == OUTPUT else output)
    infos = [info for home in homes for info in _infos(home)]
    metadata = [home / "profiler_metadata.json" for home in homes]
    files = sorted(file for file in output.iterdir() if file.is_file() and not file.name.startswith("."))
    # where both are there, the trace as it was written goes before
    known = {file_name: file for file in reversed(files) if (file_name := _name_of(file)) in _EVENTS}
    counted = tuple(file for file in files if _is_counted(file))
    unknown = tuple(
        file.name for file in files if _name_of(file) not in known and file not in counted and _is_unknown(file)
    )
    here = path.resolve()
    raw = output.resolve().parent if output.name == OUTPUT else output
    return Layout(
        root=path,
        files=known,
        info=infos[0] if infos else None,
        metadata=next((file for file in metadata if file.is_file()), None),
        chips=tuple(info_files(raw)),
        counted=counted,
        unknown=unknown,
        names=(here.name, here.parent.name, here.parent.parent.name),
        homes=(output, raw, *sorted(raw.glob("PROF_*"))),
    )


def _name_of(file: Path) -> str:
    """The name of a file; of a gzipped trace without what says so."""
    return TRACE if file.name == TRACE + GZIPPED else file.name


def _is_counted(file: Path) -> bool:
    """True for a table that becomes counters; for the summary of a data pipeline as JSON where it is not there as
    CSV, too.
    """
    if SUMMARY_AS_JSON.fullmatch(file.name):
        return beside(file.with_suffix(""), ".csv") is None
    return COUNTED.fullmatch(file.name) is not None


def _is_unknown(file: Path) -> bool:
    if file.suffix not in (".csv", ".json", ".db", ".txt"):
        return False
    own = _INFO.fullmatch(file.name) or file.name == "profiler_metadata.json"
    return not own and not any(re.fullmatch(pattern, file.name) for pattern in LEFT_OUT)


def _infos(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if _INFO.fullmatch(file.name))
