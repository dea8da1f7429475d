"""Stands in for `trainers.runs.child`: answers at once, trains nothing.

python fake_child.py LOG MODE: every run is noted in LOG; MODE says what goes
wrong. The error is least at λ = 1, ε = 0.1.
"""

import json
import math
import os
import pathlib
import signal
import sys


def answer(recipe, mode):
    weight = recipe["agreement_weight"] or 1.0
    epsilon = recipe["agreement_epsilon"] or 0.1
    large = weight > 5
    if mode == "die" and large:
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "crash" and large:
        os.kill(os.getpid(), signal.SIGSEGV)
    if mode == "diverge_all" or (mode == "diverge" and large):
        return {"failed": "diverged", "reason": "The loss is nan."}
    if mode == "fail_variously":
        kind = f"Kind{recipe['seed']}{weight}"
        return {"failed": kind, "reason": kind}
    error = 0.05 + 0.02 * math.log10(weight) ** 2
    error += 0.03 * math.log10(epsilon / 0.1) ** 2 + 0.001 * recipe["seed"]
    return {
        "validation_error": error,
        "validation_images": 10000,
        "agreement_loss": 0.25,
        "epochs": recipe["epochs"],
        "seconds": 2.0,
    }


def main(log, mode):
    for line in sys.stdin:
        task = json.loads(line)
        if "run_dir" not in task:
            refusal = {"refusal": "No such data. Received: none."}
            reply = refusal if mode == "refuse" else {}
        else:
            run_dir = pathlib.Path(task["run_dir"])
            with open(log, "a") as file:
                file.write(f"{run_dir.parent.name}/{run_dir.name}\n")
            stop = int(mode[4:]) if mode.startswith("stop") else math.inf
            if len(pathlib.Path(log).read_text().splitlines()) > stop:
                reply = {"stopped": True}
            else:
                reply = answer(task["recipe"], mode)
                run_dir.mkdir(parents=True, exist_ok=True)
                (run_dir / "result.json").write_text(json.dumps(reply))
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
