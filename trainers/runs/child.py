"""A process that does the work of another program, task after task.

It is apart from the program, so that the out-of-memory killer or a crash costs
one task. It reads tasks as lines of JSON and answers each with one; its own end
is `trainers.runs.task_server`.
"""

import contextlib
import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from trainers.files import write_json
from trainers.recipe import Recipe
from trainers.runs.folder import RunFolder, read_result

# TensorFlow takes seconds to start, so a process is kept for the next run; but
# a run leaves 50 MiB or more behind, so it trains no longer than this in all.
_KEEP_SECONDS = 60
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def worker_command(worker: str) -> tuple[str, ...]:
    """Returns what starts a process for tasks.

    Args:
        worker: The class that answers them, MODULE:CLASS.
    """
    return (sys.executable, "-m", "trainers.runs.task_server", worker)


class Child:
    """The program's side of the process; if it dies, another is started.

    Args:
        command: What to start, see `worker_command`.
        log: Where the numbers of runs go besides their folders.
    """

    def __init__(self, command: tuple[str, ...], log: Sequence[str] = ()):
        self._command = command
        self._log = list(log)
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
        """Trains, or resumes what is in the folder; returns the result."""
        result = read_result(folder)
        if result is not None:
            return result
        task = {
            "recipe": dataclasses.asdict(recipe),
            "run_dir": str(folder.path),
            "log": self._log,
        }
        fresh = self._trained == 0
        result = self.ask(task)
        if result is None and not fresh:
            # Perhaps the runs before this one took the memory.
            self.close()
            result = self.ask(task)
        if result is None:
            result = {"failed": "died", "reason": self.cause()}
            write_json(folder.result, result)
        if "refusal" in result:
            raise ValueError(result["refusal"])
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
