"""Ensembles for tritonpy: models joined into one by the tensors that they hand on."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_schedulers() -> Mapping[str, str]:
    """Serves every model whose configuration says `ensemble_scheduling`."""
    return {"ensemble": "tritonpy_ensemble.scheduler:EnsembleScheduler"}
