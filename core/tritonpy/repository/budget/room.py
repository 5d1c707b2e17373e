"""Makes room for a load: waits for it, and unloads who can go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tritonpy.repository.budget.eviction import Resident, choose, could_fit, may_go
from tritonpy.repository.budget.ledger import Account, Ledger
from tritonpy.repository.budget.no_room import NoRoom, Outgrown, refusal
from tritonpy.repository.budget.patience import Patience
from tritonpy.repository.budget.sizes import Sizes, held_in, spelled, spelled_sizes

_LOOK_S = 0.02  # between two looks at whether a model became idle: no request tells
LEAVE_S = 30.0  # how long a load that waits for nobody waits for models that are on their way out


@dataclass(slots=True, eq=False)
class _Place:
    """A load in the line. `stuck`: no room can be made for it now."""

    key: str
    need: Sizes
    patience: Patience | None
    began: float
    stuck: bool = False

    def short(self) -> bool:
        return self.patience is None or self.patience.short


class Room:
    """`residents()` are the models that hold memory or stand on those that do; `evict(key)` unloads one, unless somebody uses it.

    Loads wait in a line. The evictions of several are decided one after the other, so that no two of them make the same room.
    """

    def __init__(
        self, ledger: Ledger, residents: Callable[[], list[Resident]], evict: Callable[[str], bool], retry_s: float
    ) -> None:
        self.ledger = ledger
        self.residents = residents
        self._evict = evict
        self._retry_s = retry_s
        self._line: list[_Place] = []
        self._deciding = threading.Lock()

    def occupancy(self) -> str:
        """Return how much of each bound is held: `3.0 GiB of 8.0 GiB`."""
        used, bounds = self.ledger.used(), self.ledger.limits.by_place()
        return ", ".join(f"{spelled(held_in(used, place))} of {spelled(most)}" for place, most in bounds.items())

    @property
    def waiting(self) -> int:
        """How many loads wait for room."""
        return len(self._line)

    def reserve(self, key: str, need: Sizes, patience: Patience | None) -> Account:
        """Return an account of `need`, when there is room for it. May take as long as `patience` says; None waits for no model in use.

        Raises NoRoom with the numbers, at once where there can never be room.
        """
        place = _Place(key, need, patience, time.monotonic())
        with self._deciding:
            self._line.append(place)
        try:
            while True:
                with self._deciding:
                    account = self._attempt(place)
                if account is not None:
                    return account
                with self.ledger.changed:
                    self.ledger.changed.wait(_LOOK_S)
        finally:
            with self._deciding:
                self._line.remove(place)

    def settle(self, account: Account, sizes: Sizes) -> None:
        """Let `account` hold what its model turned out to hold. Raises Outgrown where that is too much, whoever goes."""
        began = time.monotonic()
        while self.ledger.change(account, sizes):
            with self._deciding:
                residents = self._others(account.key)
                victims = self._victims(residents, {})
            if victims is None or time.monotonic() - began > LEAVE_S:
                raise Outgrown(
                    f"it holds {spelled_sizes(sizes)} and that is too much: {self._refusal(residents, {})}",
                    retry_after_s=self._retry_s,
                )
            with self.ledger.changed:
                self.ledger.changed.wait(_LOOK_S)

    def shrink(self) -> str:
        """Unload idle models while more is held than may be; return what stands against it where nobody can go."""
        with self._deciding:
            residents = self.residents()  # as large as they are by now
            if not self.ledger.limits.excess(self.ledger.used()):
                return ""
            return self._refusal(residents, {}) if self._victims(residents, {}) is None else ""

    def _attempt(self, place: _Place) -> Account | None:
        """Return the account, or None and something may have been done for it. Raises NoRoom."""
        residents = self._others(place.key)
        held = () if place.patience is None else place.patience.held()
        if not could_fit(residents, place.need, self.ledger.limits, held):
            raise self._no_room(place, residents)
        if not may_go([(one.stuck, one.short()) for one in self._ahead(place)]):
            self._check_patience(place, residents)
            return None
        account = self.ledger.open(place.key, place.need)
        if account is not None:
            return account
        place.stuck = self._victims(residents, place.need) is None
        self._check_patience(place, residents)
        return None

    def _ahead(self, place: _Place) -> Sequence[_Place]:
        return () if place.patience is None else self._line[: self._line.index(place)]

    def _check_patience(self, place: _Place, residents: Sequence[Resident]) -> None:
        if place.patience is None:
            if place.stuck or time.monotonic() - place.began > LEAVE_S:
                raise self._no_room(place, residents)
            return
        if place.stuck:
            place.patience.tell(self._refusal(residents, place.need))
        if place.patience.over:
            raise self._no_room(place, residents)

    def _victims(self, residents: Sequence[Resident], need: Sizes) -> list[str] | None:
        """Unload who has to go for `need`, in order; None where nobody can. What is leaving already makes room too."""
        victims = choose(residents, need, self.ledger.limits)
        for key in victims or ():
            if not self._evict(key):
                break  # used in this moment: the next look sees that
        return victims

    def _others(self, key: str) -> list[Resident]:
        """Return the residents; of the model that is being loaded itself, what serves stays until it is replaced."""
        return [
            replace(one, idle=False, fixed=True) if one.key == key else one for one in self.residents()
        ]  # fmt: skip

    def _no_room(self, place: _Place, residents: Sequence[Resident]) -> NoRoom:
        return NoRoom(self._refusal(residents, place.need), retry_after_s=self._retry_s)

    def _refusal(self, residents: Sequence[Resident], need: Sizes) -> str:
        return refusal(residents, self.ledger.leaving(), need, self.ledger.limits)
