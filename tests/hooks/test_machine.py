"""The state of the machine: what stand-ins of the programs print, and what they may not do to a job."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.hooks.jobs import environ, in_a_job, until
from tracker.hooks import machine, smi
from tracker.intake.sidecar import FACTS

NVIDIA = """
==============NVSMI LOG==============

GPU 00000000:18:00.0
    Performance State                     : P0
    Clocks Event Reasons
        Idle                              : {idle}
        Applications Clocks Setting       : Not Active
        SW Power Cap                      : {power}
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
            HW Power Brake Slowdown       : Not Active
        Sync Boost                        : Not Active
        SW Thermal Slowdown               : {heat}
    Temperature
        GPU Current Temp                  : 71 C
        GPU T.Limit Temp                  : 16 C
    GPU Power Readings
        Average Power Draw                : N/A
        Instantaneous Power Draw          : 698.31 W
        Current Power Limit               : 700.00 W
    Clocks
        Graphics                          : {clock} MHz
        SM                                : {clock} MHz
        Memory                            : 2619 MHz
    Applications Clocks
        Graphics                          : 1830 MHz
    Max Clocks
        Graphics                          : 1965 MHz
        SM                                : 1965 MHz
    Processes
{processes}"""


def nvidia(clock: int = 1965, *, power: bool = False, heat: bool = False, idle: bool = False, pids=()) -> str:
    words = {True: "Active", False: "Not Active"}
    processes = "".join(f"        Process ID : {pid}\n            Type : C\n" for pid in pids)
    return NVIDIA.format(clock=clock, power=words[power], heat=words[heat], idle=words[idle], processes=processes)


class Machine:
    """A machine whose programs are scripts, and a process that computes on one of its devices."""

    def __init__(self, folder: Path, device: str = "/dev/nvidia0") -> None:
        self.folder, self.programs, self.proc = folder, folder / "bin", folder / "proc"
        self._looks = 0
        self.programs.mkdir()
        (self.proc / "self" / "fd").mkdir(parents=True)
        (self.proc / "self" / "fd" / "7").symlink_to(device)
        self.variables = {"PATH": f"{self.programs}:/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "GPU-7"}
        self.recording = machine.Recording(self.variables, proc=str(self.proc), system=str(folder / "sys"))

    def program(self, name: str, lines: str) -> None:
        path = self.programs / name
        path.write_text(f'#!/bin/sh\necho $$ >> "{self.folder}/pids"\necho "$@" >> "{self.folder}/calls"\n{lines}\n')
        path.chmod(0o755)

    def prints(self, name: str, text: str) -> None:
        (self.folder / "answer").write_text(text)
        self.program(name, f'cat "{self.folder}/answer"')

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def record(self, seconds: float | None = None) -> dict[str, str]:
        """What is known of a profile; `seconds`: between its ends, default until the programs have ended."""
        self.recording.begin()
        self.wait(seconds)
        self.recording.end()
        self.wait(seconds)
        said = self.recording.take()
        return {name: text for name, text in said.items() if name.startswith("device")}

    def wait(self, seconds: float | None = None) -> None:
        self._looks += 1
        if seconds is not None or not list(self.programs.iterdir()):
            time.sleep(seconds or 0)
        else:
            until(lambda: len(self.calls()) == self._looks and self.is_quiet(), 10)

    def is_quiet(self) -> bool:
        """Whether none of its programs runs."""
        path = self.folder / "pids"
        pids = path.read_text().split() if path.exists() else []
        return not any(_runs(int(pid)) for pid in pids)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture
def gpu(tmp_path) -> Machine:
    return Machine(tmp_path)


def test_a_clock_held_down_by_power_is_recorded(gpu):
    gpu.prints("nvidia-smi", nvidia(1580, power=True))
    assert gpu.record() == {
        "device_throttled": "power", "device_held": "1580 of 1965 MHz by power", "device_clock_mhz": "1580",
        "device_max_clock_mhz": "1965", "device_temperature_celsius": "71", "device_power_watts": "698",
        "device_power_limit_watts": "700",
    }  # fmt: skip


def test_a_free_clock_is_recorded_as_not_throttled(gpu):
    gpu.prints("nvidia-smi", nvidia(1965))
    said = gpu.record()
    assert (said["device_throttled"], said["device_clock_mhz"]) == ("no", "1965")
    assert "device_held" not in said


def test_an_idle_device_says_nothing_of_its_clock(gpu):
    gpu.prints("nvidia-smi", nvidia(345, idle=True))
    said = gpu.record()
    assert not {"device_throttled", "device_clock_mhz", "device_held"} & said.keys()


def test_a_clock_held_in_one_of_two_looks_counts(gpu):
    gpu.prints("nvidia-smi", nvidia(1965))
    gpu.recording.begin()
    gpu.wait()
    gpu.prints("nvidia-smi", nvidia(1200, heat=True))
    gpu.recording.end()
    gpu.wait()
    assert gpu.recording.take()["device_held"] == "1200 of 1965 MHz by temperature"


def test_the_older_words_of_nvidia_smi_are_read():
    text = nvidia(1580, power=True).replace("Event", "Throttle").replace("GPU Power Readings", "Power Readings")
    sample = smi.read_nvidia_smi(text.replace("Instantaneous Power", "Power").replace("Current Power", "Power"))
    assert (sample.held_by, sample.power_watts, sample.power_limit_watts) == (("power",), 698.31, 700.0)


def test_each_rank_asks_for_its_own_device_and_changes_nothing(gpu):
    gpu.prints("nvidia-smi", nvidia())
    gpu.variables["CUDA_VISIBLE_DEVICES"] = "GPU-3"
    gpu.record()
    assert gpu.calls() == ["-q -i GPU-3 -d CLOCK,PERFORMANCE,TEMPERATURE,POWER,PIDS"] * 2


def torch(ordinal: int = 1, **properties) -> dict:
    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        current_device=lambda: ordinal,
        get_device_properties=lambda device: SimpleNamespace(**properties),
    )
    return {"torch": SimpleNamespace(cuda=cuda)}


def asked_device(gpu: Machine, variables: dict, modules: dict) -> str:
    found = smi.questions(variables, modules, proc=str(gpu.proc))
    return found[0].words[3] if found else ""


@pytest.mark.parametrize(
    ("variables", "modules", "device"),
    [
        ({}, torch(uuid="3f"), "GPU-3f"),
        ({"CUDA_VISIBLE_DEVICES": "2,5"}, torch(pci_domain_id=0, pci_bus_id=0x18, pci_device_id=0), "0000:18:00.0"),
        ({"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}, torch(), "GPU-b"),
        ({"CUDA_VISIBLE_DEVICES": "2,5", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, torch(), "5"),
        ({"CUDA_VISIBLE_DEVICES": "2,5"}, torch(), ""),  # of unlike devices CUDA counts the fastest first
        ({"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}, {}, ""),  # one of two
        ({"CUDA_VISIBLE_DEVICES": "MIG-a"}, {}, ""),  # a part of a device
        ({}, {}, ""),
    ],
)
def test_a_device_is_asked_only_where_it_is_known(gpu, variables, modules, device):
    assert asked_device(gpu, variables, modules) == device


def test_numbers_of_equal_devices_mean_the_same_to_both(gpu):
    for number in (0, 1):
        folder = gpu.proc / "driver" / "nvidia" / "gpus" / f"0000:1{number}:00.0"
        folder.mkdir(parents=True)
        (folder / "information").write_text("Model: \t\t NVIDIA H100\nIRQ: 1\n")
    assert asked_device(gpu, {}, torch(ordinal=1)) == "1"


def test_a_job_that_has_no_device_open_asks_nothing(tmp_path):
    cpu = Machine(tmp_path, "/dev/null")
    cpu.prints("nvidia-smi", nvidia(1580, power=True))
    assert (cpu.record(0), cpu.calls()) == ({}, [])


def test_a_process_of_another_job_shares_the_device(gpu):
    parents = {os.getpid(): 50, 50: 1, 60: 50, 70: 1}
    for pid, parent in parents.items():
        (gpu.proc / str(pid)).mkdir()
        (gpu.proc / str(pid) / "stat").write_text(f"{pid} (python (x)) S {parent} 0 0")
    # 60 was started by the launcher of this one, 70 by another
    gpu.prints("nvidia-smi", nvidia(pids=[os.getpid(), 60, 70]))
    said = gpu.record()
    assert (said["device_shared"], said["device_other_processes"]) == ("yes", "1")
    gpu.prints("nvidia-smi", nvidia(pids=[os.getpid(), 60]))
    assert gpu.record()["device_shared"] == "no"
    gpu.prints("nvidia-smi", nvidia(pids=[60, 70]))
    assert "device_shared" not in gpu.record()  # the numbers are of another world
    gpu.prints("nvidia-smi", nvidia(pids=[os.getpid(), 99]))
    assert "device_shared" not in gpu.record()  # as is a process that is not seen here
    (gpu.proc / str(os.getpid()) / "stat").write_text(f"{os.getpid()} (python) S 1 0 0")
    gpu.prints("nvidia-smi", nvidia(pids=[os.getpid(), 60]))
    assert "device_shared" not in gpu.record()  # of the first process are ranks of this job, and all else


BROKEN = {
    "missing": None,
    "garbage": "head -c 300 /dev/urandom",
    "endless": "yes",
    "failing": "echo '    Clocks'; echo '        SM : 1 MHz'; exit 9",
    "silent": "exit 0",
}


@pytest.mark.parametrize("lines", BROKEN.values(), ids=BROKEN)
def test_a_program_without_an_answer_is_left_out(gpu, lines, capfd):
    if lines is not None:
        gpu.program("nvidia-smi", lines)
    assert gpu.record(0.3) == {}
    assert capfd.readouterr() == ("", "")
    until(gpu.is_quiet, 1)


def test_a_slow_program_counts_where_the_profile_takes_longer(gpu):
    gpu.prints("nvidia-smi", nvidia())
    gpu.program("nvidia-smi", f'sleep 0.4; cat "{gpu.folder}/answer"')
    assert gpu.record(0) == {}
    assert gpu.record(1.5)["device_throttled"] == "no"


def shortest(action, times: int = 5) -> float:
    """The shortest of some times, in seconds: other programs of this machine are no part of it."""
    taken = []
    for _ in range(times):
        began = time.monotonic()
        action()
        taken.append(time.monotonic() - began)
    return min(taken)


@pytest.mark.parametrize("lines", ["exec sleep 60", "yes", "sleep 0.4"])
def test_a_program_holds_the_job_for_50_ms_at_most(gpu, lines):
    gpu.program("nvidia-smi", lines)
    assert shortest(gpu.recording.begin) < machine.HELD_S

    def end() -> None:
        gpu.recording.end()
        gpu.recording.take()

    assert shortest(end) < machine.HELD_S
    until(gpu.is_quiet, 1)


def test_a_hanging_program_is_killed_after_2_s(gpu):
    gpu.program("nvidia-smi", "exec sleep 60")
    began = time.monotonic()
    gpu.recording.begin()
    until(lambda: gpu.calls() and gpu.is_quiet(), 10)
    assert machine.ANSWER_S - 0.5 < time.monotonic() - began < machine.ANSWER_S + 5
    gpu.recording.end()
    assert gpu.recording.take().get("device_throttled") is None


def test_the_exit_of_a_job_waits_for_nothing(gpu, tmp_path):
    gpu.program("nvidia-smi", "echo a word; echo a word >&2; exec sleep 60")
    variables = environ(tmp_path, **gpu.variables)
    script = (
        "from tracker_hooks import machine\nimport os, time\n"
        f"machine.recording = machine.Recording(proc={str(gpu.proc)!r})\n"
        "machine.recording.begin()\nmachine.recording.end()\nbegan = time.monotonic()\n"
        f"open('exited', 'w').write(str(time.time()))\n"
    )
    done = in_a_job(script, variables, folder=tmp_path)
    ended = time.time()
    assert (done.out, done.err) == ("", "")
    assert ended - float((tmp_path / "exited").read_text()) < 1.5
    until(gpu.is_quiet, 10)


def test_without_timeout_no_program_is_started(gpu):
    gpu.prints("nvidia-smi", nvidia())
    gpu.variables["PATH"] = str(gpu.programs)
    assert (gpu.record(0), gpu.calls()) == ({}, [])


AMD = {
    "gpu": 0,
    "power": {"socket_power": {"value": 740, "unit": "W"}, "throttle_status": "THROTTLED"},
    "clock": {"gfx_0": {"clk": {"value": 1900, "unit": "MHz"}, "max_clk": {"value": 2100, "unit": "MHz"}}},
    "temperature": {"edge": "N/A", "hotspot": {"value": 88, "unit": "C"}},
}
AMD_SAYS = {
    "device_throttled": smi.UNNAMED, "device_held": f"1900 of 2100 MHz by {smi.UNNAMED}", "device_clock_mhz": "1900",
    "device_max_clock_mhz": "2100", "device_temperature_celsius": "88", "device_power_watts": "740",
}  # fmt: skip


@pytest.fixture
def amd(tmp_path, monkeypatch) -> Machine:
    modules = torch(pci_domain_id=0, pci_bus_id=0x0C, pci_device_id=0)
    monkeypatch.setitem(sys.modules, "torch", modules["torch"])
    return Machine(tmp_path, "/dev/kfd")


@pytest.mark.parametrize("answer", [[AMD], {"gpu_data": [AMD]}])
def test_amd_smi_says_that_a_clock_is_held(amd, answer):
    amd.prints("amd-smi", json.dumps(answer))
    amd.program("rocm-smi", "echo never asked")
    assert amd.record() == AMD_SAYS
    assert amd.calls() == ["metric -g 0000:0c:00.0 -p -c -t --json"] * 2


def test_rocm_smi_says_the_clock_of_the_own_card(amd):
    card = {
        "PCI Bus": "0000:0C:00.0", "sclk clock speed:": "(1700Mhz)", "Temperature (Sensor junction) (C)": "72.0",
        "Current Socket Graphics Package Power (W)": "550.0", "Max Graphics Package Power (W)": "750.0",
    }  # fmt: skip
    amd.prints("rocm-smi", json.dumps({"card0": {"PCI Bus": "0000:AA:00.0"}, "card1": card}))
    assert amd.record() == {
        "device_clock_mhz": "1700", "device_temperature_celsius": "72", "device_power_watts": "550",
        "device_power_limit_watts": "750",
    }  # fmt: skip


NPU = """\
\tNPU ID                         : 1
\tChip Count                     : {chips}

\tChip ID                        : 0
\tAicore Usage Rate(%)           : 92
\tAicore Freq(MHZ)               : 1800
\tAicore curFreq(MHZ)            : 1650
\tTemperature(C)                 : 66
\tNPU Real-time Power(W)         : 331.1

\tChip Name                      : mcu
\tTemperature(C)                 : 38
"""


def test_npu_smi_says_the_clock_of_a_card_with_one_chip(tmp_path):
    npu = Machine(tmp_path, "/dev/davinci1")
    npu.prints("npu-smi", NPU.format(chips=1))
    assert npu.record() == {
        "device_clock_mhz": "1650", "device_max_clock_mhz": "1800", "device_temperature_celsius": "66",
        "device_power_watts": "331",
    }  # fmt: skip
    assert npu.calls() == ["info -t common -i 1"] * 2
    npu.prints("npu-smi", NPU.format(chips=2))
    assert npu.record() == {}


def test_a_control_group_that_waited_for_its_share_is_throttled(gpu):
    (gpu.proc / "self" / "cgroup").write_text("0::/job\n")
    stat = gpu.folder / "sys" / "fs" / "cgroup" / "job" / "cpu.stat"
    stat.parent.mkdir(parents=True)
    stat.write_text("usage_usec 9\nnr_throttled 1\nthrottled_usec 1000\n")
    gpu.recording.begin()
    assert gpu.recording.take()["cpu_throttled"] == "no"
    stat.write_text("usage_usec 9\nnr_throttled 7\nthrottled_usec 9043000\n")
    said = gpu.recording.take()
    assert (said["cpu_throttled"], said["cpu_throttled_ms"]) == ("yes", "9042")


def test_load_pressure_and_governor_are_read_from_files(gpu):
    cores = gpu.folder / "sys" / "devices" / "system" / "cpu"
    for core in os.sched_getaffinity(0):
        folder = cores / f"cpu{core}" / "cpufreq"
        folder.mkdir(parents=True)
        for name, text in (("governor", "powersave"), ("cur_freq", "2100000"), ("max_freq", "3800000")):
            (folder / f"scaling_{name}").write_text(text + "\n")
    (gpu.proc / "loadavg").write_text("14.20 9.00 4.00 3/900 1\n")
    (gpu.proc / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C\n")
    (gpu.proc / "pressure").mkdir()
    (gpu.proc / "pressure" / "cpu").write_text("some avg10=12.50 avg60=3.00 avg300=1.00 total=1\n")
    assert gpu.recording.take() == {
        "cpu": "Intel Xeon Platinum 8480C", "cpu_governor": "powersave", "cpu_clock_mhz": "2100",
        "cpu_max_clock_mhz": "3800", "load": "14.20", "cpu_pressure_percent": "12.50",
    }  # fmt: skip


def test_a_watched_schedule_looks_while_steps_are_recorded(monkeypatch):
    looks = []
    noted = SimpleNamespace(begin=lambda: looks.append("begin"), end=lambda: looks.append("end"))
    monkeypatch.setattr(machine, "recording", noted)
    names = ["NONE", "WARMUP", "RECORD", "RECORD", "RECORD_AND_SAVE", "NONE", "RECORD_AND_SAVE"]
    schedule = machine.watched(lambda step: SimpleNamespace(name=names[step]))
    for step, name in enumerate(names):
        assert schedule(step).name == name
        looks.append(step)
    assert looks == [0, 1, "begin", 2, 3, "end", 4, 5, "begin", 6]


def test_what_a_machine_can_say_is_allowed_in_a_sidecar():
    assert {*machine.STATES, *machine.NUMBERS} <= FACTS
