"""Kineto traces are decoded in two ways; what is promised of their reader holds for both."""

from __future__ import annotations

import pytest

from tests.readers.helpers import decoding
from tracker.readers.torch_profiler import native


@pytest.fixture(params=["compiled", "msgspec"])
def decoder(request):
    """By compiled code, then all by msgspec."""
    if request.param == "compiled" and not native.is_built():
        pytest.skip("the decoder is not built here")
    with decoding(compiled=request.param == "compiled"):
        yield request.param
