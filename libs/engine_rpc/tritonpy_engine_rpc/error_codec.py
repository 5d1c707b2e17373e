"""Encoding of errors between processes: code, text and optional retry delay in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from tritonpy import FailureReason, TritonError, error_of, errors


def encode_error(error: TritonError) -> list[Any]:
    """Return `error` as a JSON list."""
    more = [] if error.retry_after_s is None else [error.retry_after_s]
    return [int(error.code), error.message, *more]


def decode_error(payload: Sequence[Any], reason: FailureReason | None = None) -> TritonError:
    """Return the encoded error. Raises `ValueError` for an invalid code."""
    error = error_of(payload[0], payload[1], reason)
    if len(payload) > 2 and isfinite(payload[2]):
        error.retry_after_s = max(0.0, payload[2])
    return error


def encode_named_error(error: TritonError) -> list[Any]:
    """Return `error` as a JSON list that includes its class name."""
    code, message, *more = encode_error(error)
    return [code, message, type(error).__name__, *more]


def decode_named_error(payload: Sequence[Any]) -> TritonError:
    """Return the error that `encode_named_error` encoded.

    A class that the core does not define is replaced by the class of its code.
    """
    code, message, name, *more = payload
    kind = getattr(errors, name, None)
    error = decode_error((code, message, *more))
    if isinstance(kind, type) and issubclass(kind, TritonError) and kind is not type(error):
        named = kind(message)
        named.retry_after_s = error.retry_after_s
        return named
    return error
