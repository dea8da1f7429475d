import shutil

import pytest
from playwright import sync_api as playwright

from encapnet_tf.weights.archive import shipped_path
from export.version.from_archive import exported_archive
from tests.conftest import skip_or_fail
from tests.export.serve import served

CHROMIUM = next(
    filter(
        None,
        map(shutil.which, ("chromium", "chromium-browser", "google-chrome")),
    ),
    None,
)
FLAGS = [
    f"--{flag}"
    for flag in (
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
    )
]


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        skip_or_fail("no Chromium is installed (Debian: chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shipped(tmp_path_factory):
    """The network that is served by default; beside it, the cache it is in."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENCAPNET_CACHE", str(cache))
        yield exported_archive(shipped_path("mnist")), cache


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Two versions that answer differently."""
    folder = tmp_path_factory.mktemp("exported") / "pets"
    for seed in range(2):
        served.export_small(folder, seed=seed)
    return folder


@pytest.fixture
def folder(tmp_path, exported):
    """A folder with the first of them."""
    shutil.copytree(exported / "1", tmp_path / "pets" / "1")
    return tmp_path / "pets"


@pytest.fixture(scope="module")
def pets_folder(tmp_path_factory):
    """The versions of a small network of pets."""
    folder = tmp_path_factory.mktemp("served") / "pets"
    served.export_small(folder)
    return folder
