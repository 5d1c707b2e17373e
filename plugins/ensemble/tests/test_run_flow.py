"""How fast members may answer: `max_inflight_requests`, and clients that read slowly."""

from __future__ import annotations

import pytest

from tritonpy import Batch, Cancelled, InferRequest, Internal, OutputSpec, Room, StreamSink
from tritonpy_ensemble.run import MOST_HELD

from .stage import DECOUPLED, ensemble, member, play, step

STEPS = step("many", "IN", "OUT=MID") + step("one", "IN=MID", "OUT")
MANY, ONE = member("many", decoupled=True), member("one")


def limited(most=2):
    return play(ensemble(STEPS, more=DECOUPLED, most=most), MANY, ONE)


def answer(show, call, number=0):
    show.stage.answer(call, OUT=[number], final=False)


def ones(show):
    return [call for call in show.stage.open if call.model_name == "one"]


class SlowClient(StreamSink):
    """A client whose stream has room for `most` answers and who reads when told."""

    def __init__(self, most):
        self.room = Room(most, 1 << 30)

    def put(self, request, response):
        self.room.put(0)

    def ready(self, request):
        return self.room.ready

    def when_ready(self, request, callback):
        self.room.when_ready(callback)

    def cancelled(self, request):
        self.room.release()


def test_no_more_calls_of_a_step_are_open_than_allowed():
    show = limited()
    request = show.ask(IN=[1])
    many = show.stage.calls[0]
    for number in range(5):
        answer(show, many, number)
    assert len(ones(show)) == 2
    show.stage.answer(ones(show)[0], OUT=[0])
    assert len(ones(show)) == 2
    show.stage.end(many)
    while ones(show):
        show.stage.answer(ones(show)[0], OUT=[1])
    assert len(show.answers(request)) == 5
    assert show.over()


def test_the_limit_is_shared_by_all_requests_of_the_ensemble():
    show = play(ensemble(step("one", "IN", "OUT"), most=1), ONE)
    requests = [show.ask(IN=[number]) for number in range(3)]
    assert len(show.stage.calls) == 1
    for number in range(3):
        assert len(show.stage.open) == 1
        show.stage.answer(show.stage.open[0], OUT=[number])
    assert [show.answers(request) for request in requests] == [[{"OUT": [number]}] for number in range(3)]
    assert show.over()


def test_each_step_has_a_limit_of_its_own():
    config = ensemble(step("one", "IN", "OUT=MID") + step("one", "IN=MID", "OUT"), most=1)
    show = play(config, ONE)
    for number in range(2):
        show.ask(IN=[number])
    show.stage.answer(show.stage.open[0], OUT=[0])
    assert len(show.stage.open) == 2  # the second step of one, the first of the other


def test_a_step_that_is_left_out_does_not_shift_the_limits_of_the_others():
    config = ensemble(step("one", "IN", "OUT=A") + step("two", "IN", "OUT=B"), outputs="A B", most=1)
    show = play(config, ONE, member("two"))
    show.ask(IN=[1], outputs={"B": OutputSpec("B")})
    show.ask(IN=[1])
    assert sorted(call.model_name for call in show.stage.open) == ["one", "two"]


def test_a_refused_call_gives_its_place_to_the_next():
    show = play(ensemble(step("one", "IN", "OUT"), most=1), ONE)
    first, second = show.ask(IN=[1]), show.ask(IN=[2])
    show.stage.refusal = Internal("no")
    third = show.ask(IN=[3])
    show.stage.answer(show.stage.open[0], OUT=[1])
    assert show.answers(first) == [{"OUT": [1]}]
    for request in (second, third):
        with pytest.raises(Internal, match="in ensemble 'e', no"):
            show.answers(request)
    show.stage.refusal = None
    show.ask(IN=[4])
    assert len(show.stage.open) == 1


def test_who_is_cancelled_while_it_waits_is_answered_at_once_and_takes_no_place():
    show = play(ensemble(step("one", "IN", "OUT"), most=1), ONE)
    show.ask(IN=[1])
    waiting, last = show.ask(IN=[2]), show.ask(IN=[3])
    waiting.cancel()
    with pytest.raises(Cancelled, match=r"^in ensemble 'e', Request cancelled \(step 0"):
        show.answers(waiting)
    show.stage.answer(show.stage.open[0], OUT=[1])
    show.stage.answer(show.stage.open[0], OUT=[3])
    assert show.answers(last) == [{"OUT": [3]}]
    assert show.over()


def test_a_request_that_is_made_to_answer_a_call_does_not_wait_for_the_end_of_that_call():
    show = play(ensemble(step("one", "IN", "OUT"), most=1), ONE)
    outer = show.ask(IN=[1])
    call_of_outer = show.stage.calls[0]
    inner = show.ask(IN=[2], parent=InferRequest("one", {}, show.witness.sink, parent=call_of_outer))
    assert len(show.stage.open) == 2
    show.stage.answer(show.stage.calls[1], OUT=[2])
    stranger = show.ask(IN=[3])
    assert len(show.stage.open) == 1
    show.stage.answer(call_of_outer, OUT=[1])
    show.stage.answer(show.stage.calls[2], OUT=[3])
    assert [show.answers(request) for request in (inner, outer, stranger)] == [
        [{"OUT": [number]}] for number in (2, 1, 3)
    ]
    assert show.over()


def test_a_request_for_which_an_instance_waits_does_not_wait_for_those_who_may_need_that_instance():
    show = play(ensemble(step("one", "IN", "OUT"), most=1), ONE)
    outer = show.ask(IN=[1])
    batch = Batch([])
    caller = InferRequest("other", {}, show.witness.sink, batch=batch)
    batch.executing = True
    inner = show.ask(IN=[2], parent=caller)
    assert len(show.stage.open) == 2
    batch.executing = False
    late = show.ask(IN=[3], parent=caller)
    assert len(show.stage.open) == 2
    for number in (1, 2, 3):
        show.stage.answer(show.stage.calls[number - 1], OUT=[number])
    assert [show.answers(request) for request in (outer, inner, late)] == [[{"OUT": [number]}] for number in (1, 2, 3)]
    assert show.over()


def test_a_failed_request_waits_for_no_place_any_more():
    show = limited(1)
    request = show.ask(IN=[1])
    many = show.stage.calls[0]
    for number in range(3):
        answer(show, many, number)
    show.stage.fail(ones(show)[0], Internal("boom"))
    assert ones(show) == []
    show.stage.end(many)
    with pytest.raises(Internal, match="boom"):
        show.answers(request)
    assert show.over()


def test_members_pause_while_what_they_said_waits_for_a_place():
    show, called = limited(1), []
    show.ask(IN=[1])
    many = show.stage.calls[0]
    answer(show, many)
    assert many.sink.ready(many)
    answer(show, many)
    assert not many.sink.ready(many)
    many.sink.when_ready(many, lambda: called.append(True))
    assert not called
    show.stage.answer(ones(show)[0], OUT=[0])
    assert called == [True]
    assert many.sink.ready(many)


def test_a_member_that_others_wait_for_does_not_pause():
    """It could not go on: those who wait for its place wait for its end."""
    config = ensemble(step("many", "IN", "OUT=MID") + step("more", "IN=MID", "OUT"), more=DECOUPLED, most=1)
    show = play(config, MANY, member("more", decoupled=True))
    show.ask(IN=[1])
    many = show.stage.calls[0]
    answer(show, many)
    answer(show, many)
    more = show.stage.calls[1]
    assert not many.sink.ready(many)
    assert more.sink.ready(more)


def test_members_pause_while_the_client_does_not_read():
    show, client, called = limited(5), SlowClient(1), []
    show.ask(IN=[1], sink=client)
    many = show.stage.calls[0]
    assert many.sink.ready(many)
    answer(show, many)
    show.stage.answer(ones(show)[0], OUT=[0])
    assert not many.sink.ready(many)
    many.sink.when_ready(many, lambda: called.append(True))
    assert not called
    client.room.take()
    assert called == [True]


@pytest.mark.parametrize("ends", ["cancelled", "failed", "call cancelled"])
def test_a_member_that_pauses_is_called_back_when_nobody_listens_any_more(ends):
    show, called = limited(1), []
    request = show.ask(IN=[1])
    many = show.stage.calls[0]
    answer(show, many)
    answer(show, many)
    many.sink.when_ready(many, lambda: called.append(True))
    if ends == "cancelled":
        request.cancel()
    elif ends == "failed":
        show.stage.fail(ones(show)[0], Internal("boom"))
    else:
        many.cancel()
    assert called == [True]
    show.stage.end(many)
    many.sink.when_ready(many, lambda: called.append(True))
    assert called == [True, True] or ends == "call cancelled"


def test_members_pause_while_many_answers_wait_for_an_earlier_one():
    show = play(ensemble(STEPS, more=DECOUPLED), MANY, ONE)
    request = show.ask(IN=[1])
    many = show.stage.calls[0]
    for number in range(MOST_HELD + 1):
        answer(show, many, number)
    first, *others = ones(show)
    for call in others:
        assert many.sink.ready(many)
        show.stage.answer(call, OUT=[1])
    assert not many.sink.ready(many)
    assert first.sink.ready(first)
    show.stage.answer(first, OUT=[0])
    assert many.sink.ready(many)
    assert len(show.answers(request)) == MOST_HELD + 1
