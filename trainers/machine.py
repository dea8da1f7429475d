"""What a program runs on, in words."""

import os
import platform

import tensorflow as tf


def processor() -> str:
    """Names the processor and how many of it there are."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = [line for line in file if line.startswith("model name")]
    except OSError:
        lines = []
    if not lines:
        return platform.processor() or platform.machine()
    return f"{len(lines)} × {lines[0].partition(':')[2].strip()}"


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
