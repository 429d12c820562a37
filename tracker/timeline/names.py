"""Canonical names: what stays of a kernel's name when what changes from build to build and run to run is taken out."""

from __future__ import annotations

import re
from functools import lru_cache

from tracker.limits.texts import split_mark
from tracker.profile.numbered_names import ADDRESS
from tracker.profile.operator_names import HASH, HEX_SUFFIX, TRITON_GENERATED, TRITON_SPECIALIZATION

_CACHED = 1 << 12
"""Names: the kernels and gaps of all ranks of a job name the same few hundred, and long ones take 0.1 ms each."""

RULES_VERSION = 7
"""Version of the rules in this file, in `categories`, in `collective_names`, of the names of operators
(`operator_names`), of what an op launched (`links.working_ops`), of what a collective waits for (`wait_tasks`) and of
steps that nothing marks.

Rows made under different versions do not form one series.
"""

# demanglers and compilers spell one anonymous namespace in many ways; nvcc puts a hash and the file's name into it
_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::|\(anonymous\)::|\b_GLOBAL__N__\w+::|\b__[12]::")
_RETURN_TYPE = re.compile(r"^(?:(?:void|static void|__global__ void)\s+)+")
_CLONE = re.compile(r"(?<!\s)\s*+(?:\[clone [^\[\]]*\]|\(\.kd\)$)|\.kd$|\[abi:\w+\]|\.constprop\.\d+|\.isra\.\d+")
_LAMBDA = re.compile(r"\{lambda\(([^(){}]*)\)#\d+\}|\[lambda\(([^()\[\]]*)\)[^\[\]]*\]|lambda\(([^()]*)\)#\d+")
_CALL_CHAIN = re.compile(r"::lambda\[\]::operator\(\)\(\)(?: const)?")
# Ascend: hcom_allReduce__501_0_1 is kind, then the group's hash, then running numbers; in communication.json with the
# group's id behind an @
_HCOM = re.compile(r"^(hcom_[A-Za-z]+(?:_[A-Za-z]+)*?)_{1,2}\d+(?:_\d+)*(?:@\d+)?$")
# Ascend: transfers and memsets that the graph compiler puts in: trans_TransData_12, atomic_memset-1_271
_INSERTED = re.compile(r"^(trans_[A-Z][A-Za-z]*|atomic_memset)(?:[-_]\d+)+(?=$|_[A-Z])")
# Ascend: a graph op's running number, glued to its name: Conv2D12, AxpyV2102 (AxpyV2, number 102), NonZero57_MemSet,
# AdaptiveAvgPool2d24LeftBatchMatMulV2. V1 to V9 belong to the name, and so does a digit inside a word.
_GRAPH_OP = re.compile(r"^[A-Z][A-Za-z0-9]*(?:[_/][A-Za-z0-9]+)*$")
_RUNNING = re.compile(r"(?:(?<=[A-Za-z])(V[1-9])|(?<=[A-UW-Za-z]))\d+(?=$|[_/]|[A-Z][a-z])")
# MindSpore: Default/network-Net/MatMul-op123
_OP_NUMBER = re.compile(r"-op\d+(?![A-Za-z0-9])")
_TYPE_VARIANT = re.compile(r"(?:V\d+|D)$")
# names that only Ascend writes: single-operator kernels, collectives, inserted transfers
_NPU = re.compile(r"^(?:aclnn[A-Z]|hcom_|trans_[A-Z]|atomic_memset)")
_DEVICE_ARRAY = re.compile(r"\b(?:at::detail::Array|std::array)<")
_UNSIGNED_LITERAL = re.compile(r"(?<=\d)(?:ull|ul|u|l)\b", re.IGNORECASE)
# Nsight Systems and PyTorch's profiler demangle differently: (bool)1, (int)128, (unsigned long)4 and true, 128, 4ul
_BOOL_CAST = re.compile(r"\(bool\)([01])(?![0-9])")
_CAST = re.compile(r"\((?:unsigned |signed )?(?:int|long long|long|short|char)\)(?=-?\d)|\(unsigned\)(?=\d)")
_INNER_RETURN_TYPE = re.compile(r"(?<=[<,( ])void (?=[\w:]+[<(:])")
_POINTER = re.compile(r"(?<=[\w>]) (?=[*&])")
_PARENTHESIS = re.compile(r"[()]")
_SPACE = re.compile(r"\s+")
_LONGEST = 10_000
"""Characters of a name that are looked at."""
_ROUNDS = 16
"""How often a name is stripped; real ones need three."""


@lru_cache(_CACHED)
def canonical_name(name: str, kernel_type: str = "", *, npu: bool = False) -> str:
    """The part of a kernel's name that is equal in every build and every run, and differs between distinct kernels.

    Taken out: return type, parameter lists, anonymous namespaces, lambda numbers, clone suffixes, addresses, hashes,
    Triton's running numbers and argument specialization, hash and running numbers of `hcom_*`; with `npu` (the capture
    is one of an NPU) also running numbers glued to the names of graph ops, unless `kernel_type` is known and says that
    the name is no graph op's. Kept: template arguments that say which computation it is, and what Triton fused.
    Applying it twice changes nothing.

    >>> canonical_name("triton_poi_fused_add_cos_sin_0"), canonical_name("hcom_allReduce__501_0_1")
    ('triton_poi_fused_add_cos_sin', 'hcom_allReduce')
    >>> canonical_name("void f<4, g(at::Iter&)::{lambda(float)#1}, std::array<char*, 2ul> >(int, char*)")
    'f<4, g::lambda[float], Array<char*, 2>>'
    >>> canonical_name("void f<(int)4, (bool)1, std::array<char *, (unsigned long)2>>(int, char *)")
    'f<4, true, Array<char*, 2>>'
    >>> canonical_name("Memcpy HtoD (Pageable -> Device)")
    'Memcpy HtoD (Pageable -> Device)'
    >>> canonical_name("Conv2D12", npu=True), canonical_name("AxpyV2102", "AxpyV2", npu=True)
    ('Conv2D', 'AxpyV2')
    """
    head, mark = split_mark(name)
    if mark:
        # many long names can have one start
        return canonical_name(head, kernel_type, npu=npu) + mark
    name = name[:_LONGEST]
    for _ in range(_ROUNDS):
        if (shorter := _stripped_once(name)) == name:
            break
        name = shorter
    return _without_running_numbers(name, kernel_type) if npu else name


def is_npu_name(name: str) -> bool:
    """Whether only a profiler of Ascend NPUs writes such a kernel name.

    >>> is_npu_name("aclnnMm_MatMulCommon_MatMulV2"), is_npu_name("ampere_sgemm_128x64_nn")
    (True, False)
    """
    return _NPU.match(name) is not None


def _without_running_numbers(name: str, kernel_type: str) -> str:
    """The name of a graph op without running numbers; any other name as it is."""
    if name == kernel_type or not _GRAPH_OP.match(name) or _NPU.match(name):
        return name
    if kernel_type and name.startswith(kernel_type) and name[len(kernel_type) :].isdigit():
        return kernel_type
    shorter = _RUNNING.sub(r"\1", name)
    stem = _TYPE_VARIANT.sub("", kernel_type).lower()
    return shorter if stem in shorter.lower() else name


def _stripped_once(name: str) -> str:
    text = _RETURN_TYPE.sub("", name.strip())
    if "[" in text or "." in text or "(.kd)" in text:
        text = _CLONE.sub("", text)
    if "(" in text or "<" in text:
        text = _without_signatures(text)
    if "0x" in text:
        text = ADDRESS.sub("0x#", text)
    text = HASH.sub("#", text)
    if text.startswith("hcom_") and (match := _HCOM.match(text)):
        return match.group(1)
    if text.startswith("triton_") and (match := TRITON_GENERATED.match(text)):
        return match["base"]
    text = _INSERTED.sub(r"\1", text)
    if "-op" in text:
        text = _OP_NUMBER.sub("", text)
    if "triton" in text or "_kernel_" in text:
        text = TRITON_SPECIALIZATION.sub("", text)
    return HEX_SUFFIX.sub("", text) if text.startswith("triton") else text


def _without_signatures(text: str) -> str:
    """A C++ name without parameter lists; of a lambda only its parameter types stay.

    A pattern is tried only where its words stand: most names have few of them, and some are thousands of characters
    long.
    """
    if "anonymous" in text or "<unnamed>::" in text or "__" in text:
        text = _ANONYMOUS.sub("", text)
    if "(bool)" in text:
        text = _BOOL_CAST.sub(lambda match: "true" if match.group(1) == "1" else "false", text)
    if "(" in text:
        text = _CAST.sub("", text)
    if " *" in text or " &" in text:
        text = _POINTER.sub("", text)
    if "void " in text:
        text = _INNER_RETURN_TYPE.sub("", text)
    text = text.replace("operator ()", "operator()")
    if "lambda" in text:
        text = _LAMBDA.sub(
            lambda match: f"lambda[{next(group for group in match.groups() if group is not None)}]", text
        )
        text = _CALL_CHAIN.sub("", text)
    text = _UNSIGNED_LITERAL.sub("", _without_parameters(text))
    if "rray<" in text:
        text = _DEVICE_ARRAY.sub("Array<", text)
    return _SPACE.sub(" ", text.replace("> >", ">>").replace("> >", ">>").replace(" ,", ",")).strip()


def _without_parameters(text: str) -> str:
    """Drops each (...) that follows a name or a template argument list; `Memcpy HtoD (Device)` keeps its own."""
    kept: list[str] = []
    before = ""
    index = 0
    while (opening := text.find("(", index)) >= 0:
        kept.append(text[index:opening])
        before = text[opening - 1] if opening > index else before
        if before and (before.isalnum() or before in "_>]"):
            index = _closing(text, opening) + 1
            if text.startswith(" const", index):
                index += len(" const")
        else:
            kept.append("(")
            before = "("
            index = opening + 1
    kept.append(text[index:])
    return "".join(kept)


def _closing(text: str, index: int) -> int:
    """The place of the parenthesis that closes the one at `index`, or the last place."""
    depth = 0
    for parenthesis in _PARENTHESIS.finditer(text, index):
        depth += 1 if parenthesis[0] == "(" else -1
        if depth == 0:
            return parenthesis.start()
    return len(text) - 1
