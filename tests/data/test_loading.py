import socket
import time
import urllib.request

import numpy as np
import pytest

from encapnet_tf import data
from encapnet_tf.data import loading
from encapnet_tf.data.house_numbers import cache
from encapnet_tf.data.sources import catalogue, network, tfds_source


@pytest.fixture
def offline(monkeypatch):
    monkeypatch.setattr(network, "answers", lambda url: False)


def save(path, shape=(4, 4, 3), classes=10):
    images = np.zeros((2 * classes, *shape), np.uint8)
    labels = np.arange(2 * classes) % classes
    np.savez(path, x_train=images, y_train=labels, x_test=images, y_test=labels)


@pytest.mark.parametrize(
    ("name", "flip", "first"),
    [
        ("svhn", False, "0"),
        ("mnist", False, "0"),
        ("cifar10", True, "airplane"),
        ("fashion_mnist", True, "T-shirt/top"),
    ],
)
def test_a_file_of_that_name_in_the_data_folder_is_used(
    tmp_path, name, flip, first
):
    save(tmp_path / f"{name}.npz")
    dataset = data.load(name, str(tmp_path))
    assert dataset.name == name
    assert dataset.num_classes == 10
    assert dataset.class_names[0] == first
    assert dataset.flip is flip
    assert dataset.train.num_examples == 20


def test_labels_beyond_a_known_number_of_classes_are_refused(tmp_path):
    save(tmp_path / "svhn.npz", classes=11)
    with pytest.raises(ValueError, match="7, 8, 9 only. Received: 10 too"):
        data.load("svhn", str(tmp_path))


@pytest.mark.parametrize("name", ["svhn", "cifar100", "imagenet2012"])
def test_without_network_the_three_ways_out_are_named(offline, tmp_path, name):
    began = time.monotonic()
    with pytest.raises(data.DataUnavailable, match="Received: ") as caught:
        data.load(name, str(tmp_path))
    assert time.monotonic() - began < 10
    message = str(caught.value)
    assert f"put {name}.npz there" in message
    assert "x_train, y_train, x_test and y_test" in message
    assert "tfds has prepared" in message
    wanted = "by hand" if name == "imagenet2012" else "run once with a network"
    assert wanted in message


def test_a_download_that_breaks_off_names_the_ways_out(tmp_path, monkeypatch):
    def break_off(name, folder):
        raise ConnectionError("line is dead")

    monkeypatch.setattr(network, "answers", lambda url: True)
    monkeypatch.setattr(tfds_source, "download_builder", break_off)
    with pytest.raises(data.DataUnavailable, match="Received.*line is dead"):
        data.load("svhn", str(tmp_path))


def test_a_name_that_cannot_be_looked_up_does_not_answer_within_seconds(
    monkeypatch,
):
    def lookup(*args, **kwargs):
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    assert not network.answers("http://data.example/file", timeout=1.0)


def test_a_lookup_that_hangs_is_given_up(monkeypatch):
    def hang(*args, **kwargs):
        time.sleep(6)
        raise OSError("nobody there")

    monkeypatch.setattr(urllib.request, "urlopen", hang)

    began = time.monotonic()
    assert not network.answers("http://data.example/file", timeout=0.1)
    assert time.monotonic() - began < 4


def test_house_numbers_load_from_the_cache_folder(tmp_path, monkeypatch):
    def few(cache_dir):
        return cache.load_house_numbers(cache_dir, num_train=30, num_test=10)

    monkeypatch.setattr(loading, "load_house_numbers", few)
    dataset = data.load("house_numbers", str(tmp_path), image_size=16)
    assert dataset.image_shape == (16, 16, 3)
    assert dataset.class_names == tuple("0123456789")
    assert not dataset.flip


def test_own_files_and_folders_are_told_apart(tmp_path):
    save(tmp_path / "a.npz", classes=3)
    assert data.load(f"npz:{tmp_path / 'a.npz'}").num_classes == 3
    with pytest.raises(ValueError, match="Received: .*no sub-folders"):
        data.load(f"folder:{tmp_path}")


@pytest.mark.parametrize("name", ["svnh", "npz:", "zip:a", ""])
def test_unknown_names_are_refused_with_the_known_ones(name):
    with pytest.raises(ValueError, match=f"svhn.*Received: dataset='{name}'"):
        data.load(name)


def test_image_size_must_be_positive():
    with pytest.raises(ValueError, match="Received: image_size=0"):
        data.load("svhn", image_size=0)


def test_every_named_source_is_listed():
    assert set(catalogue.SOURCES) < set(data.DATASETS)
    assert "house_numbers" in data.DATASETS
    assert all(len(line) < 80 for line in data.DATASETS.values())
