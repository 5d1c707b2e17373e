from __future__ import annotations

import gc
import weakref

import pytest

from tritonpy_frontend_h2.http2.codes import RST_STREAM

from .raw_client import TRAILERS, Server, begin, body, frame


def refuse(call):
    """Respond while the call starts."""
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
def test_calls_are_freed_without_garbage_collection(sent):
    server = Server(on_end=refuse).handshake()
    kept = []
    begin_call = server.calls.begin

    def begin(*arguments):
        call = begin_call(*arguments)
        server.calls.started.clear()
        kept.append(weakref.ref(call))
        return call

    server.calls.begin = begin
    server.deliver(sent)
    assert [call() for call in kept] == [None]
