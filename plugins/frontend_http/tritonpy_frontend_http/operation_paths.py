"""Where the management operations of the server lie, and which right each takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tritonpy import Operation, Verb

Verbs = Mapping[str, Verb]
"""Rights by method."""


def verbs_by_path(operations: Sequence[Operation]) -> list[tuple[re.Pattern[str], Verbs]]:
    """Return each path, as a pattern of unescaped paths, with the rights that its methods take."""
    verbs: dict[str, dict[str, Verb]] = {}
    for operation in operations:
        verbs.setdefault(operation.path, {})[operation.method] = operation.verb
    return [
        (re.compile("/v2/" + re.sub(r"\{[a-z_]+\}", "[^/]+", path)), by_method) for path, by_method in verbs.items()
    ]
