"""Rate limiter: instances with shared resources; requirements that cannot be met are refused."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import Concurrent, Exchange, IndexEntry, load, topic, unload
from tests.conformance.inference import Inference, text
from tests.conformance.topics.instances import CONFIG

FLAGS = (
    "--rate-limit=execution_count",
    "--rate-limit-resource=R1:4",
    "--rate-limit-resource=R2:1",
    "--rate-limit-resource=R3:8:7",
)


def limited(count: int = 1, priority: int = 0, **needs: int) -> dict[str, Any]:
    """Return a group whose instances need the named resources; names that begin with G are global."""
    resources = [
        {"name": name.removeprefix("G"), "count": number, "global": name[0] == "G"}
        for name, number in needs.items()
    ]
    return {
        "kind": "KIND_CPU",
        "count": count,
        "rate_limiter": {"resources": resources, "priority": priority},
    }


def loading(model: str, *groups: dict[str, Any]) -> Any:
    return load(model, {**CONFIG, "instance_group": list(groups)})


REFUSED = {
    "more than there is": (limited(R1=5),),
    "one of another device": (limited(R3=1),),
    "one of two, in the world": (limited(R1=1, GR2=2),),
}
MET = {
    "nothing": (limited(),),
    "of another device, in the world": (limited(GR3=8),),
}


def infer(model: str, **what: Any) -> Any:
    return Inference(model, {"IN": text(what)}, timeout_s=30).json()


def refused(what: str, groups: tuple[dict[str, Any], ...]) -> Exchange:
    return Exchange(
        f"refused: {what}",
        (unload("limited_a"), loading("limited_a", *groups), IndexEntry("limited_a")),
    )


def met(what: str, groups: tuple[dict[str, Any], ...]) -> Exchange:
    steps = (
        unload("limited_a"),
        loading("limited_a", *groups),
        Concurrent((infer("limited_a", alone=f"met {what}"),) * 2),
    )
    return Exchange(f"met: {what}", steps)


def exclusive(what: str, a: tuple[dict[str, Any], ...], b: tuple[dict[str, Any], ...]) -> Exchange:
    """Two models with concurrent requests: their executions never overlap."""
    both = (infer("limited_a", alone=what), infer("limited_b", alone=what))
    loads = (
        unload("limited_a"),
        unload("limited_b"),
        loading("limited_a", *a),
        loading("limited_b", *b),
    )
    return Exchange(f"exclusive: {what}", (*loads, Concurrent(both * 6), unload("limited_b")))


# Last on its server, because the real Triton 2.51 then refuses every model that names the resource.
BOTH = refused("of the device and of the world", (limited(R1=1), limited(GR1=1)))

TOPIC = topic(
    "rate limiter",
    "",
    (
        [refused(what, groups) for what, groups in REFUSED.items()],
        [met(what, groups) for what, groups in MET.items()],
        exclusive("the last of one", (limited(2, R2=1),), (limited(2, R2=1),)),
        exclusive("more than half", (limited(2, R1=3),), (limited(1, R1=2),)),
        exclusive("of the world, with priorities", (limited(1, GR2=1, priority=1),), (limited(2, GR2=1, priority=5),)),
        Exchange(
            "not limited: there is enough for two",
            (unload("limited_a"), loading("limited_a", limited(2, R1=2)),
             Concurrent((infer("limited_a", meet=["enough", 2]),) * 2)),
        ),
        Exchange(
            "in place: more than there is",
            (unload("limited_a"), loading("limited_a", limited(R1=2)), loading("limited_a", limited(R1=5)), IndexEntry("limited_a"),
             infer("limited_a", alone="in place"), loading("limited_a", limited(R1=4)), infer("limited_a", alone="in place")),
        ),
        BOTH,
    ),
    FLAGS,
)  # fmt: skip
