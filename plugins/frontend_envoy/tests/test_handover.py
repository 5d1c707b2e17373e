from __future__ import annotations

import socket
import threading

import pytest

from tritonpy import Failure
from tritonpy_frontend_envoy.handover import Asked, Ended, Listening, Wire


@pytest.fixture
def wires():
    one, other = map(Wire, socket.socketpair())
    yield one, other
    one.close()
    other.close()


def test_messages_arrive_whole_and_in_order(wires):
    one, other = wires
    for message in (Listening(), Ended(1, Failure("because"))):
        one.send(message)
    assert other.receive(Ended | Listening) == Listening()
    assert other.receive(Ended | Listening) == Ended(1, Failure("because"))


def test_a_message_may_be_larger_than_what_the_system_takes_at_once(wires):
    one, other = wires
    large = Ended(1, Failure("x" * 10_000_000))
    sending = threading.Thread(target=one.send, args=(large,))
    sending.start()
    assert other.receive(Ended) == large
    sending.join()


def test_the_end_of_the_other_side_is_no_message(wires):
    one, other = wires
    one.send(Asked(15))
    one.close()
    assert other.receive(Asked) == Asked(15)
    assert other.receive(Asked) is None
    with pytest.raises(OSError, match="Broken pipe"):
        other.send(Listening())


def test_half_a_message_is_none(wires):
    one, other = wires
    one._end.sendall(b"\x10\x00\x00\x00half")
    one.close()
    assert other.receive(Asked) is None
