"""Reading many profiles on the workers of a Dask cluster that is there already.

The workers read, and send back packs: sums of some thousandth of the profiles' size. Whoever asked forms the runs and
writes them, in one transaction, as if it had read the files itself: no worker opens the database, so that SQLite is as
safe as Postgres, and no worker needs its password. Workers need this version of tracker, and the profiles at the same
paths as here.
"""

from __future__ import annotations

import asyncio
import io
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from tracker.errors import HOW_TO_INSTALL, SourceError, TrackerError, UsageError, without_place
from tracker.hooks import spool
from tracker.intake.packing import content_of
from tracker.intake.pieces import IngestOptions, Piece, read_pieces, unpacked_pieces
from tracker.readers import DIGEST_KIND, Found, ReadOptions
from tracker.readers.pack.reading import packed_in
from tracker.readers.pack.schema import SCHEMA
from tracker.timeline import RULES_VERSION

if TYPE_CHECKING:
    from tracker.intake.pieces import ReadWith

_CONNECT_S: Final = 10
_LOOK_S: Final = 5
_GONE_S: Final = 60
"""So long a cluster may be without a worker, as between two that its queueing system starts."""

_ADDRESS: Final = re.compile(r"(?:tcp|tls|ucx|ws|wss)://[^/]+:\d{1,5}(?:/.*)?")
_INSTALL: Final = "pip install distributed"
_SAME: Final = f"install the same version there as here: {HOW_TO_INSTALL}"
_HOW_TO_READ: Final = ("flow_category", "allow_partial", "skip_bad_rows", "max_bytes", "loaders", "format")

RULES: Final = (SCHEMA, RULES_VERSION, DIGEST_KIND)
"""What must be the same on all machines, for the rows not to depend on who read them."""


class ClusterError(UsageError):
    """What is wrong with the cluster, and with no profile: it ends an ingest that keeps going, too."""


@contextmanager
def cluster(address: str) -> Iterator[ReadWith]:
    """What reads profiles on the cluster whose scheduler listens at `address`; for `IngestOptions.read_with`.

    A UsageError where none answers, or it has no workers.
    """
    if not _ADDRESS.fullmatch(address):  # of '' Dask would start a cluster of its own
        problem = f"--dask {address!r} is no address of a Dask scheduler"
        raise UsageError(problem, remedy="write it like tcp://head:8786")
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise UsageError("--dask needs the package distributed", remedy=_INSTALL) from error
    _require_scheduler(address)
    try:
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except OSError as error:
        raise _lost(error) from error
    with client:
        yield lambda found, options: read_on(client, found, options)


def _require_scheduler(address: str) -> None:
    """A UsageError where no scheduler answers, or one without workers. A Client would not say which, and waits for ever
    where something else answers, such as the dashboard.
    """
    elsewhere = "check the address, or read here without --dask"
    try:
        with ThreadPoolExecutor(1) as aside:  # in a notebook a loop runs in this thread
            said = aside.submit(asyncio.run, asyncio.wait_for(_identity(address), _CONNECT_S)).result()
    except Exception as error:  # whatever those raise who do not understand what answers
        raise UsageError(f"no Dask scheduler answers at {address}", remedy=elsewhere) from error
    if said["type"] != "Scheduler":
        raise UsageError(f"at {address} is a Dask {said['type'].lower()}, no scheduler", remedy=elsewhere)
    if not said["workers"]:
        raise UsageError(f"the Dask cluster at {address} has no workers", remedy="start some with dask worker")


async def _identity(address: str) -> dict[str, Any]:
    dask: Any = import_module("distributed")
    safely = dask.Security().get_connection_args("client")
    async with dask.rpc(address, connection_args=safely) as asked:
        said: dict[str, Any] = await asked.identity()
    return said


def _lost(error: Exception) -> ClusterError:
    return ClusterError(f"the Dask cluster was lost ({error})", remedy="start it, then ingest again")


def read_packed(path: str, format: str, how: Mapping[str, Any], rules: Sequence[int]) -> bytes | TrackerError:
    """On a worker: the pack of one claimed file or folder, or why it cannot be read.

    `how`: those fields of IngestOptions that say how to read; `rules`: the `RULES` of whoever asks.
    """
    host = spool.host_name()
    if tuple(rules) != RULES:
        return ClusterError(f"the Dask worker on {host} has another version of tracker", remedy=_SAME)
    try:
        if not Path(path).exists():
            problem = f"the Dask worker on {host} does not see it"
            raise SourceError(path, "", problem, remedy="put it where all workers see it under this path")
        return content_of(read_pieces(Found(Path(path), format), IngestOptions(**how)))
    except (SourceError, UsageError) as error:
        return error


def _task() -> Any:
    """`read_packed` as a function that travels by its value: the scheduler has to know nothing of tracker."""

    def read(path: str, format: str, how: Mapping[str, Any], rules: Sequence[int]) -> Any:
        from tracker.intake.cluster import read_packed

        return read_packed(path, format, how, rules)

    return read


def read_on(client: Any, found: Sequence[Found], options: IngestOptions) -> Iterator[list[Piece] | TrackerError]:
    """The captures of each profile, in order; the first one that cannot be read ends it with its error, or gives it
    where the options say to keep going.
    """
    how = {name: getattr(options, name) for name in _HOW_TO_READ} | {"one_process": True, "threads": 1}
    task = _task()
    futures = [
        client.submit(task, str(item.path.absolute()), item.format, how, list(RULES), pure=False) for item in found
    ]
    try:
        for number, item in enumerate(found):
            try:
                content = _result(client, futures[number], item)
                pieces: list[Piece] | TrackerError = _pieces(content, item, options)
            except (SourceError, UsageError) as error:
                if not options.keep_going or isinstance(error, ClusterError):
                    raise
                pieces = error
            futures[number].release()
            if options.on_progress is not None:
                options.on_progress(item.path.name, number + 1, len(found))
            yield pieces
    finally:
        client.cancel(futures)


def _result(client: Any, future: Any, item: Found) -> bytes | TrackerError:
    from distributed import CancelledError, KilledWorker

    try:
        _wait(client, future)
        content: bytes | TrackerError = future.result()
    except KilledWorker as error:
        problem = "workers of the Dask cluster died over it, one after the other"
        raise SourceError(item.path, "", problem, remedy="give them more memory, or read it here") from error
    except (ImportError, AttributeError, TypeError) as error:  # a module, a name or a parameter that is not there
        raise ClusterError(f"a Dask worker cannot run this tracker ({error})", remedy=_SAME) from error
    except CancelledError as error:
        raise _lost(Exception("its scheduler is gone")) from error
    except OSError as error:
        raise _lost(error) from error
    return content


def _wait(client: Any, future: Any) -> None:
    """Until the worker is done; a UsageError where there has been none for too long."""
    seen = time.monotonic()
    while True:
        try:
            future.exception(timeout=_LOOK_S)
        except TimeoutError:
            if client.scheduler_info(n_workers=-1).get("workers"):
                seen = time.monotonic()
            elif time.monotonic() - seen >= _GONE_S:
                problem = f"the Dask cluster has had no workers for {_GONE_S} s"
                raise ClusterError(problem, remedy="start some with dask worker, then ingest again") from None
        else:
            return


def _pieces(content: bytes | TrackerError, item: Found, options: IngestOptions) -> list[Piece]:
    """What a worker sent, with the paths as they were given here."""
    there, here = str(item.path.absolute()), str(item.path)
    if isinstance(content, SourceError):
        bare = without_place(content.problem, content.path).replace(there, here)
        raise SourceError(content.path.replace(there, here), "", bare, remedy=content.remedy.replace(there, here))
    if isinstance(content, TrackerError):
        raise content
    packed = packed_in(io.BytesIO(content), item.path, ReadOptions(max_bytes=options.max_bytes))
    pieces = [piece for one in packed for piece in unpacked_pieces(one, one.profile.path, item.path, options)]
    return [_renamed(piece, there, here) for piece in pieces]


def _renamed(piece: Piece, there: str, here: str) -> Piece:
    path = here + piece.path.removeprefix(there) if piece.path.startswith(there) else piece.path
    return replace(piece, path=path, warnings=tuple(warning.replace(there, here) for warning in piece.warnings))
