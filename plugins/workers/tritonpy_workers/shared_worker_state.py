"""Memory blocks that the workers of one model version share."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SharedBlock:
    """A block of shared memory: its descriptor, and the layout that its maker described."""

    descriptor: int
    layout: Any


@dataclass(slots=True)
class _PendingBlock:
    """A block that is being made, its maker and the waiting users."""

    maker: object
    waiting: deque[tuple[object, asyncio.Future[SharedBlock | None]]] = field(default_factory=deque)


class SharedWorkerState:
    """Shared blocks by key; all methods run on the event loop's thread.

    The first user of a key makes its block while the others wait. If the maker fails or is gone,
    the next user makes it. When the last user is gone, all blocks are closed and `ended` is called.
    A worker keeps the memory that it has mapped.
    """

    def __init__(self, ended: Callable[[], object]) -> None:
        self._ended = ended
        self._users = 0
        self._blocks: dict[str, SharedBlock] = {}
        self._pending: dict[str, _PendingBlock] = {}

    def join(self) -> None:
        """Add a user."""
        self._users += 1

    async def get(self, key: str, user: object) -> SharedBlock | None:
        """Return the block of `key`, or None if `user` must make it and call `put` or `fail`."""
        if key in self._blocks:
            return self._blocks[key]
        pending = self._pending.get(key)
        if pending is None:
            self._pending[key] = _PendingBlock(user)
            return None
        future: asyncio.Future[SharedBlock | None] = asyncio.get_running_loop().create_future()
        pending.waiting.append((user, future))
        return await future

    def is_maker(self, key: str, user: object) -> bool:
        """Return whether `user` is making the block of `key`."""
        return key in self._pending and self._pending[key].maker is user

    def put(self, key: str, block: SharedBlock) -> None:
        """Store the new block of `key` and return it to the waiting users."""
        self._blocks[key] = block
        for _, future in self._pending.pop(key).waiting:
            if not future.done():
                future.set_result(block)

    def fail(self, key: str) -> None:
        """Record that the maker of `key` failed; the next waiting user makes the block."""
        pending = self._pending[key]
        while pending.waiting:
            pending.maker, future = pending.waiting.popleft()
            if not future.done():
                future.set_result(None)
                return
        del self._pending[key]

    def release(self, user: object) -> None:
        """Remove `user`, which also fails the blocks that it was making."""
        for key in [key for key in self._pending if self.is_maker(key, user)]:
            self.fail(key)
        self._users -= 1
        if self._users == 0:
            for block in self._blocks.values():
                os.close(block.descriptor)
            self._blocks.clear()
            self._ended()
