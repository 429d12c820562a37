"""timm and torchvision: programs that train models of images."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import PER_DEVICE, TOTAL, Grammar, LineField, number, step_line

GRAMMARS: Final = (
    # the time of that one update, data loading included; the means beside it are those of the epoch (train.py of timm
    # 0.4 to 1.0)
    Grammar(
        name="timm",
        title="timm (train.py)",
        lines=(
            step_line(
                "Train: ", number("epoch"), r" *\[ *", number("step_in_epoch"), "/ *", number("epoch_steps"), r"\b",
                r"(?: *\([^)\r\n]*\))?\]",
                fields=(
                    LineField("step_s", "Time: *", "s,", is_needed=True),
                    LineField("samples_s", r"Time: *[\d.]+s, *", "/s"),
                    LineField("data_s", "Data: *"),
                ),
            ),
        ),
        scopes={"samples_s": TOTAL},
        has_epoch_starts=True,
    ),
    # means of the last 20 iterations (MetricLogger in references/ of torchvision 0.3 to 0.24, and in programs that
    # took it from there)
    Grammar(
        name="torchvision",
        title="torchvision references (MetricLogger)",
        lines=(
            step_line(
                r"Epoch: *\[", number("epoch"), r"\] +\[ *", number("step_in_epoch"), "/", number("epoch_steps"), r"\]",
                fields=(
                    LineField("step_s", r"\btime: ", is_needed=True),
                    LineField("data_s", r"\bdata: ", is_needed=True),
                    LineField("samples_s", r"\bimg/s: "),
                    LineField("allocated_mib", r"\bmax mem: "),
                ),
            ),
        ),
        scopes={"samples_s": PER_DEVICE},
        has_epoch_starts=True,
    ),
)  # fmt: skip
