"""The repository agents of one load of a model."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tritonpy.api.repo_agent import AgentAction, AgentModel, RepoAgent

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

log = logging.getLogger("tritonpy.repository")


class AgentChain:
    """The agents that a configuration names: one agent object per entry, in the same order."""

    def __init__(self, name: str, config: ModelConfig, agents: Sequence[RepoAgent]) -> None:
        entries = config.model_repository_agents.agents
        self._name = name
        self._config = config
        self._agents: list[tuple[RepoAgent, Mapping[str, str]]] = [
            (agent, dict(entry.parameters)) for agent, entry in zip(agents, entries, strict=True)
        ]
        self._called = 0
        self._path = Path()

    def load(self, path: Path) -> Path:
        """Call every agent with LOAD; return the folder that the last one returned.

        An exception of an agent fails the load.
        """
        self._path = path
        for agent, parameters in self._agents:
            self._called += 1
            self._path = agent.act(AgentAction.LOAD, self._model(parameters)) or self._path
        return self._path

    def notify(self, action: AgentAction) -> None:
        """Call every agent that was called with LOAD; an exception is logged."""
        for agent, parameters in self._agents[: self._called]:
            try:
                agent.act(action, self._model(parameters))
            except Exception:
                log.exception(
                    "repository agent %s failed on %s of model %s",
                    type(agent).__name__,
                    action.value,
                    self._name,
                )

    def _model(self, parameters: Mapping[str, str]) -> AgentModel:
        return AgentModel(self._name, self._path, parameters, self._config)
