from __future__ import annotations

import pytest

from tritonpy_frontend_sagemaker.serve import ServeError, make_arguments


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "adder").mkdir()
    return tmp_path


def test_the_only_model_is_served_with_the_flags_of_tritons_script(repository, capsys):
    environment = {}
    arguments = make_arguments(environment, repository)
    assert arguments == [
        "--allow-sagemaker=true",
        "--allow-http=false",
        "--model-control-mode=explicit",
        f"--model-repository={repository}",
        "--load-model=adder",
        "--allow-grpc=false",
        "--allow-metrics=false",
        "--log-verbose=true",
        "--model-namespacing=true",
        "--backend-config=python,shm-default-byte-size=16777216",
        "--backend-config=python,shm-growth-byte-size=1048576",
    ]
    assert environment["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "adder"
    assert environment["SAGEMAKER_TRITON_PING_MODE"] == "ready"
    assert "WARNING: No SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided" in capsys.readouterr().out


def test_variables_become_flags(repository):
    arguments = make_arguments(
        {
            "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "adder",
            "SAGEMAKER_BIND_TO_PORT": "8000",
            "SAGEMAKER_SAFE_PORT_RANGE": "8081-9000",
            "SAGEMAKER_TRITON_ALLOW_GRPC": "true",
            "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
            "SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING": "false",
            "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "1024",
            "SAGEMAKER_TRITON_ADDITIONAL_ARGS": "--exit-timeout-secs=5 --log-info=true",
        },
        repository,
    )
    assert {
        "--sagemaker-port=8000",
        "--sagemaker-safe-port-range=8081-9000",
        "--allow-grpc=true",
        "--log-verbose=false",
        "--model-namespacing=false",
        "--backend-config=python,shm-default-byte-size=1024",
        "--exit-timeout-secs=5",
        "--log-info=true",
    } <= set(arguments)


def test_a_multi_model_endpoint_loads_nothing_at_start_and_reports_liveness(repository):
    environment = {"SAGEMAKER_MULTI_MODEL": "true"}
    arguments = make_arguments(environment, repository)
    assert "--model-repository=/tmp/sagemaker" in arguments
    assert not any(each.startswith("--load-model") for each in arguments)
    assert environment["SAGEMAKER_TRITON_PING_MODE"] == "live"


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        (
            {"SAGEMAKER_TRITON_INFERENCE_TYPE": "wrong"},
            "ERROR: Invalid SAGEMAKER_TRITON_INFERENCE_TYPE 'wrong'",
        ),
        (
            {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "wrong"},
            "ERROR: Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME wrong does not",
        ),
        ({}, "ERROR: More than 1 model directory found in model repository"),
    ],
)
def test_wrong_environments_end_with_tritons_text(repository, environment, text):
    (repository / "second").mkdir()
    with pytest.raises(ServeError, match=text):
        make_arguments(environment, repository)


def test_a_folder_without_models_or_with_a_bare_model_ends_with_tritons_text(tmp_path):
    with pytest.raises(ServeError, match="ERROR: No model found"):
        make_arguments({}, tmp_path)
    (tmp_path / "config.pbtxt").touch()
    with pytest.raises(ServeError, match="ERROR: Incorrect directory structure"):
        make_arguments({}, tmp_path)
