"""What of the loaded models the choice of who is unloaded needs to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tritonpy.clock import now_ns
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.budget.eviction import Resident
from tritonpy.repository.budget.ledger import Account, Ledger
from tritonpy.repository.budget.sizes import added
from tritonpy.repository.lazy.cold_model import ColdModel
from tritonpy.repository.lazy.tally import requests_of
from tritonpy.repository.linking import EnsembleLinks
from tritonpy.repository.table import ModelTable


class Residents:
    """Looks at the models. `cold(key)` is what is known of a lazy one: only those are unloaded to make room, as only those come back by themselves."""

    def __init__(
        self,
        table: ModelTable,
        links: EnsembleLinks,
        ledger: Ledger,
        cold: Callable[[str], ColdModel | None],
    ) -> None:
        self._table = table
        self._links = links
        self._ledger = ledger
        self._cold = cold

    def __call__(self) -> list[Resident]:
        """Return the models that hold memory, or are about to, and the ensembles that somebody wants."""
        staying = self._ledger.staying()
        ensembles = self._links.wanted()
        return [self._resident(key, staying.get(key, ())) for key in sorted({*staying, *ensembles})]

    def _resident(self, key: str, accounts: Sequence[Account]) -> Resident:
        for account in accounts:
            account.refresh()
        models = self._table.ready(key)
        cold = self._cold(key)
        return Resident(
            key,
            added(account.sizes for account in accounts),
            max([model.last_use_ms for model in models] + [account.since_ms for account in accounts], default=0),
            idle=bool(models) and not any(model.in_use() for model in models) and not _kept(cold, models),
            fixed=cold is None or cold.pinned,
            members=frozenset(self._links.members(key)),
        )


def _kept(cold: ColdModel | None, models: Sequence[LoadedModel]) -> bool:
    """Say whether a model waits for somebody who was told to come again."""
    return cold is not None and cold.kept_until_ns > now_ns() and not any(map(requests_of, models))
