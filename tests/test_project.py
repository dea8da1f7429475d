"""What the documents say, held against what is there."""

import pathlib
import re

import pytest

from tests.conftest import skip_or_fail
from tests.models.test_variants import PARAMETERS

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


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_every_dependency_has_a_reason(name):
    rows = [row.split("|")[1] for row in BUILD.splitlines() if row[:2] == "| "]
    reasons = {word.strip(" `") for row in rows for word in row.split(",")}
    assert set(requirements(name)) <= reasons


def test_the_readme_s_parameters_are_the_pinned_ones():
    section = README.split("## Networks")[1].split("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| `")]
    table = {}
    for row in rows:
        _, names, _, *counts = (cell.strip() for cell in row.split("|"))
        for place, name in enumerate(re.findall("`([a-z0-9_]+)`", names)):
            if name in PARAMETERS:
                table[name] = [
                    int(c.split(", ")[place].replace(",", ""))
                    for c in counts
                    if c and c != "the same"
                ]
    assert set(table) == set(PARAMETERS)
    for name, counts in table.items():
        assert counts == list(dict.fromkeys(PARAMETERS[name])), name


def test_pictures_of_the_readme_exist():
    for path in re.findall(r"\]\(((?:docs/)[^)]+)\)", README):
        assert (ROOT / path).exists(), path
