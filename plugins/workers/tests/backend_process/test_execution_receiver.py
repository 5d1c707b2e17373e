from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from plugins.workers.tests.backend_process.wire import Wire, context
from tritonpy_ipc import Kind
from tritonpy_ipc.rpc_client import RpcClient
from tritonpy_ipc.sequence_frame import SequenceHeader, SequenceSlot, write_sequence_frame
from tritonpy_ipc.waiter import Waiter
from tritonpy_ipc.windows import MAX_BYTES, Windows
from tritonpy_types import InferRequest, OutputSpec, SequenceInfo, Tensor
from tritonpy_types.request import UNOWNED
from tritonpy_workers.backend_process.execution import ReceivedExecution
from tritonpy_workers.backend_process.execution_receiver import ExecutionReceiver


class Bench:
    """The receiving side of a worker."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.model, self.instance = context()
        self.opened: dict[int, ReceivedExecution] = {}
        self.arrivals = 0
        self.windows = Windows(wire.channel, RpcClient(wire.channel))
        self.receiver = ExecutionReceiver(
            wire.channel, self.opened, UNOWNED, self.windows, self._arrived
        )
        self.receiver.serve(self.model, self.instance)

    def take(
        self,
        words: list[int],
        rows: list[list[Tensor]],
        requested: list[Any] | None = None,
        **extras: Any,
    ) -> None:
        """Send one EXECUTE frame from the server and read it."""
        sequence_frame = extras.pop("sequence_frame", None)
        if sequence_frame is None:
            self.wire.send(Kind.EXECUTE, words, rows=rows, requested=requested, extras=extras)
        else:
            more, extras["sequences"] = write_sequence_frame(sequence_frame)
            self.wire.send(
                Kind.EXECUTE_SEQUENCE,
                [*words, *more],
                rows=rows,
                requested=requested,
                extras=extras,
            )
        before = self.arrivals, len(self.receiver.joining)
        self.wire.channel.wait(
            Waiter(), lambda: (self.arrivals, len(self.receiver.joining)) != before
        )

    def _arrived(self) -> None:
        self.arrivals += 1


@pytest.fixture
def bench() -> Iterator[Bench]:
    wire = Wire()
    yield Bench(wire)
    wire.close()


def tensor(name: str, *values: int) -> Tensor:
    return Tensor.from_numpy(name, np.array(values, np.int32))


def values(tensors: Any) -> dict[str, list[int]]:
    return {each.name: each.numpy().tolist() for each in tensors}


def test_executions_of_one_frame_wait_in_their_order(bench: Bench) -> None:
    bench.take([2, 7, 2, 8, 1, 100], [[tensor("IN", number)] for number in range(3)])
    first, second = bench.receiver.backlog
    assert ([first.number, second.number], bench.arrivals) == ([7, 8], 1)
    assert [request.tag for request in first.batch.requests] == [100, 101]
    assert [values(request.inputs.values()) for request in first.batch.requests] == [
        {"IN": [0]},
        {"IN": [1]},
    ]
    assert list(second.open) == [102]
    assert bench.opened == {100: first, 101: first, 102: second}


def test_a_request_has_the_fields_of_its_client(bench: Bench) -> None:
    bench.take(
        [1, 7, 2, 100],
        [[tensor("IN", 1)], [tensor("IN", 2)]],
        [None, ("B", "A")],
        ids=["", "r2"],
        requests={
            "1": {
                "parameters": {"p": 1},
                "timeout_us": 4,
                "priority": 5,
                "deadline_ns": 6,
                "trace": "t",
                "batch_size": 3,
            }
        },
        sequence_frame=[
            (
                SequenceHeader(0, 0, 0),
                [SequenceSlot(0, False, False, 0), SequenceSlot("s", True, False, 1)],
            )
        ],
    )
    plain, full = bench.receiver.backlog[0].batch.requests
    assert (plain.id, plain.outputs, plain.parameters, plain.sequence, plain.batch_size) == (
        "",
        None,
        {},
        None,
        1,
    )
    assert (full.id, full.parameters, full.sequence) == (
        "r2",
        {"p": 1},
        SequenceInfo("s", True, False),
    )
    assert (full.timeout_us, full.priority, full.deadline_ns, full.trace, full.batch_size) == (
        4,
        5,
        6,
        "t",
        3,
    )
    assert full.outputs == {"B": OutputSpec("B"), "A": OutputSpec("A")}
    assert (full.model_name, full.model_version, full.batch) == (
        "caller",
        1,
        bench.receiver.backlog[0].batch,
    )


def test_scheduler_data_is_set_on_the_batch(bench: Bench) -> None:
    extra = [tensor(name, number) for number, name in enumerate(("READY", "A", "B"))]
    bench.take(
        [2, 7, 1, 8, 2, 100],
        [[tensor("IN", 1)], [tensor("IN", 2)], [tensor("IN", 3)], extra],
        sequence_frame=[
            (SequenceHeader(0, 0, 0), [SequenceSlot(0, False, False, 0)]),
            (
                SequenceHeader(3, 1, 2),
                [SequenceSlot(5, True, False, 0), SequenceSlot(6, False, True, 2)],
            ),
        ],
        state_outputs={"1": ["A_OUT"]},
    )
    plain, full = (execution.batch for execution in bench.receiver.backlog)
    assert (plain.slots, list(plain.controls), plain.state_outputs) == (None, [], ())
    assert [request.sequence for request in full.requests] == [
        SequenceInfo(5, True),
        SequenceInfo(6, False, True),
    ]
    assert values(full.controls) == {"READY": [0]}
    assert values(full.states) == {"A": [1], "B": [2]}
    assert (full.slots, full.state_outputs) == (
        [full.requests[0], None, full.requests[1]],
        ["A_OUT"],
    )
    assert (full.model, full.instance) == (bench.model, bench.instance)


def test_joining_executions_bypass_the_backlog(bench: Bench) -> None:
    bench.take([1, 7, 1, 100], [[tensor("IN", 1)]], joins=True)
    assert not bench.receiver.backlog
    assert bench.arrivals == 0
    assert bench.receiver.joining[7].batch.requests[0].tag == 100


def test_only_requests_in_flight_are_cancelled(bench: Bench) -> None:
    bench.take([1, 7, 2, 100], [[tensor("IN", 1)], [tensor("IN", 2)]])
    execution = bench.receiver.backlog[0]
    one, other = execution.batch.requests
    execution.remove(other)
    bench.wire.send(Kind.CANCEL, [100, 101, 999])
    bench.wire.channel.wait(Waiter(), lambda: one.cancelled)
    assert not other.cancelled


def test_flow_control_of_a_stream_is_its_window(bench: Bench) -> None:
    bench.take([1, 7, 1, 100], [[tensor("IN", 1)]])
    request: InferRequest = bench.receiver.backlog[0].batch.requests[0]
    assert request.wait_for_credit()
    bench.windows.begin(100)
    bench.windows.sent(100, MAX_BYTES)
    assert not request.sink.ready(request)
    called: list[int] = []
    request.sink.when_ready(request, lambda: called.append(1))
    query = bench.wire.next()
    assert (query.extras["verb"], query.extras["arguments"]) == ("credit", {"request": 100})
    assert called == []
    bench.wire.send(Kind.QUERY_RESULT, query.words, extras={"value": None})
    bench.wire.channel.wait(Waiter(), called.__len__)
    assert request.sink.ready(request)
    with pytest.raises(AssertionError, match="this is a bug"):
        request.sink.put(request, None)  # type: ignore[arg-type]


def test_inputs_are_views_of_the_received_memory(bench: Bench) -> None:
    large = Tensor.from_numpy("IN", np.arange(1 << 16, dtype=np.int32))
    bench.take([1, 7, 1, 100], [[large]])
    request = bench.receiver.backlog[0].batch.requests[0]
    assert not request.inputs["IN"].data.flags.owndata
    assert bench.wire.returns == 0
    bench.receiver.backlog.clear()
    bench.opened.clear()
    request.batch = None
    del request
    assert bench.wire.returns == 1
