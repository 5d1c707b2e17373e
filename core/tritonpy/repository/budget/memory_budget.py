"""The memory that models hold, seen from the load of one of them."""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial

from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.budget.growth import GrowthWatch
from tritonpy.repository.budget.needs import Needs
from tritonpy.repository.budget.patience import Patience
from tritonpy.repository.budget.room import Room
from tritonpy.repository.budget.sizes import spelled_sizes
from tritonpy.repository.prepared import Prepared

log = logging.getLogger("tritonpy.repository")


class MemoryBudget:
    """Each load of a model takes room before it begins, and tells what it turned out to hold before it serves."""

    def __init__(self, room: Room, needs: Needs) -> None:
        self.room = room
        self._needs = needs
        self._growth = GrowthWatch(room)

    def close(self) -> None:
        """Look after nothing any more."""
        self._growth.stop()

    def take(self, prepared: Prepared, patience: Patience | None) -> None:
        """Give `prepared` an account, when there is room. Raises NoRoom, and InvalidArgument for a need that is declared wrongly."""
        need = self._needs.of(prepared)
        self._growth.start()
        prepared.account = self.room.reserve(prepared.key, need.sizes, patience)
        held = self.room.occupancy()
        log.info("'%s' takes %s (%s); held is %s now", prepared.key, spelled_sizes(need.sizes), need.source, held)

    def settle(self, prepared: Prepared, models: Collection[LoadedModel]) -> None:
        """Let its account hold what the loaded `models` hold. Raises Outgrown where there is no room for that."""
        account, need = prepared.account, self._needs.of(prepared)
        if account is None:
            return
        sizes = self._needs.measured(prepared.key, need, models)
        self.room.settle(account, sizes)
        account.measure = partial(self._needs.measured, prepared.key, need, list(models))
        if sizes != need.sizes:
            held = self.room.occupancy()
            log.info("'%s' holds %s; held is %s now", prepared.key, spelled_sizes(sizes), held)

    def narrow(self, prepared: Prepared, models: Collection[LoadedModel]) -> None:
        """Take note that of what was loaded from `prepared` only `models` go on, perhaps with other instances; what goes holds memory until it is gone."""
        account = prepared.account
        if account is None or not models:
            return
        account.later = partial(self._needs.measured, prepared.key, self._needs.of(prepared), list(models))
        account.refresh()

    def grow(self, prepared: Prepared, models: Collection[LoadedModel]) -> None:
        """Do the same for models that serve and have further instances by now; where there is no room, what was held before stands."""
        account = prepared.account
        if account is None:
            return
        before = account.sizes
        for model in models:
            if model.runner is not None:
                model.runner.measure_memory()
        try:
            self.room.settle(account, self._needs.held(self._needs.of(prepared), models))
        except BaseException:
            self.room.ledger.change(account, before)
            raise
