from __future__ import annotations

from collections.abc import Callable

from tritonpy_ipc.windows import MAX_RESPONSES

from .calling import answer, execute, finish
from .peer import Call, Peer, fp32

Start = Callable[..., Peer]


def test_a_stream_yields_each_response_as_it_arrives(calling_execution: Start) -> None:
    peer = calling_execution(
        """
for response in self.make_call(1).exec(decoupled=True):
    print(self.value(response))
"""
    )
    execute(peer)
    call = peer.call()
    assert call.details["decoupled"] is True
    for value in range(3):
        peer.answer_call(call, [fp32("OUT", value)], final=False)
        peer.until_logged(f"[{value}.0]")
    peer.answer_call(call, None)
    assert finish(peer) == "[0.0]\n[1.0]\n[2.0]\n[]"


def test_a_failed_stream_has_one_response(calling_execution: Start) -> None:
    peer = calling_execution(
        "print([self.value(each) for each in self.make_call(1).exec(decoupled=True)])"
    )
    execute(peer)
    peer.answer_call(peer.call(), (), error=[1, "no"])
    assert finish(peer) == "[['no', 1]]"


def test_a_stream_can_be_cancelled(calling_execution: Start) -> None:
    peer = calling_execution(
        """
responses = self.make_call(1).exec(decoupled=True)
print(self.value(next(responses)))
responses.cancel()
print([self.value(each) for each in responses])
"""
    )
    execute(peer)
    call = peer.call()
    peer.answer_call(call, [fp32("OUT", 1)], final=False)
    assert peer.frame(peer.CALL_CANCEL).words == (call.id,)
    peer.answer_call(call, (), error=[7, "cancelled"])
    assert finish(peer).endswith("[['cancelled', 7]]")


def test_responses_of_a_dropped_stream_are_discarded(calling_execution: Start) -> None:
    peer = calling_execution(
        """
responses = self.make_call(1).exec(decoupled=True)
next(responses)
del responses
print(self.value(self.make_call(2).exec()))
"""
    )
    execute(peer)
    stream = peer.call()
    peer.answer_call(stream, [fp32("OUT", 1)], final=False)
    call = peer.call()
    assert peer.left == [stream.id]
    peer.answer_call(stream, [fp32("OUT", 1, 2, 3)], final=True)
    answer(peer, call, 9)
    assert finish(peer) == "[9.0]"


def stream_answers(peer: Peer, stream: Call, count: int, first: int = 0) -> None:
    for value in range(first, first + count):
        peer.answer_call(stream, [fp32("OUT", value)], final=False)


def test_credits_of_a_long_stream_are_sent_in_large_steps(calling_execution: Start) -> None:
    peer = calling_execution(
        "print(sum(self.value(each)[0] for each in self.make_call(1).exec(decoupled=True)))"
    )
    execute(peer)
    stream = peer.call()
    stream_answers(peer, stream, MAX_RESPONSES)
    while len(peer.taken) < 2:
        peer.step()
    assert peer.taken == [(stream.id, MAX_RESPONSES // 2)] * 2
    peer.answer_call(stream, [fp32("OUT", 1)], final=True)
    assert finish(peer) == str(float(sum(range(MAX_RESPONSES)) + 1))
    assert (peer.left, peer.output_names) == ([], [])


def test_unread_responses_return_no_credit(calling_execution: Start) -> None:
    peer = calling_execution(
        """
responses = self.make_call(1).exec(decoupled=True)
print(self.value(self.make_call(2).exec()))
print(len(list(responses)))
"""
    )
    execute(peer)
    stream, call = peer.call(), peer.call()
    stream_answers(peer, stream, MAX_RESPONSES)
    assert peer.taken == []
    answer(peer, call, 9)
    while len(peer.taken) < 2:
        peer.step()
    peer.answer_call(stream, None, final=True)
    assert finish(peer).split() == ["[9.0]", str(MAX_RESPONSES + 1)]


def test_waiting_for_one_of_several_streams_is_announced(calling_execution: Start) -> None:
    peer = calling_execution(
        """
one, other = (self.make_call(number).exec(decoupled=True) for number in range(2))
print(self.value(next(other)), self.value(next(one)))
"""
    )
    execute(peer)
    one, other = peer.call(), peer.call()
    while not peer.output_names:
        peer.step()
    assert peer.output_names == [other.id]
    peer.answer_call(other, [fp32("OUT", 2)], final=True)
    peer.answer_call(one, [fp32("OUT", 1)], final=True)
    assert finish(peer) == "[2.0] [1.0]"


def test_coroutines_read_streams(calling_execution: Start) -> None:
    peer = calling_execution(
        """
responses = await self.make_call(1).async_exec(decoupled=True)
print([self.value(each) for each in responses])
""",
        asynchronous=True,
    )
    execute(peer)
    call = peer.call()
    peer.answer_call(call, [fp32("OUT", 1)], final=False)
    peer.answer_call(call, [fp32("OUT", 2)], final=True)
    assert finish(peer) == "[[1.0], [2.0]]"
