from __future__ import annotations

import gc
import weakref

import pytest

from tritonpy_frontend_h2.http2.codes import RST_STREAM

from .talk import TRAILERS, Server, begin, body, frame


def refuse(call):
    """Answer before anybody knows of the call."""
    call.stream.send(None, (), TRAILERS)


@pytest.fixture(autouse=True)
def _no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(
    "sent",
    [
        begin() + body(b"answered"),
        begin(ended=True),
        begin() + body(b"reset", ended=False) + frame(RST_STREAM, 0, 1, bytes(4)),
        begin() + body(b"refused", ended=False) + begin(),
        begin() + body(b"lost", ended=False) + frame(RST_STREAM, 0, 3, bytes(4)),
    ],
    ids=["answered", "answered at once", "reset", "refused", "lost"],
)
def test_what_a_call_holds_does_not_wait_for_the_collector(sent):
    server = Server(on_end=refuse).hello()
    kept = []
    begin_call = server.calls.begin

    def begin(*told):
        call = begin_call(*told)
        server.calls.begun.clear()
        kept.append(weakref.ref(call))
        return call

    server.calls.begin = begin
    server.say(sent)
    assert [call() for call in kept] == [None]
