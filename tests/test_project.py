"""What CI runs, and what has to be installed for it."""

import pathlib
import re

import pytest

from tests.conftest import skip_or_fail

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BUILD = (ROOT / "BUILD.md").read_text()


def requirements(name):
    lines = (ROOT / name).read_text().splitlines()
    return [re.split("[<>=]", n)[0] for n in lines if n and n[0] not in "#-"]


def test_ci_runs_the_readme_s_test_command():
    (line,) = (n for n in README.splitlines() if n.endswith("-m pytest"))
    assert line in (ROOT / ".ci" / "run").read_text().splitlines()


def test_ci_skips_nothing_for_want_of_a_program(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="nothing is.*: no browser"):
        skip_or_fail("no browser")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="^no browser$"):
        skip_or_fail("no browser")


@pytest.mark.parametrize("part", ["", "-onnx", "-dev"])
def test_every_dependency_has_a_reason(part):
    rows = [row.split("|")[1] for row in BUILD.splitlines() if row[:2] == "| "]
    reasons = {word.strip(" `") for row in rows for word in row.split(",")}
    assert set(requirements(f"requirements{part}.txt")) <= reasons
