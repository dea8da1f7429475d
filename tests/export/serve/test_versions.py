"""New versions, broken versions, old versions."""

import json
import os
import shutil
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from export.serve.labels import parse_labels
from export.serve.limits import Limits
from export.serve.model.served import ServedModel
from tests.export.serve import served

IMAGES = served.images(64)


def add(exported, folder, number=2):
    """Adds the second version as the exporter does: by a rename."""
    shutil.copytree(exported / "2", folder / ".writing")
    (folder / ".writing").rename(folder / str(number))


def version(model):
    return model.current.number


def statuses(pets):
    answer = pets.get("/v1/models/pets").json["model_version_status"]
    return {row["version"]: row["state"] for row in answer}


def test_a_new_version_takes_over(folder, exported):
    pets = served.Served(folder)
    content = {"instances": IMAGES[:3].tolist()}
    before = served.offline(exported / "1", images=IMAGES[:3])
    after = served.offline(exported / "2", images=IMAGES[:3])
    assert abs(before["scores"] - after["scores"]).max() > 0.01
    served.assert_answers(pets.predict(content).json["predictions"], before)
    old = pets.model.current
    add(exported, folder)
    pets.model.refresh()
    served.assert_answers(pets.predict(content).json["predictions"], after)
    outputs = old.signatures["serving_default"].run({"images": IMAGES[:3]})
    assert abs(outputs.arrays["scores"] - before["scores"]).max() < 1e-5
    assert statuses(pets) == {"1": "END", "2": "AVAILABLE"}
    gone = pets.predict(content, "/v1/models/pets/versions/1:predict")
    assert gone.status == 404


def test_versions_share_no_batch(folder, exported):
    """Even though their batch functions have the same name."""
    pets = served.Served(folder, batch_timeout_ms=2)
    old = pets.model.current
    add(exported, folder)
    pets.model.refresh()
    expected = [
        served.offline(exported / n, images=IMAGES)["scores"] for n in "12"
    ]

    def difference(place):
        both = (old, pets.model.current)
        signature = both[place % 2].signatures["serving_default"]
        outputs = signature.run({"images": IMAGES[place : place + 1]})
        right = expected[place % 2][place]
        return abs(outputs.arrays["scores"][0] - right).max()

    with ThreadPoolExecutor(16) as threads:
        assert max(threads.map(difference, range(64))) < 1e-5


def test_concurrent_requests_are_computed_together_and_kept_apart(folder):
    pets = served.Served(folder, batch_timeout_ms=20)
    expected = served.offline(folder / "1", images=IMAGES)["scores"]
    signatures = pets.model.current.signatures
    start = threading.Barrier(32)

    def ask(place):
        start.wait()
        image = IMAGES[place : place + 1]
        if place % 2:
            signature = signatures["serving_float"]
            image = image.astype(np.float32) / 255
        else:
            signature = signatures["serving_default"]
        outputs = signature.run({"images": image})
        difference = abs(outputs.arrays["scores"][0] - expected[place]).max()
        return difference, outputs.batch

    with ThreadPoolExecutor(32) as threads:
        differences, batches = zip(*threads.map(ask, range(32)), strict=True)
    assert max(differences) < 1e-5
    assert 2 <= max(batches) <= 16


def test_what_is_no_version_is_not_looked_at(folder, exported):
    shutil.copytree(exported / "2", folder / ".writing-2")
    shutil.copytree(exported / "2", folder / "2.old")
    (folder / "3").write_text("a file")
    assert version(ServedModel(folder, "pets", Limits())) == 1


def test_a_broken_version_leaves_the_old_one(folder, exported, caplog):
    pets = served.Served(folder)
    add(exported, folder)
    graph = (folder / "2" / "saved_model.pb").read_bytes()
    (folder / "2" / "saved_model.pb").write_bytes(graph[: len(graph) // 2])
    pets.model.refresh()
    assert version(pets.model) == 1
    assert "version not loaded" in caplog.text
    answer = pets.get("/v1/models/pets/versions/2").json
    (status,) = answer["model_version_status"]
    assert status["state"] == "END"
    assert status["status"]["error_code"] == "UNKNOWN"
    assert "version 2 cannot be loaded" in status["status"]["error_message"]
    assert str(folder) not in json.dumps(answer)
    caplog.clear()
    pets.model.refresh()
    assert caplog.text == ""  # not tried again until it changes
    (folder / "2" / "saved_model.pb").write_bytes(graph)
    pets.model.refresh()
    assert version(pets.model) == 2
    assert statuses(pets) == {"1": "END", "2": "AVAILABLE"}


def test_the_newest_that_works_is_served_from_the_start(folder):
    (folder / "2").mkdir()
    assert version(ServedModel(folder, "pets", Limits())) == 1


def test_removing_the_newest_goes_back(folder, exported):
    add(exported, folder)
    model = ServedModel(folder, "pets", Limits())
    assert version(model) == 2
    shutil.rmtree(folder / "2")
    model.refresh()
    assert version(model) == 1
    shutil.rmtree(folder / "1")
    model.refresh()
    assert version(model) == 1


def test_a_version_written_anew_is_loaded_anew(folder, exported):
    model = ServedModel(folder, "pets", Limits())
    first = model.current
    shutil.rmtree(folder / "1")
    add(exported, folder, 1)
    model.refresh()
    assert model.current is not first
    model.refresh()
    assert model.current.number == 1


def test_nothing_of_an_old_version_stays(folder, exported):
    """Neither weights nor threads: each load would leave some behind."""
    model = ServedModel(folder, "pets", Limits())
    threads = []
    for number in range(2, 6):
        old = weakref.ref(model.current)
        add(exported, folder, number)
        model.refresh()
        model.refresh()
        assert old() is None
        threads.append(len(os.listdir("/proc/self/task")))
    assert threads[-1] <= threads[0]


def test_watching_finds_a_new_version(folder, exported):
    model = ServedModel(folder, "pets", Limits())
    thread = model.watch(0.01)
    add(exported, folder)
    for _ in range(1000):
        if version(model) == 2:
            break
        threading.Event().wait(0.01)
    assert version(model) == 2
    model.stop()
    thread.join(10)
    assert not thread.is_alive()


def asked(pets, which):
    """The class scores that an address answers with."""
    content = {"instances": IMAGES[:2].tolist()}
    path = f"/v1/models/pets{which}:predict"
    return [
        row["scores"] for row in pets.predict(content, path).json["predictions"]
    ]


def scores(exported, number):
    return served.offline(exported / number, images=IMAGES[:2])["scores"]


def test_a_label_stays_with_its_version(folder, exported):
    add(exported, folder)
    pets = served.Served(folder, {"stable": 1, "canary": 2, "prod": 1})
    assert statuses(pets) == {"1": "AVAILABLE", "2": "AVAILABLE"}
    add(exported, folder, 3)
    pets.model.refresh()
    assert version(pets.model) == 3
    answers = {
        "1": ("/labels/stable", "/labels/prod", "/versions/1"),
        "2": ("/labels/canary", "/versions/2", "/versions/3", ""),
    }
    for number, addresses in answers.items():
        for address in addresses:
            found = asked(pets, address)
            np.testing.assert_allclose(
                found, scores(exported, number), atol=1e-5
            )


def test_labels_of_the_other_protocol_and_the_other_routes(folder, exported):
    add(exported, folder)
    pets = served.Served(folder, {"stable": 1})
    status = pets.get("/v1/models/pets/labels/stable").json
    assert [row["version"] for row in status["model_version_status"]] == ["1"]
    metadata = pets.get("/v1/models/pets/labels/stable/metadata").json
    assert metadata["model_spec"]["version"] == "1"
    answer = pets.get("/v2/models/pets/versions/stable")
    assert answer.json["versions"] == ["1", "2"]
    rows = IMAGES[:2].tolist()
    tensor = served.tensor("images", "UINT8", [2, 8, 8, 3], rows)
    path = "/v2/models/pets/versions/stable/infer"
    answer = pets.ask("POST", path, {"inputs": [tensor]}).json
    assert answer["model_version"] == "1"
    found = np.reshape(answer["outputs"][-1]["data"], (2, 3))
    np.testing.assert_allclose(found, scores(exported, "1"), atol=1e-5)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("pets/labels/old", "Unrecognized servable version label: old"),
        ("dogs/labels/stable", "Unrecognized servable version label: stable"),
        ("pets/labels/1", "Unrecognized servable version label: 1"),
        ("pets/labels/", "Malformed request: POST /v1/models/pets/labels/"),
        ("pets/versions/1/labels/stable", "Malformed request"),
    ],
)
def test_labels_that_are_none(folder, path, words):
    pets = served.Served(folder, {"stable": 1})
    for verb in ("predict", "classify"):
        answer = pets.ask(
            "POST", f"/v1/models/{path}:{verb}", {"instances": [1]}
        )
        assert answer.status == 400
        assert words in answer.error


def test_a_version_with_a_label_outlives_its_folder(folder, exported):
    add(exported, folder)
    pets = served.Served(folder, {"stable": 1})
    shutil.rmtree(folder / "1")
    pets.model.refresh()
    assert statuses(pets) == {"1": "AVAILABLE", "2": "AVAILABLE"}
    shutil.copytree(exported / "2", folder / "1")
    pets.model.refresh()
    found = asked(pets, "/labels/stable")
    np.testing.assert_allclose(found, scores(exported, "2"), atol=1e-5)
    graph = folder / "1" / "saved_model.pb"
    graph.write_bytes(graph.read_bytes()[:100])
    pets.model.refresh()
    assert asked(pets, "/labels/stable") == found
    assert version(pets.model) == 2


def test_labels_of_versions_that_are_not_there_or_broken(folder):
    with pytest.raises(ValueError, match="Received: old=7; .*pets has 1"):
        served.Served(folder, {"stable": 1, "old": 7})
    (folder / "2").mkdir()
    with pytest.raises(ValueError, match="Received: new=2, but version 2 cann"):
        served.Served(folder, {"new": 2})


@pytest.mark.parametrize(
    "text",
    ["stable", "stable=", "=1", "1=1", "a/b=1", "a:b=1", "a=b=1", "a=-1",
     "a b=1", "a=1.0", "a=²", "a=" + "9" * 19],
)  # fmt: skip
def test_what_is_no_label(text):
    with pytest.raises(ValueError, match="must be names with a version each"):
        parse_labels(["stable=1", text])


def test_a_label_given_twice():
    with pytest.raises(ValueError, match="Received: stable twice"):
        parse_labels(["stable=1", "stable=2"])


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(ValueError, match="Received: --model=.*no folder"):
        ServedModel(tmp_path / "none", "pets", Limits())


def test_a_folder_without_versions(tmp_path):
    with pytest.raises(ValueError, match="Received: --model=.*has none"):
        ServedModel(tmp_path, "pets", Limits())


def test_a_folder_with_broken_versions_alone(tmp_path):
    (tmp_path / "7").mkdir()
    with pytest.raises(ValueError, match="where version 7 cannot be loaded"):
        ServedModel(tmp_path, "pets", Limits())
