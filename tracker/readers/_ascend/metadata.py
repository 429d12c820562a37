"""Who ran: profiler_info.json, profiler_metadata.json (or META_DATA of a database) and names of files and folders.

Only what stands on an allow-list is kept: `ENV_VARIABLES` and other dumps can hold tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from msgspec import Struct, field

from tracker.profile import MISSING, ProcessGroups, Strings, ranks_text
from tracker.readers._collectives import role_of
from tracker.readers._facts import short_word, told_number
from tracker.readers._stated import configuration_of_arguments, configuration_of_groups

SETTINGS: Final = (
    "record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules", "schedule", "activities",
    "profiler_level", "aic_metrics", "l2_cache", "export_type", "data_simplification", "record_op_args", "op_attr",
    "msprof_tx", "mstx", "gc_detect_threshold", "sys_io", "sys_interconnection",
)  # fmt: skip
VERSIONS: Final = ("torch_npu_version", "torch_version", "mindspore_version", "cann_version", "driver_version")
# the variables that the profiler itself writes down since they change speed
VARIABLES: Final = (
    "ASCEND_GLOBAL_LOG_LEVEL", "HCCL_RDMA_TC", "HCCL_RDMA_SL", "HCCL_ALGO", "ACLNN_CACHE_LIMIT", "HOST_CACHE_CAPACITY",
    "ASCEND_ENHANCE_ENABLE", "PYTORCH_NPU_ALLOC_CONF", "ASCEND_LAUNCH_BLOCKING", "TASK_QUEUE_ENABLE",
    "CPU_AFFINITY_CONF", "COMBINED_ENABLE", "MULTI_STREAM_MEMORY_REUSE",
)  # fmt: skip
SIZES: Final = {
    "tensor_model_parallel_size": "tp",
    "context_parallel_size": "cp",
    "data_parallel_size": "dp",
    "pipeline_model_parallel_size": "pp",
    "expert_model_parallel_size": "ep",
}
_INDICES: Final = ("dp", "tp", "pp", "ep", "cp")
_WORD: Final = re.compile(r"(?!group_name_)[a-z][a-z0-9_]{0,31}")
_RANK: Final = re.compile(r"rank[-_]?(\d{1,9})(?!\d)", re.IGNORECASE)
_INFO: Final = re.compile(r"profiler_info(?:_(\d{1,9}))?\.json")
_FOLDER: Final = re.compile(r"(?P<host>.+?)_\d+_(?P<time>\d{17})_ascend_(?:pt|ms)")


class Group(Struct, frozen=True):
    """A process group: the source's raw id, role (`dp`, `default`), global ranks, own place (None: not said)."""

    id: str
    role: str = ""
    ranks: tuple[int, ...] = ()
    index: int | None = None

    @property
    def size(self) -> int:
        """Number of ranks, MISSING where the source does not say."""
        return len(self.ranks) or MISSING

    @property
    def members(self) -> str:
        """The ranks as `ranks_text` writes them, '' where the source does not say."""
        return ranks_text(self.ranks)

    def global_rank(self, local: int) -> int:
        """The global rank of a member; the number itself where the group's ranks are not known (one group of all)."""
        return self.ranks[local] if 0 <= local < len(self.ranks) else local


class Metadata(Struct, frozen=True):
    """What stands beside the events of one rank. `groups`: by raw id. `ended_at_ns`: UTC, None where not said."""

    rank: int | None = None
    world_size: int | None = None
    ended_at_ns: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Group] = field(default_factory=dict)
    parallel: Mapping[str, int] = field(default_factory=dict)
    configuration: Mapping[str, str] = field(default_factory=dict)

    def group(self, name: str) -> Group:
        """The group called `name`: its raw id, its double hash, or the last three digits of that hash.

        A name that fits none, or digits that fit several, stands for a group of which nothing else is known.
        """
        if name in self.groups:
            return self.groups[name]
        hashed = {double_hash(group.id): group for group in self.groups.values()}
        if name in hashed:
            return hashed[name]
        if re.fullmatch(r"\d{3}", name):
            alike = [group for digits, group in hashed.items() if digits.endswith(name)]
            if len(alike) == 1:
                return alike[0]
        return Group(name)


def double_hash(group_id: str) -> str:
    """The number by which communication.json and analysis.db call the group `group_id`.

    Two 32-bit polynomial hashes of its characters, with multipliers 29 and 131, one after the other.

    >>> double_hash("group_name_5")
    '5862276114690318097'
    """
    high = low = 0
    for character in group_id:
        high = (high * 29 + ord(character)) & 0xFFFFFFFF
        low = (low * 131 + ord(character)) & 0xFFFFFFFF
    return str(high << 32 | low)


def metadata_of(info: Mapping[str, Any], metadata: Mapping[str, Any]) -> Metadata:
    """What `profiler_info.json` and `profiler_metadata.json` say; an empty mapping stands for a file that is missing.

    Of a database, `metadata` is META_DATA: name -> its value, decoded from JSON.
    """
    distributed = _mapping(metadata.get("distributed_args"))
    groups = {group.id: group for group in _groups(_mapping(metadata.get("parallel_group_info")))}
    rank = first_known(told_number(info.get("rank_id")), told_number(distributed.get("rank")))
    world = told_number(distributed.get("world_size")) or max(
        (len(group.ranks) for group in groups.values() if group.role == "default"), default=0
    )
    return Metadata(
        rank=rank,
        world_size=world or None,
        ended_at_ns=told_number(_mapping(info.get("end_info")).get("collectionTimeEnd")) or None,
        settings=_settings(_mapping(info.get("config"))),
        facts=_facts(info, metadata, distributed, groups),
        groups=groups,
        parallel=_parallel(groups, distributed, rank),
        configuration={
            **configuration_of_groups((group.role, len(group.ranks)) for group in groups.values()),
            **configuration_of_arguments(distributed),
        },
    )


def groups_table(metadata: Metadata, strings: Strings) -> ProcessGroups:
    """The groups of the rank as columns; texts go into `strings`."""
    groups = list(metadata.groups.values())
    return ProcessGroups(
        role=np.array([strings.code(group.role) for group in groups], dtype=np.int32),
        size=np.array([group.size for group in groups], dtype=np.int64),
        ranks=np.array([strings.code(group.members) for group in groups], dtype=np.int32),
    )


def rank_in_name(name: str) -> int | None:
    """The rank in the name of a file or folder.

    >>> rank_in_name("profiler_info_3.json"), rank_in_name("rank0_start2_stop5"), rank_in_name("rank_1_ascend_pt")
    (3, 0, 1)
    """
    match = _INFO.fullmatch(name) or _RANK.search(name)
    return int(match.group(1)) if match and match.group(1) else None


def host_in_name(folder: str) -> str:
    """The host or worker before process id and time in the name of a capture's folder, '' for other names.

    >>> host_in_name("node-7_3096504_20250109073443012_ascend_pt"), host_in_name("rank0_ascend_pt")
    ('node-7', '')
    """
    match = _FOLDER.fullmatch(folder)
    return match.group("host") if match else ""


def first_known(*values: int | None) -> int | None:
    """The first of `values` that is not None."""
    return next((value for value in values if value is not None), None)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _settings(config: Mapping[str, Any]) -> dict[str, str]:
    """`config` of profiler_info.json, flat; names lose the underscore in front."""
    values = {
        name.lstrip("_"): value
        for part in ("common_config", "experimental_config")
        for name, value in _mapping(config.get(part)).items()
    }
    texts = {name: _setting(values[name]) for name in SETTINGS if name in values}
    return {name: text for name, text in texts.items() if text}


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return " ".join(_setting(entry) for entry in value)
    if isinstance(value, dict):
        return " ".join(f"{name} {_setting(entry)}" for name, entry in value.items())
    return short_word(value).removeprefix("ProfilerActivity.")


def _facts(
    info: Mapping[str, Any], metadata: Mapping[str, Any], distributed: Mapping[str, Any], groups: Mapping[str, Group]
) -> dict[str, str]:
    variables = _mapping(metadata.get("ENV_VARIABLES"))
    facts = {name: short_word(info.get(name)) or short_word(metadata.get(name)) for name in VERSIONS}
    facts |= {name: short_word(variables.get(name)) for name in VARIABLES}
    facts |= {name: short_word(distributed.get(name)) for name in SIZES}
    counts = Counter(f"{group.role} {len(group.ranks)}".strip() for group in groups.values())
    facts["process_groups"] = "; ".join(f"{n} x {text}" if n > 1 else text for text, n in sorted(counts.items()))
    return {name: text for name, text in facts.items() if text}


def _groups(entries: Mapping[str, Any]) -> Iterator[Group]:
    for name, entry in entries.items():
        said = _mapping(entry)
        ranks = said.get("global_ranks")
        known = ranks if isinstance(ranks, list) and all(type(rank) is int for rank in ranks) else []
        yield Group(name, _role(said.get("group_name")), tuple(known), told_number(said.get("group_rank")))


def _role(name: object) -> str:
    """`default_group` -> `default`, `dp_cp` and `embd` stay; a name that is no word for a role gives ''."""
    if not isinstance(name, str):
        return ""
    word = name.lower().removesuffix("_group")
    return role_of(word) or (word if _WORD.fullmatch(word) else "")


def _parallel(groups: Mapping[str, Group], distributed: Mapping[str, Any], rank: int | None) -> dict[str, int]:
    """Index of the rank in each kind of parallelism: by the groups it is in, else by Megatron's order of ranks."""
    indices = _megatron(distributed, rank)
    indices |= {g.role: g.index for g in groups.values() if g.role in _INDICES and g.index is not None}
    if "pp" in indices:
        indices["stage"] = indices["pp"]
    return indices


def _megatron(distributed: Mapping[str, Any], rank: int | None) -> dict[str, int]:
    # Megatron-LM numbers ranks tp fastest, then cp, dp, pp
    if rank is None:
        return {}
    place: dict[str, int] = {}
    rest = rank
    for name, word in SIZES.items():
        size = told_number(distributed.get(name))
        if word == "ep":
            continue
        if not size:
            return {}
        place[word] = rest % size
        rest //= size
    return place if rest == 0 else {}
