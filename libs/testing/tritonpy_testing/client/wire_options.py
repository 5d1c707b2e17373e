"""Arguments of tritonclient's methods that have no meaning without a wire."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

QUERY = frozenset({"headers", "query_params", "client_timeout", "as_json"})
STREAM = frozenset({"headers", "compression_algorithm"})
INFERENCE = frozenset(
    {
        "query_params",
        "compression_algorithm",
        "request_compression_algorithm",
        "response_compression_algorithm",
    }
)


def takes(names: frozenset[str]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Let a method accept and ignore the arguments `names`.

    Other unknown arguments stay a TypeError.
    """

    def decorate(method: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(method)
        def call(*args: Any, **options: Any) -> T:
            return method(
                *args, **{name: value for name, value in options.items() if name not in names}
            )

        return call

    return decorate
