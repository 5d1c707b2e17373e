"""Memory that the workers of one model version share."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Share:
    """A piece of memory: its descriptor, and what its maker says of what lies where."""

    descriptor: int
    layout: Any


@dataclass(slots=True)
class _Making:
    """A share on its way: who makes it, and who waits for it."""

    maker: object
    waiting: deque[tuple[object, asyncio.Future[Share | None]]] = field(default_factory=deque)


class Shares:
    """Shares by the key that the model gives them. Everything here runs on the loop's thread.

    The first user that asks for a key makes the share, the others wait; where the maker fails or leaves, it is the next one's turn.
    With the last user everything is closed and `ended` is called; who has the memory mapped keeps it.
    """

    def __init__(self, ended: Callable[[], object]) -> None:
        self._ended = ended
        self._users = 0
        self._made: dict[str, Share] = {}
        self._making: dict[str, _Making] = {}

    def join(self) -> None:
        """Take one more user."""
        self._users += 1

    async def get(self, key: str, user: object) -> Share | None:
        """Return the share, when it is there; None: `user` is to make it, and then to call `put` or `fail`."""
        if key in self._made:
            return self._made[key]
        making = self._making.get(key)
        if making is None:
            self._making[key] = _Making(user)
            return None
        turn: asyncio.Future[Share | None] = asyncio.get_running_loop().create_future()
        making.waiting.append((user, turn))
        return await turn

    def makes(self, key: str, user: object) -> bool:
        """Say whether it is `user` that makes the share."""
        return key in self._making and self._making[key].maker is user

    def put(self, key: str, share: Share) -> None:
        """Take what the maker of `key` made, and give it to those that wait."""
        self._made[key] = share
        for _, turn in self._making.pop(key).waiting:
            if not turn.done():
                turn.set_result(share)

    def fail(self, key: str) -> None:
        """Take note that the maker of `key` could not: it is the next one's turn."""
        making = self._making[key]
        while making.waiting:
            making.maker, turn = making.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._making[key]

    def leave(self, user: object) -> None:
        """Take note that `user` is gone, with what it was making."""
        for key in [key for key in self._making if self.makes(key, user)]:
            self.fail(key)
        self._users -= 1
        if self._users == 0:
            for share in self._made.values():
                os.close(share.descriptor)
            self._made.clear()
            self._ended()
