from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tests.toys.caches import (
    CachePlugin,
    CountingDoubler,
    MemoryCache,
    cached,
    counts,
    infer,
    wait_until,
)
from core.tests.toys.doubler import Doubler, Gate, gated
from core.tests.toys.ensemble import EnsembleScheduler
from core.tests.toys.rescheduling import ReschedulingScheduler
from core.tests.toys.serving import (
    ToyPlugin,
    ask,
    config_of,
    numbers,
    request_of,
    serving,
    toy_plugins,
)
from tritonpy.api.backend import Array, Backend
from tritonpy.api.engine import Duration
from tritonpy.server.server import Server
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink
from tritonpy_types import Batch, InferRequest, InferResponse, OutputSpec, SequenceInfo, Tensor
from tritonpy_types.clock import now_ns
from tritonpy_types.errors import StartupError

LARGE = 1 << 17  # int32 values: too many to hash on an event loop


def test_an_equal_request_is_served_from_the_cache(model_repository: ModelRepository) -> None:
    with cached(model_repository, MemoryCache) as server:
        _, first = infer(server, [[1, 2]], id="first")
        _, second = infer(server, [[1, 2]], id="second")
        assert numbers(first) == numbers(second) == [[2, 4]]
        assert (second[0].id, second[0].model_name, second[0].model_version) == ("second", "m", 1)
        assert CountingDoubler.computed == 1
        assert counts(server) == (2, 1, 1, 1)


def test_hits_and_misses_add_up_in_the_statistics(model_repository: ModelRepository) -> None:
    with cached(model_repository, MemoryCache) as server:
        for value in (1, 2, 1, 3, 2):
            infer(server, [[value]])
        (statistics,) = server.engine.statistics("m")
        times = statistics.inference_stats
    assert counts_of(times) == {
        "success": 5,
        "queue": 5,
        "cache_hit": 2,
        "cache_miss": 3,
        "compute_infer": 3,
    }
    assert statistics.inference_count == 3
    assert times.cache_hit.ns > 0
    assert 0 < times.cache_hit.ns + times.cache_miss.ns < times.success.ns


def counts_of(times: Any) -> dict[str, int]:
    kinds = ("success", "queue", "cache_hit", "cache_miss", "compute_infer")
    return {kind: getattr(times, kind).count for kind in kinds}


def test_a_model_that_does_not_ask_for_it_is_not_cached(model_repository: ModelRepository) -> None:
    model_repository.add("m", config_of("toy", batch=4))
    with serving(
        model_repository,
        toy_plugins(ToyPlugin({"toy": Doubler}), CachePlugin(MemoryCache)),
        cache={"toy": {}},
    ) as server:
        infer(server, [[1]])
        infer(server, [[1]])
        assert MemoryCache.made.looked_up == []
        assert not server.engine.gauges()["m", "1"].cached


def test_a_server_without_a_cache_serves_a_model_that_asks_for_one(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("m", config_of("toy", batch=4, more="response_cache { enable: true }"))
    with serving(model_repository, toy_plugins(ToyPlugin({"toy": Doubler}))) as server:
        assert numbers(infer(server, [[4]])[1]) == [[8]]


def test_an_error_is_never_cached(model_repository: ModelRepository) -> None:
    with cached(model_repository, MemoryCache) as server:
        for _ in range(2):
            _, (response,) = infer(server, [[13]])
            assert "thirteen" in str(response.error)
        assert CountingDoubler.computed == 2
        assert MemoryCache.made.entries == {}
        assert counts(server) == (0, 0, 0, 2)


@pytest.mark.parametrize(
    "fields",
    [
        {"parameters": {"mode": "b"}},
        {"parameters": {"mode": 1}},
        {"parameters": {"mode": True}},
        {"outputs": {"OUT": OutputSpec("OUT")}},
        {"outputs": {"OUT": OutputSpec("OUT", classification=1)}},
    ],
    ids=str,
)
def test_everything_that_may_affect_the_response_is_part_of_the_key(
    model_repository: ModelRepository, fields: dict[str, Any]
) -> None:
    with cached(model_repository, MemoryCache) as server:
        infer(server, [[1, 2]], parameters={"mode": "a"})
        infer(server, [[1, 2]], **fields)
        assert CountingDoubler.computed == 2
        infer(server, [[1, 2]], **fields)
        assert CountingDoubler.computed == 2


def test_fields_that_do_not_affect_the_response_are_not_part_of_the_key(
    model_repository: ModelRepository,
) -> None:
    with cached(model_repository, MemoryCache) as server:
        infer(server, [[1]], id="a", timeout_us=5_000_000)
        infer(server, [[1]], id="b", priority=0, deadline_ns=now_ns() + 10**12)
        assert CountingDoubler.computed == 1


def test_classification_uses_the_cached_outputs(model_repository: ModelRepository) -> None:
    with cached(model_repository, MemoryCache) as server:
        options = {"outputs": {"OUT": OutputSpec("OUT", classification=1)}, "classifies": True}
        texts = [infer(server, [[1, 5, 2]], **options)[1][0].outputs[0].strings() for _ in range(2)]
        assert texts[0] == texts[1] == [b"10:1"]
        assert CountingDoubler.computed == 1


def test_a_request_of_a_sequence_is_not_looked_up(model_repository: ModelRepository) -> None:
    with cached(model_repository, MemoryCache) as server:
        for _ in range(2):
            infer(server, [[1]], sequence=SequenceInfo(5, start=True))
        assert CountingDoubler.computed == 2
        assert counts(server) == (2, 0, 0, 2)


def test_large_inputs_are_hashed_on_another_thread(model_repository: ModelRepository) -> None:
    value = np.arange(100, 100 + LARGE, dtype=np.int32)[None]
    with cached(model_repository, MemoryCache) as server:
        infer(server, value)
        wait_until(lambda: MemoryCache.made.entries)
        _, (response,) = infer(server, value)
        assert response.outputs[0].numpy()[0, -1] == 2 * (LARGE + 99)
        assert CountingDoubler.computed == 1
        assert {name.split(" ")[0] for name in MemoryCache.made.looked_up} == {"response"}


class Inplace(Doubler):
    """Responds with memory that it reuses."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._memory = np.zeros((1, 1), np.int32)

    def execute(self, batch: Batch) -> None:
        (request,) = batch.requests
        self._memory[:] = request.inputs["IN"].numpy() * 2
        batch.respond([InferResponse([Tensor("OUT", "INT32", (1, 1), self._memory)])])


def test_the_cache_stores_a_copy(model_repository: ModelRepository) -> None:
    with cached(model_repository, MemoryCache, Inplace) as server:
        infer(server, [[1]])
        infer(server, [[7]])
        assert numbers(infer(server, [[1]])[1]) == [[2]]


class WithParameters(Doubler):
    """Responds with parameters."""

    def execute(self, batch: Batch) -> None:
        data = np.zeros((1, 1), np.int32)
        parameters = {"note": "é", "count": 3, "sure": True}
        batch.respond(
            [
                InferResponse([Tensor("OUT", "INT32", (1, 1), data)], parameters=parameters)
                for _ in batch.requests
            ]
        )


def test_parameters_of_a_response_are_restored(model_repository: ModelRepository) -> None:
    with cached(model_repository, MemoryCache, WithParameters) as server:
        responses = [infer(server, [[1]])[1][0] for _ in range(2)]
        assert server.engine.statistics("m")[0].inference_stats.cache_hit.count == 1
    assert (
        responses[0].parameters
        == responses[1].parameters
        == {"note": "é", "count": 3, "sure": True}
    )
    assert [each.name for each in responses[1].outputs] == ["OUT"]


def test_two_equal_requests_at_the_same_time_both_run(model_repository: ModelRepository) -> None:
    gate, recorder = Gate(), RecordingSink()
    with cached(model_repository, MemoryCache, gated(gate)) as server:
        requests = [ask(server.engine, recorder, "m", [[3]]) for _ in range(2)]
        gate.open()
        assert [numbers(each) for each in recorder.wait(*requests)] == [[[6]], [[6]]]
        assert counts(server)[:3] == (2, 0, 2)
        recorder.check(*requests)


ORDERED = "dynamic_batching { preserve_ordering: true }"


def test_a_hit_waits_for_earlier_responses_if_the_order_is_preserved(
    model_repository: ModelRepository,
) -> None:
    gate, recorder = Gate(), RecordingSink()
    config = config_of("toy", batch=4, more=f"{ORDERED} response_cache {{ enable: true }}")
    model_repository.add("m", config)
    toys = toy_plugins(
        ToyPlugin({"toy": gated(gate)}, {"dynamic": ReschedulingScheduler}),
        CachePlugin(MemoryCache),
    )
    with serving(model_repository, toys, cache={"toy": {}}) as server:
        gate.open(1)
        recorder.wait(ask(server.engine, recorder, "m", [[1]]))
        slow = ask(server.engine, recorder, "m", [[2]])
        hit = ask(server.engine, recorder, "m", [[1]])
        gate.wait_for(2)
        assert recorder.responses(hit) == []
        gate.open()
        recorder.wait(slow, hit)
        assert recorder.requests[1:] == [slow, hit]


ENSEMBLE = """
    platform: "ensemble" max_batch_size: 64
    input { name: "IN" data_type: TYPE_INT32 dims: -1 } output { name: "OUT" data_type: TYPE_INT32 dims: -1 }
    response_cache { enable: true }
    ensemble_scheduling { step {
      model_name: "double" model_version: -1
      input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }
    } }
"""


def test_a_hit_of_an_ensemble_skips_its_members(model_repository: ModelRepository) -> None:
    model_repository.add("double", config_of("toy", batch=64, dims=-1))
    model_repository.add("m", ENSEMBLE)
    CountingDoubler.computed = 0
    toys = toy_plugins(
        ToyPlugin({"toy": CountingDoubler}, {"ensemble": EnsembleScheduler}),
        CachePlugin(MemoryCache),
    )
    with serving(model_repository, toys, cache={"toy": {}}) as server:
        for _ in range(3):
            assert numbers(infer(server, [[5]])[1]) == [[10]]
        assert CountingDoubler.computed == 1
        times = server.engine.statistics("m")[0].inference_stats
        assert (times.success.count, times.cache_hit.count, times.cache_miss.count) == (3, 2, 1)


def test_an_ensemble_that_its_member_makes_decoupled_is_refused(
    model_repository: ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    member = config_of(
        "toy", batch=64, dims=-1, more="model_transaction_policy { decoupled: true }"
    )
    model_repository.add("double", member)
    model_repository.add("m", ENSEMBLE)
    toys = toy_plugins(
        ToyPlugin({"toy": CountingDoubler}, {"ensemble": EnsembleScheduler}),
        CachePlugin(MemoryCache),
    )
    with pytest.raises(StartupError), serving(model_repository, toys, cache={"toy": {}}):
        pass
    assert (
        "Response Cache does not currently support model m with 'decoupled' transaction policy"
        in caplog.text
    )


class Mixed(Backend):
    """Has two inputs, one of them optional."""

    def infer(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        other = inputs.get("OTHER")
        return {
            "OUT": inputs["IN"] * 3
            + (0 if other is None else other.sum(1, keepdims=True, dtype=np.int32))
        }


MIXED = """
    backend: "toy" max_batch_size: 8
    input { name: "IN" data_type: TYPE_INT32 dims: -1 }
    input { name: "OTHER" data_type: TYPE_INT32 dims: -1 optional: true }
    output { name: "OUT" data_type: TYPE_INT32 dims: -1 }
"""


def rows(size: int) -> st.SearchStrategy[list[list[int]]]:
    row = st.lists(st.integers(0, 2), min_size=1, max_size=3)
    return row.map(lambda values: [values] * size)


QUESTIONS = st.integers(1, 2).flatmap(lambda size: st.tuples(rows(size), st.none() | rows(size)))


def mixed_request(recorder: RecordingSink, model: str, question: tuple[Any, Any]) -> InferRequest:
    given_value, other = question
    request = request_of(recorder, model, given_value)
    if other is not None:
        request.inputs["OTHER"] = Tensor.from_numpy("OTHER", np.array(other, np.int32))
    return request


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a server with the same model twice, as "cached" and as "plain"."""
    repository = ModelRepository(tmp_path_factory.mktemp("both"))
    repository.add("plain", MIXED)
    repository.add("cached", MIXED + "response_cache { enable: true }")
    with serving(
        repository,
        toy_plugins(ToyPlugin({"toy": Mixed}), CachePlugin(MemoryCache)),
        cache={"toy": {}},
    ) as server:
        yield server


@given(st.lists(QUESTIONS, min_size=1, max_size=30))
@settings(max_examples=60)
def test_a_cached_model_responds_like_one_without_a_cache(
    both: Server, questions: Sequence[tuple[Any, Any]]
) -> None:
    for question in questions:
        recorder = RecordingSink()
        pair = [mixed_request(recorder, model, question) for model in ("plain", "cached")]
        for request in pair:
            both.engine.infer(request)
        found = [response.outputs[0] for (response,) in recorder.wait(*pair)]
        assert found[0].shape == found[1].shape
        assert found[0].numpy().tolist() == found[1].numpy().tolist()


def test_the_property_above_sees_hits(both: Server) -> None:
    recorder = RecordingSink()
    for _ in range(2):
        request = mixed_request(recorder, "cached", ([[1, 1]], None))
        both.engine.infer(request)
        recorder.wait(request)
    assert both.engine.statistics("cached")[0].inference_stats.cache_hit != Duration()
