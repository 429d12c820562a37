"""The progress bar of Lightning, which is written over and over."""

from __future__ import annotations

from typing import Final

from tracker.readers.training_log.grammar import Grammar, number, step_line

GRAMMARS: Final = (
    # the bar begins again with each epoch and is made with smoothing=0 (callbacks/progress/tqdm_progress.py of 1.8 to
    # 2.5); a validation within the epoch is in its clock
    Grammar(
        name="lightning",
        title="Lightning (progress bar)",
        lines=(
            step_line(
                "Epoch +", number("epoch"), r": +\d{1,3}%\|[^\r\n|]*\| *", number("step_in_epoch"), "/",
                number("epoch_steps"), r" \[(?P<elapsed_clock>[\d:]+)<[^,\]\r\n]*, *",
                rf"(?:{number('step_s')}s/it|{number('rate')}it/s)", r"(?=,[^\r\n\]]*\bv_num=)",
            ),
        ),
        time_in_words="since the start of the epoch: differences",
        has_epoch_starts=True,
        evaluations=(b"Validation DataLoader", b"Validating:"),
        clock_is_of_epoch=True,
        joins=0.02,
        notes={"by_rate": "the time of a step comes from the rate of a progress bar, which is a mean of several"},
    ),
)  # fmt: skip
