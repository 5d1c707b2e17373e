"""Help texts for options of server.yaml: type, default and meaning of each key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tritonpy_config.server.expectation import description, expectation


def describe_options(
    fields: Iterable[msgspec.structs.FieldInfo], indent: str = "    "
) -> Iterator[str]:
    """Yield a line for each of `fields`, followed by a line with its description."""
    for field in fields:
        if field.required:
            default = "required"
        elif field.default is not msgspec.NODEFAULT:
            default = f"default {msgspec.json.encode(field.default).decode()}"
        else:
            default = "default empty"
        yield f"{indent}{field.name}: {expectation(field.type)}; {default}"
        if description(field.type):
            yield f"{indent}    {description(field.type)}"
