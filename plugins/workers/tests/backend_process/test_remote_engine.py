from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Event, Thread

import numpy as np
import pytest

from plugins.workers.tests.fake_worker import model_context, nothing_more, registry_of
from tritonpy.api.contexts import InstanceContext
from tritonpy.api.engine import Engine
from tritonpy_engine_rpc.connection import Connection
from tritonpy_ipc import Frame
from tritonpy_ipc.channel import Channel, ChannelClosed
from tritonpy_ipc.rpc_client import RpcClient
from tritonpy_ipc.waiter import Waiter
from tritonpy_testing.contracts.engine import EngineContract
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_testing.toy_engine import ToyEngine
from tritonpy_types import (
    DTYPES,
    CallbackSink,
    InferRequest,
    InferResponse,
    OutputSpec,
    SequenceInfo,
    Tensor,
)
from tritonpy_types.errors import Internal, InvalidArgument, ResourceExhausted, Unsupported
from tritonpy_workers.backend_process.calls import RemoteCalls
from tritonpy_workers.backend_process.remote_engine import RemoteEngine
from tritonpy_workers.backend_process.rpc_caller import rpc_caller
from tritonpy_workers.executions import Executions
from tritonpy_workers.rpc_session import RpcSession


class _Lost(Exception):
    """The other end is gone, which ends the reading thread."""


class WorkerSide:
    """The client side of a worker process, with a thread that reads."""

    def __init__(self, connection: socket.socket) -> None:
        self.channel = Channel(connection, self._lost, DTYPES)
        self.calls = RemoteCalls(self.channel, {}, lambda: None)
        self.engine = RemoteEngine(rpc_caller(RpcClient(self.channel)), self.calls)
        self._thread = Thread(target=self._read)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()
        self.channel.close()

    def _read(self) -> None:
        with suppress(_Lost):
            self.channel.wait(Waiter(), lambda: False)

    def _lost(self, reason: str) -> None:  # type: ignore[misc]
        raise _Lost(reason)


class ServerSide:
    """The other end: an RPC session on its own event loop."""

    def __init__(self, engine: Engine, connection: socket.socket) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self.loop.run_forever)
        self._thread.start()
        self.do(self._open, engine, connection)

    def do(self, act: object, *arguments: object) -> None:
        async def done() -> None:
            act(*arguments)  # type: ignore[operator]

        asyncio.run_coroutine_threadsafe(done(), self.loop).result()

    def close(self) -> None:
        self.do(self._close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def _open(self, engine: Engine, connection: socket.socket) -> None:
        model = model_context(engine)
        self._connection = Connection(self.loop, connection, self._handle_frame, print)
        self._session = RpcSession(
            model,
            InstanceContext("caller_0_0", "CPU", 0, 0),
            self.loop,
            self._connection,
            Executions(model, self._connection),
            registry_of(engine),
            nothing_more,
        )

    def _handle_frame(self, frame: Frame) -> None:
        self._session.handle(frame)

    def _close(self) -> None:
        self._connection.close()
        self._session.close(Internal("the worker died"))


@contextmanager
def connected(engine: Engine) -> Iterator[Engine]:
    ours, theirs = socket.socketpair()
    server = ServerSide(engine, ours)
    worker = WorkerSide(theirs)
    try:
        yield worker.engine
    finally:
        server.close()
        worker.join()


class TestRemoteEngine(EngineContract):
    def connect(self, engine: Engine) -> AbstractContextManager[Engine]:
        return connected(engine)


@pytest.fixture
def behind() -> Iterator[ToyEngine]:
    with ToyEngine() as engine:
        yield engine


def request_of(recorder: RecordingSink, model: str = "identity", **fields: object) -> InferRequest:
    return InferRequest(
        model, {"IN": Tensor.from_numpy("IN", np.ones(3, np.float32))}, recorder.sink, **fields
    )  # type: ignore[arg-type]


def test_all_fields_of_a_request_arrive(behind: ToyEngine) -> None:
    recorder = RecordingSink()
    request = request_of(
        recorder,
        id="r1",
        outputs={"OUT": OutputSpec("OUT", classification=2)},
        parameters={"p": 1, "q": "text", "r": 1.5, "s": True},
        priority=3,
        timeout_us=5,
        deadline_ns=1 << 62,
        sequence=SequenceInfo("s9", start=True),
        classifies=True,
    )
    with connected(behind) as engine, behind.hold():
        engine.infer(request)
        (arrived,) = behind.wait_for_requests(1)
        request.cancel()
        recorder.wait(request)
    assert (arrived.id, arrived.priority, arrived.timeout_us, arrived.deadline_ns) == (
        "r1",
        3,
        5,
        1 << 62,
    )
    assert arrived.parameters == {"p": 1, "q": "text", "r": 1.5, "s": True}
    assert arrived.sequence == SequenceInfo("s9", start=True)
    assert arrived.outputs == {"OUT": OutputSpec("OUT", classification=2)}
    assert arrived.classifies


def test_a_response_has_the_version_of_its_model(behind: ToyEngine) -> None:
    recorder = RecordingSink()
    with connected(behind) as engine:
        request = request_of(recorder)
        engine.infer(request)
        ((answer,),) = recorder.wait(request)
    assert (answer.model_name, answer.model_version) == ("identity", 1)


def test_a_sink_may_call_the_engine(behind: ToyEngine) -> None:
    requested, answered = list[bool](), Event()

    def put(_request: InferRequest, _response: InferResponse) -> None:
        requested.append(engine.is_model_ready("text"))
        answered.set()

    with connected(behind) as engine:
        tensor = Tensor.from_numpy("IN", np.ones(3, np.float32))
        engine.infer(InferRequest("identity", {"IN": tensor}, CallbackSink(put)))
        assert answered.wait(10)
    assert requested == [True]


def test_a_raising_sink_does_not_affect_other_responses(
    behind: ToyEngine, caplog: pytest.LogCaptureFixture
) -> None:
    def put(_request: InferRequest, _response: InferResponse) -> None:
        raise ValueError("a broken sink")

    recorder = RecordingSink()
    with connected(behind) as engine:
        tensor = Tensor.from_numpy("IN", np.ones(3, np.float32))
        engine.infer(InferRequest("identity", {"IN": tensor}, CallbackSink(put)))
        request = request_of(recorder)
        engine.infer(request)
        recorder.wait(request)
    assert "a broken sink" in caplog.text


def test_a_call_without_shared_memory_for_inputs_raises(
    behind: ToyEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = RecordingSink()

    def no_room(_size: int) -> int:
        raise OSError(28, "No space left on device")

    with connected(behind) as engine:
        large = InferRequest(
            "identity", {"IN": Tensor.from_numpy("IN", np.ones(1 << 20, np.float32))}, recorder.sink
        )
        with monkeypatch.context() as patch:
            patch.setattr("tritonpy_ipc.memory_file.create", no_room)
            with pytest.raises(
                Internal,
                match=r"no memory for the inputs of model 'identity': .*No space left on device",
            ):
                engine.infer(large)
        assert not recorder.responses(large)
        engine.infer(large)
        ((answer,),) = recorder.wait(large)
    assert answer.outputs[0].numpy().sum() == 1 << 20


def test_concurrent_queries_get_their_own_results(behind: ToyEngine) -> None:
    with connected(behind) as engine, ThreadPoolExecutor(8) as pool:
        names = ["identity", "repeat", "text"] * 40
        assert [found.name for found in pool.map(engine.model_metadata, names)] == names
        with pytest.raises(InvalidArgument):
            engine.model_metadata("nobody")


def test_an_unknown_engine_method_is_refused(behind: ToyEngine) -> None:
    with (
        connected(behind) as engine,
        pytest.raises(Exception, match="the engine has no method 'close'"),
    ):
        engine._call("engine", method="close")  # type: ignore[attr-defined]


def test_a_forked_process_reaches_no_engine(behind: ToyEngine) -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(theirs, print, DTYPES)  # type: ignore[arg-type]
    engine = RemoteEngine(rpc_caller(RpcClient(channel)), RemoteCalls(channel, {}, lambda: None))
    channel.close()
    with ours, pytest.raises(ChannelClosed):
        engine.is_live()


def test_a_retry_delay_reaches_the_calling_model() -> None:
    class UsedUp(ToyEngine):
        def infer(self, request: InferRequest) -> None:
            raise ResourceExhausted("nothing left", retry_after_s=7.5)

    recorder = RecordingSink()
    request = request_of(recorder)
    with UsedUp() as behind, connected(behind) as engine:
        engine.infer(request)
        ((answer,),) = recorder.wait(request)
    assert isinstance(answer.error, ResourceExhausted)
    assert answer.error.retry_after_s == 7.5


def test_a_request_that_names_regions_is_refused(behind: ToyEngine) -> None:
    with (
        connected(behind) as engine,
        pytest.raises(Unsupported, match="cannot refer to shared memory regions"),
    ):
        engine.infer(request_of(RecordingSink(), uses_regions=True))
