"""The working side of a `Child`: answers tasks until its program is gone.

python -m trainers.runs.task_server MODULE:CLASS
"""

import contextlib
import importlib
import json
import os
import pathlib
import queue
import sys
import threading
from typing import Any, TextIO

from trainers.tensorflow_start import start_tensorflow


def serve(worker: Any) -> None:
    """Answers tasks, each with what `worker.answer` returns."""
    # What libraries print must not look like an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Where memory runs out, this process goes, not the one that waits for it.
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
    tasks: queue.Queue = queue.Queue()
    threading.Thread(target=_listen, args=(sys.stdin, tasks)).start()
    while True:
        answers.write(json.dumps(worker.answer(tasks.get())) + "\n")
        answers.flush()


def _listen(lines: TextIO, tasks: queue.Queue):
    for line in lines:
        tasks.put(json.loads(line))
    # The program is gone, perhaps killed: train no orphan.
    os._exit(0)


def main(name: str) -> None:
    """Serves with an instance of a class."""
    start_tensorflow()
    import tensorflow as tf

    # Every run has functions of its own, of which TensorFlow warns.
    tf.get_logger().setLevel("ERROR")
    module, _, kind = name.partition(":")
    serve(getattr(importlib.import_module(module), kind)())


if __name__ == "__main__":
    main(sys.argv[1])
