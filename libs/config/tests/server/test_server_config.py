from __future__ import annotations

import pytest

from tritonpy_config.server import InvalidServerConfig, ServerConfig, decode_server_config

INSTALLED = ["http", "grpc", "metrics", "toy"]


def refusal(raw):
    with pytest.raises(InvalidServerConfig) as caught:
        decode_server_config(raw)
    return [str(problem) for problem in caught.value.problems]


def test_an_empty_configuration_serves_the_working_folder_as_triton():
    config = decode_server_config(None)
    assert config == ServerConfig()
    assert [repository.url for repository in config.repositories] == ["./models"]
    assert (config.control.mode, config.control.interval_s, config.control.threads) == (
        "none",
        15,
        4,
    )
    assert (config.host, config.id, config.exit_timeout_s) == ("127.0.0.1", "triton", 30)
    assert config.exit_on_error
    assert config.strict_readiness


def test_the_default_frontends_are_the_installed_ones():
    config = decode_server_config({})
    assert config.enabled_frontends(INSTALLED) == {"http": {}, "grpc": {}, "metrics": {}}
    assert config.enabled_frontends(["grpc"]) == {"grpc": {}}


def test_a_frontend_has_options_or_is_disabled():
    config = decode_server_config({"frontends": {"http": False, "grpc": None, "toy": {"port": 1}}})
    assert config.enabled_frontends(INSTALLED) == {"grpc": {}, "metrics": {}, "toy": {"port": 1}}


def test_a_configured_frontend_is_enabled_even_if_it_is_not_installed():
    assert decode_server_config({"frontends": {"http": {}}}).enabled_frontends([]) == {"http": {}}


def test_options_of_plugins_stay_raw():
    raw = {
        "backends": {"onnxruntime": {"default-max-batch-size": "4"}},
        "observers": {"toy": {"size": "64MiB"}},
    }
    config = decode_server_config(raw)
    assert config.backends == raw["backends"]
    assert config.observers == raw["observers"]


def test_all_problems_of_all_sections_are_reported_together():
    raw = {
        "repositories": [{"url": "a", "secret": 1}, {}],
        "control": {"mode": "manual", "interval-s": "soon"},
        "frontend": {},
        "exit_on_error": "perhaps",
        "logging": {"format": "xml"},
        "frontends": {"http": 4},
    }
    assert refusal(raw) == [
        "repositories[0].secret: unknown option 'secret'; valid here: url, options",
        "repositories[1]: 'url' is missing: expected text, of length 1 or more",
        "control.mode: expected one of: none, explicit, poll; got 'manual'",
        "control.interval-s: expected a number, at least 0; got 'soon'",
        "frontend: unknown option 'frontend'; did you mean 'frontends'?",
        "exit_on_error: expected true or false; got 'perhaps'",
        "logging.format: expected one of: default, ISO8601, json; got 'xml'",
        "frontends.http: expected a mapping or true or false; got 4",
    ]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (
            {"control": {"load": ["a"]}},
            "control.load: mode 'none' loads every model; set control.mode to explicit",
        ),
        ({"control": {"mode": "explicit", "load": ["*", "a"]}}, "must be the ONLY startup model"),
        ({"control": {"mode": "poll", "interval_s": 0}}, "mode 'poll' needs more than 0 seconds"),
        (
            {"cache": {"local": {}, "redis": {}}},
            "cache: found multiple cache configurations, but only a single cache is currently supported",
        ),
        ({"transport": {"wire": {}, "train": {}}}, "transport: only one transport is allowed"),
        (
            {"transport": "envoy"},
            "transport.envoy: the transport 'envoy' was removed; put an Envoy proxy in front",
        ),
        (
            {"transport": {"envoy": {"http3": True}}},
            "transport.envoy: the transport 'envoy' was removed",
        ),
        (
            {"rate_limit": {"resources": {"R:x": 1}}},
            "rate_limit.resources.R:x: 'R:x' is not <resource_name> or",
        ),
        (
            {"rate_limit": {"resources": {"R": -1}}},
            "rate_limit.resources.R: expected an integer, at least 0",
        ),
        (
            {"host_policies": {"p": {"cpu_cores": "a-b"}}},
            "host_policies.p.cpu_cores: host policy setting 'cpu-cores'",
        ),
        ({"host_policies": {"p": {"gpu": "0"}}}, "host_policies.p.gpu: unknown option 'gpu'"),
        ({"repositories": []}, "repositories: expected a list, of length 1 or more; got []"),
        ({"model_config_name": "a b"}, "model_config_name: expected text"),
    ],
)
def test_contradictions_are_refused(raw, text):
    (problem,) = refusal(raw)
    assert text in problem


def test_the_wildcard_is_allowed_in_every_mode():
    assert decode_server_config({"control": {"mode": "poll", "load": ["*"]}}).control.load == ["*"]


def test_the_file_itself_must_be_a_mapping():
    assert refusal(["a"])[0].startswith(
        "expected a mapping with the keys repositories, control, host"
    )


def test_frontends_may_have_separate_processes():
    assert decode_server_config({"frontend_processes": 2}).frontend_processes == 2
    assert refusal({"frontend_processes": -1})


def test_a_transport_name_means_its_default_options():
    assert decode_server_config({"transport": "wire"}).transport == {"wire": {}}
    assert decode_server_config({"transport": "none"}) == ServerConfig()
    assert decode_server_config({"transport": {"wire": {"speed": 2}}}).transport == {
        "wire": {"speed": 2}
    }
