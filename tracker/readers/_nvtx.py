"""What the name of an NVTX range says: a step, a part of the step, an operator of PyTorch, or a module of the user.

| range | meaning |
|---|---|
| `step 17`, `iteration_17`, `ProfilerStep#17` or `17` | a step marker (of the counter with most numbers) |
| `forward`, `bwd`, `optimizer step`, `zero_grad`, `load_data` | a part of the step |
| `aten::mm, seq = 3, op_id = 7, sizes = [[8, 96]]`, `aten::mm` | an operator (`torch.autograd.profiler.emit_nvtx`) |
| `ncclAllReduce`, `cudnnConvolutionForward`, `cub::...` | a call of a library |
| `encoder`, `layer_3`, `attention` | a module; nested ranges are its path |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from tracker.profile.loader_names import is_loader
from tracker.profile.numbered_names import ADDRESS
from tracker.readers._collectives import kind_of


class RangeKind(Enum):
    """What a range stands for; OPERATOR and LIBRARY are no modules."""

    MODULE = 0
    PHASE = 1
    OPERATOR = 2
    LIBRARY = 3


class RangeName(Struct, frozen=True):
    """The name of a range, understood.

    `name`: without what counts up from call to call. `phase`: a word of `PHASES` where the range is nothing but a part
    of the step, else ''. `step`: the number that a step marker carries, else None; `family`: what is equal in all
    markers of one counter. `is_backward`: of a backward node. `shapes`: of the inputs, as Kineto writes them.
    `collective`: its kind, else ''.
    """

    name: str
    kind: RangeKind
    phase: str = ""
    step: int | None = None
    family: str = ""
    is_backward: bool = False
    shapes: str = ""
    collective: str = ""


_STEP: Final = re.compile(
    r"(?P<word>ProfilerStep#|(?:(?:train(?:ing)?|global|optimizer)[ _-]?)?(?:step|iteration|iter)[ _:#=-]*)?"
    r"(?P<number>\d{1,18})(?:\s*/\s*\d+)?",
    re.IGNORECASE,
)
# what counts up from one call to the next; `layer_3` is another thing than `layer_4` and keeps its number
_COUNTED: Final = re.compile(
    r"(?<![A-Za-z])((?:step|iteration|iter|epoch|batch|micro[ _-]?batch|sample|frame|request|token)s?)[ _:#=-]*\d+"
    r"(?:\s*/\s*\d+)?(?![A-Za-z0-9])",
    re.IGNORECASE,
)

# torch/csrc/autograd/profiler_legacy.cpp, getNvtxStr: name, seq = N, op_id = N, sizes = [...], input_op_ids = [...]
_EMITTED: Final = re.compile(r", (?:(?:stashed )?seq = (?P<sequence>\d{1,18})|(?:op_id|sizes|input_op_ids) = )")
_SIZES: Final = re.compile(r", sizes = (\[[\d\s,\[\]]*\])")
_QUALIFIED: Final = re.compile(r"[A-Za-z_][\w.]*::[A-Za-z_~]")
_BACKWARD_NODE: Final = re.compile(r"autograd::engine::evaluate_function: |(?:torch::autograd::)?\w+Backward\d*$")
_LIBRARY: Final = re.compile(r"p?nccl[A-Z]|cudnn|cublas|cusolver|cusparse|cufft|nvshmem|cub::|thrust::")
_NCCL_CALL: Final = re.compile(
    r"p?nccl(AllReduce|AllGather|ReduceScatter|Broadcast|Bcast|Reduce|Send|Recv|AlltoAll|Gather|Scatter)"
)
_TORCH_CALL: Final = re.compile(r"(?:nccl|rccl|gloo|ucc|mpi):(\w+)")

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# words that say nothing about which part of the step it is
_FILLERS: Final = frozenset(
    ("pass", "step", "phase", "only", "loop", "train", "training", "benchmark", "model", "loss", "the", "and", "run")
)
_STEP_WORDS: Final = frozenset(("step", "iteration", "iter", "trainstep", "trainingstep"))
# PyProf and DLProf write a call as {'mod': 'torch.nn.functional', 'op': 'linear', 'args': [...]}
_DICTIONARY: Final = re.compile(r"\s*\{")
# the optimizer, the gradient scaler and the learning rate have a method of this name
_METHOD: Final = re.compile(r"\.step(?![A-Za-z0-9_])")
_WARM_UP: Final = re.compile(r"(?<![A-Za-z])warm[ _-]?up", re.IGNORECASE)
_PHASES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("forward", "fwd"), "forward"),
    **dict.fromkeys(("backward", "bwd"), "backward"),
    **dict.fromkeys(("optimizer", "optim", "opt", "optimization", "optimize", "weightupdate"), "optimizer"),
    **dict.fromkeys(("cleargrad", "cleargradients", "optimizercleargrad"), "clear_grad"),
    **dict.fromkeys(("zerograd", "zerogradients", "optimizerzerograd"), "clear_grad"),
}

_LIBRARY_DOMAINS: Final = frozenset(
    ("nccl", "cudnn", "cublas", "cublaslt", "cusolver", "cusparse", "cufft", "cccl", "cub", "thrust", "nvshmem")
)


def is_library_domain(domain: str) -> bool:
    """Whether an NVTX domain is that of a library of kernels, whose ranges are no modules of the user."""
    return domain.strip().lower() in _LIBRARY_DOMAINS


def split_emitted(text: str) -> tuple[str, int]:
    """A text without what counts up in the texts of PyTorch, and the autograd sequence number in it, or -1.

    >>> split_emitted("aten::mm, seq = 3, op_id = 7, sizes = [[8, 96]]"), split_emitted("iteration 17")
    (('aten::mm, sizes = [[8,96]]', 3), ('iteration 17', -1))
    """
    emitted = _EMITTED.search(text)
    if not emitted:
        return text, -1
    sizes = _SIZES.search(text, emitted.start())
    shapes = sizes[1].replace(" ", "") if sizes else ""
    sequence = emitted["sequence"]
    return f"{text[: emitted.start()]}, sizes = {shapes}", int(sequence) if sequence else -1


@lru_cache(maxsize=1 << 16)
def range_name(text: str) -> RangeName:
    """What `text` says; of the texts of PyTorch both the whole and what `split_emitted` leaves.

    >>> range_name("iteration 17").step, range_name("layer_3").kind.name, range_name("Warm-up Step 2").name
    (17, 'MODULE', 'Warm-up Step')
    >>> said = range_name("aten::mm, seq = 3, op_id = 7, sizes = [[8, 96], [96, 4]]")
    >>> said.name, said.kind.name, said.shapes
    ('aten::mm', 'OPERATOR', '[[8,96],[96,4]]')
    >>> [range_name(name).phase for name in ("loss.backward()", "zero_grad", "attention_forward")]
    ['backward', 'clear_grad', '']
    """
    emitted = _EMITTED.search(text)
    plain = (text[: emitted.start()] if emitted else text).strip()
    if step := _STEP.fullmatch(plain):
        word = (step["word"] or "").strip(" _:#=-").lower()
        return RangeName(word or "step", RangeKind.PHASE, step=int(step["number"]), family=word)
    name = ADDRESS.sub("0x#", _COUNTED.sub(r"\1", plain))
    if emitted or _TORCH_CALL.match(name) or (_QUALIFIED.match(name) and not _LIBRARY.match(name)):
        sizes = _SIZES.search(text, emitted.start()) if emitted else None
        return _operator(name, sizes[1].replace(" ", "") if sizes else "")
    if _LIBRARY.match(name):
        call = _NCCL_CALL.match(name)
        return RangeName(name, RangeKind.LIBRARY, collective=_nccl_kind(call[1]) if call else "")
    phase = phase_of(name)
    return RangeName(name, RangeKind.PHASE if phase else RangeKind.MODULE, phase=phase)


def phase_of(name: str) -> str:
    """The part of a training step that a range stands for, a word of `PHASES`; '' where it stands for more or less.

    >>> [phase_of(name) for name in ("Forward", "optimizer.step", "forward_backward", "DataLoader", "encoder")]
    ['forward', 'optimizer', '', 'dataloader', '']
    """
    if is_loader(name):
        return "dataloader"
    words = [word.lower() for word in _WORD.findall(name)]
    return _PHASES.get("".join(word for word in words if word not in _FILLERS), "")


def has_step_word(name: str) -> bool:
    """Whether a name says that its range is a whole step, though it has no number.

    Neither does a single call of a method `step`, nor a marker that is a dictionary, as PyProf writes them.

    >>> [has_step_word(name) for name in ("train_step", "Iteration", "optimizer step", "attention")]
    [True, True, False, False]
    >>> [has_step_word(name) for name in ("scaler.step(optimizer)", "{'mod': 'Adam', 'op': 'step'}")]
    [False, False]
    """
    if phase_of(name) or _DICTIONARY.match(name) or _METHOD.search(name):
        return False
    return any(word.lower() in _STEP_WORDS for word in _WORD.findall(name))


def is_warm_up(name: str) -> bool:
    """Whether a name says that its range is a warm-up.

    >>> [is_warm_up(name) for name in ("Warm-up Step", "warmup", "lr_warm_up", "swarm", "warm")]
    [True, True, True, False, False]
    """
    return _WARM_UP.search(name) is not None


def _operator(name: str, shapes: str) -> RangeName:
    call = _TORCH_CALL.match(name)
    return RangeName(
        name,
        RangeKind.OPERATOR,
        phase="" if "::" in name else phase_of(name),
        is_backward=_BACKWARD_NODE.match(name) is not None,
        shapes=shapes,
        collective=kind_of(call[1]) if call else "",
    )


def _nccl_kind(word: str) -> str:
    return kind_of("Broadcast" if word == "Bcast" else word)
