"""Every public method of tritonclient's four clients, called against a live server."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from tests.client_surface.checks import CHECKS, LOADED, METHODS, check, write_models
from tests.conftest import Models, tensors_text


@pytest.fixture(scope="module")
def server(serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server that permits everything to clients; `spare` is not loaded."""
    models = Models(tmp_path_factory.mktemp("surface"))
    write_models(models, tensors_text)
    loaded = [f"--load-model={name}" for name in LOADED]
    traces = f"--trace-config=triton,file={tmp_path_factory.mktemp('traces') / 'trace.json'}"
    flags = ("--model-control-mode=explicit", "--allow-client-shm=true", traces, *loaded)
    with serve(f"--model-repository={models.path}", *flags) as served:
        yield served


@pytest.mark.parametrize(("kind", "method"), METHODS)
def test_a_client_method_works(server: Any, kind: str, method: str) -> None:
    asyncio.run(check(server, kind, method))
    if kind == "http aio":
        collect_unread()


def collect_unread() -> None:
    """Collect responses that tritonclient does not read: their connections warn in other tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_every_check_belongs_to_a_method() -> None:
    assert set(CHECKS) <= {method for _, method in METHODS}
