"""What the handlers write, say and queue, and what never leaves them."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tests.hooks.jobs import TorchProfiler, trace
from tracker.hooks import job, mindspore_profiler, paddle_profiler, places, spool, torch_npu_profiler, torch_profiler
from tracker.hooks.sidecar import sidecar_of


@pytest.fixture
def variables(monkeypatch, tmp_path):
    """A job on rank 3 of 8 that knows its labels, in no git repository; deliverers are counted and not started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "train.py"), raising=False)
    for name in [*os.environ]:
        if name.startswith(("TRACKER_", "SLURM_", "RANK", "WORLD_SIZE")):
            monkeypatch.delenv(name)
    said = {
        "TRACKER_SPOOL": str(tmp_path / "spool"), "TRACKER_VERSION": "v1", "TRACKER_WORKLOAD": "toy", "RANK": "3",
        "WORLD_SIZE": "8", "SLURM_JOB_ID": "41",
    }  # fmt: skip
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(job, "_warned", set())
    started = []
    monkeypatch.setattr(spool, "start", lambda folder, environ: started.append(folder))
    return started


def queued() -> list[dict]:
    return [json.loads(Path(path).read_text()) for path in spool.entries(places.folder(os.environ))]


def sidecar(profile: Path) -> dict:
    return json.loads(Path(sidecar_of(str(profile))).read_text())


def test_torch_exports_the_trace_says_what_ran_and_queues_it(variables, tmp_path):
    handle = torch_profiler.on_trace_ready(
        str(tmp_path / "prof"), configuration={"batch": 32}, tags={"image": "a"}, expect_ranks=8
    )
    handle(TorchProfiler(3, step_num=12))
    (profile,) = (tmp_path / "prof").glob("*.pt.trace.json.gz")
    assert profile.name.startswith("rank3_")
    assert ".step12." in profile.name
    said = sidecar(profile)
    facts = said.pop("facts")
    assert (facts["job_id"], facts["python_version"]) == ("41", sys.version.split()[0])
    host = said.pop("host")
    assert said == {
        "schema": 1, "version": "v1", "workload": "toy", "rank": 3, "world_size": 8, "configuration": {"batch": "32"},
        "tags": {"image": "a"}, "expect_ranks": 8,
    }  # fmt: skip
    (entry,) = queued()
    assert (entry["profile"], entry["attempts"], entry["host"]) == (str(profile), 0, host)
    assert variables == [places.folder(os.environ)]


def test_each_window_of_steps_is_a_file_of_its_own(variables, tmp_path):
    handle = torch_profiler.on_trace_ready(str(tmp_path / "prof"))
    for step in (5, 5, 10):
        handle(TorchProfiler(step_num=step))
    assert len([*(tmp_path / "prof").glob("*.pt.trace.json.gz")]) == len(queued()) == 3


def test_options_go_before_the_environment(variables, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKER_CONFIGURATION", "batch=8, precision=bf16")
    monkeypatch.setenv("TRACKER_TAGS", "team=a,nonsense")
    said = job.Job(version="v2", configuration={"batch": "16"}).told()
    assert (said["version"], said["workload"]) == ("v2", "toy")
    assert said["configuration"] == {"batch": "16", "precision": "bf16"}
    assert said["tags"] == {"team": "a"}


@pytest.mark.parametrize("value", ["8,mode=x", "a\\", "a\\,b", "\\\\,", ",", "C:\\x", "a=b"])
def test_pairs_with_commas_and_backslashes_come_through_the_environment(variables, monkeypatch, value):
    pairs = {"shape": value, "batch": "32"}
    monkeypatch.setenv("TRACKER_TAGS", job.joined(pairs))
    assert job.Job().told()["tags"] == pairs


def test_a_backslash_before_anything_else_stays_one(variables, monkeypatch):
    monkeypatch.setenv("TRACKER_TAGS", r"home=C:\x,batch=32")
    assert job.Job().told()["tags"] == {"home": r"C:\x", "batch": "32"}


def test_the_version_is_what_git_describes_where_nobody_names_it(variables, tmp_path, monkeypatch):
    monkeypatch.delenv("TRACKER_VERSION")
    git = {"version": "v3-1-gabc", "git_commit": "abc", "git_dirty": "no"}
    monkeypatch.setattr(job.environment, "capture_git", lambda folders, timeout_s: dict(git))
    said = job.Job().told()
    assert (said["version"], said["commit"], said["facts"]["git_commit"]) == ("v3-1-gabc", "abc", "abc")
    named = job.Job(version="nightly").told()
    assert "commit" not in named  # a label that comes again with other commits
    assert named["facts"]["git_commit"] == "abc"


def test_a_version_that_nobody_knows_is_told_once(variables, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("TRACKER_VERSION")
    monkeypatch.setattr(job.environment, "capture_git", lambda folders, timeout_s: {})
    for _ in range(2):
        assert "version" not in job.Job().told()
    assert capsys.readouterr().err == (
        "tracker: no version is known of this job: set TRACKER_VERSION, or give the hook version=\n"
    )


def test_a_git_that_takes_its_time_holds_nobody_up(variables, tmp_path, monkeypatch):
    monkeypatch.setattr(job.environment, "capture_git", lambda folders, timeout_s: time.sleep(2) or {})
    began = time.monotonic()
    torch_profiler.on_trace_ready(str(tmp_path / "prof"))(TorchProfiler())
    assert time.monotonic() - began < 0.5
    assert len(queued()) == 1


def test_without_delivery_the_profile_and_its_sidecar_are_written_alone(variables, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKER_DELIVER", "0")
    torch_profiler.on_trace_ready(str(tmp_path / "prof"))(TorchProfiler())
    assert len([*(tmp_path / "prof").iterdir()]) == 2
    assert (queued(), variables) == ([], [])


class Failing:
    def __getattr__(self, name):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("hook", [torch_profiler, paddle_profiler])
def test_no_error_leaves_a_handler_and_it_is_told_once(variables, tmp_path, capsys, hook):
    handle = hook.on_trace_ready(str(tmp_path / "prof"), workload=object(), configuration=3, nonsense=1)
    handle(Failing())
    handle(Failing())
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(set(lines))
    assert any("there is no option nonsense" in line for line in lines)
    assert any("OSError: [Errno 28] No space left on device" in line for line in lines)


def test_a_spool_that_cannot_be_written_leaves_profile_and_sidecar(variables, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRACKER_SPOOL", str(tmp_path / "file"))
    torch_profiler.on_trace_ready(str(tmp_path / "prof"))(TorchProfiler())
    assert len([*(tmp_path / "prof").iterdir()]) == 2
    assert "the profile is not handed over (NotADirectoryError" in capsys.readouterr().err


def test_a_machine_without_a_thread_left_gives_a_handler_all_the_same(variables, tmp_path, monkeypatch, capsys):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(job.threading.Thread, "start", refuse)
    torch_profiler.on_trace_ready(str(tmp_path / "prof"))(TorchProfiler())
    (entry,) = queued()
    assert "git_commit" not in sidecar(Path(entry["profile"]))["facts"]
    assert "RuntimeError: can't start new thread" in capsys.readouterr().err


@pytest.mark.parametrize(("rank", "size"), [("\u00b2", "8"), ("3", "\u00b2")])  # a digit, as str.isdigit has it
def test_a_rank_that_is_no_number_is_none(variables, tmp_path, monkeypatch, rank, size):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", size)
    monkeypatch.setenv("TRACKER_EXPECT_RANKS", "\u00b2")
    torch_profiler.on_trace_ready(str(tmp_path / "prof"))(TorchProfiler())
    (entry,) = queued()
    assert not {"rank", "expect_ranks"} & sidecar(Path(entry["profile"])).keys()


def test_a_host_without_a_name_keeps_nobody_from_training(variables, tmp_path, monkeypatch):
    def refuse():
        raise OSError(36, "File name too long")

    monkeypatch.setattr(spool.socket, "gethostname", refuse)
    handle = torch_profiler.on_trace_ready(str(tmp_path / "prof"))
    handle(TorchProfiler())
    (profile,) = (tmp_path / "prof").glob("*.pt.trace.json.gz")
    assert profile.name.startswith("rank3_host_")


def test_what_is_half_written_when_the_disk_is_full_is_taken_away(tmp_path):
    with pytest.raises(TypeError):
        spool.replace(str(tmp_path / "a.json"), {"a": object()})
    assert [*tmp_path.iterdir()] == []


def test_a_keyboard_interrupt_goes_through(variables, tmp_path):
    profiler = SimpleNamespace(export_chrome_trace=lambda path: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        torch_profiler.on_trace_ready(str(tmp_path / "prof"))(profiler)


def test_paddle_exports_a_chrome_trace(variables, tmp_path):
    def export(path, format):
        assert format == "json"
        Path(path).write_text(trace())

    paddle_profiler.on_trace_ready(str(tmp_path / "prof"))(SimpleNamespace(export=export, step_num=9))
    (profile,) = (tmp_path / "prof").glob("*.step9.*.paddle_trace.json")
    assert sidecar(profile)["rank"] == 3
    assert [entry["profile"] for entry in queued()] == [str(profile)]


def capture(folder: Path, worker: str, ending: str, time: int = 1) -> Path:
    made = folder / f"{worker}_2025010100000000{time}{ending}"
    (made / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
    return made


@pytest.fixture
def npu(monkeypatch):
    """torch_npu, as far as a handler asks it: `analysed` notes how."""
    module, analysed = ModuleType("torch_npu"), []

    def tensorboard_trace_handler(dir_name, worker_name, analyse_flag=True, **more):
        analysed.append((worker_name, analyse_flag, more))
        return lambda profiler: profiler(Path(dir_name), worker_name)

    module.profiler = SimpleNamespace(tensorboard_trace_handler=tensorboard_trace_handler)
    module.__version__ = "2.1.0.post10"
    monkeypatch.setitem(sys.modules, "torch_npu", module)
    return analysed


def test_torch_npu_analyses_and_each_new_capture_of_this_process_is_queued(variables, tmp_path, npu):
    folder = tmp_path / "prof"
    worker = job.Job().worker_name()
    old = capture(folder, worker, "_ascend_pt", 0)
    handle = torch_npu_profiler.on_trace_ready(str(folder))
    new = folder / f"{worker}_20250101000000001_ascend_pt"
    handle(
        lambda dir_name, worker_name: (capture(dir_name, worker_name, "_ascend_pt"), capture(dir_name, "rank4", "x"))
    )
    assert npu == [(worker, True, {})]
    assert [entry["profile"] for entry in queued()] == [str(new)]
    said = json.loads((new / "tracker.json").read_text())
    assert (said["rank"], said["facts"]["torch_npu_version"]) == (3, "2.1.0.post10")
    assert not (old / "tracker.json").exists()


def test_a_capture_of_another_worker_whose_name_goes_on_is_not_taken(variables, tmp_path, npu):
    handle = torch_npu_profiler.on_trace_ready(str(tmp_path), "rank1")
    handle(lambda dir_name, worker_name: [capture(dir_name, name, "_ascend_pt") for name in ("rank1", "rank12")])
    assert [Path(entry["profile"]).name[:6] for entry in queued()] == ["rank1_"]


def test_a_capture_that_is_analysed_later_waits_for_its_end(variables, tmp_path, npu):
    handle = torch_npu_profiler.on_trace_ready(str(tmp_path / "prof"), async_mode=True)
    handle(lambda dir_name, worker_name: capture(dir_name, worker_name, "_ascend_pt"))
    (entry,) = queued()
    assert npu[0][1:] == (True, {"async_mode": True})
    assert entry["wait_for"] == f"{entry['profile']}/ASCEND_PROFILER_OUTPUT/analyse.done"
    assert not spool.is_ready(entry, time.time_ns())
    Path(entry["wait_for"]).write_text("")
    assert spool.is_ready(entry, time.time_ns())


def test_a_folder_that_cannot_be_looked_into_gives_a_handler_all_the_same(variables, tmp_path, npu, monkeypatch):
    listdir, shut = os.listdir, [True]

    def look(place):
        if shut and place == str(tmp_path / "prof"):
            raise PermissionError(13, "Permission denied")
        return listdir(place)

    (tmp_path / "prof").mkdir()
    monkeypatch.setattr(os, "listdir", look)
    handle = torch_npu_profiler.on_trace_ready(str(tmp_path / "prof"))
    shut.clear()
    handle(lambda dir_name, worker_name: capture(dir_name, worker_name, "_ascend_pt"))
    assert len(queued()) == 1


def test_without_torch_npu_the_handler_does_nothing(variables, tmp_path, capsys):
    torch_npu_profiler.on_trace_ready(str(tmp_path / "prof"))(None)
    assert "torch_npu gives no handler (ModuleNotFoundError" in capsys.readouterr().err
    assert queued() == []


@pytest.fixture
def mindspore(monkeypatch):
    """MindSpore, as far as a callback asks it: `profiled` notes what its profiler was told."""
    module, profiled = ModuleType("mindspore"), []

    class Profiler:
        def __init__(self, **arguments):
            profiled.append(arguments)
            self.folder = Path(arguments["output_path"])

        def start(self):
            profiled.append("start")

        def stop(self):
            profiled.append("stop")

        def analyse(self):
            profiled.append("analyse")
            capture(self.folder, "host_1", "_ascend_ms")

    module.Callback, module.Profiler, module.__version__ = type("Callback", (), {}), Profiler, "2.5.0"
    monkeypatch.setitem(sys.modules, "mindspore", module)
    return SimpleNamespace(module=module, profiled=profiled)


def train(callback, steps):
    for number in range(1, steps + 1):
        context = SimpleNamespace(original_args=lambda number=number: SimpleNamespace(cur_step_num=number))
        callback.on_train_step_begin(context)
        callback.on_train_step_end(context)
    callback.on_train_end(None)


@pytest.mark.parametrize(("steps", "ends"), [(9, "at its last step"), (3, "with the training")])
def test_mindspore_profiles_the_steps_that_were_asked_for(variables, tmp_path, mindspore, steps, ends):
    profiled = mindspore_profiler.callback(
        str(tmp_path / "prof"), first_step=2, last_step=4, profiler={"profiler_level": 1}
    )
    assert isinstance(profiled, mindspore.module.Callback)
    train(profiled, steps)
    arguments, *calls = mindspore.profiled
    assert (arguments["start_profile"], arguments["profiler_level"]) == (False, 1), ends
    assert calls == ["start", "stop", "analyse"]
    (entry,) = queued()
    assert entry["profile"].endswith("_ascend_ms")
    assert json.loads(Path(entry["profile"], "tracker.json").read_text())["facts"]["mindspore_version"] == "2.5.0"


def test_a_mindspore_profiler_that_fails_does_not_end_the_training(variables, tmp_path, mindspore, capsys):
    mindspore.module.Profiler.start = lambda self: (_ for _ in ()).throw(RuntimeError("no NPU"))
    train(mindspore_profiler.callback(str(tmp_path / "prof"), first_step=1, last_step=2), 3)
    assert "RuntimeError: no NPU" in capsys.readouterr().err


def test_a_mindspore_that_cannot_profile_gives_a_callback_that_does_nothing(variables, tmp_path, mindspore, capsys):
    def broken(**_):
        raise RuntimeError("no NPU")

    mindspore.module.Profiler = broken
    callback = mindspore_profiler.callback(str(tmp_path / "prof"), first_step=1, last_step=2)
    assert type(callback) is mindspore.module.Callback, "None in callbacks=[...] ends the job"
    assert "MindSpore gives no callback (RuntimeError: no NPU)" in capsys.readouterr().err


def test_a_training_that_ends_before_the_first_step_leaves_nothing(variables, tmp_path, mindspore):
    train(mindspore_profiler.callback(str(tmp_path / "prof"), first_step=5, last_step=6), 3)
    assert mindspore.profiled[1:] == []
    assert queued() == []


def test_without_mindspore_there_is_no_callback(variables, tmp_path, capsys):
    assert mindspore_profiler.callback(str(tmp_path / "prof"), first_step=1, last_step=2) is None
    assert "MindSpore gives no callback" in capsys.readouterr().err
