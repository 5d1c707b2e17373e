"""The figures of the memory budget's benchmark: what they are compared with is what it says, and a short run agrees with it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import pytest

from bench.budget import CONFIG, MODELS, SIZE, measure
from bench.budget_simulation import clairvoyant, least_recently_used, trace
from tritonpy.testing import ModelRepository


def textbook(asked: Sequence[int], room: int) -> float:
    """LRU as everybody writes it."""
    loaded: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for model in asked:
        if model in loaded:
            hits += 1
            loaded.move_to_end(model)
            continue
        if len(loaded) == room:
            loaded.popitem(last=False)
        loaded[model] = None
    return hits / len(asked)


@pytest.mark.parametrize("skew", [0.0, 1.0])
@pytest.mark.parametrize("room", [1, 5, 20])
def test_the_servers_decision_is_lru_and_nobody_does_better_than_who_knows_the_future(skew: float, room: int) -> None:
    asked = trace(30, 400, skew, seed=2)
    assert least_recently_used(asked, room) == textbook(asked, room) <= clairvoyant(asked, room)


def test_who_knows_the_future_keeps_what_is_asked_next() -> None:
    assert clairvoyant([1, 2, 3, 1, 2, 3], 2) == 2 / 6


def test_a_server_with_one_client_hits_as_the_simulation_does(model_repository: ModelRepository) -> None:
    for number in range(MODELS):
        model_repository.add(f"m{number}", CONFIG, {1: {"weights.bin": bytes(SIZE)}})
    found = measure(model_repository.path, "Zipf", room=10, clients=1, requests=150)
    assert found.highest <= 10 * SIZE
    assert found.measured == pytest.approx(
        found.simulated, abs=0.03
    )  # two uses within one millisecond are equally long ago
