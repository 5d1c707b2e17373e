from __future__ import annotations

from core.tests.runners.workers.fake_worker import model_context, neighbours_of
from tritonpy.testing.toy_engine import ToyEngine


def test_the_workers_of_one_version_share_until_the_last_of_them_is_gone() -> None:
    engine = ToyEngine([])
    neighbours, model, other = neighbours_of(engine), model_context(engine), model_context(engine)
    first, second, others = neighbours.shares(model), neighbours.shares(model), neighbours.shares(other)
    assert first is second
    assert first is not others
    first.leave("first")
    assert neighbours.shares(model) is first
    first.leave("second")
    first.leave("third")
    assert neighbours.shares(model) is not first
    assert neighbours.shares(other) is others
