"""Takes a model out at a moment in which nobody uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from tritonpy.repository.retiring import Departure
from tritonpy.repository.table import ModelTable


def withdrawn(table: ModelTable, key: str, take_out: Callable[[str], Sequence[Departure]]) -> Sequence[Departure]:
    """Return what `take_out` left to be retired; nothing, and nothing was done, where a version is in use or none serves.

    While it is looked whether they are in use no version can take a request, and afterwards none does: who found one before looks again.
    """
    models = table.ready(key)
    with ExitStack() as held:
        for model in models:
            held.enter_context(model.dispatcher.lock)
        if not models or any(model.in_use() for model in models):
            return ()
        for model in models:
            model.refuse()
        return take_out(key)
