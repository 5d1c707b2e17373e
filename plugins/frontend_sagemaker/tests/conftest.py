"""A server with the SageMaker frontend, whose models add numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest

from tritonpy import Backend, InvalidArgument, Unavailable, hookimpl
from tritonpy_testing import running_server

PREFIX = "application/vnd.sagemaker-triton.binary+json;json-header-size="


class Adder(Backend):
    """OUT is IN + 1. The parameter `error` makes a load or, with the input 13, a call fail."""

    def __init__(self, model: Any, instance: Any) -> None:
        super().__init__(model, instance)
        self._error = model.config.parameters["error"].string_value
        if self._error.startswith("load: "):
            raise Unavailable(self._error.removeprefix("load: "))

    def infer(self, inputs: Any) -> Any:
        if 13 in inputs["IN"]:
            raise InvalidArgument(self._error or "13 is refused")
        return {"OUT": inputs["IN"] + np.float32(1)}


class AdderPlugin:
    @hookimpl
    def tritonpy_backends(self) -> dict[str, type[Backend]]:
        return {"adder": Adder}


def adder_config(name: str = "", error: str = "") -> str:
    """Return config.pbtxt of a model that adds one."""
    return f"""
        {f'name: "{name}"' if name else ""} backend: "adder"
        input {{ name: "IN" data_type: TYPE_FP32 dims: 2 }}
        output {{ name: "OUT" data_type: TYPE_FP32 dims: 2 }}
        parameters {{ key: "error" value: {{ string_value: "{error}" }} }}
    """


ENSEMBLE = """
    platform: "ensemble"
    input { name: "IN" data_type: TYPE_FP32 dims: 2 }
    output { name: "OUT" data_type: TYPE_FP32 dims: 2 }
    ensemble_scheduling {
      step { model_name: "first" model_version: -1
             input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "middle" } }
      step { model_name: "second" model_version: -1
             input_map { key: "IN" value: "middle" } output_map { key: "OUT" value: "OUT" } }
    }
"""


def add_model(folder: Path, config: str) -> None:
    """Write a model with one version."""
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config, encoding="utf-8")


class Archives:
    """The folder below which SageMaker unpacks archives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, **models: str) -> str:
        """Write the archive of several models and return its URL."""
        for model, config in models.items():
            add_model(self.folder / name / "model" / model, config)
        return str(self.folder / name / "model")

    def add_flat(self, name: str, config: str) -> str:
        """Write an archive whose top is the model, and return its URL."""
        add_model(self.folder / name / "model", config)
        return str(self.folder / name / "model")


@pytest.fixture
def archives(tmp_path: Path) -> Archives:
    return Archives(tmp_path / "archives")


@pytest.fixture
def serve(tmp_path: Path, archives: Archives) -> Iterator[Callable[..., SimpleNamespace]]:
    """Return a function that starts a server and returns it with a client for its port."""
    repository = tmp_path / "models"
    repository.mkdir()
    with ExitStack() as stack:

        def start(
            *,
            load: tuple[str, ...] = (),
            auth: Any = None,
            exit_on_error: bool = True,
            **options: Any,
        ) -> Any:
            config = {
                "repositories": [{"url": str(repository)}],
                "model_namespacing": True,
                "exit_on_error": exit_on_error,
                "control": {"mode": "explicit", "load": list(load)},
                "frontends": {
                    **dict.fromkeys(("http", "grpc", "metrics"), False),
                    "sagemaker": {
                        "port": 0,
                        "host": "127.0.0.1",
                        "models_folder": str(archives.folder),
                        **options,
                    },
                },
            }
            if auth is not None:
                config["auth"] = auth
            server = stack.enter_context(running_server(config, [AdderPlugin()]))
            url = f"http://{server.server.frontends['sagemaker'].address()}"
            client = stack.enter_context(httpx.Client(base_url=url, timeout=30))
            return SimpleNamespace(server=server, client=client)

        start.repository = repository  # type: ignore[attr-defined]
        yield start


def infer_body(*values: float) -> dict[str, Any]:
    """Return the JSON of an inference request."""
    return {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [2], "data": list(values)}]}
