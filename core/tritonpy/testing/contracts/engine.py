"""The contract of engines that stand in for another one: remote ones, and wrappers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from tritonpy.api.engine import Engine
from tritonpy.api.operation import OperationCall
from tritonpy.api.trace_settings import TraceChanges
from tritonpy.custom_metrics import MetricKind, ModelMetrics
from tritonpy.errors import Cancelled, DecoupledRefused, TritonError
from tritonpy.logs import LogChanges
from tritonpy.testing.posix_memory import shared_object
from tritonpy.testing.toy_engine import ToyEngine
from tritonpy.testing.witness import Witness
from tritonpy.types import InferRequest, InferResponse, OutputSpec, RegionKind, SystemRegion, Tensor

VALUES = np.array([1.5, -2.0, 0.0], np.float32)
QUESTIONS: dict[str, Callable[[Engine], Any]] = {
    "server_metadata": lambda engine: engine.server_metadata(),
    "is_live": lambda engine: engine.is_live(),
    "is_ready": lambda engine: engine.is_ready(),
    "is_model_ready": lambda engine: engine.is_model_ready("identity"),
    "model_metadata": lambda engine: engine.model_metadata("identity", 1),
    "request_parameters": lambda engine: engine.request_parameters("identity", 1),
    "request_parameters of any name": lambda engine: engine.request_parameters("text"),
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
    "an operation without revision": lambda engine: engine.operate("repeat_thing", OperationCall({"thing": ""}, 7)),
    "the ready ones of repository_index": lambda engine: list(engine.repository_index(ready=True)),
}
MISTAKES: dict[str, Callable[[Engine], Any]] = {
    "is_model_ready": lambda engine: engine.is_model_ready("nobody"),
    "model_metadata": lambda engine: engine.model_metadata("identity", 7),
    "model_config": lambda engine: engine.model_config("nobody"),
    "statistics": lambda engine: engine.statistics("nobody"),
    "load_model": lambda engine: engine.load_model("nobody"),
    "load_model of a version": lambda engine: engine.load_model("text", versions=[7]),
    "trace_settings": lambda engine: engine.trace_settings("nobody"),
    "change_trace_settings": lambda engine: engine.change_trace_settings(TraceChanges(level=["TENSORS"])),
    "unload_model": lambda engine: engine.unload_model("nobody"),
    "regions": lambda engine: engine.regions(RegionKind.CUDA, "a region"),
    "check_region": lambda engine: engine.check_region(RegionKind.SYSTEM, ""),
    "register_system_region": lambda engine: engine.register_system_region("a region", "a key", 0, 1),
    "register_cuda_region": lambda engine: engine.register_cuda_region("other", b"\xff" * 64, 0, 1),
    "operate": lambda engine: engine.operate("nothing", OperationCall()),
    "operate without a body": lambda engine: engine.operate("repeat_thing", OperationCall({"thing": "ball"})),
}


class EngineContract:
    """What an `Engine` promises that passes everything on to another one. Write `connect`."""

    @abstractmethod
    def connect(self, engine: Engine) -> AbstractContextManager[Engine]:
        """Return a context manager: entering gives the engine under test, in front of `engine`; leaving takes it down."""

    @contextmanager
    def pair(self) -> Iterator[tuple[ToyEngine, Engine]]:
        """Give the engine behind and the one under test."""
        with ToyEngine() as behind, self.connect(behind) as engine:
            yield behind, engine

    def test_questions_are_answered_alike(self) -> None:
        with self.pair() as (behind, engine):
            _make_metrics(behind)
            with shared_object(4096) as memory:
                behind.register_system_region("a region", memory.key, 0, 4096)
            for name, ask in QUESTIONS.items():
                assert ask(engine) == ask(behind), f"{name} differs"

    def test_errors_keep_their_class_and_text(self) -> None:
        with self.pair() as (behind, engine), shared_object(4096) as memory:
            behind.register_system_region("a region", memory.key, 0, 4096)
            for name, ask in MISTAKES.items():
                expected, found = _error(ask, behind), _error(ask, engine)
                assert type(found) is type(expected), f"{name}: {found!r} instead of {expected!r}"
                assert found.message == expected.message, f"{name}: the text differs"
                assert found.reason == expected.reason, f"{name}: the reason differs"

    def test_regions_are_registered_and_unregistered(self) -> None:
        with self.pair() as (behind, engine), shared_object(4096) as memory:
            engine.check_region(RegionKind.SYSTEM, "a region")
            engine.register_system_region("a region", memory.key, 0, 4096)
            assert behind.regions(RegionKind.SYSTEM) == [SystemRegion("a region", memory.key, 0, 4096)], (
                "it got lost on the way"
            )
            engine.unregister_regions(RegionKind.CUDA)
            engine.unregister_regions(RegionKind.SYSTEM, "another")
            assert len(behind.regions(RegionKind.SYSTEM)) == 1, "more was unregistered than was asked for"
            engine.unregister_regions(RegionKind.SYSTEM)
            assert not behind.regions(RegionKind.SYSTEM), "it is still registered"

    def test_an_inference_gives_outputs_and_id_back(self) -> None:
        with self.pair() as (_, engine):
            for name, array in (("identity", VALUES), ("text", np.array([b"", b"\x00\xff", b"text"], np.object_))):
                witness = Witness()
                request = _request(witness, name, array)
                request.outputs = {"OUT": OutputSpec("OUT")}
                engine.infer(request)
                [[response]] = witness.wait(request)
                assert response.error is None, f"{name} answered with {response.error!r}"
                assert (response.id, response.model_name, response.model_version) == ("an id", name, 1)
                [output] = response.outputs
                assert (output.name, output.shape) == ("OUT", array.shape)
                assert output.numpy().tolist() == array.tolist()

    def test_a_failing_model_s_error_arrives(self) -> None:
        with self.pair() as (_, engine):
            [response] = _outcome(engine, "failing", VALUES)
            assert response.error is not None, "the error got lost"
            assert response.error.message == "this model always fails"

    def test_a_refused_request_is_refused_once(self) -> None:
        with self.pair() as (behind, engine):
            for name, array in (("nobody", VALUES), ("repeat", np.array([1], np.int32))):
                [expected], [found] = _outcome(behind, name, array), _outcome(engine, name, array)
                assert repr(found.error) == repr(expected.error), f"a refusal differs: {found.error!r}"
            assert isinstance(found.error, DecoupledRefused), "frontends tell this refusal by its class"

    def test_a_decoupled_model_s_answers_arrive_in_order(self) -> None:
        with self.pair() as (_, engine):
            for count in (0, 1, 5):
                witness = Witness()
                request = _request(witness, "repeat", np.array([count], np.int32))
                request.accepts_decoupled = True
                engine.infer(request)
                [answers] = witness.wait(request)
                assert [int(answer.outputs[0].numpy()[0]) for answer in answers[:-1]] == list(range(count))
                assert answers[-1].empty, "the last answer of a decoupled model is empty"
                witness.check(request)

    def test_a_cancellation_reaches_the_model(self) -> None:
        with self.pair() as (behind, engine):
            witness = Witness()
            request = _request(witness, "identity", VALUES)
            with behind.hold():
                engine.infer(request)
                behind.wait_for_open(1)
                request.cancel()
                [[response]] = witness.wait(request)
            assert isinstance(response.error, Cancelled), f"a cancelled request was answered with {response.error!r}"

    def test_loading_and_unloading_take_effect(self) -> None:
        with self.pair() as (behind, engine):
            engine.unload_model("text")
            assert not behind.is_model_ready("text"), "unload_model() had no effect"
            engine.load_model("text")
            assert behind.is_model_ready("text"), "load_model() had no effect"
            engine.unload_model("text", versions=[7])
            assert behind.is_model_ready("text"), "unload_model() lost the versions"
            engine.unload_model("text", versions=[1])
            assert not behind.is_model_ready("text"), "unload_model() of a version had no effect"
            engine.load_model("text", versions=[1])
            assert behind.is_model_ready("text"), "load_model() of a version had no effect"
            config = '{"name": "text", "platform": "changed"}'
            engine.load_model("text", config, {"file:1/model.txt": b"content"})
            assert behind.model_config("text").platform == "changed", "load_model() lost the configuration"

    def test_settings_are_changed_cleared_and_left(self) -> None:
        with self.pair() as (behind, engine):
            engine.change_trace_settings(TraceChanges(rate=7, count=3), "identity")
            engine.change_trace_settings(TraceChanges(rate=None), "identity")
            settings = behind.trace_settings("identity")
            assert (settings.rate, settings.count) == (1000, 3), (
                "change_trace_settings() lost what to clear or to leave"
            )
            engine.change_log_settings(LogChanges(verbose=2, format="ISO8601"))
            engine.change_log_settings(LogChanges(info=False))
            logging = behind.log_settings()
            assert (logging.verbose, logging.format, logging.info) == (2, "ISO8601", False), "log settings were lost"

    def test_requests_of_many_threads_are_answered_once(self) -> None:
        with self.pair() as (_, engine), ThreadPoolExecutor(4) as pool:
            witness = Witness()
            requests = [_request(witness, "identity", VALUES + number) for number in range(100)]
            list(pool.map(engine.infer, requests))
            for number, answers in enumerate(witness.wait(*requests)):
                assert answers[0].outputs[0].numpy().tolist() == (VALUES + number).tolist(), "answers were mixed up"
            witness.check(*requests)


def _make_metrics(engine: ToyEngine) -> None:
    metrics = ModelMetrics(engine.metrics)
    metrics.family("toys", "Toys that were made", MetricKind.COUNTER).metric({"model": "identity"}).increment(2.5)
    metrics.family("heat", "", MetricKind.GAUGE).metric().set(float("-inf"))
    metrics.family("sizes", "Toys by size", MetricKind.HISTOGRAM).metric({}, [0.5, 1.0]).observe(0.75)


def _request(witness: Witness, model: str, array: Any) -> InferRequest:
    return InferRequest(model, {"IN": Tensor.from_numpy("IN", array)}, witness.sink, id="an id")


def _outcome(engine: Engine, model: str, array: Any) -> list[InferResponse]:
    witness = Witness()
    request = _request(witness, model, array)
    try:
        engine.infer(request)
    except TritonError as error:
        assert not witness.answers(request), "infer() raised and answered: the caller still owns the request"
        return [InferResponse.failed(request, error)]
    [answers] = witness.wait(request)
    return answers


def _error(ask: Callable[[Engine], Any], engine: Engine) -> TritonError:
    try:
        answer = ask(engine)
    except TritonError as error:
        return error
    raise AssertionError(f"no error, but {answer!r}")
