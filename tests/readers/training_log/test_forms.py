"""What programs do beside their usual step line: bars that are drawn again, evaluations, scalars of a user."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from tracker import readers
from tracker.errors import SourceError
from tracker.profile import Profile
from tracker.readers import training_log


def log(folder: Path, content: str | Sequence[str], name: str = "train.log") -> Path:
    path = folder / name
    text = content if isinstance(content, str) else "\n".join([*content, ""])
    path.write_bytes(text.encode())
    return path


def read(path: Path) -> Profile:
    assert readers.claim(path) == "training_log"
    return training_log.read(path)


def times_ms(profile: Profile) -> dict[int, float]:
    rows = profile.captures[0].rows
    assert rows is not None
    return {row.step: round((row.breakdown.duration_ns or 0) / 1e6, 1) for row in rows.steps}


def keras_bar(done: int, time: str, mean: str, rest: str = "", steps: int = 500) -> str:
    """A bar as Keras 3 draws it on a terminal, over the one before it."""
    width = 20 * done // steps
    return (
        f"{chr(8) * 40}\r\x1b[1m{done}/{steps}\x1b[0m \x1b[32m{'━' * width}\x1b[0m\x1b[37m{'━' * (20 - width)}\x1b[0m "
        f"\x1b[1m{time}\x1b[0m {mean}/step - loss: 1.2000{rest}"
    )


def keras_epoch(epoch: int, whole: str = "75s", mean: str = "150ms", validation: str = " - val_loss: 1.1000") -> str:
    """An epoch of 500 steps: the last bar is drawn when the steps are done, and again behind the validation."""
    bars = [keras_bar(1, "10:00", "1s"), keras_bar(250, "30s", "120ms"), keras_bar(500, "0s", "120ms")]
    saved = f"\nEpoch {epoch}: val_loss improved from 1.2 to 1.1, saving model to best.keras\n"
    return f"Epoch {epoch}/5\n" + "".join(bars) + saved + keras_bar(500, whole, mean, validation) + "\n"


def test_keras_epoch_is_its_last_bar(tmp_path: Path):
    epochs = "".join(keras_epoch(epoch) for epoch in range(1, 6))
    profile = read(log(tmp_path, epochs + keras_bar(79, "1s", "10ms", steps=79) + "\n"))
    assert times_ms(profile) == {1000: 150.0, 1500: 150.0, 2000: 150.0, 2500: 150.0}
    (note,) = [text for text in profile.warnings if "Keras" in text]
    assert note.endswith("the validation behind its steps is in the time of a step")


def test_keras_without_validation_has_no_note_on_it(tmp_path: Path):
    profile = read(log(tmp_path, [keras_epoch(epoch, validation="") for epoch in range(1, 4)]))
    assert profile.warnings == ("of 3 intervals the median leaves out 1 of warm-up",)


def test_keras_seconds_a_step_are_total_by_steps(tmp_path: Path):
    """2s/step is known to a quarter, 1,130 s of 500 steps to a thousandth: 2.26 s."""
    profile = read(log(tmp_path, [keras_epoch(epoch, "1130s", "2s") for epoch in range(1, 4)]))
    assert times_ms(profile) == {1000: 2260.0, 1500: 2260.0}


@pytest.mark.parametrize(
    "line",
    [
        "500/500 [==============================] - 75s 150ms/step - loss: 1.2 - accuracy: 0.5 - val_loss: 1.1",
        "500/500 - 75s - loss: 1.2 - accuracy: 0.5 - val_loss: 1.1 - 75s/epoch - 150ms/step",
        "500/500 - 75s - 150ms/step - loss: 1.2 - val_loss: 1.1",
    ],
    ids=["Keras 2", "Keras 2, verbose=2", "Keras 3, verbose=2"],
)
def test_keras_lines_of_all_kinds_are_read(tmp_path: Path, line: str):
    profile = read(log(tmp_path, [f"Epoch {epoch}/4\n{line}" for epoch in range(1, 5)]))
    assert times_ms(profile) == {1000: 150.0, 1500: 150.0, 2000: 150.0}


def test_keras_evaluation_alone_is_no_training(tmp_path: Path):
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(log(tmp_path, [keras_bar(79, "1s", "10ms", steps=79)] * 12))


def test_keras_trained_twice_counts_the_last_training(tmp_path: Path):
    first = [keras_epoch(epoch) for epoch in range(1, 6)]
    second = [keras_epoch(epoch, "150s", "300ms") for epoch in range(1, 6)]
    profile = read(log(tmp_path, first + second))
    assert set(times_ms(profile).values()) == {300.0}


def lightning_bar(epoch: int, step: int, elapsed_s: float) -> str:
    minutes, seconds = divmod(int(elapsed_s), 60)
    rate = step / elapsed_s
    speed = f"{rate:5.2f}it/s" if rate > 1 else f"{1 / rate:5.2f}s/it"
    return f"\rEpoch {epoch}:  {step:3}%|##  | {step}/100 [{minutes:02}:{seconds:02}<00:18, {speed}, v_num=0]"


def lightning_epoch(epoch: int, step_s: float = 0.2, load_s: float = 3.0) -> str:
    """An epoch of 100 steps that waits for its loader first, and its last bar again behind a validation of 9 s."""
    bars = [lightning_bar(epoch, step, load_s + step * step_s) for step in range(10, 101, 10)]
    validation = [f"\rValidation DataLoader 0: {part}%|#  | {part}/100 [00:01<00:08, 11.00it/s]" for part in (10, 100)]
    again = lightning_bar(epoch, 100, load_s + 100 * step_s + 9)
    return "".join([*bars, "\n", *validation, again])


def test_lightning_times_leave_out_loader_and_validation(tmp_path: Path):
    profile = read(log(tmp_path, "".join(lightning_epoch(epoch) for epoch in range(3)) + "\n"))
    times = times_ms(profile)
    assert sorted(times) == [*range(20, 101, 10), *range(120, 201, 10), *range(220, 301, 10)]
    assert list(times.values()) == pytest.approx([200.0] * 27, rel=0.02)


def test_lightning_steps_of_seconds_are_read(tmp_path: Path):
    profile = read(log(tmp_path, lightning_epoch(0, step_s=2.5) + "\n"))
    assert list(times_ms(profile).values()) == pytest.approx([2500.0] * 9, rel=0.02)


def test_lightning_rate_of_last_steps_is_taken_as_it_is(tmp_path: Path):
    """The clock says 20 s for 10 steps, the rate 5 steps a second: it is no mean since the start of the epoch."""
    bars = [
        f"\rEpoch 0:  {step}%|#  | {step}/100 [00:{20 + step // 5:02}<00:18,  5.00it/s, v_num=0]"
        for step in range(10, 101, 10)
    ]
    profile = read(log(tmp_path, "".join(bars) + "\n"))
    assert set(times_ms(profile).values()) == {200.0}
    assert "the time of a step comes from the rate of a progress bar, which is a mean of several" in profile.warnings


def test_loop_with_a_bar_of_its_own_is_not_lightning(tmp_path: Path):
    bars = [f"\rEpoch 0:  {step}%|#  | {step}/100 [00:02<00:18,  5.00it/s]" for step in range(10, 60, 10)]
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(log(tmp_path, "".join(bars)))


def yolo(epoch: int, clock: str, rate: str) -> str:
    done = f"{epoch:>10}/100      2.51G      1.249      1.614         45        640: 100%|{'█' * 10}| 118/118"
    begun = done.replace("100%", "  1%").replace("118/118", "1/118")
    validation = f"                 Class     Images  Instances: 100%|{'█' * 10}| 4/4 [00:01<00:00,  2.50it/s]"
    return f"{begun} [00:01<01:12,  1.00it/s]\r{done} [{clock}<00:00,  {rate}]\n{validation}"


def test_ultralytics_epoch_is_its_bar_at_the_end(tmp_path: Path):
    """118 steps at 5.90 a second are 20 s, and from 100 s on the clock counts: 2 minutes of 118 steps."""
    short = read(log(tmp_path, [yolo(epoch, "00:21", "5.90it/s") for epoch in range(1, 5)]))
    assert times_ms(short) == {236: 169.5, 354: 169.5, 472: 169.5}
    assert "the time of a step comes from the rate of a progress bar, which is a mean of several" in short.warnings
    long = read(log(tmp_path, [yolo(epoch, "01:57", "1.50s/it") for epoch in range(1, 5)]))
    assert times_ms(long) == {236: 995.8, 354: 995.8, 472: 995.8}


def swift(step: int, elapsed: str, **others: object) -> dict[str, object]:
    progress = {"global_step/max_steps": f"{step}/100", "percentage": "5.00%", "elapsed_time": elapsed}
    return {"loss": 1.2, "memory(GiB)": 40.1, **others, **progress}


SWIFT = [swift(step, f"{8 * step // 60}m {8 * step % 60}s") for step in range(5, 101, 5)]


def test_swift_takes_differences_of_its_clock(tmp_path: Path):
    bar = "\rTrain:  10%|#  | 10/100 [01:20<12:00,  8.00s/it]"
    profile = read(log(tmp_path, [f"{bar}\n{row}" for row in SWIFT]))
    assert times_ms(profile) == dict.fromkeys(range(10, 101, 5), 8000.0)
    assert profile.warnings == ("of 20 intervals the median leaves out 1 of warm-up",)


def test_swift_logging_jsonl_is_read_too(tmp_path: Path):
    profile = read(log(tmp_path, [json.dumps(row) for row in SWIFT], "logging.jsonl"))
    assert times_ms(profile) == dict.fromkeys(range(10, 101, 5), 8000.0)


def test_swift_evaluation_is_left_out(tmp_path: Path):
    """The interval behind step 50 holds an evaluation of 100 s."""
    late = [swift(step, f"{(8 * step + 100) // 60}m {(8 * step + 100) % 60}s") for step in range(55, 101, 5)]
    evaluation = swift(50, "8m 20s", eval_loss=1.1)
    profile = read(log(tmp_path, [str(row) for row in (*SWIFT[:10], evaluation, *late)]))
    assert 55 not in times_ms(profile)
    assert set(times_ms(profile).values()) == {8000.0}


def test_megatron_swift_names_its_iteration(tmp_path: Path):
    rows = [{"loss": 1.2, "iteration": f"{step}/100", "elapsed_time": f"{8 * step}s"} for step in range(5, 60, 5)]
    assert set(times_ms(read(log(tmp_path, [str(row) for row in rows]))).values()) == {8000.0}


def verl(step: int, step_s: float, rest: str = "") -> str:
    return (
        f"\x1b[36m(TaskRunner pid=42)\x1b[0m step:{step} - training/global_step:{step} - training/epoch:0 - "
        f"timing_s/gen:60.1 - {rest}timing_s/step:{step_s} - timing_per_token_ms/gen:0.1"
    )


def test_verl_validation_inside_a_step_is_left_out(tmp_path: Path):
    lines = [verl(step, 120.0) for step in range(1, 13)]
    lines[5] = verl(6, 300.0, "timing_s/testing:180.0 - ")
    profile = read(log(tmp_path, ["step:0 - val-core/gsm8k/acc/mean@1:0.508", *lines]))
    assert times_ms(profile) == dict.fromkeys([2, 3, 4, 5, *range(7, 13)], 120000.0)
    assert profile.warnings == (
        "of 12 intervals the median leaves out 1 of warm-up, 1 of evaluation or checkpoint",
    )  # fmt: skip


def test_verl_number_may_say_its_type(tmp_path: Path):
    lines = [verl(step, 120.0).replace("step:120.0", "step:np.float64(120.0)") for step in range(1, 6)]
    assert set(times_ms(read(log(tmp_path, lines))).values()) == {120000.0}


def test_maxtext_step_that_is_only_queued_is_warm_up(tmp_path: Path):
    times = [44.923, 0.319, *[5.668] * 8]
    lines = [f"completed step: {step}, seconds: {s}, TFLOP/s/device: 134.9, loss: 1.2" for step, s in enumerate(times)]
    assert times_ms(read(log(tmp_path, lines))) == dict.fromkeys(range(2, 10), 5668.0)


def test_autoresearch_writes_over_its_line(tmp_path: Path):
    bars = [
        f"\rstep {step:05d} ({step / 10:.1f}%) | loss: 3.1 | lrm: 1.00 | dt: 320ms | tok/sec: 1,638,400 | mfu: 47.0% "
        "| epoch: 1 | remaining: 200s    "
        for step in range(12)
    ]
    assert set(times_ms(read(log(tmp_path, "".join(bars)))).values()) == {320.0}


def test_timm_epochs_are_counted_through(tmp_path: Path):
    places = [*product(range(3), (0, 50, 100))]
    lines = [
        f"Train: {epoch} [{step:>4d}/101 ({step:>3.0f}%)]  Loss: 6.95 (6.95)  Time: {0.4 if step else 2.0:.3f}s, "
        "2570.99/s  (0.412s, 2487.11/s)  LR: 1.000e-06  Data: 0.010 (0.023)"
        for epoch, step in places
    ]
    profile = read(log(tmp_path, [*lines, "Test: [   0/10]  Time: 9.000 (9.000)  Loss:  0.9 (0.9)"]))
    assert times_ms(profile) == dict.fromkeys([50, 100, 151, 201, 252, 302], 400.0)


def test_metric_logger_of_a_test_is_no_training(tmp_path: Path):
    line = "Test:   [ 10/97]  eta: 0:00:10  model_time: 0.1 (0.1)  time: 0.1600  data: 0.0100  max mem: 1234"
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(log(tmp_path, [line] * 12))


def detectron2(step: int, scalars: str) -> str:
    return (
        f"[03/01 10:00:12] d2.utils.events INFO:  eta: 0:10:00  iter: {step}  {scalars}total_loss: 1.2  loss_cls: 0.5  "
        "time: 0.6400  data_time: 0.0072  lr: 0.002  max_mem: 3699M"
    )


@pytest.mark.parametrize(
    "scalars", ["", "cover_ratio: 0.8086  ", "roi/cover-ratio: 0.8  cls_acc: 1e-05  bn.mean: nan  "], ids=len
)
def test_detectron2_scalars_in_front_of_the_loss_do_no_harm(tmp_path: Path, scalars: str):
    profile = read(log(tmp_path, [detectron2(step, scalars) for step in range(19, 400, 20)]))
    assert set(times_ms(profile).values()) == {640.0}


def test_torchtune_throughput_is_of_a_device(tmp_path: Path):
    lines = [f"Step {step} | loss:1.2 lr:2e-05 tokens_per_second_per_gpu:4000.5 " for step in range(1, 12)]
    capture = read(log(tmp_path, lines, "log_1700000000.txt")).captures[0]
    assert capture.rows is not None
    assert {row.breakdown.samples_per_second for row in capture.rows.steps} == {4000.5}
    assert capture.settings["throughput_scope"] == "per rank"
