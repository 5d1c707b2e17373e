from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy.api.repo_agent import AgentAction, RepoAgent
from tritonpy.repository.agents import AgentChain
from tritonpy_testing import model_config

CONFIG = model_config("""
    model_repository_agents { agents { name: "a" parameters { key: "k" value: "1" } } agents { name: "b" } }
""")


class RecordingAgent(RepoAgent):
    def __init__(self, name, calls, path=None, fails_on=()):
        super().__init__(None)
        self.name, self.calls, self.path, self.fails_on = name, calls, path, fails_on

    def act(self, action, model):
        self.calls.append((self.name, action.value, str(model.path), dict(model.parameters)))
        if action in self.fails_on:
            raise ValueError(f"{self.name} says no")
        return self.path


def test_agents_are_called_in_order_with_the_folder_of_the_previous_one():
    calls = []
    chain = AgentChain(
        "m", CONFIG, [RecordingAgent("a", calls, Path("/new")), RecordingAgent("b", calls)]
    )
    assert chain.load(Path("/old")) == Path("/new")
    chain.notify(AgentAction.LOAD_COMPLETE)
    assert calls == [
        ("a", "LOAD", "/old", {"k": "1"}),
        ("b", "LOAD", "/new", {}),
        ("a", "LOAD_COMPLETE", "/new", {"k": "1"}),
        ("b", "LOAD_COMPLETE", "/new", {}),
    ]


def test_an_agent_that_raises_fails_the_load_and_later_agents_are_not_called():
    calls = []
    chain = AgentChain(
        "m",
        CONFIG,
        [RecordingAgent("a", calls, fails_on=[AgentAction.LOAD]), RecordingAgent("b", calls)],
    )
    with pytest.raises(ValueError, match="a says no"):
        chain.load(Path("/old"))
    chain.notify(AgentAction.LOAD_FAIL)
    assert [call[:2] for call in calls] == [("a", "LOAD"), ("a", "LOAD_FAIL")]


def test_an_agent_that_fails_later_is_logged_and_the_others_are_called(caplog):
    calls = []
    chain = AgentChain(
        "m",
        CONFIG,
        [RecordingAgent("a", calls, fails_on=[AgentAction.UNLOAD]), RecordingAgent("b", calls)],
    )
    chain.load(Path("/old"))
    chain.notify(AgentAction.UNLOAD)
    assert calls[-1][:2] == ("b", "UNLOAD")
    assert "repository agent RecordingAgent failed on UNLOAD of model m" in caplog.text


def test_a_model_without_agents_keeps_its_folder():
    assert AgentChain("m", model_config(""), []).load(Path("/old")) == Path("/old")
