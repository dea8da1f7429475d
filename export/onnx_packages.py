"""Whether the packages that ONNX needs are there; imports none of them."""

import importlib.util

# What writes a file, and what runs it.
TO_WRITE = ("tf2onnx", "onnxruntime")
TO_RUN = ("onnxruntime",)


def missing(packages: tuple[str, ...]) -> list[str]:
    """Returns which of some packages are not installed."""
    return [name for name in packages if not importlib.util.find_spec(name)]


def check_installed(packages: tuple[str, ...]) -> None:
    """Refuses what needs packages of which one is missing."""
    absent = missing(packages)
    if absent:
        raise ValueError(
            f"ONNX needs {' and '.join(packages)}. Received: an environment "
            f"without {' and '.join(absent)}. Try "
            "`pip install '.[onnx]'`."
        )
