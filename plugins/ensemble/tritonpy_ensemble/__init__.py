"""Ensembles: models that run other models as steps, connected by tensors.

Start at `scheduler`, then `plan` (what depends on what) and `ensemble_run` (one request).
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl


@hookimpl
def tritonpy_schedulers() -> Mapping[str, str]:
    """Register the scheduler of models with `ensemble_scheduling`."""
    return {"ensemble": "tritonpy_ensemble.scheduler:EnsembleScheduler"}
