"""Results on their way from compare to reports: what one run holds (`Shown`) and what two sides differ in (`Diff`).

Numbers are not rounded here. Columns end in their unit: `_ns` nanoseconds, `_bytes` bytes, `_share` a quotient; `calls`
is a count. A missing number is NA in a frame and None in a field, never 0. `diff` is candidate / baseline - 1, NA
without a baseline.
"""

from __future__ import annotations

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
