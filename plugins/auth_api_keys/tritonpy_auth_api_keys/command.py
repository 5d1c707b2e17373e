"""The command `tritonpy api-key new`, which creates a key."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime

from tritonpy import Command, StartupError
from tritonpy.auth import Verb
from tritonpy_auth_api_keys.key import new_key
from tritonpy_auth_api_keys.key_file import KeyEntry, format_entry

_HELP = {
    Verb.INFER: "models that the key may run",
    Verb.READ: (
        "models whose metadata, configuration and statistics it may read; "
        "'*' includes the server's own"
    ),
    Verb.MANAGE: (
        "models that it may load and unload; loading can run code, so this is the right to run "
        "programs"
    ),
    Verb.ADMIN: (
        "models whose trace settings it may change; '*' includes shared memory, "
        "tracing and logs of the server"
    ),
}


class ApiKeyCommand(Command):
    """Create an API key.

    tritonpy api-key new --name ci --infer 'digits*' --read '*' >> keys.toml

    prints the key once on standard error. Its entry for the file in `auth: {api_keys: {file: …}}`
    goes to standard output.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add name, rights and expiry."""
        parser.add_argument("action", choices=["new"], help="new: create a key")
        parser.add_argument("--name", required=True, help="name of the key's owner, for logs")
        for verb in Verb:
            parser.add_argument(
                f"--{verb.value}", action="append", default=[], metavar="GLOB", help=_HELP[verb]
            )
        parser.add_argument(
            "--expires", metavar="TIME", help="expiry time, such as 2030-01-01T00:00:00Z"
        )

    def run(self, arguments: argparse.Namespace) -> int:
        """Print the key and its entry. Raises `StartupError` for invalid arguments."""
        key = new_key()
        rights = {verb.value: tuple(getattr(arguments, verb.value)) for verb in Verb}
        if not 0 < len(arguments.name) <= 120 or not all(all(globs) for globs in rights.values()):
            raise StartupError(
                "a name must have 1 to 120 characters, and a model pattern at least one"
            )
        entry = KeyEntry(arguments.name, key.hash, **rights, expires=_time(arguments.expires))
        sys.stderr.write(f"The key, printed only once: {key.text}\n")
        sys.stdout.write(f"{format_entry(key.id, entry)}\n")
        return 0


def _time(text: str | None) -> datetime | None:
    try:
        when = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise StartupError(f"'{text}' is not a time; write it as 2030-01-01T00:00:00Z") from None
    if when is not None and when.tzinfo is None:
        raise StartupError(f"'{text}' needs a time zone, such as {text}Z")
    return when
