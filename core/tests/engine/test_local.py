from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from tritonpy import InferRequest, InferResponse, Internal, ResourceExhausted
from tritonpy.api.contexts import ModelContext
from tritonpy.api.engine import ModelMetadata, TensorMetadata
from tritonpy.engine.lifecycle import ServerState
from tritonpy.engine.local import EXTENSIONS, Admission, infer_on_draining_member, model_metadata
from tritonpy.frontend import Sink
from tritonpy.metrics import ModelMetrics
from tritonpy.model.loaded_model import LoadedModel
from tritonpy.model.request_check import RequestCheck
from tritonpy.plugins import NoOptions
from tritonpy.runners.direct_scheduler import DirectScheduler
from tritonpy.runners.local import LocalRunner
from tritonpy.runners.timer import Timer
from tritonpy.scheduling import SchedulerContext, Sharing
from tritonpy_metrics import CustomMetrics
from tritonpy_testing import RecordingSink, model_config
from tritonpy_types.errors import InvalidArgument, NotFound, TritonError, Unavailable

from ..repository.version_backend import EventLog, version_reporter, write
from ..toys.serving import ToyPlugin, ask, numbers, serving, toy_plugins


@pytest.fixture
def recorder():
    return RecordingSink()


@pytest.fixture
def serve(model_repository):
    def start(mode="explicit", load=(), backend=None, **settings):
        plugins = toy_plugins(
            ToyPlugin({"version_reporter": backend or version_reporter(EventLog())})
        )
        return serving(
            model_repository, plugins, control={"mode": mode, "load": list(load)}, **settings
        )

    return start


@pytest.fixture
def engine(serve, model_repository):
    """Model `m` has the ready versions 2 and 3, `broken` has none, and `new` is not loaded."""
    for version in (1, 2, 3):
        write(
            model_repository,
            "m",
            version * 10,
            version,
            "version_policy { latest { num_versions: 2 } }",
        )
    write(model_repository, "broken", "cannot be loaded")
    write(model_repository, "new")
    with serve(load=["m", "broken"], exit_on_error=False) as server:
        yield server.engine


def calls(engine, recorder):
    return {
        "infer": lambda name="m", version=-1: ask(
            engine, recorder, name, [0], model_version=version
        ),
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
        ("unknown", -1, InvalidArgument, "Request for unknown model: 'unknown' is not found"),
        ("new", -1, InvalidArgument, "Request for unknown model: 'new' is not found"),
        ("broken", -1, NotFound, "Request for unknown model: 'broken' has no available versions"),
        (
            "broken",
            1,
            Unavailable,
            "Request for unknown model: 'broken' version 1 is not at ready state",
        ),
        ("m", 1, NotFound, "Request for unknown model: 'm' version 1 is not found"),
        ("m", 9, NotFound, "Request for unknown model: 'm' version 9 is not found"),
    ],
)
def test_a_model_that_is_not_ready_is_refused_in_triton_s_words(
    engine, recorder, call, name, version, kind, text
):
    with pytest.raises(TritonError) as refused:
        calls(engine, recorder)[call](name, version)
    assert (type(refused.value), refused.value.message) == (kind, text)


def test_the_folder_of_a_loaded_version_is_known(engine, model_repository):
    assert engine.model_folder("m") == str(model_repository.path / "m" / "3")
    assert engine.model_folder("m", 2) == str(model_repository.path / "m" / "2")
    for name, version in (("m", 1), ("new", -1), ("broken", -1), ("m", 9)):
        with pytest.raises(TritonError):
            engine.model_folder(name, version)


def test_requests_without_a_version_go_to_the_latest(engine, recorder):
    requests = [ask(engine, recorder, "m", [0], model_version=version) for version in (-1, 2, 3)]
    assert [numbers(answers) for answers in recorder.wait(*requests)] == [[[30]], [[20]], [[30]]]


def test_a_model_is_ready_or_not_or_unknown(engine):
    assert engine.is_model_ready("m")
    assert engine.is_model_ready("m", 2)
    assert not engine.is_model_ready("broken", 1)
    with pytest.raises(InvalidArgument, match="Request for unknown model: 'unknown' is not found"):
        engine.is_model_ready("unknown")


def test_metadata_has_the_ready_versions_or_the_requested_one(engine):
    assert engine.model_metadata("m").versions == ["2", "3"]
    assert engine.model_metadata("m", 2).versions == ["2"]


def test_statistics_cover_a_version_a_model_or_everything(engine, recorder):
    recorder.wait(ask(engine, recorder, "m", [0], model_version=2))

    def counts(*arguments):
        return [
            (line.name, line.version, line.inference_count)
            for line in engine.statistics(*arguments)
        ]

    assert counts("m", 2) == [("m", "2", 1)]
    assert counts("m") == counts() == [("m", "2", 1), ("m", "3", 0)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("unknown",), "requested model 'unknown' is not available"),
        (("broken",), "requested model 'broken' is not available"),
        (("m", 9), "requested model version is not available for model 'm'"),
    ],
)
def test_statistics_of_a_model_that_is_not_ready_are_refused(engine, arguments, text):
    with pytest.raises(InvalidArgument) as refused:
        engine.statistics(*arguments)
    assert refused.value.message == text


def test_gauges_are_by_model_and_version(engine):
    gauges = engine.gauges()
    assert sorted(gauges) == [("m", "2"), ("m", "3")]
    assert gauges["m", "2"].pending == 0
    assert gauges["m", "2"].load_seconds > 0


def test_the_server_returns_its_metadata(engine):
    assert engine.server_metadata().extensions == [
        name for name in EXTENSIONS if name != "sequence"
    ]  # no plugin provides it
    assert engine.server_metadata().name == "triton"


@pytest.mark.parametrize(
    "call", ["infer", "metadata", "config", "ready", "statistics", "load", "unload"]
)
def test_a_server_that_is_not_ready_serves_only_health_and_the_index(engine, recorder, call):
    engine.state = ServerState.INITIALIZING
    with pytest.raises(Unavailable) as refused:
        calls(engine, recorder)[call]()
    assert refused.value.message == "Server not ready"
    assert engine.is_live()
    assert not engine.is_ready()
    assert [line.name for line in engine.repository_index(ready=True)] == ["m", "m"]


def test_an_exiting_server_finishes_requests_in_flight(engine, recorder):
    engine.state = ServerState.EXITING
    for call in (engine.is_live, engine.is_ready):
        with pytest.raises(Unavailable, match="Server exiting"):
            call()
    (answers,) = recorder.wait(ask(engine, recorder, "m", [0]))
    assert numbers(answers) == [[30]]


def test_a_stopped_server_refuses_requests_with_triton_s_text(serve, model_repository, recorder):
    write(model_repository, "m")
    with serve("none") as server:
        pass
    with pytest.raises(Unavailable) as refused:
        ask(server.engine, recorder, "m", [0], id="7")
    assert refused.value.message == (
        "[request id: 7] Server is stopping, scheduler for model has stopped accepting new inference requests"
    )
    assert recorder.requests == []


@pytest.mark.parametrize("mode", ["none", "poll"])
def test_only_explicit_control_lets_clients_load(serve, model_repository, mode):
    write(model_repository, "m")
    with serve(mode) as server:
        for call in (server.engine.load_model, server.engine.unload_model):
            with pytest.raises(Unavailable) as refused:
                call("m")
            assert (
                refused.value.message
                == "explicit model load / unload is not allowed if polling is enabled"
            )


class TestReadiness:
    @pytest.mark.parametrize("strict", [True, False])
    def test_a_model_that_failed_counts_when_readiness_is_strict(
        self, serve, model_repository, strict
    ):
        write(model_repository, "broken", "cannot be loaded")
        with serve("none", exit_on_error=False, strict_readiness=strict) as server:
            assert server.engine.is_ready() is not strict
            model_repository.remove("broken")

    def test_a_model_that_was_unloaded_does_not_count(self, serve, model_repository):
        write(model_repository, "m")
        with serve(load=["m"]) as server:
            server.engine.unload_model("m")
            assert server._repository._drainer.wait(10)
            assert server.engine.is_ready()

    def test_a_repaired_model_no_longer_affects_readiness(self, serve, model_repository):
        write(model_repository, "m", "cannot be loaded", 2)
        with serve(load=["m"], exit_on_error=False) as server:
            assert not server.engine.is_ready()
            model_repository.remove("m", 2)
            write(model_repository, "m", 1)
            server.engine.load_model("m")
            assert server.engine.is_ready()

    def test_a_model_s_own_readiness_affects_only_the_model(self, serve, model_repository):
        write(model_repository, "m")
        backend = version_reporter(EventLog())
        with serve(load=["m"], backend=backend) as server:
            assert server.engine.is_model_ready("m")
            backend.is_healthy = False
            assert not server.engine.is_model_ready("m")
            assert server.engine.is_ready()

    def test_a_lost_instance_affects_readiness(self, serve, model_repository, monkeypatch):
        write(model_repository, "m")
        with serve(load=["m"]) as server:
            assert server.engine.is_ready()
            monkeypatch.setattr(LocalRunner, "alive", lambda _runner: False)
            assert not server.engine.is_ready()
            assert not server.engine.is_model_ready("m")


class Policy(Sharing):
    """A sharing policy that admits requests unless `full`, and records them."""

    def __init__(self):
        super().__init__(NoOptions(), ModelMetrics(CustomMetrics()))
        self.full = False
        self.event_log = []

    def admit(self, request):
        if self.full:
            raise ResourceExhausted("full", retry_after_s=3)
        self.event_log.append(("in", request))

    def ended(self, request):
        self.event_log.append(("out", request))


class Client(Sink):
    """A sink that records its calls."""

    def __init__(self):
        self.received = []

    def put(self, request, response):
        self.received.append(response)

    def ready(self, request):
        self.received.append("ready")
        return False

    def when_ready(self, request, callback):
        self.received.append(callback)

    def cancelled(self, request):
        self.received.append("cancelled")


@pytest.fixture
def policy():
    return Policy()


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def request_(client):
    return InferRequest("m", {}, client)


def test_an_admitted_request_reaches_its_model_and_ends_with_its_final_response(
    policy, client, request_
):
    handed = []
    Admission(policy, handed.append).enter(request_)
    assert (handed, policy.event_log) == ([request_], [("in", request_)])
    answers = [InferResponse((), final=False), InferResponse((), final=False), InferResponse(())]
    for answer in answers:
        assert policy.event_log == [("in", request_)]
        request_.sink.put(request_, answer)
    assert policy.event_log == [("in", request_), ("out", request_)]
    assert client.received == answers


def test_a_request_ends_before_its_client_gets_the_response(policy, request_):
    class RepeatingClient(Client):
        def put(self, request, response):
            self.received.append(len(policy.event_log))

    client = request_.sink = RepeatingClient()
    Admission(policy, lambda _: None).enter(request_)
    request_.sink.put(request_, InferResponse(()))
    assert client.received == [2], (
        "a client that sends its next request immediately would be refused"
    )


def test_a_refused_request_does_not_reach_its_model_and_is_not_counted(policy, client, request_):
    policy.full = True
    handed = []
    with pytest.raises(ResourceExhausted, match="full"):
        Admission(policy, handed.append).enter(request_)
    assert (handed, policy.event_log, request_.sink) == ([], [], client)


def test_a_request_refused_by_its_model_ends_and_returns_to_its_caller(policy, client, request_):
    def refuse(_):
        raise Internal("the model refuses")

    with pytest.raises(Internal, match="the model refuses"):
        Admission(policy, refuse).enter(request_)
    assert policy.event_log == [("in", request_), ("out", request_)]
    assert request_.sink is client
    assert client.received == []


def test_flow_control_and_cancellations_reach_the_client(policy, client, request_):
    Admission(policy, lambda _: None).enter(request_)

    def go_on():
        """Do nothing."""

    assert not request_.sink.ready(request_)
    request_.sink.when_ready(request_, go_on)
    request_.sink.cancelled(request_)
    assert client.received == ["ready", go_on, "cancelled"]
    assert policy.event_log == [("in", request_)]


def model(timer):
    """A model whose requests wait."""
    config = model_config('name: "m" backend: "toy"')
    log = logging.LoggerAdapter(logging.getLogger("tritonpy.backend"), {})
    context = ModelContext("m", 1, config, Path(), Path(), {}, {}, NoOptions(), None, log)
    loaded = LoadedModel(context, RequestCheck(config, "m"), {}, timer, ())
    loaded.attach(DirectScheduler(SchedulerContext("m", 1, config, None, None, None)))
    return loaded


@pytest.fixture
def member():
    timer = Timer()
    yield model(timer)
    timer.stop()


def ensemble(member):
    calling = model(Timer())
    calling.members = {("m", -1): member}
    return calling


def step(owner, model="m"):
    parent = InferRequest("e", {}, None)
    parent.owner = owner
    return InferRequest(model, {}, None, parent=parent)


def table(*ready):
    return SimpleNamespace(ready=lambda name: list(ready))


def test_a_step_goes_to_the_draining_member(member):
    request = step(ensemble(member))
    assert infer_on_draining_member(request, table())
    assert request.owner is member
    assert member.waiting == 1


@pytest.mark.parametrize("called", ["m", "other"])
def test_ready_members_and_other_models_do_not_get_the_step(member, called):
    assert not infer_on_draining_member(step(ensemble(member), called), table(member))
    assert member.waiting == 0


def test_a_closed_member_does_not_get_the_step(member):
    member.stop_accepting()
    assert not infer_on_draining_member(step(ensemble(member)), table())


def test_a_call_of_another_model_keeps_its_error():
    assert not infer_on_draining_member(step(object()), table())
    assert not infer_on_draining_member(InferRequest("m", {}, None), table())


CONFIG = """
    name: "m" backend: "b" max_batch_size: {batch}
    input {{ name: "IN" data_type: TYPE_FP32 dims: [3, -1] reshape {{ shape: [3, -1, 1] }} }}
    input {{ name: "SHAPE" data_type: TYPE_INT32 dims: 2 is_shape_tensor: true }}
    output {{ name: "OUT" data_type: TYPE_STRING dims: 1 }} {more}
"""


@pytest.mark.parametrize(("batch", "leading"), [(0, []), (1, [-1]), (8, [-1])])
def test_shapes_are_the_configured_ones_after_the_batch_dimension(batch, leading):
    found = model_metadata(model_config(CONFIG.format(batch=batch, more="")), [1, 10])
    assert found == ModelMetadata(
        name="m",
        versions=["1", "10"],
        platform="b",
        inputs=[
            TensorMetadata("IN", "FP32", [*leading, 3, -1]),
            TensorMetadata("SHAPE", "INT32", [*leading, 2]),
        ],
        outputs=[TensorMetadata("OUT", "BYTES", [*leading, 1])],
    )


def test_the_platform_takes_precedence_over_the_backend():
    assert (
        model_metadata(model_config(CONFIG.format(batch=0, more='platform: "p"')), []).platform
        == "p"
    )
