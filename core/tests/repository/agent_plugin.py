"""Repository agents that record their calls, and may move the model's folder or raise."""

from __future__ import annotations

from pathlib import Path

from tritonpy.api.repo_agent import AgentAction, AgentModel, RepoAgent
from tritonpy.hookspecs import hookimpl


class AgentPlugin:
    """Registers the agents "first" and "second"; `calls` has their names and actions."""

    def __init__(self, moves_to: Path | None = None) -> None:
        self.calls: list[tuple[str, str]] = []
        plugin = self

        class First(RepoAgent):
            def act(self, action: AgentAction, model: AgentModel) -> Path | None:
                plugin.calls.append(("first", action.value))
                return moves_to if action is AgentAction.LOAD else None

        class Second(RepoAgent):
            def act(self, action: AgentAction, model: AgentModel) -> Path | None:
                plugin.calls.append(("second", action.value))
                if action is AgentAction.LOAD and "refuse" in model.parameters:
                    raise ValueError(model.parameters["refuse"])
                return None

        self._agents = {"first": First, "second": Second}

    @hookimpl
    def tritonpy_repo_agents(self) -> dict[str, type[RepoAgent]]:
        return self._agents


AGENTS = 'model_repository_agents { agents { name: "first" } agents { name: "second" %s } }'
