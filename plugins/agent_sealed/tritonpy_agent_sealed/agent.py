"""The repository agent `sealed`: verifies the signature of models and decrypts them."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import ClassVar

from tritonpy import InvalidArgument, TritonError
from tritonpy.repository import AgentAction, AgentModel, RepoAgent
from tritonpy_agent_sealed.keys import trusted_keys
from tritonpy_agent_sealed.manifest import read_manifest
from tritonpy_agent_sealed.options import SealedOptions
from tritonpy_agent_sealed.private_folder import PrivateFolder
from tritonpy_agent_sealed.unseal import unseal

_OVER = (AgentAction.LOAD_FAIL, AgentAction.UNLOAD_COMPLETE)


class SealedAgent(RepoAgent):
    """On LOAD, unseals the model into a private folder, which is deleted with the model.

    Keys are read at every load, so new keys need no restart.
    """

    Options: ClassVar[type[SealedOptions]] = SealedOptions

    def __init__(self, options: SealedOptions) -> None:
        super().__init__(options)
        self._folder: PrivateFolder | None = None

    def act(self, action: AgentAction, model: AgentModel) -> Path | None:
        """Return the folder of the unsealed model on LOAD.

        Raises `InvalidArgument` with the reason if the model is not trusted or not intact.
        """
        if action is AgentAction.LOAD:
            return self._unseal(model)
        if action in _OVER and self._folder is not None:
            self._folder.remove()
        return None

    def _unseal(self, model: AgentModel) -> Path:
        try:
            manifest = read_manifest(model.path, model.name, trusted_keys(self.options.verify_keys))
            self._folder = PrivateFolder(self.options.directory)
            unseal(model.path, self._folder.path, manifest, self.options.decryption_keys)
        except TritonError as error:
            raise InvalidArgument(f"model '{model.name}' is not loaded: {error}") from error
        except OSError as error:
            raise InvalidArgument(
                f"model '{model.name}' cannot be unsealed: {self._describe(error)}"
            ) from error
        return self._folder.path

    def _describe(self, error: OSError) -> str:
        what = os.strerror(error.errno) if error.errno else str(error)
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            return f"{what} ({error.filename})" if error.filename else what
        folder = self.options.directory or Path(tempfile.gettempdir())
        return (
            f"{what}: {folder} has no space for the decrypted model; free space or configure "
            "another directory"
        )
