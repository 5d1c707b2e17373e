from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tritonpy.server import Server
from tritonpy.testing import ModelRepository, Witness

from ..toys.serving import ToyPlugin, ask, numbers, serving, toy_plugins
from .teller import Book, teller

Serve = Callable[..., AbstractContextManager[Server]]


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def serve(model_repository: ModelRepository, book: Book) -> Serve:
    """Serve the repository of the test with tellers; explicit control unless the test says otherwise."""

    def start(*plugins: object, mode: str = "explicit", **settings: Any) -> AbstractContextManager[Server]:
        control = {"mode": mode} | settings.pop("control", {})
        found = toy_plugins(ToyPlugin({"teller": teller(book)}), *plugins)
        return serving(model_repository, found, control=control, **settings)

    return start


@pytest.fixture
def witness() -> Witness:
    return Witness()


@pytest.fixture
def number(witness):
    """Ask a model which file it was loaded from."""

    def get(server, model, version=-1):
        (answers,) = witness.wait(ask(server.engine, witness, model, [0], model_version=version))
        ((value,),) = numbers(answers)
        return value

    return get
