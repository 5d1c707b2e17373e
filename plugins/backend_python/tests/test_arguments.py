"""Arguments and start messages of workers."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tritonpy import InstanceContext, InvalidArgument, ModelContext
from tritonpy_backend_python.arguments import (
    check_name,
    initialize_arguments,
    model_message,
    start_message,
)
from tritonpy_backend_python.limits import WorkerLimits
from tritonpy_backend_python.model_code import instance_count
from tritonpy_testing import model_config

INSTANCE = InstanceContext("m_0_1", "GPU", 2, 1)


def model(text: str = "", backend_directory: Path | None = None) -> ModelContext:
    config = model_config(
        f'name: "m" backend: "python" output {{ name: "OUT" data_type: TYPE_FP32 dims: 1 }} {text}'
    )
    return cast(
        "Any",
        SimpleNamespace(
            name="m",
            version=3,
            config=config,
            directory=Path("/models/m"),
            path=Path("/models/m/3"),
            backend_directory=backend_directory,
            log=logging.LoggerAdapter(logging.getLogger("test")),
        ),
    )


def test_arguments_of_initialize_are_tritons_strings() -> None:
    arguments = initialize_arguments(model(), INSTANCE)
    assert json.loads(arguments.pop("model_config"))["output"][0]["name"] == "OUT"
    assert arguments == {
        "model_instance_kind": "GPU",
        "model_instance_name": "m_0_1",
        "model_instance_device_id": "2",
        "model_repository": "/models/m",
        "model_version": "3",
        "model_name": "m",
    }


def test_the_default_file_is_model_py() -> None:
    assert model_message(model())["model_file"] == "/models/m/3/model.py"
    assert (
        model_message(model('default_model_filename: "other.py"'))["model_file"]
        == "/models/m/3/other.py"
    )


def test_a_python_based_backend_is_named_by_its_folder() -> None:
    assert model_message(model())["backend_directory"] == ""
    assert (
        model_message(model(backend_directory=Path("/backends/x")))["backend_directory"]
        == "/backends/x"
    )


def test_the_start_message_is_json() -> None:
    limits = WorkerLimits(execution_s=0.5, memory=1 << 20)
    message = json.loads(
        json.dumps(
            start_message(model("model_transaction_policy { decoupled: true }"), INSTANCE, limits)
        )
    )
    assert (message["decoupled"], message["outputs"]) == (True, ["OUT"])
    assert (message["memory_limit"], message["execution_limit"]) == (1 << 20, True)


def test_instances_are_counted_over_groups_and_devices() -> None:
    groups = "instance_group [{ count: 2 kind: KIND_CPU }, { count: 3 kind: KIND_GPU gpus: [0, 1] }, { count: 9 passive: true kind: KIND_CPU }]"
    assert instance_count(model(groups).config) == 17


@pytest.mark.parametrize("character", ";|&$`<>()[]{}\\\"'*?~#!")
def test_a_name_with_a_shell_metacharacter_is_rejected(character):
    with pytest.raises(InvalidArgument, match=r"^Invalid stub name: contains invalid characters$"):
        check_name(f"model{character}test")


@pytest.mark.parametrize(
    "name",
    [
        "TestModel123",
        "model-with-hyphens",
        "model_with_underscores",
        "a.b c",
        "größe",
        "ensemble/m",
    ],
)
def test_other_names_are_accepted(name):
    check_name(name)
