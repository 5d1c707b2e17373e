"""What a plugin's class is configured with."""

from __future__ import annotations

import msgspec


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Base of the options of a plugin's class; the keys of `server.yaml` are decoded into a subclass of it.

    Fields are written with underscores in Python; both `max_size` and `max-size` are accepted in the file. Give each
    field a type, a default and, through `Annotated[int, msgspec.Meta(description="…")]`, the sentence that
    `tritonpy serve --help-all` prints.
    """


class NoOptions(Options, frozen=True):
    """For a class that has none."""
