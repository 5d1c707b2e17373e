"""The interface of a response cache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from tritonpy.api.options import NoOptions, Options
from tritonpy.custom_metrics.snapshot import FamilySnapshot
from tritonpy.types import Tensor


class Cache(ABC):
    """Keeps the outputs of earlier requests. `lookup` and `insert` may be called from any thread.

    An exception is logged and counts as a miss: a cache never fails an inference. After some in a row the cache is left alone for a moment, so
    that one that is down costs nothing; it is tried again by itself. The default keeps nothing.

    `blocking = True`: calls wait on a network. They are made from `threads` threads, and a look-up that has not answered after `deadline_ms` is a
    miss. Otherwise they are made where the request is, on the event loop too: they must be quick, and never wait.
    `shared = True`: other servers use the same store, or it outlives this one. Keys then name a model by what its files hold, otherwise by the load.
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
        """Return the outputs stored under `key` in host memory, or None; nobody writes to them."""

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        """Store `outputs`, which are in host memory; the tensors must be copied, their buffers are not the cache's.

        Keys have 32 bytes. An output without a name is the core's own, to be stored like the others.
        """

    def metrics(self) -> Sequence[FamilySnapshot]:
        """Return the cache's own metrics, of the cache as a whole (optional); asked for at each scrape."""
        return ()

    def close(self) -> None:
        """Free what the cache holds (optional); calls that still wait must end, with whatever error."""
