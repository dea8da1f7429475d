import ast
import pathlib

import pytest

from encapnet_tf import choices, create_model, layers
from encapnet_tf.config import VARIANTS

ROOT = pathlib.Path(__file__).parent.parent
LISTS = {value: name for name, value in vars(choices).items() if name.isupper()}


def test_no_list_of_choices_is_written_twice():
    for package in ("encapnet_tf", "trainers/tune"):
        for path in (ROOT / package).rglob("*.py"):
            if path.name == "choices.py":
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Tuple) and len(node.elts) > 1:
                    words = [getattr(e, "value", None) for e in node.elts]
                    if all(isinstance(word, str) for word in words):
                        name = LISTS.get(tuple(words))
                        assert name is None, f"{path}:{node.lineno} is {name}"


# Depth and width do not change how a network ends.
@pytest.mark.parametrize(
    "variant", ["encapnet_tiny", "capnet_em", "cnn_same_shape", "resnet18"]
)
def test_the_config_knows_how_the_network_ends(variant):
    small = {"capnet_em": {"middle_capsules": 2}}.get(variant, {})
    last = create_model(variant, **small).layers[-1]
    ends_in_lengths = isinstance(last, layers.Lengths)
    expected = "lengths" if ends_in_lengths else "logits"
    assert VARIANTS[variant].scores == expected
    assert expected in choices.SCORES
