from __future__ import annotations

import shutil
from typing import ClassVar

import pytest

from tritonpy import hookimpl
from tritonpy.repository import AgentAction, RepoAgent
from tritonpy_testing import RepoAgentContract


class Copying(RepoAgent):
    """Provides a copy, unless it is configured to refuse."""

    copy = None

    def act(self, action, model):
        if action is AgentAction.LOAD and "refuse" in model.parameters:
            raise ValueError(f"{model.name} is refused")
        if action is AgentAction.LOAD:
            self.copy = model.path.with_name("copy")
            return shutil.copytree(model.path, self.copy)
        if action in {AgentAction.LOAD_FAIL, AgentAction.UNLOAD_COMPLETE} and self.copy is not None:
            shutil.rmtree(self.copy)
        return None


class Plugin:
    @staticmethod
    @hookimpl
    def tritonpy_repo_agents():
        return {"copying": Copying}


class CopyingContract(RepoAgentContract):
    plugin_class = Copying
    refused_parameters: ClassVar = {"refuse": ""}


class TestCopying(CopyingContract):
    plugin = Plugin
    name = "copying"


def test_a_refusal_is_checked_if_parameters_are_set(tests):
    contract = type("Contract", (RepoAgentContract,), {"plugin_class": Copying})
    assert tests(CopyingContract) - tests(contract) == {"test_a_refusal_has_a_text"}


class Nowhere(Copying):
    def act(self, action, model):
        return model.path / "nowhere" if action is AgentAction.LOAD else None


class AlwaysAFolder(Copying):
    def act(self, action, model):
        super().act(action, model)
        return model.path


class CannotUnload(Copying):
    def act(self, action, model):
        if action is AgentAction.UNLOAD:
            raise RuntimeError("no")
        return super().act(action, model)


class CannotFail(Copying):
    def act(self, action, model):
        if action is AgentAction.LOAD_FAIL:
            raise RuntimeError("no")
        return super().act(action, model)


class Lenient(RepoAgent):
    def act(self, action, model):
        return None


class Mute(Copying):
    def act(self, action, model):
        if "refuse" in model.parameters:
            raise ValueError
        return super().act(action, model)


BROKEN = {
    Nowhere: "test_load_returns_a_folder_or_none",
    AlwaysAFolder: "test_a_complete_life_cycle_succeeds",
    CannotUnload: "test_a_complete_life_cycle_succeeds",
    CannotFail: "test_a_failed_load_is_accepted",
    Lenient: "test_a_refusal_has_a_text",
    Mute: "test_a_refusal_has_a_text",
}


@pytest.mark.parametrize("agent", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_agent_fails(failures, agent):
    contract = type("Broken", (CopyingContract,), {"plugin_class": agent})
    assert BROKEN[agent] in failures(contract)
