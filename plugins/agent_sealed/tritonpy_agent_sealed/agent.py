"""The agent `sealed`: loads models that a trusted key signed, and decrypts them."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import ClassVar

from tritonpy import AgentAction, AgentModel, InvalidArgument, RepoAgent, TritonError
from tritonpy_agent_sealed.keys import trusted_keys
from tritonpy_agent_sealed.manifest import read
from tritonpy_agent_sealed.opening import unseal
from tritonpy_agent_sealed.options import SealedOptions
from tritonpy_agent_sealed.private_folder import PrivateFolder

_OVER = (AgentAction.LOAD_FAIL, AgentAction.UNLOAD_COMPLETE)


class SealedAgent(RepoAgent):
    """On LOAD the model is opened into a folder of its own, which goes when the model does. Keys are read at every load: new ones need no restart."""

    Options: ClassVar[type[SealedOptions]] = SealedOptions

    def __init__(self, options: SealedOptions) -> None:
        super().__init__(options)
        self._folder: PrivateFolder | None = None

    def act(self, action: AgentAction, model: AgentModel) -> Path | None:
        """Return the folder of the opened model on LOAD. Raises InvalidArgument, with the reason, for one that is not trusted or whole."""
        if action is AgentAction.LOAD:
            return self._opened(model)
        if action in _OVER and self._folder is not None:
            self._folder.remove()
        return None

    def _opened(self, model: AgentModel) -> Path:
        try:
            manifest = read(model.path, model.name, trusted_keys(self.options.verify_keys))
            self._folder = PrivateFolder(self.options.directory)
            unseal(model.path, self._folder.path, manifest, self.options.decryption_keys)
        except TritonError as error:
            raise InvalidArgument(f"model '{model.name}' is not loaded: {error}") from error
        except OSError as error:
            raise InvalidArgument(f"model '{model.name}' cannot be opened: {self._in_words(error)}") from error
        return self._folder.path

    def _in_words(self, error: OSError) -> str:
        what = os.strerror(error.errno) if error.errno else str(error)
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            return f"{what} ({error.filename})" if error.filename else what
        folder = self.options.directory or Path(tempfile.gettempdir())
        return f"{what}: {folder} has no room for what is in it when it is decrypted; make some, or give the agent another directory"
