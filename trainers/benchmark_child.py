"""The process that measures one task of a benchmark, and then is gone.

So every network starts with the memory of a fresh process, and one that runs
out of it takes nothing else along.
"""

import dataclasses
import sys
from typing import Any

from trainers.benchmark_parts import PARTS, measure_products
from trainers.run_child import failure, serve

COMMAND = (sys.executable, "-m", "trainers.benchmark_child")


class Measurer:
    """Measures in this process."""

    def answer(self, task: dict[str, Any]) -> dict[str, Any]:
        """Returns what a task gave, or why it came to nothing.

        Args:
            task: The name of its `part`, and the arguments that go there.
        """
        arguments = {k: v for k, v in task.items() if k != "part"}
        try:
            if task["part"] == "products":
                return {"products": measure_products(**arguments)}
            found = PARTS[task["part"]](**arguments)
            return {"measurements": [_plain(m) for m in found]}
        except Exception as trouble:  # whatever it was, the program goes on
            return failure(trouble)


def _plain(measurement):
    """Turns NumPy's numbers into Python's, for JSON."""
    fields = dataclasses.asdict(measurement)
    for name in ("seconds", "product_seconds"):
        fields[name] = [round(float(s), 9) for s in fields[name]]
    return fields


if __name__ == "__main__":
    serve(Measurer())
