"""Captures of dynamic profiling of MindSpore, written row by row: a folder for a window of the steps of a run.

The layout is that of MindSpore's page of its profiler: `rank0_start2_stop5`, a folder of the process in it, and tables
in that. Inside of a window the profiler counts from its own first step.
"""

from __future__ import annotations

from pathlib import Path

START_US = 1_790_000_000_000_000
STEP_US = 1_000
_HEADER = (
    "Step ID,Device_id,Task ID,Stream ID,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Num,Input Shapes,Input Data Types,Input Formats"
)


def write_window(
    place: Path, first: int, last: int, *, rank: int = 0, inside: tuple[int, ...] | None = None, process: int = 4100
) -> Path:
    """Write the window of steps `first` to `last` of a run, and return its folder.

    Step s of the run begins s ms after its start, and computes for 600 us (MatMul) and 100 us (Add) on the device.
    inside: the numbers that the steps have in the file, from 1 on where None; () for a table that names no step.
    """
    window = place / f"rank{rank}_start{first}_stop{last}"
    output = window / f"node-3_{process + rank}_2026093000000{first:04d}_ascend_ms" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    numbers = range(1, last - first + 2) if inside is None else inside
    names = [str(number) for number in numbers] or ["N/A"] * (last - first + 1)
    rows = []
    for position, step in enumerate(names):
        start = START_US + (first + position) * STEP_US + rank
        for task, (name, start_us, lasting_us) in enumerate((("MatMul", start, 600), ("Add", start + 700, 100))):
            kernel = f"Default/network-Net/{name}-op{task}"
            rows.append(
                f'{step},{rank},{task},2,{kernel},{name},AI_CORE,"{start_us}.000\t",{lasting_us},0,8,N/A,N/A,N/A'
            )
    (output / "kernel_details.csv").write_text("\n".join([_HEADER, *rows]) + "\n", encoding="utf-8")
    (output / "memory_record.csv").write_text(
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Device Type\n"
        f"MindSpore,{START_US + first * STEP_US}.000,1.024,2.048,1.024,NPU:{rank}\n",
        encoding="utf-8",
    )
    return window
