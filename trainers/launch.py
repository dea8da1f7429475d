"""Trains or searches with several workers on one machine.

    python -m trainers.launch --workers=2 -- --run_dir=runs/two
    python -m trainers.launch --tuner_workers=2 -- --tune_dir=runs/search

Starts that many processes of `trainers.fit`, each with its own TF_CONFIG; or,
with --tuner_workers, of `trainers.tune`, and a chief that hands out the trials.
The first one's output is passed on. What follows `--` are the flags of fit or
tune; they need a --run_dir or --tune_dir.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

from absl import flags

from trainers import cli, stopping

# A worker that hangs in a collective after another died gets this long.
_GRACE_SECONDS = 50
_PR_SET_PDEATHSIG = 1
_REFUSED = 2  # see `cli.refuse`
# Under way, done, or asked to stop.
_IN_ORDER = (None, 0, *stopping.STOPPED)


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags."""
    kwargs = {"flag_values": values}
    flags.DEFINE_integer(
        "workers", 2, "Number of workers that train together.", lower_bound=1,
        **kwargs,
    )  # fmt: skip
    flags.DEFINE_integer(
        "tuner_workers", None, "Number of workers that share the trials of a "
        "search.", lower_bound=1, **kwargs,
    )  # fmt: skip


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Runs the workers; the first failure takes all of them down."""
    tuning = values.tuner_workers is not None
    program, folder = (
        ("trainers.tune", "tune_dir") if tuning else ("trainers.fit", "run_dir")
    )
    if not any(a.lstrip("-").startswith(folder) for a in arguments):
        raise ValueError(
            f"The workers need one --{folder}. Received: "
            f"{' '.join(arguments) or 'no flags after --'}."
        )
    environments = (
        _tuner_environments(values.tuner_workers)
        if tuning
        else _training_environments(values.workers)
    )
    workers = [
        _Worker([program, *arguments], environment, is_first=index == 0)
        for index, environment in enumerate(environments)
    ]
    signal.signal(signal.SIGTERM, lambda *_: _terminate(workers))
    try:
        return _wait(workers, tuning)
    except KeyboardInterrupt:
        # The workers got the same Ctrl-C and save before they leave.
        return _wait(workers, tuning)
    finally:
        for worker in workers:
            worker.kill()


def _training_environments(count):
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(count)]
    for index in range(count):
        config = {
            "cluster": {"worker": addresses},
            "task": {"type": "worker", "index": index},
        }
        yield {"TF_CONFIG": json.dumps(config)}


def _tuner_environments(count):
    (port,) = _free_ports(1)
    for name in ("chief", *(f"worker{index}" for index in range(count))):
        yield {
            "KERASTUNER_TUNER_ID": name,
            "KERASTUNER_ORACLE_IP": "127.0.0.1",
            "KERASTUNER_ORACLE_PORT": str(port),
            # A proxy cannot reach this machine's own address.
            "no_grpc_proxy": "127.0.0.1",
        }


class _Worker(subprocess.Popen):
    """A worker's process. Only the first one's output is passed on."""

    def __init__(self, module, environment, is_first):
        # A file: a pipe would fill up while the worker runs.
        self._said = None if is_first else tempfile.TemporaryFile("w+")  # noqa: SIM115
        super().__init__(
            [sys.executable, "-m", *module],
            env=os.environ | environment,
            stdout=None if is_first else subprocess.DEVNULL,
            stderr=self._said,
            preexec_fn=_end_with_launcher,
        )

    def last_words(self):
        if self._said is None:
            return ""
        self._said.seek(0)
        return "".join(self._said.readlines()[-1:]).strip()


def _end_with_launcher():
    """Has Linux end a worker whose launcher is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _terminate(workers):
    for worker in workers:
        worker.terminate()


def _wait(workers, tuning):
    """Returns 0 when all succeed, 2 for a refusal, 130 or 143 for a stop."""
    while any(worker.poll() is None for worker in workers):
        failed = [w for w in workers if w.poll() not in _IN_ORDER]
        if failed:
            _let_go(workers, tuning)
            return _blame(workers, failed[0], tuning)
        time.sleep(0.2)
    for worker in workers:
        if worker.returncode:
            return _blame(workers, worker, tuning)
    return 0


def _let_go(workers, tuning):
    """Gives the others time to notice and to say so themselves."""
    if tuning:
        # Nothing would tell them.
        _terminate(workers)
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline:
        if all(worker.poll() is not None for worker in workers):
            return
        time.sleep(0.2)
    for worker in workers:
        worker.kill()


def _blame(workers, worker, tuning):
    code, first = worker.returncode, workers[0]
    if code in stopping.STOPPED:
        return code
    if code == _REFUSED:
        if first.returncode != _REFUSED:
            print(worker.last_words(), file=sys.stderr, flush=True)
        return code
    if tuning and worker is first and code > 0:
        return code  # The chief said why.
    print(
        f"error: Worker {workers.index(worker)} ended with code {code}. "
        f"{worker.last_words()} "
        "Start the same command again: it goes on from the last checkpoint.",
        file=sys.stderr,
        flush=True,
    )
    return 1


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


if __name__ == "__main__":
    define()
    cli.run(main)
