from __future__ import annotations

import pytest

from core.tests.toys.serving import ToyPlugin, ask, config_of, serving, toy_plugins
from tritonpy.api.backend import Backend
from tritonpy.testing.model_repository import ModelRepository
from tritonpy.testing.witness import Witness


class Empty(Backend):
    """Nothing but the defaults."""


def test_a_backend_without_infer_says_so_to_the_client(model_repository: ModelRepository) -> None:
    model_repository.add("m", config_of("empty"))
    witness = Witness()
    with serving(model_repository, toy_plugins(ToyPlugin({"empty": Empty}))) as server:
        assert server.engine.is_model_ready("m")
        ((answer,),) = witness.wait(ask(server.engine, witness, "m", [1]))
    assert str(answer.error) == "NotImplementedError: Empty must define infer() or execute()"


def test_an_instance_outside_a_server_has_nothing_more_to_take() -> None:
    from tritonpy.api.backend import InstanceContext

    assert InstanceContext("m_0_0", "CPU", 0, 0).take_more(4) is None


@pytest.mark.parametrize(
    "method", ["auto_complete", "load", "unload", "close", "is_ready", "memory_usage", "shared_memory_usage"]
)
def test_everything_but_infer_has_a_default_and_a_docstring(method: str) -> None:
    assert "optional" in (getattr(Backend, method).__doc__ or "")
