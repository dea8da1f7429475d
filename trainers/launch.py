"""Several workers on one machine: `python -m trainers.launch --workers=2 -- …`.

Starts that many processes of `trainers.fit`, each with its own TF_CONFIG, and
passes the first one's output on. What follows `--` are the flags of fit;
they need a --run_dir.
"""

import json
import os
import socket
import subprocess
import sys
import time

from absl import flags

from trainers import programs

flags.DEFINE_integer("workers", 2, "Number of workers.", lower_bound=1)

# A worker that hangs in a collective after another died gets this long.
_GRACE_SECONDS = 50


def main(arguments: list[str]) -> int:
    """Runs the workers; the first failure takes all of them down."""
    if not any(a.lstrip("-").startswith("run_dir") for a in arguments):
        raise ValueError(
            "The workers need one --run_dir. Received: "
            f"{' '.join(arguments) or 'no flags after --'}."
        )
    count = flags.FLAGS.workers
    addresses = [f"127.0.0.1:{port}" for port in _free_ports(count)]
    workers = [_start(addresses, index, arguments) for index in range(count)]
    try:
        return _wait(workers)
    except KeyboardInterrupt:
        # The workers got the same Ctrl-C and save before they leave.
        return _wait(workers)
    finally:
        for worker in workers:
            worker.kill()


def _start(addresses, index, arguments):
    config = {
        "cluster": {"worker": addresses},
        "task": {"type": "worker", "index": index},
    }
    chief = index == 0
    return subprocess.Popen(
        [sys.executable, "-m", "trainers.fit", *arguments],
        env=os.environ | {"TF_CONFIG": json.dumps(config)},
        stdout=None if chief else subprocess.DEVNULL,
        stderr=None if chief else subprocess.PIPE,
        text=True,
    )


def _wait(workers):
    """Returns 0 when all succeed, else the code of the first that failed."""
    while any(worker.poll() is None for worker in workers):
        failed = [w for w in workers if w.poll() not in (None, 0)]
        if failed:
            _let_go(workers)
            return _blame(workers.index(failed[0]), failed[0])
        time.sleep(0.2)
    for index, worker in enumerate(workers):
        if worker.returncode:
            return _blame(index, worker)
    return 0


def _let_go(workers):
    """Gives the others time to notice and to say so themselves."""
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline:
        if all(worker.poll() is not None for worker in workers):
            return
        time.sleep(0.2)
    for worker in workers:
        worker.kill()


def _blame(index, worker):
    last = ""
    if worker.stderr is not None:
        last = "".join(worker.stderr.readlines()[-1:]).strip()
    print(
        f"error: Worker {index} ended with code {worker.returncode}. {last} "
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
    programs.run(main)
