"""Recipes in files: how they are read, and in what two of them differ."""

import dataclasses
import json
import pathlib
from dataclasses import fields
from typing import Any

from trainers.recipe import Recipe


def read_recipe(path: str | pathlib.Path) -> dict[str, Any]:
    """Reads the fields of a `config.json`, an export's too, or `best.json`."""
    try:
        content = json.loads(pathlib.Path(path).read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as problem:
        # An OSError's own text would name the file once more.
        reason = getattr(problem, "strerror", None) or problem
        raise ValueError(
            f"A recipe is a JSON file. Received: {path}: {reason}."
        ) from None
    if not isinstance(content, dict):
        raise ValueError(
            f"A recipe is a JSON object of fields. Received: {path}."
        )
    return content.get("recipe", content)


def differences(stored: dict[str, Any], recipe: Recipe) -> list[str]:
    """Says in which fields a stored recipe differs from this one."""
    # Through JSON and back, so that tuples compare as lists.
    wanted = json.loads(json.dumps(dataclasses.asdict(recipe)))
    # A field that was not there yet had what is now the default.
    stored = {f.name: f.default for f in fields(Recipe)} | stored
    return changes(stored, wanted)


def changes(stored: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Says which settings are other than they were.

    Example:
        >>> changes({"epochs": 4}, {"epochs": 9})
        ['epochs was 4, now 9']
    """
    return [
        f"{name} was {stored.get(name)!r}, now {value!r}"
        for name, value in wanted.items()
        if stored.get(name) != value
    ]
