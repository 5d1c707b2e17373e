"""The server's own metric families: type, labels, and how requests of every kind are counted."""

from __future__ import annotations

from tests.conformance.exchange import Exchange, Families, IndexEntry, load, topic, unload
from tests.conformance.inference import Inference, given, streamed

ALL = Families("nv_")
FRESH = ("--allow-metrics=true",)
"""Dedicated servers: the real Triton keeps showing failures of every model that it ever had."""
MODELS = "add_sub tagged versions repeat square positions queue_reject queue_small queue_ordered queue_preferred trouble"


def rows(model: str, count: int = 1) -> Inference:
    return Inference(model, {"IN": given("INT32", *[1] * count, shape=(count, 1))})


FOUR = given("FP32", 1, 2, 3, 4)
SUM = Inference("add_sub", {"INPUT0": FOUR, "INPUT1": FOUR})
REPEAT = Inference("repeat", {"IN": given("INT32", 5, 6)})
PENDING = Families("nv_inference_pending_request_count", values=True)


def concurrent(name: str, model: str, *inferences: Inference) -> Exchange:
    """Return the exchange of concurrent inferences, and of the queue length after them."""
    named = [one.named(id=str(number)) for number, one in enumerate(inferences)]
    return Exchange(name, (streamed(*named), PENDING), {model: len(inferences)})


COUNTED = [
    Exchange("one request", (SUM.grpc(), PENDING), {"add_sub": 1}),
    Exchange("requests of every protocol", (SUM.grpc(), SUM.json(), SUM.binary(), streamed(SUM)), {"add_sub": 4}),
    Exchange("refused before they are queued", (SUM.named(inputs={"INPUT0": FOUR}).grpc(), SUM.named(version="9").grpc()), {"add_sub": 0}),
    # no two of them fit into a batch, together or not
    concurrent("three one after the other", "positions", rows("positions", 3), rows("positions", 2), rows("positions", 4)),
    concurrent("a batch of two requests", "queue_preferred", rows("queue_preferred"), rows("queue_preferred", 3)),
    concurrent("waits too long", "queue_reject", rows("queue_reject")),
    Exchange("a full queue", (streamed(*[rows("queue_small").named(id=str(number)) for number in range(4)]), PENDING), {"queue_small": 2}),
    Exchange(
        "cancelled while it waits",
        (rows("queue_ordered").named(timeout_s=0.5).grpc(), streamed(*[rows("queue_ordered")] * 4), PENDING),
        {"queue_ordered": 5},
    ),
    concurrent("two wait too long", "queue_reject", rows("queue_reject"), rows("queue_reject", 2)),
    concurrent("no answer", "repeat", REPEAT.named(inputs={"IN": given("INT32")})),
    concurrent("one answer", "repeat", REPEAT.named(inputs={"IN": given("INT32", 1)})),
    concurrent("two answers each", "repeat", REPEAT, REPEAT),
    concurrent("an empty answer", "square", Inference("square", {"IN": given("INT32", 0, shape=(1, 1))})),
    concurrent("three answers", "square", Inference("square", {"IN": given("INT32", 3, shape=(1, 1))})),
    Exchange("a model that raises", (Inference("trouble", {"WHAT": given("BYTES", "raises")}).grpc(),), {"trouble": 1}),
]  # fmt: skip

TOPIC = topic(
    "metric families",
    MODELS,
    [
        Exchange("before a request", (ALL,)),
        *COUNTED,
        Exchange("after requests", (ALL,)),
        Exchange(
            "unloaded and loaded again",
            (unload("tagged"), IndexEntry("tagged"), ALL, load("tagged"), ALL),
        ),
    ],
    FRESH,
)
