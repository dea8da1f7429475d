"""What the page is made of, and what it may load."""

import re

import pytest

from tests.export.serve import served


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "pets"
    served.export_small(folder)
    return served.Served(folder)


def test_the_page_loads_from_nowhere_else(pets):
    for path in (
        "/",
        "/style.css",
        "/page.js",
        "/decoder.js",
        "/samples/0_cat.png",
    ):
        answer = pets.get(path)
        assert answer.status == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in policy
        text = answer.body.decode("latin-1")
        text = text.replace("http://www.w3.org/2000/svg", "")
        assert not re.search("(https?:)?//[a-z]", text)


def test_samples_are_those_of_the_model_alone(pets):
    assert pets.get("/page.json").json == {
        "name": "pets",
        "version": 1,
        "classes": ["cat", "dog", "café"],
        "image_shape": [8, 8, 3],
        "samples": ["0_cat.png", "1_dog.png", "2_café.png"],
        "drawing": None,
        "reconstruct": False,
        "max_megabytes": 10.0,
        "max_megapixels": 16.0,
    }
    assert pets.get("/samples/2_café.png").headers["content-type"] == (
        "image/png"
    )
    for name in ("3_cat.png", "../../saved_model.pb", "..%2f..%2flabels.txt"):
        answer = pets.get(f"/samples/{name}")
        assert answer.status == 404
