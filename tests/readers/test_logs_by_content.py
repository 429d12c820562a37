"""A log is recognised by its content, whatever it begins with and whatever a launcher puts around its lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tracker import readers
from tracker.errors import SourceError
from tracker.profile import Capture

SPEEDS = [f"iter {step}: reader_cost: 0.001 s batch_cost: 0.02{step} s ips: 800.0 images/s" for step in range(1, 4)]
STEPS_MS = [22, 23]
"""The first interval is warm-up."""
WARM_UP = "of 3 intervals the median leaves out 1 of warm-up"
BEGINNINGS = {
    "a printed dict": "{'lr': 0.1, 'batch': 32}\n",
    "a printed dict over lines": "{'lr': 0.1,\n 'batch': 32}\n",
    "a line of JSON": '{"lr": 0.1, "text": "[\\"a\\"]"}\n',
    "JSON over lines": '{\n  "lr": 0.1\n}\n',
    "a list": "[{'gpu': 0}]\n",
    "a byte order mark": "\ufeff{'lr': 0.1}\n",
    "a banner": "*" * 80 + "\n* training *\n\n",
    "warnings": "a.py:3: UserWarning: slow\n  warnings.warn(text)\n" * 200,
    "blank lines": "\n  \n\t{}\n",
    "a namespace": "Namespace(lr=0.1)\n",
}


def capture_of(path: Path) -> Capture:
    (found,) = readers.find(path)
    assert found.format == "training_log"
    (capture,) = readers.read(found).captures
    return capture


def steps_ms(capture: Capture) -> list[int]:
    assert capture.rows is not None
    return [round((row.breakdown.duration_ns or 0) / 1e6) for row in capture.rows.steps]


@pytest.mark.parametrize("name", ["train.log", "TRAIN.LOG", "train.log.gz", "workerlog.0"])
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_log_may_begin_with_anything(tmp_path: Path, beginning: str, name: str):
    content = (BEGINNINGS[beginning] + "\n".join(SPEEDS)).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert steps_ms(capture_of(tmp_path)) == STEPS_MS


@pytest.mark.parametrize(
    "prefix", ["[rank0]: ", "[rank0]:", "[default0]:", "[1,0]<stdout>:", "0: ", "\x1b[36m[rank0]: \x1b[0m"]
)
def test_prefixes_of_ranks_are_no_part_of_a_line(tmp_path: Path, prefix: str):
    summary = ["------Device Summary------", "-------- --------", "Device  Utilization (%)", "-------- --------",
               "CPU(Process)  97.5", "-------- --------"]  # fmt: skip
    (tmp_path / "a.log").write_text("\n".join(prefix + line for line in SPEEDS))
    assert steps_ms(capture_of(tmp_path / "a.log")) == STEPS_MS
    (tmp_path / "b.log").write_text("\n".join(prefix + line for line in summary))
    assert readers.claim(tmp_path / "b.log") == "paddle_summary"
    (tmp_path / "c.log").write_text("{'lr': 0.1}\n" + prefix + " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n")
    assert readers.claim(tmp_path / "c.log") == "nsys_stats"


def test_lines_of_several_ranks_are_steps_of_the_first(tmp_path: Path):
    lines = [f"[rank{rank}]: {line}" for line in SPEEDS for rank in (3, 0)]
    (tmp_path / "a.log").write_text("\n".join(lines))
    (found,) = readers.find(tmp_path)
    profile = readers.read(found)
    assert steps_ms(profile.captures[0]) == STEPS_MS
    assert profile.warnings == (WARM_UP, "2 ranks report the speed; the steps are those of rank 0")


def test_a_progress_bar_longer_than_a_line_may_be_ends_no_log(tmp_path: Path):
    bar = "\r".join(f"{percent}% |####" + "." * 90 for percent in range(20_000))  # 2 MB without a new line
    (tmp_path / "a.log").write_text(SPEEDS[0] + "\r\n" + bar + "\r" + "\r".join(SPEEDS[1:]), newline="")
    assert steps_ms(capture_of(tmp_path)) == STEPS_MS


def test_colours_between_a_name_and_its_number_do_no_harm(tmp_path: Path):
    (tmp_path / "a.log").write_text(
        "\n".join(SPEEDS).replace(": 0.0", ": \x1b[32m0.0").replace(": 800", ": \x1b[1m800")
    )
    assert steps_ms(capture_of(tmp_path)) == STEPS_MS


def test_lines_of_json_may_hold_the_messages_of_a_log(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"level": "INFO", "message": line}) for line in SPEEDS))
    assert steps_ms(capture_of(tmp_path)) == STEPS_MS


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("key", ["traceEvents", "a", None])
def test_json_that_quotes_a_log_is_no_log(tmp_path: Path, key: str | None, indent: int | None):
    events = [{"ph": "X", "name": 'a "b" ips: 0.5 c', "ts": 1, "dur": 1}, {"name": "batch_cost: 0.5 s"}]
    (tmp_path / "a.json").write_text(json.dumps(events if key is None else {key: events}, indent=indent))
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(tmp_path / "a.json")
