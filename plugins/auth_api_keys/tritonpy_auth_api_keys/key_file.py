"""The key file: TOML with one table per key, named by its id."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from tritonpy.auth import Principal, Rights, Verb

Globs = tuple[Annotated[str, Meta(min_length=1)], ...]
_ID = re.compile(r"[0-9a-f]{12}", re.ASCII)


class KeyEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file's entry of one key. The verbs list patterns of model names."""

    name: Annotated[str, Meta(min_length=1, max_length=120)]
    hash: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]
    infer: Globs = ()
    read: Globs = ()
    manage: Globs = ()
    admin: Globs = ()
    expires: datetime | None = None

    def rights(self) -> Rights:
        """Return the rights of the key."""
        return Rights({verb: getattr(self, verb.value) for verb in Verb})


class KnownKey(msgspec.Struct, frozen=True):
    """A key of the file, prepared for lookup. `expires_s` is in seconds since 1970."""

    hash: str
    principal: Principal
    expires_s: float = math.inf


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: dict[str, KeyEntry] = {}


def parse_key_file(text: str) -> Mapping[str, KnownKey]:
    """Return the keys by their ids.

    Raises `ValueError` with the position for an invalid file. Its text contains no hash.
    """
    try:
        file = msgspec.convert(tomllib.loads(text), _File)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    return {identity: _known(identity, entry) for identity, entry in file.keys.items()}


def _known(identity: str, entry: KeyEntry) -> KnownKey:
    if not _ID.fullmatch(identity):
        raise ValueError(
            f"'{identity}' is not a key id, which has 12 hexadecimal digits in lower case"
        )
    if entry.expires is not None and entry.expires.tzinfo is None:
        raise ValueError(
            f"keys.{identity}: 'expires' needs a time zone, such as 2030-01-01T00:00:00Z"
        )
    principal = Principal(f"{entry.name} ({identity})", entry.rights(), entry.name)
    return KnownKey(
        entry.hash, principal, math.inf if entry.expires is None else entry.expires.timestamp()
    )


def format_entry(identity: str, entry: KeyEntry) -> str:
    """Return the TOML table of one key."""
    lines = [f"[keys.{identity}]", f"name = {_quoted(entry.name)}", f"hash = {_quoted(entry.hash)}"]
    for verb in Verb:
        globs: Globs = getattr(entry, verb.value)
        if globs:
            lines.append(f"{verb.value} = [{', '.join(map(_quoted, globs))}]")
    if entry.expires is not None:
        lines.append(f"expires = {entry.expires.isoformat()}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    # JSON escapes are valid in TOML, but JSON does not escape DEL
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
