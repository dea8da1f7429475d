"""Programs in processes of their own, forked from one that has TensorFlow.

Importing it takes six seconds of a processor, which tests of what a program
does need not pay each time. TensorFlow is imported there, but not yet used.
What such a program starts itself, by `subprocess`, is forked from the program.
"""

import ctypes
import inspect
import multiprocessing
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback

from absl import flags
from tensorflow.python.eager import context

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.warm"])


class Program:
    """`python -m MODULE ARGUMENTS`, as `subprocess.Popen` has it.

    Attributes:
        pid: Of the process.
        stdout: What it writes, line by line.
    """

    def __init__(self, module, *arguments, cwd=".", **environment):
        reader, writer = _CONTEXT.Pipe(duplex=False)
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        errors = f"/proc/{os.getpid()}/fd/{self._errors.fileno()}"
        self._process = _CONTEXT.Process(
            target=_become,
            args=(module, arguments, cwd, environment, writer, errors),
        )
        self._process.start()
        writer.close()
        self.pid = self._process.pid
        self.stdout = open(os.dup(reader.fileno()))  # noqa: SIM115
        reader.close()

    def children(self):
        """What it has started and not yet ended, in that order."""
        path = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def send_signal(self, number):
        os.kill(self.pid, number)

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return self.poll()

    def finish(self, timeout):
        """Waits for its end and returns what came of it."""
        output = self.stdout.read()
        code = self.wait(timeout)
        self._errors.seek(0)
        errors = self._errors.read()
        return subprocess.CompletedProcess((), code, output, errors)


def run(module, *arguments, timeout=300, **options):
    """Runs a program to its end."""
    return Program(module, *arguments, **options).finish(timeout)


def _become(module, arguments, cwd, environment, output, errors):
    os.dup2(output.fileno(), 1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND), 2)
    output.close()
    os.chdir(cwd)
    os.environ.update(environment)
    subprocess.Popen._execute_child = _fork
    _run(module, *arguments)


def _run(module, *arguments):
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


_FLAGS_OF_LIBRARIES = set(flags.FLAGS)
_PYTHON = [sys.executable, "-m"]
_ENDS = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
_START = subprocess.Popen._execute_child
_PARAMETERS = inspect.signature(_START)


def _fork(process, *arguments):
    """In place of `Popen._execute_child`, for `python -m MODULE ARGUMENTS`."""
    given = _PARAMETERS.bind(process, *arguments).arguments
    # Once TensorFlow is used it has threads, which a fork would not have.
    if list(given["args"][:2]) != _PYTHON or context.context()._initialized:
        _START(process, *arguments)
        return
    sys.stdout.flush()
    process.pid = os.fork()
    if not process.pid:
        _become_child(given)
    process._child_created = True
    process._close_pipe_fds(*(given[end] for end in _ENDS))


def _become_child(given):
    """What exec would do, and Python at its start and end."""
    code = 1
    try:
        _take_over(given)
        _run(*given["args"][2:])
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    ctypes.pythonapi.Py_Exit(code)


def _take_over(given):
    if given["preexec_fn"]:
        given["preexec_fn"]()
    if given["start_new_session"]:
        os.setsid()
    for place, ours in enumerate(("p2cread", "c2pwrite", "errwrite")):
        if given[ours] != -1:
            os.dup2(given[ours], place)
    for theirs in ("p2cwrite", "c2pread", "errread"):
        if given[theirs] != -1:
            os.close(given[theirs])
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in set(flags.FLAGS) - _FLAGS_OF_LIBRARIES:
        delattr(flags.FLAGS, name)
    if given["env"] is not None:
        os.environ.clear()
        os.environ.update(given["env"])
