"""The base classes of plugin options."""

from __future__ import annotations

from typing import ClassVar

import msgspec


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Base of the options of a plugin's class, decoded from its keys in `server.yaml`.

    Fields have underscores in Python; the file may use `max_size` or `max-size`. Give each field a
    type, a default and a description. Write the description as `Annotated[int,
    msgspec.Meta(description="…")]`. `tritonpy serve --help-all` prints it.
    """

    # The field, a mapping of texts, that takes the keys which no other field has.
    collects: ClassVar[str] = ""


class NoOptions(Options, frozen=True):
    """Options of a class that has none."""
