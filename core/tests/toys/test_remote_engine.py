from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tritonpy.api.engine import Engine
from tritonpy.server.server import Server
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types.errors import InvalidArgument, TritonError

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
    """The same server, called directly and through a socket; every test must hold for both."""
    model_repository.add(
        "double", config_of("doubler", more='metric_tags { key: "team" value: "toys" }')
    )
    model_repository.add(
        "many", config_of("repeat", more="model_transaction_policy { decoupled: true }")
    )
    model_repository.add("gated", config_of("gated"))
    plugins = toy_plugins(ToyPlugin({"doubler": Doubler, "repeat": Repeat, "gated": gated(gate)}))
    with (
        serving(model_repository, plugins, control={"mode": "explicit", "load": ["*"]}) as server,
        nullcontext(server.engine)
        if request.param == "local"
        else remote(server, tmp_path) as engine,
    ):
        yield engine


def test_requests_get_their_responses(engine: Engine) -> None:
    recorder = RecordingSink()
    requests = [ask(engine, recorder, "double", [number], id=f"r{number}") for number in range(10)]
    responses = recorder.wait(*requests)
    assert [numbers(each) for each in responses] == [[[2 * number]] for number in range(10)]
    assert [(each[0].id, each[0].model_version) for each in responses] == [
        (f"r{number}", 1) for number in range(10)
    ]
    recorder.check(*requests)


def test_decoupled_responses_keep_their_order(engine: Engine) -> None:
    recorder = RecordingSink()
    request = ask(engine, recorder, "many", [50], accepts_decoupled=True)
    assert numbers(*recorder.wait(request)) == [[number] for number in range(50)]


def test_errors_keep_their_code_and_text(engine: Engine) -> None:
    recorder = RecordingSink()
    request = ask(engine, recorder, "double", [13])
    with pytest.raises(TritonError, match="thirteen cannot be doubled"):
        numbers(*recorder.wait(request))
    with pytest.raises(InvalidArgument, match="Request for unknown model: 'unknown' is not found"):
        engine.model_config("unknown")


def test_a_waiting_request_is_cancelled(engine: Engine, gate: Gate) -> None:
    recorder = RecordingSink()
    running = ask(engine, recorder, "gated", [1])
    gate.wait_for(1)
    waiting = ask(engine, recorder, "gated", [2])
    waiting.cancel()
    with pytest.raises(TritonError, match="cancelled"):
        numbers(*recorder.wait(waiting))
    gate.open()
    assert numbers(*recorder.wait(running)) == [[2]]
    recorder.check(running, waiting)


def test_metadata_configuration_and_index(engine: Engine) -> None:
    assert engine.is_live()
    assert engine.is_ready()
    assert engine.is_model_ready("double")
    assert engine.server_metadata().name == "triton"
    metadata = engine.model_metadata("double")
    assert (metadata.versions, metadata.inputs[0].name, metadata.inputs[0].shape) == (
        ["1"],
        "IN",
        [1],
    )
    assert engine.model_config("double").backend == "doubler"
    assert [(line.name, line.state) for line in engine.repository_index()] == [
        ("double", "READY"), ("gated", "READY"), ("many", "READY"),
    ]  # fmt: skip


def test_statistics_and_gauges(engine: Engine) -> None:
    recorder = RecordingSink()
    recorder.wait(ask(engine, recorder, "double", [1]), ask(engine, recorder, "double", [13]))
    (statistics,) = engine.statistics("double")
    assert (statistics.inference_stats.success.count, statistics.inference_stats.fail.count) == (
        1,
        1,
    )
    assert engine.gauges()["double", "1"].failures["BACKEND"] == 1
    assert engine.gauges()["double", "1"].tags == {"team": "toys"}


def test_models_are_unloaded_and_loaded(engine: Engine) -> None:
    engine.unload_model("double")
    assert "double" not in {line.name for line in engine.repository_index(ready=True)}
    engine.load_model("double")
    assert engine.is_model_ready("double")
