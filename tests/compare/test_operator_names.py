"""Two builds of a compiled model, and two versions of an inference engine, from traces to verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.factories import EPOCH_NS
from tests.readers import traces
from tracker import intake
from tracker.compare import diff
from tracker.store import Store

SPREAD = (1.0, 1.002, 0.998)
HASHES = {letter: f"f{letter * 48}77" for letter in "ab"}


def wait(start: float, end: float) -> dict:
    """The host waits from `start` until the device is done at `end`."""
    return traces.op("cudaStreamSynchronize", start, round(end + 5 - start, 3), cat="cuda_runtime")


def compiled(hash_of_graph: str, region: str, first_number: int, kernels: Mapping[str, float]) -> list[dict]:
    """Four steps of 2,000 us: one region calls one graph, whose Triton kernels count from `first_number`."""
    events = []
    for step in range(4):
        start = step * 2000.0
        events += [
            traces.step(step, start, 2000),
            traces.op(f"Torch-Compiled Region: {region}", start + 1, 500),
            traces.op(f"## Call CompiledFxGraph {hash_of_graph} ##", start + 2, 490),
        ]
        now = start + 20
        for place, (base, took) in enumerate(kernels.items()):
            correlation = step * 10 + place + 1
            name = f"{base}_{first_number + place * 3}"
            events += [
                traces.op(name, start + 10 + place * 20, 10),
                traces.launch(correlation, start + 12 + place * 20, 2),
                traces.kernel(name, round(now, 3), took, correlation),
            ]
            now += took
        events.append(wait(start + 600, now))
    return events


def engine(first_size: int, kernels: Mapping[str, float]) -> list[dict]:
    """Six steps, each one graph launch in a range with the sizes of its batch, which grow from step to step."""
    events = []
    for step in range(6):
        start, size = step * 2000.0, first_size + 32 * step
        mark = f"execute_32_context_0(sq0sk0)_generation_32(sq32sk{size}sqsq32)"
        events.append(traces.op(mark, start, 1990, cat="user_annotation"))
        events.append(traces.op("aten::argmax", start + 1, 5))
        events.append(traces.launch(step + 1, start + 10, 5, name="cudaGraphLaunch"))
        now = start + 30
        for name, took in kernels.items():
            events.append(traces.kernel(name, round(now, 3), took, step + 1))
            now += took
        events.append(wait(start + 20, now))
    return events


def times(noise: float, **kernels: float) -> dict[str, float]:
    return {name: round(took * noise, 3) for name, took in kernels.items()}


def ingest(store: Store, folder: Path, version: str, runs: list[list[dict]]) -> None:
    (folder / version).mkdir()
    paths = []
    for number, events in enumerate(runs):
        base_ns = EPOCH_NS + (number + 10 * ord(version)) * 10**12
        name = f"run{number}.pt.trace.json"
        paths.append(traces.write(folder / version, events, name=name, baseTimeNanoseconds=base_ns))
    intake.ingest(store, paths, version=version, workload="w")


def test_other_numbers_and_hashes_are_the_same_operators(store: Store, tmp_path: Path):
    """The layer norm takes 585 for 450 us; another kernel came in front, and the graph has another hash."""
    usual = {"triton_poi_fused_add": 600.0, "triton_red_fused_norm": 450.0}
    slower = usual | {"triton_red_fused_norm": 585.0}
    ingest(store, tmp_path, "a", [compiled(HASHES["a"], "0/0", 1, times(noise, **usual)) for noise in SPREAD])
    ingest(store, tmp_path, "b", [compiled(HASHES["b"], "2/1", 4, times(noise, **slower)) for noise in SPREAD])
    found = diff(store, "a", "b")
    assert set(found.ops["status"]) == {"both"}
    verdicts = dict(zip(found.ops["name"], found.ops["verdict"], strict=True))
    assert verdicts["triton_red_fused_norm"] == "REGRESSED"
    assert verdicts["triton_poi_fused_add"] == "UNCHANGED"


def test_engine_whose_marks_hold_sizes_is_compared_by_kernels(store: Store, tmp_path: Path):
    """Attention takes 576 for 480 us; what marks the steps is nobody's operator."""
    usual = {"attention": 480.0, "experts": 900.0}
    slower = usual | {"attention": 576.0}
    ingest(store, tmp_path, "a", [engine(55_000 + place, times(noise, **usual)) for place, noise in enumerate(SPREAD)])
    ingest(store, tmp_path, "b", [engine(56_000 + place, times(noise, **slower)) for place, noise in enumerate(SPREAD)])
    found = diff(store, "a", "b")
    assert set(found.ops["name"]) == {"(no op)", "aten::argmax"}
    verdicts = dict(zip(found.kernels["name"], found.kernels["verdict"], strict=True))
    assert verdicts == {"attention": "REGRESSED", "experts": "UNCHANGED"}
