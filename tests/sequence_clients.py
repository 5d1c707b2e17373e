"""Clients that send many sequences at once, over HTTP and over gRPC streams."""

from __future__ import annotations

import queue
import re
import urllib.request
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.http

from tests.sequence_models import folded

WAIT_S = 60.0
LONGEST = 14
INTERLEAVED = 24  # sequences in flight on one stream


@dataclass
class SequencePlan:
    """A sequence: its id, the values to send, and the position where it restarts without an end."""

    model: str
    id: int | str
    values: list[int]
    restart: int = 0
    responses: list[Any] = field(default_factory=list)

    @property
    def expected(self) -> list[int]:
        return folded(self.values[: self.restart]) + folded(self.values[self.restart :])

    def how(self, number: int) -> dict[str, Any]:
        """Return the sequence arguments of the request with that number."""
        return {
            "sequence_id": self.id,
            "sequence_start": number in (0, self.restart),
            "sequence_end": number == len(self.values) - 1,
        }


def plans(random: Random, models: Sequence[str], count: int) -> list[SequencePlan]:
    """Return `count` sequences of random length.

    Ids are numbers and strings; every tenth sequence restarts in its middle.
    """
    found = []
    for number in range(1, count + 1):
        values = [random.randrange(1000) for _ in range(random.randint(1, LONGEST))]
        restart = random.randrange(len(values)) if random.random() < 0.1 else 0
        found.append(
            SequencePlan(
                random.choice(models),
                number if random.random() < 0.7 else f"text {number}",
                values,
                restart,
            )
        )
    return found


def run_all(
    http: str,
    grpc: str,
    all_plans: Sequence[SequencePlan],
    random: Random,
    callers: int = 6,
    streams: int = 2,
) -> None:
    """Send every sequence, half over HTTP and half over streams, and record the responses."""
    half = len(all_plans) // 2
    waiting: queue.SimpleQueue[SequencePlan] = queue.SimpleQueue()
    for plan in all_plans[:half]:
        waiting.put(plan)
    with ThreadPoolExecutor(callers + streams) as pool:
        ends = [pool.submit(_call, http, waiting) for _ in range(callers)]
        shares = [all_plans[half + number :: streams] for number in range(streams)]
        ends += [pool.submit(_stream, grpc, share, Random(random.random())) for share in shares]
        for end in ends:
            end.result()


def _call(address: str, waiting: queue.SimpleQueue[SequencePlan]) -> None:
    """Send sequences in order; each request waits for the previous response."""
    with tritonclient.http.InferenceServerClient(address, network_timeout=WAIT_S) as client:
        while True:
            try:
                plan = waiting.get_nowait()
            except queue.Empty:
                return
            for number, value in enumerate(plan.values):
                result = client.infer(
                    plan.model, [value_input(tritonclient.http, value)], **plan.how(number)
                )
                plan.responses.append(int(result.as_numpy("OUT")[0, 0]))


def _stream(address: str, mine: Sequence[SequencePlan], random: Random) -> None:
    """Send all sequences, interleaved, through one stream without waiting for responses.

    Waiting would occupy slots that other sequences need.
    """
    responses: queue.SimpleQueue[Any] = queue.SimpleQueue()
    unsent = {index: deque(range(len(plan.values))) for index, plan in enumerate(mine)}
    with tritonclient.grpc.InferenceServerClient(address) as client:
        client.start_stream(lambda result, error: responses.put((result, error)))
        while unsent:
            index = random.choice(list(islice(unsent, INTERLEAVED)))
            _send(client, mine[index], index, unsent[index].popleft())
            if not unsent[index]:
                del unsent[index]
        for _ in range(sum(len(plan.values) for plan in mine)):
            _take(mine, *responses.get(timeout=WAIT_S))


def _send(client: Any, plan: SequencePlan, index: int, number: int) -> None:
    inputs = [value_input(tritonclient.grpc, plan.values[number])]
    client.async_stream_infer(
        plan.model, inputs, request_id=f"{index} {number}", **plan.how(number)
    )


def _take(mine: Sequence[SequencePlan], result: Any, error: Any) -> None:
    assert error is None, error
    index, number = map(int, result.get_response().id.split())
    plan = mine[index]
    assert number == len(plan.responses), (
        f"answer {number} of sequence {plan.id} came as number {len(plan.responses)}"
    )
    plan.responses.append(int(result.as_numpy("OUT")[0, 0]))


def value_input(protocol: Any, value: int) -> Any:
    """Return the models' input as an object of a protocol's tritonclient module."""
    given = protocol.InferInput("IN", [1, 1], "INT64")
    given.set_data_from_numpy(np.array([[value]], np.int64))
    return given


def waiting(served: Any, model: str) -> int:
    """Return the number of queued requests of a model."""
    with urllib.request.urlopen(f"http://127.0.0.1:{served.ports['metrics']}/metrics") as response:
        found = re.search(
            rf'nv_inference_pending_request_count{{model="{model}",version="1"}} (\d+)',
            response.read().decode(),
        )
    return int(found[1]) if found else 0
