from __future__ import annotations

import logging

import pytest

from plugins.workers.tests.fake_worker import eventually, on_loop
from plugins.workers.tests.one_worker import UNHEALTHY, one
from tritonpy_ipc import Kind
from tritonpy_types.errors import Internal
from tritonpy_workers import worker as worker_module


def garbage_of(process, kind):
    if kind == "no frame":
        process.send_bytes(b"\xff" * 64)
    elif kind == "unknown kind":
        process.send(200)
    elif kind == "what only a server says":
        process.send(Kind.EXECUTE, [0, 0, 0])
    elif kind == "an execution that never was":
        process.send(Kind.RESPONSES, [1, 5, 1, 2, 0], rows=[])
    elif kind == "truncated responses":
        process.send(Kind.RESPONSES, [1])
    elif kind == "more answers than rows":
        process.send(Kind.RESPONSES, [0, 1, 0, 2**40, 1], rows=[])
    elif kind == "errors that are no mapping":
        process.send(Kind.RESPONSES, [0, 0], rows=[], extras={"states": 7})
    elif kind == "an unrequested end":
        process.send(Kind.STOPPED)
    elif kind == "a failure without words":
        process.send(Kind.FAILED)
    elif kind == "a telling without words":
        process.send(Kind.NOTIFY)
    else:
        process.send(Kind.QUERY, [])


GARBAGE = [
    "no frame",
    "unknown kind",
    "what only a server says",
    "an execution that never was",
    "truncated responses",
    "more answers than rows",
    "errors that are no mapping",
    "an unrequested end",
    "a failure without words",
    "a telling without words",
    "a question without a number",
]


@pytest.mark.parametrize("kind", GARBAGE)
@pytest.mark.parametrize("when", ["before it is started", "while it runs"])
def test_a_worker_that_breaks_the_protocol_is_ended(kind, when, monkeypatch, caplog):
    monkeypatch.setattr(worker_module, "_REAP_S", 0.001)

    @on_loop
    async def test():
        async with one() as it:
            if when == "while it runs":
                garbage_of(await it.started(), kind)
                await eventually(lambda: it.ended)
                (error,) = it.ended
            else:
                starting = it.start()
                process = await it.launcher.next()
                await process.receive(Kind.START)
                garbage_of(process, kind)
                with pytest.raises(Internal) as failed:
                    await starting
                error = failed.value
            assert error.message.startswith(UNHEALTHY.format("it broke the worker protocol: ")[:-1])
            assert it.launcher.workers[0].killed

    caplog.set_level(logging.CRITICAL)
    test()
