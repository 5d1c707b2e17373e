"""A server of one model with a toy as its dynamic scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tritonpy.api.backend import Backend
from tritonpy.api.scheduler import Scheduler
from tritonpy.server.server import Server
from tritonpy_testing.model_repository import ModelRepository

from .rescheduling import ReschedulingScheduler
from .serving import ToyPlugin, config_of, serving, toy_plugins

EXPLICIT = {"mode": "explicit", "load": ["*"]}
DYNAMIC = "dynamic_batching {}"


@contextmanager
def one_model(
    repository: ModelRepository,
    backend: type[Backend],
    *,
    scheduler: type[Scheduler] = ReschedulingScheduler,
    config: str | None = None,
    more: str = "",
    **settings: Any,
) -> Iterator[Server]:
    """Serve `backend` as model "m" with a toy as its dynamic scheduler."""
    repository.add("m", config or config_of("toy", batch=4, more=f"{DYNAMIC} {more}"))
    with serving(
        repository, toy_plugins(ToyPlugin({"toy": backend}, {"dynamic": scheduler})), **settings
    ) as server:
        yield server
