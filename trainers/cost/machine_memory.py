"""How much memory this machine can give, and how much a process took."""

import os
import pathlib
import resource
import subprocess
import sys
from typing import NamedTuple

import tensorflow as tf

_CGROUPS = (
    # Limit, use and statistics of a container: cgroup v2, then v1.
    ("memory.max", "memory.current", "memory.stat"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
    ),
)


class Memory(NamedTuple):
    """Available bytes, and where."""

    free_bytes: int
    place: str


def available_memory() -> Memory:
    """Returns the free memory of the smallest GPU, or else of the machine.

    A container's limit counts where it is the lower one.
    """
    gpus = _free_on_gpus()
    if gpus:
        return Memory(min(gpus), "on the GPU")
    free = min([_free_on_machine(), *_free_in_container()])
    return Memory(free, "on this machine")


def peak_memory() -> int:
    """Returns the peak memory of this process, in bytes.

    Not `ru_maxrss`, where there is something better: a process inherits it
    from the one that started it.
    """
    status = pathlib.Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 2**10
    unit = 1 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _free_on_gpus():
    if not tf.config.list_physical_devices("GPU"):
        return []
    query = ["nvidia-smi", "--query-gpu=memory.free"]
    try:
        answer = subprocess.run(
            [*query, "--format=csv,noheader,nounits"],
            capture_output=True,
            check=True,
            text=True,
            timeout=20,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [int(line) * 2**20 for line in answer.split()]


def _free_on_machine():
    status = pathlib.Path("/proc/meminfo")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 2**10
    # Not Linux: take all of it.
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _free_in_container(root=pathlib.Path("/sys/fs/cgroup")):
    free = []
    for limit, use, statistics in _CGROUPS:
        try:
            limit, use, statistics = (
                (root / name).read_text() for name in (limit, use, statistics)
            )
        except OSError:
            continue
        if limit.strip() == "max":
            continue
        # Files that were read stay in memory until it is needed.
        cache = dict(line.split() for line in statistics.splitlines())
        inactive = int(cache.get("inactive_file", 0))
        free.append(int(limit) - int(use) + inactive)
    return free
