from __future__ import annotations

from contextlib import contextmanager

import pytest

from tritonpy import CallbackSink, Cancelled, Internal, InvalidArgument, TritonError
from tritonpy.testing import EngineContract, ToyEngine


class Pass:
    """Passes every call on; a base to break."""

    def __init__(self, behind):
        self.behind = behind

    def __getattr__(self, name):
        return getattr(self.behind, name)


class PassContract(EngineContract):
    kind = Pass

    @contextmanager
    def connect(self, engine: ToyEngine):
        yield self.kind(engine)


class TestPass(PassContract):
    pass


class WrongQuestion(Pass):
    def repository_index(self, ready=False):
        return self.behind.repository_index()[:1]


class OneErrorForAll(Pass):
    def model_metadata(self, name, version=-1):
        try:
            return self.behind.model_metadata(name, version)
        except TritonError as error:
            raise Internal(error.message) from error


class LosesTheId(Pass):
    def infer(self, request):
        request.id = ""
        self.behind.infer(request)


class LosesTheError(Pass):
    def infer(self, request):
        sink = request.sink

        def clean(request, response):
            response.error = None
            sink.put(request, response)

        request.sink = CallbackSink(clean)
        self.behind.infer(request)


class OneRefusal(Pass):
    def infer(self, request):
        try:
            self.behind.infer(request)
        except TritonError as error:
            raise InvalidArgument(error.message) from error


class FirstAnswerOnly(Pass):
    def infer(self, request):
        sink = request.sink
        seen = []

        def first(request, response):
            seen.append(response)
            if len(seen) == 1 or response.final:
                sink.put(request, response)

        request.sink = CallbackSink(first)
        self.behind.infer(request)


class NoCancel(Pass):
    def infer(self, request):
        sink = request.sink
        request.sink = CallbackSink(
            lambda request, response: None if isinstance(response.error, Cancelled) else sink.put(request, response)
        )
        self.behind.infer(request)


class NoLoad(Pass):
    def load_model(self, name, config=None, files=None, versions=()):
        self.behind.load_model(name)


class Repeating(Pass):
    def infer(self, request):
        sink = request.sink

        def twice(request, response):
            sink.put(request, response)
            sink.put(request, response)

        request.sink = CallbackSink(twice)
        self.behind.infer(request)


BROKEN = {
    WrongQuestion: "test_questions_are_answered_alike",
    OneErrorForAll: "test_errors_keep_their_class_and_text",
    LosesTheId: "test_an_inference_gives_outputs_and_id_back",
    LosesTheError: "test_a_failing_model_s_error_arrives",
    OneRefusal: "test_a_refused_request_is_refused_once",
    FirstAnswerOnly: "test_a_decoupled_model_s_answers_arrive_in_order",
    NoCancel: "test_a_cancellation_reaches_the_model",
    NoLoad: "test_loading_and_unloading_take_effect",
    Repeating: "test_requests_of_many_threads_are_answered_once",
}


@pytest.mark.parametrize("engine", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_engine_fails(failures, engine):
    contract = type("Broken", (PassContract,), {"kind": engine})
    assert BROKEN[engine] in failures(contract)
