import importlib.util
import re

import numpy as np
import pytest

from benchmarks import peer_torch
from benchmarks.turns import Worker
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
    medians = {
        "ours": 2.0,
        "PyTorch": 3.0,
        "ours, bfloat16": 1.0,
        "PyTorch, bfloat16": 5.0,
    }
    assert {n: peer_torch.faster(n, medians) for n in medians} == {
        "ours": "",
        "PyTorch": "1.50",
        "ours, bfloat16": "",
        "PyTorch, bfloat16": "5.00",
    }


@pytest.mark.slow
def test_ours_is_timed_in_a_process_of_its_own():
    worker = Worker(peer_torch.make_runs, 1, "ours", "encapnet6_master", 2)
    assert min(worker("train")) > 0
    assert min(worker("infer")) > 0
    worker.close()


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
