"""Plays model, runner and clients for a sequence scheduler, in simulated time, and notes what becomes of each request."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tritonpy import Batch, InferRequest, InferResponse, SchedulerContext, SequenceInfo, Tensor
from tritonpy.testing import Witness
from tritonpy.testing.parse import model_config
from tritonpy_batching_dynamic.preferred import PreferredPolicy
from tritonpy_batching_sequence.scheduler import SequenceScheduler

MS = 1_000_000
IDLE_NS = 100 * MS
HEAD = (
    'name: "m" input { name: "IN" data_type: TYPE_INT32 dims: -1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }'
)


def text_of(strategy: str = "direct {}", batch: int = 4, more: str = "") -> str:
    """Return the configuration of a model whose sequences are idle for 100 ms at most."""
    return f"{HEAD} max_batch_size: {batch} sequence_batching {{ max_sequence_idle_microseconds: 100000 {strategy} {more} }}"


class World:
    """`ran` are the batches in the order in which they were taken, each with its instance."""

    def __init__(self, text: str, instances: int = 1) -> None:
        config = model_config(text)
        self.scheduler = SequenceScheduler(
            SchedulerContext("m", 1, config, None, lambda _: PreferredPolicy(config), lambda: None)
        )
        self.scheduler.instances_changed(range(instances))
        self.instances = list(range(instances))
        self.witness = Witness()
        self.now = 1_000 * MS
        self.requests: list[InferRequest] = []
        self.ran: list[tuple[int, Batch]] = []
        self.open: list[tuple[int, Batch]] = []
        self._sent: dict[int | str, int] = defaultdict(int)

    def send(self, name, start=False, end=False, width=1, **fields):
        """Enqueue a request; its id tells the name of the sequence and the number of its request."""
        self._sent[name] += 1
        data = np.zeros((1, width), np.int32)
        request = InferRequest(
            "m",
            {"IN": Tensor("IN", "INT32", data.shape, data)},
            self.witness.sink,
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

    def answer(self, requests, responses):
        """Pass on what the scheduler itself answers, as a model does."""
        for request, response in zip(requests, responses, strict=True):
            if not request.answered:
                request.answered = True
                request.sink.put(request, response)
                self.scheduler.released(request, reschedule=False)

    def ready(self, instance=0):
        return self.scheduler.ready(instance, self.now)

    def take(self, instance=0, **limit):
        """Take a batch for an instance, which keeps it until `complete`; None where it has none."""
        batch = self.scheduler.take(instance, self.now, **limit)
        if batch is not None:
            for request in batch.requests:
                request.batch = batch
            self.ran.append((instance, batch))
            self.open.append((instance, batch))
        return batch

    def complete(self, batch=None):
        """Answer a batch, the oldest one where none is named."""
        index = 0 if batch is None else next(i for i, (_, each) in enumerate(self.open) if each is batch)
        _, batch = self.open.pop(index)
        for request in batch.requests:
            request.respond(InferResponse((), "m", 1, request.id))
        return batch

    def run(self, instance=0):
        """Take a batch and answer it; return the ids of its slots, None for one without data."""
        batch = self.take(instance)
        if batch is None:
            return None
        self.complete(batch)
        return ids(batch)

    def pass_time(self, ns):
        """Let the clock move, with the calls of `expire` that the scheduler asks for."""
        end = self.now + ns
        while (due := self.scheduler.expire(self.now)) is not None and due <= end:
            self.now = max(due, self.now)
        self.now = end
        self.scheduler.expire(end)

    def error(self, request):
        """Return the text of the error that a request was answered with; empty where it was served, None where it is open."""
        answers = self.witness.answers(request)
        return None if not answers else "" if answers[0].error is None else answers[0].error.message


def ids(batch):
    """Return the names of the requests of a batch, slot by slot."""
    slots = batch.requests if batch.slots is None else batch.slots
    return [None if request is None else request.id for request in slots]
