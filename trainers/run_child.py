"""The process that trains the runs of another program, one after the other.

It is apart from the program, so that the out-of-memory killer or a crash costs
one run. It reads tasks as lines of JSON and answers each with one.
"""

import contextlib
import dataclasses
import gc
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
from typing import Any, TextIO

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.data import load
from trainers.loop import Diverged, Loop
from trainers.recipe import Recipe, make_recipe
from trainers.run_folder import RunFolder, agreement_losses
from trainers.runs import start_from

RESULT = "result.json"
_COMMAND = (sys.executable, "-m", "trainers.run_child")
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


def serve(trainer: "Trainer") -> None:
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


class Trainer:
    """Trains in this process; keeps the data set for the next run."""

    def __init__(self):
        self._loaded = None

    def answer(self, task: dict[str, Any]) -> dict[str, Any]:
        """Trains a recipe in `run_dir`; without one, checks the recipe."""
        try:
            if "run_dir" not in task:
                return self._check(task["recipe"])
            folder = RunFolder(task["run_dir"])
            with folder.locked():
                return self._run(make_recipe(task["recipe"]), folder)
        finally:
            keras.backend.clear_session()
            gc.collect()

    def _check(self, fields):
        try:
            self.loop(make_recipe(fields), None)
        except (ValueError, OSError) as refusal:
            return {"refusal": str(refusal)}
        return {}

    def _run(self, recipe, folder):
        recipe.save(folder.config)
        try:
            loop = self.loop(recipe, folder)
            if not loop.run():
                return {"stopped": True}
            result = self.result(loop)
        except Exception as trouble:  # whatever it was, the program goes on
            result = failure(trouble)
        folder.write_json(folder.path / RESULT, result)
        folder.clean_checkpoints()
        return result

    def loop(self, recipe: Recipe, folder: RunFolder | None) -> Loop:
        """Returns the loop of a recipe, ready to run."""
        loop = Loop(
            recipe,
            self._dataset(recipe),
            folder,
            callbacks=self.callbacks(recipe, folder),
            quiet=True,
        )
        if recipe.init_from:
            start_from(loop.model, recipe.init_from)
        return loop

    def callbacks(
        self, recipe: Recipe, folder: RunFolder | None
    ) -> list[keras.callbacks.Callback]:
        """Returns what watches a run."""
        return []

    def result(self, loop: Loop) -> dict[str, Any]:
        """Returns what a finished run gave."""
        return validation_result(loop)

    def _dataset(self, recipe):
        key = (recipe.dataset, recipe.data_dir, recipe.image_size)
        if self._loaded is None or self._loaded[0] != key:
            name, data_dir, image_size = key
            self._loaded = key, load(name, data_dir, image_size=image_size)
        return self._loaded[1]


def validation_result(loop: Loop) -> dict[str, Any]:
    """Says what a finished run gave on the data it was selected on."""
    refuse_bad_weights(loop.model)
    history = loop.state.history
    losses = agreement_losses(history[-1]).values()
    return {
        "validation_error": loop.validation_error,
        "validation_images": loop.validation.num_examples,
        "agreement_loss": sum(losses) if losses else None,
        "epochs": len(history),
        "seconds": round(sum(row["seconds"] for row in history), 1),
    }


def refuse_bad_weights(model: keras.Model) -> None:
    """Labels alone could make a network of no numbers look good."""
    if not all(np.isfinite(w).all() for w in model.get_weights()):
        raise Diverged("The last step left weights that are no numbers.")


def failure(trouble: Exception) -> dict[str, Any]:
    """Says why a run came to nothing."""
    if isinstance(trouble, Diverged):
        return {"failed": "diverged", "reason": trouble.finding}
    kind = type(trouble).__name__
    lines = str(trouble).strip().splitlines() or ["no message"]
    return {"failed": kind, "reason": f"{kind}: {lines[0]}"}


if __name__ == "__main__":
    serve(Trainer())
