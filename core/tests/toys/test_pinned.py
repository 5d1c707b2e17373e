from __future__ import annotations

from typing import Any

import pytest

from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import Batch, SequenceInfo
from tritonpy_types.errors import Unavailable

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
    recorder = RecordingSink()
    with serving(model_repository, toy_plugins(plugin())) as server:
        requests = [
            ask(
                server.engine,
                recorder,
                "sum",
                [[value * sequence]],
                **in_sequence(sequence, end=value == 5),
            )
            for value in range(1, 6)
            for sequence in range(1, 9)  # as many as there are slots
        ]
        responses = recorder.wait(*requests)
    sums = [numbers(each)[0][0] for each in responses]
    assert sums == [total * sequence for total in (1, 3, 6, 10, 15) for sequence in range(1, 9)]
    recorder.check(*requests)


def test_slots_without_data_are_invisible_to_requests(model_repository: ModelRepository) -> None:
    model_repository.add("sum", CONFIG)
    recorder, gate = RecordingSink(), Gate()
    with serving(model_repository, toy_plugins(plugin(gate))) as server:
        first = ask(server.engine, recorder, "sum", [[1]], **in_sequence(1))
        gate.wait_for(1)
        others = [
            ask(server.engine, recorder, "sum", [[10 * each]], **in_sequence(each))
            for each in (2, 3)
        ]
        gate.open(1)
        gate.wait_for(2)
        gate.open()
        responses = recorder.wait(first, *others)
        (_, first_batch), (_, second_batch) = gate.arrived
        (statistics,) = server.engine.statistics("sum")
    assert first_batch.slots == [first, None, None, None]
    assert second_batch.slots == [None, *others, None]
    assert [numbers(each) for each in responses] == [[[1]], [[20]], [[30]]]
    assert [(each.batch_size, each.compute_infer.count) for each in statistics.batch_stats] == [
        (4, 2)
    ]


def test_a_finished_sequence_frees_its_slot_and_its_state(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("sum", CONFIG)
    recorder = RecordingSink()
    with serving(model_repository, toy_plugins(plugin())) as server:
        for sequence in range(1, 10):
            request = ask(
                server.engine, recorder, "sum", [[sequence]], **in_sequence(sequence, end=True)
            )
            assert numbers(*recorder.wait(request)) == [[sequence]]


def test_a_request_refused_by_a_scheduler_stays_with_its_caller(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("sum", CONFIG)
    recorder = RecordingSink()
    with serving(model_repository, toy_plugins(plugin())) as server:
        for sequence in range(1, 5):
            ask(server.engine, recorder, "sum", [[1]], **in_sequence(sequence))
        with pytest.raises(Unavailable, match="no free slot for sequence 5"):
            ask(server.engine, recorder, "sum", [[1]], **in_sequence(5))
        recorder.wait(*recorder.requests)
