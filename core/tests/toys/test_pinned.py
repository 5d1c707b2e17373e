from __future__ import annotations

from typing import Any

import pytest

from tritonpy.errors import Unavailable
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness
from tritonpy.types import Batch, SequenceInfo

from .doubler import Gate
from .pinned import CONFIG, Accumulate, PinnedScheduler
from .serving import ToyPlugin, ask, numbers, serving, toy_plugins


def plugin(gate: Gate | None = None) -> ToyPlugin:
    class Gated(Accumulate):
        def execute(self, batch: Batch) -> None:
            if gate is not None:
                gate.pass_through(self.instance.name, batch)
            super().execute(batch)

    return ToyPlugin({"accumulate": Gated}, {"sequence": PinnedScheduler})


def in_sequence(number: int, **flags: bool) -> dict[str, Any]:
    return {"sequence": SequenceInfo(number, **flags)}


def test_sequences_keep_their_own_state(model_repository: ModelRepository) -> None:
    model_repository.add("sum", CONFIG + "instance_group { count: 2 kind: KIND_CPU }")
    witness = Witness()
    with serving(model_repository, toy_plugins(plugin())) as server:
        requests = [
            ask(server.engine, witness, "sum", [[value * sequence]], **in_sequence(sequence, end=value == 5))
            for value in range(1, 6)
            for sequence in range(1, 9)  # as many as there are slots
        ]
        answers = witness.wait(*requests)
    sums = [numbers(each)[0][0] for each in answers]
    assert sums == [total * sequence for total in (1, 3, 6, 10, 15) for sequence in range(1, 9)]
    witness.check(*requests)


def test_slots_without_data_are_holes_that_no_request_sees(model_repository: ModelRepository) -> None:
    model_repository.add("sum", CONFIG)
    witness, gate = Witness(), Gate()
    with serving(model_repository, toy_plugins(plugin(gate))) as server:
        first = ask(server.engine, witness, "sum", [[1]], **in_sequence(1))
        gate.wait_for(1)
        others = [ask(server.engine, witness, "sum", [[10 * each]], **in_sequence(each)) for each in (2, 3)]
        gate.open(1)
        gate.wait_for(2)
        gate.open()
        answers = witness.wait(first, *others)
        (_, lone), (_, holed) = gate.arrived
        (statistics,) = server.engine.statistics("sum")
    assert lone.slots == [first, None, None, None]
    assert holed.slots == [None, *others, None]
    assert [numbers(each) for each in answers] == [[[1]], [[20]], [[30]]]
    assert [(each.batch_size, each.compute_infer.count) for each in statistics.batch_stats] == [(4, 2)]


def test_a_finished_sequence_frees_its_slot_and_its_state(model_repository: ModelRepository) -> None:
    model_repository.add("sum", CONFIG)
    witness = Witness()
    with serving(model_repository, toy_plugins(plugin())) as server:
        for sequence in range(1, 10):
            request = ask(server.engine, witness, "sum", [[sequence]], **in_sequence(sequence, end=True))
            assert numbers(*witness.wait(request)) == [[sequence]]


def test_what_a_scheduler_refuses_stays_with_its_caller(model_repository: ModelRepository) -> None:
    model_repository.add("sum", CONFIG)
    witness = Witness()
    with serving(model_repository, toy_plugins(plugin())) as server:
        for sequence in range(1, 5):
            ask(server.engine, witness, "sum", [[1]], **in_sequence(sequence))
        with pytest.raises(Unavailable, match="no free slot for sequence 5"):
            ask(server.engine, witness, "sum", [[1]], **in_sequence(5))
        witness.wait(*witness.requests)
