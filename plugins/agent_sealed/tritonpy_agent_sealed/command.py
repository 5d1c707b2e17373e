"""The command `tritonpy seal`, which creates keys and sealed models."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tritonpy import Command, StartupError, TritonError
from tritonpy_agent_sealed.keys import (
    encryption_key,
    new_encryption_key,
    new_signing_key,
    signing_key,
)
from tritonpy_agent_sealed.seal import seal

# File names of the keys.
SIGNING, VERIFY, ENCRYPTION = "signing.pem", "verify.pem", "encryption.key"


class SealCommand(Command):
    """Sign and encrypt a model, so that a server loads it only unchanged.

    tritonpy seal keys FOLDER

    creates three keys. signing.pem stays where models are sealed, the others go to the servers.

    tritonpy seal model SOURCE TARGET --signing-key signing.pem --encryption-key encryption.key

    creates a sealed model from the folder SOURCE.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the two actions."""
        actions = parser.add_subparsers(dest="action", required=True)
        keys = actions.add_parser(
            "keys", help="create a key pair for signatures and a key for encryption"
        )
        keys.add_argument("folder", type=Path, help="folder for the keys")
        model = actions.add_parser("model", help="create a sealed model from a model")
        model.add_argument("source", type=Path, help="folder of the model")
        model.add_argument("target", type=Path, help="folder to create; its name is the model's")
        model.add_argument(
            "--signing-key", required=True, metavar="KEY", help="PEM file, or env:NAME"
        )
        model.add_argument(
            "--encryption-key",
            metavar="KEY",
            help="file, or env:NAME; without it the model is only signed",
        )

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the action and print the result. Raises `StartupError`."""
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
        if (folder / name).exists():  # a new key would belong to another set
            raise StartupError(
                f"{folder / name} exists already and may be in use: keys are never overwritten"
            )
    private, public = new_signing_key()
    for name, content, mode in (
        (SIGNING, private, 0o600),
        (VERIFY, public, 0o644),
        (ENCRYPTION, new_encryption_key(), 0o600),
    ):
        path = folder / name
        # An existing key may be in use, so never overwrite it.
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
            file.write(content)
        sys.stdout.write(f"{path}\n")


def _seal(arguments: argparse.Namespace) -> None:
    encryption = (
        None if arguments.encryption_key is None else encryption_key(arguments.encryption_key)
    )
    count = seal(arguments.source, arguments.target, signing_key(arguments.signing_key), encryption)
    what = "signed" if encryption is None else "encrypted and signed"
    sys.stdout.write(f"{arguments.target}: {count} files, {what}\n")
