"""Tables that are measurements over time, or stand alone -> counters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct, field

from tracker.profile import F64, I32, I64, MISSING, NO_STEP, Counters, Strings
from tracker.readers._spans import Spans
from tracker.readers._sqlite import Database, code_column, picked
from tracker.readers.ascend_db.texts import Texts

_MIB: Final = 1 << 20
_KIB: Final = 1 << 10
_BRACES: Final = re.compile(r"\{(\w+)\}")


class Sample(Struct, frozen=True):
    """One number: its table, the thing measured, the measurement with its unit, the value, the step or NO_STEP."""

    source: str
    name: str
    attribute: str
    value: float
    step: int = NO_STEP


class _Measured(Struct, frozen=True):
    """How one column of a table, or the sum `a+b` of two, becomes a counter.

    `name` and `attribute` hold columns in braces; a column that is a key of `words` is replaced by its word there (of
    STRING_IDS where the table is ''), with a capital. The value is divided by `unit`.
    """

    table: str
    source: str
    column: str
    name: str
    attribute: str
    words: Mapping[str, str] = field(default_factory=dict)
    unit: float = 1.0


_TYPE: Final = {"type": ""}
_MODE: Final = {"mode": ""}
# names, units and attributes are those of the text export, so that both exports of one script give the same rows
_MEASURED: Final = (
    _Measured("NPU_MODULE_MEM", "npu_module_mem", "totalReserved", "{moduleId}", "Total Reserved(MB)",
              {"moduleId": "ENUM_MODULE"}, _MIB),
    _Measured("AICORE_FREQ", "ai_core_freq", "freq", "AI Core Freq", "MHz"),
    _Measured("NPU_MEM", "npu_mem", "hbm", "{type}/HBM", "KB", _TYPE, _KIB),
    _Measured("NPU_MEM", "npu_mem", "ddr", "{type}/DDR", "KB", _TYPE, _KIB),
    _Measured("NPU_MEM", "npu_mem", "hbm+ddr", "{type}/Memory", "KB", _TYPE, _KIB),
    _Measured("HBM", "hbm", "bandwidth", "HBM {hbmId}/{type}", "{type}(MB/s)", _TYPE, _MIB),
    _Measured("LLC", "llc", "hitRate", "LLC {llcId} {mode}/Hit Rate", "Hit Rate(%)", _MODE),
    _Measured("LLC", "llc", "throughput", "LLC {llcId} {mode}/Throughput", "Throughput(MB/s)", _MODE, _MIB),
    _Measured("DDR", "ddr", "read", "DDR/Read", "Read(MB/s)", unit=_MIB),
    _Measured("DDR", "ddr", "write", "DDR/Write", "Write(MB/s)", unit=_MIB),
    _Measured("SOC_BANDWIDTH_LEVEL", "stars_soc_info", "l2BufferBwLevel", "L2 Buffer Bw Level", "L2 Buffer Bw Level"),
    _Measured("SOC_BANDWIDTH_LEVEL", "stars_soc_info", "mataBwLevel", "Mata Bw Level", "Mata Bw Level"),
    _Measured("ACC_PMU", "acc_pmu", "readBwLevel", "read_bandwidth {accId}", "value"),
    _Measured("ACC_PMU", "acc_pmu", "writeBwLevel", "write_band_width {accId}", "value"),
    _Measured("ACC_PMU", "acc_pmu", "readOstLevel", "read_ost {accId}", "value"),
    _Measured("ACC_PMU", "acc_pmu", "writeOstLevel", "write_ost {accId}", "value"),
)  # fmt: skip


def counters_of(spans: Spans, texts: Texts, more: Iterable[Sample], *, device: int | None) -> Counters:
    """The measurements of the database, and `more`; `device`: the one device whose rows are read, None for all."""
    db, strings = spans.db, texts.strings
    parts = [_column(db, texts, measured, device) for measured in _MEASURED if db.has(measured.table)]
    parts.append(_pauses(spans, strings))
    parts.append(_samples(list(more), strings))

    def joined(place: int, dtype: type) -> Any:
        return np.concatenate([np.zeros(0, dtype=dtype), *(part[place] for part in parts)])

    return Counters(
        step=joined(0, np.int64),
        source=joined(1, np.int32),
        name=joined(2, np.int32),
        attribute=joined(3, np.int32),
        value=joined(4, np.float64),
    )


_Part = tuple[I64, I32, I32, I32, F64]


def _column(db: Database, texts: Texts, measured: _Measured, device: int | None) -> _Part:
    keys = tuple(dict.fromkeys(_BRACES.findall(measured.name + measured.attribute)))
    table: dict[str, Any] = db.ints(measured.table, (), (*keys, "deviceId"))
    parts = db.floats(measured.table, (), measured.column.split("+"))
    table["value"] = np.sum(list(parts.values()), axis=0)
    if device is not None:
        table = picked(table, np.isin(table["deviceId"], (device, MISSING)))
    table = picked(table, np.isfinite(table["value"]))
    count = len(table["value"])
    columns = [table[key] for key in keys] or [np.zeros(count, dtype=np.int64)]
    distinct, back = np.unique(np.stack(columns), axis=1, return_inverse=True)
    names, attributes = [], []
    for numbers in distinct.T.tolist():
        said = {key: _word(db, texts, measured, key, n) for key, n in zip(keys, numbers[: len(keys)], strict=True)}
        names.append(measured.name.format(**said))
        attributes.append(measured.attribute.format(**said))
    back = back.reshape(-1)
    return (
        *_same(texts.strings, count, measured.source),
        code_column(names, texts.strings)[back],
        code_column(attributes, texts.strings)[back],
        table["value"] / measured.unit,
    )


def _word(db: Database, texts: Texts, measured: _Measured, key: str, number: int) -> str:
    words = measured.words.get(key)
    if words is None:
        return str(number)
    text = db.words(words).get(number, "") if words else texts.text(number).capitalize()
    return ("APP" if text == "App" else text) or str(number)


def _pauses(spans: Spans, strings: Strings) -> _Part:
    """The pauses of Python's garbage collector."""
    table = spans.read("GC_RECORD")
    duration = (table["endNs"] - table["startNs"]).astype(np.float64)
    count = len(duration)
    name = np.full(count, strings.code("GC"), dtype=np.int32)
    return (*_same(strings, count, "python_gc"), name, np.full(count, strings.code("Duration(ns)"), np.int32), duration)


def _samples(samples: Sequence[Sample], strings: Strings) -> _Part:
    return (
        np.array([sample.step for sample in samples], dtype=np.int64),
        np.array([strings.code(sample.source) for sample in samples], dtype=np.int32),
        np.array([strings.code(sample.name) for sample in samples], dtype=np.int32),
        np.array([strings.code(sample.attribute) for sample in samples], dtype=np.int32),
        np.array([sample.value for sample in samples], dtype=np.float64),
    )


def _same(strings: Strings, count: int, source: str) -> tuple[I64, I32]:
    return np.full(count, NO_STEP, dtype=np.int64), np.full(count, strings.code(source), dtype=np.int32)
