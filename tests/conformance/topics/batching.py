"""Batches: composition, order and refusals, as far as the arrival order determines them."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import Exchange, Stream, get, topic
from tests.conformance.inference import Inference, given, streamed

SECOND_US = 1_000_000
MODELS = "queue_preferred queue_ordered queue_reject queue_delay queue_override queue_fixed queue_small queue_levels queue_none positions"


def rows(model: str, count: int = 1, width: int = 1, **parameters: Any) -> Inference:
    return Inference(
        model,
        {"IN": given("INT32", *[1] * count * width, shape=(count, width))},
        parameters=parameters,
    )


LARGEST = {"queue_preferred": 6, "queue_ordered": 4, "queue_none": 4, "positions": 4}


def in_order(*inferences: Inference) -> Stream:
    """Return the stream that sends inferences in this order; each has its number as id."""
    return streamed(*[one.named(id=str(number)) for number, one in enumerate(inferences)])


def sizes(model: str, *counts: int) -> Exchange:
    name = f"{model} {' then '.join(map(str, counts))}"
    requests = [rows(model, count) for count in counts]
    return Exchange(
        name, (in_order(*requests),), {} if max(counts) > LARGEST[model] else {model: len(counts)}
    )


def priorities(*levels: int) -> Exchange:
    name = f"priorities {' '.join(map(str, levels))}"
    return Exchange(name, (in_order(*[rows("queue_levels", priority=level) for level in levels]),))


def refused(name: str, *inferences: Inference) -> Exchange:
    model = inferences[0].model
    return Exchange(name, (in_order(*inferences),), {model: len(inferences)})


TOPIC = topic(
    "batching",
    MODELS,
    [
        sizes("queue_preferred", 2),
        sizes("queue_preferred", 4),
        sizes("queue_preferred", 1),
        sizes("queue_preferred", 1, 1),
        sizes("queue_preferred", 1, 3),
        sizes("queue_preferred", 3),
        sizes("queue_preferred", 6),
        sizes("queue_preferred", 5, 1),
        sizes("queue_preferred", 7),
        sizes("queue_ordered", 1, 1, 1, 1),
        sizes("queue_ordered", 2, 2),
        sizes("queue_ordered", 4, 4, 4),
        sizes("queue_ordered", 3, 1, 1, 3),
        sizes("queue_none", 1, 2, 3),
        sizes("queue_none", 5),
        sizes("positions", 4),
        Exchange("other shapes are not put together", (in_order(rows("queue_preferred", 1, 1), rows("queue_preferred", 1, 2), rows("queue_preferred", 1, 2)),), {"queue_preferred": 3}),
        refused("rejected after its time", rows("queue_reject")),
        refused("rejected after their time", rows("queue_reject"), rows("queue_reject", 2)),
        refused("in time for a full batch", rows("queue_reject", 2), rows("queue_reject", 2)),
        Exchange("rejected by HTTP", (rows("queue_reject").json(),), {"queue_reject": 1}),
        Exchange("its own time is not allowed", (in_order(rows("queue_fixed", timeout=50_000)),), {"queue_fixed": 1}),
        Exchange("its own shorter time", (in_order(rows("queue_override", timeout=50_000)),), {"queue_override": 1}),
        Exchange("its own longer time", (in_order(rows("queue_override", timeout=50 * SECOND_US)),), {"queue_override": 1}),
        Exchange("its own time of zero", (in_order(rows("queue_override", timeout=0)),), {"queue_override": 1}),
        Exchange("a shorter time among others", (in_order(rows("queue_override"), rows("queue_override", timeout=50_000), rows("queue_override")),), {"queue_override": 3}),
        refused("delayed", rows("queue_delay")),
        refused("delayed, but in time", rows("queue_delay", 2), rows("queue_delay", 2)),
        refused("two in a queue of two", rows("queue_small"), rows("queue_small")),
        Exchange("four in a queue of two", (in_order(*[rows("queue_small")] * 4),)),
        refused("large ones in a queue of two", rows("queue_small", 3), rows("queue_small", 1)),
        priorities(3, 1, 2, 1),
        priorities(3, 2, 1, 0),
        priorities(0, 1, 7, 1),
        priorities(2, 2, 2, 2),
        priorities(3, 3, 1, 2, 2),
        priorities(1),
        *(Exchange(f"configuration of {model}", (get(f"/v2/models/{model}/config"),)) for model in MODELS.split()),
    ],
)  # fmt: skip
