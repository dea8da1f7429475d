import pytest

from trainers.stored_recipe import read_recipe


def test_a_recipe_that_is_not_there_is_named_once(tmp_path):
    path = tmp_path / "none.json"
    with pytest.raises(ValueError, match="A recipe is a JSON file") as refusal:
        read_recipe(path)
    expected = f"Received: {path}: No such file or directory."
    assert str(refusal.value).endswith(expected)
