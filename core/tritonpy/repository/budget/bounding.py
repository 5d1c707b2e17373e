"""Puts a bound on the memory that the models of a server hold."""

from __future__ import annotations

import logging

from tritonpy.config.server.memory_settings import MemorySettings
from tritonpy.repository.budget.ledger import Ledger
from tritonpy.repository.budget.memory_budget import MemoryBudget
from tritonpy.repository.budget.needs import Needs
from tritonpy.repository.budget.residents import Residents
from tritonpy.repository.budget.room import Room
from tritonpy.repository.budget.sizes import Limits
from tritonpy.repository.lazy.lazy_loading import LazyLoading
from tritonpy.repository.linking import EnsembleLinks
from tritonpy.repository.loader import ModelLoader
from tritonpy.repository.table import ModelTable

log = logging.getLogger("tritonpy.repository")


def bound_memory(
    table: ModelTable, loader: ModelLoader, links: EnsembleLinks, lazy: LazyLoading, settings: MemorySettings
) -> MemoryBudget:
    """Return the budget of `settings`; where it has to, it unloads lazy models."""
    log.info(
        "the memory budget counts what backends report of their models, for ONNX Runtime on the CPU the size of their files: "
        "the process may hold twice as much. Leave room for that, or set the parameter memory_bytes of a model"
    )
    ledger = Ledger(Limits.of(settings))
    residents = Residents(table, links, ledger, lazy.cold.get)
    return MemoryBudget(Room(ledger, residents, lazy.evict, settings.retry_s), Needs(loader))
