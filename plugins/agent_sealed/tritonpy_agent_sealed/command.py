"""`tritonpy seal`: makes keys and sealed models."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tritonpy import Command, StartupError, TritonError
from tritonpy_agent_sealed.keys import encryption_key, new_encryption_key, new_signing_key, signing_key
from tritonpy_agent_sealed.sealing import seal

# Name, and what it is for.
SIGNING, VERIFY, ENCRYPTION = "signing.pem", "verify.pem", "encryption.key"


class SealCommand(Command):
    """Sign and encrypt a model, so that a server loads it only as it was made.

    tritonpy seal keys FOLDER

    makes three keys; signing.pem stays where models are made, the others go to the servers.

    tritonpy seal model SOURCE TARGET --signing-key signing.pem --encryption-key encryption.key

    makes a sealed model of the folder SOURCE.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the two actions."""
        actions = parser.add_subparsers(dest="action", required=True)
        keys = actions.add_parser("keys", help="make a pair of keys for signatures, and one for encryption")
        keys.add_argument("folder", type=Path, help="where they are to lie")
        model = actions.add_parser("model", help="make a sealed model of an ordinary one")
        model.add_argument("source", type=Path, help="folder of the model")
        model.add_argument("target", type=Path, help="folder that is to be made; its name is the model's")
        model.add_argument("--signing-key", required=True, metavar="KEY", help="PEM file, or env:NAME")
        model.add_argument(
            "--encryption-key", metavar="KEY", help="file, or env:NAME; if not given, the model is only signed"
        )

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it and say what was made. Raises StartupError."""
        try:
            if arguments.action == "keys":
                _make_keys(arguments.folder)
            else:
                _seal(arguments)
        except (OSError, TritonError) as error:
            raise StartupError(str(error)) from error
        return 0


def _make_keys(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in (SIGNING, VERIFY, ENCRYPTION):
        if (folder / name).exists():  # a new one beside it would be of another set
            raise StartupError(f"{folder / name} is there already, and may be in use: keys are never written over")
    private, public = new_signing_key()
    for name, content, mode in (
        (SIGNING, private, 0o600),
        (VERIFY, public, 0o644),
        (ENCRYPTION, new_encryption_key(), 0o600),
    ):
        path = folder / name
        # A key that is there may be in use: it is never written over.
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
            file.write(content)
        sys.stdout.write(f"{path}\n")


def _seal(arguments: argparse.Namespace) -> None:
    encryption = None if arguments.encryption_key is None else encryption_key(arguments.encryption_key)
    count = seal(arguments.source, arguments.target, signing_key(arguments.signing_key), encryption)
    what = "signed" if encryption is None else "encrypted and signed"
    sys.stdout.write(f"{arguments.target}: {count} files, {what}\n")
