"""Who holds how much: one account for each load of a model, from before it begins until everything of it is gone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tritonpy.clock import epoch_ms
from tritonpy.repository.budget.sizes import ALL, Limits, Sizes, added, held_in


@dataclass(slots=True, eq=False)
class Account:
    """What one load of the model `key` holds, or is about to. `leaving`: it is being unloaded."""

    key: str
    sizes: Sizes
    ledger: Ledger = field(repr=False)
    since_ms: int = field(default_factory=epoch_ms)
    leaving: bool = False
    measure: Callable[[], Sizes] | None = None
    """What tells the sizes of the model that serves, if that is known yet: what is loaded may grow."""
    later: Callable[[], Sizes] | None = None
    """What tells them once versions that are on their way out are gone."""

    def departed(self) -> None:
        """Take note that versions which were on their way out are gone."""
        if self.later is not None:
            self.measure, self.later = self.later, None
        self.refresh()

    def refresh(self) -> None:
        """Hold what the model holds by now."""
        if self.measure is not None:
            self.ledger.change(self, self.measure())

    def leave(self) -> None:
        """Take note that the model is being unloaded."""
        self.measure = self.later = None  # they name the models, which are to go
        self.ledger.leave(self)

    def close(self) -> None:
        """Take note that all of it is gone; may be said twice."""
        self.ledger.close(self)


class Ledger:
    """All accounts. `changed` is notified when there may be more room; `highest` is the most that was ever held, by place and in `ALL`."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.changed = threading.Condition()
        self.highest: dict[str, int] = {ALL: 0}
        self._accounts: dict[Account, None] = {}

    def open(self, key: str, need: Sizes) -> Account | None:
        """Return a new account of `need`, None where there is no room for it."""
        with self.changed:
            if self.limits.excess(added([need, self._used()])):
                return None
            account = Account(key, dict(need), self)
            self._accounts[account] = None
            self._note()
            return account

    def change(self, account: Account, sizes: Sizes) -> dict[str, int]:
        """Let `account` hold `sizes`; return by how much the limits are exceeded then."""
        with self.changed:
            if account in self._accounts and account.sizes != sizes:
                account.sizes = dict(sizes)
                self._note()
                self.changed.notify_all()
            return self.limits.excess(self._used())

    def leave(self, account: Account) -> None:
        """Take note that `account` is on its way out."""
        with self.changed:
            account.leaving = True
            self.changed.notify_all()

    def close(self, account: Account) -> None:
        """Forget `account`."""
        with self.changed:
            self._accounts.pop(account, None)
            self.changed.notify_all()

    def used(self) -> dict[str, int]:
        """Return what all accounts hold."""
        with self.changed:
            return self._used()

    def leaving(self) -> dict[str, int]:
        """Return what the accounts hold that are being unloaded."""
        with self.changed:
            return added(account.sizes for account in self._accounts if account.leaving)

    def staying(self) -> dict[str, list[Account]]:
        """Return the accounts that are not being unloaded, by model."""
        found: dict[str, list[Account]] = {}
        with self.changed:
            for account in self._accounts:
                if not account.leaving:
                    found.setdefault(account.key, []).append(account)
        return found

    def _used(self) -> dict[str, int]:
        return added(account.sizes for account in self._accounts)

    def _note(self) -> None:
        used = self._used()
        for place in (ALL, *used):
            self.highest[place] = max(held_in(used, place), self.highest.get(place, 0))
