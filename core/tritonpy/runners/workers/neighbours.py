"""What the workers of one server share beside the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tritonpy.api.backend import ModelContext
from tritonpy.runners.call_graph import CallGraph
from tritonpy.runners.workers.shares import Shares

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class Neighbours:
    """One per server. `find(name, version)` returns the configuration of a model that serves, or raises a TritonError; `graph` has the open calls."""

    def __init__(self, find: Callable[[str, int], ModelConfig], graph: CallGraph) -> None:
        self.find = find
        self.graph = graph
        self._shares: dict[int, Shares] = {}

    def shares(self, model: ModelContext) -> Shares:
        """Return what the workers of one version share; whoever asked gives it back with `leave`, then it ends with its last user."""
        key = id(model)
        shares = self._shares.get(key)
        if shares is None:
            shares = self._shares[key] = Shares(lambda: self._shares.pop(key))
        shares.join()
        return shares
