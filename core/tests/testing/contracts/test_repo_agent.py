from __future__ import annotations

import shutil
from typing import ClassVar

import pytest

from tritonpy import AgentAction, RepoAgent, hookimpl
from tritonpy.testing import RepoAgentContract


class Copying(RepoAgent):
    """Serves a copy, unless told to refuse."""

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


def test_a_refusal_is_checked_where_there_is_one(tests):
    contract = type("Contract", (RepoAgentContract,), {"plugin_class": Copying})
    assert tests(CopyingContract) - tests(contract) == {"test_a_refusal_says_why"}


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
    Nowhere: "test_a_load_gives_a_folder_or_none",
    AlwaysAFolder: "test_a_whole_life_passes",
    CannotUnload: "test_a_whole_life_passes",
    CannotFail: "test_a_failed_load_passes",
    Lenient: "test_a_refusal_says_why",
    Mute: "test_a_refusal_says_why",
}


@pytest.mark.parametrize("agent", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_agent_fails(failures, agent):
    contract = type("Broken", (CopyingContract,), {"plugin_class": agent})
    assert BROKEN[agent] in failures(contract)
