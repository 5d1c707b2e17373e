from __future__ import annotations

import pytest

from tritonpy.engine.lifecycle import ServerState
from tritonpy.engine.local import EXTENSIONS
from tritonpy.errors import InvalidArgument, NotFound, TritonError, Unavailable
from tritonpy.runners.local import LocalRunner
from tritonpy.testing import Witness

from ..repository.teller import Book, teller, write
from ..toys.serving import ToyPlugin, ask, numbers, serving, toy_plugins


@pytest.fixture
def witness():
    return Witness()


@pytest.fixture
def serve(model_repository):
    def start(mode="explicit", load=(), backend=None, **settings):
        plugins = toy_plugins(ToyPlugin({"teller": backend or teller(Book())}))
        return serving(model_repository, plugins, control={"mode": mode, "load": list(load)}, **settings)

    return start


@pytest.fixture
def engine(serve, model_repository):
    """Model `m` serves its versions 2 and 3, `broken` none, and `new` was never asked for."""
    for version in (1, 2, 3):
        write(model_repository, "m", version * 10, version, "version_policy { latest { num_versions: 2 } }")
    write(model_repository, "broken", "cannot be loaded")
    write(model_repository, "new")
    with serve(load=["m", "broken"], exit_on_error=False) as server:
        yield server.engine


def calls(engine, witness):
    return {
        "infer": lambda name="m", version=-1: ask(engine, witness, name, [0], model_version=version),
        "metadata": lambda name="m", version=-1: engine.model_metadata(name, version),
        "config": lambda name="m", version=-1: engine.model_config(name, version),
        "ready": lambda name="m", version=-1: engine.is_model_ready(name, version),
        "statistics": lambda name="m", version=-1: engine.statistics(name, version),
        "index": engine.repository_index,
        "load": lambda: engine.load_model("m"),
        "unload": lambda: engine.unload_model("m"),
    }


@pytest.mark.parametrize("call", ["infer", "metadata", "config"])
@pytest.mark.parametrize(
    ("name", "version", "kind", "text"),
    [
        ("nobody", -1, InvalidArgument, "Request for unknown model: 'nobody' is not found"),
        ("new", -1, InvalidArgument, "Request for unknown model: 'new' is not found"),
        ("broken", -1, NotFound, "Request for unknown model: 'broken' has no available versions"),
        ("broken", 1, Unavailable, "Request for unknown model: 'broken' version 1 is not at ready state"),
        ("m", 1, NotFound, "Request for unknown model: 'm' version 1 is not found"),
        ("m", 9, NotFound, "Request for unknown model: 'm' version 9 is not found"),
    ],
)
def test_a_model_that_does_not_serve_is_refused_in_triton_s_words(engine, witness, call, name, version, kind, text):
    with pytest.raises(TritonError) as refused:
        calls(engine, witness)[call](name, version)
    assert (type(refused.value), refused.value.message) == (kind, text)


def test_the_latest_version_answers_who_names_none(engine, witness):
    requests = [ask(engine, witness, "m", [0], model_version=version) for version in (-1, 2, 3)]
    assert [numbers(answers) for answers in witness.wait(*requests)] == [[[30]], [[20]], [[30]]]


def test_a_model_is_ready_or_not_or_unknown(engine):
    assert engine.is_model_ready("m")
    assert engine.is_model_ready("m", 2)
    assert not engine.is_model_ready("broken", 1)
    with pytest.raises(InvalidArgument, match="Request for unknown model: 'nobody' is not found"):
        engine.is_model_ready("nobody")


def test_metadata_names_the_ready_versions_or_the_one_asked_for(engine):
    assert engine.model_metadata("m").versions == ["2", "3"]
    assert engine.model_metadata("m", 2).versions == ["2"]


def test_statistics_are_of_one_version_of_all_of_a_model_or_of_everything(engine, witness):
    witness.wait(ask(engine, witness, "m", [0], model_version=2))

    def counts(*arguments):
        return [(line.name, line.version, line.inference_count) for line in engine.statistics(*arguments)]

    assert counts("m", 2) == [("m", "2", 1)]
    assert counts("m") == counts() == [("m", "2", 1), ("m", "3", 0)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("nobody",), "requested model 'nobody' is not available"),
        (("broken",), "requested model 'broken' is not available"),
        (("m", 9), "requested model version is not available for model 'm'"),
    ],
)
def test_statistics_of_what_does_not_serve_are_refused(engine, arguments, text):
    with pytest.raises(InvalidArgument) as refused:
        engine.statistics(*arguments)
    assert refused.value.message == text


def test_gauges_are_by_model_and_version(engine):
    gauges = engine.gauges()
    assert sorted(gauges) == [("m", "2"), ("m", "3")]
    assert gauges["m", "2"].pending == 0
    assert gauges["m", "2"].load_seconds > 0


def test_the_server_says_what_it_is(engine):
    assert engine.server_metadata().extensions == [
        name for name in EXTENSIONS if name != "sequence"
    ]  # no plugin serves it
    assert engine.server_metadata().name == "triton"


@pytest.mark.parametrize("call", ["infer", "metadata", "config", "ready", "statistics", "load", "unload"])
def test_a_server_that_is_not_ready_answers_nothing_but_health_and_the_index(engine, witness, call):
    engine.state = ServerState.INITIALIZING
    with pytest.raises(Unavailable) as refused:
        calls(engine, witness)[call]()
    assert refused.value.message == "Server not ready"
    assert engine.is_live()
    assert not engine.is_ready()
    assert [line.name for line in engine.repository_index(ready=True)] == ["m", "m"]


def test_an_exiting_server_finishes_what_it_has(engine, witness):
    engine.state = ServerState.EXITING
    for call in (engine.is_live, engine.is_ready):
        with pytest.raises(Unavailable, match="Server exiting"):
            call()
    (answers,) = witness.wait(ask(engine, witness, "m", [0]))
    assert numbers(answers) == [[30]]


def test_a_stopped_server_says_that_it_stops(serve, model_repository, witness):
    write(model_repository, "m")
    with serve("none") as server:
        pass
    with pytest.raises(Unavailable) as refused:
        ask(server.engine, witness, "m", [0], id="7")
    assert refused.value.message == (
        "[request id: 7] Server is stopping, scheduler for model has stopped accepting new inference requests"
    )
    assert witness.requests == []


@pytest.mark.parametrize("mode", ["none", "poll"])
def test_only_explicit_control_lets_clients_load(serve, model_repository, mode):
    write(model_repository, "m")
    with serve(mode) as server:
        for call in (server.engine.load_model, server.engine.unload_model):
            with pytest.raises(Unavailable) as refused:
                call("m")
            assert refused.value.message == "explicit model load / unload is not allowed if polling is enabled"


class TestReadiness:
    @pytest.mark.parametrize("strict", [True, False])
    def test_a_model_that_failed_counts_when_readiness_is_strict(self, serve, model_repository, strict):
        write(model_repository, "broken", "cannot be loaded")
        with serve("none", exit_on_error=False, strict_readiness=strict) as server:
            assert server.engine.is_ready() is not strict
            model_repository.remove("broken")

    def test_a_model_that_was_unloaded_does_not_count(self, serve, model_repository):
        write(model_repository, "m")
        with serve(load=["m"]) as server:
            server.engine.unload_model("m")
            assert server._repository._retiring.wait(10)
            assert server.engine.is_ready()

    def test_a_model_that_was_repaired_counts_no_more(self, serve, model_repository):
        write(model_repository, "m", "cannot be loaded", 2)
        with serve(load=["m"], exit_on_error=False) as server:
            assert not server.engine.is_ready()
            model_repository.remove("m", 2)
            write(model_repository, "m", 1)
            server.engine.load_model("m")
            assert server.engine.is_ready()

    def test_what_a_model_says_of_itself_counts_for_the_model_alone(self, serve, model_repository):
        write(model_repository, "m")
        backend = teller(Book())
        with serve(load=["m"], backend=backend) as server:
            assert server.engine.is_model_ready("m")
            backend.is_healthy = False
            assert not server.engine.is_model_ready("m")
            assert server.engine.is_ready()

    def test_an_instance_that_is_gone_counts(self, serve, model_repository, monkeypatch):
        write(model_repository, "m")
        with serve(load=["m"]) as server:
            assert server.engine.is_ready()
            monkeypatch.setattr(LocalRunner, "alive", lambda _runner: False)
            assert not server.engine.is_ready()
            assert not server.engine.is_model_ready("m")
