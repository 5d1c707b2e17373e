"""The loaded models as the selection of evictions sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tritonpy import now_ns
from tritonpy.repository import EnsembleMembers, LoadedModel, ModelTable
from tritonpy_residency.eviction import ResidentModel
from tritonpy_residency.lazy_counters import request_count
from tritonpy_residency.lazy_model import LazyModel
from tritonpy_residency.reservations import MemoryReservations, ModelReservation
from tritonpy_residency.sizes import sum_sizes


class ResidentModels:
    """Returns the resident models when called.

    `lazy_model(key)` returns the state of a lazy model. Only lazy models can be evicted, as only
    they are loaded again on request.
    """

    def __init__(
        self,
        table: ModelTable,
        ensembles: EnsembleMembers,
        reservations: MemoryReservations,
        lazy_model: Callable[[str], LazyModel | None],
    ) -> None:
        self._table = table
        self._ensembles = ensembles
        self._reservations = reservations
        self._lazy_model = lazy_model

    def __call__(self) -> list[ResidentModel]:
        """Return the models that hold memory or are about to, and the requested ensembles."""
        active = self._reservations.active()
        ensembles = self._ensembles.keys()
        return [self._resident(key, active.get(key, ())) for key in sorted({*active, *ensembles})]

    def _resident(self, key: str, reservations: Sequence[ModelReservation]) -> ResidentModel:
        for reservation in reservations:
            reservation.refresh()
        models = self._table.ready(key)
        lazy_model = self._lazy_model(key)
        return ResidentModel(
            key,
            sum_sizes(reservation.sizes for reservation in reservations),
            max(
                [model.last_use_ms for model in models]
                + [reservation.since_ms for reservation in reservations],
                default=0,
            ),
            idle=bool(models)
            and not any(model.is_in_use() for model in models)
            and not _is_kept(lazy_model, models),
            permanent=lazy_model is None or lazy_model.pinned,
            members=frozenset(self._ensembles.members(key)),
        )


def _is_kept(lazy_model: LazyModel | None, models: Sequence[LoadedModel]) -> bool:
    """Return whether a model is kept loaded for clients that must retry."""
    return (
        lazy_model is not None
        and lazy_model.kept_until_ns > now_ns()
        and not any(map(request_count, models))
    )
