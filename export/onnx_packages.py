"""Whether the packages that ONNX needs are there; imports none of them."""

import importlib.util

# What writes a file, and what runs it.
TO_WRITE = ("tf2onnx", "onnxruntime")
TO_RUN = ("onnxruntime",)


def check_installed(packages: tuple[str, ...]) -> None:
    """Refuses what needs packages of which one is missing."""
    missing = [name for name in packages if not importlib.util.find_spec(name)]
    if missing:
        raise ValueError(
            f"ONNX needs {' and '.join(packages)}. Received: an environment "
            f"without {' and '.join(missing)}. Try "
            "`pip install '.[onnx]'`."
        )
