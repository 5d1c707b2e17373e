"""The file of keys: TOML, one table per key, named by its id."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from tritonpy import Principal, Rights, Verb

Globs = tuple[Annotated[str, Meta(min_length=1)], ...]
_ID = re.compile(r"[0-9a-f]{12}", re.ASCII)


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file says of one key; the verbs list patterns of model names."""

    name: Annotated[str, Meta(min_length=1, max_length=120)]
    hash: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]
    infer: Globs = ()
    read: Globs = ()
    manage: Globs = ()
    admin: Globs = ()
    expires: datetime | None = None

    def rights(self) -> Rights:
        """Return what the key may do."""
        return Rights({verb: getattr(self, verb.value) for verb in Verb})


class KnownKey(msgspec.Struct, frozen=True):
    """A key of the file, ready to be asked about; `expires_s` in seconds since 1970."""

    hash: str
    principal: Principal
    expires_s: float = math.inf


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: dict[str, Entry] = {}


def parse_key_file(text: str) -> Mapping[str, KnownKey]:
    """Return the keys by their ids. Raises ValueError for what is no file of keys, naming the place; no hash is in its text."""
    try:
        file = msgspec.convert(tomllib.loads(text), _File)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    return {identity: _known(identity, entry) for identity, entry in file.keys.items()}


def _known(identity: str, entry: Entry) -> KnownKey:
    if not _ID.fullmatch(identity):
        raise ValueError(f"'{identity}' is no id of a key: it has 12 hexadecimal digits in lower case")
    if entry.expires is not None and entry.expires.tzinfo is None:
        raise ValueError(f"keys.{identity}: 'expires' needs a time zone, such as 2030-01-01T00:00:00Z")
    principal = Principal(f"{entry.name} ({identity})", entry.rights(), entry.name)
    return KnownKey(entry.hash, principal, math.inf if entry.expires is None else entry.expires.timestamp())


def written(identity: str, entry: Entry) -> str:
    """Return the table of one key as it stands in a file."""
    lines = [f"[keys.{identity}]", f"name = {_quoted(entry.name)}", f"hash = {_quoted(entry.hash)}"]
    for verb in Verb:
        globs: Globs = getattr(entry, verb.value)
        if globs:
            lines.append(f"{verb.value} = [{', '.join(map(_quoted, globs))}]")
    if entry.expires is not None:
        lines.append(f"expires = {entry.expires.isoformat()}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    # what JSON escapes TOML does too, DEL excepted
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
