"""The interface of response caches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from tritonpy_config.options import NoOptions, Options
from tritonpy_metrics.registry import FamilySnapshot
from tritonpy_types import Tensor


class Cache(ABC):
    """Stores the outputs of earlier requests. Any thread may call `lookup` and `insert`.

    An exception is logged and counts as a miss: a cache never fails an inference. After several
    exceptions in a row the server skips the cache for a while, so that an unavailable cache costs
    nothing, and then retries it. The default `insert` stores nothing.

    `blocking = True`: calls wait for a network. The server makes them from `threads` threads, and a
    lookup that takes longer than `deadline_ms` counts as a miss. Otherwise the calling thread makes
    them, possibly on the event loop: they must be fast and never wait.

    `shared = True`: other servers use the same store, or it outlives this server. Keys then
    identify a model by the contents of its files, otherwise by its load.
    """

    Options: ClassVar[type[Options]] = NoOptions
    blocking: ClassVar[bool] = False
    shared: ClassVar[bool] = False
    threads: int = 4
    deadline_ms: float = 100

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def lookup(self, key: bytes) -> Sequence[Tensor] | None:
        """Return the outputs stored under `key`, in host memory and never modified, or None."""

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        """Store `outputs`, which are in host memory.

        Copy the tensors: their buffers do not belong to the cache. Keys have 32 bytes. The core may
        add an output with an empty name; store it like the others.
        """

    def metrics(self) -> Sequence[FamilySnapshot]:
        """Return the metrics of the cache as a whole (optional); called at each scrape."""
        return ()

    def close(self) -> None:
        """Release the resources of the cache (optional).

        Calls in progress must end; they may raise any error.
        """
