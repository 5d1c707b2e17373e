from __future__ import annotations

import pytest

import tritonpy_residency
from tritonpy import running_server
from tritonpy.plugins import PluginError
from tritonpy_residency.policy import LruPolicy
from tritonpy_testing import (
    InferenceServerException,
    InProcessClient,
    ModelRepository,
    ResidencyPolicyContract,
)

NO_FRONTENDS = {"http": False, "grpc": False, "metrics": False}
LAZY = 'backend: "b" parameters { key: "lazy" value { string_value: "true" } }'


class TestLru(ResidencyPolicyContract):
    plugin_class = LruPolicy
    plugin = tritonpy_residency
    name = "lru"


def without_the_plugin(repository: ModelRepository, **settings: object) -> dict[str, object]:
    return {"repositories": [{"url": str(repository.path)}], "frontends": NO_FRONTENDS, **settings}


@pytest.mark.parametrize(
    "memory", [{"lazy": ["*"]}, {"budget": "1GiB"}, {"devices": {"0": "1GiB"}}]
)
def test_without_the_plugin_memory_settings_are_an_error_that_names_it(model_repository, memory):
    config = without_the_plugin(model_repository, memory=memory)
    with (
        pytest.raises(
            PluginError, match=r"no plugin provides residency policy 'lru': .*tritonpy-residency"
        ),
        running_server(config, installed=False),
    ):
        pass


def test_without_the_plugin_a_lazy_model_fails_to_load_with_an_error_that_names_it(
    model_repository,
):
    config = without_the_plugin(model_repository, control={"mode": "explicit"})
    with running_server(config, installed=False) as server:
        model_repository.add("a", config=LAZY)
        with pytest.raises(
            InferenceServerException, match=r"model 'a': no plugin provides .*tritonpy-residency"
        ):
            InProcessClient(server).load_model("a")
        assert server.engine.is_ready()


def test_without_the_plugin_the_start_reports_lazy_models(model_repository):
    model_repository.add("a", config=LAZY)
    config = without_the_plugin(model_repository, exit_on_error=False)
    with running_server(config, installed=False) as server:
        (line,) = InProcessClient(server).get_model_repository_index()
        assert "tritonpy-residency" in line["reason"]
