"""Sequences of requests: slots, controls, order, and errors of clients that break the rules."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import Concurrent, Exchange, get, topic
from tests.conformance.inference import Inference, given, streamed

MODELS = "sequenced sequenced_alone sequenced_oldest sequenced_oldest_plain sequenced_hasty sequenced_unnamed"
SECOND_US = 1_000_000
START, END, BOTH = (
    {"sequence_start": True},
    {"sequence_end": True},
    {"sequence_start": True, "sequence_end": True},
)


class SequenceRequests:
    """Requests to one model; `say` creates the next one, whose id names sequence and number."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._batched = model != "sequenced_alone"
        self._count = 0

    def say(self, sequence: Any, *values: int, **parameters: Any) -> Inference:
        self._count += 1
        shape = (1, len(values)) if self._batched else (len(values),)
        named = {"sequence_id": sequence, **parameters} if sequence is not None else parameters
        return Inference(
            self._model,
            {"IN": given("INT32", *values, shape=shape)},
            parameters=named,
            id=f"{self._count} of {sequence}",
        )


def in_stream(
    name: str, model: str, *sentences: tuple[Any, ...], counted: int | None = None
) -> Exchange:
    """Return the exchange of one stream.

    A sentence is the sequence, its value, and a dictionary of parameters.
    """
    requests = SequenceRequests(model)
    inferences = [
        requests.say(sequence, value, **(more[0] if more else {}))
        for sequence, value, *more in sentences
    ]
    return Exchange(
        name, (streamed(*inferences),), {model: len(inferences) if counted is None else counted}
    )


def one_by_one(name: str, model: str, *sentences: tuple[Any, ...]) -> list[Exchange]:
    """Return the exchanges of single requests: over HTTP in both forms of tensors, and over gRPC."""
    exchanges = []
    for protocol in ("json", "binary", "grpc"):
        requests = SequenceRequests(model)
        inferences = [
            requests.say(sequence, value, **(more[0] if more else {}))
            for sequence, value, *more in sentences
        ]
        exchanges.append(
            Exchange(
                f"{name}/{protocol}",
                tuple(getattr(each, protocol)() for each in inferences),
                {model: len(inferences)},
            )
        )
    return exchanges


def refused(name: str, model: str, *sentences: tuple[Any, ...]) -> list[Exchange]:
    """Return the exchanges of requests of which the last is refused."""
    requests = SequenceRequests(model)
    inferences = [
        requests.say(sequence, value, **(more[0] if more else {}))
        for sequence, value, *more in sentences
    ]
    return [
        Exchange(f"{name}/http", tuple(each.binary() for each in inferences)),
        Exchange(f"{name}/grpc", tuple(each.grpc() for each in inferences)),
        Exchange(f"{name}/stream", (streamed(*inferences),)),
    ]


def pause(milliseconds: int) -> Inference:
    """Return a request to another model that takes that long."""
    return SequenceRequests("sequenced_oldest_plain").say(99, 1, sleep=milliseconds, **BOTH)


HOLES = SequenceRequests("sequenced")
FULL = streamed(*(HOLES.say(number, number, **START) for number in (1, 2, 3, 4)))
SOME = streamed(*(HOLES.say(number, 10 * number) for number in (2, 4)))
WIDER = streamed(HOLES.say(1, 1), HOLES.say(2, 1, 2), HOLES.say(3, 1, 2), HOLES.say(4, 1))
ENDS = streamed(*(HOLES.say(number, 100, **END) for number in (1, 2, 3, 4)))
MIXED = SequenceRequests("sequenced_unnamed")
LARGE = (1 << 40) + 5

TOPIC = topic(
    "sequences",
    MODELS,
    [
        Exchange("slots without data", (FULL, SOME, ENDS), {"sequenced": 10}),
        Exchange("slots of another shape", (FULL, WIDER, ENDS), {"sequenced": 12}),
        Exchange("slots of another shape that may be ragged", (streamed(MIXED.say(1, 1, **START), MIXED.say(2, 1, 2, **BOTH)), MIXED.say(1, 1, **END).grpc()), {"sequenced_unnamed": 3}),
        in_stream("fewer than the slots wait for others", "sequenced", (1, 5, START), (2, 6, START)),
        in_stream("they go on", "sequenced", (1, 5, END), (2, 6, END)),
        in_stream("five for four slots", "sequenced", *((number, number, BOTH) for number in (1, 2, 3, 4, 5))),
        in_stream("a fifth follows in the slot of one that ends", "sequenced", (1, 1, START), (2, 2, BOTH), (3, 3, START), (4, 4, START), (5, 5, BOTH), (1, 1, END), (3, 3, END), (4, 4, END)),
        in_stream("two of one sequence never run together", "sequenced", (1, 1, START), (1, 2), (1, 3, END)),
        in_stream("a restart", "sequenced", (1, 1, START), (1, 2, START), (1, 3, END)),
        in_stream("a large id", "sequenced", (LARGE, 1, BOTH)),
        *one_by_one("one sequence", "sequenced_alone", (LARGE, 1, START), (LARGE, 2), (LARGE, 3, END)),
        *one_by_one("start and end at once", "sequenced_alone", (7, 1, BOTH), (7, 2, BOTH)),
        in_stream("an id below zero", "sequenced_alone", (-3, 1, BOTH)),
        *one_by_one("named sequence", "sequenced_unnamed", ("a name", 1, START), ("a name", 2), ("a name", 3, END)),
        *one_by_one("a restart of a live one", "sequenced_alone", (7, 1, START), (7, 2), (7, 3, START), (7, 4, END)),
        in_stream("the backlog keeps its order", "sequenced_alone", (1, 1, START), (2, 2, START), (3, 3, BOTH), (2, 4, END), (1, 5), (1, 6, END)),
        in_stream("a name that comes again in the backlog", "sequenced_alone", (1, 1, START), (2, 2, BOTH), (2, 3, START), (2, 4, END), (1, 5, END)),
        in_stream("a name that comes again behind its end", "sequenced_alone", (1, 1, {**START, "sleep": 200}), (1, 2, END), (1, 3, START), (1, 4, END)),
        in_stream("time is up in the backlog", "sequenced_alone", (1, 1, {**START, "sleep": 600}), (2, 2, {**START, "timeout": 100_000}), (2, 3, END), (1, 4, END), counted=4),
        in_stream("the time of a later request counts as well", "sequenced_alone", (1, 1, {**START, "sleep": 600}), (2, 2, START), (2, 3, {"timeout": 100_000}), (3, 4, BOTH), (1, 4, END), counted=5),
        in_stream("a request with a slot has all the time it needs", "sequenced_alone", (1, 1, {**START, "sleep": 300}), (1, 2, {**END, "timeout": 10_000})),
        *refused("no start", "sequenced_alone", (55, 1)),
        *refused("no start but an end", "sequenced_alone", (55, 1, END)),
        *refused("no start of a name", "sequenced_unnamed", ("nobody", 1)),
        *refused("after the end", "sequenced_alone", (7, 1, BOTH), (7, 2)),
        *refused("no id", "sequenced_alone", (None, 1)),
        *refused("no id but a start", "sequenced_alone", (None, 1, START)),
        *refused("id zero", "sequenced_alone", (0, 1, BOTH)),
        *refused("an empty id", "sequenced_unnamed", ("", 1, BOTH)),
        Exchange("two rows/grpc", (Inference("sequenced", {"IN": given("INT32", 1, 2, shape=(2, 1))}, parameters={"sequence_id": 5, **BOTH}).grpc(),)),
        Exchange("two rows/http", (Inference("sequenced", {"IN": given("INT32", 1, 2, shape=(2, 1))}, parameters={"sequence_id": 5, **BOTH}).json(),)),
        in_stream("oldest: two candidates run together", "sequenced_oldest", (1, 1, START), (2, 2, START)),
        in_stream("oldest: they go on together", "sequenced_oldest", (1, 1), (2, 2)),
        in_stream("oldest: they end together", "sequenced_oldest", (2, 2, END), (1, 1, END)),
        in_stream("oldest: a lone one waits for its time", "sequenced_oldest", (1, 1, START), (1, 2), (1, 3, END)),
        in_stream("oldest: one after the other", "sequenced_oldest_plain", (1, 1, START), (2, 2, BOTH), (3, 3, START), (1, 4, END), (3, 5, END)),
        in_stream("oldest: no two of one sequence", "sequenced_oldest", (1, 1, START), (1, 2, END), (2, 3, BOTH)),
        *one_by_one("oldest: without controls", "sequenced_oldest_plain", (4, 1, START), (4, 2), (4, 3, END)),
        *refused("oldest: no start", "sequenced_oldest_plain", (55, 1)),
        Exchange("a sequence that is idle for too long", (SequenceRequests("sequenced_hasty").say(1, 1, **START).grpc(), pause(900).grpc(), SequenceRequests("sequenced_hasty").say(1, 2).grpc()), {"sequenced_oldest_plain": 1}),
        Exchange("its slot goes to the next one", (streamed(SequenceRequests("sequenced_hasty").say(1, 1, **START), SequenceRequests("sequenced_hasty").say(2, 2, **START), SequenceRequests("sequenced_hasty").say(2, 2, **END)),), {"sequenced_hasty": 3}),
        Exchange("one that was not idle for long goes on", (SequenceRequests("sequenced_hasty").say(1, 1, **START).binary(), SequenceRequests("sequenced_hasty").say(1, 2).binary(), SequenceRequests("sequenced_hasty").say(1, 3, **END).binary()), {"sequenced_hasty": 3}),
        Exchange("two connections, one sequence", (Concurrent((SequenceRequests("sequenced").say(1, 1, **START).grpc(), SequenceRequests("sequenced").say(2, 1, **START).binary())), SequenceRequests("sequenced").say(2, 5, **END).grpc(), SequenceRequests("sequenced").say(1, 5, **END).binary()), {"sequenced": 4}),
        *(Exchange(f"configuration of {model}", (get(f"/v2/models/{model}/config"),)) for model in MODELS.split()),
        Exchange("metadata", (get("/v2/models/sequenced"), get("/v2/models/sequenced_oldest"))),
    ],
)  # fmt: skip
