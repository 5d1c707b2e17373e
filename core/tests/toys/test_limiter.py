from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tritonpy.server.server import Server
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink

from .doubler import Gate, gated
from .limiter import ResourceLimiter
from .serving import ToyPlugin, ask, config_of, serving, toy_plugins

RESOURCE = 'rate_limiter { resources { name: "R" count: 1 } }'
CONFIG = config_of("gated").replace("kind: KIND_CPU", f"kind: KIND_CPU {RESOURCE}")


@contextmanager
def sharing(
    repository: ModelRepository, gate: Gate, limiter: ResourceLimiter, mode: str = "none"
) -> Iterator[Server]:
    for name in ("left", "right"):
        repository.add(name, CONFIG)
    repository.add("free", config_of("gated"))
    control = {"mode": mode, **({"load": ["*"]} if mode == "explicit" else {})}
    with serving(
        repository, toy_plugins(ToyPlugin({"gated": gated(gate)})), limiter=limiter, control=control
    ) as server:
        yield server


def test_two_models_that_share_a_resource_never_execute_at_once(
    model_repository: ModelRepository,
) -> None:
    recorder, gate, limiter = RecordingSink(), Gate(), ResourceLimiter({"R": 1})
    with sharing(model_repository, gate, limiter) as server:
        requests = [ask(server.engine, recorder, name, [1]) for name in ("left", "right")]
        gate.wait_for(1)
        limiter.wait_for_queue(1)  # the other model would run if it could
        assert len(gate.arrived) == 1
        gate.open(1)
        gate.wait_for(2)
        assert requests[0].finished != requests[1].finished
        gate.open(1)
        recorder.wait(*requests)
    recorder.check(*requests)


def test_models_that_share_a_resource_both_finish_all_requests(
    model_repository: ModelRepository,
) -> None:
    recorder, gate = RecordingSink(), Gate()
    gate.open()
    with sharing(model_repository, gate, ResourceLimiter({"R": 1})) as server:
        requests = [
            ask(server.engine, recorder, name, [1]) for _ in range(50) for name in ("left", "right")
        ]
        recorder.wait(*requests)
    recorder.check(*requests)


def test_a_model_without_demands_is_not_delayed(model_repository: ModelRepository) -> None:
    recorder, gate = RecordingSink(), Gate()
    with sharing(model_repository, gate, ResourceLimiter({"R": 1})) as server:
        left = ask(server.engine, recorder, "left", [1])
        gate.wait_for(1)
        free = ask(server.engine, recorder, "free", [1])
        gate.wait_for(2)
        gate.open()
        recorder.wait(left, free)
    recorder.check(left, free)


def test_a_reloaded_model_is_registered_again(model_repository: ModelRepository) -> None:
    recorder, gate, limiter = RecordingSink(), Gate(), ResourceLimiter({"R": 1})
    with sharing(model_repository, gate, limiter, "explicit") as server:
        old = ask(server.engine, recorder, "left", [1])
        gate.wait_for(1)
        server.engine.load_model("left", '{"backend": "gated", "max_batch_size": 0, ' + TENSORS)
        new = ask(server.engine, recorder, "left", [2])
        gate.open()
        recorder.wait(old, new)
    assert limiter.demands == {}  # all registered instances are unregistered at the end


TENSORS = """
    "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}],
    "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [1]}],
    "instance_group": [{"count": 1, "kind": "KIND_CPU", "rate_limiter": {"resources": [{"name": "R", "count": 1}]}}]}
"""
