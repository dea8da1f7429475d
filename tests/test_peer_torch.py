import importlib.util
import re
import shutil

import numpy as np
import pytest

from benchmarks import peer_contestants, peer_torch
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
    model = peer_torch.make_ours("encapnet6_master")
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
    found = peer_torch.times_as_fast(calls)
    assert {name: text.split() for name, text in found.items()} == {
        "ours": [],
        "compiled": ["1.50", "0.75"],
        "ours, bfloat16": [],
        "compiled, bfloat16": ["5.00", "2.00"],
    }


def test_without_a_compiler_nobody_is_compiled(monkeypatch):
    names = peer_contestants.contestants("encapnet6")
    assert {"ours", "PyTorch", "channels last"} <= set(names)
    monkeypatch.setenv("CXX", "")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    left = peer_contestants.contestants("encapnet6")
    assert left == [name for name in left if "compiled" not in name]
    assert "channels last" in left


@pytest.mark.slow
def test_ours_is_timed_in_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(peer_contestants, "_TRAINING_STEPS", 1)
    weights = peer_contestants.trained_weights("encapnet6_master", 2)
    worker = Worker(
        peer_contestants.make_runs, 1, "ours", "encapnet6_master", weights, 2
    )
    for job in peer_torch.JOBS:
        assert all(call.wall > 0 for call in worker(job))
    worker.close()


def test_weights_are_trained(monkeypatch):
    """So that the maps hold what maps hold, and no denormals."""
    monkeypatch.setattr(peer_contestants, "_TRAINING_STEPS", 2)
    fresh = peer_contestants.bare_model("encapnet_tiny")
    trained = peer_contestants.trained_weights("encapnet_tiny", 4)
    kernels = [
        (one, other)
        for one, other in zip(fresh.get_weights(), trained, strict=True)
        if one.ndim == 4
    ]
    assert len(kernels) > 3
    assert all(np.abs(one - other).max() > 0 for one, other in kernels)


def test_rate_is_the_median_with_quartiles():
    assert peer_torch.rate([1.0, 2.0, 4.0], 8) == "4.0 (2.0–8.0)"


def model(images, training):
    return images + float(training)


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_peer_with_other_scores_is_refused(wrong):
    images = np.ones((2, 3))
    scores = [images, images + 1]
    assert peer_torch.check("encapnet6", model, images, scores) == 0
    scores[wrong] = scores[wrong] + 0.01
    with pytest.raises(ValueError, match="our scores .* Received: .*e-0"):
        peer_torch.check("encapnet6", model, images, scores)


def test_a_peer_whose_scores_are_no_numbers_is_refused():
    images = np.ones((2, 3))
    with pytest.raises(ValueError, match="Received: a difference of nan"):
        peer_torch.check("encapnet6", model, images, [images, images * np.nan])
