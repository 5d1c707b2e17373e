from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Event, Thread

import numpy as np
import pytest

from core.tests.runners.workers.fake_worker import model_context, neighbours_of, nothing_more
from tritonpy.api.backend import InstanceContext
from tritonpy.api.engine import Engine
from tritonpy.errors import Internal, InvalidArgument, ResourceExhausted, Unsupported
from tritonpy.ipc import Frame
from tritonpy.ipc.channel import Channel, ChannelClosed
from tritonpy.ipc.questions import Questions
from tritonpy.ipc.waiter import Waiter
from tritonpy.runners.workers.backend_process.asking import asker
from tritonpy.runners.workers.backend_process.calls import Calls
from tritonpy.runners.workers.backend_process.remote_engine import RemoteEngine
from tritonpy.runners.workers.connection import Connection
from tritonpy.runners.workers.conversation import Conversation
from tritonpy.runners.workers.executions import Executions
from tritonpy.testing.contracts.engine import EngineContract
from tritonpy.testing.toy_engine import ToyEngine
from tritonpy.testing.witness import Witness
from tritonpy.types import DTYPES, CallbackSink, InferRequest, InferResponse, OutputSpec, SequenceInfo, Tensor


class _Lost(Exception):
    """The other end is gone, which ends the thread that reads."""


class WorkerSide:
    """What a worker process has on its end, with a thread that reads."""

    def __init__(self, connection: socket.socket) -> None:
        self.channel = Channel(connection, self._lost, DTYPES)
        self.calls = Calls(self.channel, {}, lambda: None)
        self.engine = RemoteEngine(asker(Questions(self.channel)), self.calls)
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
    """The other end: a conversation on an event loop of its own."""

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
        self._connection = Connection(self.loop, connection, self._hear, print)
        self._conversation = Conversation(
            model,
            InstanceContext("caller_0_0", "CPU", 0, 0),
            self.loop,
            self._connection,
            Executions(model, self._connection),
            neighbours_of(engine),
            nothing_more,
        )

    def _hear(self, frame: Frame) -> None:
        self._conversation.hear(frame)

    def _close(self) -> None:
        self._connection.close()
        self._conversation.close(Internal("the worker died"))


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


def request_of(witness: Witness, model: str = "identity", **fields: object) -> InferRequest:
    return InferRequest(model, {"IN": Tensor.from_numpy("IN", np.ones(3, np.float32))}, witness.sink, **fields)  # type: ignore[arg-type]


def test_everything_that_a_request_says_arrives(behind: ToyEngine) -> None:
    witness = Witness()
    request = request_of(
        witness,
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
        (arrived,) = behind.wait_for_open(1)
        request.cancel()
        witness.wait(request)
    assert (arrived.id, arrived.priority, arrived.timeout_us, arrived.deadline_ns) == ("r1", 3, 5, 1 << 62)
    assert arrived.parameters == {"p": 1, "q": "text", "r": 1.5, "s": True}
    assert arrived.sequence == SequenceInfo("s9", start=True)
    assert arrived.outputs == {"OUT": OutputSpec("OUT", classification=2)}
    assert arrived.classifies


def test_an_answer_says_which_version_gave_it(behind: ToyEngine) -> None:
    witness = Witness()
    with connected(behind) as engine:
        request = request_of(witness)
        engine.infer(request)
        ((answer,),) = witness.wait(request)
    assert (answer.model_name, answer.model_version) == ("identity", 1)


def test_a_sink_may_ask_the_engine(behind: ToyEngine) -> None:
    asked, answered = list[bool](), Event()

    def put(_request: InferRequest, _response: InferResponse) -> None:
        asked.append(engine.is_model_ready("text"))
        answered.set()

    with connected(behind) as engine:
        tensor = Tensor.from_numpy("IN", np.ones(3, np.float32))
        engine.infer(InferRequest("identity", {"IN": tensor}, CallbackSink(put)))
        assert answered.wait(10)
    assert asked == [True]


def test_a_sink_that_raises_does_not_take_the_others_answers(
    behind: ToyEngine, caplog: pytest.LogCaptureFixture
) -> None:
    def put(_request: InferRequest, _response: InferResponse) -> None:
        raise ValueError("a broken sink")

    witness = Witness()
    with connected(behind) as engine:
        tensor = Tensor.from_numpy("IN", np.ones(3, np.float32))
        engine.infer(InferRequest("identity", {"IN": tensor}, CallbackSink(put)))
        request = request_of(witness)
        engine.infer(request)
        witness.wait(request)
    assert "a broken sink" in caplog.text


def test_inputs_without_memory_stay_with_their_caller(behind: ToyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = Witness()

    def no_room(_size: int) -> int:
        raise OSError(28, "No space left on device")

    with connected(behind) as engine:
        large = InferRequest("identity", {"IN": Tensor.from_numpy("IN", np.ones(1 << 20, np.float32))}, witness.sink)
        with monkeypatch.context() as patch:
            patch.setattr("tritonpy.ipc.memory_file.create", no_room)
            with pytest.raises(
                Internal, match=r"no memory for the inputs of model 'identity': .*No space left on device"
            ):
                engine.infer(large)
        assert not witness.answers(large)
        engine.infer(large)
        ((answer,),) = witness.wait(large)
    assert answer.outputs[0].numpy().sum() == 1 << 20


def test_questions_of_many_threads_get_their_own_answers(behind: ToyEngine) -> None:
    with connected(behind) as engine, ThreadPoolExecutor(8) as pool:
        names = ["identity", "repeat", "text"] * 40
        assert [found.name for found in pool.map(engine.model_metadata, names)] == names
        with pytest.raises(InvalidArgument):
            engine.model_metadata("nobody")


def test_a_method_that_engines_do_not_have_is_refused(behind: ToyEngine) -> None:
    with connected(behind) as engine, pytest.raises(Exception, match="the engine has no method 'close'"):
        engine._engine("close")  # type: ignore[attr-defined]


def test_a_forked_process_reaches_no_engine(behind: ToyEngine) -> None:
    ours, theirs = socket.socketpair()
    channel = Channel(theirs, print, DTYPES)  # type: ignore[arg-type]
    engine = RemoteEngine(asker(Questions(channel)), Calls(channel, {}, lambda: None))
    channel.close()
    with ours, pytest.raises(ChannelClosed):
        engine.is_live()


def test_when_to_come_again_is_told_to_a_model_that_calls() -> None:
    class UsedUp(ToyEngine):
        def infer(self, request: InferRequest) -> None:
            raise ResourceExhausted("nothing left", retry_after_s=7.5)

    witness = Witness()
    request = request_of(witness)
    with UsedUp() as behind, connected(behind) as engine:
        engine.infer(request)
        ((answer,),) = witness.wait(request)
    assert isinstance(answer.error, ResourceExhausted)
    assert answer.error.retry_after_s == 7.5


def test_a_request_that_names_regions_is_refused(behind: ToyEngine) -> None:
    with connected(behind) as engine, pytest.raises(Unsupported, match="cannot name regions of shared memory"):
        engine.infer(request_of(Witness(), uses_regions=True))
