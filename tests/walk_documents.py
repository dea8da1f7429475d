"""Runs every command of the documents: `python -m tests.walk_documents`.

Each is run as written, in one folder that has what the commands name: a few
hundred images under the names of the real data, photos, a finished run, an
export. One that is still at work after --seconds gets a Ctrl-C, which must end
it in order. The whole walk takes about an hour on one core.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
from absl import app, flags
from PIL import Image

from tests.test_documents import PAGES, ROOT, commands, name_of

_SECONDS = flags.DEFINE_float("seconds", 40, "Before a command is stopped.")
_PAGES = flags.DEFINE_list("pages", None, "Of these pages only, by name.")
_ELSEWHERE = {
    "venv": "the installation",
    "pytest": "the tests",
    "trainers.h_imagenet": "ImageNet",
    "/shared/": "a disk that machines share",
    "folder:h_imagenet": "ImageNet",
    "--log=": "a server",
}
_DONE = pathlib.Path("runs/done")
# Data that are downloaded where they are not given.
_NAMED = ("svhn", "cifar10", "mnist", "affine_mnist")
_IN_ORDER = (0, 128 + signal.SIGINT)


def prepare() -> None:
    """Makes what the commands name."""
    rng = np.random.default_rng(0)
    pathlib.Path("DIR").mkdir()
    sizes = {"svhn": (32, 32, 3), "cifar10": (32, 32, 3), "mine": (32, 32, 3),
             "cifar10_20k": (32, 32, 3), "mnist": (28, 28, 1)}  # fmt: skip
    for name, size in sizes.items():
        arrays = {}
        for split, count in (("train", 600), ("test", 100)):
            shape = (count, *size)
            arrays[f"x_{split}"] = rng.integers(0, 256, shape, np.uint8)
            arrays[f"y_{split}"] = np.arange(count) % 10
        for folder in (".", "DIR"):
            np.savez(f"{folder}/{name}.npz", **arrays)
    picture = Image.fromarray(rng.integers(0, 256, (90, 70, 3), np.uint8))
    for kind in ("photos/cat", "photos/dog", "more_photos"):
        pathlib.Path(kind).mkdir(parents=True)
        for number in range(60):
            picture.save(f"{kind}/{number}.jpg")
    picture.save("photo.jpg")
    picture.save("digit.png")
    finish(
        "trainers.fit", "--variant=encapnet_tiny", "--decoder=conv",
        "--dataset=npz:mine.npz", "--epochs=1", f"--run_dir={_DONE}",
    )  # fmt: skip
    for out in ("exported/encapnet", "exported/drawing"):
        finish("export", f"--run_dir={_DONE}", f"--out={out}", "--with_decoder")
    before = pathlib.Path("runs/before")
    finish(
        "trainers.benchmark", "--parts=variants", f"--out={before}",
        "--variants=encapnet_tiny", "--seconds=0.1",
    )  # fmt: skip


def finish(*command: str) -> None:
    """Runs a program that has to come to its end."""
    subprocess.run([sys.executable, "-m", *command], check=True)


def reset(command: list[str]) -> list[str]:
    """Lays out what a command reads, clears what it writes; returns it."""
    latest = pathlib.Path("runs/latest")
    latest.unlink(missing_ok=True)
    latest.symlink_to(_DONE.name)
    # Two commands may make it of different data.
    shutil.rmtree("runs/reproduce", ignore_errors=True)
    words = list(command)
    for word in command:
        name, _, value = word.removeprefix("--").partition("=")
        path = pathlib.Path(value)
        if name == "run_dir" and command[0] != "trainers.fit":
            if not path.exists():
                shutil.copytree(_DONE, path)
            continue
        written = name in ("run_dir", "tune_dir", "out") and path != latest
        if written and path.parts[:1] != ("exported",):  # a version is added
            shutil.rmtree(path, ignore_errors=True)
        if name == "init_from":
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(_DONE, path)
        if name == "config":
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(_DONE / "config.json", path)
        if name == "dataset" and value in _NAMED:
            words.append("--data_dir=DIR")
    return words


def walk(command: list[str]) -> tuple[bool, str]:
    """Runs one command; says whether it held, and how it ended."""
    for word, needed in _ELSEWHERE.items():
        if any(word in part for part in command):
            return True, f"not here, it is or needs {needed}"
    seconds = _SECONDS.value
    if command[0] in ("export", "export.weights"):
        seconds += 120  # others read what it writes
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *reset(command)],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            code = process.wait(120)
        output.seek(0)
        text = output.read()
    spent = f"exit code {code} after {time.monotonic() - began:.0f} s"
    if code == 2 and "torch" in text:
        return True, "not here, it needs PyTorch"
    if command[0].startswith("benchmarks.") and code == -signal.SIGINT:
        return True, spent  # scripts, with the traceback of their Ctrl-C
    if code in _IN_ORDER and not failed(text):
        return True, spent
    return False, f"{spent}: {text[-2000:]}"


def failed(text: str) -> bool:
    """Whether a program wrote a traceback of its own.

    Not counted: that of a Ctrl-C that hit a weak reference's callback, where
    Python reports it and goes on.
    """
    lines = text.splitlines()
    return any(
        line.startswith("Traceback") and not before.startswith("Exception ign")
        for before, line in zip(["", *lines], lines, strict=False)
    )


def main(arguments):
    """Walks through the pages; exit code 1 if a command did not hold."""
    del arguments
    found = {}
    for page in PAGES:
        if not _PAGES.value or name_of(page) in _PAGES.value:
            for command in commands(page.read_text()):
                found.setdefault(tuple(command), name_of(page))
    os.environ["PYTHONPATH"] = str(ROOT)
    # A shell may have it ignored, and programs would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare()
        for command, page in found.items():
            holds, words = walk(list(command))
            broken += not holds
            print(f"{page}: {' '.join(command)}\n    {words}", flush=True)
    print(f"{len(found)} commands, {broken} broken")
    return min(broken, 1)


if __name__ == "__main__":
    app.run(main)
