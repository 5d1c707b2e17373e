from __future__ import annotations

import numpy as np
import pytest

from tritonpy import CallbackSink, InvalidArgument
from tritonpy_frontend_grpc.forms import Form
from tritonpy_frontend_grpc.known_layouts import InputLayout, Layout, outline_of
from tritonpy_frontend_grpc.together import Together
from tritonpy_frontend_grpc.wire.frames import prefix
from tritonpy_protos.grpc_service_pb2 import ModelInferRequest

FLOATS = InputLayout("X", "FP32", (1, 2), (1, 2), np.dtype(np.float32), 8)


class Call:
    """What is collected: its number, and whether it is over."""

    def __init__(self, number, over=False):
        self.number, self.over, self.request = number, over, None

    def deadline_ns(self):
        return 7


class Recorder:
    """An engine, and who hands over single calls and ends those that failed."""

    def __init__(self):
        self.told = []
        self.entered = 0
        self.open = True
        self.refuses = ()
        self.fault = None

    def infer_alike(self, requests, refused):
        if self.fault is not None:
            raise self.fault
        self.told.append([request.tag.number for request in requests])
        self.requests = requests
        for request in requests:
            if request.tag.number in self.refuses:
                refused(request, InvalidArgument("no"))

    def enter(self, count):
        self.entered += count

    def is_open(self):
        return self.open

    def single(self, _raw, call):
        self.told.append(call.number)

    def fail(self, call, error):
        self.told.append((call.number, str(error)))


@pytest.fixture
def recorder():
    return Recorder()


@pytest.fixture
def together(recorder):
    sink = CallbackSink(lambda *_: None)
    return Together(recorder, sink, recorder.is_open, recorder.enter, recorder.single, recorder.fail)


def message(value=0, model="m", request_id="abc"):
    request = ModelInferRequest(model_name=model, id=request_id)
    request.inputs.add(name="X", datatype="FP32", shape=[1, 2])
    request.raw_input_contents.append(np.full(2, value, np.float32).tobytes())
    return request.SerializeToString()


def form(model="m"):
    raw = message(model=model)
    return Form(raw, Layout(model, -1, "", False, (FLOATS,), None, 0, 0, False), outline_of(raw))


def test_nothing_is_collected_but_between_begin_and_end(together):
    assert not together.collects
    together.begin()
    assert together.collects
    together.end()
    assert not together.collects


def test_what_is_alike_is_handed_over_at_once_in_the_order_of_arrival(together, recorder):
    known = form()
    together.begin()
    for number in range(3):
        together.take(known, message(number), Call(number))
    assert recorder.told == []
    together.end()
    assert recorder.told == [[0, 1, 2]]
    assert [request.inputs["X"].data.tolist() for request in recorder.requests] == [[[0, 0]], [[1, 1]], [[2, 2]]]
    assert [request.deadline_ns for request in recorder.requests] == [7, 7, 7]
    assert all(request.tag.request is request for request in recorder.requests)


def test_a_call_that_came_alone_is_handed_over_as_one(together, recorder):
    together.take(form(), message(), Call(1))
    together.end()
    assert recorder.told == [1]


def test_another_form_does_not_overtake_those_before_it(together, recorder):
    one, other = form(), form("n")
    for number, known in enumerate([one, one, other, other, one]):
        together.take(known, message(model=known.layout.model_name), Call(number))
    together.end()
    assert recorder.told == [[0, 1], [2, 3], 4]


def test_calls_that_are_over_by_then_are_left_out(together, recorder):
    known, left = form(), Call(1)
    for call in (Call(0), left, Call(2)):
        together.take(known, message(), call)
    left.over = True
    together.end()
    assert recorder.told == [[0, 2]]
    together.take(known, message(), Call(3, over=True))
    together.end()
    assert recorder.told == [[0, 2]]
    assert recorder.entered == 4  # who leaves is counted out


def test_a_message_that_has_to_be_parsed_is_handed_over_alone(together, recorder):
    known = form()
    for number, raw in enumerate([message(), message().replace(b"abc", b"\xff\xff\xff"), message()]):
        together.take(known, raw, Call(number))
    together.end()
    assert recorder.told == [1, [0, 2]]


def test_who_is_refused_is_told_alone(together, recorder):
    recorder.refuses = (1,)
    known = form()
    for number in range(3):
        together.take(known, message(), Call(number))
    together.end()
    assert recorder.told == [[0, 1, 2], (1, "no")]


def test_a_fault_of_the_engine_ends_each_call(together, recorder):
    recorder.fault = ZeroDivisionError("a bug")
    known = form()
    for number in range(2):
        together.take(known, message(), Call(number))
    together.end()
    assert recorder.told == [(0, "a bug"), (1, "a bug")]
    recorder.fault = None
    together.take(known, message(), Call(2))
    together.end()
    assert recorder.told[2:] == [2]


def framed(raw):
    return prefix(raw) + raw


def test_messages_like_the_last_one_join_it(together, recorder):
    known = form()
    assert not together.join(framed(message(0)), Call(0))  # like nothing yet
    together.begin()
    assert not together.join(framed(message(0)), Call(0))
    together.take(known, message(0), Call(0))
    assert together.join(framed(message(1, request_id="xyz")), Call(1))
    assert not together.join(framed(message(2, model="n")), Call(2))
    together.take(form("n"), message(2, model="n"), Call(2))
    assert not together.join(framed(message(3)), Call(3))
    together.end()
    assert not together.join(framed(message(4, model="n")), Call(4))  # between the turns
    assert recorder.told == [[0, 1], 2]
    assert [request.id for request in recorder.requests] == ["abc", "xyz"]
    assert [request.inputs["X"].data.tolist() for request in recorder.requests] == [[[0, 0]], [[1, 1]]]
    assert recorder.entered == 3


def test_messages_like_the_last_one_of_an_earlier_turn_join_too(together, recorder):
    together.begin()
    together.take(form(), message(0), Call(0))
    together.end()
    together.begin()  # a turn that brings nothing changes nothing
    together.end()
    together.begin()
    assert together.join(framed(message(1)), Call(1))
    together.hand_over()
    assert together.join(framed(message(2)), Call(2))
    together.end()
    assert recorder.told == [0, 1, 2]
    assert recorder.entered == 3


def test_nothing_joins_in_a_turn_in_which_each_message_has_to_be_looked_at(together, recorder):
    together.begin()
    together.take(form(), message(0), Call(0))
    together.end()
    recorder.open = False
    together.begin()
    assert not together.join(framed(message(1)), Call(1))
    together.end()
    recorder.open = True
    together.begin()
    assert together.join(framed(message(2)), Call(2))
    together.end()
    assert recorder.told == [0, 2]
