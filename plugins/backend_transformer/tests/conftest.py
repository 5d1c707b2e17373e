"""Fixtures for tiny models and their harnesses."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tritonpy import InferResponse
from tritonpy_backend_transformer.backend import TransformerBackend
from tritonpy_testing import BackendHarness, model_config

from .tiny_models import (
    Plain,
    write_decoder,
    write_encoder,
    write_speaker,
    write_tokenizer,
    write_translator,
)

Load = Callable[..., BackendHarness]


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of unchanged models: decoder, encoder and translator, each with a tokenizer."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("decoder", "encoder", "translator"):
        write_tokenizer(folder / name)
    return folder


@pytest.fixture(scope="session")
def decoder(shelf: Path) -> tuple[Path, Plain]:
    """A decoder with random weights, and the same model in plain numpy."""
    return shelf / "decoder", Plain(write_decoder(shelf / "decoder"))


@pytest.fixture(scope="session")
def encoder(shelf: Path) -> tuple[Path, Plain]:
    """An encoder with random weights, and the same model in plain numpy."""
    return shelf / "encoder", Plain(write_encoder(shelf / "encoder"))


@pytest.fixture(scope="session")
def translator(shelf: Path) -> tuple[Path, Plain]:
    """An encoder-decoder model with random weights, and the same model in plain numpy."""
    return shelf / "translator", Plain(write_translator(shelf / "translator"))


@pytest.fixture
def speaker(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a model which generates given tokens."""

    def make(tokens: list[int], name: str = "speaker", **options: Any) -> Path:
        write_speaker(tmp_path / name, tokens, **options)
        write_tokenizer(tmp_path / name)
        return tmp_path / name

    return make


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return a function that returns a harness for a copy of a model's folder."""

    def make(source: Path, text: str = "", **parameters: str) -> BackendHarness:
        shutil.copytree(source, tmp_path / "m" / "1" / "model", dirs_exist_ok=True)
        # One thread each: on a busy machine, threads that wait for each other are many times
        # slower.
        for key, value in {"intra_op_thread_count": "1", **parameters}.items():
            text += f' parameters {{ key: "{key}" value {{ string_value: {_quoted(value)} }} }}'
        return BackendHarness(
            TransformerBackend,
            model_config('name: "m" backend: "transformer" ' + text),
            tmp_path / "m",
        )

    return make


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def inputs(text: str | None = None, **values: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a generation request."""
    kinds = {int: np.int32, float: np.float32, bool: np.bool_}
    arrays = {} if text is None else {"text_input": np.array([text.encode()], object)}
    for name, value in values.items():
        if isinstance(value, (str, tuple)):
            arrays[name] = np.array(
                [each.encode() for each in ([value] if isinstance(value, str) else value)], object
            )
        elif isinstance(value, list):
            arrays[name] = np.array(value, np.int32)
        else:
            arrays[name] = np.array([value], np.uint64 if name == "seed" else kinds[type(value)])
    return arrays


def output(response: InferResponse, name: str = "text_output") -> Any:
    """Return the elements of an output, with decoded strings."""
    assert response.error is None, response.error
    array = next(tensor for tensor in response.outputs if tensor.name == name).numpy()
    return [each.decode() for each in array.ravel()] if array.dtype == object else array.tolist()
