"""Names of the files and folders of a capture of torch_npu or MindSpore, which its text and its database share."""

from __future__ import annotations

import re
from typing import Final

OUTPUT: Final = "ASCEND_PROFILER_OUTPUT"
KERNELS: Final = "kernel_details.csv"
TRACE: Final = "trace_view.json"
CAPTURE_FOLDER: Final = re.compile(r".*ascend_(?:pt|ms)", re.IGNORECASE)
