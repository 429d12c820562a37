"""The filters that `show` and `diff` share."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np
import pandas as pd


def matching(frame: pd.DataFrame, column: str, pattern: str | None) -> pd.DataFrame:
    """The rows whose `column` matches the glob `pattern` (case matters); all rows without a pattern or such a column.

    >>> matching(pd.DataFrame({"name": ["aten::mm", "nccl"]}), "name", "aten::*")["name"].tolist()
    ['aten::mm']
    """
    if not pattern or column not in frame:
        return frame
    return frame[np.array([fnmatchcase(str(text), pattern) for text in frame[column]], dtype=bool)]
