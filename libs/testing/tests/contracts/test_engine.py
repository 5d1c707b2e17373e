from __future__ import annotations

from contextlib import contextmanager

import pytest

from tritonpy import CallbackSink, Cancelled, Internal, InvalidArgument, TritonError
from tritonpy_testing import EngineContract, ToyEngine


class Pass:
    """Forwards every call; the base class of broken engines."""

    def __init__(self, target):
        self.target = target

    def __getattr__(self, name):
        return getattr(self.target, name)


class PassContract(EngineContract):
    kind = Pass

    @contextmanager
    def connect(self, engine: ToyEngine):
        yield self.kind(engine)


class TestPass(PassContract):
    pass


class WrongQuestion(Pass):
    def repository_index(self, ready=False):
        return self.target.repository_index()[:1]


class OneErrorForAll(Pass):
    def model_metadata(self, name, version=-1):
        try:
            return self.target.model_metadata(name, version)
        except TritonError as error:
            raise Internal(error.message) from error


class LosesTheId(Pass):
    def infer(self, request):
        request.id = ""
        self.target.infer(request)


class LosesTheError(Pass):
    def infer(self, request):
        sink = request.sink

        def clean(request, response):
            response.error = None
            sink.put(request, response)

        request.sink = CallbackSink(clean)
        self.target.infer(request)


class OneRefusal(Pass):
    def infer(self, request):
        try:
            self.target.infer(request)
        except TritonError as error:
            raise InvalidArgument(error.message) from error


class FirstResponseOnly(Pass):
    def infer(self, request):
        sink = request.sink
        seen = []

        def first(request, response):
            seen.append(response)
            if len(seen) == 1 or response.final:
                sink.put(request, response)

        request.sink = CallbackSink(first)
        self.target.infer(request)


class NoCancel(Pass):
    def infer(self, request):
        sink = request.sink
        request.sink = CallbackSink(
            lambda request, response: (
                None if isinstance(response.error, Cancelled) else sink.put(request, response)
            )
        )
        self.target.infer(request)


class NoLoad(Pass):
    def load_model(self, name, config=None, files=None, versions=()):
        self.target.load_model(name)


class Repeating(Pass):
    def infer(self, request):
        sink = request.sink

        def twice(request, response):
            sink.put(request, response)
            sink.put(request, response)

        request.sink = CallbackSink(twice)
        self.target.infer(request)


BROKEN = {
    WrongQuestion: "test_queries_return_the_same_results",
    OneErrorForAll: "test_errors_keep_their_class_and_text",
    LosesTheId: "test_an_inference_returns_outputs_and_id",
    LosesTheError: "test_a_failing_model_s_error_arrives",
    OneRefusal: "test_a_refused_request_is_refused_once",
    FirstResponseOnly: "test_responses_of_a_decoupled_model_arrive_in_order",
    NoCancel: "test_a_cancellation_reaches_the_model",
    NoLoad: "test_loading_and_unloading_take_effect",
    Repeating: "test_requests_of_many_threads_are_answered_once",
}


@pytest.mark.parametrize("engine", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_engine_fails(failures, engine):
    contract = type("Broken", (PassContract,), {"kind": engine})
    assert BROKEN[engine] in failures(contract)
