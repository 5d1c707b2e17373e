"""State that the workers of one server share, in addition to the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tritonpy import ModelContext
from tritonpy.execution import CallGraph
from tritonpy_workers.shared_worker_state import SharedWorkerState

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class WorkerRegistry:
    """The registry of the workers; one per server.

    `find(name, version)` returns the configuration of a ready model or raises a `TritonError`.
    `graph` holds the calls in flight.
    """

    def __init__(self, find: Callable[[str, int], ModelConfig], graph: CallGraph) -> None:
        self.find = find
        self.graph = graph
        self._shared_states: dict[int, SharedWorkerState] = {}

    def shared_state(self, model: ModelContext) -> SharedWorkerState:
        """Return the state that the workers of one version share, and add a user to it.

        The user must call `release` on it. The state ends with its last user.
        """
        key = id(model)
        shared_state = self._shared_states.get(key)
        if shared_state is None:
            shared_state = self._shared_states[key] = SharedWorkerState(
                lambda: self._shared_states.pop(key)
            )
        shared_state.join()
        return shared_state
