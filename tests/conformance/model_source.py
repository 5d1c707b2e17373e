"""Reader of model sources: the names of the actions that a model supports."""

from __future__ import annotations

import ast

from tests.conformance.repository import MODELS


def keys(model: str, name: str) -> list[str]:
    """Return the keys of the module-level dictionary `name` of a model's file."""
    tree = ast.parse((MODELS / model / "1" / "model.py").read_text(encoding="utf-8"))
    found = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == name
    ]
    if len(found) != 1 or not isinstance(found[0], ast.Dict):
        raise ValueError(f"the model '{model}' has no dictionary '{name}'")
    return [str(ast.literal_eval(key)) for key in found[0].keys if key is not None]
