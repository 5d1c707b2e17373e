"""The interface of repository agents, which check or change a model while it loads or unloads."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tritonpy_config.options import NoOptions, Options

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig


class AgentAction(enum.Enum):
    """The phases in which an agent is called.

    LOAD is followed by LOAD_COMPLETE or LOAD_FAIL, UNLOAD by UNLOAD_COMPLETE.
    """

    LOAD = "LOAD"
    LOAD_COMPLETE = "LOAD_COMPLETE"
    LOAD_FAIL = "LOAD_FAIL"
    UNLOAD = "UNLOAD"
    UNLOAD_COMPLETE = "UNLOAD_COMPLETE"


@dataclass(frozen=True, slots=True)
class AgentModel:
    """The model that an agent acts on.

    Its name, its current folder, the agent's parameters, and the configuration that names the
    agent.
    """

    name: str
    path: Path
    parameters: Mapping[str, str]
    config: ModelConfig


class RepoAgent(ABC):
    """Acts on models whose configuration names it in `model_repository_agents`.

    Agents are called in the configured order. The server creates one object per load of a model.
    """

    Options: ClassVar[type[Options]] = NoOptions

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def act(self, action: AgentAction, model: AgentModel) -> Path | None:
        """Act on `model`.

        On LOAD, a returned folder replaces the model's folder, including its configuration. An
        exception on LOAD fails the load with its text.
        """
