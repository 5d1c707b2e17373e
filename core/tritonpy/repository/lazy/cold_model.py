"""A model that loads at its first request, loaded or not."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tritonpy.clock import now_ns
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.budget.patience import Patience
from tritonpy.repository.lazy.waiting import WaitingRequests
from tritonpy.repository.table import Listed
from tritonpy.types import InferRequest

LONGEST_PAUSE_S = 60.0


@dataclass(slots=True, eq=False)
class ColdModel:
    """`override` is the configuration that a client gave instead of the one on disk. `against`: why the load that runs has no room yet."""

    key: str
    name: str
    listed: Listed
    fingerprint: str
    pinned: bool
    override: str | None
    waiting: WaitingRequests
    loading: bool = False
    unasked: bool = False
    dropped: bool = False
    against: str = ""
    failures: int = 0
    reason: str = ""
    retry_ns: int = 0
    kept_until_ns: int = 0
    expiry_ns: int = 0

    def patience(self, wait_s: float) -> Patience:
        """Return how long its load waits for room."""
        return Patience(wait_s, self._wanted, self._held, self._tell)

    def failed(self, reason: str, retry_s: float) -> float:
        """Take note of a failure; return how many seconds it is not tried again."""
        pause_s = min(retry_s * 2.0**self.failures, LONGEST_PAUSE_S)
        self.failures += 1
        self.reason = reason
        self.retry_ns = now_ns() + int(pause_s * 1e9)
        return pause_s

    def arrived(self, keep_s: float) -> None:
        """Take note that it serves; one for which no request waits is kept for a while, for those that were told to come again."""
        self.failures, self.reason, self.retry_ns, self.against = 0, "", 0, ""
        self.kept_until_ns = now_ns() + int(keep_s * 1e9)

    def _wanted(self) -> bool:
        return not self.dropped and (self.unasked or len(self.waiting) > 0)

    def _held(self) -> Collection[str]:
        """Return the models by which every waiting request was made: they are in use until it is loaded."""
        callers = [_callers(request) for request in self.waiting]
        return frozenset.intersection(*callers) if callers and not self.unasked else frozenset()

    def _tell(self, against: str) -> None:
        self.against = against


def _callers(request: InferRequest) -> frozenset[str]:
    found: set[str] = set()
    parent = request.parent
    while parent is not None:
        owner = parent.owner
        found.add(owner.context.qualified_name if isinstance(owner, LoadedModel) else parent.model_name)
        parent = parent.parent
    return frozenset(found)
