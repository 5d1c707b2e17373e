"""The memory budget benchmark: correct baselines, and a run that agrees with simulation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import pytest

from bench.budget import CONFIG, MODELS, SIZE, measure
from bench.budget_simulation import least_recently_used, optimal, trace
from tritonpy_testing import ModelRepository


def textbook(requested: Sequence[int], capacity: int) -> float:
    """A textbook implementation of LRU."""
    loaded: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for model in requested:
        if model in loaded:
            hits += 1
            loaded.move_to_end(model)
            continue
        if len(loaded) == capacity:
            loaded.popitem(last=False)
        loaded[model] = None
    return hits / len(requested)


@pytest.mark.parametrize("skew", [0.0, 1.0])
@pytest.mark.parametrize("capacity", [1, 5, 20])
def test_eviction_is_lru_and_no_policy_beats_the_optimal_one(skew: float, capacity: int) -> None:
    requested = trace(30, 400, skew, seed=2)
    assert (
        least_recently_used(requested, capacity)
        == textbook(requested, capacity)
        <= optimal(requested, capacity)
    )


def test_the_optimal_policy_keeps_the_models_requested_next() -> None:
    assert optimal([1, 2, 3, 1, 2, 3], 2) == 2 / 6


def test_hit_rates_of_server_and_simulation_agree_for_one_client(
    model_repository: ModelRepository,
) -> None:
    for number in range(MODELS):
        model_repository.add(f"m{number}", CONFIG, {1: {"weights.bin": bytes(SIZE)}})
    found = measure(model_repository.path, "Zipf", capacity=10, clients=1, requests=150)
    assert found.highest <= 10 * SIZE
    assert found.measured == pytest.approx(
        found.simulated, abs=0.03
    )  # two uses within one millisecond count as simultaneous
