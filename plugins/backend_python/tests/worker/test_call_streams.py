from __future__ import annotations

from collections.abc import Callable

from tritonpy.ipc.windows import MAX_ANSWERS

from .calling import answer, execute, finish
from .peer import Call, Peer, fp32

Start = Callable[..., Peer]


def test_a_stream_gives_each_response_as_it_comes(caller: Start) -> None:
    peer = caller(
        """
for response in self.ask(1).exec(decoupled=True):
    print(self.value(response))
"""
    )
    execute(peer)
    call = peer.call()
    assert call.said["decoupled"] is True
    for value in range(3):
        peer.answer_call(call, [fp32("OUT", value)], final=False)
        peer.until_logged(f"[{value}.0]")
    peer.answer_call(call, None)
    assert finish(peer) == "[0.0]\n[1.0]\n[2.0]\n[]"


def test_a_stream_that_fails_is_one_response(caller: Start) -> None:
    peer = caller("print([self.value(each) for each in self.ask(1).exec(decoupled=True)])")
    execute(peer)
    peer.answer_call(peer.call(), (), error=[1, "no"])
    assert finish(peer) == "[['no', 1]]"


def test_a_stream_can_be_cancelled(caller: Start) -> None:
    peer = caller(
        """
responses = self.ask(1).exec(decoupled=True)
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


def test_a_stream_that_nobody_reads_runs_out_unheard(caller: Start) -> None:
    peer = caller(
        """
responses = self.ask(1).exec(decoupled=True)
next(responses)
del responses
print(self.value(self.ask(2).exec()))
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


def test_what_was_taken_of_a_long_stream_is_said_in_large_steps(caller: Start) -> None:
    peer = caller("print(sum(self.value(each)[0] for each in self.ask(1).exec(decoupled=True)))")
    execute(peer)
    stream = peer.call()
    stream_answers(peer, stream, MAX_ANSWERS)
    while len(peer.taken) < 2:
        peer.step()
    assert peer.taken == [(stream.id, MAX_ANSWERS // 2)] * 2
    peer.answer_call(stream, [fp32("OUT", 1)], final=True)
    assert finish(peer) == str(float(sum(range(MAX_ANSWERS)) + 1))
    assert (peer.left, peer.wanted) == ([], [])


def test_what_is_not_iterated_is_not_taken(caller: Start) -> None:
    peer = caller(
        """
responses = self.ask(1).exec(decoupled=True)
print(self.value(self.ask(2).exec()))
print(len(list(responses)))
"""
    )
    execute(peer)
    stream, call = peer.call(), peer.call()
    stream_answers(peer, stream, MAX_ANSWERS)
    assert peer.taken == []
    answer(peer, call, 9)
    while len(peer.taken) < 2:
        peer.step()
    peer.answer_call(stream, None, final=True)
    assert finish(peer).split() == ["[9.0]", str(MAX_ANSWERS + 1)]


def test_who_waits_for_one_of_several_streams_says_so(caller: Start) -> None:
    peer = caller(
        """
one, other = (self.ask(number).exec(decoupled=True) for number in range(2))
print(self.value(next(other)), self.value(next(one)))
"""
    )
    execute(peer)
    one, other = peer.call(), peer.call()
    while not peer.wanted:
        peer.step()
    assert peer.wanted == [other.id]
    peer.answer_call(other, [fp32("OUT", 2)], final=True)
    peer.answer_call(one, [fp32("OUT", 1)], final=True)
    assert finish(peer) == "[2.0] [1.0]"


def test_coroutines_read_streams(caller: Start) -> None:
    peer = caller(
        """
responses = await self.ask(1).async_exec(decoupled=True)
print([self.value(each) for each in responses])
""",
        asynchronous=True,
    )
    execute(peer)
    call = peer.call()
    peer.answer_call(call, [fp32("OUT", 1)], final=False)
    peer.answer_call(call, [fp32("OUT", 2)], final=True)
    assert finish(peer) == "[[1.0], [2.0]]"
