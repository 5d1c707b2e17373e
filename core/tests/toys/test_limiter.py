from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tritonpy.server import Server
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness

from .doubler import Gate, gated
from .limiter import ResourceLimiter
from .serving import ToyPlugin, ask, config_of, serving, toy_plugins

RESOURCE = 'rate_limiter { resources { name: "R" count: 1 } }'
CONFIG = config_of("gated").replace("kind: KIND_CPU", f"kind: KIND_CPU {RESOURCE}")


@contextmanager
def sharing(repository: ModelRepository, gate: Gate, limiter: ResourceLimiter, mode: str = "none") -> Iterator[Server]:
    for name in ("left", "right"):
        repository.add(name, CONFIG)
    repository.add("free", config_of("gated"))
    control = {"mode": mode, **({"load": ["*"]} if mode == "explicit" else {})}
    with serving(
        repository, toy_plugins(ToyPlugin({"gated": gated(gate)})), limiter=limiter, control=control
    ) as server:
        yield server


def test_two_models_that_share_a_resource_never_execute_at_once(model_repository: ModelRepository) -> None:
    witness, gate, limiter = Witness(), Gate(), ResourceLimiter({"R": 1})
    with sharing(model_repository, gate, limiter) as server:
        requests = [ask(server.engine, witness, name, [1]) for name in ("left", "right")]
        gate.wait_for(1)
        limiter.wait_for_queue(1)  # the other model would run if it could
        assert len(gate.arrived) == 1
        gate.open(1)
        gate.wait_for(2)
        assert requests[0].answered != requests[1].answered
        gate.open(1)
        witness.wait(*requests)
    witness.check(*requests)


def test_models_that_share_a_resource_both_get_all_their_turns(model_repository: ModelRepository) -> None:
    witness, gate = Witness(), Gate()
    gate.open()
    with sharing(model_repository, gate, ResourceLimiter({"R": 1})) as server:
        requests = [ask(server.engine, witness, name, [1]) for _ in range(50) for name in ("left", "right")]
        witness.wait(*requests)
    witness.check(*requests)


def test_who_needs_nothing_is_not_held_up(model_repository: ModelRepository) -> None:
    witness, gate = Witness(), Gate()
    with sharing(model_repository, gate, ResourceLimiter({"R": 1})) as server:
        left = ask(server.engine, witness, "left", [1])
        gate.wait_for(1)
        free = ask(server.engine, witness, "free", [1])
        gate.wait_for(2)
        gate.open()
        witness.wait(left, free)
    witness.check(left, free)


def test_a_reloaded_model_keeps_its_place_at_the_limiter(model_repository: ModelRepository) -> None:
    witness, gate, limiter = Witness(), Gate(), ResourceLimiter({"R": 1})
    with sharing(model_repository, gate, limiter, "explicit") as server:
        old = ask(server.engine, witness, "left", [1])
        gate.wait_for(1)
        server.engine.load_model("left", '{"backend": "gated", "max_batch_size": 0, ' + TENSORS)
        new = ask(server.engine, witness, "left", [2])
        gate.open()
        witness.wait(old, new)
    assert limiter.needs == {}  # every instance that was registered is forgotten at the end


TENSORS = """
    "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}],
    "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [1]}],
    "instance_group": [{"count": 1, "kind": "KIND_CPU", "rate_limiter": {"resources": [{"name": "R", "count": 1}]}}]}
"""
