"""Programs in processes of their own, forked from one that has TensorFlow.

Importing it takes six seconds of a processor, which tests of what a program
does need not pay each time. TensorFlow is imported there, but not yet used.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.warm"])


class Program:
    """`python -m MODULE ARGUMENTS`, as `subprocess.Popen` has it.

    Attributes:
        pid: Of the process.
        stdout: What it writes, line by line.
    """

    def __init__(self, module, *arguments):
        reader, writer = _CONTEXT.Pipe(duplex=False)
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = _CONTEXT.Process(
            target=_become,
            args=(module, arguments, writer, f"/proc/{os.getpid()}/fd/"
                  f"{self._errors.fileno()}"),
        )  # fmt: skip
        self._process.start()
        writer.close()
        self.pid = self._process.pid
        self.stdout = open(os.dup(reader.fileno()))  # noqa: SIM115
        reader.close()

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


def run(module, *arguments, timeout=300):
    """Runs a program to its end."""
    return Program(module, *arguments).finish(timeout)


def _become(module, arguments, output, errors):
    os.dup2(output.fileno(), 1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND), 2)
    output.close()
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
