"""The state of one lazy model, loaded or not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tritonpy import InferRequest, now_ns
from tritonpy.repository import LazyListing, LoadDeadline, LoadedModel
from tritonpy_residency.waiting_requests import WaitingRequests

LONGEST_PAUSE_S = 60.0


@dataclass(slots=True, eq=False)
class LazyModel:
    """A lazy model.

    `override` is a configuration that a client gave instead of the one on disk. `load_anyway` is
    set if it must be loaded even if no request waits. `blocked_reason` says why a load in progress
    waits for memory.
    """

    key: str
    name: str
    listing: LazyListing
    fingerprint: str
    pinned: bool
    override: str | None
    waiting: WaitingRequests
    loading: bool = False
    load_anyway: bool = False
    removed: bool = False
    blocked_reason: str = ""
    failures: int = 0
    reason: str = ""
    retry_ns: int = 0
    kept_until_ns: int = 0
    expiry_ns: int = 0

    def deadline(self, wait_s: float) -> LoadDeadline:
        """Return the deadline of its load."""
        return LoadDeadline(wait_s, self._is_needed, self._waiting_callers, self._report)

    def record_failure(self, reason: str, retry_s: float) -> float:
        """Record a failed load; return the seconds until the next attempt."""
        pause_s = min(retry_s * 2.0**self.failures, LONGEST_PAUSE_S)
        self.failures += 1
        self.reason = reason
        self.retry_ns = now_ns() + int(pause_s * 1e9)
        return pause_s

    def mark_loaded(self, keep_s: float) -> None:
        """Record that it serves, and keep it loaded for at least `keep_s`.

        Clients that must retry can do so within that time.
        """
        self.failures, self.reason, self.retry_ns, self.blocked_reason = 0, "", 0, ""
        self.kept_until_ns = now_ns() + int(keep_s * 1e9)

    def _is_needed(self) -> bool:
        return not self.removed and (self.load_anyway or len(self.waiting) > 0)

    def _waiting_callers(self) -> Collection[str]:
        """Return the models that are among the callers of every waiting request.

        They are in use until this model is loaded.
        """
        callers = [_callers(request) for request in self.waiting]
        return frozenset.intersection(*callers) if callers and not self.load_anyway else frozenset()

    def _report(self, blocked_reason: str) -> None:
        self.blocked_reason = blocked_reason


def _callers(request: InferRequest) -> frozenset[str]:
    found: set[str] = set()
    parent = request.parent
    while parent is not None:
        owner = parent.owner
        found.add(
            owner.context.qualified_name if isinstance(owner, LoadedModel) else parent.model_name
        )
        parent = parent.parent
    return frozenset(found)
