"""Training logs of Paddle models: one line of throughput now and then, measured without a profiler.

What `Profiler(timer_only=True)` prints, and the benchmark logs of PaddleClas, PaddleSeg, PaddleDetection, PaddleNLP and
of its Transformer, plain or coloured, since 2020. One log is one capture; each of its lines is a step row, the first
one, in which the model warms up, included. The number of a log is the median of its lines. Of several trainings that
were appended to one log the last one counts. The unit of a throughput is part of its series.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracker.readers import paddle_summary
from tracker.readers._source import ReadOptions, SourceText
from tracker.readers._text import head_matches, looks_like_text

if TYPE_CHECKING:
    from tracker.profile import Profile

__all__ = ["TITLE", "read", "sniff"]

TITLE: Final = "training log with reader_cost, batch_cost or ips (Paddle)"
NAME: Final = "paddle_log"

# a number that is no address: `ips: 127.0.0.1` names a host
_SAYS: Final = re.compile(
    rb"\b(?:avg_)?(?:batch_cost|reader_cost|ips)(?: ?: *|=)\d+\.\d+(?![.\d])|(?<!=)={8,}+Perf Summary={8,}"
)


def sniff(path: Path, head: bytes) -> bool:
    """True for a text that says one of these in its first MiB, and holds no tables of a summary."""
    if not looks_like_text(path, head) or not head_matches(path, head, _SAYS):
        return False
    return not paddle_summary.sniff(path, head)


def read(path: Path, options: ReadOptions | None = None) -> Profile:
    """The log at `path`; a SourceError says what was looked for where it holds no throughput."""
    from tracker.profile import Profile
    from tracker.readers.paddle_log.reading import capture_of

    capture, warnings = capture_of(SourceText(path, options or ReadOptions()))
    return Profile(NAME, str(path), (capture,), warnings)
