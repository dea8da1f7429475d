import numpy as np
import pytest

from encapnet_tf import data
from encapnet_tf.data import pipeline
from encapnet_tf.data.sources import network, tfds_source

tfds = pytest.importorskip("tensorflow_datasets")

NAMES = ["ant", "bee", "cat", "dog", "emu"]


def make_builder(name, names, shape, parts):
    """Defines a data set with tfds' own means, under a name tfds knows."""

    def info(self):
        features = {
            "image": tfds.features.Image(shape=shape),
            "label": tfds.features.ClassLabel(names=names),
        }
        return tfds.core.DatasetInfo(
            builder=self, features=tfds.features.FeaturesDict(features)
        )

    def generate(self, part):
        generator = np.random.default_rng(len(part))
        for index in range(parts[part]):
            size = [20 + index % 7 if side is None else side for side in shape]
            image = generator.integers(0, 256, size, np.uint8)
            image[0, 0] = index
            yield index, {"image": image, "label": index % len(names)}

    with tfds.core.registered.skip_registration():
        return type(
            name,
            (tfds.core.GeneratorBasedBuilder,),
            {
                "__module__": __name__,
                "VERSION": tfds.core.Version("9.0.0"),
                "_info": info,
                "_split_generators": lambda self, manager: {
                    part: generate(self, part) for part in parts
                },
                "_generate_examples": generate,
            },
        )


@pytest.fixture(scope="module")
def svhn_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tfds")
    parts = {"train": 40, "test": 20}
    builder = make_builder(
        "SvhnCropped", list("0123456789"), (32, 32, 3), parts
    )
    builder(data_dir=str(folder)).download_and_prepare()
    return folder


@pytest.fixture(scope="module")
def imagenet_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tfds")
    parts = {"train": 40, "validation": 10}
    builder = make_builder("Imagenet2012", NAMES, (None, None, 3), parts)
    builder(data_dir=str(folder)).download_and_prepare()
    return folder


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    monkeypatch.setattr(network, "answers", lambda url: False)


@pytest.mark.parametrize("below", ["", "svhn_cropped", "svhn_cropped/9.0.0"])
def test_a_prepared_folder_is_read_without_network(svhn_folder, below):
    dataset = data.load("svhn", str(svhn_folder / below))
    assert dataset.train.num_examples == 40
    assert dataset.test.num_examples == 20
    assert dataset.image_shape == (32, 32, 3)
    assert np.bincount(dataset.train.labels).tolist() == [4] * 10
    for image, label in dataset.train.examples((32, 32)):
        assert int(image[0, 0, 0]) % 10 == int(label)


def test_the_newest_version_is_found(tmp_path):
    for version in ("1.9.0", "1.10.0", "1.2.0", "incomplete"):
        folder = tmp_path / "mnist" / version
        folder.mkdir(parents=True)
        if version != "incomplete":
            (folder / "dataset_info.json").write_text("{}")
    found = tfds_source.find_prepared("mnist", tmp_path)
    assert found == tmp_path / "mnist" / "1.10.0"
    assert tfds_source.find_prepared("cifar10", tmp_path) is None


def test_with_a_network_tfds_downloads(tmp_path, monkeypatch):
    monkeypatch.setattr(network, "answers", lambda url: True)
    with tfds.testing.mock_data(num_examples=12):
        dataset = data.load("cifar10", str(tmp_path), image_size=16)
    assert dataset.train.num_examples == 12
    assert dataset.image_shape == (16, 16, 3)
    assert dataset.class_names[3] == "cat"


def test_class_names_may_come_from_tfds(imagenet_folder):
    dataset = data.load("imagenet2012", str(imagenet_folder))
    assert dataset.class_names == tuple(NAMES)


def test_a_stream_gives_every_example_once_at_the_size_asked_for(
    imagenet_folder,
):
    dataset = data.load("imagenet2012", str(imagenet_folder), image_size=16)
    assert dataset.image_shape == (16, 16, 3)
    assert dataset.test.num_examples == 10
    assert dataset.flip
    pairs = list(dataset.train.examples((16, 16), (0, 0)))
    labels = [int(label) for _, label in pairs]
    assert all(image.shape == (16, 16, 3) for image, _ in pairs)
    assert np.bincount(labels).tolist() == [8] * 5


def test_a_stream_keeps_the_pixels_of_an_image_that_fits(imagenet_folder):
    dataset = data.load("imagenet2012", str(imagenet_folder))
    assert dataset.image_shape == (128, 128, 3)
    builder = tfds.builder_from_directory(
        str(imagenet_folder / "imagenet2012" / "9.0.0")
    )
    fitting = [
        example["image"]
        for example in tfds.as_numpy(builder.as_dataset(split="train"))
        if example["image"].shape == (23, 23, 3)
    ]
    decoded = [image for image, _ in dataset.train.examples((23, 23))]
    assert len(fitting) == 6
    for stored in fitting:
        assert sum(np.array_equal(stored, image) for image in decoded) == 1


def test_a_stream_can_be_sharded_resumed_and_repeated(imagenet_folder):
    train = data.load("imagenet2012", str(imagenet_folder)).train
    options = {"training": True, "image_shape": (16, 16, 3), "seed": 3}
    options["augmentation"] = "strong"

    def collect(**more):
        found = pipeline.batches(train, 12, **options, **more)
        return [(images.numpy(), labels.numpy()) for images, labels in found]

    whole, again = collect(), collect()
    shards = [collect(num_shards=2, shard_index=index) for index in (0, 1)]
    resumed = collect(start_step=2)
    assert len(whole) == 4
    np.testing.assert_array_equal(resumed[0][0], whole[2][0])
    for step, (images, labels) in enumerate(whole):
        np.testing.assert_array_equal(images, again[step][0])
        joined = np.concatenate([shard[step][1] for shard in shards])
        np.testing.assert_array_equal(joined, labels)
    assert (collect(epoch=1)[0][0] != whole[0][0]).any()


def test_a_stream_divides_into_head_and_tail(imagenet_folder):
    train = data.load("imagenet2012", str(imagenet_folder)).train
    rest, validation = data.split_validation(train, 0.25)
    assert (rest.num_examples, validation.num_examples) == (30, 10)
    ids = [
        {int(image[0, 0, 0]) for image, _ in part.examples((64, 64))}
        for part in (rest, validation)
    ]
    assert sum(len(list(p.examples((8, 8)))) for p in (rest, validation)) == 40
    assert len(ids[0]) > len(ids[1])
    assert train.take(7).num_examples == 7
    assert len(list(train.take(7).examples((8, 8)))) == 7
    with pytest.raises(ValueError, match="Received: 41"):
        train.take(41)
