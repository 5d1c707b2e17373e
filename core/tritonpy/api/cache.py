"""The interface of a response cache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from tritonpy.api.options import NoOptions, Options
from tritonpy.types import Tensor


class Cache(ABC):
    """Keeps the outputs of earlier requests. `lookup` and `insert` may be called from any thread.

    An exception is logged and counts as a miss: a cache never fails an inference. The default keeps nothing.
    """

    Options: ClassVar[type[Options]] = NoOptions
    blocking: ClassVar[bool] = False  # True: calls wait on a network, and are made from a thread pool with a deadline

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def lookup(self, key: bytes) -> Sequence[Tensor] | None:
        """Return the outputs stored under `key`, or None."""

    def insert(self, key: bytes, outputs: Sequence[Tensor]) -> None:
        """Store `outputs`; the tensors must be copied, their buffers are not the cache's."""

    def close(self) -> None:
        """Free what the cache holds (optional)."""
