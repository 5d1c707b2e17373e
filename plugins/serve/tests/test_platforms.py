from __future__ import annotations

import pytest

from tritonpy.plugins import make_plugin_manager
from tritonpy_serve.command import FLAGS, build_config
from tritonpy_serve.overlay import BadFlags, Origins, read_flags
from tritonpy_serve.platforms import check_safe_ports, with_http_limits, with_platform_defaults


def configured(raw=None, environment=(), has_model=False, **flags):
    given = read_flags(FLAGS, {name.replace("_", "-"): [text] for name, text in flags.items()})
    merged = with_platform_defaults(raw, given, dict(environment), has_model=has_model)
    return with_http_limits(build_config(merged, given, Origins()), given)


def test_vertex_ais_mode_enables_its_endpoint_instead_of_http_and_grpc():
    prediction = {"AIP_MODE": "PREDICTION"}
    assert configured(None, prediction).frontends == {"vertex": {}, "http": False, "grpc": False}
    config = configured(None, prediction, allow_grpc="true", allow_vertex_ai="false")
    assert config.frontends == {"vertex": False, "http": False, "grpc": True}
    config = configured({"frontends": {"http": {"port": 1}}}, prediction)
    assert config.frontends["http"] == {"port": 1}


@pytest.mark.parametrize("platform", ["sagemaker", "vertex"])
def test_the_port_of_a_platform_alone_does_not_enable_it(platform):
    flag = {"sagemaker": "sagemaker_port", "vertex": "vertex_ai_port"}[platform]
    allow = {"sagemaker": "allow_sagemaker", "vertex": "allow_vertex_ai"}[platform]
    assert configured(**{flag: "5000"}).frontends == {platform: False}
    assert configured(**{flag: "5000", allow: "true"}).frontends == {platform: {"port": 5000}}


@pytest.mark.parametrize(
    ("environment", "repository"),
    [
        ({"AIP_STORAGE_URI": "gs://bucket/models"}, "gs://bucket/models"),
        ({"AZUREML_MODEL_DIR": "{tmp}"}, "{tmp}/models"),
        ({"AZUREML_MODEL_DIR": "{tmp}/models"}, "{tmp}/models"),
    ],
)
def test_the_platforms_repository_is_used_unless_another_is_given(
    tmp_path, environment, repository
):
    (tmp_path / "models").mkdir()
    environment = {key: text.format(tmp=tmp_path) for key, text in environment.items()}
    used = repository.format(tmp=tmp_path)
    assert [each.url for each in configured(None, environment).repositories] == [used]
    for config in (
        configured({"repositories": [{"url": "own"}]}, environment),
        configured(None, environment, model_repository="own"),
    ):
        assert [each.url for each in config.repositories] == ["own"]
    default = configured().repositories
    assert configured(None, environment, has_model=True).repositories == default


def test_limits_of_http_apply_to_the_platforms_too():
    config = configured(
        allow_sagemaker="true",
        allow_vertex_ai="true",
        allow_http="false",
        http_restricted_api="model-repository:key=secret",
        http_max_input_size="128",
    )
    restricted = [{"apis": ["model-repository"], "key": "key", "value": "secret"}]
    limits = {"restricted_apis": restricted, "max_input_size": 128}
    assert config.frontends == {"http": False, "sagemaker": limits, "vertex": limits}


def test_ports_outside_sagemakers_range_are_refused_with_tritons_text():
    manager = make_plugin_manager()
    flags = {"allow_sagemaker": "true", "sagemaker_safe_port_range": "8081-9000"}
    with pytest.raises(BadFlags) as raised:
        check_safe_ports(configured(**flags, allow_grpc="false", allow_metrics="false"), manager)
    assert str(raised.value) == (
        "The server cannot listen to HTTP requests at port 8000, allowed port range is [8081, 9000]"
    )
    only_vertex = configured(
        **flags, allow_vertex_ai="true", allow_http="false", allow_grpc="false",
        allow_metrics="false",
    )  # fmt: skip
    with pytest.raises(BadFlags, match="cannot listen to Vertex AI requests at port 8080"):
        check_safe_ports(only_vertex, manager)
    inside = configured(
        **flags, http_port="8081", grpc_port="8082", metrics_port="9000", sagemaker_port="1"
    )
    check_safe_ports(inside, manager)
