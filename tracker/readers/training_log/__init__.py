"""Training logs: the throughput of every run, measured without a profiler.

Most runs are never profiled, and every run writes a log. Each line that states a speed is an interval: a step row with
the mean time of its steps, the throughput, waiting for data, memory and MFU where the line says them. Missing is not 0.

<!-- grammars -->

Colours, prefixes of ranks, hosts and loggers, indentation and progress bars that write over their line do no harm, nor
does text in another encoding between the lines. Lines that state a step twice count once, also where two processes
write into one log. Where the steps go back, the training was resumed: steps that were done again count once, as done
last. Of several trainings that were appended to one log the last one counts. Of lines that name their rank those of the
first rank count that has about as many of them as any other. Of progress bars that of the training counts: the one with
its total of steps, or with the losses beside it. Of a log with step lines of two frameworks one is read, and a note
names the other. Differences of times that a log rounds (to whole seconds, say) are taken over as many neighbours as it
takes to know them to 5 %, which share a mean then; that is said.

The number of a log is the median of its intervals. What the framework is known to do is left out of it, counted and
said: the warm-up, the start of an epoch where the line includes the start of the data loader, an interval with an
evaluation or a checkpoint in it, and steps that were skipped. Slow intervals without such a reason stay.

Warm-up is the first interval behind each start of the program; behind the first start also every interval that ends
before step 3 (4 for Megatron-LM, 12 for modded-nanogpt); and then all intervals that are slower than the median of
those behind them by more than 10 %. Where these would be half of the intervals or more the run is uneven throughout,
and they count. With fewer than 5 intervals nothing is warm-up, but for the first one behind a later start.

Beside the median stand the percentiles 10, 90 and 99, jitter (percentile 99 by the median), stalls (intervals above 3
medians) and the longest slow window of the run: the steps whose mean stands out most from all others and from what is
on either side, if that is no chance (p below 1e-6, at least 5 %). Of several logs, one a rank, these are those of rank
0. Above 20,000 intervals neighbours are joined when they are stored; quantiles, jitter and stalls are of all. Timers
that Megatron-LM and DeepSpeed print beside the step lines are counters, of the slowest rank where a line gives the
spread; `batch-generator` is waiting for data.

The configuration (batch, parallel sizes, precision, sequence length, sizes of the model) comes from the argument dump,
hardware and versions from the environment that the log prints. Where a job was resumed with another one, that of its
last start counts, which is said; a batch that changes between the lines is that of most intervals. Only listed names
are taken, and of them numbers and short words: passwords and tokens of a dump are neither stored nor printed. Where
only a throughput stands in the lines, the step time is the batch by the throughput, or comes from the times of the
lines.

Of a program that is not in the table, a line that stands ten times or more is read where it has `step` or `iter` with
a number that rises, and one number with s, ms, s/it or it/s. The headline says what was read (`read as: seconds per
step from '... 8.01s/it'`), and nothing of it is judged: it is a guess, which `--input-format training_log` confirms.
For runs that are stored, that is `tracker ingest --again --input-format training_log`.

The Trainer of Hugging Face divides all steps of a run by the time of one session. The number is the time of a session
by the steps that it did itself: by the times of its lines, its header (`global step N`), the epochs of its lines, or
its losses, since `train_loss` is their sum over the session by all steps. That a run was stopped early is said by its
header, or by a learning rate that falls to a later end. Where nothing says it, as in all_results.json alone, there is
no step time.

A number is known to half a unit of its last digit: `per_step_time: 12ms` to 4 %. Where a line has several numbers of
one time, the one that knows it best counts. The rounding of step, throughput and data loading is kept with the run, and
a change within those of both sides is no finding.

TensorBoard event files are read too; the check sum of each record is checked. A document or a program in which lines of
a log are quoted is read only when the format is named. A log without times says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.profile.words import TRAINING_LOG
from tracker.readers import nsys_stats, paddle_summary, torch_stacks
from tracker.readers._source import ReadOptions
from tracker.readers._text import is_json_trace

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["TITLE", "instead", "read", "sniff"]

TITLE: Final = "training log with step times or throughput, or its TensorBoard events"
NAME: Final = TRAINING_LOG


def sniff(path: Path, head: bytes) -> bool:
    """True for a log with step lines in its first MiB or its last, and for an event file of TensorBoard."""
    # no event file begins as JSON does, and the grammars of logs take long to import
    if path.is_dir() or is_json_trace(head):
        return False
    from tracker.readers.training_log.beside import other_of_run
    from tracker.readers.training_log.choosing import choose, choose_by_repetition, is_document_of_people
    from tracker.readers.training_log.events import is_event_file

    if is_document_of_people(path):
        return False
    if not is_event_file(head):
        if choose(path, head) is None and choose_by_repetition(path, head) is None:
            return False
        if paddle_summary.sniff(path, head) or nsys_stats.sniff(path, head) or torch_stacks.sniff(path, head):
            return False  # tables of a profiler say more
    return other_of_run(path) is None


def instead(path: Path) -> Path | None:
    """Return the file beside `path` that says the same of the run, and more; None for none."""
    from tracker.readers.training_log.beside import other_of_run

    return other_of_run(path)


def read(path: Path, options: ReadOptions | None = None) -> Profile:
    """The log at `path`; a SourceError says what was looked for where it holds no speed."""
    from tracker.errors import SourceError
    from tracker.profile import Profile
    from tracker.readers.training_log.capture import capture_of
    from tracker.readers.training_log.guessing import mark_as_guess
    from tracker.readers.training_log.reading import read_log

    options = options or ReadOptions()
    try:
        reading = read_log(path, options)
        capture, warnings = capture_of(reading)
    except (OverflowError, ValueError) as error:
        problem = f"a number of it is none that a time, step or batch can have: {error}"
        raise SourceError(path, "", problem, remedy="leave out the part of the log that holds it") from error
    if reading.guess:
        capture = mark_as_guess(capture, reading.guess, is_named=options.is_named)
    if reading.guess and options.is_named:
        warnings = (*warnings, f"read as: {reading.guess}")
    return Profile(NAME, str(path), (capture,), warnings)
