"""The wheel, installed where the checkout is out of sight."""

import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from encapnet_tf.version import __version__
from trainers.choices import LOGS
from trainers.cli.programs import PROGRAMS

ROOT = pathlib.Path(__file__).parent.parent
PACKAGES = ("encapnet_tf", "trainers", "export")


def run(*command, cwd):
    """Runs a command that sees nothing of this process' environment."""
    return subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd)},
    )  # fmt: skip


def pip(*arguments, cwd):
    done = run(sys.executable, "-m", "pip", "-q", *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    # A build leaves files beside the sources.
    sources = folder / "sources"
    sources.mkdir()
    for path in ROOT.glob("*"):
        if path.is_file():
            shutil.copy(path, sources)
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, sources / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )  # fmt: skip
    pip(
        "wheel", "--no-deps", "--no-build-isolation", "--no-index", sources,
        cwd=folder,
    )  # fmt: skip
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel):
    """A fresh one; only the dependencies are those of this one."""
    path = wheel.parent / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", path, cwd=wheel.parent)
    python = path / "bin" / "python"
    pip(
        "--python", python, "install", "--no-deps", "--no-index", wheel,
        cwd=wheel.parent,
    )  # fmt: skip
    (packages,) = path.glob("lib/python*/site-packages")
    shared = [name for name in sys.path if name.endswith("site-packages")]
    (packages / "shared.pth").write_text("\n".join(shared) + "\n")
    return path


@pytest.mark.slow
def test_the_wheel_holds_every_file_and_no_other_package(wheel):
    ours = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "encapnet_tf/py.typed" in ours
    assert "export/serve/page/index.html" in ours
    archive = zipfile.ZipFile(wheel)
    packed = set(archive.namelist())
    assert {name for name in packed if ".dist-info/" not in name} == ours
    (metadata,) = (name for name in packed if name.endswith("/METADATA"))
    text = archive.read(metadata).decode()
    for extra, package in LOGS.items():
        line = rf"Requires-Dist: {package}\S*; extra == \"{extra}\"$"
        assert re.search(line, text, re.MULTILINE)


@pytest.mark.slow
def test_every_command_starts_outside_the_checkout(environment, tmp_path):
    encapnet = environment / "bin" / "encapnet"
    where = "import trainers; print(trainers.__file__)"
    python = environment / "bin" / "python"
    assert str(environment) in run(python, "-c", where, cwd=tmp_path).stdout
    for name in PROGRAMS:
        done = run(encapnet, name, "--help", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), name
        assert f"encapnet {name}" in done.stdout
    version = (0, f"{__version__}\n", "")
    for command in (
        (encapnet, "--version"),
        (encapnet, "serve", "--version"),
        (python, "-m", "trainers.fit", "--version"),
    ):
        done = run(*command, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == version
    listed = run(encapnet, "runs", cwd=tmp_path)
    assert listed.stdout == "No runs in runs. `encapnet fit` makes one.\n"
    misspelt = run(encapnet, "exprot", cwd=tmp_path)
    assert (misspelt.returncode, misspelt.stdout) == (2, "")
    assert "Did you mean 'export'?" in misspelt.stderr
    assert list(tmp_path.iterdir()) == []
