"""Pure parsing of the structure of arguments and results in torch.export's notation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tritonpy import InvalidArgument

Keys = tuple[str | int, ...]
_SEQUENCES = frozenset({"builtins.tuple", "builtins.list"})
_DICTIONARIES = frozenset({"builtins.dict", "collections.OrderedDict"})


def tree_leaves(spec: str) -> tuple[Keys, ...]:
    """Return the path to each leaf of a serialized `TreeSpec`, in order.

    A path consists of indexes for tuples and lists, and keys for dictionaries. Raises
    `InvalidArgument` for other containers.
    """
    return tuple(_leaves(json.loads(spec)[1]))


def _leaves(node: dict[str, Any]) -> Iterator[Keys]:
    kind, children = node["type"], node["children_spec"]
    if kind is None:
        yield ()
        return
    for key, child in zip(_keys(kind, node["context"], len(children)), children, strict=True):
        for rest in _leaves(child):
            yield (key, *rest)


def _keys(kind: str, context: Any, count: int) -> Sequence[str | int]:
    if kind in _SEQUENCES:
        return range(count)
    if kind in _DICTIONARIES:
        keys: list[str] = json.loads(context) if isinstance(context, str) else context
        return keys
    raise InvalidArgument(
        f"the model takes or returns a {kind}; only tensors, tuples, lists and dictionaries can "
        "be served"
    )


def input_name(keys: Keys) -> str:
    """Return Triton's name of an argument leaf: `ARGS[0]`, `KWARGS[mask]`, `ARGS[2][key]`."""
    head, *rest = keys
    return ("KWARGS" if head == 1 else "ARGS") + _brackets(rest)


def output_name(keys: Keys) -> str:
    """Return Triton's name of a result leaf: `RESULT`, `RESULT[0]`, `RESULT[key]`."""
    return "RESULT" + _brackets(keys)


def _brackets(keys: Sequence[str | int]) -> str:
    return "".join([f"[{key}]" for key in keys])
