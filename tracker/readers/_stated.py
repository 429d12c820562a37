"""What a source states of its configuration: lines of a log, launch arguments, printed settings, names of its path.

Keys: batch_size, micro_batch_size, global_batch_size, sequence_length, precision, devices, nodes, tp, pp, dp, ep, cp,
microbatches. What the text states wins over what the path's names state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from tracker.profile.numbered_names import has_indices, without_parallel_numbers

PARALLEL: Final = ("tp", "pp", "dp", "ep", "cp")
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "batch_size": ("batch_size", "per_device_train_batch_size", "local_batch_size", "batch_size_per_card"),
    "micro_batch_size": ("micro_batch_size", "train_micro_batch_size_per_gpu"),
    "global_batch_size": ("global_batch_size",),
    "sequence_length": ("sequence_length", "seq_length", "max_seq_length", "seq_len", "max_seq_len"),
    "devices": ("gpus_used", "paddle_trainers_num", "world_size", "nranks", "num_gpus"),
    "nodes": ("nnodes",),
    "devices_per_node": ("nproc_per_node",),
    "tp": ("tensor_model_parallel_size", "tensor_parallel_size", "tensor_parallel_degree", "tp_size", "tp_degree",
           "mp_degree", "model_parallel", "tp"),
    "pp": ("pipeline_model_parallel_size", "pipeline_parallel_size", "pipeline_parallel_degree", "pp_size",
           "pp_degree", "pipeline_stage", "pp"),
    "dp": ("data_parallel_size", "data_parallel_degree", "dp_size", "dp_degree", "data_parallel", "dp"),
    "ep": ("expert_model_parallel_size", "expert_parallel_size", "expert_parallel_degree", "ep_size", "ep"),
    "cp": ("context_parallel_size", "context_parallel_degree", "cp_size", "cp"),
    "microbatches": ("num_microbatches", "gradient_accumulation_steps", "accumulate_steps", "micro_batch_num"),
    "precision": ("precision", "mixed_precision", "params_dtype", "torch_dtype", "compute_dtype"),
    "fp8": ("fp8",), "bf16": ("bf16",), "fp16": ("fp16",), "amp": ("use_amp", "amp"),
    "pure_fp16": ("use_pure_fp16", "pure_fp16"),
}  # fmt: skip
_KEY_OF: Final = {name: key for key, names in _NAMES.items() for name in names}
_FLAGS: Final = ("fp8", "pure_fp16", "bf16", "fp16", "amp")
"""Switches of the precision, the one that decides first."""

_ANY_NAME: Final = "|".join(name.replace("_", "[-_ ]") for name in sorted(_KEY_OF, key=len, reverse=True))
# --name 4   name=4   name: 4   'name': 4   'name', '4'   name ........ 4   | NAME | 4 |, and a column of blanks
_PAIR: Final = re.compile(
    rf"(?:(?P<dashes>(?<![\w-])--)|(?<![A-Za-z0-9_-]))(?P<path>(?:[A-Za-z]\w{{0,63}}\.){{0,16}})(?P<name>{_ANY_NAME})(?![A-Za-z0-9_])['\"]?"
    r"(?P<between> *[=:] ?| *\.{2,} *|, ?(?=['\"])| *\| *| {1,60}| *+:? *+$)['\"]?(?:torch\.|paddle\.)?"
    r"(?P<value>[A-Za-z0-9][\w.-]*)?",
    re.IGNORECASE,
)
_ALONE: Final = ("paddle_trainers_num", "train_micro_batch_size_per_gpu")
"""Names that nothing but blanks needs to part from their number."""
_SETTINGS: Final = ("data_parallel", "model_parallel", "pipeline_stage")
"""Names that are a setting only as one word: `pipeline stage 3` counts the stages."""
_CHEAP: Final = re.compile(
    r"batch|seq|gpus|nranks|world|trainers|nodes|nproc|parallel|degree|stage|accum|micro|[tpdec]p\b|_size|precision|dtype|fp|bf16|amp",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"[1-9]\d{0,8}")
_PRODUCT: Final = re.compile(r"(?: *\* *\d{1,9}(?![\w.]))*(?: *(?P<end>\*))?")
"""What makes a product of a number: `5 * 8`; of one with a name in it the value is not known."""
_TRUE: Final = ("true", "1", "on", "yes", "o1", "o2", "hybrid", "e4m3")
_FALSE: Final = ("false", "0", "off", "no", "none", "o0")
_DTYPES: Final = {
    **dict.fromkeys(("bf16", "bfloat16"), "bf16"), **dict.fromkeys(("fp16", "float16", "half"), "fp16"),
    **dict.fromkeys(("fp32", "float32", "float"), "fp32"), "fp8": "fp8", "tf32": "tf32", "amp": "amp",
}  # fmt: skip
_OF_OTHERS: Final = re.compile(r"eval|valid|\bval\b|test|infer|predict", re.IGNORECASE)
"""Parts of settings that are not those of the training."""

_SECTION: Final = re.compile(r"(?P<indent> *)['\"]?(?P<name>[A-Za-z][\w-]*)['\"]? ?: *+[\[{]?\s*+$")
_INFO: Final = re.compile(r"^.{0,120}?\b(?:INFO|DEBUG)\b[^:\]]{0,40}[:\]] ?")
_PARENT: Final = re.compile(r"(\w+)['\"]?\s*[:=]\s*[\w.]*[\[{(]\s*$")

WORD_START: Final = r"(?<![A-Za-z0-9])"
_ENDS: Final = r"(?![A-Za-z0-9])"
_IN_NAMES: Final[Mapping[str, re.Pattern[str]]] = {
    key: re.compile(WORD_START + pattern + _ENDS, re.IGNORECASE)
    for key, pattern in {
        "batch_size": r"(?<!micro_)(?<!global_)(?:(?:bs|batch_?(?:size)?)[_-]?|(?<!vit_)(?<!vit-)b)(\d{1,9})",
        "micro_batch_size": r"(?:mbs|micro[_-]?bs|micro[_-]?batch[_-]?(?:size)?)[_-]?(\d{1,9})",
        "global_batch_size": r"(?:gbs|global[_-]?bs|global[_-]?batch[_-]?(?:size)?)[_-]?(\d{1,9})",
        "sequence_length": r"(?:seq[_-]?(?:len)?|seqlength|sequence[_-]?length)[_-]?(\d{2,9})",
        "precision": r"(pure_fp16|pure_bf16|fp16|bf16|fp32|fp8|tf32|amp)",
        "devices": r"(?:(?:gpus?|npus?|xpus?|dcus?|mlus?|cards?)(\d{1,6})|(\d{1,6})[_-]?(?:gpus?|npus?|xpus?|cards?))",
        "cluster": r"N(\d{1,6})C(\d{1,6})",
        "few": r"N(\d{1,6})",
        "tp": r"[tm]p(\d{1,6})", "pp": r"pp(\d{1,6})", "dp": r"dp(\d{1,6})", "ep": r"ep(\d{1,6})", "cp": r"cp(\d{1,6})",
    }.items()
}  # fmt: skip


_JOINED: Final = re.compile(
    WORD_START + r"(?:(?:[tmpdec]p|seq|[mg]?bs|b)\d{1,6}|(?:bf|fp|tf)(?:8|16|32)){2,8}" + _ENDS, re.IGNORECASE
)
"""Several keys without anything between them: `tp2pp4dp8`, `b32bf16`."""

_DEVICE_WORDS: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:B[123]00|(?:rtx|gtx|gpu)[_-]?[1-5]0[5-9]0|(?:ascend|npu)[_-]?(?:910|310)"
    r"|[1-5]0[5-9]0(?=[_-]?gpu)|(?:910|310)(?=[_-]?npu))(?![0-9])",
    re.IGNORECASE,
)
"""Devices whose names look like a size of the batch (`b200`), or a number of devices (`910_npu`, `gpu4090`)."""

_ONE_OF_THEM: Final = re.compile(r"[A-Za-z]+\d+")


class Stated(Struct):
    """What the lines of a text state; of two lines that state a key, the first one counts."""

    values: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    _sections: list[tuple[int, str]] = field(default_factory=list)

    def take(self, line: str) -> None:
        """Looks at the next line."""
        if section := _SECTION.match(_INFO.sub("", line)):
            indent = len(section["indent"])
            self._sections = [(at, name) for at, name in self._sections if at < indent] + [(indent, section["name"])]
        if _CHEAP.search(line) is None:
            return
        for key, value in _pairs_in(line):
            if not self._is_of_others(line) and self.values.setdefault(key, value) != value:
                self.others.setdefault(key, value)

    def configuration(self) -> dict[str, str]:
        """By the keys of this module, without what only helps to know them."""
        values = dict(self.values)
        flag = next((flag for flag in _FLAGS if flag in values), None)
        if flag is not None:
            values["precision"] = flag
        per_node = values.get("devices_per_node")
        if "devices" not in values and per_node is not None:
            values["devices"] = str(int(per_node) * int(values.get("nodes", "1")))
        hidden = (*_FLAGS, "devices_per_node", "nodes")
        return {key: value for key, value in values.items() if key not in hidden}

    def _is_of_others(self, line: str) -> bool:
        plain = _INFO.sub("", line)
        indent = len(plain) - len(plain.lstrip(" "))
        return any(at < indent and _OF_OTHERS.search(name) for at, name in self._sections)


def configuration_in_names(path: Path, *, at_least: int = 1, of_trace: bool = False) -> dict[str, str]:
    """What the names of the file and of the three folders around it state, the nearest first, however the path is
    typed. {} for fewer than `at_least` keys in one of the names, or in all that state nothing else: a key alone may
    mean something else. `of_trace`: each rank has such a file, so that `tp1` in its name is no size.

    >>> configuration_in_names(Path("Deeplabv3_FP16_BS4-N1.log"))
    {'batch_size': '4', 'precision': 'fp16', 'devices': '1'}
    >>> configuration_in_names(Path("bert_base_seqlen128_bs32_fp16_MultiP_DP_N2C8/20230108_8707ba8"))
    {'batch_size': '32', 'precision': 'fp16', 'devices': '16', 'sequence_length': '128'}
    """
    found: dict[str, str] = {}
    texts = [_JOINED.sub(lambda run: "_".join(_ONE_OF_THEM.findall(run[0])), name) for name in path.resolve().parts]
    texts = [_without_indices(text) for text in texts]
    texts = [_DEVICE_WORDS.sub("", text) for text in texts]
    if of_trace:
        texts[-1] = without_parallel_numbers(texts[-1])
    names = [dict(_in_name(text)) for text in reversed(texts[-4:])]
    alone = sum(len(_in_name_alone(text)) for text in texts[-4:])
    if alone < at_least and not any(len(values) >= at_least for values in names):
        return {}
    for values in names:
        for key, value in values.items():
            found.setdefault(key, value)
    order = (
        "batch_size",
        "micro_batch_size",
        "global_batch_size",
        "precision",
        "devices",
        "sequence_length",
        *PARALLEL,
    )
    return {key: found[key] for key in order if key in found}


def _without_indices(name: str) -> str:
    return without_parallel_numbers(name) if has_indices(name) else name


def configuration_of_arguments(arguments: Mapping[str, object]) -> dict[str, str]:
    """What launch arguments that a source holds by name state, without the number of devices.

    >>> configuration_of_arguments({"tensor_model_parallel_size": 2, "world_size": 4, "bf16": True})
    {'tp': '2', 'precision': 'bf16'}
    """
    stated = Stated()
    for name, value in arguments.items():
        if isinstance(value, bool | int | str):
            stated.take(f"{name}={value}"[:200])
    return {key: value for key, value in stated.configuration().items() if key != "devices"}


def configuration_of_groups(groups: Iterable[tuple[str, int]]) -> dict[str, str]:
    """The parallel sizes by process groups (role, number of ranks), where all groups of a role are of one size.

    >>> configuration_of_groups([("tp", 2), ("pp", 4), ("tp", 2), ("dp", 0), ("default", 16)])
    {'tp': '2', 'pp': '4'}
    """
    sizes: dict[str, set[int]] = {}
    for role, size in groups:
        if role in PARALLEL and size > 0:
            sizes.setdefault(role, set()).add(size)
    return {role: str(sizes[role].pop()) for role in PARALLEL if len(sizes.get(role, ())) == 1}


def merged(stated: Mapping[str, str], named: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The configuration by what the text states and what the path's names state, and a sentence on each contradiction.

    The text wins where it means another thing. It means the same where it states the devices of one machine of several,
    the batch of all devices where the name states that of one, or a precision in other words.

    >>> merged({"batch_size": "64", "devices": "4"}, {"batch_size": "8", "devices": "8"})
    ({'batch_size': '8', 'devices': '8'}, ())
    """
    notes = []
    found = {**named, **stated}
    for key in sorted(named, key=lambda key: key != "devices"):  # the batch counts them
        value = named[key]
        other = stated.get(key, value)
        if other == value:
            continue
        if _mean_the_same(key, other, value, found.get("devices", "1")):
            found[key] = value
        else:
            notes.append(
                f"{key} is {value} by the path's name, {other} by the text, which counts; --config {key}=N decides"
            )
    return found, tuple(notes)


def _mean_the_same(key: str, stated: str, named: str, devices: str) -> bool:
    if key == "devices":
        return int(named) % int(stated) == 0
    if key == "batch_size":
        return int(stated) == int(named) * int(devices)
    if key == "precision":
        return {stated, named} <= {"amp", "fp16", "pure_fp16"} or {stated, named} <= {"amp", "bf16", "pure_bf16"}
    return False


def _in_name(name: str) -> Iterator[tuple[str, str]]:
    matches = {key: found for key, pattern in _IN_NAMES.items() if (found := pattern.search(name))}
    for key, match in matches.items():
        if key == "cluster":
            yield "devices", str(int(match[1]) * int(match[2]))
        elif key == "few":
            if "cluster" not in matches and {"batch_size", "precision"} & set(matches):
                yield "devices", match[1]
        elif key != "devices" or not {"cluster"} & set(matches):
            yield key, next(group for group in match.groups() if group).lower()


def _in_name_alone(name: str) -> list[str]:
    """The keys that a name states which states nothing else."""
    found = {key: match for key, pattern in _IN_NAMES.items() if (match := pattern.search(name))}
    rest = set(range(len(name))).difference(*(range(*match.span()) for match in found.values()))
    return [*found] if all(name[at] in "_-. " for at in rest) else []


def _pairs_in(line: str) -> Iterator[tuple[str, str]]:
    """The keys and values in a line, as far as they can be."""
    for match in _PAIR.finditer(line):
        name = re.sub(r"[- ]", "_", match["name"].lower())
        key, value, between = _KEY_OF[name], match["value"] or "", match["between"]
        if _OF_OTHERS.search(match["path"]) or _is_inside_others(line, match.start()):
            continue
        if name in _SETTINGS and " " in match["name"]:
            continue
        is_prose = " " in match["name"] or name in _ALONE or line.strip() == match.group().strip()
        if not between.strip() and not (match["dashes"] or is_prose or not value):
            continue
        if len(name) == 2 and not (match["dashes"] or between.strip() in ("=", ":")):
            continue
        if key in _FLAGS:
            is_switch = bool(match["dashes"]) and not between.strip() and value.lower() not in _FALSE
            if is_switch or (value and value.lower() in _TRUE):
                yield key, key
        elif key == "precision":
            if value.lower() in _DTYPES:
                yield key, _DTYPES[value.lower()]
        elif _NUMBER.fullmatch(value.rstrip(".")):
            factors = _PRODUCT.match(line, match.end())
            if factors is not None and factors["end"] is None:
                yield key, str(prod(map(int, [value.rstrip("."), *re.findall(r"\d+", factors.group())])))


def _is_inside_others(line: str, at: int) -> bool:
    """Whether the innermost bracket around a place is that of a part which is not of the training."""
    depth = 0
    for place in range(at - 1, max(-1, at - 2000), -1):
        if line[place] in ")]}":
            depth += 1
        elif line[place] in "([{":
            if depth == 0:
                parent = _PARENT.search(line[max(0, place - 200) : place + 1])
                return parent is not None and _OF_OTHERS.search(parent[1]) is not None
            depth -= 1
    return False
