"""Nsight Systems exports, made by hand: what the versions call their tables, which are missing, which are claimed."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tests.readers.helpers import frame, only, texts
from tests.readers.nsys_captures import kernels, read
from tests.readers.nsys_databases import UTC, T, call, one_step, span, tid, write
from tracker import readers
from tracker.errors import SourceError
from tracker.profile import CPU, MISSING, RANGE_RULES, RANGE_SETTING, Device, DeviceKind, LaunchLevel
from tracker.readers import nsys_sqlite
from tracker.timeline import rows_of


def test_kernels_hang_on_the_innermost_range_around_their_launch(tmp_path):
    assert kernels(only(read(tmp_path, one_step()))) == {
        "ampere_sgemm_128x64_tn": ("attention", "layer_0/attention", "forward", 1, 60),
        "Memcpy HtoD (Pageable -> Device)": ("attention", "layer_0/attention", "forward", 1, 10),
        "void relu<(int)4>(float *)": ("(no op)", "", "", 1, 20),
        "Memset (Device)": ("(no op)", "", "", 1, 2),
    }


def test_calls_of_the_operating_system_are_host_calls_that_bound_no_capture(tmp_path):
    """A wait of 9 s reaches beyond the work; the ioctl inside cudaMalloc stays cudaMalloc's time."""
    tables = one_step()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"].append(call("cudaMalloc", 1000, 1100))
    plain = only(read(tmp_path, tables))
    os_calls = [("pthread_cond_wait", 0, 9 * 10**9, tid(7, 8)), ("ioctl", 1010, 1050, tid(7)), ("poll", 5, 6, tid(99))]
    tables["OSRT_API"] = [
        {"start": start, "end": end, "eventClass": 27, "globalTid": thread, "nameId": T(name), "returnValue": 0}
        for name, start, end, thread in os_calls
    ]
    traced = only(read(tmp_path, tables, name="b.sqlite"))
    assert (traced.started_at_ns, traced.ended_at_ns) == (plain.started_at_ns, plain.ended_at_ns)
    rows = rows_of(traced.events)
    assert rows.overall == rows_of(plain.events).overall
    calls = {(row["level"], row["name"]): (row["total_ns"], row["self_ns"]) for row in frame(rows.tables["api"])}
    assert calls["os", "pthread_cond_wait"] == (9 * 10**9, 9 * 10**9)
    assert (calls["os", "ioctl"], calls["runtime", "cudaMalloc"]) == ((40, 40), (100, 100))
    assert ("os", "poll") not in calls  # of another process


def test_work_of_the_profiler_itself_is_a_cause_of_idle_time_on_the_thread_that_it_holds(tmp_path):
    """Between the kernels the host writes down for 30 ns what was recorded; what another thread writes holds nobody."""
    tables = one_step()
    tables["PROFILER_OVERHEAD"] = [
        {"start": start, "end": end, "globalTid": thread, "nameId": T("CUPTI Buffer flush"), "returnValue": 0}
        for start, end, thread in ((270, 300, tid(7)), (265, 315, tid(7, 8)))
    ]
    rows = rows_of(only(read(tmp_path, tables)).events)
    assert rows.overall == rows_of(only(read(tmp_path, one_step(), name="b.sqlite")).events).overall
    calls = {(row["level"], row["name"]): row["total_ns"] for row in frame(rows.tables["api"])}
    assert calls["profiler", "CUPTI Buffer flush"] == 30 + 50
    idle = {(row["cause"], row["place"]): row["ns"] for row in frame(rows.tables["idle"])}
    assert idle["profiler", "CUPTI Buffer flush"] == 30


def test_range_that_counts_up_is_the_step_and_no_op(tmp_path):
    capture = only(read(tmp_path, one_step()))
    rows = rows_of(capture.events)
    (step,) = rows.steps
    assert (step.step, step.breakdown.duration_ns) == (17, 300)
    assert step.breakdown.compute_ns == 80
    assert step.breakdown.copy_ns == 10
    assert rows.overall.copy_ns == 12, "the memset was launched behind the step"
    assert texts(capture.events, capture.events.ops.name) == ["forward", "layer_0", "attention"]


def test_who_ran_is_read_by_an_allow_list(tmp_path):
    capture = only(read(tmp_path, one_step()))
    assert capture.host == "node-3"
    assert capture.device == Device("NVIDIA", "A100-SXM4-80GB")
    assert capture.device_ordinal == 0
    assert (capture.started_at_ns, capture.ended_at_ns) == (UTC + 100, UTC + 432)
    assert capture.facts == {
        "nsys_version": "2025.1.0",
        "nsys_schema_version": "3.18.0",
        "driver_version": "570.172.08",
        "cuda_driver_version": "12.8",
    }
    assert capture.settings == {"cuda_graph_trace": "node", RANGE_SETTING: RANGE_RULES}
    assert "secret" not in f"{capture}{capture.events.strings.texts}"


def test_api_names_lose_the_version_of_the_binary_interface(tmp_path):
    events = only(read(tmp_path, one_step())).events
    names = texts(events, events.launches.name)
    assert names == ["cudaMemcpyAsync", "cudaLaunchKernel", "cuLaunchKernelEx", "cudaMemsetAsync"]
    levels = [LaunchLevel(level).name for level in events.launches.level.tolist()]
    assert levels == ["RUNTIME", "RUNTIME", "DRIVER", "RUNTIME"]


def test_nothing_is_written_into_or_beside_the_export(tmp_path):
    path = write(tmp_path / "a.sqlite", one_step())
    path.chmod(0o444)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    nsys_sqlite.read(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.sqlite"]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


# -- versions


def test_export_of_2019_has_texts_in_the_rows_no_process_of_kernels_and_one_name(tmp_path):
    tables = one_step()
    del tables["META_DATA_EXPORT"], tables["META_DATA_CAPTURE"], tables["TARGET_INFO_SESSION_START_TIME"]
    for row in tables["CUPTI_ACTIVITY_KIND_KERNEL"]:
        row["name"] = row.pop("demangledName")
        del row["shortName"]
    for name in ("KERNEL", "MEMCPY", "MEMSET"):
        for row in tables[f"CUPTI_ACTIVITY_KIND_{name}"]:
            del row["globalPid"]
    for row in tables["NVTX_EVENTS"]:
        row["text"] = str(row.pop("textId"))
        del row["endGlobalTid"], row["domainId"]
    tables["TARGET_INFO_GPU"] = [{"id": 0, "name": "Tesla V100-SXM2-16GB"}]
    capture = only(read(tmp_path, tables))
    assert kernels(capture)["ampere_sgemm_128x64_tn"] == ("attention", "layer_0/attention", "forward", 1, 60)
    assert capture.device == Device("NVIDIA", "Tesla V100-SXM2-16GB")
    assert capture.started_at_ns is None


def test_export_of_2022_calls_its_meta_data_otherwise(tmp_path):
    tables = one_step()
    tables["EXPORT_META_DATA"] = tables.pop("META_DATA_EXPORT")
    assert only(read(tmp_path, tables)).facts["nsys_version"] == "2025.1.0"


def test_times_that_were_normalised_are_utc(tmp_path):
    tables = one_step()
    for rows in tables.values():
        for row in rows:
            row |= {name: UTC + row[name] for name in ("start", "end") if name in row}
    assert only(read(tmp_path, tables)).started_at_ns == UTC + 100


# -- what is missing, what is damaged


def test_missing_tables_are_said(tmp_path):
    tables = one_step()
    for name in ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"):
        del tables[name]
    profile = read(tmp_path, tables)
    assert rows_of(only(profile).events).overall.unlinked_kernel_count == 2
    assert [text.partition(":")[0] for text in profile.warnings] == [
        "the export has no table CUPTI_ACTIVITY_KIND_RUNTIME",
        "the export has no table NVTX_EVENTS",
        "no NVTX range marks a step (step N, iteration N)",
    ]


def test_without_a_kernel_table_nothing_is_said_of_compute(tmp_path):
    """One copy of 10 ns and one memset of 2 are all that is left: no device that worked 100 % of its time."""
    tables = one_step()
    del tables["CUPTI_ACTIVITY_KIND_KERNEL"]
    overall = rows_of(only(read(tmp_path, tables)).events).overall
    assert (overall.timeline, overall.copy_ns, overall.copy_total_ns) == ("device", 12, 12)
    unknown = (overall.compute_ns, overall.kernel_count, overall.e2e_ns, overall.idle_ns, overall.exposed_copy_ns)
    assert unknown == (None,) * 5


def test_capture_without_device_work_is_one_of_the_host(tmp_path):
    profile = read(tmp_path, {"NVTX_EVENTS": [span("encoder", 100, 300), span("attention", 150, 200)]})
    capture = only(profile)
    assert capture.device == CPU
    overall = rows_of(capture.events).overall
    assert (overall.timeline, overall.compute_ns, overall.e2e_ns) == ("host", 200, 200)
    assert any(text.startswith("the export has no table CUPTI_ACTIVITY_KIND_KERNEL") for text in profile.warnings)


def test_capture_that_missed_the_work_is_said(tmp_path):
    tables = one_step()
    tables["CUPTI_ACTIVITY_KIND_RUNTIME"] += [call("cudaLaunchKernel_v7000", 500, 501, 50 + i) for i in range(8)]
    (said,) = [text for text in read(tmp_path, tables).warnings if "launches" in text]
    assert said.startswith("8 of 10 launches have no work on a device")


def test_export_without_anything_is_an_error(tmp_path):
    with pytest.raises(SourceError, match=r"no kernels, no CUDA calls and no NVTX ranges; profile again"):
        read(
            tmp_path,
            {"META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.1"}], "TARGET_INFO_SYSTEM_ENV": []},
        )


def test_span_that_ends_before_it_starts_is_an_error_or_left_out(tmp_path):
    tables = one_step()
    tables["CUPTI_ACTIVITY_KIND_KERNEL"][1] |= {"end": 5}
    with pytest.raises(SourceError, match=r"KERNEL, row 2: starts at 340 and ends at 5; .* --skip-bad-rows"):
        read(tmp_path, tables)
    profile = read(tmp_path, tables, name="b.sqlite", skip_bad_rows=True)
    assert (only(profile).events.device.kind == DeviceKind.KERNEL).sum() == 1
    assert "1 rows of CUPTI_ACTIVITY_KIND_KERNEL with impossible times were left out" in profile.warnings


def test_text_that_is_no_utf8_hides_nothing_else(tmp_path):
    import sqlite3
    from contextlib import closing

    path = write(tmp_path / "a.sqlite", one_step())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE StringIds SET value = CAST(x'ff41' AS TEXT) WHERE value = 'attention'")
    assert kernels(only(nsys_sqlite.read(path)))["ampere_sgemm_128x64_tn"][0] == "\ufffdA"


def test_bytes_that_are_not_known_stay_missing(tmp_path):
    tables = one_step()
    for row in tables["CUPTI_ACTIVITY_KIND_MEMCPY"]:
        del row["bytes"]
    device = only(read(tmp_path, tables)).events.device
    assert device.bytes[device.kind == DeviceKind.COPY].tolist() == [MISSING]


# -- claims


def test_export_is_claimed_by_its_tables_whatever_its_name(tmp_path):
    for name in ("a.sqlite", "a.db", "report"):
        assert readers.claim(write(tmp_path / name, one_step())) == "nsys_sqlite"


def test_other_databases_are_not_claimed(tmp_path):
    path = write(tmp_path / "a.sqlite", {"measurements": [{"id": 1}]})
    with pytest.raises(SourceError, match="no reader knows this file"):
        readers.claim(path)


def test_export_that_was_cut_says_so(tmp_path):
    path = write(tmp_path / "a.sqlite", one_step())
    path.write_bytes(path.read_bytes()[:-4096])
    with pytest.raises(SourceError, match="the database ends early"):
        readers.read(*readers.find(path))


@pytest.mark.parametrize("suffix", [".nsys-rep", ".qdrep"])
def test_report_is_refused_with_the_command_that_exports_it(tmp_path, suffix):
    report = tmp_path / f"run1{suffix}"
    report.write_bytes(b"\x00report")
    with pytest.raises(SourceError, match=rf"nsys export --type sqlite --output run1\.sqlite run1\{suffix}"):
        readers.read(*readers.find(report))


def test_report_beside_its_export_is_refused_with_the_name_of_the_export(tmp_path):
    (tmp_path / "run1.nsys-rep").write_bytes(b"\x00report")
    export = write(tmp_path / "run1.sqlite", one_step())
    with pytest.raises(SourceError, match=f"give {export}"):
        readers.find(tmp_path / "run1.nsys-rep")
    with pytest.raises(SourceError, match=f"give {export}, its export"):
        readers.read(readers.Found(tmp_path / "run1.nsys-rep", "nsys_sqlite"))


def test_report_beside_its_export_is_passed_over(tmp_path):
    (tmp_path / "run1.nsys-rep").write_bytes(b"\x00report")
    write(tmp_path / "run1.sqlite", one_step())
    assert [found.path.name for found in readers.find(tmp_path)] == ["run1.sqlite"]


@pytest.mark.parametrize("folder_mode", [0o700, 0o500])
def test_nothing_is_written_beside_an_export_that_another_program_has_open(tmp_path, folder_mode):
    """Its last changes lie in a -wal file: they are not read, which is said, and all files stay as they are."""
    folder = tmp_path / "run"
    folder.mkdir()
    path = write(folder / "a.sqlite", one_step())
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("INSERT INTO StringIds VALUES (999999, 'late')")
        writer.commit()
        before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()}
        assert before["a.sqlite-wal"][0]
        folder.chmod(folder_mode)
        found = nsys_sqlite.read(path)
        folder.chmod(0o700)
        assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir()} == before
    assert found.warnings[0] == "a.sqlite-wal holds changes of another program, which were not read"


def test_half_of_a_change_is_refused(tmp_path):
    # a program is ended when half of its change is written: what the pages held before lies in the journal
    path = write(tmp_path / "a.sqlite", one_step())
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN")
        numbers = ((number, "x" * 500) for number in range(1_000_000, 1_000_200))
        writer.executemany("INSERT INTO StringIds VALUES (?, ?)", numbers)
        half = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for name, content in half.items():
        (tmp_path / name).write_bytes(content)
    assert half["a.sqlite-journal"]
    with pytest.raises(SourceError) as refused:
        nsys_sqlite.read(path)
    assert str(refused.value) == (
        f"{path}: a.sqlite-journal beside it is half of a change: the file is being written, or its writer was ended; "
        "wait until it is written; copy the file again, or export the profile again"
    )
    assert nsys_sqlite.unfinished(path) == "a.sqlite-journal beside it is half of a change"
    # what SQLite leaves of a change that is done
    (tmp_path / "a.sqlite-journal").write_bytes(bytes(512))
    (tmp_path / "a.sqlite").write_bytes(write(tmp_path / "b.sqlite", one_step()).read_bytes())
    assert nsys_sqlite.unfinished(path) == ""
    assert nsys_sqlite.read(path).captures
