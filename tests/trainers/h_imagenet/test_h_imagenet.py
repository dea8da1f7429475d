"""On an ImageNet of four classes, made here."""

import csv

import keras
import numpy as np
import pytest
from absl import flags
from PIL import Image

from encapnet_tf.data import load
from trainers.h_imagenet import __main__ as h_imagenet
from trainers.h_imagenet import making
from trainers.h_imagenet.class_accuracy import hardest, read_accuracies
from trainers.h_imagenet.imagenet import Box, ImageNet, crop, read_objects

# A class is a coloured square on grey.
COLOURS = {
    "n01": (255, 0, 0),
    "n02": (0, 255, 0),
    "n03": (0, 0, 255),
    "n04": (255, 255, 0),
}
SQUARE = (40, 20, 70, 50)
ACCURACIES = {"n01": 0.9, "n02": 0.2, "n03": 0.5, "n04": 0.3}


def annotation(objects, size=(100, 80)):
    body = "".join(
        f"<object><name>{name}</name><bndbox><xmin>{box[0]}</xmin>"
        f"<ymin>{box[1]}</ymin><xmax>{box[2]}</xmax><ymax>{box[3]}</ymax>"
        "</bndbox></object>"
        for name, box in objects
    )
    return (
        f"<annotation><size><width>{size[0]}</width><height>{size[1]}"
        f"</height></size>{body}</annotation>"
    )


def picture(colour):
    image = Image.new("RGB", (100, 80), (128, 128, 128))
    image.paste(colour, SQUARE)
    return image


@pytest.fixture
def root(tmp_path):
    """As ILSVRC unpacks, val sorted into classes."""
    root = tmp_path / "imagenet"
    for part, count in (("train", 4), ("val", 2)):
        for name, colour in COLOURS.items():
            images = root / "ILSVRC/Data/CLS-LOC" / part / name
            boxes = root / "ILSVRC/Annotations/CLS-LOC" / part / name
            images.mkdir(parents=True)
            boxes.mkdir(parents=True)
            for number in range(count):
                file = f"{name}_{number}"
                picture(colour).save(images / f"{file}.JPEG", quality=95)
                small = ("other", (0, 0, 99, 79))
                text = annotation([(name, SQUARE), small])
                (boxes / f"{file}.xml").write_text(text)
    return root


@pytest.fixture
def accuracies(tmp_path):
    path = tmp_path / "accuracies.csv"
    lines = [f"{name},{value}" for name, value in ACCURACIES.items()]
    path.write_text("\n".join(["class,accuracy", *lines]) + "\n")
    return path


def build(*arguments):
    values = flags.FlagValues()
    h_imagenet.define(values)
    values(["h_imagenet", *map(str, arguments)])
    h_imagenet.main([], values)


def test_the_hardest_classes_become_a_folder_of_objects(
    root, accuracies, tmp_path, capsys
):
    out = tmp_path / "hard"
    command = (
        f"--imagenet={root}", f"--accuracies={accuracies}", f"--out={out}",
        "--num_classes=2", "--padding=0.1",
    )  # fmt: skip
    build(*command)
    assert f"--dataset=folder:{out}" in capsys.readouterr().out
    data = load(f"folder:{out}", image_size=32)
    assert data.class_names == ("n02", "n04")
    assert (data.train.num_examples, data.test.num_examples) == (8, 4)
    with Image.open(out / "train" / "n02" / "n02_0.jpg") as image:
        # 30 pixels of the square and a tenth of them on every side.
        assert image.size == (36, 36)
        green = np.asarray(image)[5:-5, 5:-5].mean(axis=(0, 1))
    np.testing.assert_allclose(green, COLOURS["n02"], atol=6)
    with (out / "classes.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows == [
        {"class": "n02", "accuracy": "0.2"},
        {"class": "n04", "accuracy": "0.3"},
    ]
    # The same command goes on: what is there stays.
    kept = out / "train" / "n02" / "n02_0.jpg"
    kept.write_bytes(b"kept")
    build(*command)
    assert kept.read_bytes() == b"kept"


def test_an_npz_file_of_a_given_list_of_classes(root, tmp_path):
    out, classes = tmp_path / "hard.npz", tmp_path / "classes.txt"
    classes.write_text("n03 blue things\nn01\n")
    build(
        f"--imagenet={root}", f"--classes={classes}", f"--out={out}",
        "--image_size=16", "--padding=0",
    )  # fmt: skip
    data = load(f"npz:{out}")
    assert data.class_names == ("n01", "n03")
    assert data.image_shape == (16, 16, 3)
    images, labels = next(iter(data.test.examples((16, 16)).batch(4)))
    for image, label in zip(images.numpy(), labels.numpy(), strict=True):
        colour = COLOURS[data.class_names[label]]
        np.testing.assert_allclose(image.mean(axis=(0, 1)), colour, atol=12)


def test_a_classifier_says_what_is_hard(root, tmp_path):
    """It knows red and blue, and takes all the rest for red."""
    inputs = keras.Input((8, 8, 3))
    mean = keras.layers.GlobalAveragePooling2D()(inputs)
    scores = keras.layers.Dense(4, use_bias=False)
    model = keras.Model(inputs, scores(mean))
    weights = np.zeros((3, 4))
    weights[0, 0], weights[2, 2] = 1.0, 0.99
    scores.set_weights([weights])
    path, out = tmp_path / "model.keras", tmp_path / "hard"
    model.save(path)
    build(
        f"--imagenet={root}", f"--model={path}", f"--out={out}",
        "--num_classes=2", "--white=255",
    )  # fmt: skip
    assert read_accuracies(out / "classes.csv") == {"n02": 0.0, "n04": 0.0}
    keras.Model(inputs, keras.layers.Dense(3)(mean)).save(path)
    with pytest.raises(ValueError, match="each of the 4 classes. Received"):
        build(f"--imagenet={root}", f"--model={path}", f"--out={out}")


def test_val_without_sub_folders_takes_its_classes_from_the_boxes(root):
    data = root / "ILSVRC/Data/CLS-LOC"
    boxes = root / "ILSVRC/Annotations/CLS-LOC"
    for name in COLOURS:
        for folder in (data / "val" / name, boxes / "val" / name):
            for file in folder.iterdir():
                file.rename(folder.parent / file.name)
            folder.rmdir()
    imagenet = ImageNet(root)
    found = list(imagenet.pictures("val", {"n02", "n03"}))
    assert [p.label for p in found] == ["n02", "n02", "n03", "n03"]
    assert imagenet.box("val", found[0]) == Box(0.4, 0.25, 0.7, 0.625)
    (boxes / "val" / "n02_0.xml").unlink()
    with pytest.raises(ValueError, match="name their class. Received"):
        list(imagenet.pictures("val", {"n02"}))


def test_boxes_are_the_largest_object_of_the_class(tmp_path):
    path = tmp_path / "train" / "cat" / "1.xml"
    path.parent.mkdir(parents=True)
    small, large = (0, 0, 10, 10), (50, 40, 100, 80)
    path.write_text(
        annotation([("cat", small), ("cat", large), ("dog", (0, 0, 100, 80))])
    )
    assert read_objects(path)[1] == ("cat", Box(0.5, 0.5, 1.0, 1.0))
    (tmp_path / "imagenet" / "train" / "cat").mkdir(parents=True)
    picture(COLOURS["n01"]).save(tmp_path / "imagenet/train/cat/1.png")
    imagenet = ImageNet(tmp_path / "imagenet", boxes=tmp_path)
    (found,) = imagenet.pictures("train", {"cat"})
    assert imagenet.box("train", found) == Box(0.5, 0.5, 1.0, 1.0)
    assert list(imagenet.pictures("val", {"cat"})) == []


@pytest.mark.parametrize(
    ("box", "padding", "largest", "size"),
    [
        (None, 0.5, 500, (100, 80)),
        (None, 0.0, 50, (50, 40)),
        (Box(0.4, 0.25, 0.7, 0.625), 0.0, 500, (30, 30)),
        (Box(0.9, 0.9, 1.0, 1.0), 1.0, 500, (20, 16)),
        (Box(0.5, 0.5, 0.5, 0.5), 0.0, 500, (1, 1)),
    ],
)
def test_crops_stay_inside_and_within_the_largest_side(
    box, padding, largest, size
):
    image = picture(COLOURS["n01"])
    assert crop(image, box, padding, largest).size == size


def test_damaged_pictures_are_left_out_unless_they_are_many(
    root, accuracies, tmp_path, capsys
):
    out = tmp_path / "hard"
    command = (
        f"--imagenet={root}", f"--accuracies={accuracies}", f"--out={out}",
        "--num_classes=2",
    )  # fmt: skip
    train = root / "ILSVRC/Data/CLS-LOC/train"
    (train / "n02" / "n02_1.JPEG").write_bytes(b"no picture")
    build(*command)
    assert "train          7                   1" in capsys.readouterr().out
    for file in [*(train / "n02").iterdir(), *(train / "n04").iterdir()]:
        file.write_bytes(b"no picture")
    with pytest.raises(ValueError, match="Most pictures.*Received: 8 of 8"):
        build(*command[:2], f"--out={tmp_path / 'other'}", command[3])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--imagenet must be.*Received: none"),
        (["--imagenet={tmp}"], "Expected is a folder.*Received"),
        (["--imagenet={root}"], "said by one of.*Received: none"),
        (
            ["--imagenet={root}", "--accuracies={csv}", "--classes=x"],
            "Received: classes and accuracies",
        ),
        (["--imagenet={root}", "--accuracies={csv}"], "200 classes or more"),
        (["--imagenet={root}", "--classes={other}"], "ImageNet's. Received"),
        (
            [
                "--imagenet={root}", "--accuracies={csv}", "--num_classes=2",
                "--out={tmp}/x.npz",
            ],
            "may hold 3 pictures.*Received: more",
        ),
    ],
)  # fmt: skip
def test_bad_flags_are_refused(
    root, accuracies, tmp_path, arguments, message, monkeypatch
):
    room = 3 * 128 * 128 * 3
    monkeypatch.setattr(making, "_MEMORY_LIMIT", room)
    (tmp_path / "other.txt").write_text("n99\n")
    known = {
        "tmp": tmp_path, "root": root, "csv": accuracies,
        "other": tmp_path / "other.txt",
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        build(*(a.format(**known) for a in arguments))


def test_bad_files_are_refused(root, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("class,accuracy\nn01,good\n")
    with pytest.raises(ValueError, match="class,accuracy. Received: 'n01,good"):
        read_accuracies(table)
    (root / "ILSVRC/Annotations/CLS-LOC/train/n02/n02_0.xml").write_text("<a>")
    imagenet = ImageNet(root)
    first = next(imagenet.pictures("train", {"n02"}))
    with pytest.raises(ValueError, match="must be XML.*Received"):
        imagenet.box("train", first)


def test_equal_accuracies_are_taken_by_name():
    assert hardest({"b": 0.5, "c": 0.1, "a": 0.5}, 2) == {"c": 0.1, "a": 0.5}
