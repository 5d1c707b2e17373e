"""Simulated model, runner and clients for a sequence scheduler, in simulated time."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tritonpy import Batch, InferRequest, InferResponse, SequenceInfo, Tensor
from tritonpy.scheduling import SchedulerContext
from tritonpy_batching_dynamic.preferred import PreferredPolicy
from tritonpy_batching_sequence.scheduler import SequenceScheduler
from tritonpy_testing import RecordingSink
from tritonpy_testing.parse import model_config

MS = 1_000_000
IDLE_NS = 100 * MS
HEAD = 'name: "m" input { name: "IN" data_type: TYPE_INT32 dims: -1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }'


def config_text(strategy: str = "direct {}", batch: int = 4, more: str = "") -> str:
    """Return a model configuration with a maximum sequence idle time of 100 ms."""
    return f"{HEAD} max_batch_size: {batch} sequence_batching {{ max_sequence_idle_microseconds: 100000 {strategy} {more} }}"


class SimulatedRunner:
    """Runs a sequence scheduler in simulated time.

    `ran` holds (instance, batch) in execution order.
    """

    def __init__(self, text: str, instances: int = 1) -> None:
        config = model_config(text)
        self.scheduler = SequenceScheduler(
            SchedulerContext("m", 1, config, None, lambda _: PreferredPolicy(config), lambda: None)
        )
        self.scheduler.instances_changed(range(instances))
        self.instances = list(range(instances))
        self.recorder = RecordingSink()
        self.now = 1_000 * MS
        self.requests: list[InferRequest] = []
        self.ran: list[tuple[int, Batch]] = []
        self.in_flight: list[tuple[int, Batch]] = []
        self._sent: dict[int | str, int] = defaultdict(int)

    def send(self, name, start=False, end=False, width=1, **fields):
        """Enqueue a request. Its id is the sequence name and the number of the request."""
        self._sent[name] += 1
        data = np.zeros((1, width), np.int32)
        request = InferRequest(
            "m",
            {"IN": Tensor("IN", "INT32", data.shape, data)},
            self.recorder.sink,
            id=f"{name}.{self._sent[name]}",
            sequence=SequenceInfo(name, start, end),
            owner=self,
            received_ns=self.now,
            queued_ns=self.now,
            **fields,
        )
        self.scheduler.enqueue(request)
        self.requests.append(request)
        self.scheduler.expire(self.now)
        return request

    def respond(self, requests, responses):
        """Deliver the scheduler's own responses, as a model does."""
        for request, response in zip(requests, responses, strict=True):
            if not request.finished:
                request.finished = True
                request.sink.put(request, response)
                self.scheduler.released(request, reschedule=False)

    def ready(self, instance=0):
        return self.scheduler.ready(instance, self.now)

    def take(self, instance=0, **limit):
        """Return a batch for an instance, in flight until `complete`, or None."""
        batch = self.scheduler.take(instance, self.now, **limit)
        if batch is not None:
            for request in batch.requests:
                request.batch = batch
            self.ran.append((instance, batch))
            self.in_flight.append((instance, batch))
        return batch

    def complete(self, batch=None):
        """Respond to a batch, the oldest one by default."""
        index = (
            0
            if batch is None
            else next(i for i, (_, each) in enumerate(self.in_flight) if each is batch)
        )
        _, batch = self.in_flight.pop(index)
        for request in batch.requests:
            request.respond(InferResponse((), "m", 1, request.id))
        return batch

    def run(self, instance=0):
        """Take and complete a batch. Return the request ids by slot, None for an empty slot."""
        batch = self.take(instance)
        if batch is None:
            return None
        self.complete(batch)
        return ids(batch)

    def advance(self, ns):
        """Advance the clock and call `expire` whenever it is due."""
        end = self.now + ns
        while (due := self.scheduler.expire(self.now)) is not None and due <= end:
            self.now = max(due, self.now)
        self.now = end
        self.scheduler.expire(end)

    def error(self, request):
        """Return the error text of a request: "" if it succeeded, None if it is unfinished."""
        responses = self.recorder.responses(request)
        return (
            None
            if not responses
            else ""
            if responses[0].error is None
            else responses[0].error.message
        )


def ids(batch):
    """Return the request ids of a batch by slot."""
    slots = batch.requests if batch.slots is None else batch.slots
    return [None if request is None else request.id for request in slots]
