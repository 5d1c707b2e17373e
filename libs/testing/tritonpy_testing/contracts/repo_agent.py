"""The contract of repository agents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tritonpy.repository import AgentAction, AgentModel, RepoAgent
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_testing.contracts.optional import given, only_if
from tritonpy_testing.contracts.plugin import PluginContract


class RepoAgentContract(PluginContract):
    """The contract of `RepoAgent`. Set `plugin_class`, and `parameters` that it accepts.

    It must accept the model of `write_model` with `parameters`. With `refused_parameters`, which
    are optional, LOAD must fail.
    """

    interface = RepoAgent
    hook = "tritonpy_repo_agents"
    parameters: ClassVar[Mapping[str, str]] = {}
    refused_parameters: ClassVar[Mapping[str, str]] = {}

    def write_model(self, folder: Path) -> None:
        """Write the model for the agent (optional; default: one file)."""
        (folder / "1").mkdir()
        (folder / "1" / "model.onnx").write_bytes(b"weights")

    def make(self) -> RepoAgent:
        """Return a new agent for one load."""
        agent = self.plugin_class(self.make_options())
        assert isinstance(agent, RepoAgent)
        return agent

    def model(self, folder: Path, parameters: Mapping[str, str]) -> AgentModel:
        """Write the model into `folder` and return it as agents get it."""
        folder.mkdir()
        self.write_model(folder)
        return AgentModel(folder.name, folder, parameters, ModelConfig(name=folder.name))

    def test_load_returns_a_folder_or_none(self, tmp_path: Path) -> None:
        model = self.model(tmp_path / "model", self.parameters)
        folder = self.make().act(AgentAction.LOAD, model)
        assert folder is None or folder.is_dir(), f"LOAD returned {folder}, which is no folder"

    def test_a_complete_life_cycle_succeeds(self, tmp_path: Path) -> None:
        agent, model = self.make(), self.model(tmp_path / "model", self.parameters)
        folder = agent.act(AgentAction.LOAD, model)
        loaded = AgentModel(model.name, folder or model.path, model.parameters, model.config)
        for action in (AgentAction.LOAD_COMPLETE, AgentAction.UNLOAD, AgentAction.UNLOAD_COMPLETE):
            assert agent.act(action, loaded) is None, (
                f"{action.name} returned a folder: only LOAD replaces it"
            )

    def test_a_failed_load_is_accepted(self, tmp_path: Path) -> None:
        agent, model = self.make(), self.model(tmp_path / "model", self.parameters)
        agent.act(AgentAction.LOAD, model)
        assert agent.act(AgentAction.LOAD_FAIL, model) is None, (
            "LOAD_FAIL returned a folder: only LOAD replaces it"
        )

    @only_if(given("refused_parameters"))
    def test_a_refusal_has_a_text(self, tmp_path: Path) -> None:
        agent, model = self.make(), self.model(tmp_path / "model", self.refused_parameters)
        try:
            agent.act(AgentAction.LOAD, model)
        except Exception as error:
            assert str(error), "the refusal has no text"
        else:
            raise AssertionError(f"LOAD accepted {dict(self.refused_parameters)}")
        agent.act(AgentAction.LOAD_FAIL, model)
