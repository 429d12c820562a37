"""What a log and its path say of the run: configuration, version, hardware, environment.

Only what is listed here is taken, and only numbers and short words: an argument dump may hold passwords and tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from tracker.profile import CPU, UNKNOWN_DEVICE, Device
from tracker.readers import _nvidia
from tracker.readers._stated import WORD_START, Stated, configuration_in_names, merged
from tracker.readers._text import ANSI
from tracker.readers.training_log.grammar import VERSION, Grammar, StepLine
from tracker.readers.training_log.python_config import ProgramParts

# 20230808_69edec3bb7: the day of the build and its commit
_VERSION: Final = re.compile(
    r"(?P<date>(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))_(?P<commit>[0-9a-f]{7,40})"
)
# folders in which programs save what they trained, snapshots by their hash
_NO_MODEL: Final = re.compile(
    r"(?:(?:global_?)?step|checkpoint|ckpt|iter|epoch|hf|model|models|output|outputs|out|final|last|best|latest|release|"
    r"save|saved|merged|export|pretrained|weights|main|tmp)?[-_.]?\d*|[0-9a-f]{40}|\.*",
    re.IGNORECASE,
)
# no rank of an adapter (lora_rank64), no day (trainer_2024-01-01), no model (rerank_8b)
_RANK: Final = re.compile(
    r"(?<![A-Za-z0-9])(?<!lora[_-])(?:workerlog|rank|trainer)[._-]?(\d{1,9})(?![\dA-Za-z])(?!-\d)", re.IGNORECASE
)
_GPU_IN_PATH: Final = re.compile(
    WORD_START
    + r"((?:NVIDIA[ _-])?(?:A(?:10G?|30|40|100|800|6000)|H(?:20|100|200|800)|B(?:100|200|300)|V100S?|T4|P(?:4|40|100)"
    r"|L(?:4|20|40)S?|GH?B?200)(?:-(?:SXM\d?|PCIE|\d{1,3}GB?))*)(?![A-Za-z0-9])"
)
_AMD_IN_PATH: Final = re.compile(WORD_START + r"(mi\d{3}[ax]?)(?![A-Za-z0-9])", re.IGNORECASE)
_DEVICES: Final = (
    (
        "NVIDIA",
        re.compile(
            r"\b(NVIDIA (?:(?:GeForce|Quadro|RTX|GTX|TITAN|Tesla|DGX) )*[A-Z]{0,4}\d{1,4}[A-Za-z]{0,2}"
            r"(?:[ -](?:SXM\d?|PCIe|PCIE|NVL|\d{1,3}GB|HBM\d\w?|Ti|SUPER|Super|Ada|Generation)){0,4})(?!\w)"
        ),
    ),
    ("NVIDIA", re.compile(r"\b(Tesla [A-Z]{0,3}\d{2,4}[A-Za-z0-9-]*)")),
    # mmcv and Detectron2: `GPU 0,1: A100-SXM4-40GB`
    (
        "NVIDIA",
        re.compile(
            r"\bGPU [\d, ]+(?:: *| {2,})((?:[AHVBL]\d{2,4}|GH200|GB200|Quadro|TITAN)[\w -]{0,30}?)(?= *(?:\(|'|\"|$))"
        ),
    ),
    ("AMD", re.compile(r"\b(?:AMD )?(?:Instinct )?(MI\d{3}[A-Z]?X?)\b")),
    ("Huawei", re.compile(r"\b(Ascend ?910[A-D]\w?|Ascend ?310P?)\b", re.IGNORECASE)),
)
"""Vendor and the pattern of its models."""
_PLATFORM: Final = re.compile(r'"submission_platform", "value": "([\w.+-]{1,60})"')
_PLATFORM_GPU: Final = re.compile(r"(?<![A-Za-z0-9])(?:\d+x)?((?:GB?|B|H|A|L)\d{2,3}S?)(?![0-9])")
_INTERCONNECT: Final = re.compile(r"[LxX]\d+x?(?=[A-Z]{1,2}\d{3})")

_MODEL_SIZES: Final[Mapping[str, tuple[str, ...]]] = {
    "layers": ("num_layers", "num_hidden_layers", "n_layers", "n_layer"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_heads", "n_head"),
    "ffn_hidden_size": ("ffn_hidden_size", "intermediate_size"),
    "experts": ("num_moe_experts", "num_experts", "n_routed_experts"),
}
_SIZE_OF: Final = {name: size for size, names in _MODEL_SIZES.items() for name in names}
_SIZE: Final = re.compile(
    rf"(?<![\w-])(?:--)?['\"]?(?P<name>{'|'.join(sorted(_SIZE_OF, key=len, reverse=True))})['\"]?\]?"
    r"(?: *[=:] *| *\.{3,} *| +(?=\d))['\"]?(?P<value>[1-9]\d{0,6})(?![\w.*])"
)
_STATED: Final[Mapping[str, re.Pattern[str]]] = {
    "model": re.compile(
        r"\bmodel_name_or_path(?:'?, '| |='?)([\w./-]{1,80}?)(?=['\" ,)]|$)|\.paddlenlp/models/([\w.-]{1,80})/"
        r'|"submission_benchmark", "value": "([\w.-]{1,80})"'
    ),
    "cards": re.compile(r"\b(?:devices|gpus): (\d{1,3}(?:,\d{1,3})*)\s*$"),
    "node_count": re.compile(r"\bnnodes: (\d{1,6})\s*$"),
    "processor": re.compile(r"\bdevice(?: : |=')(cpu|gpu)\b"),
}
_FACTS: Final[Mapping[str, re.Pattern[str]]] = {
    "pytorch": re.compile(r"\b(?:[Tt]orch|PyTorch)(?: version)?(?:: +|==| {2,})" + VERSION),
    "driver_version": re.compile(r"\bDriver Version: ([\d.]{1,20})"),
    "submission_platform": _PLATFORM,
    "submission_org": re.compile(r'"submission_org", "value": "([\w.+ -]{1,60})"'),
}
# PaddleClas prints its settings indented: `INFO: Arch : `, `INFO:     class_num : 1000`, `INFO:     name : ResNet50`
_SECTION: Final = re.compile(r"\bINFO: (?P<name>[A-Za-z]\w*) ?: *$")
_ARCHITECTURES: Final = ("ARCHITECTURE", "Arch")
_NAME: Final = re.compile(r"\bINFO:     name ?: ?([\w./-]{1,80}) *$")
# torchtitan: `with parallelism: pp=8, dp_shard=1`, before `3-D device mesh with ['pp', 'dp'], [2, 4]`
_MESH: Final = re.compile(
    r"device mesh with (?:parallelism: (?P<pairs>[\w=, ]+)|\[(?P<names>[^\]]+)\], ?\[(?P<sizes>[\d, ]+)\])"
)
_MESH_NAMES: Final = {
    "dp": "dp", "dp_replicate": "dp", "dp_shard": "dp", "tp": "tp", "pp": "pp", "cp": "cp", "ep": "ep",
}  # fmt: skip
_MLLOG: Final = re.compile(
    r'"key": "(global_batch_size|gradient_accumulation_steps|max_sequence_length|sequence_length)", "value": (\d{1,9})'
)
_MLLOG_KEYS: Final = {
    "gradient_accumulation_steps": "microbatches",
    "max_sequence_length": "sequence_length",
    "global_batch_size": "global_batch_size",
    "sequence_length": "sequence_length",
}
_PROSE: Final[Mapping[str, re.Pattern[str]]] = {
    # Hugging Face Trainer
    "batch_size": re.compile(r"Instantaneous batch size per device = (\d{1,9})|\bsamples_per_gpu ?= ?(\d{1,9})"),
    # of DeepSpeed that of the job: batch of a card x accumulation x cards
    "global_batch_size": re.compile(
        r"Total train batch size [^=\r\n]{0,80}= (\d{1,9})|\bIMS_PER_BATCH: (\d{1,9})"
        r"|\btrain_batch_size \.{3,} (\d{1,9})"
    ),
    # fairseq, MMEngine
    "devices": re.compile(r"\btraining on (\d{1,6}) devices|\bGPU number: (\d{1,6})\s*$"),
    # nanoGPT
    "tokens_per_step": re.compile(r"tokens per iteration will be: (\d{1,3}(?:,\d{3})*)"),
}
"""Key of the configuration and how a sentence of a framework states it."""
_LONGEST: Final = 4000
_STATES: Final = (
    b"batch", b"seq", b"gpus", b"nranks", b"world", b"trainers", b"nodes", b"nproc", b"parallel", b"degree", b"accum",
    b"stage", b"micro", b"tp", b"pp", b"dp", b"ep_", b"ep=", b"ep:", b"cp", b"_size", b"precision", b"dtype", b"fp8",
    b"fp16", b"bf16", b"amp",
)  # fmt: skip
_SAYS: Final = (
    b"model_name", b"paddlenlp/models", b"submission_", b"gpu", b"nnodes", b"device", b"torch", b"version", b"layer",
    b"hidden", b"n_e", b"heads", b"n_head", b"intermediate", b"experts", b"d_model", b"mesh", b"nvidia", b"tesla",
    b"mi2", b"mi3", b"ascend", b"info:  ", b"cuda", b"python", b"build", b"batch", b"samples_per", b"tokens per",
    b"mllog", b"commit", b" : ",
)  # fmt: skip
"""A line that says something has one of these words, in small letters; most lines of a log have none."""


class RunContext(Struct):
    """What the lines of a log say beside the speed; the first line counts that says a thing."""

    facts: Mapping[str, re.Pattern[str]] = field(default_factory=lambda: dict(_FACTS))
    values: dict[str, str] = field(default_factory=dict)
    stated: Stated = field(default_factory=Stated)
    sizes: dict[str, str] = field(default_factory=dict)
    mesh: dict[str, int] = field(default_factory=dict)
    found_facts: dict[str, str] = field(default_factory=dict)
    device: Device | None = None
    _section: str = ""

    def take(self, line: str, *, says_sizes: bool = True) -> None:
        """Look at the next line for all but the settings that `stated` knows.

        `says_sizes`: whether a size in it is that of the model, and not of a part of it.
        """
        for key, pattern in _STATED.items():
            if key not in self.values and (match := pattern.search(line)):
                self.values[key] = next(group for group in match.groups() if group)
        for name, pattern in self.facts.items():
            if name not in self.found_facts and (match := pattern.search(line)):
                self.found_facts[name] = match[1]
        for key, pattern in _PROSE.items():
            if key not in self.stated.values and (match := pattern.search(line)):
                self.stated.values[key] = next(group for group in match.groups() if group).replace(",", "")
        for match in _SIZE.finditer(line) if says_sizes else ():
            self.sizes.setdefault(_SIZE_OF[match["name"]], match["value"])
        if match := _MLLOG.search(line):
            self.stated.values.setdefault(_MLLOG_KEYS[match[1]], match[2])
        if not self.mesh and (match := _MESH.search(line)):
            self.mesh = _mesh_of(match)
        if self.device is None:
            self.device = _device_in(line)
        if section := _SECTION.search(line):
            self._section = section["name"]
        elif self._section in _ARCHITECTURES and (name_line := _NAME.search(line)):
            self.values.setdefault("model", name_line[1])

    @property
    def is_empty(self) -> bool:
        """Whether no line said anything of the configuration."""
        return not (self.values or self.stated.values or self.sizes or self.mesh)


def read_context(texts: Iterable[bytes], grammar: Grammar, step_line: StepLine | None) -> RunContext:
    """Return what the lines of some text say of the run; the step lines in it say nothing."""
    facts = {**_FACTS, **{name: re.compile(pattern) for name, pattern in grammar.facts.items()}}
    context = RunContext(facts=facts)
    for text in texts:
        for line, says_sizes in _lines(text):
            small = line.lower()
            begins_section = line.rstrip().endswith((b":", b"{", b"["))
            states = begins_section or any(word in small for word in _STATES)
            says = any(word in small for word in _SAYS)
            if not (states or says) or (step_line is not None and step_line.head.search(line) is not None):
                continue
            plain = line[:_LONGEST].decode("utf-8", "replace")
            if states and not plain.lstrip().startswith("assert "):  # a program that is quoted
                context.stated.take(plain)
            if says:
                context.take(plain, says_sizes=says_sizes)
    return context


def resumed(context: RunContext, again: RunContext) -> RunContext:
    """Return what a log says of its last start, where what that did not state is as it was before."""
    stated = Stated(
        values={**context.stated.values, **again.stated.values},
        others={
            **{key: value for key, value in context.stated.others.items() if key not in again.stated.values},
            **again.stated.others,
        },
    )
    return RunContext(
        facts=context.facts,
        values={**context.values, **again.values},
        stated=stated,
        sizes={**context.sizes, **again.sizes},
        mesh=again.mesh or context.mesh,
        found_facts={**context.found_facts, **again.found_facts},
        device=again.device or context.device,
    )


def _lines(text: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the lines that may say something new, and whether a size in them is that of the model."""
    plain = ANSI.sub(b"", text) if b"\x1b" in text else text
    # several lines in a string of JSON, as mmcv writes its environment
    plain = plain.replace(b"\\n", b"\n")
    # what stands in many lines of one text says nothing new
    seen: set[tuple[bytes, bytes]] = set()
    parts = ProgramParts()
    for line in plain.replace(b"\r", b"\n").split(b"\n"):
        was_inside = parts.is_inside_model
        parts.take(line)
        if parts.is_of_others or (parts.part, line) in seen:
            continue
        seen.add((parts.part, line))
        # of a line that opens brackets within the model the sizes are those of what is in them
        opens = parts.part == b"model" and line[:1] in (b" ", b"\t") and b"(" in line
        yield line, not (was_inside or parts.is_inside_model or opens)


def _mesh_of(match: re.Match[str]) -> dict[str, int]:
    if match["pairs"]:
        pairs = [pair.partition("=") for pair in match["pairs"].split(",")]
        sizes = [(name.strip(), size.strip()) for name, _, size in pairs]
    else:
        names = [name.strip(" '\"") for name in match["names"].split(",")]
        sizes = list(zip(names, [size.strip() for size in match["sizes"].split(",")], strict=False))
    sizes_by_name: dict[str, int] = {}
    for name, size in sizes:
        key = _MESH_NAMES.get(name)
        if key is not None and size.isdigit():
            sizes_by_name[key] = sizes_by_name.get(key, 1) * int(size)
    return sizes_by_name


def _device_in(line: str) -> Device | None:
    """Return the hardware that a line names, None for none.

    >>> _device_in("GPU 0,1                 NVIDIA RTX A6000 (arch=8.6)")
    Device(vendor='NVIDIA', model='RTX A6000')
    >>> _device_in('"key": "submission_platform", "value": "1xXE9680Lx8B200-SXM-180GB"').model
    'B200'
    """
    if platform := _PLATFORM.search(line):
        name = _INTERCONNECT.sub("-", platform[1])
        if gpu := _PLATFORM_GPU.search(name):
            return _nvidia.device_of(gpu[1])
    for vendor, pattern in _DEVICES:
        if match := pattern.search(line):
            name = match[1].strip()
            if vendor == "NVIDIA":
                return _nvidia.device_of(name)
            return Device(vendor, name.replace(" ", "") if vendor == "Huawei" else name)
    return None


def configuration_of(path: Path, context: RunContext) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return what must be equal for runs to be compared, and a sentence on each contradiction between log and path.

    Keys: batch_size, precision, devices, sequence_length and others of `_stated`, and the sizes of the model (layers,
    hidden_size, heads, ffn_hidden_size, experts), as far as known. What the log says counts before the names of the
    path, but that these give the batch of one card where some releases print that of all.
    """
    stated = context.stated.configuration()
    cards = _cards(context.values)
    if "devices" not in stated and cards is not None:
        stated["devices"] = cards
    for name, size in context.mesh.items():
        stated.setdefault(name, str(size))
    if "devices" not in stated and context.mesh:
        devices = 1
        for name, size in context.mesh.items():
            devices *= 1 if name == "ep" else size  # experts lie across the other dimensions
        stated["devices"] = str(devices)
    configuration, notes = merged(stated, configuration_in_names(path))
    several = [
        f"{key} is {value} and {context.stated.others[key]} by the text; the first counts, --config {key}=N decides"
        for key, value in configuration.items()
        if key in context.stated.others and value == context.stated.values.get(key)
    ]
    return {**configuration, **context.sizes}, (*notes, *several)


def labels_of(path: Path, context: RunContext) -> dict[str, str]:
    """Return version, commit and date from a file name like `20230808_69edec3bb7`; the workload is the model."""
    labels = {}
    if match := _VERSION.fullmatch(path.name.removesuffix(".gz").removesuffix(".txt").removesuffix(".log")):
        day = match["date"]
        labels = {"version": match.group(), "commit": match["commit"], "date": f"{day[:4]}-{day[4:6]}-{day[6:]}"}
    if model := model_name(context.values.get("model", "")):
        labels["workload"] = model
    return labels


def model_name(model: str) -> str:
    """Return the name of a model behind its name in a hub or its path; "" where the path says nothing of the model.

    >>> model_name("facebook/opt-1.3b"), model_name("/data/models/Llama-3-8B/"), model_name("/home/me/x/checkpoint-500")
    ('opt-1.3b', 'Llama-3-8B', '')
    """
    name = model.rstrip("/").rpartition("/")[2]
    return "" if _NO_MODEL.fullmatch(name) else name


def device_of(path: Path, context: RunContext) -> Device:
    """Return the hardware that the log or a folder's name states (`V100_LOG`); cpu where the log says so."""
    if context.device is not None:
        return context.device
    if context.values.get("processor") == "cpu":
        return CPU
    for name in reversed(path.parts[-4:]):
        if match := _GPU_IN_PATH.search(name):
            return _nvidia.device_of(match[1])
        if match := _AMD_IN_PATH.search(name):
            return Device("AMD", match[1].upper())
    return UNKNOWN_DEVICE


def rank_of(path: Path) -> int | None:
    """Return the rank in a file name like `workerlog.3`."""
    match = _RANK.search(path.name)
    return int(match[1]) if match else None


def facts_of(context: RunContext, framework: str) -> dict[str, str]:
    """Return the environment that a log states."""
    return {"framework": framework, **context.found_facts}


def _cards(values: Mapping[str, str]) -> str | None:
    if "cards" in values:
        return str((values["cards"].count(",") + 1) * int(values.get("node_count", "1")))
    return None
