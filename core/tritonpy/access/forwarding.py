"""What of the headers of an inference call its request keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tritonpy.access.credentials import joined_headers
from tritonpy.errors import InvalidArgument
from tritonpy.types import InferRequest

RESERVED = frozenset(
    {"sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "headers", "binary_data_output"}
)
_CASE_MATTERS = "(?-i)"


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the pattern, which a header's name matches in any case unless it begins with `(?-i)`; raises ValueError.

    Triton's patterns are RE2's. What both know means the same; what only RE2 knows does not compile. Python's engine can take time that
    is exponential in the length of a name, so the operator who writes a pattern such as `(a+)+$` lets clients burn it.
    """
    text = pattern.removeprefix(_CASE_MATTERS)
    try:
        return re.compile(text, 0 if text != pattern else re.IGNORECASE)
    except re.error as error:
        raise ValueError(f"header_forward_pattern: '{pattern}' is no regular expression: {error}") from None


class HeaderForwarding:
    """Adds the headers whose names match anywhere to the parameters of a request, over those of the same name."""

    def __init__(self, pattern: str) -> None:
        self._matches = compile_pattern(pattern).search

    def apply(self, headers: Iterable[tuple[str, str]], request: InferRequest) -> None:
        """Forward `headers`, names as they were sent; raises InvalidArgument for a name that means something to the server."""
        chosen = {name: value for name, value in headers if self._matches(name)}
        for name in chosen:
            if name in RESERVED or name.startswith("triton_"):
                raise InvalidArgument(f"Header '{name}' is reserved for Triton usage and cannot be forwarded.")
        if chosen:
            request.parameters = {**request.parameters, **chosen}


def keep_headers(headers: Iterable[tuple[str, str]], names: frozenset[str], request: InferRequest) -> None:
    """Put the headers that are called one of `names`, in lower case, into `request.headers`; values of one name are joined."""
    request.headers = joined_headers((name, value) for name, value in headers if name.lower() in names)
