from __future__ import annotations

import pytest

from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types.errors import DecoupledRefused

from .decoupled import Repeat
from .serving import ToyPlugin, ask, config_of, numbers, serving, toy_plugins

CONFIG = config_of("repeat", more="model_transaction_policy { decoupled: true }")
PLUGIN = ToyPlugin({"repeat": Repeat})


def test_a_decoupled_model_sends_any_number_of_responses_after_execute_returned(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("many", CONFIG)
    recorder = RecordingSink()
    with serving(model_repository, toy_plugins(PLUGIN)) as server:
        requests = [
            ask(server.engine, recorder, "many", [count], accepts_decoupled=True)
            for count in (3, 0, 1)
        ]
        responses = recorder.wait(*requests)
    assert [numbers(each) for each in responses] == [[[0], [1], [2]], [], [[0]]]
    assert [[response.final for response in each] for each in responses] == [
        [False] * 3 + [True],
        [True],
        [False, True],
    ]
    recorder.check(*requests)


def test_a_caller_that_takes_one_response_is_refused_and_keeps_its_request(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("many", CONFIG)
    recorder = RecordingSink()
    with (
        serving(model_repository, toy_plugins(PLUGIN)) as server,
        pytest.raises(DecoupledRefused, match="many"),
    ):
        ask(server.engine, recorder, "many", [3])
    assert recorder.requests == []


def test_a_request_counts_once_for_any_number_of_responses(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("many", CONFIG)
    recorder = RecordingSink()
    with serving(model_repository, toy_plugins(PLUGIN)) as server:
        recorder.wait(ask(server.engine, recorder, "many", [5], accepts_decoupled=True))
        (statistics,) = server.engine.statistics("many")
    assert (statistics.inference_stats.success.count, statistics.execution_count) == (1, 1)
