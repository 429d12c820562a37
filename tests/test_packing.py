"""A pack and its profile are one run: the same rows, the same labels, whichever comes first and from wherever."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
from msgspec.structs import replace

from tests.conftest import count_rows
from tests.packs import everything
from tests.test_intake import write_trace
from tracker import api, readers
from tracker.compare import show
from tracker.errors import SourceError, UsageError
from tracker.hooks.sidecar import sidecar_of
from tracker.intake import IngestOptions, Sidecar, form_runs, ingest, pack, read_pieces
from tracker.intake.packing import content_of
from tracker.readers import Found
from tracker.results import ShowOptions
from tracker.store import open_store, queries

DATA = Path(__file__).with_name("data")
SAID = {
    "version": "v1", "workload": "toy", "commit": "3fd0a41", "note": "after the rebase", "host": "node7",
    "configuration": {"batch": "32"}, "tags": {"image": "2024-06"}, "expect_ranks": 2,
    "facts": {"torch_version": "2.6.0", "job_id": "41"},
}  # fmt: skip


@pytest.fixture
def other_store(request, database_url, tmp_path):
    """A second empty store, on the same kind of database as `store`."""
    if database_url.startswith("sqlite"):
        shutil.copy(request.getfixturevalue("migrated_sqlite"), tmp_path / "other.db")
        url, drop = f"sqlite:///{tmp_path / 'other.db'}", None
    else:
        server = request.getfixturevalue("postgres_server")
        url, drop = server.migrated_database(), server.drop
    with open_store(url, create=False) as opened:
        yield opened
    if drop is not None:
        drop(url)


def packed(path, *profiles, **said):
    path.write_bytes(pack(profiles, asked=Sidecar(**said)).content)
    return path


def two_ranks(folder):
    return [write_trace(folder / f"rank{rank}.pt.trace.json", rank=rank, kernel_us=100 + rank) for rank in (0, 1)]


def say(profile, **said):
    path = profile.with_name(f"{profile.name}.tracker.json")
    assert str(path) == sidecar_of(str(profile))
    path.write_text(json.dumps(said))


def test_a_pack_gives_the_rows_of_its_profiles(store, other_store, tmp_path):
    profiles = two_ranks(tmp_path)
    given = {"note": "n", "commit": "abc", "device": "NVIDIA H200", "expect_ranks": 4}
    options = IngestOptions(**given, configuration={"batch": "8"}, tags={"image": "x"})
    (plain,) = ingest(store, profiles, version="v1", workload="toy", options=options)
    run = packed(
        tmp_path / "run.trk", *profiles, version="v1", workload="toy", **given, configuration={"batch": "8"},
        tags={"image": "x"},
    )  # fmt: skip
    (taken,) = ingest(other_store, [run])
    assert everything(other_store) == everything(store)
    assert (taken.device, taken.version, taken.ranks, taken.paths) == ("NVIDIA H200", "v1", (0, 1), plain.paths)
    assert taken.formats == plain.formats == ("torch_profiler",)
    assert taken.warnings == plain.warnings


@pytest.mark.parametrize("format", [name for name in readers.NAMES if name != "pack"])
def test_pack_of_a_small_profile_of_each_format_is_that_profile(format, memory_store, tmp_path):
    found = [one for one in readers.search(DATA / format, None, keep_going=True).found if one.format == format]
    profile = min((one.path for one in found), key=_bytes_below)
    labels = {"version": "v1", "workload": "toy"}
    with open_store("sqlite://") as other:
        (taken,) = ingest(other, [packed(tmp_path / "run.trk", profile, **labels)])
        (plain,) = ingest(memory_store, [profile], **labels)
        assert everything(other) == everything(memory_store)
    assert (taken.formats, taken.warnings) == (plain.formats, plain.warnings)


def _bytes_below(path: Path) -> int:
    return sum(file.stat().st_size for file in [path, *path.rglob("*")])


def test_timer_log_beside_a_profile_is_in_its_pack(memory_store, tmp_path):
    """The step of 100 us waits 9 us for data by the trace, 20 us by the log, which counts."""
    profile = tmp_path / "host_a.paddle_trace.json"
    shutil.copy(DATA / "paddle_trace" / "one_step.paddle_trace.json", profile)
    line = "reader_cost: 0.00002 s batch_cost: 0.0001 s ips: 8.0 images/s"
    (tmp_path / "timer.txt").write_text(f"step:1 {line}\nstep:2 {line}\n")
    run = packed(tmp_path / "run.trk", profile, version="v1", workload="toy")
    with open_store("sqlite://") as other:
        (taken,) = ingest(other, [run])
        (plain,) = ingest(memory_store, [profile], version="v1", workload="toy")
        assert everything(other) == everything(memory_store)
        (again,) = ingest(other, [profile], version="v1", workload="toy")
    assert taken.warnings == plain.warnings
    assert (again.run_id, again.already) == (taken.run_id, True)


def test_labels_of_a_pack_are_texts(memory_store, tmp_path):
    profile, output = write_trace(tmp_path / "a.pt.trace.json"), tmp_path / "run.trk"
    with pytest.raises(UsageError, match="option configuration must be a mapping of texts, not 'batch=8'"):
        api.pack(profile, output, configuration="batch=8")
    api.pack(profile, output, version="v1", workload="w", configuration={"batch": 8})
    ingest(memory_store, [output])
    assert queries.runs(memory_store).frame["configuration"].tolist() == ["batch=8"]


def test_a_sidecar_goes_into_the_pack(store, other_store, tmp_path):
    profiles = two_ranks(tmp_path)
    for profile in profiles:
        say(profile, **SAID)
    ingest(store, profiles)
    run = packed(tmp_path / "run.trk", *profiles)
    for profile in profiles:
        profile.with_name(f"{profile.name}.tracker.json").unlink()
    ingest(other_store, [run])
    assert everything(other_store) == everything(store)


def test_what_is_said_at_ingest_goes_before_what_was_said_when_packing(memory_store, tmp_path):
    profile = write_trace(tmp_path / "a.pt.trace.json")
    say(profile, version="v0", workload="other", commit="000", tags={"image": "old", "from": "sidecar"})
    run = packed(tmp_path / "run.trk", profile, version="v1", workload="toy", commit="111", tags={"image": "new"})
    (taken,) = ingest(memory_store, [run], version="v2", options=IngestOptions(note="here", tags={"by": "me"}))
    row = queries.runs(memory_store).frame.iloc[0]
    assert (taken.version, taken.workload, row["note"]) == ("v2", "toy", "here")
    # the commit was said of another version
    assert pd.isna(row["commit"])
    assert row["tags"] == "by=me, from=sidecar, image=new"


@pytest.mark.parametrize("pack_first", [True, False])
def test_a_profile_and_its_pack_are_one_run(store, tmp_path, pack_first):
    profile = write_trace(tmp_path / "a.pt.trace.json")
    both = [packed(tmp_path / "run.trk", profile), profile]
    first, second = both if pack_first else reversed(both)
    (new,) = ingest(store, [first], version="v1", workload="toy")
    before = count_rows(store)
    (again,) = ingest(store, [second], version="v1", workload="toy")
    assert (new.created, again.already, again.run_id) == (True, True, new.run_id)
    with pytest.raises(UsageError, match=r"already in as run 1, version 'v1'.*tracker runs edit 1 --version v2"):
        ingest(store, [second], version="v2", workload="toy")
    assert count_rows(store) == before


def test_a_profile_and_its_pack_in_one_call_are_one_run(memory_store, tmp_path):
    profile = write_trace(tmp_path / "a.pt.trace.json")
    packed(tmp_path / "run.trk", profile)
    results = ingest(memory_store, [tmp_path], version="v1", workload="toy")
    assert sorted((result.run_id, result.already) for result in results) == [(1, False), (1, True)]


def test_packs_of_single_ranks_come_late_as_their_profiles_do(store, other_store, tmp_path):
    # two machines, on which the file has the same name
    packs = []
    for rank in (0, 1):
        node = tmp_path / f"node{rank}"
        profile = write_trace(node / "trace.json", rank=rank, kernel_us=100 + rank)
        ingest(store, [profile], version="v1", workload="toy")
        packs.append(packed(node / "run.trk", profile, version="v1", workload="toy"))
    (first,) = ingest(other_store, packs[:1])
    (second,) = ingest(other_store, packs[1:])
    assert (first.created, second.joined, second.ranks) == (True, True, (0, 1))
    assert everything(other_store) == everything(store)


def test_packs_of_files_with_one_relative_name_are_different_files(tmp_path, monkeypatch):
    pieces = []
    for rank in (0, 1):
        node = tmp_path / f"node{rank}"
        profile = write_trace(node / "trace.json", rank=rank)
        monkeypatch.chdir(node)
        made = packed(tmp_path / f"{rank}.trk", profile.relative_to(node))
        pieces += read_pieces(Found(made, "pack"), IngestOptions())
    assert [piece.paths for piece in pieces] == [(str(tmp_path / f"node{rank}" / "trace.json"),) for rank in (0, 1)]
    assert [[piece.capture.rank for piece in group] for group in form_runs(pieces)] == [[0, 1]]
    # three models that each name no rank are three runs
    assert len({piece.place for piece in pieces}) == 2


def test_ranks_that_were_packed_under_different_labels_are_refused(memory_store, tmp_path):
    profiles = two_ranks(tmp_path)
    packs = [packed(tmp_path / f"{label}.trk", profile, version=label) for label, profile in zip("ab", profiles)]  # noqa: B905
    with pytest.raises(SourceError, match=r"its pack says version 'a'.*'b'; say it for all with an option"):
        ingest(memory_store, packs, workload="toy")
    (result,) = ingest(memory_store, packs, version="v1", workload="toy")
    assert result.ranks == (0, 1)


def test_a_pack_without_labels_asks_for_them(memory_store, tmp_path):
    run = packed(tmp_path / "run.trk", write_trace(tmp_path / "a.pt.trace.json"))
    with pytest.raises(UsageError, match=r"states no version; give --version LABEL"):
        ingest(memory_store, [run], workload="toy")


def test_packs_are_packed_again_into_one(store, other_store, tmp_path):
    profiles = two_ranks(tmp_path)
    ingest(store, profiles, version="v1", workload="toy")
    singles = [packed(tmp_path / f"{rank}.trk", profile, workload="toy") for rank, profile in enumerate(profiles)]
    whole = packed(tmp_path / "whole.trk", *singles, version="v1")
    ingest(other_store, [whole])
    assert everything(other_store) == everything(store)


def test_a_sidecar_beside_the_pack_goes_before_those_in_it(memory_store, tmp_path):
    profile = write_trace(tmp_path / "a.pt.trace.json")
    say(profile, version="v1", workload="toy", tags={"image": "x"})
    run = packed(tmp_path / "run.trk", profile)
    say(run, version="v2")
    (result,) = ingest(memory_store, [run])
    assert (result.version, result.workload) == ("v2", "toy")


def test_what_a_watched_folder_says_holds_where_the_pack_is_silent(memory_store, tmp_path):
    run = packed(tmp_path / "run.trk", write_trace(tmp_path / "a.pt.trace.json"), version="v1")
    otherwise = Sidecar(version="folder", workload="toy", host="node9")
    (result,) = ingest(memory_store, [run], options=IngestOptions(otherwise=otherwise))
    assert (result.version, result.workload) == ("v1", "toy")


def test_the_run_says_by_which_rules_it_was_named(memory_store, tmp_path, monkeypatch):
    profile = write_trace(tmp_path / "a.pt.trace.json")
    (piece,) = read_pieces(Found(profile, "torch_profiler"), IngestOptions())
    run = tmp_path / "run.trk"
    run.write_bytes(content_of([replace(piece, rules_version=1)]))
    ingest(memory_store, [run], version="v1", workload="toy")
    assert queries.runs(memory_store).frame.iloc[0]["rules_version"] == 1


def test_tokens_of_a_trace_are_not_in_its_pack(tmp_path):
    profile = write_trace(tmp_path / "a.pt.trace.json")
    trace = json.loads(profile.read_text())
    profile.write_text(json.dumps({**trace, "HF_TOKEN": "hf_abcdefgh", "env": {"AWS_SECRET": "s3cr3t"}}))
    say(profile, version="v1", facts={"torch_version": "2.6.0", "API_TOKEN": "t0k3n"})
    made = pack([profile])
    (tmp_path / "run.trk").write_bytes(made.content)
    content = gzip.decompress(made.content)
    assert b"2.6.0" in content
    assert not any(secret in content for secret in (b"hf_abc", b"s3cr3t", b"t0k3n"))
    assert tuple(made.warnings) == ("a.pt.trace.json.tracker.json: facts that are not kept: API_TOKEN",)
    (piece,) = read_pieces(Found(tmp_path / "run.trk", "pack"), IngestOptions())
    assert piece.warnings == tuple(made.warnings)


def test_show_and_diff_of_a_pack_need_no_database(tmp_path):
    profile = write_trace(tmp_path / "a.pt.trace.json")
    run = packed(tmp_path / "run.trk", profile)
    plain, taken = (show(None, str(path), options=ShowOptions()) for path in (profile, run))
    assert taken.ops.equals(plain.ops)
    assert taken.kernels.equals(plain.kernels)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"version": " "}, "the version is empty or holds control characters"),
        ({"workload": "a\nb"}, "the workload is empty or holds control characters"),
        ({"device": "  "}, "the device is empty"),
        ({"expect_ranks": 0}, "the expect_ranks is 0, expected 1 or more"),
    ],
)
def test_what_cannot_be_a_label_is_refused_when_packing(tmp_path, said, words):
    with pytest.raises(UsageError, match=words):
        pack([write_trace(tmp_path / "a.pt.trace.json")], asked=Sidecar(**said))


def test_a_pack_says_what_it_was_made_of(tmp_path):
    profiles = two_ranks(tmp_path)
    made = pack(profiles)
    sizes = sum(os.path.getsize(profile) for profile in profiles)
    assert (made.profiles, made.captures, made.ranks, made.read_bytes) == (
        tuple(map(str, profiles)), 2, (0, 1), sizes
    )  # fmt: skip


def test_that_the_chip_is_not_named_is_told_where_nobody_names_it(store, tmp_path):
    bare = Path(__file__).parent / "data" / "ascend_text" / "bare" / "trace_view.json"
    how = "the files do not name the chip, which is one of Huawei: --device MODEL does"
    said = {"version": "v1", "workload": "toy"}
    assert how in pack([bare]).warnings
    assert how not in pack([bare], asked=Sidecar(device="Ascend910B")).warnings
    (result,) = ingest(store, [packed(tmp_path / "named.trk", bare, device="Ascend910B")], **said)
    assert (result.device, how in result.warnings) == ("Huawei Ascend910B", False)
    (again,) = ingest(store, [bare], **said, options=IngestOptions(device="Ascend910B"))
    assert (again.already, how in again.warnings) == (True, False)
    (again,) = ingest(store, [bare], **said)
    assert (again.already, how in again.warnings) == (True, False)


def test_that_the_chip_is_not_named_is_told_at_the_ingest(store):
    bare = Path(__file__).parent / "data" / "ascend_text" / "bare" / "trace_view.json"
    (result,) = ingest(store, [bare], version="v1", workload="toy")
    assert result.warnings[-1] == "the files do not name the chip, which is one of Huawei: --device MODEL does"
    assert result.captures[0].warnings == result.warnings
