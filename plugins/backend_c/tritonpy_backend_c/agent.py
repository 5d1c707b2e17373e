"""A repository agent that was written for Triton's C interface: `libtritonrepoagent_NAME.so`."""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path
from typing import ClassVar

import msgspec

from tritonpy import InvalidArgument, Options
from tritonpy.config import config_to_dict
from tritonpy.repository import AgentAction, AgentModel, RepoAgent
from tritonpy_backend_c.alias import provide_names
from tritonpy_backend_c.elf import read_library
from tritonpy_backend_c.host import host
from tritonpy_backend_c.library import check
from tritonpy_backend_c.options import LibraryAgentOptions
from tritonpy_backend_c.wire import Words

_ACTIONS = {action: number for number, action in enumerate(AgentAction)}
_LAST = frozenset({AgentAction.LOAD_FAIL, AgentAction.UNLOAD_COMPLETE})


class LibraryAgent(RepoAgent):
    """Acts on one load of a model. The loads of all models share the agent of a library.

    The library runs in the server. Its agent is finalized with the last model that uses it.
    """

    Options: ClassVar[type[Options]] = LibraryAgentOptions

    def __init__(self, options: LibraryAgentOptions) -> None:
        super().__init__(options)
        self._library = read_library(Path(options.library)).path  # raises if it is none
        self._model: _OpenModel | None = None

    def act(self, action: AgentAction, model: AgentModel) -> Path | None:
        if self._model is None:
            if action is not AgentAction.LOAD:
                return None  # the agent refused the model before it knew it
            self._model = _OpenModel(self._library, model)
        try:
            return self._model.act(action, model.path)
        finally:
            if action in _LAST:
                self._model.close()
                self._model = None


class _OpenModel:
    """A model that an agent knows."""

    def __init__(self, path: Path, model: AgentModel) -> None:
        self._library = host().library
        self._path = path
        self._handle = ctypes.c_void_p()
        agent = _agents.acquire(path)
        words = Words(len(model.parameters))
        for name, value in model.parameters.items():
            words.text(name)
            words.text(value)
        try:
            check(
                self._library,
                self._library.agent_model_open(
                    agent, str(model.path).encode(),
                    msgspec.json.encode(config_to_dict(model.config)), *words.pack(),
                    ctypes.byref(self._handle),
                ),
            )  # fmt: skip
        except BaseException:
            _agents.release(path)
            raise

    def act(self, action: AgentAction, path: Path) -> Path | None:
        """Call the agent; return the folder that it set on LOAD."""
        check(self._library, self._library.agent_model_act(self._handle, _ACTIONS[action]))
        if action is not AgentAction.LOAD:
            return None
        location = Path(self._library.agent_model_location(self._handle).decode())
        if not location.is_dir():
            raise InvalidArgument(
                f"the agent {self._path.name} set a folder that is none: {location}"
            )
        return location if location != path else None

    def close(self) -> None:
        """Finalize the model. Raises the agent's error."""
        try:
            check(self._library, self._library.agent_model_close(self._handle))
        finally:
            _agents.release(self._path)


class _Agents:
    """The initialized agents of this process, by their libraries, with the number of models."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._agents: dict[Path, tuple[ctypes.c_void_p, int]] = {}

    def acquire(self, path: Path) -> ctypes.c_void_p:
        """Return the agent of a library for one more model. Raises the agent's error."""
        library = host().library
        with self._lock:
            handle, users = self._agents.get(path, (ctypes.c_void_p(), 0))
            if not users:
                provide_names(read_library(path))
                check(library, library.agent_open(str(path).encode(), ctypes.byref(handle)))
            self._agents[path] = handle, users + 1
            return handle

    def release(self, path: Path) -> None:
        """End the use by one model; the last one finalizes the agent. Raises the agent's error."""
        library = host().library
        with self._lock:
            handle, users = self._agents.pop(path)
            if users > 1:
                self._agents[path] = handle, users - 1
            else:
                check(library, library.agent_close(handle))


_agents = _Agents()
