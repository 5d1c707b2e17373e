from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

import tritonpy_backend_c
from plugins.backend_c.tests.conftest import Serve, int_model
from tritonpy import InvalidArgument, NotFound, TritonError
from tritonpy.repository import AgentAction, AgentModel
from tritonpy_backend_c.agent import LibraryAgent
from tritonpy_backend_c.options import LibraryAgentOptions
from tritonpy_testing import RepoAgentContract, model_config

ONLY_IN_LOAD = (
    "location can only be updated during TRITONREPOAGENT_ACTION_LOAD, current action type is "
    "TRITONREPOAGENT_ACTION_"
)


class TestContract(RepoAgentContract):
    plugin = tritonpy_backend_c
    plugin_class = LibraryAgent
    name = "c"
    refused_parameters: ClassVar = {"refuse": "yes"}

    @pytest.fixture(autouse=True)
    def _library(self, libraries: Path) -> None:
        self.options: dict[str, Any] = {"library": str(libraries / "agent.so")}


def agent(libraries: Path) -> LibraryAgent:
    return LibraryAgent(LibraryAgentOptions(library=str(libraries / "agent.so")))


def model(folder: Path, name: str, **parameters: str) -> AgentModel:
    path = folder / name
    path.mkdir()
    (path / "file").write_text("weights", encoding="utf-8")
    return AgentModel(name, path, parameters, model_config(f'name: "{name}"'))


def test_a_model_is_served_from_the_folder_that_the_agent_sets(
    libraries: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    used, given = agent(libraries), model(tmp_path, "m", log=str(log))
    folder = used.act(AgentAction.LOAD, given)
    assert folder is not None
    assert (folder / "file").read_text(encoding="utf-8") == "weights"
    for action in (AgentAction.LOAD_COMPLETE, AgentAction.UNLOAD):
        used.act(action, given)
    assert folder.is_dir()
    used.act(AgentAction.UNLOAD_COMPLETE, given)
    assert not folder.exists(), "the folder was not deleted with the model"
    assert log.read_text(encoding="utf-8").splitlines() == [
        "agents 1", "LOAD", "a configuration", str(folder),
        *(
            line
            for name in ("LOAD_COMPLETE", "UNLOAD", "UNLOAD_COMPLETE")
            for line in (name, ONLY_IN_LOAD + name)
        ),
        "model",
    ]  # fmt: skip


def test_models_share_an_agent_until_the_last_one_ends(libraries: Path, tmp_path: Path) -> None:
    logs = [tmp_path / f"log{number}" for number in range(3)]
    models = [model(tmp_path, f"m{each.name}", log=str(each)) for each in logs]
    first, second, third = (agent(libraries) for _ in logs)
    first.act(AgentAction.LOAD, models[0])
    second.act(AgentAction.LOAD, models[1])
    for used, given in ((first, models[0]), (second, models[1])):
        used.act(AgentAction.LOAD_FAIL, given)
    third.act(AgentAction.LOAD, models[2])
    third.act(AgentAction.LOAD_FAIL, models[2])
    firsts = [log.read_text(encoding="utf-8").splitlines()[0] for log in logs]
    assert firsts == ["agents 1"] * 3


def test_a_refused_model_ends(libraries: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    used, given = agent(libraries), model(tmp_path, "m", log=str(log), refuse="yes")
    with pytest.raises(InvalidArgument, match="the agent refuses the model"):
        used.act(AgentAction.LOAD, given)
    used.act(AgentAction.LOAD_FAIL, given)
    assert log.read_text(encoding="utf-8").splitlines()[-1] == "model"


def test_a_library_that_is_none_is_refused(libraries: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="is no shared library"):
        LibraryAgent(LibraryAgentOptions(library=str(tmp_path / "none.so")))
    used = LibraryAgent(LibraryAgentOptions(library=str(libraries / "cache.so")))
    with pytest.raises(NotFound, match="entrypoint 'TRITONREPOAGENT_ModelAction'"):
        used.act(AgentAction.LOAD, model(tmp_path, "m"))


def agent_entry(parameters: str) -> str:
    return f'model_repository_agents {{ agents {{ name: "mover" {parameters} }} }}'


def test_an_agent_is_found_by_its_name(serve: Serve, libraries: Path, tmp_path: Path) -> None:
    folder = tmp_path / "agents" / "mover"
    folder.mkdir(parents=True)
    (folder / "libtritonrepoagent_mover.so").write_bytes((libraries / "agent.so").read_bytes())
    log = tmp_path / "log"
    models = {
        "good": int_model("misbehave", agent_entry(f'parameters {{ key: "log" value: "{log}" }}')),
        "bad": int_model("misbehave", agent_entry('parameters { key: "refuse" value: "yes" }')),
    }
    settings = {"repo_agent_directory": str(tmp_path / "agents"), "control": {"mode": "explicit"}}
    with serve(models, "thread", **settings) as client:
        with pytest.raises(TritonError, match="the agent refuses the model"):
            client.engine.load_model("bad")
        client.engine.load_model("good")
        assert client.number("good", 0) == 0
        client.engine.unload_model("good")
    lines = log.read_text(encoding="utf-8").splitlines()
    assert lines[-1] == "model"
    assert [line for line in lines if line.isupper()] == [
        "LOAD", "LOAD_COMPLETE", "UNLOAD", "UNLOAD_COMPLETE",
    ]  # fmt: skip
    assert not Path(lines[3]).exists()
