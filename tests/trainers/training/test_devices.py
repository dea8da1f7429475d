import json
import os
import signal
import time

import numpy as np
import pytest
import tensorflow as tf

from tests import forked
from tests.trainers.test_fit import rows, weights
from trainers import launch
from trainers.training import devices

# Small steps: ReLU and squash amplify the rounding of another order of sums
# (3e-7 after one step, on any number of replicas) the more the weights move.
SGD = {"optimizer": "sgd", "learning_rate": 1e-3, "schedule": "constant"}
ADAM = {"optimizer": "adam", "learning_rate": 1e-4, "schedule": "constant"}
GLOBAL = {"override": {"agreement_options": {"batch": "global"}}}
# The share is of the whole batch, too.
SHARE = {
    "override": {
        "agreement_options": {"batch": "global", "gradient_share": 0.1}
    }
}
BOTH = {"sgd": SGD | GLOBAL, "adam": ADAM | GLOBAL}
# Of one machine: strategy, devices, and what is trained, by name.
TASKS = (
    (
        "single",
        1,
        {f"one {name}": BOTH[name] for name in BOTH}
        | {"one share": SGD | SHARE},
    ),
    (
        "mirrored",
        2,
        {
            "two sgd": BOTH["sgd"],
            "two share": SGD | SHARE,
            "two of its own batches": SGD,
        },
    ),
    ("mirrored", 4, {"four adam": BOTH["adam"]}),
)


def start(npz, folder, strategy, cpus, trainings, **environment):
    return forked.Program(
        "tests.trainers.training.train_each", str(npz), str(folder), strategy,
        str(cpus), json.dumps(trainings), **environment,
    )  # fmt: skip


def results(program, folder):
    """What came out of each training, by its name."""
    done = program.finish(timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return {path.stem: read(path) for path in folder.glob("*.npz")}


def read(path):
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files}
    return content | json.loads(str(content.pop("row")))


def workers(npz, folder, trainings, count=2):
    ports = launch._free_ports(count)
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    processes = []
    for index in range(count):
        config = {
            "cluster": cluster,
            "task": {"type": "worker", "index": index},
        }
        processes.append(
            start(
                npz, folder, "auto", 1, trainings, TF_CONFIG=json.dumps(config)
            )
        )
    return processes


@pytest.fixture(scope="module")
def trained(npz_path, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    for task in TASKS:
        found = results(start(npz_path, folder, *task), folder)
    return found


def assert_as_one_device(ours, theirs, optimizer):
    if optimizer == "sgd":
        assert_close(ours, theirs, 1e-5, weight_names(theirs))
    assert_close(ours, theirs, 1e-4, ("outputs", *REPORTED, UNIT))


def assert_close(ours, theirs, tolerance, names):
    for name in names:
        np.testing.assert_allclose(
            ours[name], theirs[name], atol=tolerance, rtol=tolerance,
            err_msg=name,
        )  # fmt: skip


def weight_names(content):
    return [name for name in content if name.startswith("weight")]


REPORTED = (
    "loss", "class_loss", "error", "val_error", "gradient_norm", "decoder_loss",
)  # fmt: skip
UNIT = "module1_agreement_input_loss"


@pytest.mark.parametrize("name", ["two sgd", "four adam"])
def test_mirrored_equals_one_device(trained, name):
    optimizer = name.split()[1]
    assert_as_one_device(trained[name], trained[f"one {optimizer}"], optimizer)


def test_a_share_of_the_gradient_is_that_of_the_whole_batch(trained):
    one, two = trained["one share"], trained["two share"]
    assert_as_one_device(two, one, "sgd")
    name = UNIT.replace("loss", "gradient_share")
    for content in (one, two):
        assert content[name] == pytest.approx(0.1, rel=1e-3)


@pytest.mark.slow
def test_two_workers_equal_one_device(trained, npz_path, tmp_path):
    first, second = workers(npz_path, tmp_path, BOTH)
    found = results(first, tmp_path)
    assert set(found) == set(BOTH)
    for optimizer, ours in found.items():
        assert_as_one_device(ours, trained[f"one {optimizer}"], optimizer)
    second.finish(timeout=60)


def test_replica_batches_do_not_change_the_size_of_the_loss(trained):
    """The authors' sum would double it with two replicas."""
    ratio = trained["two of its own batches"][UNIT] / trained["one sgd"][UNIT]
    assert 0.5 < ratio < 1.5


@pytest.mark.slow
def test_a_killed_worker_ends_the_job_and_the_next_one_goes_on(
    npz_path, tmp_path
):
    flags = [
        "--workers=2", "--",
        "--variant=encapnet_tiny", f"--dataset=npz:{npz_path}",
        "--epochs=3", "--batch_size=24", "--checkpoint_seconds=0.5",
        "--override=type2_layers=(0,)", "--override=strides=(2,)",
        "--override=num_capsules=2", "--override=stem=((4, 2),)",
        "--override=aide=none,agreement=none",
    ]  # fmt: skip

    def launched(run_dir):
        return forked.Program("trainers.launch", *flags, f"--run_dir={run_dir}")

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    done = launched(whole).finish(timeout=300)
    assert done.returncode == 0, done.stderr
    job = launched(killed)
    for line in job.stdout:
        if line.startswith("epoch 1"):
            break
    _, second = job.children()
    os.kill(second, signal.SIGKILL)
    began = time.monotonic()
    ended = job.finish(timeout=90)
    assert time.monotonic() - began < 60
    assert ended.returncode == 1
    assert "goes on from the last checkpoint" in ended.stderr
    done = launched(killed).finish(timeout=300)
    assert done.returncode == 0, done.stderr
    assert rows(killed) == rows(whole)
    for ours, theirs in zip(weights(killed), weights(whole), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_batch_the_replicas_cannot_share_is_refused():
    class FourReplicas:
        num_replicas_in_sync = 4

    with pytest.raises(ValueError, match="batch_size=30.*28 and 32"):
        devices.check_batch_size(30, FourReplicas())
    devices.check_batch_size(32, FourReplicas())


def test_multi_worker_without_tf_config_is_refused(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match="needs the environment variable"):
        devices.make_strategy("multi_worker")


def test_a_broken_tf_config_is_refused(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{")
    with pytest.raises(ValueError, match="TF_CONFIG must be JSON.*Received"):
        devices.make_strategy("auto")


def test_auto_on_one_device_is_the_default_strategy(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    strategy = devices.make_strategy("auto")
    assert strategy is tf.distribute.get_strategy()
    assert devices.is_chief(strategy)
    assert devices.num_processes(strategy) == 1
