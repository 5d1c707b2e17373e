"""Parsing of a model's result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch


def parse_result(result: Any) -> Mapping[str, Any] | Sequence[Any]:
    """Return the outputs in `result`, in order or by name: tensors or lists of strings.

    Raises `ValueError` for any other value.
    """
    if isinstance(result, torch.Tensor) or _is_string_list(result):
        return [result]
    if isinstance(result, Mapping):
        for name, value in result.items():
            _check(value, f"'{name}'")
        return result
    if not isinstance(result, (list, tuple)):
        raise ValueError(  # noqa: TRY004  # its text is an answer, its type says nothing to anybody
            "output must be of type Tensor, List[str] or Tuple containing one of these two "
            "types. It should not be a List / Dictionary of Tensors"
            " or a Scalar"
        )
    for index, value in enumerate(result):
        _check(value, f"at index {index}")
    return result


def _check(value: Any, where: str) -> None:
    if not isinstance(value, torch.Tensor) and not _is_string_list(value):
        raise ValueError(
            f"output {where} must be of type Tensor or List[str], received {_kind(value)}"
        )


def _is_string_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _kind(value: Any) -> str:
    return (
        f"List[{type(value[0]).__name__}]"
        if isinstance(value, list) and value
        else type(value).__name__
    )
