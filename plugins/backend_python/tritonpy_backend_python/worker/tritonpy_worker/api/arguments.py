"""How the API takes and refuses arguments: by the rules and in the words of Triton's bindings."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any


def mismatch(function: str, signature: str, *arguments: Any, **named: Any) -> TypeError:
    """Return what Triton's API raises for an argument of the wrong type: what `signature` would have taken, and what it was given."""
    kind = "constructor" if function == "__init__" else "function"
    given = [", ".join(map(repr, arguments))] if arguments else []
    if named:
        given.append("kwargs: " + ", ".join([f"{name}={value!r}" for name, value in named.items()]))
    return TypeError(
        f"{function}(): incompatible {kind} arguments. The following argument types are supported:\n"
        f"    1. {signature}\n\nInvoked with: {'; '.join(given)}"
    )


def text(value: Any) -> str | None:
    """Return `value` as text where it is text, or bytes that are UTF-8; None for anything else."""
    if isinstance(value, str):
        return value
    return value.decode() if isinstance(value, bytes) else None


def is_sequence_of(value: Any, *kinds: type) -> bool:
    """Say whether `value` is a sequence, other than text or bytes, whose elements are all of one of `kinds`."""
    if not isinstance(value, (list, tuple)) and (not isinstance(value, Sequence) or isinstance(value, (str, bytes))):
        return False
    return all([isinstance(each, kinds) for each in value])


def is_integer(value: Any, lowest: int, bits: int) -> bool:
    """Say whether `value` is a whole number, numpy's included, of the 2 to the power of `bits` from `lowest` on."""
    try:
        return lowest <= index(value) < lowest + (1 << bits)
    except TypeError:
        return False


def is_truth(value: Any) -> bool:
    """Say whether `value` is something that counts as true or false, such as a number, and not None or text."""
    return value is not None and hasattr(value, "__bool__")


def uncastable() -> RuntimeError:
    """Return what Triton's bindings raise for a value that has the right type and no counterpart, in whatever argument."""
    return RuntimeError(
        "Unable to cast Python instance to C++ type "
        "(#define PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode for details)"
    )
