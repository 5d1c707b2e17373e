"""Headers of an inference call that its request keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tritonpy.auth.authorizer import joined_headers
from tritonpy_types import InferRequest
from tritonpy_types.errors import InvalidArgument

RESERVED = frozenset(
    {
        "sequence_id",
        "sequence_start",
        "sequence_end",
        "priority",
        "timeout",
        "headers",
        "binary_data_output",
    }
)
_CASE_MATTERS = "(?-i)"


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern.

    It ignores case unless it begins with `(?-i)`. Raises ValueError.

    Triton uses RE2. RE2 syntax that Python's `re` does not support is an error. Matching in Python
    can take time that is exponential in the length of a header name. With a pattern such as
    `(a+)+$`, clients can slow down the server.
    """
    text = pattern.removeprefix(_CASE_MATTERS)
    try:
        return re.compile(text, 0 if text != pattern else re.IGNORECASE)
    except re.error as error:
        raise ValueError(
            f"header_forward_pattern: '{pattern}' is not a valid regular expression: {error}"
        ) from None


class HeaderForwarding:
    """Copies headers whose names match the pattern to the parameters of a request.

    A header replaces a parameter of the same name.
    """

    def __init__(self, pattern: str) -> None:
        self._matches = compile_pattern(pattern).search

    def apply(self, headers: Iterable[tuple[str, str]], request: InferRequest) -> None:
        """Forward `headers`; their names keep their case.

        Raises InvalidArgument for a reserved name.
        """
        chosen = {name: value for name, value in headers if self._matches(name)}
        for name in chosen:
            if name in RESERVED or name.startswith("triton_"):
                raise InvalidArgument(
                    f"Header '{name}' is reserved for Triton usage and cannot be forwarded."
                )
        if chosen:
            request.parameters = {**request.parameters, **chosen}


def keep_headers(
    headers: Iterable[tuple[str, str]], names: frozenset[str], request: InferRequest
) -> None:
    """Store the headers in `names` (lower case) in `request.headers`.

    Values of one name are joined.
    """
    request.headers = joined_headers(
        (name, value) for name, value in headers if name.lower() in names
    )
