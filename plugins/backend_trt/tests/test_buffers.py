from __future__ import annotations

import pytest

from tritonpy_backend_trt.signature import read_signature

from .simulated import plans


def sets_of(harness):
    return harness.instance._pipeline._resources.sets


@pytest.mark.parametrize(
    ("plan", "blocks", "values", "growable"),
    [
        (plans.double(), {"IN": 128, "OUT": 128}, {}, []),
        (plans.packed(), {"IN": 4 * 16 * 2, "OUT": 4 * 16 * 2}, {}, []),
        (
            plans.expand(batched=True),
            {"IN": 64, "FILLED": 8 * 4 * 5 * 4},
            {"SIZE": (3,), "SIZES": (3,)},
            [],
        ),
        (plans.positives(), {"IN": 16 * 4}, {}, ["OUT"]),
    ],
)
def test_every_buffer_fits_the_largest_shape(simulation, plan, blocks, values, growable):
    with simulation.load(plan) as harness:
        [buffers] = sets_of(harness)
        assert {name: block.byte_size for name, block in buffers.blocks.items()} == blocks
        assert {name: array.shape for name, array in buffers.values.items()} == values
        assert list(buffers.growable) == list(buffers.allocators) == growable


def test_a_smaller_configuration_gets_smaller_buffers(simulation):
    with simulation.load(plans.double(), "max_batch_size: 2") as harness:
        assert {block.byte_size for block in sets_of(harness)[0].blocks.values()} == {32}


def test_buffer_sets_share_no_memory(simulation):
    with simulation.load(plans.double(), "optimization { eager_batching: true }") as harness:
        one, two = sets_of(harness)
        assert {block.address for block in one.blocks.values()}.isdisjoint(
            block.address for block in two.blocks.values()
        )


def test_buffers_are_zeroed(simulation):
    with simulation.load(plans.double()) as harness:
        for block in sets_of(harness)[0].blocks.values():
            assert not simulation.machine.view(block.address, block.byte_size).any()


def test_memory_for_inputs_and_outputs_is_counted_by_the_server(simulation):
    with simulation.load(plans.double()) as harness:
        held = {(kind, device): size for kind, device, size in harness.model.memory.held()}
        assert held["GPU", 0] == 256
        assert held["GPU", 1] == 0
    assert read_signature


def test_addresses_are_set_only_when_the_buffers_change(simulation):
    with simulation.load(plans.double(), "optimization { eager_batching: true }") as harness:
        [context] = harness.instance._pipeline._resources.contexts
        one, two = sets_of(harness)
        calls = []
        context.set_address = lambda name, address: calls.append(name)
        for buffers in (one, one, two, one):
            buffers.bind(context)
        assert calls == ["IN", "OUT"] * (3 if context.bound is one else 2)
