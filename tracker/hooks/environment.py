"""What a job can say of itself: versions, commit, host, job, rank, and the variables that change its speed.

Nothing here starts a program but `ask_git`, imports a framework that the job has not imported, or waits. All values
are numbers and short words; of variables only those of VARIABLES are looked at, so that no secret is ever read.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from typing import Any, Callable, Mapping

from . import spool

VARIABLES = (
    # how kernels are launched and memory is handed out
    "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING", "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
    "TORCHDYNAMO_DISABLE", "HIP_LAUNCH_BLOCKING", "GPU_MAX_HW_QUEUES",
    # threads
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "KMP_AFFINITY", "KMP_BLOCKTIME",
    # collectives
    "NCCL_ALGO", "NCCL_PROTO", "NCCL_NTHREADS", "NCCL_BUFFSIZE", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS",
    "NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_NET_GDR_LEVEL", "NCCL_P2P_LEVEL", "NCCL_DEBUG",
    # Ascend; torch_npu writes the same ones into its profiles
    "ASCEND_GLOBAL_LOG_LEVEL", "ASCEND_LAUNCH_BLOCKING", "ASCEND_ENHANCE_ENABLE", "ACLNN_CACHE_LIMIT",
    "HOST_CACHE_CAPACITY", "HCCL_ALGO", "HCCL_RDMA_TC", "HCCL_RDMA_SL", "PYTORCH_NPU_ALLOC_CONF", "TASK_QUEUE_ENABLE",
    "CPU_AFFINITY_CONF", "COMBINED_ENABLE", "MULTI_STREAM_MEMORY_REUSE",
    # Paddle
    "FLAGS_allocator_strategy", "FLAGS_cudnn_deterministic", "FLAGS_cudnn_exhaustive_search",
    "FLAGS_fraction_of_gpu_memory_to_use", "FLAGS_use_cinn",
)  # fmt: skip
"""The variables that become facts, under their own names."""

FACTS = (
    "job_id", "git_commit", "git_dirty", "image", "framework", "python_version", "torch_version", "torch_npu_version",
    "mindspore_version", "paddle_version", "cuda_version", "hip_version", "cudnn_version", "nccl_version",
    "cann_version", "driver_version", "npu_driver_version",
)  # fmt: skip
"""The other facts that a job can say."""

_JOBS = (
    "TRACKER_JOB_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID", "GITHUB_RUN_ID",
    "CI_JOB_ID",
)  # fmt: skip
_RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"),
    ("RANK_ID", "RANK_SIZE"),
    # only srun sets the second: the script of a batch job is no rank, whatever SLURM_NTASKS says
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""Pairs of rank and world size; a pair of which one is missing says nothing."""

_IMAGES = ("TRACKER_IMAGE", "SLURM_CONTAINER_IMAGE", "APPTAINER_NAME", "SINGULARITY_NAME", "NVIDIA_PYTORCH_VERSION")
_WORD = re.compile(r"[\w.,:;+/= -]{1,120}")
_NVIDIA = re.compile(r"(?:Kernel Module(?: for \S+)?|Module)\s+(\d+\.\d+(?:\.\d+)?)")
_VERSION_LINE = re.compile(r"^\s*[Vv]ersion\s*=\s*\[?([\w.]+)", re.MULTILINE)
_CANN_HOMES = ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH")
GIT_READ_ONLY = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
"""Variables of a git that refreshes no index on the way, fetches nothing into a partial clone, and asks nobody."""
OF_REPOSITORY = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE",
)  # fmt: skip
"""Variables that say which repository it is, as git sets them for its hooks."""


def word(value: object) -> str:
    """Numbers and short words as text, '' for anything else: a long text can hold secrets."""
    text = str(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else ""
    return text if _WORD.fullmatch(text) else ""


def facts(environ: Mapping[str, str], modules: Mapping[str, Any] | None = sys.modules) -> dict[str, str]:
    """The environment of the job, but its commit; what is not known has no key.

    `modules`: what the job has imported; None where the job is another process, and its Python not known.
    """
    said: dict[str, object] = {
        "job_id": job_id(environ),
        "image": _first(environ, _IMAGES),
        "python_version": None if modules is None else platform.python_version(),
        "driver_version": _found(_NVIDIA, "/proc/driver/nvidia/version"),
        "npu_driver_version": _found(_VERSION_LINE, "/usr/local/Ascend/driver/version.info"),
        "cann_version": _cann(environ),
    }
    said.update(_frameworks(modules or {}))
    said.update((name, environ.get(name)) for name in VARIABLES)
    return {name: text for name, value in said.items() if (text := word(value))}


def job_id(environ: Mapping[str, str]) -> str | None:
    """What the scheduler calls this job, the same on all of its ranks; None where none says."""
    return _first(environ, _JOBS)


def host() -> str:
    """The name of this machine, '' for one that makes no word, or has none."""
    return word(_asked(spool.host_name))


def rank_and_world_size(
    environ: Mapping[str, str], modules: Mapping[str, Any] = sys.modules
) -> tuple[int | None, int | None]:
    """Which process of how many this is: as torch.distributed says, else the launcher's variables; else None."""
    asked: tuple[int, int] | None = _asked(lambda: _of_torch(modules))
    if asked is not None:
        return asked
    for rank, size in _RANKS:
        if environ.get(rank, "").isdecimal() and environ.get(size, "").isdecimal():
            return int(environ[rank]), int(environ[size])
    return None, None


def capture_git(folders: list[str], timeout_s: float) -> dict[str, str]:
    """`version` (git describe --always --dirty), `git_commit`, `git_dirty` of the first of `folders` that git knows.

    Empty where it knows none, is not installed or does not answer in time. A git that hangs is killed and not waited
    for: on a dead file system even that would take forever.
    """
    for folder in folders:
        version = ask_git(folder, ["describe", "--always", "--dirty"], timeout_s)
        commit = ask_git(folder, ["rev-parse", "HEAD"], timeout_s) if version else ""
        if version and commit:
            dirty = "yes" if version.endswith("-dirty") else "no"
            return {"version": version, "git_commit": commit, "git_dirty": dirty}
    return {}


def ask_git(
    folder: str, words: list[str], timeout_s: float, *, as_it_is: bool = False, ignores_variables: bool = False
) -> str:
    """Return what git prints, "" where it fails or takes too long, and for what is no short word unless `as_it_is`.

    `ignores_variables`: ask about the repository of `folder` even where variables name another one.
    """
    environ = dict(os.environ)
    environ.update(GIT_READ_ONLY)
    for variable in OF_REPOSITORY if ignores_variables else ():
        environ.pop(variable, None)
    try:
        asked = subprocess.Popen(
            ["git", "-C", folder, "-c", "core.fsmonitor=false", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environ,
        )
    except (OSError, ValueError):  # ValueError: a NUL in a word
        return ""
    try:
        out, _ = asked.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        asked.kill()
        return ""
    if asked.returncode != 0:
        return ""
    text = out.decode("utf-8", "replace").strip()
    return text if as_it_is else word(text)


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)


def _frameworks(modules: Mapping[str, Any]) -> dict[str, object]:
    """Versions of the frameworks that the job has imported."""
    torch, npu = modules.get("torch"), modules.get("torch_npu")
    mindspore, paddle = modules.get("mindspore"), modules.get("paddle")
    said: dict[str, object] = {
        "torch_version": _asked(lambda: str(torch.__version__)) if torch else None,
        "torch_npu_version": _asked(lambda: str(npu.__version__)) if npu else None,
        "mindspore_version": _asked(lambda: str(mindspore.__version__)) if mindspore else None,
        "paddle_version": _asked(lambda: str(paddle.__version__)) if paddle else None,
    }
    if torch:
        said["cuda_version"] = _asked(lambda: torch.version.cuda)
        said["hip_version"] = _asked(lambda: torch.version.hip)
        if said["cuda_version"]:
            said["cudnn_version"] = _asked(torch.backends.cudnn.version)
            said["nccl_version"] = _asked(lambda: ".".join(str(part) for part in torch.cuda.nccl.version()))
    elif paddle:
        said["framework"] = "paddle"
        said["cuda_version"] = _asked(lambda: {"False": None}.get(str(paddle.version.cuda()), paddle.version.cuda()))
        said["cudnn_version"] = _asked(lambda: {"False": None}.get(str(paddle.version.cudnn()), paddle.version.cudnn()))
    return said


def _of_torch(modules: Mapping[str, Any]) -> tuple[int, int] | None:
    torch = modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    return int(torch.distributed.get_rank()), int(torch.distributed.get_world_size())


def _asked(question: Callable[[], Any]) -> Any:
    """What a framework answers; None where this one of its many versions cannot be asked so."""
    try:
        return question()
    except Exception:  # noqa: BLE001 an answer that is missing is no reason to disturb a job
        return None


def _cann(environ: Mapping[str, str]) -> str | None:
    """The version of CANN, of the file that its installer leaves."""
    for variable in _CANN_HOMES:
        home = environ.get(variable, "")
        for name in ("ascend_toolkit_install.info", platform.machine() + "-linux/ascend_toolkit_install.info"):
            found = _found(_VERSION_LINE, os.path.join(home, name)) if home else None
            if found:
                return found
    return None


def _found(pattern: re.Pattern[str], path: str) -> str | None:
    """What `pattern` finds in the first 4 KiB of a file; None where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = pattern.search(file.read(4096))
    except OSError:
        return None
    return found.group(1) if found else None
