"""Models whose process ends during an execution.

Each is unloaded and loaded afterwards, because the real Triton does not restart it.
"""

from __future__ import annotations

from tests.conformance.exchange import Exchange, load, topic, unload
from tests.conformance.inference import Inference, text

ENDING = ("is_killed", "leaves_at_once", "leaves_with_zero", "aborts", "reads_nowhere")
LIVING = ("leaves", "raises_interrupt", "is_terminated", "is_interrupted")


def crashing(what: str) -> Inference:
    return Inference("crashing", {"WHAT": text(what)}, timeout_s=10)


def ending(what: str) -> Exchange:
    """Return the exchange of a model that dies, gets another request, and is loaded again."""
    fine = crashing("fine")
    return Exchange(
        what,
        (crashing(what).grpc(), fine.json(), unload("crashing"), load("crashing"), fine.json()),
    )


TOPIC = topic(
    "crashes",
    "crashing",
    [
        *(ending(what) for what in ENDING),
        *(
            Exchange(what, (crashing(what).grpc(), crashing(what).json()), {"crashing": 2})
            for what in LIVING
        ),
    ],
)
