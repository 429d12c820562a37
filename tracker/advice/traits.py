"""What holds of a run, as conditions of remedies: whether it trains, is compiled, and what was recorded.

Each trait is proven by the rows of the run. A remedy that needs one is not given where nothing proves it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

BACKWARD: Final = "backward"
"""A backward pass runs in the steps."""
OPTIMIZER: Final = "optimizer"
COMPILED: Final = "compiled"
"""A compiler of the framework makes kernels of it already."""
GRAPHS: Final = "graphs"
"""Graphs of the device are launched already."""
CONVOLUTIONS: Final = "convolutions"
DATA_LOADER: Final = "DataLoader"
"""The loader is that of PyTorch."""
STACKS: Final = "stacks"
"""Call stacks were recorded."""
RANKS: Final = "ranks"
"""Several ranks were captured."""
PIPELINE: Final = "pipeline"
FEW_STEPS: Final = "few steps"
"""Of so few steps the first one is a part."""
TRAITS: Final = (
    BACKWARD, OPTIMIZER, COMPILED, GRAPHS, CONVOLUTIONS, DATA_LOADER, STACKS, RANKS, PIPELINE, FEW_STEPS
)  # fmt: skip
"""All traits that a run may have."""
_BACKWARD: Final = re.compile(r"[Bb]ackward|[a-z]Grad|dgrad|wgrad|bwd")
_OPTIMIZER: Final = re.compile(r"Optimizer\.step|[Aa]dam|multi_tensor_apply|sgd|SGD|[a-z]Lamb")
_COMPILED: Final = re.compile(r"^triton_|CompiledF|Torch-Compiled|torch_compiled|cinn_|jit_fused")
_DATA_LOADER: Final = re.compile(r"DataLoader|train_dataloader")
_FRAME: Final = re.compile(r"\(.+:\d+\)$")
"""A frame of a call stack as a place: `train (main.py:377)`."""
_FEWEST: Final = 3


class Recorded(Struct, frozen=True, kw_only=True):
    """What traits are read from. `source`: the format; `names`: of operators and kernels; `calls`: of the runtime;
    `places`: of idle time; `phases`: of work; `settings`: of the profiler; `ranks`: how many were captured; `stages`:
    how many the pipeline has; `steps`: of the rank with most.
    """

    source: str
    names: Collection[str]
    calls: Collection[str]
    places: Collection[str]
    phases: Collection[str]
    settings: Sequence[Mapping[str, str]]
    ranks: int
    stages: int
    steps: int


def find_traits(recorded: Recorded) -> tuple[str, ...]:
    """Return what holds of a run, in the order of TRAITS."""
    names = recorded.names
    holds = {
        BACKWARD: recorded.source == "training_log" or BACKWARD in recorded.phases or _any(_BACKWARD, names),
        OPTIMIZER: OPTIMIZER in recorded.phases or _any(_OPTIMIZER, names),
        COMPILED: _any(_COMPILED, names),
        GRAPHS: any("GraphLaunch" in name for name in recorded.calls),
        CONVOLUTIONS: any("conv" in name.lower() for name in names),
        DATA_LOADER: _any(_DATA_LOADER, names) or _any(_DATA_LOADER, recorded.places),
        STACKS: any(own.get("with_stack") == "on" for own in recorded.settings) or _any(_FRAME, recorded.places),
        RANKS: recorded.ranks > 1,
        PIPELINE: recorded.stages > 1,
        FEW_STEPS: recorded.steps < _FEWEST,
    }
    return tuple(trait for trait in TRAITS if holds[trait])


def is_compiled(name: str) -> bool:
    """Whether a compiler of the framework made what has this name."""
    return _COMPILED.search(name) is not None


def _any(pattern: re.Pattern[str], names: Collection[str]) -> bool:
    return any(map(pattern.search, names))
