"""Validation of API arguments by the rules and with the texts of Triton's bindings."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any


def argument_type_error(function: str, signature: str, *arguments: Any, **named: Any) -> TypeError:
    """Return the `TypeError` of Triton's API for an argument of the wrong type."""
    kind = "constructor" if function == "__init__" else "function"
    given = [", ".join(map(repr, arguments))] if arguments else []
    if named:
        given.append("kwargs: " + ", ".join([f"{name}={value!r}" for name, value in named.items()]))
    return TypeError(
        f"{function}(): incompatible {kind} arguments. The following argument types are "
        "supported:\n"
        f"    1. {signature}\n\nInvoked with: {'; '.join(given)}"
    )


def text(value: Any) -> str | None:
    """Return `value` as a string if it is a string or UTF-8 bytes; otherwise None."""
    if isinstance(value, str):
        return value
    return value.decode() if isinstance(value, bytes) else None


def is_sequence_of(value: Any, *kinds: type) -> bool:
    """Return true if `value` is a sequence, except str and bytes, with elements of `kinds` only."""
    if not isinstance(value, (list, tuple)) and (
        not isinstance(value, Sequence) or isinstance(value, (str, bytes))
    ):
        return False
    return all([isinstance(each, kinds) for each in value])


def is_integer(value: Any, lowest: int, bits: int) -> bool:
    """Return true if `value` is an integer from `lowest` to `lowest + 2**bits - 1`."""
    try:
        return lowest <= index(value) < lowest + (1 << bits)
    except TypeError:
        return False


def has_truth_value(value: Any) -> bool:
    """Return true if `value` has a truth value, such as a number, and is not None or a string."""
    return value is not None and hasattr(value, "__bool__")


def cast_error() -> RuntimeError:
    """Return the error of Triton's bindings for a value that C++ cannot represent."""
    return RuntimeError(
        "Unable to cast Python instance to C++ type "
        "(#define PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
    )
