"""What the documents say, held against what is there."""

import importlib.util
import json
import pathlib
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.models.test_variants import PARAMETERS
from trainers.cli.programs import PROGRAMS, load

ROOT = pathlib.Path(__file__).parent.parent
README, BUILD, TRAINING = (
    (ROOT / name).read_text()
    for name in ("README.md", "BUILD.md", "docs/training.md")
)
PAGES = [
    *(ROOT / name for name in ("README.md", "BUILD.md", "RESULTS.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Machines' own paths, and talk about how the text came to be.
FORBIDDEN = re.compile(
    r"/(work|home|root|tmp|mnt)/|\bsessions? (ago|before)\b|\bissue #?\d"
    r"|\bas (asked|requested)\b|\bTODO\b|\bFIXME\b"
    r"|\bno good choice\b|\bapart no more\b|\bsay how it is\b"
    r"|\bwhat counts\b|\d for \d+ ?ms"
)


def name_of(page):
    return str(page.relative_to(ROOT))


def anchors(page):
    """The anchors GitHub gives to a page's headings."""
    prose = FENCE.sub("", page.read_text())
    for heading in re.findall(r"^#+ (.*)$", prose, re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.lower())
        yield words.replace(" ", "-")


def _module_of(found):
    return f"python -m {PROGRAMS[found[1]]}"


def commands(text):
    """Every `python -m …` in a block, or in backticks, as a list of words."""
    quoted = re.findall(
        r"`((?:python -m|encapnet) [^`\n]*)`", FENCE.sub("", text)
    )
    blocks = "\n".join(block for _, block in FENCE.findall(text))
    joined = re.sub(r"\\\n *", " ", "\n".join([blocks, *quoted]))
    # The same program under its two names.
    names = "|".join(PROGRAMS)
    joined = re.sub(rf"(?<![\w/])encapnet ({names})\b", _module_of, joined)
    for line in re.findall(r"python3? -m ([^#&|`>\n]*)", joined):
        # What closes a quotation that was opened before `python`.
        ending = "'" if line.count("'") % 2 else ""
        yield shlex.split(line.removesuffix(ending))


def every_command():
    texts = [page.read_text() for page in PAGES]
    # What --help shows.
    texts += [f"```\n{load(name).__doc__}\n```\n" for name in PROGRAMS]
    for text in texts:
        for program, *arguments in commands(text):
            yield program, *arguments
            if program == "trainers.launch":
                own, _, passed_on = " ".join(arguments).partition("-- ")
                inner = "tune" if "tuner_workers" in own else "fit"
                yield f"trainers.{inner}", *passed_on.split()


def test_the_pages_parameters_are_the_pinned_ones():
    section = TRAINING.split("## Networks")[1].split("\n## ")[0]
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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    prose = FENCE.sub("", page.read_text())
    links = re.findall(r"\]\((?!https?://)([^)]*)\)", prose)
    for path, _, anchor in (link.partition("#") for link in links):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert target.is_relative_to(ROOT), path
        if anchor:
            assert anchor in list(anchors(target)), f"{path}#{anchor}"


@pytest.mark.parametrize(("text", "kilobytes"), [(README, 8), (BUILD, 12)])
def test_the_front_pages_stay_short(text, kilobytes):
    assert len(text.encode()) <= kilobytes * 1024


def test_every_page_can_be_reached_and_starts_with_an_example():
    for page in PAGES[3:]:
        assert f"]({name_of(page)})" in README, page
        paragraphs = page.read_text().split("\n\n")
        assert paragraphs[1].startswith(("```bash\n", "```python")), page


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_know_no_machine_and_no_author(page):
    assert not FORBIDDEN.search(page.read_text())


def test_programs_accept_every_command_of_the_documents():
    project = ("trainers", "export", "benchmarks")
    theirs, ours = [], []
    for command in set(every_command()):
        root = command[0].partition(".")[0]
        (ours if root in project else theirs).append(command)
    assert len(ours) > 40
    for program, *_ in theirs:
        assert importlib.util.find_spec(program), program
    assert {program for program, *_ in ours} >= {
        "trainers.fit", "trainers.evaluate", "trainers.tune",
        "trainers.summary", "trainers.reproduce", "trainers.benchmark",
        "trainers.launch", "trainers.h_imagenet", "trainers.runs",
        "trainers.command.completion", "export", "export.predict",
        "export.serve", "export.weights",
    }  # fmt: skip
    wrong = ("trainers.fit", "--epoch_number=3")
    answer = subprocess.run(
        [sys.executable, "-m", "tests.parse_arguments"],
        input=json.dumps([*ours, wrong]),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    *reasons, found = json.loads(answer.stdout.splitlines()[-1])
    assert "epoch_number" in found
    commands = (" ".join(command) for command in ours)
    refused = dict(zip(commands, reasons, strict=True))
    assert {line: reason for line, reason in refused.items() if reason} == {}


SNIPPETS = [
    pytest.param(page, place, block, id=f"{name_of(page)}-{place}")
    for page in PAGES
    for place, (kind, block) in enumerate(FENCE.findall(page.read_text()))
    if kind.startswith("python")
]


@pytest.mark.parametrize(("page", "place", "block"), SNIPPETS)
def test_snippets_compile(page, place, block):
    compile(block, f"{page}-{place}", "exec")


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [p for p in PAGES if "```python run" in p.read_text()], ids=name_of
)
def test_snippets_run(page, request):
    """Those marked so; they may take images and labels as given."""
    # One step: tracing it takes longer.
    tf.config.run_functions_eagerly(True)
    request.addfinalizer(lambda: tf.config.run_functions_eagerly(False))
    given = {
        "images": np.zeros((2, 32, 32, 3), np.float32),
        "labels": np.arange(2),
    }
    for kind, block in FENCE.findall(page.read_text()):
        if kind == "python run":
            quick = block.replace("encapnet_small", "encapnet_tiny")
            exec(compile(quick, str(page), "exec"), given)
    if "bare" in given:
        assert given["bare"].count_params() == given["resnet"].count_params()
    else:
        assert np.isfinite(given["model"].history.history["loss"]).all()
