from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy.api.repo_agent import AgentAction, RepoAgent
from tritonpy.repository.agents import AgentChain
from tritonpy.testing import model_config

CONFIG = model_config("""
    model_repository_agents { agents { name: "a" parameters { key: "k" value: "1" } } agents { name: "b" } }
""")


class Noting(RepoAgent):
    def __init__(self, name, calls, path=None, fails_on=()):
        super().__init__(None)
        self.name, self.calls, self.path, self.fails_on = name, calls, path, fails_on

    def act(self, action, model):
        self.calls.append((self.name, action.value, str(model.path), dict(model.parameters)))
        if action in self.fails_on:
            raise ValueError(f"{self.name} says no")
        return self.path


def test_agents_act_in_their_order_each_on_the_folder_that_the_one_before_left():
    calls = []
    chain = AgentChain("m", CONFIG, [Noting("a", calls, Path("/new")), Noting("b", calls)])
    assert chain.load(Path("/old")) == Path("/new")
    chain.tell(AgentAction.LOAD_COMPLETE)
    assert calls == [
        ("a", "LOAD", "/old", {"k": "1"}),
        ("b", "LOAD", "/new", {}),
        ("a", "LOAD_COMPLETE", "/new", {"k": "1"}),
        ("b", "LOAD_COMPLETE", "/new", {}),
    ]


def test_an_agent_that_refuses_fails_the_load_and_those_after_it_hear_nothing():
    calls = []
    chain = AgentChain("m", CONFIG, [Noting("a", calls, fails_on=[AgentAction.LOAD]), Noting("b", calls)])
    with pytest.raises(ValueError, match="a says no"):
        chain.load(Path("/old"))
    chain.tell(AgentAction.LOAD_FAIL)
    assert [call[:2] for call in calls] == [("a", "LOAD"), ("a", "LOAD_FAIL")]


def test_an_agent_that_fails_later_is_logged_and_the_others_are_told(caplog):
    calls = []
    chain = AgentChain("m", CONFIG, [Noting("a", calls, fails_on=[AgentAction.UNLOAD]), Noting("b", calls)])
    chain.load(Path("/old"))
    chain.tell(AgentAction.UNLOAD)
    assert calls[-1][:2] == ("b", "UNLOAD")
    assert "repository agent Noting failed on UNLOAD of model m" in caplog.text


def test_a_model_without_agents_stays_where_it_is():
    assert AgentChain("m", model_config(""), []).load(Path("/old")) == Path("/old")
