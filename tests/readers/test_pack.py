"""Packs: what is written is read again to the last bit, and what no profile has is refused with a sentence."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.factories import breakdown, capture, rows
from tests.packs import column, columns_of, records, write_records
from tracker import readers
from tracker.errors import SourceError, TrackerError
from tracker.intake import ingest
from tracker.profile import MISSING, ROW_COLUMNS, Packed, Profile, StepRow
from tracker.readers import Found, ReadOptions
from tracker.readers.pack import checks, schema
from tracker.readers.pack.marks import MAGIC
from tracker.readers.pack.writing import packed_bytes
from tracker.store import open_store
from tracker.store.tables import metadata


def packed(*captures, **values):
    profile = Profile("torch_profiler", "a.json", tuple(captures), ("a warning",))
    return Packed(profile, values.get("said", b""), values.get("asked", b""), values.get("rules_version", 1))


def write(path, *profiles):
    path.write_bytes(packed_bytes(profiles, "0.1.0"))
    return path


def read(path, **options):
    return readers.read(Found(path, "pack"), ReadOptions(**options))


@pytest.fixture
def pack(tmp_path):
    """One rank with an op of 100 ns that launches a kernel, and a collective."""
    made = capture(rank=0, communication=[("all_reduce", 50)], path="rank0.json")
    return write(tmp_path / "run.trk", packed(made))


def edited(pack, edit):
    """`pack` with its capture changed by `edit(record)`."""
    header, record = records(pack)
    edit(record)
    return write_records(pack, [header, record])


def refusal(pack, **options):
    with pytest.raises(SourceError) as caught:
        read(pack, **options)
    text = str(caught.value)
    assert text.startswith(f"{pack}: ")
    assert "\n" not in text
    assert len(text) < 700
    return text.removeprefix(f"{pack}: ")


def test_a_capture_is_read_as_it_was_packed(tmp_path):
    first = capture(rank=0, communication=[("all_reduce", 50)], curve=[("cpu", -3, 8)], world_size=2)
    second = replace(first, rank=1, quality="partial", quality_reason="ends early", host="", started_at_ns=None)
    found = read(write(tmp_path / "run.trk", packed(first, said=b"{}", rules_version=7), packed(second)))
    assert [replace(one, rows=None) for one in found.captures] == [replace(one, rows=None) for one in (first, second)]
    assert [columns_of(one.rows) for one in found.captures] == [columns_of(first.rows), columns_of(second.rows)]
    assert [(one.rows.overall, one.rows.steps) for one in found.captures] == [
        (first.rows.overall, first.rows.steps)
    ] * 2
    assert (found.format, found.path, found.warnings) == ("pack", str(tmp_path / "run.trk"), ("a warning", "a warning"))
    assert [(one.said, one.asked, one.rules_version) for one in found.packed] == [(b"{}", b"", 7), (b"", b"", 1)]


def test_the_same_profile_gives_the_same_bytes():
    made = packed(capture(rank=0, digest=b"d" * 16, path="a.json"))
    assert packed_bytes([made], "0.1.0") == packed_bytes([made], "0.1.0")


KINDS = {
    "text": st.text(max_size=6),
    "float": st.one_of(st.just(float("nan")), st.floats(0, 1e300)),
    "int": st.one_of(st.just(MISSING), st.integers(0, 2**62 - 1)),
}


def one_column(kind, length):
    values = st.lists(KINDS.get(kind, KINDS["int"]), min_size=length, max_size=length)
    if kind == "text":
        return values
    return values.map(lambda numbers: np.array(numbers, dtype=np.float64 if kind == "float" else np.int64))


@st.composite
def counters(draw):
    """A table that refers to no other one, with every kind of column."""
    length = draw(st.integers(0, 5))
    table = {name: draw(one_column(kind, length)) for name, kind in ROW_COLUMNS["api"].items()}
    return {**table, "step": np.maximum(table["step"], -1)}


@given(
    counters(),
    st.lists(st.tuples(st.integers(0, 2**40), st.floats(0, 1e9)), max_size=3),
    st.lists(st.tuples(st.integers(-(2**60), 2**60), st.integers(0, 2**60)), max_size=4),
)
def test_any_rows_come_back_to_the_last_bit(tmp_path_factory, table, steps, calls):
    one = capture(rank=0, communication=[("all_reduce", 50)])
    parts = tuple(
        StepRow(number, at, breakdown(e2e_ns=at, samples_per_second=rate)) for number, (at, rate) in enumerate(steps)
    )
    told = {
        "communication": np.zeros(len(calls), dtype=np.int64),
        "group": np.array([place % 3 - 1 for place in range(len(calls))], dtype=np.int64),
        "step": np.full(len(calls), -1, dtype=np.int64),
        "start_ns": np.array([start for start, _ in calls], dtype=np.int64),
        "elapse_ns": np.array([elapse for _, elapse in calls], dtype=np.int64),
        "exposed_ns": np.full(len(calls), MISSING, dtype=np.int64),
        "bytes": np.array([elapse for _, elapse in calls], dtype=np.int64),
        "peer": np.full(len(calls), -1, dtype=np.int64),
        "source_index": np.arange(len(calls), dtype=np.int64),
    }
    groups = {"role": ["dp", ""], "size": np.array([2, MISSING], dtype=np.int64), "ranks": ["0,10", ""]}
    tables = {**one.rows.tables, "api": table}
    made = replace(one.rows, tables=tables, steps=parts, collective_calls=told, groups=groups)
    path = tmp_path_factory.mktemp("packs") / "run.trk"
    (found,) = read(write(path, packed(replace(one, rows=made)))).captures
    assert columns_of(found.rows) == columns_of(made)
    assert (found.rows.overall, found.rows.steps) == (made.overall, made.steps)


def test_numbers_lie_byte_by_byte_as_the_format_says(pack):
    (_, record) = records(pack)
    assert record["tables"]["op"]["calls"] == column([1])
    assert record["tables"]["op"]["device_self_ns"] == column([100])
    assert column([1, 258]) == b"\1\2" + b"\0\1" + b"\0\0" * 6


def test_every_number_that_the_database_wants_is_required_and_every_key_is_checked():
    for name in set(ROW_COLUMNS) - {"op_tree"}:  # which is stored as one value
        table = metadata.tables[name]
        spelled = {column.name.removesuffix("_id"): column for column in table.columns}
        wanted = {
            column
            for column, kind in ROW_COLUMNS[name].items()
            if kind != "text" and column in spelled and not spelled[column].nullable
        }
        # the store itself has a number for a size class that nobody knows
        assert wanted - {"size_class_bytes"} <= checks.REQUIRED, name
        keys = [
            column.name.removesuffix("_id") for column in table.primary_key if column.name not in ("run_id", "rank")
        ]
        if not {"id", "ordinal"} & set(keys):
            assert list(checks.UNIQUE[name]) == keys


@pytest.mark.parametrize("kept", [0.2, 0.9, 0.999])
def test_a_pack_that_was_cut_ends_early(pack, kept):
    whole = pack.read_bytes()
    pack.write_bytes(whole[: int(len(whole) * kept)])
    assert "ends early" in refusal(pack) or "gzip" in refusal(pack)


def test_a_record_that_was_cut_ends_early(pack):
    pack.write_bytes(gzip.compress(gzip.decompress(pack.read_bytes())[:-1]))
    assert refusal(pack) == "the pack ends early; copy it again, or pack the profile again"
    pack.write_bytes(gzip.compress(MAGIC))
    assert refusal(pack).startswith("header: damaged")


def test_a_flipped_bit_is_found_by_the_checksum(pack):
    damaged = bytearray(pack.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    pack.write_bytes(damaged)
    assert "copy" in refusal(pack)


def test_bytes_behind_the_last_capture_are_refused(pack):
    write_records(pack, [*records(pack), {}])
    assert "goes on behind its last capture" in refusal(pack)


def test_a_gzip_bomb_stops_at_the_limit(pack):
    # 64 MiB of zeros in one record, in 64 KiB
    pack.write_bytes(gzip.compress(MAGIC + struct.pack(">I", 1 << 26) + bytes(1 << 26)))
    assert refusal(pack, max_bytes=1 << 20).startswith("the content is larger than the limit of 1048576 bytes")
    pack.write_bytes(gzip.compress(MAGIC + b"\xff" * 4 + bytes(100)))
    assert refusal(pack).startswith("a record of more than 96 MiB")


def test_a_pack_of_a_newer_tracker_says_who_wrote_it(pack):
    header, record = records(pack)
    write_records(pack, [{**header, "schema": 4, "tracker": "9.1", "more": 1}, record])
    assert refusal(pack) == "header: tracker 9.1 wrote it with schema 4, this one knows 1; upgrade tracker here"
    write_records(pack, [{**header, "profiles": [{**header["profiles"][0], "format": "pt2"}]}, record])
    assert "packed from the format 'pt2', which this tracker does not know" in refusal(pack)
    write_records(pack, [{**header, "profiles": [{**header["profiles"][0], "format": "pack"}]}, record])
    assert "does not know" in refusal(pack)


@pytest.mark.parametrize("name", ["op_summary_20260605161701.csv", "end_info.0", "start_info", "msprof_1.json.gz"])
def test_pack_that_names_a_file_of_msprof_is_of_cann(pack, name):
    """Early packs have the name of a file where the name of the reader belongs."""
    header, record = records(pack)
    write_records(pack, [{**header, "profiles": [{**header["profiles"][0], "format": name}]}, record])
    (one,) = read(pack).packed
    assert one.profile.format == "cann"


def test_what_would_act_on_a_terminal_is_written_out(pack):
    header, record = records(pack)
    bad = {**header["profiles"][0], "path": "a\x1b[2J.json", "warnings": ["so\nwhat"]}
    write_records(pack, [{**header, "profiles": [bad]}, record])
    (one,) = read(pack).packed
    assert (one.profile.path, one.profile.warnings) == ("a\\x1b[2J.json", ("so\\nwhat",))


def test_other_columns_are_refused(pack):
    edited(pack, lambda record: record["tables"]["op"].pop("calls"))
    assert "capture 1 of a.json: damaged (table op: has the columns" in refusal(pack)
    edited(pack, lambda record: record["tables"].pop("op"))
    assert "has not the tables of a capture" in refusal(pack)


def set_column(table, name, values, dtype="<i8"):
    return lambda record: (record["tables"].get(table) or record[table]).update({name: column(values, dtype)})


def with_call(ranks=b"0,2", **changed):
    """One call of the one group, with some of its numbers changed."""

    def edit(record):
        call = {"communication": 0, "group": 0, "step": 0, "start_ns": 0, "elapse_ns": 1, "exposed_ns": 1, "bytes": 8}
        call |= {"peer": -1, "source_index": 0} | changed
        record["collective_calls"] = {name: column([number]) for name, number in call.items()}
        texts = record["texts"]
        sizes = np.frombuffer(texts["sizes"], dtype=np.uint8).reshape(4, -1).T.copy().view("<u4").reshape(-1).tolist()
        record["texts"] = {"content": texts["content"] + ranks, "sizes": column([*sizes, len(ranks)], "<u4")}
        place = column([len(sizes) + 1], "<u4")
        record["groups"] = {"role": column([0], "<u4"), "size": column([2]), "ranks": place}

    return edit


BAD = {
    "longer column": (set_column("op", "calls", [1, 1]), "table op: has columns of different length (1, 2)"),
    "half a number": (
        lambda record: record["tables"]["op"].update(calls=b"123"),
        "table op: has half a number at the end of its column calls",
    ),
    "negative count": (set_column("op", "calls", [-1]), "table op, row 1: column calls is -1, which no profile has"),
    "negative time": (set_column("kernel", "total_ns", [-5]), "column total_ns is -5"),
    "time of ages": (set_column("kernel", "total_ns", [2**63 - 1]), "column total_ns is 9223372036854775807"),
    "infinite": (set_column("op", "sum_squares_ns2", [np.inf], "<f8"), "column sum_squares_ns2 is inf"),
    "negative square": (set_column("op", "sum_squares_ns2", [-1.0], "<f8"), "column sum_squares_ns2 is -1.0"),
    "no step": (set_column("op", "step", [MISSING]), "table op, row 1: column step lacks a number"),
    "step before all": (set_column("op", "step", [-2]), "column step is -2"),
    "op that is not there": (set_column("op", "op_key", [1]), "table op, row 1: column op_key refers to row 1 of 1"),
    "text that is not there": (set_column("op", "call_stack", [999], "<u4"), "refers to a text that is not there"),
    "unknown phase": (set_column("op_key", "phase", [1], "<u4"), "which is none of its words"),
    "negative rank": (lambda record: record.update(rank=-1), "Expected `int` >= 0"),
    "rank of text": (lambda record: record.update(rank="0"), "Expected `int | null`, got `str`"),
    "rank beyond the world": (lambda record: record.update(rank=2, world_size=2), "is rank 2 of 2"),
    "no source": (lambda record: record.update(sources=[]), "length >= 1"),
    "short digest": (lambda record: record["sources"][0].update(digest=b"1"), "length >= 16"),
    "more fields": (lambda record: record.update(code="import os"), "unknown field `code`"),
    "no breakdown": (
        lambda record: record.update(breakdowns=dict.fromkeys(record["breakdowns"], b"")),
        "table breakdowns: is empty",
    ),
    "negative breakdown": (set_column("breakdowns", "e2e_ns", [-1, 9]), "table breakdowns, row 1: column e2e_ns is -1"),
    "step twice": (
        lambda record: record.update(breakdowns={name: twice(part, 2) for name, part in record["breakdowns"].items()}),
        "table breakdowns: has a step twice",
    ),
    "unknown quality": (lambda record: record.update(quality="great"), "column quality holds 'great'"),
    "texts of other sizes": (lambda record: record["texts"].update(content=b"x"), "fewer or more texts than it says"),
    "huge text": (
        lambda record: record.update(
            texts={"content": bytes(schema.MAX_TEXT_BYTES + 1), "sizes": column([schema.MAX_TEXT_BYTES + 1], "<u4")}
        ),
        "holds a text of more than 16 MiB",
    ),
    "no UTF-8": (
        lambda record: record["texts"].update(content=b"\xff" * len(record["texts"]["content"])),
        "a text that is not UTF-8",
    ),
    "call of no row": (with_call(communication=1), "column communication refers to row 1 of 1"),
    "call of no group": (with_call(group=1), "column group refers to row 1 of 1"),
    "group below none": (with_call(group=-2), "table collective_calls, row 1: column group is -2"),
    "ranks out of order": (with_call(ranks=b"2,0"), "column ranks holds '2,0', which no profile has"),
    "device of an unknown maker": (
        lambda record: record.update(device=("Ascend", "910B")),
        "the device is of 'Ascend', a vendor that this tracker does not know",
    ),
    "long host": (lambda record: record.update(host="x" * 100_000), "length <= 65536"),
}  # fmt: skip


def twice(packed: bytes, rows: int) -> bytes:
    """A column of so many rows with its last one once more."""
    return b"".join(packed[at : at + rows] + packed[at + rows - 1 : at + rows] for at in range(0, len(packed), rows))


@pytest.mark.parametrize("name", BAD)
def test_what_no_profile_has_is_refused(pack, name):
    edit, words = BAD[name]
    edited(pack, edit)
    assert words in refusal(pack)


def test_two_rows_of_one_key_are_refused_before_the_database_refuses_them(pack):
    def double(record):
        for table in ("op", "op_tree"):
            record["tables"][table] = {name: twice(part, 1) for name, part in record["tables"][table].items()}

    edited(pack, double)
    assert "table op: has two rows of one step and op_key" in refusal(pack)


def test_a_deep_nest_is_refused(pack):
    content = b"\x91" * 100_000 + b"\xc0"
    pack.write_bytes(gzip.compress(MAGIC + struct.pack(">I", len(content)) + content))
    assert refusal(pack).startswith("header: damaged")


def test_what_a_pack_cannot_hold_is_refused_when_it_is_written(tmp_path):
    name = "k" * (schema.MAX_TEXT_BYTES + 1)
    with pytest.raises(SourceError, match=r"a.json: cannot be packed: holds a text of more than 16 MiB; ingest it"):
        write(tmp_path / "run.trk", packed(capture(rank=0, kernels=[(name, 5)])))


@given(st.data())
def test_damage_behind_the_checksum_is_an_error_or_a_run(tmp_path_factory, data):
    """Whatever a hostile pack says: it is refused with a sentence, or the database takes it."""
    path = tmp_path_factory.mktemp("packs") / "run.trk"
    content = bytearray(
        packed_bytes([packed(capture(rank=0, communication=[("all_reduce", 50)], digest=b"d" * 16))], "")
    )
    content = bytearray(gzip.decompress(content))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(len(MAGIC), len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(gzip.compress(bytes(content)))
    with open_store("sqlite://") as store:
        try:
            ingest(store, [path], version="v1", workload="toy")
        except TrackerError as error:
            assert "\n" not in str(error)


def test_rows_of_the_factory_are_sound():
    checks.check_tables(rows(steps=2).tables, {}, {})
