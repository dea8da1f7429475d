"""A process that does the work of another program, task after task.

It is apart from the program, so that the out-of-memory killer or a crash costs
one task. It reads tasks as lines of JSON and answers each with one.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
from typing import Any, TextIO

import tensorflow as tf

from trainers.recipe import Recipe
from trainers.runs.folder import RunFolder

RESULT = "result.json"
_COMMAND = (sys.executable, "-m", "trainers.study.trainer")
# TensorFlow takes seconds to start, so a process is kept for the next run; but
# a run leaves 50 MiB or more behind, so it trains no longer than this in all.
_KEEP_SECONDS = 60
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def read_result(folder: RunFolder) -> dict[str, Any] | None:
    """Returns what a run left, or None where it is not over."""
    path = folder.path / RESULT
    return json.loads(path.read_text()) if path.exists() else None


class Child:
    """The program's end of the process; another one follows when it dies.

    Args:
        command: What to start.
    """

    def __init__(self, command: tuple[str, ...] = _COMMAND):
        self._command = command
        self._process: subprocess.Popen | None = None
        self._trained = 0.0

    def check(self, recipe: Recipe) -> None:
        """Refuses a recipe that cannot be trained, before any run."""
        reply = self.ask({"recipe": dataclasses.asdict(recipe)})
        if reply is None:
            raise ValueError(
                "The network of this recipe must fit into memory. Received: "
                f"variant={recipe.variant}, which ended its process "
                f"({self.cause()}) when it was built."
            )
        if "refusal" in reply:
            raise ValueError(reply["refusal"])

    def run(self, recipe: Recipe, folder: RunFolder) -> dict[str, Any]:
        """Trains, or takes up what is in the folder; returns the result."""
        result = read_result(folder)
        if result is not None:
            return result
        task = {
            "recipe": dataclasses.asdict(recipe),
            "run_dir": str(folder.path),
        }
        fresh = self._trained == 0
        result = self.ask(task)
        if result is None and not fresh:
            # Perhaps the runs before this one took the memory.
            self.close()
            result = self.ask(task)
        if result is None:
            result = {"failed": "died", "reason": self.cause()}
            folder.write_json(folder.path / RESULT, result)
        self._trained += result.get("seconds", 0)
        if "failed" in result or self._trained > _KEEP_SECONDS:
            self.close()
        return result

    def ask(self, task: dict[str, Any]) -> dict[str, Any] | None:
        """Returns the answer, or None where the process died over it."""
        process = self._running()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
        answer = process.stdout.readline()
        if answer.endswith("\n"):
            reply = json.loads(answer)
            if "stopped" in reply:
                raise KeyboardInterrupt
            return reply
        if -process.wait() in _STOPS:
            raise KeyboardInterrupt
        return None

    def _running(self):
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                # Ctrl-C reaches the program, which ends this process itself.
                start_new_session=True,
            )
        return self._process

    def cause(self) -> str:
        """Says why the process died."""
        code = self._process.returncode
        if code == -signal.SIGKILL:
            return "killed, most likely because memory ran out (SIGKILL)"
        if code < 0:
            return f"crashed with {signal.Signals(-code).name}"
        return f"its process ended with code {code}"

    def close(self) -> None:
        """Ends the process; a run under way is saved first."""
        process, self._process, self._trained = self._process, None, 0.0
        if process is None:
            return
        process.terminate()
        # A run under way answers when it is saved; without stdin it would
        # not even do that.
        process.stdout.readline()
        process.communicate()


def serve(trainer: Any) -> None:
    """Answers tasks until the program is gone."""
    # What libraries print must not look like an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # Where memory runs out, this process goes, not the one that waits for it.
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
    # Every run has functions of its own, which TensorFlow takes for an error.
    tf.get_logger().setLevel("ERROR")
    tasks: queue.Queue = queue.Queue()
    threading.Thread(target=_listen, args=(sys.stdin, tasks)).start()
    while True:
        answers.write(json.dumps(trainer.answer(tasks.get())) + "\n")
        answers.flush()


def _listen(lines: TextIO, tasks: queue.Queue):
    for line in lines:
        tasks.put(json.loads(line))
    # The program is gone, perhaps killed: train no orphan.
    os._exit(0)
