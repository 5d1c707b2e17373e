"""The interface of a repository agent: checks or changes a model while it loads and unloads."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tritonpy.api.options import NoOptions, Options


class AgentAction(enum.Enum):
    """When an agent is asked: LOAD then LOAD_COMPLETE or LOAD_FAIL; UNLOAD then UNLOAD_COMPLETE."""

    LOAD = "LOAD"
    LOAD_COMPLETE = "LOAD_COMPLETE"
    LOAD_FAIL = "LOAD_FAIL"
    UNLOAD = "UNLOAD"
    UNLOAD_COMPLETE = "UNLOAD_COMPLETE"


@dataclass(frozen=True, slots=True)
class AgentModel:
    """The model an agent acts on: its name, its folder now, and the parameters its configuration gives this agent."""

    name: str
    path: Path
    parameters: Mapping[str, str]


class RepoAgent(ABC):
    """Named in `model_repository_agents` of a configuration; agents are asked in their listed order. One object per load of a model."""

    Options: ClassVar[type[Options]] = NoOptions

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def act(self, action: AgentAction, model: AgentModel) -> Path | None:
        """Act; on LOAD a returned folder replaces the model's, with the configuration that is in it. An exception on LOAD fails the load with its text."""
