"""What lies beside a profile and says of it what its trace does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.readers.traces import kernel, launch, op, step, write
from tracker.compare import diff
from tracker.doctor import examine
from tracker.errors import SourceError, UsageError
from tracker.intake import IngestOptions, Sidecar, ingest
from tracker.intake.sidecar import FACTS, MAX_BYTES
from tracker.store import Store, open_store, queries

BASE_NS = 1_700_000_000_000_000_000


def trace(folder: Path, name: str = "a.pt.trace.json", *, seed: int = 0, device: str = "NVIDIA H100", **top) -> Path:
    """A trace of one step in which aten::mm launches a kernel; another seed is another file."""
    folder.mkdir(parents=True, exist_ok=True)
    events = [step(1, 0, 100), op("aten::mm", 10, 20), launch(1, 12), kernel("gemm", 20, 30, 1), op(f"x{seed}", 60, 1)]
    said = {"deviceProperties": [{"id": 0, "name": device}]} if device else {"deviceProperties": []}
    return write(folder, events, name=name, baseTimeNanoseconds=BASE_NS, **said, **top)


def beside(profile: Path, **said) -> Path:
    path = profile / "tracker.json" if profile.is_dir() else profile.with_name(f"{profile.name}.tracker.json")
    path.write_text(json.dumps({"schema": 1, **said}))
    return path


def facts_of(store: Store, run_id: int, kind: str = "fact") -> dict[str, str]:
    found = queries.facts(store, [run_id]).frame
    return {row.key: row.value for row in found[found["kind"] == kind].itertuples()}


def test_an_ingest_without_options_takes_what_the_sidecar_says(store: Store, tmp_path: Path):
    profile = trace(tmp_path)
    beside(
        profile, version="v7", workload="gpt", commit="abc", note="as it was", configuration={"batch": "32"},
        tags={"image": "a"}, expect_ranks=2, facts={"torch_version": "2.6.0", "job_id": "41"},
    )  # fmt: skip
    (result,) = ingest(store, [profile])
    assert (result.version, result.workload, result.warnings) == ("v7", "gpt", ())
    run = queries.runs(store).frame.iloc[0]
    assert (run["configuration"], run["note"], run["ranks_expected"]) == ("batch=32", "as it was", 2)
    assert facts_of(store, 1) | {"trace_schema_version": ""} == {
        "torch_version": "2.6.0", "job_id": "41", "trace_schema_version": "",
    }  # fmt: skip
    assert facts_of(store, 1, "tag") == {"image": "a"}
    assert list(queries.versions(store, "gpt").frame["commit"]) == ["abc"]


def test_an_option_goes_before_the_sidecar_and_that_before_what_holds_otherwise(store: Store, tmp_path: Path):
    profile = trace(tmp_path)
    beside(profile, version="said", workload="gpt", commit="abc", configuration={"batch": "32", "tp": "2"})
    options = IngestOptions(
        configuration={"batch": "64"},
        otherwise=Sidecar(
            version="otherwise", workload="otherwise", note="a note", configuration={"tp": "1", "pp": "4"}
        ),
    )
    (result,) = ingest(store, [profile], version="given", options=options)
    assert (result.version, result.workload) == ("given", "gpt")
    run = queries.runs(store).frame.iloc[0]
    assert (run["configuration"], run["note"]) == ("batch=64 pp=4 tp=2", "a note")
    assert queries.versions(store, "gpt").frame["commit"].isna().all()  # abc is the commit of `said`, not of `given`


def test_the_sidecar_goes_before_the_name_of_the_file(store: Store, tmp_path: Path):
    source = Path(__file__).parent / "data" / "training_log" / "timer_only.txt"
    log = tmp_path / "20230808_69edec3bb7"
    log.write_text(source.read_text())
    (named,) = ingest(store, [log], workload="w")
    beside(log, version="v2")
    log.write_text(source.read_text() + "\n")
    (said,) = ingest(store, [log], workload="w")
    assert (named.version, said.version) == ("20230808_69edec3bb7", "v2")


def test_what_the_trace_states_of_itself_stands(store: Store, tmp_path: Path):
    profile = trace(tmp_path, distributedInfo={"rank": 3, "world_size": 8, "nccl_version": "2.20"})
    beside(
        profile, version="v1", workload="w", rank=0, world_size=1, device="NVIDIA A100",
        facts={"nccl_version": "1", "cuda_version": "12.4"},
    )  # fmt: skip
    (result,) = ingest(store, [profile])
    assert (result.ranks, result.device) == ((3,), "NVIDIA H100")
    known = facts_of(store, result.run_id)
    assert (known["nccl_version"], known["cuda_version"]) == ("2.20", "12.4")


def test_the_sidecar_names_rank_device_and_host_where_the_trace_does_not(store: Store, tmp_path: Path):
    for rank in (0, 1):  # come one after the other, as from two machines
        profile = trace(tmp_path / str(rank), seed=rank, device="")
        beside(profile, version="v1", workload="w", rank=rank, world_size=2, device="NVIDIA H100", host=f"node{rank}")
        ingest(store, [profile])
    run = queries.runs(store).frame.iloc[0]
    assert (len(queries.runs(store).frame), run["ranks"], run["world_size"], run["device"]) == (1, 2, 2, "H100")
    assert list(queries.captures(store, [1]).frame["host"]) == ["node0", "node1"]


def two_ranks(folder: Path) -> list[Path]:
    return [
        trace(folder, f"rank{rank}.pt.trace.json", distributedInfo={"rank": rank, "world_size": 2}) for rank in (0, 1)
    ]


def test_a_rank_without_a_sidecar_is_of_the_run_of_the_others(store: Store, tmp_path: Path):
    beside(two_ranks(tmp_path)[0], version="v1", workload="w", configuration={"batch": "8"})
    (result,) = ingest(store, [tmp_path])
    assert (result.ranks, result.version) == ((0, 1), "v1")
    assert queries.runs(store).frame.iloc[0]["configuration"] == "batch=8 world_size=2"


def test_ranks_of_one_run_that_name_two_versions_are_an_error_unless_an_option_decides(store: Store, tmp_path: Path):
    one, other = two_ranks(tmp_path)
    beside(one, version="v1", workload="w")
    beside(other, version="v1-dirty", workload="w")
    with pytest.raises(SourceError, match=r"rank0.*says version 'v1', that of .*rank1.*'v1-dirty'; say it for all"):
        ingest(store, [tmp_path])
    assert len(queries.runs(store).frame) == 0
    (note,) = [note for note in examine([tmp_path]).notes if "says version 'v1'" in note]
    assert "rank1.pt.trace.json" in note
    assert [result.ranks for result in ingest(store, [tmp_path], version="v1")] == [(0, 1)]


ONE = {"version": "v1", "workload": "w", "commit": "abc"}


@pytest.mark.parametrize(
    ("seed", "other", "message"),
    [
        (2, {**ONE, "commit": "def"}, "version 'v1' of workload 'w' is commit abc for {a}, def for {b}; give --commit"),
        (
            1,
            {**ONE, "version": "v2"},
            "{a} and {b} hold the same capture, and come in as version 'v1' of workload 'w' and as version 'v2' of "
            "workload 'w'; leave one of them out, or label both alike",
        ),
        (1, {**ONE, "workload": "x"}, "{a} and {b} hold the same capture"),
    ],
)
def test_runs_that_contradict_each_other_make_no_database(tmp_path: Path, seed: int, other: dict, message: str):
    """The second file is a copy of the first one, or another with what contradicts it."""
    a, b = trace(tmp_path, "a.json", seed=1), trace(tmp_path, "b.json", seed=seed)
    beside(a, **ONE)
    beside(b, **other)
    with open_store(str(tmp_path / "new.db"), late=True) as store, pytest.raises(UsageError) as raised:
        ingest(store, [tmp_path])
    assert str(raised.value).startswith(message.format(a=a, b=b)), str(raised.value)
    assert not list(tmp_path.glob("new.db*"))


def test_a_capture_saved_again_counts_once(tmp_path: Path):
    import shutil

    (source,) = (Path(__file__).parent / "data" / "ascend_text").glob("worker-1_*")
    for name in ("a", "b"):
        shutil.copytree(source, tmp_path / name / source.name)
    for table in (tmp_path / "b").rglob("kernel_details.csv"):
        table.write_text(table.read_text() + "\n")
    with open_store(str(tmp_path / "new.db"), late=True) as store:
        (result,) = ingest(store, [tmp_path], version="v1", workload="w")
    assert any("it counts once" in warning for warning in result.warnings)


def test_a_copy_under_the_same_labels_is_the_same_run(store: Store, tmp_path: Path):
    for name, commit in (("a.json", "abc"), ("b.json", "abc")):
        beside(trace(tmp_path, name), **{**ONE, "commit": commit})
    assert [(result.run_id, result.already) for result in ingest(store, [tmp_path])] == [(1, False), (1, True)]


def test_a_copy_says_no_more_what_a_version_is(store: Store, tmp_path: Path):
    """Into a database that is there, and into a new one, where the copy is told by its bytes."""
    for name, commit in (("a.json", "abc"), ("b.json", "def")):
        beside(trace(tmp_path, name), **{**ONE, "commit": commit})
    with open_store(str(tmp_path / "new.db"), late=True) as new:
        for into in (store, new):
            assert [result.already for result in ingest(into, [tmp_path])] == [False, True]


def test_what_is_in_already_may_say_another_commit_by_now(store: Store, tmp_path: Path):
    a, b = trace(tmp_path, "a.json", seed=1), trace(tmp_path, "b.json", seed=2)
    beside(a, **ONE)
    beside(b, **ONE)
    ingest(store, [tmp_path])
    beside(b, **{**ONE, "commit": "def"})
    assert [result.already for result in ingest(store, [tmp_path])] == [True, True]


def test_two_jobs_at_the_same_time_are_two_runs_together_and_one_by_one(store: Store, tmp_path: Path):
    for rank, profile in enumerate(two_ranks(tmp_path)):
        beside(profile, version="v1", workload="w", facts={"job_id": f"4{rank}"})
    assert len(ingest(store, [tmp_path])) == 2
    late = trace(tmp_path / "late", "rank1.json", seed=5, distributedInfo={"rank": 1, "world_size": 2})
    beside(late, version="v1", workload="w", facts={"job_id": "40"})
    (result,) = ingest(store, [late])
    assert (result.joined, result.ranks) == (True, (0, 1))
    assert facts_of(store, result.run_id)["job_id"] == "40"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 1, "version": 3}', "key version: expected a text, got a whole number; correct or delete it"),
        ('{"schema": 2}', "key schema: its schema is 2, this tracker knows 1; upgrade tracker"),
        ('{"versoin": "v1"}', "key versoin: there is no such key; a sidecar knows schema, version, workload"),
        ('{"version": "v1"', "the sidecar is no valid JSON"),
        ("[]", "expected a table, got a list"),
        ('{"version": "v\\n1"}', "key version: is empty or holds control characters"),
        ('{"tags": {"a": "b\\u001b"}}', "key tags: has an empty key, or control characters"),
        ('{"configuration": {"batch": 32}}', "key configuration: expected a text, got a whole number"),
        ('{"rank": 8, "world_size": 8}', "key rank: is 8, of 8 ranks"),
        ('{"expect_ranks": 0}', "key expect_ranks: is 0, expected 1 or more"),
        (f'{{"note": "{"x" * MAX_BYTES}"}}', "a sidecar of more than 64 KiB"),
        ('{"a": ' + "[" * 60_000, "the sidecar is no valid JSON"),
    ],
)
def test_a_broken_sidecar_is_an_error_that_names_file_place_problem_and_remedy(store, tmp_path, text, message):
    profile = trace(tmp_path)
    path = profile.with_name(f"{profile.name}.tracker.json")
    path.write_text(text)
    with pytest.raises(SourceError) as raised:
        ingest(store, [profile], version="v1", workload="w")
    assert str(raised.value).startswith(f"{path}: {message}"), str(raised.value)
    (failure,) = examine([tmp_path]).failures
    assert str(path) in failure.problem
    assert len(queries.runs(store).frame) == 0


def test_facts_that_are_not_allowed_are_left_out_and_only_their_names_are_told(store: Store, tmp_path: Path):
    profile = trace(tmp_path)
    secret = "ghp_" + "a" * 36
    beside(
        profile, version="v1", workload="w", facts={"GITHUB_TOKEN": secret, "torch_version": f"{secret}?", "os": "L"}
    )
    (result,) = ingest(store, [profile])
    (warning,) = [warning for warning in result.warnings if "facts" in warning]
    assert warning == "a.pt.trace.json.tracker.json: facts that are not kept: GITHUB_TOKEN, torch_version"
    assert facts_of(store, 1)["os"] == "L"
    assert not {"GITHUB_TOKEN", "torch_version"} & facts_of(store, 1).keys()


def test_no_allowed_fact_sounds_like_a_secret():
    words = ("TOKEN", "SECRET", "KEY", "PASSWORD", "CREDENTIAL", "AUTH")
    assert not [name for name in FACTS if any(word in name.upper() for word in words)]


def test_the_job_and_the_commit_are_no_change_of_the_environment(store: Store, tmp_path: Path):
    for number, version in enumerate(("v1", "v2")):
        profile = trace(tmp_path / version, seed=number)
        facts = {"job_id": f"4{number}", "git_commit": f"c{number}", "torch_version": f"2.{number}"}
        beside(profile, version=version, workload="w", facts=facts)
        ingest(store, [profile])
    changed = diff(store, "v1", "v2").environment
    known = {(row.kind, row.key): (row.baseline, row.candidate) for row in changed.itertuples()}
    assert known == {("code", "git_commit"): ("c0", "c1"), ("fact", "torch_version"): ("2.0", "2.1")}


def test_a_sidecar_is_no_profile_and_says_which_file_it_tells_of(store: Store, tmp_path: Path):
    profile = trace(tmp_path)
    path = beside(profile, version="v1", workload="w")
    with pytest.raises(SourceError, match=rf"only tells of a profile; give the profile itself: {profile}$"):
        ingest(store, [path])
    assert len(ingest(store, [tmp_path])) == 1


def test_nobody_says_the_workload(store: Store, tmp_path: Path):
    profile = trace(tmp_path)
    beside(profile, version="v1")
    with pytest.raises(UsageError, match="states no workload"):
        ingest(store, [profile])


def test_doctor_says_that_sidecars_are_there_and_what_they_say(tmp_path: Path):
    for profile in two_ranks(tmp_path):
        beside(profile, version="v1", workload="w", configuration={"batch": "8"}, facts={"os": "L"}, host="h")
    (tmp_path / "gone.json.tracker.json").write_text("{}")
    found = examine([tmp_path])
    assert (found.unclaimed, found.passed_over, found.failures) == ((), 0, ())
    assert found.notes == (
        f"{tmp_path}/rank0.pt.trace.json.tracker.json and 1 other say of the profile: version v1, workload w, "
        "configuration batch=8, 1 fact of the environment",
        f"{tmp_path}/gone.json.tracker.json tells of a profile that is not there",
    )
    assert found.command == ("tracker", "ingest", str(tmp_path))  # nothing is left to say
    assert found.captures[0].labels == {"version": "v1", "workload": "w"}


def test_a_folder_that_is_a_profile_holds_its_sidecar(store: Store, tmp_path: Path):
    import shutil

    (source,) = (Path(__file__).parent / "data" / "ascend_text").glob("worker-1_*")
    copy = Path(shutil.copytree(source, tmp_path / source.name))
    beside(copy, version="v1", workload="w", facts={"job_id": "7"})
    (result,) = ingest(store, [tmp_path])
    assert (result.version, facts_of(store, 1)["job_id"]) == ("v1", "7")
    assert examine([copy]).notes[-1].startswith(f"{copy}/tracker.json says of the profile: version v1")
