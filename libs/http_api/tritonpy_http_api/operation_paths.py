"""Paths and rights of the management operations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tritonpy.auth import Verb
from tritonpy.frontend import Operation

Verbs = Mapping[str, Verb]
"""Rights by method."""


def verbs_by_path(operations: Sequence[Operation]) -> list[tuple[re.Pattern[str], Verbs]]:
    """Return a pattern for each path (unescaped), with the right that each HTTP method needs."""
    verbs: dict[str, dict[str, Verb]] = {}
    for operation in operations:
        verbs.setdefault(operation.path, {})[operation.method] = operation.verb
    return [
        (re.compile("/v2/" + re.sub(r"\{[a-z_]+\}", "[^/]+", path)), by_method)
        for path, by_method in verbs.items()
    ]
