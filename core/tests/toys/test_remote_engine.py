from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tritonpy.api.engine import Engine
from tritonpy.errors import InvalidArgument, TritonError
from tritonpy.server import Server
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness

from .decoupled import Repeat
from .doubler import Doubler, Gate, gated
from .engine_server import EngineServer
from .remote_engine import RemoteEngine
from .serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins


@contextmanager
def remote(server: Server, folder: Path) -> Iterator[Engine]:
    with EngineServer(server.engine, folder / "engine.sock"):
        engine = RemoteEngine(folder / "engine.sock")
        try:
            yield engine
        finally:
            engine.close()


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture(params=["local", "remote"])
def engine(
    request: pytest.FixtureRequest, model_repository: ModelRepository, tmp_path: Path, gate: Gate
) -> Iterator[Engine]:
    """The same server, asked directly and through a socket: every test must hold for both."""
    model_repository.add("double", config_of("doubler", more='metric_tags { key: "team" value: "toys" }'))
    model_repository.add("many", config_of("repeat", more="model_transaction_policy { decoupled: true }"))
    model_repository.add("gated", config_of("gated"))
    plugins = toy_plugins(ToyPlugin({"doubler": Doubler, "repeat": Repeat, "gated": gated(gate)}))
    with (
        serving(model_repository, plugins, control={"mode": "explicit", "load": ["*"]}) as server,
        nullcontext(server.engine) if request.param == "local" else remote(server, tmp_path) as engine,
    ):
        yield engine


def test_requests_are_answered(engine: Engine) -> None:
    witness = Witness()
    requests = [ask(engine, witness, "double", [number], id=f"r{number}") for number in range(10)]
    answers = witness.wait(*requests)
    assert [numbers(each) for each in answers] == [[[2 * number]] for number in range(10)]
    assert [(each[0].id, each[0].model_version) for each in answers] == [(f"r{number}", 1) for number in range(10)]
    witness.check(*requests)


def test_decoupled_answers_keep_their_order(engine: Engine) -> None:
    witness = Witness()
    request = ask(engine, witness, "many", [50], accepts_decoupled=True)
    assert numbers(*witness.wait(request)) == [[number] for number in range(50)]


def test_errors_keep_their_code_and_text(engine: Engine) -> None:
    witness = Witness()
    request = ask(engine, witness, "double", [13])
    with pytest.raises(TritonError, match="thirteen cannot be doubled"):
        numbers(*witness.wait(request))
    with pytest.raises(InvalidArgument, match="Request for unknown model: 'nobody' is not found"):
        engine.model_config("nobody")


def test_a_waiting_request_is_cancelled(engine: Engine, gate: Gate) -> None:
    witness = Witness()
    running = ask(engine, witness, "gated", [1])
    gate.wait_for(1)
    waiting = ask(engine, witness, "gated", [2])
    waiting.cancel()
    with pytest.raises(TritonError, match="cancelled"):
        numbers(*witness.wait(waiting))
    gate.open()
    assert numbers(*witness.wait(running)) == [[2]]
    witness.check(running, waiting)


def test_metadata_configuration_and_index(engine: Engine) -> None:
    assert engine.is_live()
    assert engine.is_ready()
    assert engine.is_model_ready("double")
    assert engine.server_metadata().name == "triton"
    metadata = engine.model_metadata("double")
    assert (metadata.versions, metadata.inputs[0].name, metadata.inputs[0].shape) == (["1"], "IN", [1])
    assert engine.model_config("double").backend == "doubler"
    assert [(line.name, line.state) for line in engine.repository_index()] == [
        ("double", "READY"), ("gated", "READY"), ("many", "READY"),
    ]  # fmt: skip


def test_statistics_and_gauges(engine: Engine) -> None:
    witness = Witness()
    witness.wait(ask(engine, witness, "double", [1]), ask(engine, witness, "double", [13]))
    (statistics,) = engine.statistics("double")
    assert (statistics.inference_stats.success.count, statistics.inference_stats.fail.count) == (1, 1)
    assert engine.gauges()["double", "1"].failures["BACKEND"] == 1
    assert engine.gauges()["double", "1"].tags == {"team": "toys"}


def test_models_are_unloaded_and_loaded(engine: Engine) -> None:
    engine.unload_model("double")
    assert "double" not in {line.name for line in engine.repository_index(ready=True)}
    engine.load_model("double")
    assert engine.is_model_ready("double")
