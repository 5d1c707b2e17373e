from __future__ import annotations

from plugins.workers.tests.fake_worker import model_context, registry_of
from tritonpy_testing.toy_engine import ToyEngine


def test_workers_of_one_version_share_state_until_the_last_is_gone() -> None:
    engine = ToyEngine([])
    registry, model, other = registry_of(engine), model_context(engine), model_context(engine)
    first, second, others = (
        registry.shared_state(model),
        registry.shared_state(model),
        registry.shared_state(other),
    )
    assert first is second
    assert first is not others
    first.release("first")
    assert registry.shared_state(model) is first
    first.release("second")
    first.release("third")
    assert registry.shared_state(model) is not first
    assert registry.shared_state(other) is others
