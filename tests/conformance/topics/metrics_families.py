"""Every metric family that is the server's own: its type and its labels, and what requests of every kind are counted as."""

from __future__ import annotations

from tests.conformance.exchange import Exchange, Families, Listed, load, topic, unload
from tests.conformance.inferring import Inference, given, streamed

ALL = Families("nv_")
FRESH = ("--allow-metrics=true",)
"""Servers of its own: the real Triton goes on to show failures of every model that it ever had."""
MODELS = (
    "add_sub tagged versions repeat square positions queue_reject queue_small queue_ordered queue_preferred trouble"
)


def rows(model: str, count: int = 1) -> Inference:
    return Inference(model, {"IN": given("INT32", *[1] * count, shape=(count, 1))})


FOUR = given("FP32", 1, 2, 3, 4)
SUM = Inference("add_sub", {"INPUT0": FOUR, "INPUT1": FOUR})
REPEAT = Inference("repeat", {"IN": given("INT32", 5, 6)})
PENDING = Families("nv_inference_pending_request_count", values=True)


def asked(name: str, model: str, *inferences: Inference) -> Exchange:
    """Return the exchange of inferences that are under way together, and of what is left waiting after them."""
    named = [one.named(id=str(number)) for number, one in enumerate(inferences)]
    return Exchange(name, (streamed(*named), PENDING), {model: len(inferences)})


COUNTED = [
    Exchange("one request", (SUM.grpc(), PENDING), {"add_sub": 1}),
    Exchange("requests of every protocol", (SUM.grpc(), SUM.json(), SUM.binary(), streamed(SUM)), {"add_sub": 4}),
    Exchange("refused before they are queued", (SUM.named(inputs={"INPUT0": FOUR}).grpc(), SUM.named(version="9").grpc()), {"add_sub": 0}),
    # no two of them fit into a batch, whether they come together or not
    asked("three one after the other", "positions", rows("positions", 3), rows("positions", 2), rows("positions", 4)),
    asked("a batch of two requests", "queue_preferred", rows("queue_preferred"), rows("queue_preferred", 3)),
    asked("waits too long", "queue_reject", rows("queue_reject")),
    Exchange("a full queue", (streamed(*[rows("queue_small").named(id=str(number)) for number in range(4)]), PENDING), {"queue_small": 2}),
    Exchange(
        "cancelled while it waits",
        (rows("queue_ordered").named(patience=0.5).grpc(), streamed(*[rows("queue_ordered")] * 4), PENDING),
        {"queue_ordered": 5},
    ),
    asked("two wait too long", "queue_reject", rows("queue_reject"), rows("queue_reject", 2)),
    asked("no answer", "repeat", REPEAT.named(inputs={"IN": given("INT32")})),
    asked("one answer", "repeat", REPEAT.named(inputs={"IN": given("INT32", 1)})),
    asked("two answers each", "repeat", REPEAT, REPEAT),
    asked("an empty answer", "square", Inference("square", {"IN": given("INT32", 0, shape=(1, 1))})),
    asked("three answers", "square", Inference("square", {"IN": given("INT32", 3, shape=(1, 1))})),
    Exchange("a model that raises", (Inference("trouble", {"WHAT": given("BYTES", "raises")}).grpc(),), {"trouble": 1}),
]  # fmt: skip

TOPIC = topic(
    "metric families",
    MODELS,
    [
        Exchange("before a request", (ALL,)),
        *COUNTED,
        Exchange("after requests", (ALL,)),
        Exchange("unloaded and loaded again", (unload("tagged"), Listed("tagged"), ALL, load("tagged"), ALL)),
    ],
    FRESH,
)
