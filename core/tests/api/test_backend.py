from __future__ import annotations

import pytest

from core.tests.toys.serving import ToyPlugin, ask, config_of, serving, toy_plugins
from tritonpy.api.backend import Backend
from tritonpy_testing.model_repository import ModelRepository
from tritonpy_testing.recording_sink import RecordingSink


class Empty(Backend):
    """A backend with only the defaults."""


def test_a_backend_without_infer_fails_requests_with_a_clear_error(
    model_repository: ModelRepository,
) -> None:
    model_repository.add("m", config_of("empty"))
    recorder = RecordingSink()
    with serving(model_repository, toy_plugins(ToyPlugin({"empty": Empty}))) as server:
        assert server.engine.is_model_ready("m")
        ((response,),) = recorder.wait(ask(server.engine, recorder, "m", [1]))
    assert str(response.error) == "NotImplementedError: Empty must define infer() or execute()"


def test_an_instance_context_outside_a_server_has_no_further_requests() -> None:
    from tritonpy.api.contexts import InstanceContext

    assert InstanceContext("m_0_0", "CPU", 0, 0).take_more(4) is None


@pytest.mark.parametrize(
    "method",
    ["auto_complete", "load", "unload", "close", "is_ready", "memory_usage", "shared_memory_usage"],
)
def test_every_method_but_infer_has_a_default_and_a_docstring(method: str) -> None:
    assert "optional" in (getattr(Backend, method).__doc__ or "")
