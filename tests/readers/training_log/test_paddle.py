"""Training logs of Paddle: every dialect, and what path and text say of the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from tracker import readers
from tracker.errors import SourceError
from tracker.profile import CPU, ROUNDING_SETTING, UNKNOWN_DEVICE, Capture, Device
from tracker.readers import training_log
from tracker.readers.training_log.clocks import clock_in
from tracker.readers.training_log.paddle_lines import Speed, speed_of

DIALECTS = {
    "timer": ("iter 5:  reader_cost: 0.001 s batch_cost: 0.020 s ips: 800.0 images/s", (5, 20, 1, 800.0, "images/s")),
    "ppcls": (
        "[2021/12/21 17:25:18] root INFO: epoch:0   train step:10   lr: 0.1, loss: 7.1 batch_cost: 0.020 s, "
        "reader_cost: 0.001 s, ips: 800.0 images/sec.",
        (10, 20, 1, 800.0, "images/s"),
    ),
    "ppcls 2020": (
        "2020-12-16 18:16:34 INFO: epoch:0   train step:7    loss:  7.1 lr: 0.1 elapse: 0.020s ips: 800.0 images/sec.",
        (7, 20, None, 800.0, "images/s"),
    ),
    "PaddleSeg": (
        "2021-05-01 10:00:00 [INFO]\t[TRAIN] epoch: 1, iter: 10/80000, loss: 1.0, lr: 0.01, batch_cost: 0.0200, "
        "reader_cost: 0.00100, ips: 800.0 samples/sec | ETA 04:31:18",
        (10, 20, 1, 800.0, "samples/s"),
    ),
    "PaddleNLP": (
        "tobal step: 10, epoch: 0, batch: 9, loss: 11.2, avg_reader_cost: 0.00100 sec, avg_batch_cost: 0.02000 sec, "
        "avg_samples: 16.0, ips: 800.0 sequences/sec",
        (10, 20, 1, 800.0, "sequences/s"),
    ),
    "PaddleNLP 2020": (
        "global step 20, epoch: 0, batch: 19, loss: 11.2, speed: 50.0 step/s, ips :800.0 sequences/s",
        (20, 20, None, 800.0, "sequences/s"),
    ),
    "Transformer": (
        "step_idx: 100, epoch: 0, batch: 99, avg loss: 9.1, avg_speed: 50.0 step/s, reader_cost: 0.001 sec, "
        "ips: 800.0 words/sec",
        (100, 20, 1, 800.0, "words/s"),
    ),
    "PaddleDetection": (
        "[10/01 10:00:00] ppdet.engine INFO: Epoch: [0] [ 20/100] eta: 0:12:32 batch_cost: 0.020 data_cost: 0.001 "
        "ips: 800.0 images/s",
        (None, 20, 1, 800.0, "images/s"),
    ),
    "PaddleSeg 2021": (
        "2021-01-12 10:00:00 [INFO]\t[TRAIN] epoch=1, iter=20/140, batch_cost=0.0200, reader_cost=0.001 | ETA",
        (20, 20, 1, None, ""),
    ),
    "avg_ips": ("epoch: 0, batch_cost: 20 ms, avg_ips: 800.0 images/s", (None, 20, None, 800.0, "images/s")),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_says_step_time_reader_time_and_throughput(dialect: str):
    line, (step, step_ms, loading_ms, throughput, unit) = DIALECTS[dialect]
    loading = None if loading_ms is None else loading_ms * 1_000_000
    speed = speed_of(line)
    assert speed is not None
    assert replace(speed, epoch=None) == Speed(step, step_ms * 1_000_000, loading, throughput, unit)


@pytest.mark.parametrize(
    "line",
    [
        "ips: 127.0.0.1",
        "LAUNCH INFO 2023-01-05 15:55:40,232 ips: None",
        "To make the speed faster, some ops are fused",
        "[2021/12/21 17:26:20] root INFO: END epoch:0  batch_cost: 0.09 s, batch_cost_sum: 63.0 s, ips: 9.0 images/s",
        "2020-12-16 18:32:38 INFO: END epoch:0   train loss:  6.4  elapse_sum: 959.223s ips: 1335.0 images/sec.",
        "|    batch_cost   |     0.02766     |     0.03793     |     0.02347     |",
    ],
)
def test_other_lines_and_sums_of_an_epoch_are_no_interval(line: str):
    assert speed_of(line) is None


def log(folder: Path, *lines: str, name: str = "train.log") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def read(path: Path) -> Capture:
    assert readers.claim(path) == "training_log"
    (capture,) = training_log.read(path).captures
    return capture


def interval(step: int, batch_s: float, ips: float, reader_s: float = 0.001) -> str:
    return f"iter {step}:  reader_cost: {reader_s} s batch_cost: {batch_s} s ips: {ips} images/s"


def test_each_line_is_a_step_row_and_the_first_one_is_warm_up(tmp_path: Path):
    capture = read(log(tmp_path, interval(10, 0.9, 4.0), interval(20, 0.4, 10.0), interval(30, 0.1, 40.0)))
    rows = capture.rows
    assert rows is not None
    assert [(row.step, row.start_ns, row.breakdown.duration_ns) for row in rows.steps] == [
        (20, 9_000_000_000, 400_000_000),  # behind 10 steps of 900 ms
        (30, 13_000_000_000, 100_000_000),
    ]
    assert [row.breakdown.samples_per_second for row in rows.steps] == [10.0, 40.0]
    assert rows.overall.samples_per_second == 16.0  # 8 samples in 0.5 s
    assert rows.overall.compute_ns is None
    settings = {name: text for name, text in capture.settings.items() if name != ROUNDING_SETTING}
    assert settings == {"profiler": "off", "throughput_unit": "images/s", "interval_steps": "10"}


def test_warm_up_line_of_step_0_leaves_steps_of_an_interval(tmp_path: Path):
    """A killed job has a line of step 0 and one of the 10 steps behind it: an interval has 10 steps, not 5."""
    capture = read(log(tmp_path, interval(0, 0.3, 10.0), interval(10, 0.1, 40.0)))
    assert capture.settings["interval_steps"] == "10"


@pytest.mark.parametrize(
    ("steps", "total_ns"), [((1,), 100_000_000), ((0,), 100_000_000), ((10,), None), ((1, 2, 3), None), ((3,), None)]
)
def test_how_long_all_steps_took_is_known_only_where_each_has_a_line_that_counts(
    tmp_path: Path, steps: tuple[int, ...], total_ns: int | None
):
    rows = read(log(tmp_path, *(interval(step, 0.1, 40.0) for step in steps))).rows
    assert rows is not None
    loading_ns = None if total_ns is None else 1_000_000
    assert (rows.overall.duration_ns, rows.overall.data_loading_ns) == (total_ns, loading_ns)
    assert rows.overall.samples_per_second == 40.0


def test_a_log_that_counts_anew_in_each_epoch_is_numbered_through(tmp_path: Path):
    rows = read(log(tmp_path, interval(10, 0.1, 40.0), interval(20, 0.1, 40.0), interval(10, 0.1, 40.0))).rows
    assert rows is not None
    assert [row.step for row in rows.steps] == [20, 30]


def test_colours_and_overwritten_lines_are_taken_away(tmp_path: Path):
    path = log(
        tmp_path, "\x1b[32m[2023-01-05 17:02:32,696] [    INFO]\x1b[0m - hello\r", "  0%|  |\r" + interval(5, 0.1, 40.0)
    )
    capture = read(path)
    assert capture.rows is not None
    assert [row.step for row in capture.rows.steps] == [5]


def test_what_begins_as_a_colour_and_is_none_stays_and_the_log_comes_to_its_end(tmp_path: Path):
    path = log(tmp_path, interval(5, 0.1, 40.0), "\x1b[" * 50, interval(10, 0.1, 40.0), interval(15, 0.1, 40.0))
    rows = read(path).rows
    assert rows is not None
    assert [row.step for row in rows.steps] == [10, 15]


def test_steps_per_second_are_no_samples(tmp_path: Path):
    capture = read(log(tmp_path, "iter 1: batch_cost: 0.5 s ips: 2.0 steps/s"))
    assert capture.rows is not None
    assert capture.rows.overall.samples_per_second is None
    assert "throughput_unit" not in capture.settings


PERF = (
    "====================Perf Summary====================",
    "Reader Ratio: 25.000%",
    "Time Unit: s, IPS Unit: images/s",
    "|                 |       avg       |       max       |       min       |",
    "|   reader_cost   |     0.00500     |     0.00600     |     0.00400     |",
    "|    batch_cost   |     0.02000     |     0.03000     |     0.01000     |",
    "|       ips       |    800.00000    |    1600.0000    |    533.00000    |",
)


def test_the_perf_summary_is_kept_beside_the_lines(tmp_path: Path):
    rows = read(log(tmp_path, interval(5, 0.02, 800.0), *PERF)).rows
    assert rows is not None
    counters = rows.tables["counter"]
    assert counters["name"][:4] == ["reader_cost", "batch_cost", "ips", "reader ratio"]
    assert counters["attribute"][:4] == ["s", "s", "images/s", "%"]
    assert counters["mean"].tolist()[:4] == [0.005, 0.02, 800.0, 25.0]
    assert counters["max"].tolist()[:3] == [0.006, 0.03, 1600.0]


def test_a_perf_summary_alone_gives_its_means(tmp_path: Path):
    path = log(tmp_path, *PERF)
    rows = read(path).rows
    assert rows is not None
    (one,) = rows.steps
    assert (one.breakdown.duration_ns, one.breakdown.data_loading_ns) == (20_000_000, 5_000_000)
    assert one.breakdown.samples_per_second == 800.0
    assert "only the Perf Summary" in training_log.read(path).warnings[0]


@pytest.mark.parametrize("word", ["inf", "nan", "-inf"])
def test_perf_summary_with_one_odd_cell_keeps_the_others(tmp_path: Path, word: str):
    """Paddle prints `inf` as the smallest time of a timer that saw no first interval."""
    counters = rows_of_perf(tmp_path, PERF[4].replace("0.00400", word.rjust(7)))
    assert counters["reader_cost"] == (0.005, 0.006, None)
    assert counters["batch_cost"] == (0.02, 0.03, 0.01)
    assert counters["step"] == (20_000_000, 5_000_000, None)


def test_perf_summary_row_without_a_mean_says_nothing(tmp_path: Path):
    counters = rows_of_perf(tmp_path, PERF[4].replace("0.00500", "    inf"))
    assert "reader_cost" not in counters
    assert counters["step"] == (20_000_000, None, None)


def rows_of_perf(folder: Path, reader_cost: str) -> dict[str, tuple[float | None, ...]]:
    """Return mean, largest and smallest of each row of the summary, None for NaN; and step and data loading in ns."""
    rows = read(log(folder, *PERF[:4], reader_cost, *PERF[5:])).rows
    assert rows is not None
    (one,) = rows.steps
    found: dict[str, tuple[float | None, ...]] = {}
    counters = rows.tables["counter"]
    for at, name in enumerate(counters["name"]):
        numbers = [float(counters[column][at]) for column in ("mean", "max", "min")]
        found[str(name)] = tuple(None if np.isnan(number) else number for number in numbers)
    return {**found, "step": (one.breakdown.duration_ns, one.breakdown.data_loading_ns, None)}


@pytest.mark.parametrize(
    ("folder", "configuration", "device"),
    [
        ("base_bs96_fp16_gpu8.log", {"batch_size": "96", "precision": "fp16", "devices": "8"}, UNKNOWN_DEVICE),
        (
            "A100_LOG/PaddleNLP_bert_base_seqlen128_bs96_fp32_DP_N2C8_log",
            {"batch_size": "96", "precision": "fp32", "devices": "16", "sequence_length": "128"},
            Device("NVIDIA", "A100"),
        ),
        (
            "V100-LOG/PaddleClas_ResNet50_bs256_pure_fp16_DP_N1C1_log",
            {"batch_size": "256", "precision": "pure_fp16", "devices": "1"},
            Device("NVIDIA", "V100"),
        ),
        ("paddle_gpu1_amp_bs128.txt", {"batch_size": "128", "precision": "amp", "devices": "1"}, UNKNOWN_DEVICE),
    ],
)
def test_the_folder_says_configuration_and_device(
    tmp_path: Path, folder: str, configuration: dict[str, str], device: Device
):
    capture = read(log(tmp_path, interval(5, 0.1, 40.0), name=f"{folder}/20230808_69edec3bb7"))
    assert (dict(capture.configuration), capture.device) == (configuration, device)
    assert dict(capture.labels) == {"version": "20230808_69edec3bb7", "commit": "69edec3bb7", "date": "2023-08-08"}


def test_where_the_folder_is_silent_the_text_counts(tmp_path: Path):
    capture = read(
        log(
            tmp_path,
            "Namespace(batch_size=32, device='gpu', model_name_or_path='bert-base-uncased', use_amp=True)",
            "PADDLE_TRAINERS_NUM                        8                      |",
            "W0105 17:02:37.39  8381 gpu_resources.cc:61] Please NOTE: device: 0, GPU Compute Capability: 8.0, "
            "Driver API Version: 11.7, Runtime API Version: 11.2",
            "[2023-01-05 17:02:33,000] [ INFO] - start",
            interval(5, 0.1, 40.0),
        )
    )
    assert dict(capture.configuration) == {"batch_size": "32", "precision": "amp", "devices": "8"}
    assert dict(capture.labels) == {"workload": "bert-base-uncased"}
    assert capture.started_at_ns == 1_672_938_153 * 10**9
    assert dict(capture.facts) == {
        "framework": "paddle",
        "gpu_compute_capability": "8.0",
        "cuda_driver_version": "11.7",
        "cuda_runtime_version": "11.2",
        "time_zone": "not stated; times are taken as UTC",
    }


def test_the_model_of_a_paddleclas_log_is_the_name_below_its_architecture(tmp_path: Path):
    lines = ("Loss : ", "    name : CELoss", "Arch : ", "    class_num : 1000", "    name : ResNet50", "Optimizer : ",
             "    name : Momentum")  # fmt: skip
    path = log(tmp_path, *(f"[2023/08/02 20:53:52] ppcls INFO: {line}" for line in lines), interval(5, 0.1, 40.0))
    assert read(path).labels == {"workload": "ResNet50"}


def test_a_log_of_the_cpu_and_the_rank_of_a_worker(tmp_path: Path):
    path = log(
        tmp_path, "[2023/08/02 20:53:52] ppcls INFO:     device : cpu", interval(5, 0.1, 40.0), name="workerlog.3"
    )
    assert (read(path).device, read(path).rank) == (CPU, 3)


def test_a_log_without_throughput_says_what_was_looked_for(tmp_path: Path):
    path = log(tmp_path, "epoch 1 [ok]")
    with pytest.raises(SourceError, match="no line says how fast the training was; looked for step lines"):
        training_log.read(path)
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(path)


OF_ONE_RANK = ("ppcls", "ppcls 2020", "PaddleSeg", "PaddleNLP", "PaddleNLP 2020")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_throughput_is_per_rank_only_where_the_program_is_known_to_count_so(tmp_path: Path, dialect: str):
    scope = read(log(tmp_path, DIALECTS[dialect][0])).settings.get("throughput_scope")
    assert scope == ("per rank" if dialect in OF_ONE_RANK else None)


def test_the_end_is_not_known_where_no_later_line_has_a_clock(tmp_path: Path):
    capture = read(log(tmp_path, "[1970/01/01 00:00:02] ppcls INFO: start", interval(5, 0.1, 40.0)))
    assert (capture.started_at_ns, capture.ended_at_ns) == (2 * 10**9, None)


def test_throughput_of_the_whole_log_is_its_samples_by_its_time(tmp_path: Path):
    rows = read(log(tmp_path, interval(10, 9.0, 1.0), interval(20, 3.0, 10.0), interval(30, 1.0, 50.0))).rows
    assert rows is not None
    assert rows.overall.samples_per_second == 20.0  # 80 samples in 4 s; the mean of the rates would be 30


def dated(day: int, epoch: int, step: int, batch_s: float) -> str:
    return (
        f"[2026/05/{day} 20:26:{step:02}] ppcls INFO: [Train][Epoch {epoch}/2][Iter: {step}/40]lr: 0.1, "
        f"batch_cost: {batch_s}s, reader_cost: 0.001, ips: 10.0 samples/s"
    )


def test_appended_log_counts_its_last_training(tmp_path: Path):
    first = [dated(28, epoch, step, 0.1) for epoch in (1, 2) for step in (0, 10, 20)]
    second = [dated(29, 1, step, 0.2) for step in (0, 10, 20)]
    profile = training_log.read(log(tmp_path, *first, *second))
    (capture,) = profile.captures
    assert capture.rows is not None
    assert [row.breakdown.duration_ns for row in capture.rows.steps] == [200_000_000, 200_000_000]
    assert capture.started_at_ns == clock_in(b"2026/05/29 20:26:00").ns
    assert "the log holds 2 trainings, one appended to the other; the last one counts" in profile.warnings


def test_appended_log_states_the_batch_of_its_last_training(tmp_path: Path):
    lines = ["batch_size: 16", dated(28, 1, 10, 0.1), "batch_size: 32", dated(29, 1, 0, 0.2)]
    assert read(log(tmp_path, *lines)).configuration["batch_size"] == "32"


def test_steps_that_restart_without_a_pause_are_one_training(tmp_path: Path):
    lines = [
        f"2026-05-28 20:{minute}:00 {interval(step, 0.1, 40.0)}" for minute, step in ((10, 10), (11, 20), (12, 10))
    ]
    assert len(read(log(tmp_path, *lines)).rows.steps) == 2  # a new epoch, behind the warm-up


def test_steps_that_restart_after_a_pause_are_two_trainings(tmp_path: Path):
    lines = [
        f"2026-05-28 20:{minute}:00 {interval(step, 0.1, 40.0)}" for minute, step in ((10, 10), (11, 20), (45, 10))
    ]
    assert len(read(log(tmp_path, *lines)).rows.steps) == 1
