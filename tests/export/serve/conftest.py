import shutil

import pytest

from tests.export.serve import served


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
