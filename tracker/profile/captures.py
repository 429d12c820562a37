"""Who ran: files that were read, and the ranks in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

if TYPE_CHECKING:
    from tracker.profile.events import Events
    from tracker.profile.rows import Rows

Digest = bytes

FORMATS: Final[tuple[str, ...]] = (
    "ascend_db",
    "ascend_text",
    "cann",
    "nsys_sqlite",
    "nsys_stats",
    "pack",
    "paddle_summary",
    "paddle_trace",
    "torch_profiler",
    "torch_stacks",
    "training_log",
)
"""The formats of profiles, which are the names of their readers."""

NPU_VENDOR: Final = "Huawei"
"""Who makes the devices with cube and vector cores."""
VENDORS: Final = ("AMD", NPU_VENDOR, "Intel", "NVIDIA")
"""Who makes hardware that a source, or a user, can name."""
UNKNOWN_VENDOR: Final = "unknown"
"""The vendor of hardware whose model the source names, and not who makes it."""
VENDORS_OF_CAPTURES: Final = frozenset({*VENDORS, UNKNOWN_VENDOR, ""})
"""What the device of a capture may have as its vendor: none is that of a CPU, and of a device without a model."""


class Source(Struct, frozen=True):
    """A file that was read: where, how large (bytes on disk), and the digest of its decompressed content.

    The digest of a file that is nothing without the main file of its capture covers that one as well.
    """

    path: str
    bytes: int
    digest: Digest


class Device(Struct, frozen=True):
    """A hardware model; `cpu` without a device, `unknown` where the source has device work but does not name it."""

    vendor: str
    model: str


CPU: Final = Device("", "cpu")
UNKNOWN_DEVICE: Final = Device("", "unknown")


class Capture(Struct, frozen=True):
    """One rank of a run: one process and one device.

    `rank`, `world_size`: None where the source does not say. `started_at_ns`, `ended_at_ns`: UTC, None where the
    source's clock is not absolute. `settings`: the profiler's own (record_shapes, ...); `profiler`: `off` where the
    numbers were measured without one, `summary` where they are sums that it printed; of a throughput `throughput_unit`
    and `throughput_scope` (`per rank`, `total`). `facts`: environment, allow-listed by the reader. `quality`: `ok` or
    `partial`, with the reason. Exactly one of `events` and `rows` is set. `parallel`: where the source says it, the
    place of the rank: `stage` (of the pipeline), and its index in `dp`, `tp`, `pp`, `ep`, `cp`. `labels`: what the
    files call the run, used where the user does not say: `workload`, `version`, `commit`, and `date` (YYYY-MM-DD) of
    the version. `configuration`: what they say of it (`batch_size`, `precision`, `devices`, ...).
    """

    rank: int | None
    world_size: int | None
    host: str
    device: Device
    device_ordinal: int | None
    started_at_ns: int | None
    ended_at_ns: int | None
    sources: tuple[Source, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    quality: str = "ok"
    quality_reason: str = ""
    events: Events | None = None
    rows: Rows | None = None
    parallel: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    configuration: Mapping[str, str] = field(default_factory=dict)
    clock_zero_ns: int = 0
    """UTC of the time 0 of the clock of `events`, where `started_at_ns` is known."""
    identity: Digest = b""
    """What is equal in every file that holds this capture; empty where its start is not known."""

    def __post_init__(self) -> None:
        # runs of another device are another track, so that a mistyped vendor would silence the judge
        if self.device.vendor not in VENDORS_OF_CAPTURES:
            raise ValueError(f"{self.device.vendor!r} is no vendor of devices")


class Incomplete(Struct, frozen=True, order=True):
    """What of a capture may not be judged. `forbids`: words of `schema.series`, such as LOST_DEVICE; `names`: of
    operators, kernels and modules whose times are not to be trusted. `has_markers`: work of the device was lost, but
    the host waits for the device in each step, so that a step is as long as its marker, and judged by that.
    """

    forbids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    has_markers: bool = False


class Profile(Struct, frozen=True):
    """What one claimed file or folder holds: the reader's name, and a capture per process and device.

    `packed`: where the file is a pack, the profiles that the captures came from, in their order.
    """

    format: str
    path: str
    captures: tuple[Capture, ...]
    warnings: tuple[str, ...] = ()
    packed: tuple[Packed, ...] = ()

    def __post_init__(self) -> None:
        check_format(self.format)


def check_format(format: str) -> None:
    """Raise a ValueError where no reader has this name.

    Runs of two formats are not compared, so that a mistyped format would silence the judge.
    """
    if format not in FORMATS:
        raise ValueError(f"{format!r} is no format of profiles")


class Packed(Struct, frozen=True):
    """A profile that was read somewhere else, to rows, and what was said of it there.

    `said`: the content of its sidecar; `asked`: what the user said when it was packed, in the same form; b"": nothing.
    `rules_version`: of the naming and category rules that the rows were made with.
    """

    profile: Profile
    said: bytes
    asked: bytes
    rules_version: int
