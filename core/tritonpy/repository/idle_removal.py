"""Removal of a model while none of its versions is in use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from tritonpy.repository.draining import DrainJob
from tritonpy.repository.model_table import ModelTable


def remove_if_idle(table: ModelTable, key: str, remove: Callable[[str], Sequence[DrainJob]]) -> Sequence[DrainJob]:
    """Return the jobs from `remove`, or nothing if a version is in use or none is ready.

    The locks of all versions are held meanwhile, so that no version can accept a request between
    the check and the removal. Later requests are looked up again.
    """
    models = table.ready(key)
    with ExitStack() as held:
        for model in models:
            held.enter_context(model.dispatcher.lock)
        if not models or any(model.is_in_use() for model in models):
            return ()
        for model in models:
            model.stop_accepting()
        return remove(key)
