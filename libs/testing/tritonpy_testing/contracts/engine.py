"""The contract of engines that forward calls to another engine: remote engines and wrappers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from tritonpy import (
    Cancelled,
    DecoupledRefused,
    Engine,
    InferRequest,
    InferResponse,
    OutputSpec,
    Tensor,
    TritonError,
)
from tritonpy.frontend import LogChanges, OperationCall, RegionKind, SystemRegion
from tritonpy.metrics import MetricKind, ModelMetrics
from tritonpy.tracing import TraceChanges
from tritonpy_testing.posix_memory import shared_object
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_testing.toy_engine import ToyEngine

VALUES = np.array([1.5, -2.0, 0.0], np.float32)
QUERIES: dict[str, Callable[[Engine], Any]] = {
    "server_metadata": lambda engine: engine.server_metadata(),
    "is_live": lambda engine: engine.is_live(),
    "is_ready": lambda engine: engine.is_ready(),
    "is_model_ready": lambda engine: engine.is_model_ready("identity"),
    "model_metadata": lambda engine: engine.model_metadata("identity", 1),
    "request_parameters": lambda engine: engine.request_parameters("identity", 1),
    "request_parameters of any name": lambda engine: engine.request_parameters("text"),
    "model_folder": lambda engine: engine.model_folder("text", 1),
    "model_config": lambda engine: engine.model_config("repeat"),
    "statistics of all": lambda engine: list(engine.statistics()),
    "statistics of one": lambda engine: list(engine.statistics("text", 1)),
    "gauges": lambda engine: dict(engine.gauges()),
    "regions": lambda engine: list(engine.regions(RegionKind.SYSTEM)),
    "one of the regions": lambda engine: list(engine.regions(RegionKind.SYSTEM, "a region")),
    "custom_metrics": lambda engine: list(engine.custom_metrics()),
    "repository_index": lambda engine: list(engine.repository_index()),
    "trace_settings": lambda engine: engine.trace_settings(),
    "trace_settings of a model": lambda engine: engine.trace_settings("identity"),
    "log_settings": lambda engine: engine.log_settings(),
    "operations": lambda engine: list(engine.operations()),
    "an operation": lambda engine: engine.operate(
        "repeat_thing", OperationCall({"thing": "ball"}, {"a": [1, None]}, 3)
    ),
    "an operation without revision": lambda engine: engine.operate(
        "repeat_thing", OperationCall({"thing": ""}, 7)
    ),
    "the ready ones of repository_index": lambda engine: list(engine.repository_index(ready=True)),
}
FAILING_CALLS: dict[str, Callable[[Engine], Any]] = {
    "is_model_ready": lambda engine: engine.is_model_ready("unknown"),
    "model_metadata": lambda engine: engine.model_metadata("identity", 7),
    "model_folder": lambda engine: engine.model_folder("unknown"),
    "model_config": lambda engine: engine.model_config("unknown"),
    "statistics": lambda engine: engine.statistics("unknown"),
    "load_model": lambda engine: engine.load_model("unknown"),
    "load_model of a version": lambda engine: engine.load_model("text", versions=[7]),
    "trace_settings": lambda engine: engine.trace_settings("unknown"),
    "change_trace_settings": lambda engine: engine.change_trace_settings(
        TraceChanges(level=["TENSORS"])
    ),
    "unload_model": lambda engine: engine.unload_model("unknown"),
    "regions": lambda engine: engine.regions(RegionKind.CUDA, "a region"),
    "check_region": lambda engine: engine.check_region(RegionKind.SYSTEM, ""),
    "register_system_region": lambda engine: engine.register_system_region(
        "a region", "a key", 0, 1
    ),
    "register_cuda_region": lambda engine: engine.register_cuda_region("other", b"\xff" * 64, 0, 1),
    "operate": lambda engine: engine.operate("nothing", OperationCall()),
    "operate without a body": lambda engine: engine.operate(
        "repeat_thing", OperationCall({"thing": "ball"})
    ),
}


class EngineContract:
    """The contract of an `Engine` that forwards every call to another one. Write `connect`."""

    @abstractmethod
    def connect(self, engine: Engine) -> AbstractContextManager[Engine]:
        """Return a context manager for the engine under test, which forwards to `engine`."""

    @contextmanager
    def pair(self) -> Iterator[tuple[ToyEngine, Engine]]:
        """Return the target engine and the engine under test."""
        with ToyEngine() as target, self.connect(target) as engine:
            yield target, engine

    def test_queries_return_the_same_results(self) -> None:
        with self.pair() as (target, engine):
            _make_metrics(target)
            with shared_object(4096) as memory:
                target.register_system_region("a region", memory.key, 0, 4096)
            for name, query in QUERIES.items():
                assert query(engine) == query(target), f"{name} differs"

    def test_errors_keep_their_class_and_text(self) -> None:
        with self.pair() as (target, engine), shared_object(4096) as memory:
            target.register_system_region("a region", memory.key, 0, 4096)
            for name, call in FAILING_CALLS.items():
                expected, found = _error(call, target), _error(call, engine)
                assert type(found) is type(expected), f"{name}: {found!r} instead of {expected!r}"
                assert found.message == expected.message, f"{name}: the text differs"
                assert found.reason == expected.reason, f"{name}: the reason differs"

    def test_regions_are_registered_and_unregistered(self) -> None:
        with self.pair() as (target, engine), shared_object(4096) as memory:
            engine.check_region(RegionKind.SYSTEM, "a region")
            engine.register_system_region("a region", memory.key, 0, 4096)
            assert target.regions(RegionKind.SYSTEM) == [
                SystemRegion("a region", memory.key, 0, 4096)
            ], "the region was not registered"
            engine.unregister_regions(RegionKind.CUDA)
            engine.unregister_regions(RegionKind.SYSTEM, "another")
            assert len(target.regions(RegionKind.SYSTEM)) == 1, "another region was unregistered"
            engine.unregister_regions(RegionKind.SYSTEM)
            assert not target.regions(RegionKind.SYSTEM), "the region is still registered"

    def test_an_inference_returns_outputs_and_id(self) -> None:
        with self.pair() as (_, engine):
            for name, array in (
                ("identity", VALUES),
                ("text", np.array([b"", b"\x00\xff", b"text"], np.object_)),
            ):
                recorder = RecordingSink()
                request = _request(recorder, name, array)
                request.outputs = {"OUT": OutputSpec("OUT")}
                engine.infer(request)
                [[response]] = recorder.wait(request)
                assert response.error is None, f"{name} responded with {response.error!r}"
                assert (response.id, response.model_name, response.model_version) == (
                    "an id",
                    name,
                    1,
                )
                [output] = response.outputs
                assert (output.name, output.shape) == ("OUT", array.shape)
                assert output.numpy().tolist() == array.tolist()

    def test_a_failing_model_s_error_arrives(self) -> None:
        with self.pair() as (_, engine):
            [response] = _outcome(engine, "failing", VALUES)
            assert response.error is not None, "the error did not arrive"
            assert response.error.message == "this model always fails"

    def test_a_refused_request_is_refused_once(self) -> None:
        with self.pair() as (target, engine):
            for name, array in (("unknown", VALUES), ("repeat", np.array([1], np.int32))):
                [expected], [found] = _outcome(target, name, array), _outcome(engine, name, array)
                assert repr(found.error) == repr(expected.error), (
                    f"a refusal differs: {found.error!r}"
                )
            assert isinstance(found.error, DecoupledRefused), (
                "frontends identify this refusal by its class"
            )

    def test_responses_of_a_decoupled_model_arrive_in_order(self) -> None:
        with self.pair() as (_, engine):
            for count in (0, 1, 5):
                recorder = RecordingSink()
                request = _request(recorder, "repeat", np.array([count], np.int32))
                request.accepts_decoupled = True
                engine.infer(request)
                [responses] = recorder.wait(request)
                assert [int(response.outputs[0].numpy()[0]) for response in responses[:-1]] == list(
                    range(count)
                )
                assert responses[-1].empty, "the last response of a decoupled model is empty"
                recorder.check(request)

    def test_a_cancellation_reaches_the_model(self) -> None:
        with self.pair() as (target, engine):
            recorder = RecordingSink()
            request = _request(recorder, "identity", VALUES)
            with target.hold():
                engine.infer(request)
                target.wait_for_requests(1)
                request.cancel()
                [[response]] = recorder.wait(request)
            assert isinstance(response.error, Cancelled), (
                f"a cancelled request ended with {response.error!r}"
            )

    def test_loading_and_unloading_take_effect(self) -> None:
        with self.pair() as (target, engine):
            engine.unload_model("text")
            assert not target.is_model_ready("text"), "unload_model() had no effect"
            engine.load_model("text")
            assert target.is_model_ready("text"), "load_model() had no effect"
            engine.unload_model("text", versions=[7])
            assert target.is_model_ready("text"), "unload_model() lost the versions"
            engine.unload_model("text", versions=[1])
            assert not target.is_model_ready("text"), "unload_model() of a version had no effect"
            engine.load_model("text", versions=[1])
            assert target.is_model_ready("text"), "load_model() of a version had no effect"
            config = '{"name": "text", "platform": "changed"}'
            engine.load_model("text", config, {"file:1/model.txt": b"content"})
            assert target.model_config("text").platform == "changed", (
                "load_model() lost the configuration"
            )

    def test_settings_are_changed_cleared_and_kept(self) -> None:
        with self.pair() as (target, engine):
            engine.change_trace_settings(TraceChanges(rate=7, count=3), "identity")
            engine.change_trace_settings(TraceChanges(rate=None), "identity")
            settings = target.trace_settings("identity")
            assert (settings.rate, settings.count) == (1000, 3), (
                "change_trace_settings() lost a cleared or unchanged setting"
            )
            engine.change_log_settings(LogChanges(verbose=2, format="ISO8601"))
            engine.change_log_settings(LogChanges(info=False))
            logging = target.log_settings()
            assert (logging.verbose, logging.format, logging.info) == (2, "ISO8601", False), (
                "log settings were lost"
            )

    def test_requests_of_many_threads_are_answered_once(self) -> None:
        with self.pair() as (_, engine), ThreadPoolExecutor(4) as pool:
            recorder = RecordingSink()
            requests = [_request(recorder, "identity", VALUES + number) for number in range(100)]
            list(pool.map(engine.infer, requests))
            for number, responses in enumerate(recorder.wait(*requests)):
                assert responses[0].outputs[0].numpy().tolist() == (VALUES + number).tolist(), (
                    "responses went to other requests"
                )
            recorder.check(*requests)


def _make_metrics(engine: ToyEngine) -> None:
    metrics = ModelMetrics(engine.metrics)
    metrics.family("toys", "Toys that were made", MetricKind.COUNTER).metric(
        {"model": "identity"}
    ).increment(2.5)
    metrics.family("heat", "", MetricKind.GAUGE).metric().set(float("-inf"))
    metrics.family("sizes", "Toys by size", MetricKind.HISTOGRAM).metric({}, [0.5, 1.0]).observe(
        0.75
    )


def _request(recorder: RecordingSink, model: str, array: Any) -> InferRequest:
    return InferRequest(model, {"IN": Tensor.from_numpy("IN", array)}, recorder.sink, id="an id")


def _outcome(engine: Engine, model: str, array: Any) -> list[InferResponse]:
    recorder = RecordingSink()
    request = _request(recorder, model, array)
    try:
        engine.infer(request)
    except TritonError as error:
        assert not recorder.responses(request), (
            "infer() raised and responded: the caller still owns the request"
        )
        return [InferResponse.failed(request, error)]
    [responses] = recorder.wait(request)
    return responses


def _error(call: Callable[[Engine], Any], engine: Engine) -> TritonError:
    try:
        result = call(engine)
    except TritonError as error:
        return error
    raise AssertionError(f"no error, but {result!r}")
