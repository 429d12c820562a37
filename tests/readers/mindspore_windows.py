"""Captures of dynamic profiling of MindSpore, written row by row: a folder for a window of the steps of a run.

The layout is that of MindSpore's page of its profiler: `rank0_start2_stop5`, a folder of the process in it, and tables
in that. Inside of a window the profiler counts from its own first step.
"""

from __future__ import annotations

from pathlib import Path

OPERATIONS = """Operation,Stage,Occurrences,Avg. time(us),Custom Info
MindRecord,Read,40,50.0,
Map,Decode,40,{map_us},
Batch,Collect,10,20.0,per 4 rows
"""
"""dataset.csv: 40 x 50, 40 x `map_us` and 10 x 20 us."""
SAMPLES = """op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,\
output_queue_usage_rate,sample_interval,parent_id,children_id
0,DeviceQueueOp,,,,,,10,,[1]
1,BatchOp,2,"{batch}",{mean},16,{mean},10,0,[2]
2,MapOp,4,"[8, 8, 8, 8]",8,16,0.5,10,1,[3]
3,MapOp,1,"[1, 3]",2,16,0.125,10,2,
"""
"""minddata_pipeline_raw_0.csv: the queue behind Batch is the one to the device; two operations are called Map."""
SUMMARY = """op_ids,0,1,2,3
op_names,DeviceQueue,Batch,Map,Map
num_workers,-1,2,4,1
queue_average_size,-1,{mean},8,2
queue_empty_freq_pct,-1,{empty},0,0
avg_cpu_pct,-1,12.5,40,3
parent_id,-1,0,1,2
per_pipeline_time,1.5
"""
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


def write_pipeline(window: Path, *, batch: tuple[int, ...], map_us: float = 150.0) -> Path:
    """Write the data pipeline of the capture in a window, and return the folder of its tables.

    batch: the sizes of the queue behind Batch, 10 ms apart. map_us: of a call of Map.
    """
    (output,) = window.glob("*/ASCEND_PROFILER_OUTPUT")
    mean, empty = sum(batch) / len(batch), 100 * batch.count(0) / len(batch)
    (output / "dataset.csv").write_text(OPERATIONS.format(map_us=map_us), encoding="utf-8")
    samples = SAMPLES.format(batch=list(batch), mean=mean)
    (output / "minddata_pipeline_raw_0.csv").write_text(samples, encoding="utf-8")
    (output / "minddata_pipeline_summary_0.csv").write_text(SUMMARY.format(mean=mean, empty=empty), encoding="utf-8")
    return output
