"""What a program runs on, in words."""

import os
import platform

import tensorflow as tf


def processor() -> str:
    """Names the processor and how many of it there are."""
    names = _cpu_info("model name")
    if not names:
        return platform.processor() or platform.machine()
    return f"{len(names)} × {names[0]}"


def bfloat16_is_slow() -> bool:
    """Whether there is only a CPU, known not to multiply bfloat16."""
    flags = _cpu_info("flags")
    return (
        bool(flags)
        and not {"avx512_bf16", "amx_bf16"} & set(flags[0].split())
        and not tf.config.list_physical_devices("GPU")
    )


def _cpu_info(field):
    """A field of /proc/cpuinfo for every processor; none elsewhere."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = [line.partition(":") for line in file]
    except OSError:
        return []
    return [value.strip() for name, _, value in lines if name.strip() == field]


def describe() -> str:
    """Names what computes here: GPUs, if any, and the processor."""
    gpus = [
        tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")
        for gpu in tf.config.list_physical_devices("GPU")
    ]
    return ", ".join([*gpus, processor()])


def load_per_core() -> float:
    """How many processes wanted each core in the last five minutes."""
    return os.getloadavg()[1] / (os.cpu_count() or 1)
