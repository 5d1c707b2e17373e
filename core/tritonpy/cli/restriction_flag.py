"""Parsing of the flags that restrict APIs: `<categories>:<header>=<value>`."""

from __future__ import annotations

from typing import Any

from tritonpy.access.restriction import ApiCategory
from tritonpy.cli.flag import Parse

_CATEGORIES = {category.value for category in ApiCategory}


def restriction(flag: str, what: str) -> Parse:
    """Return a parser for an entry of `restricted_apis` in server.yaml.

    `what` is "api" or "protocol".
    """

    def parse(text: str) -> dict[str, Any]:
        names, colon, rest = text.partition(":")
        key, equals, value = rest.partition("=")
        if not (colon and equals and names and key and value):
            raise ValueError(f"--{flag} option format is '<config name>:<setting>=<value>'. Got {text}")
        apis = names.split(",")
        for position, name in enumerate(apis):
            if name not in _CATEGORIES:
                raise ValueError(f"unknown restricted {what} '{name}'")
            if name in apis[:position]:
                raise ValueError(f"restricted {what} '{name}' can not be specified in multiple config groups")
        return {"apis": apis, "key": key, "value": value}

    return parse
