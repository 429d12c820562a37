"""Names of operators and ranges without what changes from build to build and step to step: what makes their keys.

A compiler numbers its kernels within a graph and hashes the graph; an inference engine writes the sizes of a batch into
the name of a step. With these in its key an operator would be another one in each run. The name as it was written is
kept beside the key.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from tracker.limits.texts import split_mark
from tracker.profile.numbered_names import skeleton_of

# TorchInductor and autograd caches: 51 characters of base 32 (sha256), or 32 to 64 hex digits
HASH: Final = re.compile(r"(?<![A-Za-z0-9])(?:(?=[a-z]*[0-9])[a-z2-7]{51,52}|[0-9a-f]{32,64})(?![A-Za-z0-9])")
HEX_SUFFIX: Final = re.compile(r"_(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{8,}(?=_|$)")
# Triton: the running number within one compiled graph, and the argument specialization 0d1d2de3 of Triton 2
TRITON_GENERATED: Final = re.compile(r"^(?P<base>triton_(?:poi|red|per|for|tem|spl|foreach|unk)_.*?)_(?P<number>\d+)$")
TRITON_SPECIALIZATION: Final = re.compile(r"_(?:\d(?:d[ce]?|c|e)?){3,}$")

_SHORTEST_HASH: Final = 32
# PyTorch: Torch-Compiled Region: 2/1 (frame, recompilation), !0/1/0 (of compiled autograd), 0/0_1 (attempt)
_REGION: Final = re.compile(r"(?<=Torch-Compiled Region)[: ]+[-!\d/_]+$")
_COMPILED_FUNCTION: Final = re.compile(r"(?<=CompiledFunction)(?P<kind>(?:Backward)?)[: _]*\d+$")
_CALL_OF_GRAPH: Final = re.compile(r"(?<=CompiledFxGraph) (?:#|\d+)(?= |$)")
_GRAPH: Final = re.compile(r"Torch-Compiled Region|(?:autograd::\S+ )?CompiledFunction|(?:## )?Call CompiledFxGraph")
_ROUNDS: Final = 16
"""How often a name is stripped; real ones need two."""
_CACHED: Final = 1 << 12


@lru_cache(_CACHED)
def stable_name(name: str) -> str:
    """Return the name of an operator or range without hashes, and without the numbers of compiled regions and graphs.

    The running number of a Triton kernel stays: what becomes of it depends on the others of its graph, see
    `number_by_order`. Applying it twice changes nothing.

    >>> stable_name("## Call CompiledFxGraph fal4xpiah2v6blbfmwwonu52dvevbsmlh743q5tkclrt4gcqpzea ##")
    '## Call CompiledFxGraph ##'
    >>> stable_name("Torch-Compiled Region: 2/1"), stable_name("CompiledFunctionBackward")
    ('Torch-Compiled Region', 'CompiledFunctionBackward')
    >>> stable_name("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"), stable_name("layer_3")
    ('enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__', 'layer_3')
    """
    head, mark = split_mark(name)
    if mark:
        # many long names can have one start
        return stable_name(head) + mark
    for _ in range(_ROUNDS):
        shorter = _strip_once(name)
        if shorter == name:
            break
        name = shorter
    return name


def _strip_once(name: str) -> str:
    # a pattern is tried only where its words stand
    if len(name) >= _SHORTEST_HASH:
        name = HASH.sub("#", name)
    if "Compiled" in name:
        name = _REGION.sub("", name)
        name = _COMPILED_FUNCTION.sub(r"\g<kind>", name)
        name = _CALL_OF_GRAPH.sub("", name)
    if name.startswith("triton_"):
        generated = TRITON_GENERATED.match(name)
        if generated is None:
            return HEX_SUFFIX.sub("", TRITON_SPECIALIZATION.sub("", name))
        base = HEX_SUFFIX.sub("", TRITON_SPECIALIZATION.sub("", generated["base"]))
        return f"{base}_{generated['number']}"
    return name


def is_graph_call(name: str) -> bool:
    """Return whether a range is the call of one compiled graph, in which Triton kernels are numbered.

    >>> [is_graph_call(name) for name in ("## Call CompiledFxGraph fq2 ##", "CompiledFunctionBackward", "aten::mm")]
    [True, True, False]
    """
    return "Compiled" in name and _GRAPH.match(name) is not None


def is_numbered_kernel(name: str) -> bool:
    """Return whether a name ends in the running number that TorchInductor gives the kernels of a graph.

    >>> [is_numbered_kernel(name) for name in ("triton_poi_fused_add_5", "triton_poi_fused_add", "a_1")]
    [True, False, False]
    """
    return name.startswith("triton_") and TRITON_GENERATED.match(name) is not None


def number_by_order(names: Iterable[str]) -> dict[str, str]:
    """Return name -> key of the numbered kernels of one graph: those of one base by the order of their numbers.

    So a kernel of another base that comes in between changes nothing.

    >>> number_by_order(["triton_poi_fused_add_5", "triton_poi_fused_add_1", "triton_red_fused_sum_0"])
    {'triton_poi_fused_add_1': 'triton_poi_fused_add', 'triton_poi_fused_add_5': 'triton_poi_fused_add #2', \
'triton_red_fused_sum_0': 'triton_red_fused_sum'}
    """
    numbers_of_base: dict[str, dict[int, list[str]]] = {}
    for name in sorted(set(names)):
        match = TRITON_GENERATED.match(stable_name(name))
        if match is not None:
            numbers_of_base.setdefault(match["base"], {}).setdefault(int(match["number"]), []).append(name)
    keys: dict[str, str] = {}
    for base, names_of_number in numbers_of_base.items():
        for place, number in enumerate(sorted(names_of_number), start=1):
            key = base if place == 1 else f"{base} #{place}"
            keys.update(dict.fromkeys(names_of_number[number], key))
    return keys


def find_data_numbers(names_of_steps: Iterable[Collection[str]]) -> dict[str, str]:
    """Return name -> key of the annotations whose numbers are data: of one skeleton no two names come in one step, and
    they differ from step to step. names_of_steps: the names of annotations in each step.

    >>> find_data_numbers([{"execute_2(sk55086)", "stage 1"}, {"execute_2(sk55118)", "stage 1"}])
    {'execute_2(sk55086)': 'execute_#(sk#)', 'execute_2(sk55118)': 'execute_#(sk#)'}
    >>> find_data_numbers([{"layer_1", "layer_2"}, {"layer_1", "layer_2"}])
    {}
    """
    names_of_skeleton: dict[str, set[str]] = {}
    are_apart: set[str] = set()
    for names in names_of_steps:
        seen: set[str] = set()
        for name in names:
            skeleton = skeleton_of(name)
            if skeleton == name:
                continue
            if skeleton in seen:
                are_apart.add(skeleton)
            seen.add(skeleton)
            names_of_skeleton.setdefault(skeleton, set()).add(name)
    keys: dict[str, str] = {}
    for skeleton in names_of_skeleton.keys() - are_apart:
        if len(names_of_skeleton[skeleton]) > 1:
            keys.update(dict.fromkeys(names_of_skeleton[skeleton], skeleton))
    return dict(sorted(keys.items()))
