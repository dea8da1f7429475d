import concurrent.futures
import importlib.util
import multiprocessing
import re
import shutil

import numpy as np
import pytest

from benchmarks.peer_torch import __main__ as peer_torch
from benchmarks.peer_torch import check, contestants, ours
from benchmarks.turns import Call, Worker
from encapnet_tf.config import VARIANTS


def test_without_torch_it_says_so_and_times_nothing(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    peer_torch.main([])
    assert capsys.readouterr().out == (
        "skipped: torch is not installed (pip install torch==2.13.0)\n"
    )


def test_all_variants_are_ours_and_bare():
    for variant in peer_torch.DEFAULT_VARIANTS:
        assert variant in VARIANTS
    model = check.make_ours("encapnet6_master")
    assert not model.losses
    assert not [layer for layer in model.layers if "agreement" in layer.name]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--variants=encapnet6,vgg", "--variants must be .* Received: vgg."),
        ("--repeats=1", "--repeats 2 or more. Received: .* and 1."),
        ("--batch=0", "--batch, .* must be 1 or more .* Received: .0, "),
    ],
)
def test_refuses_what_cannot_be_timed(argument, message, capsys):
    with pytest.raises(SystemExit) as end:
        peer_torch.parse([argument])
    assert end.value.code == 2
    text = " ".join(capsys.readouterr().err.split())
    assert re.search(message, text)


def test_a_peer_is_compared_with_ours_of_its_type():
    calls = {
        "ours": [Call(1.0, 2.0), Call(2.0, 4.0), Call(9.0, 5.0)],
        "compiled": [Call(3.0, 3.0)],
        "ours, bfloat16": [Call(1.0, 2.0)],
        "compiled, bfloat16": [Call(5.0, 4.0)],
    }
    found = contestants.times_as_fast(calls)
    assert {name: text.split() for name, text in found.items()} == {
        "ours": [],
        "compiled": ["1.50", "0.75"],
        "ours, bfloat16": [],
        "compiled, bfloat16": ["5.00", "2.00"],
    }


def test_without_a_compiler_nobody_is_compiled(monkeypatch):
    names = contestants.contestants("encapnet6")
    assert {"ours", "PyTorch", "channels last"} <= set(names)
    monkeypatch.setenv("CXX", "")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    left = contestants.contestants("encapnet6")
    assert left == [name for name in left if "compiled" not in name]
    assert "channels last" in left


@pytest.mark.slow
def test_ours_is_timed_in_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(ours, "_TRAINING_STEPS", 1)
    weights = ours.trained_weights("encapnet6_master", 2)
    given = weights, *ours.photographs(2)
    worker = Worker(
        contestants.make_runs, 1, "ours", "encapnet6_master", *given
    )
    for job in peer_torch.JOBS:
        assert all(call.wall > 0 for call in worker(job))
    worker.close()


def test_weights_are_trained(monkeypatch):
    """So that the maps hold what maps hold, and no denormals."""
    monkeypatch.setattr(ours, "_TRAINING_STEPS", 2)
    fresh = ours.by_path(ours.bare_model("encapnet_tiny"))
    trained = ours.trained_weights("encapnet_tiny", 4)
    assert trained.keys() == fresh.keys()
    kernels = [path for path, value in fresh.items() if value.ndim == 4]
    assert len(kernels) > 3
    for path in kernels:
        assert np.abs(trained[path] - fresh[path]).max() > 0


def test_the_peer_s_process_has_no_tensorflow():
    """Its compiler and TensorFlow's do not live in one process."""
    spawn = multiprocessing.get_context("spawn")
    needed = "benchmarks.peer_torch.contestants, encapnet_tf.config"
    with concurrent.futures.ProcessPoolExecutor(1, spawn) as pool:
        pool.submit(exec, f"import {needed}").result()
        found = pool.submit(eval, "set(__import__('sys').modules)").result()
    assert set(needed.split(", ")) <= found
    assert "tensorflow" not in found


def test_rate_is_the_median_with_quartiles():
    assert peer_torch.rate([1.0, 2.0, 4.0], 8) == "4.0 (2.0–8.0)"


def model(images, training):
    return images + float(training)


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_peer_with_other_scores_is_refused(wrong):
    images = np.ones((2, 3))
    scores = [images, images + 1]
    assert check.check("encapnet6", model, images, scores) == 0
    scores[wrong] = scores[wrong] + 0.01
    with pytest.raises(ValueError, match="our scores .* Received: .*e-0"):
        check.check("encapnet6", model, images, scores)


def test_a_peer_whose_scores_are_no_numbers_is_refused():
    images = np.ones((2, 3))
    with pytest.raises(ValueError, match="Received: a difference of nan"):
        check.check("encapnet6", model, images, [images, images * np.nan])
