"""Files that came in before digests were BLAKE3 are known again: the database holds digests of theirs by BLAKE2."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.readers.ascend_databases import write_capture
from tracker.errors import UsageError
from tracker.intake import IngestOptions, IngestResult, cutting, ingest
from tracker.intake.packing import pack as make_pack
from tracker.store import Store, queries

STATS = (
    Path(__file__).parent / "data" / "nsys_stats" / "style_2024.txt"
)  # it states no start: only its content is known
TRACE = Path(__file__).parent / "data" / "h200" / "host_copies.pt.trace.json.gz"


def blake2(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def ingest_one(store: Store, path: Path, **options: bool) -> IngestResult:
    (result,) = ingest(store, [path], version="v1", workload="toy", options=IngestOptions(**options))
    return result


def set_digest(store: Store, name: str, digest: bytes) -> None:
    values = {"digest": digest, "name": f"%{name}"}
    statement = text("UPDATE source SET digest = :digest WHERE path LIKE :name")
    assert store.transact(lambda connection: connection.execute(statement, values).rowcount) == 1


def test_file_of_an_older_database_is_known_again(memory_store: Store, tmp_path: Path):
    path = tmp_path / "stats.txt"
    path.write_bytes(STATS.read_bytes())
    ingest_one(memory_store, path)
    set_digest(memory_store, "stats.txt", blake2(path.read_bytes()))
    result = ingest_one(memory_store, path)
    assert (result.run_id, result.already) == (1, True)
    with pytest.raises(UsageError, match="already in as run 1, version 'v1'"):
        ingest(memory_store, [path], version="v2", workload="toy")


def test_other_file_of_the_same_size_is_a_run_of_its_own(memory_store: Store, tmp_path: Path):
    path = tmp_path / "stats.txt"
    path.write_bytes(STATS.read_bytes())
    ingest_one(memory_store, path)
    path.write_bytes(path.read_bytes().replace(b"%", b" ", 1))
    assert ingest_one(memory_store, path).created


def test_side_files_of_an_older_database_are_known_again(memory_store: Store, tmp_path: Path):
    folder = write_capture(tmp_path / "rank4_ascend_pt")
    ingest_one(memory_store, folder)
    files = {path.name: path for path in folder.rglob("*") if path.is_file()}
    main = blake2(files["ascend_pytorch_profiler_4.db"].read_bytes())
    set_digest(memory_store, "ascend_pytorch_profiler_4.db", main)
    for name in ("analysis.db", "profiler_info_4.json"):
        set_digest(memory_store, name, blake2(blake2(files[name].read_bytes()) + main))
    assert ingest_one(memory_store, folder).already
    assert len(queries.sources(memory_store, [1])) == 3


def test_runs_of_an_older_database_are_read_again_and_cut(memory_store: Store):
    ingest_one(memory_store, TRACE)
    set_digest(memory_store, TRACE.name, blake2(gzip.decompress(TRACE.read_bytes())))
    assert ingest_one(memory_store, TRACE, again=True).restored
    cut = cutting.cut(memory_store, 1)
    assert sum(map(len, cut.content(compressed=False))) == cut.bytes > 0


def test_pack_of_a_file_that_was_overwritten_is_a_run_of_its_own(memory_store: Store, tmp_path: Path):
    """The pack holds what the file was; the database knows what was written over it, by its older digest."""
    path, pack = tmp_path / "stats.txt", tmp_path / "stats.trk"
    path.write_bytes(STATS.read_bytes())
    pack.write_bytes(make_pack([path]).content)
    path.write_bytes(path.read_bytes().replace(b"%", b" ", 1))
    ingest_one(memory_store, path)
    set_digest(memory_store, "stats.txt", blake2(path.read_bytes()))
    (result,) = ingest(memory_store, [pack], version="v2", workload="toy")
    assert result.created
